"""The reference of the command line, one page per command, made from the commands themselves.

Everything on these pages is what ``--help`` prints: the texts, options, defaults and ranges of the Typer application.
Each option has an anchor of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from swsearch.cli.app import commands

FOLDER: Final = "commands"
_SPECIAL: Final = re.compile(r"([\\*_\[\]<>#|~$])")
_EXAMPLE: Final = "Example: "


def command_pages() -> dict[str, str]:
    """The pages: name with suffix → Markdown."""
    program: Any = commands()
    pages = {f"{FOLDER}/index.md": _index(program)}
    for key, command in program.commands.items():
        name = f"{program.name} {key}"
        pages[f"{FOLDER}/{_slug(name)}.md"] = "".join(_command(command, name, level=1))
    return pages


def prose(text: str) -> str:
    """A text of the command line as Markdown: as it is written, but what is in backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a single backtick is a letter
        return _SPECIAL.sub(r"\\\1", text).replace("`", "\\`")
    return "`".join(part if number % 2 else _SPECIAL.sub(r"\\\1", part) for number, part in enumerate(parts))


def _index(program: Any) -> str:
    named = {f"{program.name} {key}": command for key, command in program.commands.items()}
    rows = "".join(
        f"| [`{name}`]({_slug(name)}.md) | {prose(_first_line(command))} |\n" for name, command in named.items()
    )
    text, examples = _parts(program.help)
    return (
        "# Commands\n\n" + "".join(f"{prose(paragraph)}\n\n" for paragraph in text) + _code(examples)
        + f"| command | purpose |\n| --- | --- |\n{rows}\n"
        + "Results are written to stdout, messages to stderr. The exit codes are 0 for success, 1 for invalid input or "
        "state, 2 for wrong usage, and 130 for an interrupt.\n\n"
        + "".join(_options(program, program.name, level=2))
        + "```{toctree}\n:hidden:\n\n" + "".join(f"{_slug(name)}\n" for name in named) + "```\n"
    )  # fmt: skip


def _command(command: Any, name: str, level: int) -> Iterator[str]:
    """The sections of a command, and of the commands of a group."""
    yield f"{'#' * level} {name}\n\n"
    text, examples = _parts(command.help)
    for paragraph in text:
        yield f"{prose(paragraph)}\n\n"
    inner = getattr(command, "commands", {})
    if inner:
        yield "| command | purpose |\n| --- | --- |\n"
        for key, one in inner.items():
            yield f"| [`{name} {key}`](#{_slug(f'{name} {key}')}) | {prose(_first_line(one))} |\n"
        yield "\n"
    else:
        usage = " ".join(command.collect_usage_pieces(_context(command, name)))
        yield _code([f"{name} {usage}"])
    if examples:
        yield f"**{'Examples' if len(examples) > 1 else 'Example'}**\n\n{_code(examples)}"
    yield from _options(command, name, level + 1)
    for key, one in inner.items():
        yield from _command(one, f"{name} {key}", level + 1)


def _options(command: Any, name: str, level: int) -> Iterator[str]:
    """Arguments and options, grouped as in the help."""
    context = _context(command, name)
    groups: dict[str, list[str]] = {}
    for one in command.params:
        record = None if getattr(one, "hidden", False) else one.get_help_record(context)
        if record is None:
            continue
        heading = getattr(one, "rich_help_panel", None)
        title = heading or ("Arguments" if one.param_type_name == "argument" else "Options")
        term, meaning = record
        text = prose(re.sub(r"\s+", " ", meaning).strip())
        if one.param_type_name == "argument":
            groups.setdefault(title, []).append(f"`{term}`\n: {text}\n\n")
        else:
            groups.setdefault(title, []).append(f"```{{option}} {term}\n{text}\n```\n\n")
    if groups:
        yield f"```{{program}} {name}\n```\n\n"
    for title, entries in groups.items():
        yield f"{'#' * level} {title}\n\n" if level < 3 else f"**{title}**\n\n"
        yield from entries


def _context(command: Any, name: str) -> Any:
    return command.context_class(command, info_name=name)


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def _first_line(command: Any) -> str:
    return str(command.get_short_help_str(limit=200))


def _parts(text: str | None) -> tuple[list[str], list[str]]:
    """The paragraphs of a help text, and its examples."""
    paragraphs = [re.sub(r"\s+", " ", one).strip() for one in re.split(r"\n\s*\n", text or "") if one.strip()]
    examples = [one.removeprefix(_EXAMPLE) for one in paragraphs if one.startswith(_EXAMPLE)]
    return [one for one in paragraphs if not one.startswith(_EXAMPLE)], examples


def _code(lines: list[str]) -> str:
    return "```text\n" + "\n".join(lines) + "\n```\n\n" if lines else ""

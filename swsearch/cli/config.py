"""``swsearch config``: the options of a command with their values, and where each value comes from."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from swsearch.cli import options
from swsearch.cli.configuration import OTHER_VARIABLES, PREFIX, SHARED, ConfigurationFile
from swsearch.errors import UsageError
from swsearch.words import quoted


def config(
    command: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", help="Name of a command. [query]")] = None,
    format_name: options.TableFormat = "table",
) -> None:
    """Show the options of a command with their values, and where each value comes from.

    An option of the command line comes first, then the environment (SWSEARCH_THREADS), the configuration file
    (~/.config/swsearch/config.toml, or that of SWSEARCH_CONFIG), and the built-in default.

    Example: swsearch config

    Example: swsearch config report --format json
    """
    from swsearch.cli.command import all_commands
    from swsearch.cli.documents import write_document
    from swsearch.cli.output import say
    from swsearch.cli.parsing import configured, option_names

    name = " ".join(command or ["query"])
    known = all_commands()
    if name not in known:
        raise UsageError(f"there is no command {quoted(name)}; `swsearch --help` lists all")
    context = typer.Context(known[name], info_name=name)
    file = ConfigurationFile.read()
    found = configured(known[name], context, name)
    rows: list[dict[str, Any]] = []
    for one in option_names(known[name], context).values():
        value, given = found.get(one.name, (one.get_default(context), None))
        source = ("built-in", None) if given is None else (given.source, given.place)
        shown = value if value is None or isinstance(value, bool | int | float) else str(value)
        rows.append({"option": max(one.opts, key=len), "value": shown, "source": source[0], "place": source[1]})
    wrong = unknown_variables()
    if format_name == "json":
        path = None if file.path is None else str(file.path)
        write_document({
            "command": name, "file": path, "file_exists": file.exists, "options": rows, "unknown_variables": wrong,
        })  # fmt: skip
        return
    print(f"{'file':<26}{file.path or 'none'}{'' if file.exists or file.path is None else ' (does not exist)'}")
    for row in rows:
        shown = "" if row["value"] is None else str(row["value"])
        print(f"{row['option']:<26}{shown:<22} {row['place'] or row['source']}")
    for variable in wrong:
        say(f"warning: {variable} is no variable of this program")


def unknown_variables() -> list[str]:
    """Environment variables that begin like those of this program and are none of them."""
    known = {*OTHER_VARIABLES, *(f"{PREFIX}{name.upper()}" for name in SHARED)}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)

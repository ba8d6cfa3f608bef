"""Words in place of a command that other programs use: the line of swsearch that does the same, as an error message.

``swsearch makeblastdb -in proteins.fasta -dbtype prot -out db`` is answered with ``swsearch index proteins.fasta --out
db --alphabet protein``. It is not executed, because the results of two programs differ.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import typer

from swsearch.cli.command_line import words_of
from swsearch.cli.configuration import in_plain_words
from swsearch.cli.parsing import PROGRAMS, replace_names
from swsearch.cli.spellings import BLAST, DIAMOND, FIRST, LAST, MMSEQS, SPELLINGS, SSEARCH
from swsearch.errors import UsageError

_PROGRAMS_OF_SUITES: Final = ("diamond", "mmseqs", "blast")
"""Words that may stand before the others: ``swsearch diamond blastp``."""


@dataclass(frozen=True)
class ProgramWord:
    """A word that another program uses.

    Attributes
    ----------
    programs : tuple of str
        The programs whose options may follow; empty if those of swsearch follow.
    command : str
        The command of swsearch.
    options : dict of str to str
        Options that it needs to do the same.
    places : tuple of str
        What the positional arguments are: ``query``, ``queries`` (all but those that follow), ``db``, ``out``, and
        ``unused``. By default, as in swsearch.
    """

    programs: tuple[str, ...]
    command: str = "query"
    options: Mapping[str, str] = field(default_factory=dict)
    places: tuple[str, ...] = ()


_MMSEQS_PLACES: Final = ("query", "db", "out", "unused")

PROGRAM_WORDS: Final[dict[str, ProgramWord]] = {
    "search": ProgramWord((MMSEQS,), places=_MMSEQS_PLACES),
    "easy-search": ProgramWord((MMSEQS,), places=_MMSEQS_PLACES),
    "createdb": ProgramWord((MMSEQS,), "index", places=("queries", "out")),
    "blastp": ProgramWord((BLAST, DIAMOND)),
    "blastn": ProgramWord((BLAST,)),
    "megablast": ProgramWord((BLAST,)),
    "psiblast": ProgramWord((BLAST,)),
    "blastx": ProgramWord((BLAST, DIAMOND), options={"translate": "query"}),
    "tblastn": ProgramWord((BLAST,), options={"translate": "subject"}),
    "tblastx": ProgramWord((BLAST,), options={"translate": "both"}),
    "makeblastdb": ProgramWord((BLAST,), "index"),
    "makedb": ProgramWord((DIAMOND,), "index"),
    "ssearch36": ProgramWord((SSEARCH,)),
    "ssearch": ProgramWord((SSEARCH,)),
    "fasta36": ProgramWord((SSEARCH,)),
}
"""Words whose arguments are put into the words of swsearch."""

_MISSING: Final = {"query": ["QUERY…", "DB"], "index": ["FASTA…"]}
_NAMES: Final = {here: {row.name for row in SPELLINGS if row.here == here} for here in (FIRST, LAST)}
_INDEX: Final = "swsearch index FASTA… --out DB"
_QUERY: Final = "swsearch query QUERY… DB"
LINES: Final[dict[str, str]] = {
    "blastall": _QUERY,
    "formatdb": _INDEX,
    "blastdbcmd": "swsearch db fetch DB IDENTIFIER…; swsearch db export DB; swsearch db info DB",
    "blastdbcheck": "swsearch db verify DB",
    "dbinfo": "swsearch db info DB",
    "getseq": "swsearch db export DB",
    "convertalis": "swsearch report latest --format blast6",
    "view": "swsearch report latest --format blast6",
    "info": "swsearch db info DB",
    "fetch": "swsearch db fetch DB IDENTIFIER…",
    "list": "swsearch runs list",
    "show": "swsearch runs show latest",
    "help": "swsearch --help",
    "-help": "swsearch --help",
    "version": "swsearch --version",
    "-version": "swsearch --version",
    "-V": "swsearch --version",
    "-v": "swsearch --version",
}
"""Words that are answered without their arguments."""


def answer(arguments: Sequence[str], commands: Mapping[str, Any]) -> str | None:
    """The message for arguments that begin with no command of swsearch; None if nothing is known about them.

    Parameters
    ----------
    arguments : sequence of str
        The command line, without ``swsearch``.
    commands : mapping of str to command of Typer
        The commands of swsearch.

    Returns
    -------
    str or None
        The line that does what is meant.
    """
    word = arguments[0]
    of = ""
    if word in _PROGRAMS_OF_SUITES:
        if len(arguments) == 1 or arguments[1] not in {*PROGRAM_WORDS, *LINES}:
            return (
                f"{word} is another program; here it is: swsearch index FASTA… --out DB, then swsearch query QUERY… DB"
            )
        of = f"{word} "
        arguments = arguments[1:]
        word = arguments[0]
    if word in LINES:
        return f"{of}{word} is no command of swsearch; here it is: {LINES[word]}"
    if word not in PROGRAM_WORDS:
        return None
    meant = PROGRAM_WORDS[word]
    if of == "diamond ":
        meant = ProgramWord((DIAMOND,), meant.command, meant.options, meant.places)
    source = f"a command of {' and '.join(meant.programs)}" if meant.programs else "no command of swsearch"
    return f"{of}{word} is {source}; here it is: {_line(arguments[1:], meant, commands[meant.command])}"


def without_command(arguments: Sequence[str], commands: Mapping[str, Any]) -> str:
    """The message for a search without a command, as ``swsearch -query Q -db D`` and ``swsearch Q D``."""
    return f"the command is missing; here it is: {_line(arguments, ProgramWord(()), commands['query'])}"


def _line(arguments: Sequence[str], meant: ProgramWord, command: Any) -> str:
    """The line of swsearch; if an option has no counterpart, only its beginning, and the reason."""
    from swsearch.cli.app import commands

    root = commands()
    parent = typer.Context(root, info_name="swsearch", **root.context_settings)
    context = typer.Context(command, info_name=meant.command, parent=parent)
    context.meta[PROGRAMS] = meant.programs or None
    missing = _MISSING[meant.command]
    try:
        opts, _, _ = command.make_parser(context).parse_args(list(arguments))
        has_only_last = not opts.keys() & _NAMES[FIRST] and bool(opts.keys() & _NAMES[LAST])
        replace_names(command, context, opts)
    except Exception as error:
        if not hasattr(error, "format_message") and not isinstance(error, UsageError):
            raise
        problem = in_plain_words(str(getattr(error, "message", error))).rstrip(".")
        return f"{' '.join(['swsearch', meant.command, *missing])} ({problem[:1].lower()}{problem[1:]})"
    if opts.get("help"):
        return f"swsearch {meant.command} --help"
    name = next(one.name for one in command.params if one.param_type_name == "argument")
    words = _placed(list(opts.pop(name, None) or ()), opts, meant.places)
    if "db" in opts:
        missing = missing[:1]
    if len(words) < len(missing):  # the names of the arguments stand for those that are not given
        words = [*missing[:1], *words] if words and has_only_last else [*words, *missing[len(words) :]]
    if meant.command == "index":
        opts.setdefault("out", "DB")
    line = words_of(meant.command, command.params, {name: words, **meant.options, **opts})
    return " ".join(word if word in ("QUERY…", "FASTA…", "DB") else shlex.quote(word) for word in line)


def _placed(words: list[str], opts: dict[str, Any], places: Sequence[str]) -> list[str]:
    """The positional arguments of another program where swsearch has them; an output becomes an option."""
    if not places:
        return words
    n_first = max(len(words) - len(places) + 1, min(len(words), 1)) if places[0] == "queries" else 1
    placed, rest = words[:n_first], words[n_first:]
    for word, place in zip(rest, [*places[1:], *["unused"] * len(rest)], strict=False):
        if place == "db":
            placed.append(word)
        elif place == "out":
            opts["out"] = word
            if len(places) > 2:
                opts.setdefault("format", "blast6")
    return placed


def refuse_other_words(arguments: Sequence[str], commands: Mapping[str, Any]) -> None:
    """Refuse a command line that begins with another program's word, an option of a search, or a file.

    Raises
    ------
    UsageError
        The message is the line of swsearch that does what is meant.
    """
    if not arguments:
        return
    if (message := answer(arguments, commands)) is not None:
        raise UsageError(message)
    if arguments[0].startswith("-") or os.path.exists(arguments[0]):
        raise UsageError(without_command(arguments, commands))

"""Words in place of a command that other programs use: the line of swsearch that does the same, as an error message.

``swsearch makeblastdb -in proteins.fasta -dbtype prot -out db`` is answered with ``swsearch index proteins.fasta --out
db --alphabet protein``. It is not executed, because the results of two programs differ.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swsearch.cli.spellings import BLAST, DIAMOND, LEAVE_OUT, MMSEQS, SSEARCH
from swsearch.cli.wording import CommandOptions, Refusal, Worded, reworded
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
    options : tuple of str
        Options that it needs to do the same.
    places : tuple of str
        What the positional arguments are: ``query``, ``queries`` (all but those that follow), ``db``, ``out``, and
        ``unused``. By default, as in swsearch.
    """

    programs: tuple[str, ...]
    command: str = "query"
    options: tuple[str, ...] = ()
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
    "blastx": ProgramWord((BLAST, DIAMOND), options=("--translate", "query")),
    "tblastn": ProgramWord((BLAST,), options=("--translate", "subject")),
    "tblastx": ProgramWord((BLAST,), options=("--translate", "both")),
    "makeblastdb": ProgramWord((BLAST,), "index"),
    "makedb": ProgramWord((DIAMOND,), "index"),
    "ssearch36": ProgramWord((SSEARCH,)),
    "ssearch": ProgramWord((SSEARCH,)),
    "fasta36": ProgramWord((SSEARCH,)),
}
"""Words whose arguments are put into the words of swsearch."""

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
    """The line of swsearch, and why it leaves something out."""
    if any(word in ("-h", "-help", "--help") for word in arguments):
        return f"swsearch {meant.command} --help"
    options = CommandOptions.of(meant.command, command.params)
    found = reworded(arguments, options, meant.programs)
    _place(found, meant.places)
    words = [*found.first, *found.positional, *found.last]
    missing = {"query": ["QUERY…", "DB"], "index": ["FASTA…"]}[meant.command]
    if "--db" in found.options:
        missing = missing[:1]
    if len(words) < len(missing):  # the names of the arguments stand for those that are not given
        kept = [] if found.first or not found.last else missing[:1]
        words = [*kept, *words, *missing[len(kept) + len(words) :]]
    argument_names = {"QUERY…", "FASTA…", "DB"}
    line = ["swsearch", meant.command, *words, *meant.options, *found.options]
    if meant.command == "index" and not {"-o", "--out"} & set(found.options):
        line += ["--out", "DB"]
    shown = " ".join(word if word in argument_names else shlex.quote(word) for word in line)
    return shown + "".join(f"; without {one.word} ({_why(one)})" for one in found.refused)


def _why(refusal: Refusal) -> str:
    return refusal.reason if refusal.instead == LEAVE_OUT else f"{refusal.reason}; {refusal.instead}"


def _place(found: Worded, places: Sequence[str]) -> None:
    """Move positional arguments of another program to where swsearch has them."""
    if not places:
        return
    given, found.positional = found.positional, []
    if places[0] == "queries":
        n_queries = max(len(given) - len(places) + 1, min(len(given), 1))
        found.first += given[:n_queries]
        given, places = given[n_queries:], places[1:]
    for word, place in zip(given, [*places, *["unused"] * len(given)], strict=False):
        if place == "query":
            found.first.append(word)
        elif place == "db":
            found.last.append(word)
        elif place == "out":
            found.options += ["--out", word]
            if "--format" not in found.options and len(places) > 1:
                found.options += ["--format", "blast6"]


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

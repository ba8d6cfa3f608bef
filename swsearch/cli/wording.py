"""Arguments in other programs' words, replaced by those of a command of swsearch, before Typer parses them.

An option of the command keeps its meaning. Otherwise, ``-max_hsps`` and ``--max_hsps`` mean ``--max-hsps``, and an
option of :data:`swsearch.cli.spellings.SPELLINGS` is replaced, or refused with the reason if it has no counterpart.
``-o`` and other short options take a value that is attached only if it does not begin with a letter: ``-k10``. So
``-outfmt`` never means ``-o utfmt``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from swsearch.errors import UsageError
from swsearch.words import shortened

if TYPE_CHECKING:
    from swsearch.cli.spellings import Converted, Spelling

_TYPER_TYPE: Final = re.compile(r"is not a valid (int|float)(?: range)?\b")
_FIELD: Final = re.compile("[a-z_]+")
_LAST_OPTION: Final = {"query": None, "batch": None, "msa": None, "index": "--out"}
"""For each command that takes ``-query`` and ``-db``, the option for ``-db``; None if it is the last argument."""


@dataclass(frozen=True)
class CommandOptions:
    """What the translation must know of a command.

    Attributes
    ----------
    command : str
        Its name, as ``query`` or ``db info``.
    takes_value : mapping of str to bool
        For each option as it is written, ``--top`` and ``-k``, whether it takes a value.
    """

    command: str
    takes_value: Mapping[str, bool]

    @classmethod
    def of(cls, command: str, parameters: Iterable[Any]) -> CommandOptions:
        """The options among the parameters of a command of Typer."""
        takes_value = {
            name: not one.is_flag
            for one in parameters
            if one.param_type_name == "option"
            for name in (*one.opts, *one.secondary_opts)
        }
        return cls(command, takes_value)


@dataclass(frozen=True)
class Refusal:
    """An option that has no counterpart: what was written, the reason, and what to do."""

    word: str
    reason: str
    instead: str

    def __str__(self) -> str:
        return f"{self.word}: {self.reason}; {self.instead}"


@dataclass
class Worded:
    """Arguments of a command in the words of swsearch.

    Attributes
    ----------
    first, last : list of str
        Positional arguments that stand before and behind the others.
    positional : list of str
        Positional arguments as given.
    options : list of str
        Options and their values, in the order of the command line.
    in_order : list of str
        ``positional`` and ``options`` in the order of the command line.
    refused : list of Refusal
        Options that have no counterpart.
    """

    first: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    positional: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    in_order: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    source_of: dict[str, str] = field(default_factory=dict)
    """For each option of swsearch that stands for another word, this word."""

    def add(self, name: str, *value: str) -> None:
        """Add an option."""
        self.options += [name, *value]
        self.in_order += [name, *value]


def in_plain_words(message: str) -> str:
    """A message of Typer about a value, without the names of its types.

    >>> in_plain_words("'1e3' is not a valid int range")
    "'1e3' is no whole number"
    """
    return _TYPER_TYPE.sub(lambda match: "is no whole number" if match[1] == "int" else "is no number", message)


def in_own_words(arguments: Sequence[str], options: CommandOptions) -> list[str]:
    """The arguments of a command in the words of swsearch.

    Raises
    ------
    UsageError
        An option has no counterpart, or a value of it.
    """
    found = reworded(arguments, options)
    if found.refused:
        raise UsageError(str(found.refused[0]))
    return [*found.first, *found.in_order, *found.last]


def reworded(arguments: Sequence[str], options: CommandOptions, program: Sequence[str] = ()) -> Worded:
    """The arguments in the words of swsearch, apart from those that have no counterpart.

    Parameters
    ----------
    arguments : sequence of str
    options : CommandOptions
        The command to which they are given.
    program : sequence of str
        The programs whose words they are; these then take precedence over those of swsearch.
    """
    found = Worded()
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word == "--":
            found.positional += left
            found.in_order += [word, *left]
            break
        if not word.startswith("-") or word == "-":
            found.positional.append(word)
            found.in_order.append(word)
            continue
        name, has_value, value = word.partition("=")
        rows = _rows(name, options, program)
        if rows and (program or name not in options.takes_value):
            _replace(name, value if has_value else None, rows, left, options, found, is_own=not program)
        elif (own := _own_name(name, options)) is not None:
            takes = options.takes_value[own]
            given = [value] if has_value else [left.pop(0)] if takes and left else []
            if has_value and not takes:
                found.add(word)  # Typer refuses it
            else:
                found.add(own, *given)
        elif _is_of_searches(name, options):
            reason = f"it belongs to a search, and `swsearch {options.command}` computes nothing"
            found.refused.append(Refusal(shortened(name), reason, "search again with it"))
        elif word.startswith("--") or _is_cluster(word, options):
            found.add(word)  # Typer refuses what it does not know, and names similar options
        else:
            found.refused.append(_unknown(word, options))
    return found


def _rows(name: str, options: CommandOptions, program: Sequence[str]) -> list[Spelling]:
    """The spellings with this name that the command can follow."""
    if name in options.takes_value and not program:
        return []
    from swsearch.cli.spellings import FIRST, LAST, SPELLINGS

    def is_usable(row: Spelling) -> bool:
        if row.here in (FIRST, LAST):
            return options.command in _LAST_OPTION
        return row.convert is not None or bool(row.reason) or row.here in options.takes_value

    return [row for row in SPELLINGS if row.name == name and (not program or row.program in program) and is_usable(row)]


def _replace(
    name: str,
    value: str | None,
    rows: list[Spelling],
    left: list[str],
    options: CommandOptions,
    found: Worded,
    *,
    is_own: bool,
) -> None:
    """Add what an option of another program means; its value and its fields are taken from ``left``.

    In a command of swsearch (``is_own``), short names are its own; those of other programs are refused.
    """
    from swsearch.cli.spellings import FIRST, LAST, LEAVE_OUT, NoCounterpart, databases_of

    row = rows[0]
    if row.takes and value is None and left:
        value = left.pop(0)
    if row.takes_fields and value is not None:
        while left and _FIELD.fullmatch(left[0]) and not os.path.exists(left[0]):
            value += f" {left.pop(0)}"
    if len(rows) > 1 and len({(one.here, one.reason) for one in rows}) > 1:
        meanings = ", and ".join(f"in {one.program} {one.meaning}" for one in rows)
        found.refused.append(Refusal(name, f"it means {meanings}", "write what is meant in the words of --help"))
        return
    shown = name if value is None else f"{name} {shortened(value)}"
    if row.reason:
        found.refused.append(Refusal(f"{shown} of {row.program}", row.reason, row.instead))
        return
    if row.takes and value is None:
        found.refused.append(Refusal(name, "its value is missing", f"it means {row.meaning}"))
        return
    try:
        own: Converted = row.own(value)
    except NoCounterpart as error:
        found.refused.append(Refusal(f"{shown} of {row.program}", "there is no such value here", str(error)))
        return
    if is_own and len(name) == 2:
        said = " and ".join(option if one is None else f"{option} {one}" for option, one in own)
        found.refused.append(Refusal(f"{shown} of {row.program}", "swsearch has other short names", f"say {said}"))
        return
    for option, one in own:
        if option == FIRST and one is not None:
            found.first.append(one)
        elif option == LAST and one is not None and _LAST_OPTION[options.command] is None:
            named = databases_of(one) if row.names_databases else [one]
            # As the last argument, a sequence file would be a query file where the configuration file has databases.
            if (len(named) > 1 or os.path.isfile(one)) and "--db" in options.takes_value:
                for database in named:
                    found.add("--db", database)
            else:
                found.last += named
                if len(named) > 1 and "--together" in options.takes_value:
                    found.add("--together")
        else:
            target = _LAST_OPTION[options.command] if option == LAST else option
            assert target is not None
            if target not in options.takes_value:
                reason = f"it means {target}, which `swsearch {options.command}` does not have"
                found.refused.append(Refusal(shown, reason, LEAVE_OUT))
            elif found.source_of.setdefault(target, name) != name:
                reason = f"it means {target}, and so does {found.source_of[target]}"
                found.refused.append(Refusal(shown, reason, f"say {target} once"))
            else:
                found.add(target, *([] if one is None else [one]))


def _own_name(name: str, options: CommandOptions) -> str | None:
    """The option of the command that ``name`` spells, perhaps with one dash or with underscores."""
    if name in options.takes_value:
        return name
    spelled = f"--{name.lstrip('-').replace('_', '-')}"
    return spelled if len(spelled) > 3 and spelled in options.takes_value else None


def _is_of_searches(name: str, options: CommandOptions) -> bool:
    """Whether a command that shows stored hits is given an option that decides which hits a search finds."""
    from swsearch.options import SEARCH_OPTIONS

    return options.command == "report" and name.lstrip("-").replace("-", "_") in SEARCH_OPTIONS


def _is_cluster(word: str, options: CommandOptions) -> bool:
    """Whether a word with one dash is a short option with its value, ``-k10``, or several without, ``-qh``."""
    if options.takes_value.get(word[:2], False):
        return not word[2:3].isalpha()
    return all(options.takes_value.get(f"-{letter}", True) is False for letter in word[1:])


def _unknown(word: str, options: CommandOptions) -> Refusal:
    attached = options.takes_value.get(word[:2], False)
    spaced = f"write `{word[:2]} {shortened(word[2:])}` if that is meant; " if attached else ""
    return Refusal(shortened(word), "there is no such option", f"{spaced}`swsearch {options.command} --help` lists all")

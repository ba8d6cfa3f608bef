"""Reader of values in the text form of ASN.1, as NCBI's programs write it.

A file has one or several values, each with the name of its type at the beginning of a line::

    PssmWithParameters ::= { pssm { numRows 28, query seq { id { local str "Q1" } } } }

The names before a value are its *path*: that of ``"Q1"`` is ``pssm/query/seq/id/local/str``. The elements of a list
have the path of the list. :func:`read_values` keeps the values of the paths that its caller names.

A string in double quotes may continue on the next line; a double quote in it is written twice. ``'0A'H`` are bytes.
Comments and binary digits (``'01'B``) are not read, because NCBI's programs write none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from swsearch.errors import InputError
from swsearch.sequences.lines import text_lines
from swsearch.sequences.source import shown_name
from swsearch.words import quoted

Value = int | str
"""A number; or the text of a string, the hexadecimal digits of ``'…'H``, or the word of a truth value or an
enumeration."""

MAX_DEPTH: Final = 100
"""Largest number of blocks inside each other."""
MAX_CHARACTERS: Final = 1 << 27
"""Length of the longest value, in characters; 50,000 positions of PSI-BLAST fit. A value is in memory as a whole."""
_TOKEN: Final = re.compile(
    r"""\s+|((?:-?[0-9]{1,18},\s*){2,})|((?:{\s*-?[0-9]{1,18},\s*-?[0-9]{1,18},\s*-?[0-9]{1,18}\s*},\s*)+)|([{},])|"""
    r"""(-?[0-9]{1,18})(?![0-9A-Za-z_.])|([A-Za-z][A-Za-z0-9-]*)|"([^"]*(?:""[^"]*)*)"|'([^']*)'H|(::=)|(.)""",
    re.ASCII,
)
_NUMBERS, _REALS, _MARK, _NUMBER, _WORD, _STRING, _BYTES, _ASSIGNED, _OTHER = range(1, 10)
"""Two or more numbers with their commas, and real numbers (blocks of three numbers) with theirs, are one token each:
almost all of a file consists of them."""
_WITHOUT_MARKS: Final = str.maketrans("{},", "   ")


def read_values(
    path: str | os.PathLike[str], type_name: str, paths: Collection[str]
) -> Iterator[tuple[int, dict[str, list[Value]]]]:
    """The values of a file: the line at which each begins, and the values of its paths in order.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    type_name : str
        Type of all values.
    paths : collection of str
        The paths to keep. Others are missing in the result, as are paths without a value.

    Raises
    ------
    InputError
        The file is not in this form, is cut short, or has a value of another type; the message names the line.
    """
    name = shown_name(path)
    text: list[str] = []
    first_line, size = 1, 0
    for number, line in enumerate(text_lines(path, name), 1):
        if line.startswith(type_name) and size:
            yield from _values("".join(text), first_line, name, type_name, paths)
            text, first_line, size = [], number, 0
        text.append(line)
        size += len(line)
        if size > MAX_CHARACTERS:
            raise InputError(
                f"{name}, line {first_line}: a value of more than {MAX_CHARACTERS:,} characters; divide it"
            )
    yield from _values("".join(text), first_line, name, type_name, paths)


def _values(
    text: str, first_line: int, name: str, type_name: str, paths: Collection[str]
) -> Iterator[tuple[int, dict[str, list[Value]]]]:
    """The values of a text that begins at a line of the file ``name``."""
    blocks: list[str] = []  # the paths of the open blocks
    words: list[str] = []  # of the present element, before its value
    complete = False  # whether the present element has its value
    begun = 0
    found: dict[str, list[Value]] = {}

    def line_at(position: int) -> int:
        return first_line + text.count("\n", 0, position)

    def fault(position: int, problem: str) -> InputError:
        return InputError(f"{name}, line {line_at(position)}: {problem}; the file is damaged, write it again")

    def keep(values: Sequence[Value], names: list[str]) -> None:
        place = _joined(blocks[-1], names)
        if values and place in paths:
            found.setdefault(place, []).extend(values)

    for match in _TOKEN.finditer(text):
        kind = match.lastindex
        if kind is None:
            continue
        token, position = match[kind], match.start()
        if kind == _OTHER:
            raise fault(position, f"{quoted(token)} is neither a number, a name nor a string")
        if not blocks:
            due = (type_name, "::=", "{")[len(words)]
            if token != due:
                raise fault(position, f"expected '{type_name} ::= {{'")
            if due == "{":
                blocks, words, complete, found = [""], [], False, {}
                begun = position
            else:
                words.append(token)
        elif token in ("}", ",") and kind == _MARK:
            if words and not complete:
                keep(words[-1:], words[:-1])
            words, complete = [], token == "}"
            if complete:
                blocks.pop()
                if not blocks:
                    yield line_at(begun), found
        elif complete:
            raise fault(position, "expected ',' or '}' behind a value")
        elif kind in (_MARK, _REALS) and len(blocks) == MAX_DEPTH:
            raise fault(position, f"more than {MAX_DEPTH} blocks inside each other")
        elif kind == _MARK:
            blocks.append(_joined(blocks[-1], words))
            words = []
        elif kind in (_NUMBERS, _REALS):
            numbers = list(map(int, token.translate(_WITHOUT_MARKS).split()))
            n_named = 1 if kind == _NUMBERS else 3  # a name belongs to the first number, or block, alone
            keep(numbers[:n_named], words)
            keep(numbers[n_named:], [])
            words = []
        elif kind == _WORD:
            words.append(token)
        elif kind == _ASSIGNED:
            raise fault(position, "'::=' inside a value")
        else:
            keep([int(token) if kind == _NUMBER else _unquoted(token)], words)
            words, complete = [], True
    if blocks or words:
        raise InputError(f"{name}: the last value has no end; the file may be cut short")


def _unquoted(text: str) -> str:
    """The content of a quoted token, which may have been continued on further lines."""
    return text.replace("\r", "").replace("\n", "").replace('""', '"')


def _joined(place: str, names: list[str]) -> str:
    """The path of an element of a block."""
    if not names:
        return place
    return "/".join([place, *names] if place else names)

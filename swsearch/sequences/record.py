"""The record of one sequence, consecutive records as arrays, and records that are not sequences of the alphabet.

A :class:`SequenceRecord` has a header and residues as codes; :func:`sequence` makes one of letters. A
:class:`SequenceChunk` is what the readers of sequence files hand to the database builder. A batch reports its
:class:`InvalidRecord` queries, and an index that skips invalid records lists them; the native reader returns them as
arrays, because there may be as many as records (:func:`invalid_records`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from swsearch.arguments import choice, text
from swsearch.arrays import Texts
from swsearch.errors import InputError
from swsearch.sequences.alphabet import ALPHABETS, Alphabet
from swsearch.typing import Codes, Lengths
from swsearch.words import as_arguments, shortened

if TYPE_CHECKING:
    from swsearch import _native


@dataclass(frozen=True, eq=False)
class SequenceRecord:
    """A named sequence.

    Attributes
    ----------
    header : str
        The header without ``>`` and without trailing white space. Bytes that are not UTF-8 are surrogate escapes, so
        that ``header.encode("utf-8", "surrogateescape")`` restores the bytes that were read.
    codes : uint8 array, shape (length,)
        Residue codes with soft-mask flags (:mod:`swsearch.sequences.alphabet`).
    alphabet : Alphabet
    """

    header: str
    codes: Codes
    alphabet: Alphabet

    @property
    def identifier(self) -> str:
        """First word of the header; empty if the header is empty."""
        return split_header(self.header)[0]

    @property
    def description(self) -> str:
        """The header after its first word; may be empty."""
        return split_header(self.header)[1]

    @property
    def letters(self) -> str:
        """The sequence in letters, as it was written."""
        return self.alphabet.decode(self.codes)

    def __len__(self) -> int:
        return len(self.codes)


def sequence(letters: str, alphabet: str, header: str = "") -> SequenceRecord:
    """A sequence from its letters.

    Parameters
    ----------
    letters : str
    alphabet : str
        ``protein`` or ``dna``.
    header : str
        Identifier and description, separated by a blank.

    Raises
    ------
    InputError
        A letter is not in the alphabet, or the alphabet is unknown.
    WrongType
        ``letters`` or ``header`` is not a string.
    """
    choice("alphabet", alphabet, tuple(ALPHABETS))
    for name, given in (("letters", letters), ("header", header)):
        text(name, given)
    return named_sequence("letters", letters, ALPHABETS[alphabet], header)


def named_sequence(name: str, letters: str, alphabet: Alphabet, header: str = "") -> SequenceRecord:
    """A sequence from the letters that are the argument ``name``, for the message about a wrong one."""
    try:
        return SequenceRecord(header, alphabet.encode(letters), alphabet)
    except InputError as error:
        raise InputError(f"{name}, {error.marked}") from error


def split_header(header: str) -> tuple[str, str]:
    """First word and rest of a header.

    >>> split_header("sp|P02232|LGB1_VICFA Leghemoglobin-1 OS=Vicia faba")
    ('sp|P02232|LGB1_VICFA', 'Leghemoglobin-1 OS=Vicia faba')
    """
    parts = header.split(None, 1)
    return (parts[0] if parts else "", parts[1] if len(parts) > 1 else "")


def identifier(header: str) -> str:
    """First word of a header; ``unnamed`` if it is empty, so that no column of a report or a store is empty.

    >>> identifier("sp|P02232|LGB1_VICFA Leghemoglobin-1"), identifier("")
    ('sp|P02232|LGB1_VICFA', 'unnamed')
    """
    return split_header(header)[0] or "unnamed"


@dataclass(frozen=True, eq=False)
class SequenceChunk:
    """Consecutive records of an input.

    Attributes
    ----------
    alphabet : Alphabet
    codes : uint8 array, shape (n_residues,)
        Residue codes of all records, concatenated.
    lengths : uint32 array, shape (n_records,)
        Number of residues of each record, at least 1.
    headers : Texts
        Headers of all records as they were read, without ``>`` or ``@`` and without trailing white space.
    source : str
        The name of their file in messages; empty if they were in a database.
    """

    alphabet: Alphabet
    codes: Codes
    lengths: Lengths
    headers: Texts
    source: str = ""

    def __len__(self) -> int:
        return len(self.lengths)

    def records(self) -> Iterator[SequenceRecord]:
        """The records one by one; their codes are views."""
        stop = 0
        for header, length in zip(self.headers, self.lengths.tolist(), strict=True):
            start, stop = stop, stop + length
            yield SequenceRecord(header.decode("utf-8", "surrogateescape"), self.codes[start:stop], self.alphabet)

    def having(self, pattern: re.Pattern[bytes]) -> SequenceChunk:
        """The records in whose headers the pattern is found."""
        found = np.fromiter((pattern.search(header) is not None for header in self.headers), np.bool_, len(self))
        codes, headers = self.codes[np.repeat(found, self.lengths)], self.headers.take(np.flatnonzero(found))
        return SequenceChunk(self.alphabet, codes, self.lengths[found], headers, self.source)


NO_RESIDUES: Final = "has no residues"
_LETTER: Final = 2
_HEADER_BYTE: Final = 3
_TOO_LONG: Final = 4


@dataclass(frozen=True)
class InvalidRecord:
    """A record that is not a sequence of the alphabet, in a file whose further records can be read.

    ``record`` is its number in the file, from 1. ``marked`` is the problem and what to do, without the location, with
    options as in messages of errors (:func:`swsearch.words.option`).
    """

    path: str
    record: int
    identifier: str
    marked: str

    @property
    def reason(self) -> str:
        """The problem and what to do, in the words of Python."""
        return as_arguments(self.marked)

    @property
    def line(self) -> str:
        """The location and the problem, with marked options, for the message of an error."""
        return f"{self.path}, record {self.record} ({shortened(self.identifier)}): {self.marked}"

    def __str__(self) -> str:
        return as_arguments(self.line)


def invalid_records(
    arrays: _native.InvalidArrays, path: str, n_before: int, alphabet: Alphabet
) -> Iterator[InvalidRecord]:
    """The invalid records of a block, as the native reader returns them (``simd/index/records.hpp``).

    The arrays are number in the block, problem, position and byte of each record, concatenated headers, and their ends.
    ``n_before`` records of the file are before the block.
    """
    numbers, problems, residues, letters, header_bytes, header_ends = arrays
    for place, header in enumerate(Texts(header_bytes, header_ends)):
        problem, byte = int(problems[place]), int(letters[place])
        if problem == _LETTER:
            reason = f"residue {int(residues[place]) + 1}: {wrong_letter(byte, alphabet)}"
        elif problem == _HEADER_BYTE:
            reason = f"byte 0x{byte:02X} has no place in a header; remove it"
        elif problem == _TOO_LONG:
            reason = "has 2^32 residues or more; cut it"
        else:
            reason = NO_RESIDUES
        name, _ = split_header(header.decode("utf-8", "surrogateescape"))
        yield InvalidRecord(path, n_before + int(numbers[place]) + 1, name, reason)


def wrong_letter(byte: int, alphabet: Alphabet) -> str:
    """The message for a byte among residues that is not a letter of the alphabet."""
    return "white space among residues; remove it" if bytes([byte]).isspace() else alphabet.reject(byte)

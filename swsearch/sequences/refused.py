"""Records of a sequence file that are not sequences of the alphabet, and why.

A batch reports such queries, and an index that skips them lists them. The native reader returns them as arrays, because
there may be as many as records (:func:`of_arrays`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from swsearch import _native
from swsearch.sequences.alphabet import Alphabet
from swsearch.sequences.record import split_header
from swsearch.words import as_arguments, shortened

NO_RESIDUES: Final = "has no residues"
_LETTER: Final = 2
_HEADER_BYTE: Final = 3
_TOO_LONG: Final = 4


@dataclass(frozen=True)
class RefusedRecord:
    """A record that is not a sequence of the alphabet, in a file whose further records can be read.

    Attributes
    ----------
    path : str
    record : int
        Number of the record in the file, from 1.
    identifier : str
    marked : str
        The problem and what to do, without the location, with options as in messages of errors
        (:func:`swsearch.words.option`).
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


def of_arrays(arrays: _native.RefusedArrays, path: str, n_before: int, alphabet: Alphabet) -> Iterator[RefusedRecord]:
    """The refused records of a block, as the native reader returns them (``simd/index/records.hpp``).

    Parameters
    ----------
    arrays : tuple of arrays
        Number in the block, problem, position and byte of each record; concatenated headers and their ends.
    path : str
    n_before : int
        Number of records of the file before the block.
    alphabet : Alphabet
    """
    numbers, problems, residues, letters, header_bytes, header_ends = arrays
    raw = header_bytes.tobytes()
    for place, (start, end) in enumerate(pairwise([0, *header_ends.tolist()])):
        problem, byte = int(problems[place]), int(letters[place])
        if problem == _LETTER:
            reason = f"residue {int(residues[place]) + 1}: {wrong_letter(byte, alphabet)}"
        elif problem == _HEADER_BYTE:
            reason = f"byte 0x{byte:02X} has no place in a header; remove it"
        elif problem == _TOO_LONG:
            reason = "has 2^32 residues or more; cut it"
        else:
            reason = NO_RESIDUES
        header = raw[start:end].decode("utf-8", "surrogateescape")
        yield RefusedRecord(path, n_before + int(numbers[place]) + 1, split_header(header)[0], reason)


def wrong_letter(byte: int, alphabet: Alphabet) -> str:
    """The message for a byte among residues that is no letter of the alphabet."""
    return "white space among residues; remove it" if bytes([byte]).isspace() else alphabet.reject(byte)

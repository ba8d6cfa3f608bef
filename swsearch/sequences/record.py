"""The record of one sequence: its header and its residues as codes."""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.sequences.alphabet import Alphabet
from swsearch.typing import Codes


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

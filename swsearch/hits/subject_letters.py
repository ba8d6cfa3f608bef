"""Readers of subjects, by which reports get the letters that the records of hits do not contain.

The record of a hit has the aligned part of its subject. A report that writes more of it, such as the whole sequence,
reads it through :attr:`swsearch.report.base.ReportContext.subjects`, so that reports need not know what a database is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from swsearch.arguments import flag, whole_number
from swsearch.errors import InputError
from swsearch.sequences.fasta_text import reverse_complement_letters
from swsearch.words import option

MAX_FLANK: Final = 1_000_000
"""Largest number of residues on each side of an aligned part."""
_PIECE: Final = 1 << 20


class SubjectReader(Protocol):
    """Gives the letters of subjects; :class:`swsearch.database.reader.PackedDatabase` is one."""

    def letters(self, subject_index: int, start: int = 0, stop: int | None = None) -> str:
        """The letters of a subject from ``start`` to ``stop``, 0-based and half-open, as they were written."""
        ...


def letters_in_pieces(
    subjects: SubjectReader, subject_index: int, start: int, stop: int, *, is_reversed: bool = False
) -> Iterator[str]:
    """The letters of a part of a subject, or of its reverse complement, in pieces of at most 2^20 letters.

    ``start`` and ``stop`` are positions on the forward strand, 0-based and half-open, within the subject.
    """
    if is_reversed:
        for last in range(stop, start, -_PIECE):
            yield reverse_complement_letters(subjects.letters(subject_index, max(start, last - _PIECE), last))
    else:
        for first in range(start, stop, _PIECE):
            yield subjects.letters(subject_index, first, min(stop, first + _PIECE))


@dataclass(frozen=True)
class SubjectPart:
    """The part of each hit subject that is written: the whole sequence, or an aligned part with flanks.

    Attributes
    ----------
    aligned : bool
        Whether the aligned parts are written, one for each alignment, in place of the whole sequences.
    flank : int
        Number of residues, 0 to 1,000,000, on each side of an aligned part; fewer at the ends of a subject.

    Raises
    ------
    InputError
        ``flank`` is out of its range, or given without ``aligned``.
    """

    aligned: bool = False
    flank: int = 0

    def __post_init__(self) -> None:
        flag("aligned", self.aligned)
        if not 0 <= whole_number("flank", self.flank) <= MAX_FLANK:
            raise InputError(f"{option('flank', self.flank)}: give a number of residues, 0 to {MAX_FLANK:,}")
        if self.flank and not self.aligned:
            needed = option("aligned", True)
            raise InputError(f"{option('flank', self.flank)}: flanks are beside an aligned part; give {needed}")


WHOLE: Final = SubjectPart()
"""The whole sequence of each subject."""

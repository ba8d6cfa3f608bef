"""Readings: the ways in which a query is searched. Each strand of DNA is one, each frame of a translated query is one.

What comes after sees no difference: a reading has codes and profiles, and engines score profiles. Masks and composition
are those of what is aligned: a translated query is masked frame by frame, any other as it is given.
"""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.query.profile import QueryProfile
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.options import SearchOptions
from swsearch.search.query_profiles import QueryProfiles
from swsearch.sequences.alphabet import PROTEIN, reverse_complement
from swsearch.sequences.genetic_code import frame_length
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes


@dataclass(frozen=True, eq=False)
class Reading:
    """A query in one reading direction.

    Attributes
    ----------
    strand : str
        ``plus`` or ``minus``.
    frame : int
        Frame that was translated, 0 where none was.
    codes : uint8 array, shape (length,)
        Along the reading, of the alphabet that is aligned.
    profile : QueryProfile
        Of these codes.
    screen : QueryProfile or None
        With which the reading seeks subjects, where a soft mask makes that another one.
    """

    strand: str
    frame: int
    codes: Codes
    profile: QueryProfile
    screen: QueryProfile | None


def reading_lengths(n_letters: int, options: SearchOptions, strands: tuple[str, ...]) -> list[int]:
    """Residues of each reading of a query of ``n_letters``, the empty ones left out."""
    if options.query_frames == (0,):
        return [n_letters] * len(strands)
    return [length for frame in options.query_frames if (length := frame_length(n_letters, frame))]


class Reader:
    """Makes the readings of a search's queries.

    Parameters
    ----------
    options : SearchOptions
    strands : tuple of str
        Those searched where queries are not translated.
    scheme : ScoringScheme
        Of the alphabet that is aligned.

    Attributes
    ----------
    n_readings : int
        Readings of a query that is long enough for all frames.
    profiles : QueryProfiles

    Raises
    ------
    InputError, ScoringError
        As :class:`swsearch.search.query_profiles.QueryProfiles`.
    """

    def __init__(self, options: SearchOptions, strands: tuple[str, ...], scheme: ScoringScheme) -> None:
        self._options = options
        self._strands = strands
        self._scheme = scheme
        self._translates = options.query_frames != (0,)
        self.n_readings = len(options.query_frames) if self._translates else len(strands)
        self.profiles = QueryProfiles(options, scheme)

    def as_searched(self, query: SequenceRecord) -> SequenceRecord:
        """The query as it is reported, its mask written into its letters; of a translated query as it is given."""
        if self._translates or isinstance(query, PositionSpecificQuery):
            return query
        return self.profiles.masked(query)

    def readings(self, query: SequenceRecord) -> list[Reading]:
        """The readings of a query of :meth:`as_searched`, in the order that breaks ties.

        Frames without a whole codon are left out.
        """
        if isinstance(query, PositionSpecificQuery):
            return [Reading("plus", 0, query.codes, query.profile(self._scheme.gap), None)]
        if not self._translates:
            return [self._reading(strand, 0, self._along(query, strand)) for strand in self._strands]
        assert self._options.code is not None
        found = []
        for frame in self._options.query_frames:
            codes = self._options.code.translate(query.codes, frame)
            if len(codes):
                masked = self.profiles.masked(SequenceRecord(query.header, codes, PROTEIN))
                found.append(self._reading("plus" if frame > 0 else "minus", frame, masked.codes))
        return found

    @staticmethod
    def _along(query: SequenceRecord, strand: str) -> Codes:
        return reverse_complement(query.codes) if strand == "minus" else query.codes

    def _reading(self, strand: str, frame: int, codes: Codes) -> Reading:
        return Reading(strand, frame, codes, self.profiles.profile(codes), self.profiles.screen(codes))

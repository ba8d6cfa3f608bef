"""Query frames: each strand of a DNA query, and each reading frame of a translated query, is searched separately.

:class:`QueryFrames` converts a query to a list of :class:`QueryFrame`, each with residue codes and profiles. A protein
query has one frame. All later steps treat strands and frames alike, because engines score profiles. Masking and
composition correction apply to the aligned residues: a translated query is masked frame by frame, any other query is
masked before its frames are made.
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
class QueryFrame:
    """A query on one strand or in one reading frame.

    Attributes
    ----------
    strand : str
        ``plus`` or ``minus``.
    frame : int
        Reading frame, 1 to 3 or -1 to -3; 0 if the query is not translated.
    codes : uint8 array, shape (length,)
        Residue codes of the strand or frame, in the alphabet that is aligned.
    profile : QueryProfile
        The profile of ``codes``, for the reported scores.
    masked_profile : QueryProfile or None
        If residues are softly masked, the profile that decides which subjects are reported; None otherwise.
    """

    strand: str
    frame: int
    codes: Codes
    profile: QueryProfile
    masked_profile: QueryProfile | None


def frame_lengths(n_letters: int, options: SearchOptions, strands: tuple[str, ...]) -> list[int]:
    """Length in residues of each strand or frame of a query of ``n_letters``, without frames that have no codon."""
    if options.query_frames == (0,):
        return [n_letters] * len(strands)
    return [length for frame in options.query_frames if (length := frame_length(n_letters, frame))]


class QueryFrames:
    """Makes the query frames of a search's queries.

    Parameters
    ----------
    options : SearchOptions
    strands : tuple of str
        The strands that are searched if queries are not translated.
    scheme : ScoringScheme
        A scheme for the alphabet that is aligned.

    Attributes
    ----------
    n_frames : int
        Number of strands or frames of a query that is long enough for all of them.
    profiles : QueryProfiles

    Raises
    ------
    InputError, ScoringError
        As for :class:`swsearch.search.query_profiles.QueryProfiles`.
    """

    def __init__(self, options: SearchOptions, strands: tuple[str, ...], scheme: ScoringScheme) -> None:
        self._options = options
        self._strands = strands
        self._scheme = scheme
        self._translates = options.query_frames != (0,)
        self.n_frames = len(options.query_frames) if self._translates else len(strands)
        self.profiles = QueryProfiles(options, scheme)

    def as_searched(self, query: SequenceRecord) -> SequenceRecord:
        """The query as it is reported: with its mask in its letters, or unchanged if it is translated."""
        if self._translates or isinstance(query, PositionSpecificQuery):
            return query
        return self.profiles.masked(query)

    def frames(self, query: SequenceRecord) -> list[QueryFrame]:
        """The frames of a query that :meth:`as_searched` returned, in order of preference among equal scores.

        Frames without a complete codon are left out.
        """
        if isinstance(query, PositionSpecificQuery):
            profile, masked_profile = self.profiles.position_specific(query)
            return [QueryFrame("plus", 0, query.codes, profile, masked_profile)]
        if not self._translates:
            return [self._frame(strand, 0, self._along(query, strand)) for strand in self._strands]
        assert self._options.code is not None
        frames = []
        for frame in self._options.query_frames:
            codes = self._options.code.translate(query.codes, frame)
            if len(codes):
                masked = self.profiles.masked(SequenceRecord(query.header, codes, PROTEIN))
                frames.append(self._frame("plus" if frame > 0 else "minus", frame, masked.codes))
        return frames

    @staticmethod
    def _along(query: SequenceRecord, strand: str) -> Codes:
        return reverse_complement(query.codes) if strand == "minus" else query.codes

    def _frame(self, strand: str, frame: int, codes: Codes) -> QueryFrame:
        return QueryFrame(strand, frame, codes, self.profiles.profile(codes), self.profiles.masked_profile(codes))

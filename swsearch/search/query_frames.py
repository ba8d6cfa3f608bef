"""The frames of queries, and the profiles of these.

:class:`QueryProfiles` converts a query to its profiles, which engines score: masking, composition correction, and the
masked profile of a soft mask. All options that change the scores of a query take effect here; engines, ranking and
traceback use only profiles.

Each strand of a DNA query, and each reading frame of a translated query, is searched separately: :class:`QueryFrames`
converts a query to a list of :class:`QueryFrame`, each with residue codes and profiles. A protein query has one frame.
All later steps treat strands and frames alike, because engines score profiles. Masking and composition correction apply
to the aligned residues: a translated query is masked frame by frame, any other query is masked before its frames are
made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from swsearch.errors import InputError, ScoringError
from swsearch.query.composition_correction import BIAS, corrected_profile, corrected_scores
from swsearch.query.masking import mask_record, parse_maskers, require_maskers, unknown_code, unknown_where_masked
from swsearch.query.profile import PositionSpecificQuery, QueryProfile, sequence_profile
from swsearch.scoring.scheme import ScoringScheme
from swsearch.scoring.ungapped import matrix_lambda
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import PROTEIN, SOFT_MASK_BIT, reverse_complement
from swsearch.sequences.genetic_code import frame_length
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes
from swsearch.words import option


class QueryProfiles:
    """Makes the profiles of a search's queries; immutable.

    Raises :class:`InputError` if a masker does not support the scheme's alphabet or is not installed, and
    :class:`ScoringError` if composition cannot be corrected with this scheme.
    """

    def __init__(self, options: SearchOptions, scheme: ScoringScheme) -> None:
        self._scheme = scheme
        self._maskers = parse_maskers(options.mask)
        self._mode = options.mask_mode
        require_maskers(self._maskers, scheme.alphabet)
        self._lam = _ungapped_lambda(scheme) if options.composition == BIAS else None

    @property
    def corrected(self) -> bool:
        """Whether the scores of the profiles differ from those of the matrix."""
        return self._lam is not None

    @property
    def case_counts(self) -> bool:
        """Whether queries that differ only in case may have different hits."""
        return bool(self._maskers)

    def masked(self, query: SequenceRecord) -> SequenceRecord:
        """The query as it is searched and reported: see :func:`swsearch.query.masking.mask_record`."""
        return mask_record(query, self._maskers, self._mode)

    def profile(self, codes: Codes) -> QueryProfile:
        """The profile for the reported scores and alignments of a masked query, or of its other strand."""
        if self._lam is None:
            return sequence_profile(codes, self._scheme)
        return corrected_profile(codes, self._scheme.matrix, self._scheme.gap, self._lam)

    def position_specific(self, query: PositionSpecificQuery) -> tuple[QueryProfile, QueryProfile | None]:
        """The profile and the masked profile of position-specific scores, as of a round of an iterated search."""
        profile = query.profile(self._scheme.gap)
        if self._lam is not None:
            profile = replace(profile, table=corrected_scores(query.scores, self._scheme.matrix, self._lam))
        masked = (query.codes & SOFT_MASK_BIT) != 0
        if not self._maskers or self._mode != "soft" or not masked.any():
            return profile, None
        table = profile.table.copy()
        table[masked] = self._scheme.matrix.scores[unknown_code(self._scheme.alphabet)]
        return profile, replace(profile, table=table)

    def masked_profile(self, codes: Codes) -> QueryProfile | None:
        """The profile that decides which subjects are reported for a softly masked query; None if it is not needed."""
        if not self._maskers or self._mode != "soft":
            return None
        masked = unknown_where_masked(codes, self._scheme.alphabet)
        return None if masked is None else self.profile(masked)


def _ungapped_lambda(scheme: ScoringScheme) -> float:
    if scheme.alphabet is not PROTEIN:
        raise InputError(
            f"{option('composition', 'bias')} is for protein, not for {scheme.alphabet.name}; leave it out"
        )
    lam = matrix_lambda(scheme.matrix)
    if lam is None:
        raise ScoringError(
            f"{option('composition', 'bias')}: matrix {scheme.matrix.name} scores random residues 0 or more on "
            "average; choose another matrix"
        )
    return lam


@dataclass(frozen=True, eq=False)
class QueryFrame:
    """A query on one ``strand`` (``plus`` or ``minus``) or in one reading ``frame`` (1 to 3 or -1 to -3; otherwise 0).

    ``codes`` are uint8 residue codes in the alphabet that is aligned, ``profile`` has the reported scores. If residues
    are softly masked, ``masked_profile`` decides which subjects are reported.
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

    ``strands`` are those that are searched if queries are not translated, ``scheme`` is that of the aligned alphabet.
    ``n_frames`` is the number of strands or frames of a query that is long enough for all. Errors are those of
    :class:`QueryProfiles`.
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

"""The profiles of a query, which engines score: masking, composition correction, and the masked profile of a soft mask.

:class:`QueryProfiles` converts a query to its profiles. All options that change the scores of a query take effect here;
engines, ranking and traceback use only profiles.
"""

from __future__ import annotations

from dataclasses import replace

from swsearch.errors import InputError, ScoringError
from swsearch.query.composition import BIAS, corrected_profile, corrected_scores
from swsearch.query.masking import mask_record, parse_maskers, require_maskers, unknown_code, unknown_where_masked
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import PROTEIN, SOFT_MASK_BIT
from swsearch.sequences.record import SequenceRecord
from swsearch.statistics.ungapped import matrix_lambda
from swsearch.typing import Codes
from swsearch.words import option


class QueryProfiles:
    """Makes the profiles of a search's queries; immutable.

    Parameters
    ----------
    options : SearchOptions
    scheme : ScoringScheme

    Raises
    ------
    InputError
        A masker does not support the scheme's alphabet or is not installed.
    ScoringError
        Composition cannot be corrected with this scheme.
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

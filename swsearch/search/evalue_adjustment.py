"""Which E-values of a search are adjusted for composition, and by which method.

:func:`adjustment_of` chooses the method for a query: if the option ``composition`` is ``adjust``, sequences by the
composition of both aligned parts (:mod:`swsearch.statistics.composition`); in an iterated search, profiles by that of
the subject's (:mod:`swsearch.pssm.composition`). An adjustment needs alignments, so it follows the ranking by scores;
E-values only increase, so no subject is missed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.hit import Alignment
from swsearch.pssm.composition import ProfileAdjustment
from swsearch.query.composition import ADJUST
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.statistics.composition import EvalueAdjustment, PairAdjustment
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.parameters import NoStatistics
from swsearch.typing import Floats


def adjustment_of(
    query: SequenceRecord, options: SearchOptions, scheme: ScoringScheme, statistics: Statistics | NoStatistics
) -> EvalueAdjustment | None:
    """The adjustment of the E-values of a query; None if they are not adjusted.

    Those of DNA are not, nor those without statistics. Those of profiles are adjusted in iterated searches, and always.
    """
    if scheme.alphabet is not PROTEIN:
        return None
    if isinstance(query, PositionSpecificQuery):
        return ProfileAdjustment.of(query, scheme.matrix, statistics) if options.iterations > 1 else None
    return PairAdjustment.of(scheme.matrix, statistics) if options.composition == ADJUST else None


def adjusted_evalues(
    adjustment: EvalueAdjustment,
    evalues: Floats,
    raw_scores: NDArray[np.int32],
    query: SequenceRecord,
    alignments: Sequence[Alignment],
) -> Floats:
    """The adjusted E-values of the alignments of a query."""
    letters = query.letters
    query_parts = [one.query_letters or letters[one.query_start : one.query_end] for one in alignments]
    return adjustment.adjusted(evalues, raw_scores, query_parts, [one.subject_letters for one in alignments])

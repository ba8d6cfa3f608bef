"""Scores long subjects against a query of many thousand rows by diamonds.

Inputs are a query profile and some subjects; the output is their best scores. The columns of a subject are computed one
after another, so a very long subject, such as a genome, would end long after all others. For most queries such subjects
are scored in verified windows (``verified_windows``). For queries of many thousand rows a window would have too many
strips, one below the other; then the subject's matrix is divided among warps in both directions
(:mod:`swsearch.engine.cuda.pairs.diamonds`).
"""

from __future__ import annotations

import numpy as np

from swsearch.database.partition import Partition
from swsearch.engine.cuda.pairs.diamond_plan import MAX_GAP_FIRST, MAX_LINES
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import Timing
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.typing import Scores


def suits_diamonds(profile: QueryProfile) -> bool:
    """Whether the diamond kernel supports a profile; position-specific profiles may have too many rows."""
    return len(profile.table) <= MAX_LINES and 0 < profile.gap.first <= MAX_GAP_FIRST


def score_by_diamonds(sweep: DiamondSweep, profile: QueryProfile, subjects: Partition, timing: Timing) -> Scores:
    """The subjects' best scores by diamonds; adds the kernel time to ``timing``. The profile must suit diamonds."""
    problem = AlignmentProblem(
        True, FreeEnds.ALL, profile.gap.open, profile.gap.extend, table=np.ascontiguousarray(profile.table)
    )
    rows = profile.rows.astype(np.uint16)
    pairs = [(rows, (subjects.codes(index) & CODE_MASK).astype(np.uint16)) for index in range(len(subjects))]
    before = sweep.seconds
    ends = sweep.ends(pairs, problem)
    timing.seconds += sweep.seconds - before
    return np.array([end.score for end in ends], dtype=np.int32)

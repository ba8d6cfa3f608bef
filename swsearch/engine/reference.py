"""The reference engine: Gotoh's recurrence (1982) for one pair at a time, row by row, in NumPy.

Inputs are a query profile and the residue codes of a subject; the output is the optimal local score. The engine is slow
and simple; the scores of the other engines are tested against it.

For query row i and subject column j, with s the profile's score and gaps as in :mod:`swsearch.scoring.gap`::

    E[i, j] = max(H[i, j-1] - first, E[i, j-1] - extend)      a gap that consumes the subject
    F[i, j] = max(H[i-1, j] - first, F[i-1, j] - extend)      a gap that consumes the query
    H[i, j] = max(0, H[i-1, j-1] + s[i, j], E[i, j], F[i, j])

A row is vectorised over its columns. E depends on earlier columns of the same row. A gap that opens directly after
another gap of the same kind never scores better than an extension of the first, so E needs only H', the H without the
term E, and is a running maximum: ``E[j] = max over k < j of (H'[k] + k * extend) - open - j * extend``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsearch.closeable import Closeable
from swsearch.database.partition import Partition
from swsearch.engine.protocol import EngineInfo, Progress
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.typing import Codes


def local_score(profile: QueryProfile, subject: Codes) -> int:
    """Optimal local score of one pair, exact in 64 bits; 0 if no alignment has a score above 0.

    Parameters
    ----------
    profile : QueryProfile
    subject : uint8 array, shape (subject_length,)
        Residue codes; soft-mask flags do not change the score.
    """
    if subject.size == 0:
        return 0
    extend, first, opening = profile.gap.extend, profile.gap.first, profile.gap.open
    scores = profile.table.astype(np.int64)[:, subject & CODE_MASK]
    ramp = np.arange(subject.size, dtype=np.int64) * extend
    above = np.zeros(subject.size, dtype=np.int64)
    f = np.full(subject.size, np.iinfo(np.int32).min, dtype=np.int64)
    best = 0
    for row in profile.rows:
        f = np.maximum(above - first, f - extend)
        diagonal = np.concatenate(([0], above[:-1])) + scores[row]
        h = np.maximum(np.maximum(diagonal, f), 0)
        e = np.maximum.accumulate(h + ramp)[:-1] - opening - ramp[1:]
        h[1:] = np.maximum(h[1:], e)
        best = max(best, int(h.max()))
        above = h
    return best


class ReferenceEngine(Closeable):
    """Scores one pair after another with :func:`local_score`."""

    name = "reference"
    profiles_per_call = 1
    rows_per_call = 1

    def score(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> list[ScoreBlock]:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        blocks = []
        for number, profile in enumerate(profiles):
            scores = np.zeros(len(partition), dtype=np.int32)
            for row in range(len(partition)):
                scores[row] = local_score(profile, partition.codes(row))
                if progress is not None:
                    progress(profile.length * int(partition.lengths[row]))
            block = ScoreBlock(partition.subject_index, scores)
            blocks.append(block if floors is None else block.at_least(floors[number]))
        return blocks

    def close(self) -> None:
        """Do nothing, because the engine owns no resources."""


def reference_info() -> EngineInfo:
    """The information that the reference engine is usable on every machine."""
    return EngineInfo("reference", built=True, usable=True, detail="NumPy, one pair at a time, for checking")

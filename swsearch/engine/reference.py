"""The reference engine: Gotoh's recurrence (1982), row by row, in NumPy.

Inputs are a query profile and the residue codes of subjects; the output is the optimal local score of each. The engine
is slow and simple; the scores of the other engines are tested against it.

For query row i and subject column j, with s the profile's score and gaps as in :mod:`swsearch.scoring.scheme`::

    E[i, j] = max(H[i, j-1] - first, E[i, j-1] - extend)      a gap that consumes the subject
    F[i, j] = max(H[i-1, j] - first, F[i-1, j] - extend)      a gap that consumes the query
    H[i, j] = max(0, H[i-1, j-1] + s[i, j], E[i, j], F[i, j])

A row is vectorised over its columns, of several subjects at a time. E depends on earlier columns of the same row. A gap
that opens directly after another gap of the same kind never scores better than an extension of the first, so E needs
only H', the H without the term E, and is a running maximum:
``E[j] = max over k < j of (H'[k] + k * extend) - open - j * extend``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.protocol import EngineInfo, ScoreRequest
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK, N_CODES
from swsearch.typing import Closeable, Codes, Lengths, Progress

GROUP_RESIDUES: Final = 1 << 13
"""Residues of the subjects that are scored together: 64 KiB per array, so calls of NumPy cost little."""
NO_PAIR: Final = -(1 << 62)
"""The score of a pair beyond the end of a subject: below every sum of scores."""


def local_scores(profile: QueryProfile, subjects: Sequence[Codes]) -> list[int]:
    """The optimal local score of each of some subjects, exact in 64 bits; 0 if no alignment has a score above 0.

    ``subjects`` have residue codes (uint8), whose soft-mask flags do not change the score.

    The subjects are the rows of one array, so that NumPy is called once for a query row. Columns past a subject's end
    change no score: a pair scores too little there to be used, and a gap that enters them costs at least 0.
    """
    n_columns = max((subject.size for subject in subjects), default=0)
    if n_columns == 0:
        return [0] * len(subjects)
    extend, first, opening = profile.gap.extend, profile.gap.first, profile.gap.open
    residues = np.full((len(subjects), n_columns), N_CODES, dtype=np.intp)
    for number, subject in enumerate(subjects):
        residues[number, : subject.size] = subject & CODE_MASK
    table = np.full((len(profile.table), N_CODES + 1), NO_PAIR, dtype=np.int64)
    table[:, :N_CODES] = profile.table
    ramp = np.arange(n_columns, dtype=np.int64) * extend
    opened = opening + ramp[1:]
    above = np.zeros(residues.shape, dtype=np.int64)
    f = np.full(residues.shape, np.iinfo(np.int32).min, dtype=np.int64)
    best = np.zeros(residues.shape, dtype=np.int64)  # of each column
    for row in profile.rows:
        f = np.maximum(above - first, f - extend)
        h = table[row].take(residues)
        h[:, 1:] += above[:, :-1]
        np.maximum(h, f, out=h)
        np.maximum(h, 0, out=h)
        e = np.maximum.accumulate(h[:, :-1] + ramp[:-1], axis=1) - opened
        np.maximum(h[:, 1:], e, out=h[:, 1:])
        np.maximum(best, h, out=best)
        above = h
    return [int(score) for score in best.max(axis=1)]


def _groups(lengths: Lengths) -> Iterator[NDArray[np.intp]]:
    """Divide subjects into groups of similar lengths whose longest one takes at most ``GROUP_RESIDUES`` for each."""
    order = np.argsort(lengths, kind="stable")
    begin = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - begin) * int(lengths[order[end]]) > GROUP_RESIDUES:
            yield order[begin:end]
            begin = end


class ReferenceEngine(Closeable):
    """Scores groups of subjects with :func:`local_scores`."""

    name = "reference"
    profiles_per_call = 1
    rows_per_call = 1

    def score(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> list[ScoreBlock]:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        blocks = []
        for request in requests:
            profile, scores = request.profile, np.zeros(len(partition), dtype=np.int32)
            for rows in _groups(partition.lengths):
                scores[rows] = local_scores(profile, [partition.codes(int(row)) for row in rows])
                if progress is not None:
                    progress(profile.length * int(partition.lengths[rows].sum()))
            block = ScoreBlock(partition.subject_index, scores)
            blocks.append(block if request.floor is None else block.at_least(request.floor))
        return blocks

    def close(self) -> None:
        """Do nothing, because the engine owns no resources."""


def reference_info() -> EngineInfo:
    """The information that the reference engine is usable on every machine."""
    return EngineInfo("reference", built=True, usable=True, detail="NumPy, one query at a time, for checking")

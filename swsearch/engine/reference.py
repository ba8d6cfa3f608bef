"""The reference engine and the reference pair backend: Gotoh's recurrence (1982), row by row, in NumPy.

They are slow and simple; the other engines and backends are tested against them. The engine computes the optimal local
score of each subject from a query profile and residue codes. The backend (docs/design/diamond.md) fills complete
matrices and traces a path in them, so memory grows with the product of the lengths, and there is a limit.

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
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, PairPaths, SequencePairs
from swsearch.engine.protocol import EngineInfo, ScoreRequest
from swsearch.errors import InputError
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK, N_CODES
from swsearch.typing import Closeable, Codes, Lengths, Letters, Progress

GROUP_RESIDUES: Final = 1 << 13
"""Residues of the subjects that are scored together: 64 KiB per array, so calls of NumPy cost little."""
NO_PAIR: Final = -(1 << 62)
"""The score of a pair beyond the end of a subject: below every sum of scores."""
MAX_CELLS: Final = 25_000_000
"""Maximum number of cells of a pair; each of three matrices takes 8 bytes per cell."""
_NEVER: Final = -(2**40)

Matrix = NDArray[np.int64]
Matrices = tuple[Matrix, Matrix, Matrix]
"""H, E and F of all nodes, shape (query length + 1, subject length + 1); node (i, j) follows i and j letters."""


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


# --- Pairs ---


class ReferencePairs:
    """The pair backend that computes complete matrices."""

    name = "reference"

    def align(
        self, pairs: SequencePairs, problem: AlignmentProblem, *, path: bool = True, progress: Progress | None = None
    ) -> PairPaths:
        """See :class:`swsearch.engine.pair_arrays.PairBackend`; a pair has at most 25 million cells."""
        found = []
        for query, subject in pairs:
            scores = letter_scores(query, subject, problem)
            matrices = fill(scores, problem)
            h, *_ = matrices
            row, column = _best_end(h, problem)
            ends, runs = [int(h[row, column]), row, column, 0, 0], []
            if path:
                ends[3], ends[4], columns = _walk(matrices, scores, problem, row, column)
                runs = [(operation, len(list(run))) for operation, run in groupby(columns)]
            found.append(PairPaths.of_pair(ends, runs))
            if progress is not None:
                progress(len(query) * len(subject))
        return PairPaths.concatenate(found)


def letter_scores(query: Letters, subject: Letters, problem: AlignmentProblem) -> Matrix:
    """Score of each query letter (row) against each subject letter (column), for at most 25 million cells."""
    cells = len(query) * len(subject)
    if cells > MAX_CELLS:
        raise InputError(
            f"{cells:,} cells are too many for complete matrices, which take 24 bytes each; {MAX_CELLS:,} can be "
            "computed: give shorter sequences, or leave --engine reference and --serial out"
        )
    if problem.table is not None:
        return problem.table[np.ix_(query, subject)].astype(np.int64)
    equal = query[:, None] == subject[None, :]
    return np.where(equal, problem.match, problem.mismatch).astype(np.int64)


def fill(scores: Matrix, problem: AlignmentProblem) -> Matrices:
    """The matrices of a pair, by the int64 scores of each query letter against each subject letter."""
    m, n = scores.shape
    opening, extend, first = problem.gap_open, problem.gap_extend, problem.gap_first
    e = np.full((m + 1, n + 1), _NEVER, dtype=np.int64)
    f = np.full((m + 1, n + 1), _NEVER, dtype=np.int64)
    h = np.zeros((m + 1, n + 1), dtype=np.int64)
    h[0] = problem.border(np.arange(n + 1), FreeEnds.SUBJECT_START)
    h[:, 0] = problem.border(np.arange(m + 1), FreeEnds.QUERY_START)
    ramp = extend * np.arange(n + 1, dtype=np.int64)
    for i in range(1, m + 1 if n else 1):
        f[i, 1:] = np.maximum(h[i - 1, 1:] - first, f[i - 1, 1:] - extend)
        row = h[i].copy()
        row[1:] = np.maximum(h[i - 1, :-1] + scores[i - 1], f[i, 1:])
        if problem.local:
            row = np.maximum(row, 0)
        e[i, 1:] = np.maximum.accumulate(row + ramp)[:-1] - opening - ramp[1:]
        h[i] = np.maximum(row, e[i])
    return h, e, f


def _best_end(h: Matrix, problem: AlignmentProblem) -> tuple[int, int]:
    """Row and column of the best allowed end: among ends with the best score, the smallest column, then row."""
    allowed = np.full(h.shape, problem.local)
    allowed[-1, -1] = True
    allowed[-1, :] |= problem.is_free(FreeEnds.SUBJECT_END)
    allowed[:, -1] |= problem.is_free(FreeEnds.QUERY_END)
    best = h[allowed].max()
    column, row = np.argwhere((allowed & (h == best)).T)[0]
    return int(row), int(column)


def _walk(matrices: Matrices, scores: Matrix, problem: AlignmentProblem, i: int, j: int) -> tuple[int, int, str]:
    """The path that ends at node (i, j): the node at which it begins, and its columns as ``M``, ``I`` and ``D``."""
    h, e, f = matrices
    first = problem.gap_first
    columns: list[str] = []
    state = "M"
    while i and j:
        if state == "M":
            if problem.local and h[i, j] == 0:
                break
            if h[i, j] == h[i - 1, j - 1] + scores[i - 1, j - 1]:
                columns.append("M")
                i, j = i - 1, j - 1
                continue
            state = "D" if h[i, j] == e[i, j] else "I"
        columns.append(state)
        if state == "D":
            state = "M" if e[i, j] == h[i, j - 1] - first else "D"
            j -= 1
        else:
            state = "M" if f[i, j] == h[i - 1, j] - first else "I"
            i -= 1
    if i == 0 and j and not problem.is_free(FreeEnds.SUBJECT_START):
        columns += ["D"] * j
        j = 0
    if j == 0 and i and not problem.is_free(FreeEnds.QUERY_START):
        columns += ["I"] * i
        i = 0
    return i, j, "".join(reversed(columns))

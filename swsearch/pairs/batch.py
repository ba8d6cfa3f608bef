"""Many short pairs at once: as arrays through one native call over all threads, or through the GPU's kernel for them.

The alignments are those that :func:`swsearch.pairs.align.align_pair` gives pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from swsearch import _native
from swsearch.engine.pair_batch import Letters, PairPaths, PairScores, Sequences
from swsearch.errors import InputError
from swsearch.pairs.align import (
    MEMORY_BYTES,
    PairAlignment,
    check_sides,
    ends_of_mode,
    mode_scoring,
    outcome,
    plain_scores,
    up_to,
)
from swsearch.pairs.scoring import PairScoring
from swsearch.pairs.sequence import PairSequence, number_texts
from swsearch.sequences.alphabet import CODE_MASK

if TYPE_CHECKING:
    from swsearch.engine.cuda.pairs import PairEngine

SHORT: Final = 2048
"""Letters of the longest sequence that goes into a batch; a pair of longer ones keeps all threads busy by itself."""

Pair = tuple[PairSequence, PairSequence]


def is_short(pair: Pair) -> bool:
    """Whether a pair may go into a batch: both sides have letters, and not too many."""
    return all(1 <= len(side) <= SHORT for side in pair)


def _sequences(parts: Sequence[Letters]) -> Sequences:
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return Sequences(np.concatenate(parts) if parts else np.empty(0, np.uint16), ends)


def batch_arrays(
    pairs: Sequence[Pair], mode: str, scoring: PairScoring, free_ends: str = "both"
) -> tuple[PairScores, tuple[Sequences, Sequences], tuple[Sequences, Sequences]]:
    """Pairs as the batch aligners take them.

    Returns
    -------
    scores : PairScores
    scored : (Sequences, Sequences)
        Letters as ``scores`` counts them.
    compared : (Sequences, Sequences)
        Letters whose equal numbers are reported as equal.

    Raises
    ------
    InputError
        The sequences do not fit the scoring, or the texts have too many different letters.
    """
    for query, subject in pairs:
        check_sides(query, subject, scoring)
    sides = [[pair[0] for pair in pairs], [pair[1] for pair in pairs]]
    records = [[side.record for side in column if side.record is not None] for column in sides]
    if len(records[0]) < len(pairs) or len(records[1]) < len(pairs):
        texts = number_texts([side.letters for column in sides for side in column])
        compared = _sequences(texts[: len(pairs)]), _sequences(texts[len(pairs) :])
        codes = compared
    else:
        plain = [[(record.codes & CODE_MASK).astype(np.uint16) for record in column] for column in records]
        codes = _sequences(plain[0]), _sequences(plain[1])
        table = records[0][0].alphabet.identity_table.astype(np.uint16)
        numbered = [Sequences(table[side.letters], side.ends) for side in codes]
        compared = numbered[0], numbered[1]
    gap = scoring.gap_open, scoring.gap_extend
    ends = ends_of_mode(mode, free_ends)
    if scoring.matrix is None:
        return PairScores(None, scoring.match, scoring.mismatch, *gap, *ends), compared, compared
    simple = plain_scores(scoring.matrix, codes[0].letters, codes[1].letters)
    if simple is not None:
        return PairScores(None, *simple, *gap, *ends), compared, compared
    return PairScores(scoring.matrix.scores, 0, 0, *gap, *ends), codes, compared


def _short_pair_instruction_set(*, path: bool) -> str:
    """Narrow vectors make low strips: less of a short pair is padding, and fewer decisions are filled for its path."""
    usable = [name for name, here in _native.instruction_sets() if here]
    return next((name for name in (("sse41", "avx2") if path else ("avx2", "sse41")) if name in usable), "auto")


def align_arrays(
    queries: Sequences,
    subjects: Sequences,
    scores: PairScores,
    *,
    path: bool = True,
    n_threads: int = 1,
    progress: Callable[[int], None] | None = None,
    instruction_set: str | None = None,
) -> PairPaths:
    """A batch on the CPU: a thread takes one pair after another.

    ``instruction_set`` is one of ``_native.instruction_sets()``; by default the one that is fastest for short pairs.

    Raises
    ------
    ValueError
        The arrays do not fit each other, or scores may leave 30 bits.
    KeyboardInterrupt
        After all threads have ended.
    """
    if instruction_set is None:
        instruction_set = _short_pair_instruction_set(path=path)
    ends, run_ends, runs = _native.align_pairs(
        queries.letters, queries.ends, subjects.letters, subjects.ends,
        scores.table, scores.match, scores.mismatch, scores.gap_open, scores.gap_extend,
        scores.local, scores.query_free, scores.subject_free, path, n_threads, MEMORY_BYTES, progress, instruction_set,
    )  # fmt: skip
    return PairPaths(ends, run_ends, runs)


def cigars(paths: PairPaths, compared: tuple[Sequences, Sequences], n_threads: int = 1) -> list[str]:
    """The CIGAR of each pair of a batch."""
    queries, subjects = compared
    return _native.write_cigars(
        queries.letters, queries.ends, subjects.letters, subjects.ends,
        np.ascontiguousarray(paths.ends[:, 3]), np.ascontiguousarray(paths.ends[:, 4]), paths.run_ends, paths.runs,
        n_threads,
    )  # fmt: skip


def align_batch(
    pairs: Sequence[Pair],
    mode: str = "local",
    scoring: PairScoring | None = None,
    *,
    free_ends: str = "both",
    path: bool = True,
    n_threads: int = 1,
    gpu: PairEngine | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[PairAlignment]:
    """The best alignment of each of many short pairs, in their order.

    Parameters
    ----------
    pairs : sequence of (query, subject)
        All residues of one alphabet or all texts; on a GPU each side has 1 to 8,192 letters.
    mode, scoring, free_ends, path, n_threads
        As :func:`swsearch.pairs.align.align_pair` takes them.
    gpu : PairEngine, optional
        Aligns them there instead of on the CPU.
    progress : callable, optional
        Called from this thread with cells done since the last call.

    Raises
    ------
    InputError
        Parameters that do not fit.
    KeyboardInterrupt
        After all threads have ended.

    >>> risotto = PairSequence("", "RISOTTO"), PairSequence("", "PRESTO")
    >>> [found.score for found in align_batch([risotto, risotto[::-1]], "edit")]
    [4, 4]
    """
    chosen = mode_scoring(mode, scoring)
    if not pairs:
        return []
    scores, scored, compared = batch_arrays(pairs, mode, chosen, free_ends)
    if gpu is None:
        try:
            cells = int(scored[0].lengths @ scored[1].lengths)
            told = up_to(cells, progress)
            paths = align_arrays(*scored, scores, path=path, n_threads=n_threads, progress=told)
        except ValueError as error:
            raise InputError(f"{pairs[0][0].identifier} and the pairs after it: {error}") from error
    else:
        paths = gpu.align(*scored, scores, path=path)
        if progress is not None:
            progress(int(scored[0].lengths @ scored[1].lengths))
    spelled = cigars(paths, compared, n_threads) if path else [None] * len(pairs)
    rows = paths.ends.tolist()
    return [
        outcome(mode, query, subject, chosen, row, cigar)
        for (query, subject), row, cigar in zip(pairs, rows, spelled, strict=True)
    ]

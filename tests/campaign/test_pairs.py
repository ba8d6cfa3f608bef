"""Alignment of pairs in every mode, tested singly and in batches.

A trial draws a mode, a scoring scheme and some dozens of pairs whose lengths lie near the kernels' strip and block
borders. The batch path and the single path must give the same results in every instruction set, with one thread or
several, and with much or little memory. The expected scores come from parasail, edlib, rapidfuzz and Biopython; small
pairs are compared completely with the full dynamic-programming matrix of `tests/pairs`; `counted` recomputes the score
of every CIGAR column by column.
"""

from typing import Any

import edlib
import numpy as np
import parasail
import pytest
from Bio import Align
from rapidfuzz.distance import LCSseq, Levenshtein

from swsearch.engine.cpu.pairs import CpuPairs, cigars, usable_instruction_sets
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, PairPaths, SequencePairs
from swsearch.scoring.scheme import MAX_GAP_COST
from tests.campaign.trials import Trial, told
from tests.hits.rescore import counted
from tests.pairs.whole_matrix import PARASAIL, PROBLEMS, judged
from tests.pairs.whole_matrix import found as aligned_pairs

MODES = ("local", "global", "semiglobal")
LETTERS = "ABCDEFGHIJKLMNOPQRST"
BORDERS = (1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129, 255, 256, 257, 511, 512, 513)
WHOLE_MATRIX_CELLS = 900


def draw_length(rng: np.random.Generator) -> int:
    """Draw a length: often a strip border or one off it; in one of fifty cases a long one."""
    kind = rng.random()
    if kind < 0.02:
        return int(rng.integers(600, 2049))
    if kind < 0.4:
        return int(rng.choice(BORDERS))
    return int(rng.integers(1, 120))


def draw_pair(n_letters: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw two sequences of letter numbers, related in two of three cases."""
    query = rng.integers(0, n_letters, draw_length(rng)).astype(np.uint16)
    if rng.random() < 0.33:
        return query, rng.integers(0, n_letters, draw_length(rng)).astype(np.uint16)
    rate = rng.choice((0.0, 0.03, 0.2))
    changed = np.where(rng.random(len(query)) < rate, rng.integers(0, n_letters, len(query)), query)
    subject = changed[rng.random(len(query)) >= rate / 2].astype(np.uint16)
    start = int(rng.integers(0, len(subject) // 2 + 1)) if rng.random() < 0.4 else 0
    subject = subject[start:]
    return query, subject if len(subject) else query[:1].copy()


def rescored(cigar: str, query: Any, subject: Any, scores: AlignmentProblem) -> int:
    """Return the score of two aligned parts from their CIGAR, counted column by column."""

    def pair_score(i: int, j: int) -> int:
        if scores.table is not None:
            return int(scores.table[query[i], subject[j]])
        return scores.match if query[i] == subject[j] else scores.mismatch

    return counted(cigar, query, subject, pair_score, scores.gap_open, scores.gap_extend).score


@pytest.mark.thorough
@pytest.mark.campaign(10, 1_400)
def test_pairs_are_those_of_the_definition_and_of_other_programs(trial: Trial) -> None:
    """Some dozens of pairs with one mode and one scoring scheme."""
    rng = trial.numbers
    mode = MODES[trial.number % len(MODES)]
    local, free = PROBLEMS[mode]
    if mode == "semiglobal":
        free = list(PARASAIL)[rng.integers(len(PARASAIL))]
    n_letters = int(rng.choice((1, 2, 4, 20)))
    gap = _gap(rng)
    table = None
    match, mismatch = int(rng.choice((1, 2, 5, 127))), -int(rng.choice((0, 1, 3, 127)))
    if not local and rng.random() < 0.3:  # edit distances and common subsequences
        (match, mismatch), gap = ((0, -1), (0, 1)) if rng.random() < 0.5 else ((1, -1), (0, 0))
    elif rng.random() < 0.5:
        table = np.full((32, 32), -128, np.int8)
        high = int(rng.choice((3, 12, 127)))
        table[:n_letters, :n_letters] = rng.integers(-high, high + 1, (n_letters, n_letters))
        table[0, 0] = max(1, int(table[0, 0]))
    scores = AlignmentProblem(local, free, *gap, match, mismatch, table)
    pairs = [draw_pair(n_letters, rng) for _ in range(int(rng.integers(25, 50)))]
    batch = SequencePairs.of(pairs)
    found = CpuPairs(1 + trial.number % 2).align(batch, scores)
    spelled, aligned = cigars(found, batch), aligned_pairs(found)
    judge = _parasail_matrix(n_letters, scores)
    aligner = _biopython(mode, n_letters, scores)
    with told(f"{mode}, free {int(free)}, gap {gap}, {f'{match}/{mismatch}' if table is None else 'a table'}"):
        _same_in_batches(batch, scores, found)
        for index, (query, subject) in enumerate(pairs):
            score, query_end, subject_end, query_start, subject_start = found.ends[index].tolist()
            with told(f"pair {index} of {len(query)} x {len(subject)}"):
                parts = query[query_start:query_end], subject[subject_start:subject_end]
                assert rescored(spelled[index], *parts, scores) == score
                _same_singly(query, subject, scores, found, index, rng)
                words = ["".join(LETTERS[letter] for letter in side) for side in (query, subject)]
                name = {"local": "sw", "global": "nw"}.get(mode) or PARASAIL[free]
                theirs = getattr(parasail, f"{name}_scan_32")(*words, gap[0] + gap[1], gap[1], judge).score
                assert max([theirs, *_without_pairs(len(query), len(subject), scores)]) == score
                if aligner is not None and len(query) * len(subject) < 20_000 and index % 4 == 0:
                    assert round(aligner.score(*words)) == score
                if mode == "global" and gap == (0, 1) and (match, mismatch) == (0, -1) and table is None:
                    assert -score == edlib.align(*words)["editDistance"] == Levenshtein.distance(*words)
                if mode == "global" and gap == (0, 0):
                    assert score == LCSseq.similarity(*words)
                if len(query) * len(subject) <= WHOLE_MATRIX_CELLS:
                    assert aligned[index] == judged(query, subject, scores)


def _without_pairs(n_query: int, n_subject: int, scores: AlignmentProblem) -> list[int]:
    """Return the scores of the alignments without a pair of letters, which parasail omits.

    They end in the first row or column of the matrix: one sequence lies beyond its free end, and the other is one gap,
    or lies before its free start. `tests/pairs` has them in its matrix.
    """
    if scores.local:
        return []
    return [
        0 if other_start in scores.free_ends else -(scores.gap_open + length * scores.gap_extend)
        for end, other_start, length in (
            (FreeEnds.QUERY_END, FreeEnds.SUBJECT_START, n_subject),
            (FreeEnds.SUBJECT_END, FreeEnds.QUERY_START, n_query),
        )
        if end in scores.free_ends
    ]


def _gap(rng: np.random.Generator) -> tuple[int, int]:
    kind = rng.integers(5)
    if kind == 0:
        return 0, int(rng.integers(1, 8))
    if kind == 1:
        return int(rng.integers(1, 20)), 0
    if kind == 2:
        return int(rng.choice((126, 127, 128, 255, 4000, MAX_GAP_COST))), int(rng.choice((1, 127, 128, 1000)))
    return int(rng.integers(0, 20)), int(rng.integers(1, 6))


def _parasail_matrix(n_letters: int, scores: AlignmentProblem) -> parasail.Matrix:
    made = parasail.matrix_create(LETTERS[:n_letters], 1, -1)
    for row in range(n_letters):
        for column in range(n_letters):
            value = (
                (scores.match if row == column else scores.mismatch)
                if scores.table is None
                else scores.table[row, column]
            )
            made.set_value(column, row, int(value))  # parasail indexes rows by subject
    return made


def _biopython(mode: str, n_letters: int, scores: AlignmentProblem) -> Align.PairwiseAligner | None:
    """Return Biopython's aligner for the modes that it defines identically, where letters are compared."""
    if mode == "semiglobal" or scores.table is not None:
        return None
    first = -(scores.gap_open + scores.gap_extend)
    return Align.PairwiseAligner(
        mode=mode, match_score=scores.match, mismatch_score=scores.mismatch,
        open_gap_score=first, extend_gap_score=-scores.gap_extend,
    )  # fmt: skip


def _same_in_batches(batch: SequencePairs, scores: AlignmentProblem, found: PairPaths) -> None:
    """Align all pairs in each instruction set, with and without paths."""
    for name in usable_instruction_sets():
        other = CpuPairs(2, instruction_set=name).align(batch, scores)
        for field in ("ends", "run_ends", "runs"):
            assert np.array_equal(getattr(other, field), getattr(found, field)), f"{name} differs in {field}"
        alone = CpuPairs(instruction_set=name).align(batch, scores, path=False)
        assert np.array_equal(alone.ends[:, :3], found.ends[:, :3]), f"scores alone in {name}"


def _same_singly(  # type: ignore[no-untyped-def]
    query, subject, scores: AlignmentProblem, found: PairPaths, place: int, rng: np.random.Generator
) -> None:
    """Align one pair singly with a random instruction set, thread count and memory limit; compare with the batch."""
    name = usable_instruction_sets()[int(rng.integers(len(usable_instruction_sets())))]
    threads, memory = int(rng.integers(1, 4)), int(rng.choice((0, 999, 9_999, 1 << 26)))
    alone = CpuPairs(threads, memory_bytes=memory, instruction_set=name)
    one = alone.align(SequencePairs.of([(query, subject)]), scores)
    runs = found.runs[(found.run_ends[place - 1] if place else 0) : found.run_ends[place]]
    with told(f"singly in {name}, {threads} threads, {memory} bytes"):
        assert one.ends[0].tolist() == found.ends[place].tolist()
        assert one.runs.tolist() == runs.tolist()

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
from Bio import Align
from rapidfuzz.distance import LCSseq, Levenshtein

from swsearch import _native
from swsearch.engine.cpu.pairs import CpuPairs, cigars, usable_instruction_sets
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, SequencePairs
from swsearch.pairs.pair_alignment import (
    EDIT,
    EDLIB_MODES,
    LCS,
    MODES,
    PairScoring,
    align_pair,
    align_pairs,
)
from swsearch.pairs.sequence import PairSequence
from swsearch.scoring.scheme import MAX_GAP_COST
from tests.campaign.trials import Trial
from tests.hits.rescore import counted
from tests.pairs.whole_matrix import PARASAIL, PROBLEMS, judged
from tests.pairs.whole_matrix import found as aligned_pairs

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


def trial(trial: Trial) -> None:
    """Test some dozens of pairs with one mode and one scoring scheme."""
    rng = trial.array_rng()
    mode = MODES[trial.number % len(MODES)]
    if mode in ("edit", "lcs"):
        _texts(trial, mode, rng)
        return
    local, free = PROBLEMS[mode]
    if mode == "semiglobal":
        free = list(PARASAIL)[rng.integers(len(PARASAIL))]
    n_letters = int(rng.choice((1, 2, 4, 20)))
    gap = _gap(rng)
    table = None
    match, mismatch = int(rng.choice((1, 2, 5, 127))), -int(rng.choice((0, 1, 3, 127)))
    if rng.random() < 0.5:
        table = np.full((32, 32), -128, np.int8)
        high = int(rng.choice((3, 12, 127)))
        table[:n_letters, :n_letters] = rng.integers(-high, high + 1, (n_letters, n_letters))
        table[0, 0] = max(1, int(table[0, 0]))
    scores = AlignmentProblem(local, free, *gap, match, mismatch, table)
    pairs = [draw_pair(n_letters, rng) for _ in range(int(rng.integers(25, 50)))]
    where = f"{mode}, free {int(free)}, gap {gap}, " + (f"{match}/{mismatch}" if table is None else "a table")
    batch = SequencePairs.of(pairs)
    found = CpuPairs(1 + trial.number % 2).align(batch, scores)
    spelled, aligned = cigars(found, batch), aligned_pairs(found)
    _same_in_batches(trial, where, batch, scores, found)
    judge = _parasail_matrix(n_letters, scores)
    aligner = _biopython(mode, n_letters, scores)
    for index, (query, subject) in enumerate(pairs):
        score, query_end, subject_end, query_start, subject_start = found.ends[index].tolist()
        here = f"{where}, pair {index} of {len(query)} x {len(subject)}"
        try:
            parts = query[query_start:query_end], subject[subject_start:subject_end]
            again = rescored(spelled[index], *parts, scores)
            trial.check(again == score, f"{here}: score {score}, its CIGAR {again}")
        except AssertionError as error:
            trial.check(False, f"{here}: CIGAR {spelled[index][:60]}: {error}")
        _singly(trial, here, query, subject, scores, found, index, rng)
        words = ["".join(LETTERS[letter] for letter in side) for side in (query, subject)]
        name = {"local": "sw", "global": "nw"}.get(mode) or PARASAIL[free]
        function = getattr(parasail, f"{name}_scan_32")
        expected = function(*words, gap[0] + gap[1], gap[1], judge).score
        expected = max([expected, *_without_pairs(len(query), len(subject), scores)])
        trial.check(expected == score, f"{here}: score {score}, parasail {expected}")
        trial.counts["pairs of parasail"] += 1
        if aligner is not None and len(query) * len(subject) < 20_000 and index % 4 == 0:
            theirs = round(aligner.score(*words))
            trial.check(theirs == score, f"{here}: score {score}, Biopython {theirs}")
            trial.counts["pairs of Biopython"] += 1
        if len(query) * len(subject) <= WHOLE_MATRIX_CELLS:
            wanted = judged(query, subject, scores)
            trial.check(aligned[index] == wanted, f"{here}: {aligned[index]}, whole matrix {wanted}")
            trial.counts["pairs of the whole matrix"] += 1
        trial.counts["pairs"] += 1


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


def _same_in_batches(trial: Trial, where: str, batch: SequencePairs, scores: AlignmentProblem, found: Any) -> None:
    for name in usable_instruction_sets():
        other = CpuPairs(2, instruction_set=name).align(batch, scores)
        for field in ("ends", "run_ends", "runs"):
            same = np.array_equal(getattr(other, field), getattr(found, field))
            trial.check(same, f"{where}: the batch in {name} differs in {field}")
        alone = CpuPairs(instruction_set=name).align(batch, scores, path=False)
        same = np.array_equal(alone.ends[:, :3], found.ends[:, :3])
        trial.check(same, f"{where}: scores alone in {name} differ from those with paths")


def _singly(  # type: ignore[no-untyped-def]
    trial: Trial, here: str, query, subject, scores: AlignmentProblem, found: Any, place: int, rng: np.random.Generator
) -> None:
    """Align one pair singly with a random instruction set, thread count and memory limit; compare with the batch."""
    isas = usable_instruction_sets()
    isa = isas[int(rng.integers(len(isas)))]
    memory = int(rng.choice((0, 999, 9_999, 1 << 26)))
    threads = int(rng.integers(1, 4))
    one = _native.align_pair(
        query, subject, scores.table, scores.match, scores.mismatch, scores.gap_open, scores.gap_extend,
        scores.local, scores.free_ends, True, threads, memory, None, isa,
    )  # fmt: skip
    runs = found.runs[(found.run_ends[place - 1] if place else 0) : found.run_ends[place]]
    reported = [("MID"[int(run) & 3], int(run) >> 2) for run in runs]
    same = list(one[:5]) == found.ends[place].tolist() and [tuple(run) for run in one[5]] == reported
    trial.check(same, f"{here}: singly in {isa}, {threads} threads, {memory} bytes it differs from the batch")


def _texts(trial: Trial, mode: str, rng: np.random.Generator) -> None:
    """Compare edit distances and longest common subsequences with rapidfuzz and edlib."""
    n_letters = int(rng.choice((1, 2, 4, 20)))
    pairs = [draw_pair(n_letters, rng) for _ in range(int(rng.integers(25, 50)))]
    words = [["".join(LETTERS[letter] for letter in side) for side in pair] for pair in pairs]
    if rng.random() < 0.3:
        words += [["", "ab"], ["ab", ""], ["a", "a"], ["é☃", "☃é"]]
    given = [(PairSequence("q", one), PairSequence("s", other)) for one, other in words]
    short = [pair for pair in given if pair[0].letters and pair[1].letters]
    free = [None, *EDLIB_MODES][rng.integers(4)] if mode == "edit" else None
    found = align_pairs(short, mode, free_ends=free, n_threads=2)
    batch = {id(pair[0]): one for pair, one in zip(short, found, strict=True)}
    scoring: PairScoring = EDIT if mode == "edit" else LCS
    scores = AlignmentProblem(
        False, FreeEnds.NONE, scoring.gap_open, scoring.gap_extend, scoring.match, scoring.mismatch
    )
    for index, (query, subject) in enumerate(given):
        here = f"{mode}, free {free}, pair {index} of {len(query)} x {len(subject)}"
        one = align_pair(
            query,
            subject,
            mode,
            free_ends=free,
            backend=CpuPairs(1 + index % 2, memory_bytes=int(rng.choice((0, 9_999, 1 << 26)))),
        )
        other = batch.get(id(query), one)
        same = (one.score, one.cigar) == (other.score, other.cigar)
        trial.check(same, f"{here}: the batch gives another score or CIGAR")
        if mode == "edit":
            expected = Levenshtein.distance(query.letters, one.aligned[1])
            if query.letters and subject.letters:
                theirs = edlib.align(query.letters, subject.letters, mode=free or "NW", task="locations")
                ends = theirs["editDistance"], theirs["locations"][0][1] + 1
                trial.check((one.score, one.subject_end) == ends, f"{here}: {one.score}, edlib {ends}")
        else:
            expected = LCSseq.similarity(query.letters, subject.letters)
        trial.check(one.score == expected, f"{here}: {one.score}, rapidfuzz {expected}")
        again = rescored(one.cigar or "", *one.aligned, scores)
        trial.check(abs(again) == one.score, f"{here}: score {one.score}, its CIGAR {again}")
        trial.counts["pairs of rapidfuzz and edlib"] += 1
        trial.counts["pairs"] += 1

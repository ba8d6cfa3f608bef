"""The pair kernels: scores, ends and paths in every instruction set.

The expected values come from the full matrix of ``whole_matrix.py``, from other programs, or from calculation by hand.
"""

import subprocess
import sys
import threading
import time
from functools import cache
from itertools import product

import edlib
import numpy as np
import parasail
import pytest
from Bio import Align
from rapidfuzz.distance import LCSseq, Levenshtein

from swsearch import _native
from swsearch.engine.cpu.engine import usable_instruction_sets
from swsearch.engine.pair_arrays import AlignmentProblem
from tests.pairs.whole_matrix import PARASAIL, PROBLEMS, Judged, judged
from tests.patience import interrupt

GAPS = [(0, 1), (0, 2), (5, 2), (11, 1), (3, 0), (1, 1), (16_383, 16_383), (2_000, 300)]
COSTS = [(2, -3), (1, -1), (0, -1), (5, -4), (1, 0)]
INSTRUCTION_SETS = usable_instruction_sets()
LETTERS = "ACGT"


def align(query, subject, mode, *, costs=(2, -3), gap=(5, 2), table=None, path=True, threads=1,
          memory_bytes=1 << 26, instruction_set="auto"):  # fmt: skip
    sides = [np.asarray(side, np.uint16) for side in (query, subject)]
    (ends,), _, runs = _native.align_pairs(
        sides[0], np.array([len(sides[0])]), sides[1], np.array([len(sides[1])]), table, *costs, *gap, *PROBLEMS[mode],
        path, threads, memory_bytes, None, instruction_set,
    )  # fmt: skip
    return (*ends.tolist(), [("MID"[run & 3], run >> 2) for run in runs.tolist()] if path else None)


def letters(seed, length, n_letters=4):
    return np.random.default_rng(seed).integers(0, n_letters, length).astype(np.uint16)


def related(seed, length, n_letters=4):
    """Return two sequences of about equal length, with one tenth of the letters changed and some deleted."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, n_letters, length).astype(np.uint16)
    changed = np.where(rng.random(length) < 0.1, rng.integers(0, n_letters, length), query)
    return query, changed[rng.random(length) > 0.03].astype(np.uint16)


def as_judged(result):
    """Return a result of the native module in the form of the full matrix."""
    score, query_end, subject_end, query_start, subject_start, runs = result
    operations = "".join(operation * length for operation, length in runs)
    return Judged(score, query_start, query_end, subject_start, subject_end, operations)


def assert_as_defined(query, subject, mode, costs, gap, table=None, **options):
    """Compare score, ends, start and path with the full matrix."""
    wanted = judged(query, subject, AlignmentProblem(*PROBLEMS[mode], *gap, *costs, table))
    found = align(query, subject, mode, costs=costs, gap=gap, table=table, **options)
    assert as_judged(found) == wanted
    alone = align(query, subject, mode, costs=costs, gap=gap, table=table, path=False, **options)
    assert alone == (*found[:3], 0, 0, None)


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@pytest.mark.parametrize("mode", PROBLEMS)
def test_random_pairs_are_as_defined(instruction_set, mode):
    """Expected values: the full matrix. Lengths from 0, compared letters and tables, all gap costs, any memory."""
    rng = np.random.default_rng(INSTRUCTION_SETS.index(instruction_set))
    for case in range(60):
        query, subject = letters(rng.integers(1 << 30), rng.integers(0, 60)), letters(case, rng.integers(0, 60))
        shared = min(len(query), len(subject)) * case // 60
        subject[:shared] = query[:shared]
        gap, costs = GAPS[case % len(GAPS)], COSTS[case % len(COSTS)]
        if mode == "local" and costs[0] <= 0:
            costs = COSTS[0]
        table = rng.integers(-6, 9, (4, 4)).astype(np.int8) if case % 2 else None
        assert_as_defined(
            query,
            subject,
            mode,
            costs,
            gap,
            table,
            instruction_set=instruction_set,
            memory_bytes=int(rng.choice([0, 9999])),
        )


STRIPS = {
    name: 256 if name.startswith("avx512") else {"avx2": 128, "neon": 64}.get(name, 32) for name in INSTRUCTION_SETS
}


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_lengths_around_a_strip_are_as_defined(instruction_set, mode):
    """Expected values: the full matrix. S - 1, S and S + 1 rows, 1 x n and m x 1; a strip has S rows."""
    s = STRIPS[instruction_set]
    for m, n in [(1, 1), (s - 1, 9), (s, 33), (s + 1, 9), (1, 3 * s + 5), (3 * s + 5, 1), (2 * s, 2)]:
        query, subject = letters(m, m), letters(n, n)
        subject[: min(m, n) - 1] = query[1 : min(m, n)]
        assert_as_defined(query, subject, mode, (2, -3), (5, 2), instruction_set=instruction_set)


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_scores_around_the_limit_of_8_bits_are_exact(instruction_set):
    """Expected values: ``length`` equal letters, one point each, between letters that never match."""
    for length, before in product((253, 254, 255, 256, 400), (0, 1, 300)):
        core = letters(length, length, 3)
        query = np.concatenate([np.full(60, 3, np.uint16), core, np.full(70, 3, np.uint16)])
        subject = np.concatenate([np.full(before, 4, np.uint16), core, np.full(5, 4, np.uint16), core])
        for table in (None, np.where(np.eye(5, dtype=bool), 1, -3).astype(np.int8)):
            found = align(
                query,
                subject,
                "local",
                costs=(1, -3),
                table=table,
                path=False,
                instruction_set=instruction_set,
                threads=2,
            )
            assert found[:3] == (length, 60 + length, before + length)


@cache
def long_query(length, n_letters, costs, gap):
    """Return a random pair and its local alignment by definition, once for all instruction sets of equal strips."""
    rng = np.random.default_rng(n_letters)
    query = rng.integers(0, n_letters, length).astype(np.uint16)
    subject = rng.integers(0, n_letters, 90).astype(np.uint16)
    return query, subject, judged(query, subject, AlignmentProblem(*PROBLEMS["local"], *gap, *costs))


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_local_ends_of_long_queries_are_as_defined(instruction_set):
    """Expected values: the full matrix. Few letters give many equal scores; many letters exceed 8-bit lanes."""
    for n_letters, gap in product((2, 4, 14, 15, 40), ((5, 2), (0, 2), (126, 1), (127, 1), (0, 127))):
        costs = (2, -3) if n_letters < 40 else (7, -8)
        query, subject, wanted = long_query(STRIPS[instruction_set] * 2 + 30, n_letters, costs, gap)
        for table in (None, np.where(np.eye(n_letters, dtype=bool), *costs).astype(np.int8)):
            found = align(
                query, subject, "local", costs=costs, gap=gap, table=table, path=False, instruction_set=instruction_set
            )
            assert found[:3] == (wanted.score, wanted.query_end, wanted.subject_end)


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_long_pairs_are_the_same_for_all_threads_memory_and_instruction_sets(mode):
    """Expected score: parasail's 32-bit scan kernels, with open + extend; the rest: one thread with much memory."""
    query, subject = related(1, 3_000)
    whole = align(query, subject, mode)
    text = ["".join(LETTERS[x] for x in side) for side in (query, subject)]
    function = {"local": parasail.sw_scan_32, "global": parasail.nw_scan_32, "semiglobal": parasail.sg_scan_32}[mode]
    assert whole[0] == function(*text, 7, 2, parasail.matrix_create(LETTERS, 2, -3)).score
    table = np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int8)
    for instruction_set in INSTRUCTION_SETS:
        for threads in (1, 2, 5):
            for memory_bytes in (0, 100_000, 1 << 28):
                got = align(
                    query, subject, mode, instruction_set=instruction_set, threads=threads, memory_bytes=memory_bytes
                )
                assert got == whole, (instruction_set, threads, memory_bytes)
        assert align(query, subject, mode, instruction_set=instruction_set, table=table, threads=2) == whole
        assert align(query, subject, mode, instruction_set=instruction_set, path=False, threads=2)[:3] == whole[:3]


@pytest.mark.parametrize("costs", [(2, -3), (150, -200)])
@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_paths_through_many_tiles_are_as_defined(mode, costs):
    """Expected values: the full matrix. Gaps make the path pass tiles of 16 and of 32 bits, stored or recomputed."""
    query = letters(5, 330)
    subject = np.concatenate([query[:90], letters(6, 1_300), query[95:200], query[210:], letters(7, 900)])
    gap = (5, 2) if costs == (2, -3) else (2_000, 1)
    wanted = judged(query, subject, AlignmentProblem(*PROBLEMS[mode], *gap, *costs))
    for instruction_set in INSTRUCTION_SETS:
        for memory_bytes in (0, 60_000, 1 << 28):
            found = align(
                query,
                subject,
                mode,
                costs=costs,
                gap=gap,
                instruction_set=instruction_set,
                memory_bytes=memory_bytes,
                threads=2,
            )
            assert as_judged(found) == wanted


def test_scores_beyond_sixteen_bits_are_exact():
    """A sequence against itself, by hand: 20,000 matches of 5. Tiles store 16-bit scores relative to a base."""
    query = letters(7, 20_000)
    for mode in ("local", "global", "semiglobal"):
        found = align(query, query, mode, costs=(5, -4), gap=(10, 1), threads=2)
        assert found == (100_000, 20_000, 20_000, 0, 0, [("M", 20_000)])


def test_costs_too_large_for_sixteen_bits_are_exact():
    """By hand: global, no common letters: 300 mismatches of -16,383, because gaps cost more."""
    query, subject = np.zeros(300, np.uint16), np.ones(300, np.uint16)
    found = align(query, subject, "global", costs=(16_383, -16_383), gap=(16_383, 16_383))
    assert found[0] == -300 * 16_383


def test_edit_distance_agrees_with_edlib_and_rapidfuzz():
    for seed, length in enumerate([1, 2, 17, 300, 2_000]):
        query, subject = related(seed, length)
        texts = ["".join(LETTERS[x] for x in side) for side in (query, subject)]
        found = align(query, subject, "global", costs=(0, -1), gap=(0, 1))
        assert -found[0] == edlib.align(*texts)["editDistance"] == Levenshtein.distance(*texts)


def test_common_subsequence_agrees_with_rapidfuzz():
    for seed, length in enumerate([1, 2, 17, 300, 2_000]):
        query, subject = related(seed, length)
        texts = ["".join(LETTERS[x] for x in side) for side in (query, subject)]
        found = align(query, subject, "global", costs=(1, -1), gap=(0, 0))
        assert found[0] == LCSseq.similarity(*texts)


@pytest.mark.parametrize("mode", ["local", "global"])
def test_scores_agree_with_biopython(mode):
    """Expected values: PairwiseAligner, which counts open + extend for a gap's first residue."""
    aligner = Align.PairwiseAligner(mode=mode, match_score=2, mismatch_score=-3, open_gap_score=-7, extend_gap_score=-2)
    for seed in range(8):
        query, subject = related(seed, 30 + 40 * seed)
        texts = ["".join(LETTERS[x] for x in side) for side in (query, subject)]
        assert align(query, subject, mode)[0] == aligner.score(*texts)


@pytest.mark.parametrize(("free", "function"), PARASAIL.items())
def test_free_ends_are_those_that_parasail_names(free, function):
    """parasail's sg (all ends free), and sg with q or d (query or subject) and b, e or x (its start, its end, both)."""
    matrix = parasail.matrix_create(LETTERS, 2, -3)
    for seed in range(8):
        query, subject = related(seed, 60)
        query, subject = (query[:40], subject) if seed % 2 else (query, subject[10:50])
        texts = ["".join(LETTERS[x] for x in side) for side in (query, subject)]
        expected = getattr(parasail, function + "_scan_32")(*texts, 7, 2, matrix).score
        ends = np.array([len(query)]), np.array([len(subject)])
        found = _native.align_pairs(query, ends[0], subject, ends[1], None, 2, -3, 5, 2, False, free, False)
        assert found[0][0, 0] == expected


def test_memory_is_linear():
    """60,000 x 60,000: one byte per cell would be 3.6 GB; resident memory may grow by 200 MB, including the path."""
    code = (
        "import resource, numpy as np\nfrom swsearch import _native\n"
        "q = np.random.default_rng(0).integers(0, 4, 60_000).astype(np.uint16)\ns = q[500:].copy()\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nbefore = peak()\n"
        "ends = [np.array([len(side)]) for side in (q, s)]\n"
        "_native.align_pairs(q, ends[0], s, ends[1], None, 2, -3, 5, 2, False, 0, True, 2, 32 << 20)\n"
        "print(peak() - before)"
    )
    grown = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert grown < 200 * 1024


def test_ctrl_c_ends_a_long_pair():
    """Expected: less than half of the complete pair's processor time, estimated from a pair of 1/40 of its length."""
    query = letters(1, 400_000)
    n_threads = threading.active_count()
    began = time.process_time()
    align(query[:10_000], query[:10_000], "local", path=False)
    whole_seconds = 1600 * (time.process_time() - began)
    began = time.process_time()
    interrupt(lambda: align(query, query, "local", path=False))
    assert time.process_time() - began < whole_seconds / 2
    assert threading.active_count() == n_threads


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"instruction_set": "mmx"}, "no instruction set is named mmx"),
        ({"gap": (-1, 1)}, "not negative"),
        ({"gap": (0, 0)}, "cost nothing"),
        ({"costs": (20_000, 0)}, "range"),
        ({"table": np.zeros((2, 4), np.int8)}, "no score"),
        ({"table": np.zeros((0, 0), np.int8)}, "empty"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        align([0, 1, 2, 3], [3, 2, 1, 0], "local", **changes)


def test_pairs_too_long_for_thirty_bits_are_refused():
    with pytest.raises(ValueError, match="30 bits"):
        align(np.zeros(70_000), np.zeros(70_000), "global", costs=(16_383, -1), gap=(0, 1))


@cache
def related_nodes(seed, length, gap, costs, mode):
    """Return two related sequences, H of all nodes, and the E and F that enter the next column and the next row."""
    query, subject = related(seed, length)
    first, extend = sum(gap), gap[1]
    i, j = np.arange(len(query) + 1), np.arange(len(subject) + 1)
    h = np.zeros((len(i), len(j)), np.int32)
    h[1:, 0] = 0 if mode != "global" else -(gap[0] + i[1:] * extend)
    h[0, 1:] = 0 if mode != "global" else -(gap[0] + j[1:] * extend)
    h, e, f = h.tolist(), (h - first).tolist(), (h - first).tolist()
    scores = np.where(query[:, None] == subject[None, :], *costs).tolist()
    for row in range(1, len(i)):
        h_above, f_above, h_row, e_row, f_row, pairs = h[row - 1], f[row - 1], h[row], e[row], f[row], scores[row - 1]
        for column in range(1, len(j)):
            now = max(h_above[column - 1] + pairs[column - 1], e_row[column - 1], f_above[column])
            h_row[column] = now = max(now, 0) if mode == "local" else now
            e_row[column] = max(e_row[column - 1] - extend, now - first)
            f_row[column] = max(f_above[column] - extend, now - first)
    return query, subject, *(np.array(matrix, np.int32) for matrix in (h, e, f))


def walk_of(query, subject, mode, query_end, subject_end):
    return _native.PairWalk(query, subject, None, 2, -3, 5, 2, *PROBLEMS[mode], query_end, subject_end)


@pytest.mark.parametrize("group_rows", [1, 7, 40, 1000])
@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_a_walk_through_blocks_filled_elsewhere_is_the_path(mode, group_rows):
    """Expected: the alignment itself. Edges by definition; the left is a staircase, one column per group of rows."""
    query, subject, h, e, f = related_nodes(4, 500, (5, 2), (2, -3), mode)
    wanted = align(query, subject, mode)
    walk = walk_of(query, subject, mode, *wanted[1:3])
    while not walk.done:
        above = (walk.row - 1) // 130 * 130
        n_groups = 130 // group_rows + 1
        column = (walk.column - 1) // 150 * 150
        if column < n_groups:  # the staircase would leave the matrix
            column, n_groups = 0, 1
        rows = np.arange(above + 1, min(above + 130, len(query)) + 1)
        groups = np.arange(n_groups)
        at = column - (0 if n_groups == 1 else (rows - above - 1) // group_rows)
        tops = np.minimum(above + groups * group_rows, len(query))
        lasts = np.minimum(above + (groups + 1) * group_rows, len(query))
        walk.through(
            above, column, group_rows if n_groups > 1 else 130, h[above, column + 1 :].copy(),
            f[above, column + 1 :].copy(), h[rows, at], e[rows, at], h[tops, column - groups],
            f[lasts, column - groups],
        )  # fmt: skip
    assert (*wanted[:3], *walk.finish()) == wanted


def test_blocks_that_a_walk_cannot_use_are_refused():
    query, subject = related(4, 300)
    walk = walk_of(query, subject, "global", 300, len(subject))
    scores = np.zeros(400, np.int32)
    for above, column, group_rows, size in [
        (300, 0, 300, 400), (0, len(subject), 300, 400), (0, 0, 0, 400), (0, 0, 300, 10), (0, 5, 10, 400),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="block"):
            walk.through(above, column, group_rows, *[scores[:size]] * 6)
    assert (walk.row, walk.column) == (300, len(subject))
    with pytest.raises(ValueError, match="outside the matrix"):
        walk_of(query, subject, "global", 301, 5)

"""The native alignments, compared with the definition, with parasail, and with other settings of the same function."""

import time
from itertools import groupby

import numpy as np
import parasail
import pytest

from swsearch import _native
from swsearch.engine.cpu.engine import usable_instruction_sets
from tests.pairs.whole_matrix import whole_matrix
from tests.patience import interrupt

IDENTITY = np.arange(32, dtype=np.uint8)
GAPS = [(0, 1), (0, 2), (1, 0), (3, 0), (2, 1), (5, 2), (1, 1), (11, 1), (100, 50), (16383, 16383)]
EMPTY = (0, 0, 0, 0, 0, "", 0, 0, 0, 0, 0)


def align(query, rows, table, gap, subject, **others):
    starts, lengths = np.array([0], np.uint64), np.array([len(subject)], np.uint32)
    (found,) = _native.align_local(query, rows, table, *gap, IDENTITY, subject, starts, lengths, **others)
    return found[0] if found else EMPTY


def expected(query, rows, table, gap, subject):
    """Return the complete tuple by the definition, with CIGAR and counts from the operations, column by column."""
    pairs = table[rows][:, subject].astype(int) if len(rows) and len(subject) else np.zeros((len(rows), len(subject)))
    score, i, i_end, j, j_end, operations = whole_matrix(pairs, *gap)
    row, column, letters, positives = i, j, "", 0
    for operation in operations:
        if operation == "M":
            letters += "=" if query[row] == subject[column] else "X"
            positives += int(pairs[row, column] > 0)
        else:
            letters += operation
        row += operation != "D"
        column += operation != "I"
    runs = [(letter, len(list(run))) for letter, run in groupby(letters)]
    cigar = "".join(f"{length}{letter}" for letter, length in runs)
    gaps = sum(letter in "ID" for letter, _ in runs)
    filled = letters.count("I") + letters.count("D")
    return (score, i, i_end, j, j_end, cigar, letters.count("="), positives, len(letters), gaps, filled)


def random_case(rng):
    """Draw a pair of few letters, so that ties are frequent; half are related; 30 % have one table row per position."""
    m, n = (int(x) for x in rng.integers(0, 60, 2))
    n_letters = int(rng.integers(1, 6))
    query = rng.integers(0, n_letters, m).astype(np.uint8)
    subject = rng.integers(0, n_letters, n).astype(np.uint8)
    if m and rng.random() < 0.5:
        subject = np.concatenate([subject[: n // 2], query, query[m // 2 :]])
        subject = np.ascontiguousarray(np.delete(subject, rng.integers(0, len(subject), len(subject) // 8)))
    if rng.random() < 0.3:
        table = rng.integers(-5, 6, (max(m, 1), 32)).astype(np.int8)
        return query, np.arange(m, dtype=np.int32), table, GAPS[rng.integers(len(GAPS))], subject
    table = rng.integers(-4, 1, (32, 32)).astype(np.int8)
    np.fill_diagonal(table, rng.integers(1, 6))
    return query, query.astype(np.int32), table, GAPS[rng.integers(len(GAPS))], subject


@pytest.mark.parametrize("seed", range(8))
def test_alignments_are_those_of_the_definition(seed):
    """Expected: the full-matrix traceback of full_matrix_path.py, every field, every instruction set."""
    rng = np.random.default_rng(seed)
    instruction_sets = usable_instruction_sets()
    for _ in range(400):
        case = random_case(rng)
        want = expected(*case)
        for instruction_set in instruction_sets:
            assert align(*case, instruction_set=instruction_set) == want, (instruction_set, case)


@pytest.mark.parametrize("seed", range(3))
def test_memory_changes_nothing(seed):
    """Expected: the full-matrix traceback, for any limit of the memory for decisions."""
    rng = np.random.default_rng(100 + seed)
    for _ in range(250):
        case = random_case(rng)
        want = expected(*case)
        for memory_bytes in (0, 1, 17, 100, 1000):
            assert align(*case, memory_bytes=memory_bytes) == want, (memory_bytes, case)


def test_long_pairs_give_the_same_path_in_other_ways():
    """Expected: the path with memory for all columns; the best one alone of the longest is found by diamonds."""
    rng = np.random.default_rng(7)
    table = np.full((32, 32), -2, np.int8)
    np.fill_diagonal(table, 1)
    for gap in ((0, 1), (2, 1), (1, 0), (16383, 16383)):
        longest = 18_000 if gap[0] > 2 else 9000  # with such costs, scores of diamonds would leave 30 bits
        for length, ways in ((1500, [{"memory_bytes": 10}, {"memory_bytes": 5000}]), (longest, [{"most": 2}])):
            query = rng.integers(0, 3, length).astype(np.uint8)
            subject = np.ascontiguousarray(np.delete(query, rng.integers(0, length, length // 10)))
            subject[rng.integers(0, len(subject), 100)] = 1
            want = align(query, query.astype(np.int32), table, gap, subject)
            assert want[0] > 0
            for way in ways:
                assert align(query, query.astype(np.int32), table, gap, subject, **way) == want


@pytest.mark.parametrize("gap", [(0, 1), (11, 1), (40, 3), (5, 0), (0, 150), (300, 250)])
def test_gaps_across_many_lanes_are_exact(gap):
    """Expected: the full-matrix traceback. Gaps skip up to a third of the query, of which every lane has a few rows."""
    rng = np.random.default_rng(sum(gap))
    for largest in (9, 120):
        table = rng.integers(-largest, 1, (32, 32)).astype(np.int8)
        np.fill_diagonal(table, largest)
        for length in (33, 200, 650):
            query = rng.integers(0, 20, length).astype(np.uint8)
            first, last = np.sort(rng.integers(0, length, 2)) if length < 200 else (length // 3, 2 * length // 3)
            subject = np.ascontiguousarray(np.delete(query, slice(first, last)))
            subject[rng.integers(0, len(subject), len(subject) // 10)] = 1
            case = query, query.astype(np.int32), table, gap, subject
            want = expected(*case)
            for instruction_set in usable_instruction_sets():
                assert align(*case, instruction_set=instruction_set) == want, (instruction_set, largest, length)


def test_scores_beyond_16_bits_are_exact():
    """Expected by hand: 6,000 identical tryptophans at 11 each, one gap of 3 residues at 11 + 3."""
    table = np.full((32, 32), -4, np.int8)
    table[17, 17] = 11
    query = np.full(6000, 17, np.uint8)
    rng = np.random.default_rng(3)
    other = rng.integers(0, 20, 6000).astype(np.uint8)
    blosum = np.full((32, 32), -4, np.int8)
    np.fill_diagonal(blosum, 11)
    broken = np.ascontiguousarray(np.concatenate([other[:3000], (other[3000:3003] + 1) % 20, other[3000:]]))
    for instruction_set in usable_instruction_sets():
        assert align(query, query.astype(np.int32), table, (11, 1), query, instruction_set=instruction_set)[:6] == (
            66000, 0, 6000, 0, 6000, "6000=",
        )  # fmt: skip
        found = align(other, other.astype(np.int32), blosum, (11, 1), broken, instruction_set=instruction_set)
        assert found[0] == 66000 - 14
        assert found[10] == 3


def test_scores_are_parasails():
    """Expected: parasail's striped 32-bit Smith-Waterman, with open + extend; its end is one of the optimal ends."""
    rng = np.random.default_rng(11)
    letters = "ARNDCQEGHILKMFPSTWYV"
    matrix = parasail.blosum62
    table = np.full((32, 32), -4, np.int8)
    table[:20, :20] = matrix.matrix[:20, :20]
    for _ in range(150):
        m, n = rng.integers(1, 500, 2)
        query, subject = (rng.integers(0, 20, k).astype(np.uint8) for k in (m, n))
        if rng.random() < 0.5:
            subject = np.ascontiguousarray(np.concatenate([subject[:20], query[m // 4 :]]))
        text = ["".join(letters[c] for c in codes) for codes in (query, subject)]
        open_, extend = ((11, 1), (9, 2), (3, 3))[rng.integers(3)]
        theirs = parasail.sw_trace_striped_32(*text, open_ + extend, extend, matrix).score
        assert align(query, query.astype(np.int32), table, (open_, extend), subject)[0] == theirs


def test_soft_mask_and_strange_bytes_do_not_score():
    """Expected: the alignment of the same letters without flags; the bits above the code have no effect on scores."""
    rng = np.random.default_rng(5)
    table = np.full((32, 32), -1, np.int8)
    np.fill_diagonal(table, 2)
    query = rng.integers(0, 4, 80).astype(np.uint8)
    subject = rng.integers(0, 4, 90).astype(np.uint8)
    masked = subject | np.where(rng.random(90) < 0.5, 0x20, 0).astype(np.uint8)
    rows = query.astype(np.int32)
    assert align(query | 0x20, rows, table, (1, 1), masked) == align(query, rows, table, (1, 1), subject)


def batch(n_subjects, seed=21):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 300, n_subjects).astype(np.uint32)
    starts = (np.concatenate([[0], np.cumsum(lengths)[:-1]]) + 5).astype(np.uint64)
    residues = rng.integers(0, 4, int(lengths.sum()) + 10).astype(np.uint8)
    table = np.full((32, 32), -3, np.int8)
    np.fill_diagonal(table, 2)
    query = rng.integers(0, 4, 120).astype(np.uint8)
    return query, table, residues, starts, lengths


def test_threads_change_nothing():
    """Expected: the result for each subject alone."""
    query, table, residues, starts, lengths = batch(60)
    rows = query.astype(np.int32)
    alone = [
        align(query, rows, table, (5, 2), residues[int(s) : int(s) + int(n)])
        for s, n in zip(starts, lengths, strict=True)
    ]
    cells = []
    for n_threads in (1, 2, 5):
        args = (residues, starts, lengths, n_threads)
        together = _native.align_local(query, rows, table, 5, 2, IDENTITY, *args, progress=cells.append)
        assert [found[0] if found else EMPTY for found in together] == alone
    assert sum(cells) == 3 * len(query) * int(lengths.sum())


@pytest.mark.parametrize("seed", range(4))
def test_given_ends_change_no_alignment(seed):
    """Expected: the full-matrix traceback; subjects have many more columns on both sides than their alignments span."""
    rng = np.random.default_rng(200 + seed)
    for _ in range(150):
        query, rows, table, gap, subject = random_case(rng)
        around = [rng.integers(0, 4, int(n)).astype(np.uint8) for n in rng.integers(0, 120, 2)]
        case = (query, rows, table, gap, np.concatenate([around[0], subject, around[1]]))
        want = expected(*case)
        ends = np.array([[want[0], want[2], want[4]]], dtype=np.int64)
        for instruction_set in usable_instruction_sets():
            assert align(*case, instruction_set=instruction_set, ends=ends) == want, (instruction_set, case)


def test_a_given_end_spares_the_columns_before_and_after_it():
    """By hand: 50 bases score at most 100, so an alignment of score 100 has no gap and spans 50 columns."""
    rng = np.random.default_rng(9)
    query = rng.integers(0, 4, 50).astype(np.uint8)
    subject = rng.integers(0, 4, 5000).astype(np.uint8)
    subject[3000:3050] = query
    table = np.full((32, 32), -3, np.int8)
    np.fill_diagonal(table, 2)
    args = (query, query.astype(np.int32), table, 5, 2, IDENTITY, subject, np.zeros(1, np.uint64))
    cells = []
    found = [
        _native.align_local(*args, np.array([5000], np.uint32), progress=cells.append, ends=ends)
        for ends in (None, np.array([[100, 50, 3050]], np.int64))
    ]
    assert found[0] == found[1]
    assert cells == [50 * 5000, 50 * 50]


def test_a_given_end_that_is_none_is_not_the_end_of_the_path():
    """By hand: the query lies at 20 and 60; ends with a wrong column, row or score are not the end of the path."""
    query = np.arange(20, dtype=np.uint8)
    table = np.full((32, 32), -3, np.int8)
    np.fill_diagonal(table, 2)
    subject = np.full(100, 25, np.uint8)
    subject[20:40] = subject[60:80] = query
    case = (query, query.astype(np.int32), table, (5, 2), subject)
    for score, row, column in ((40, 20, 39), (40, 19, 40), (38, 20, 40), (40, 20, 90)):
        found = align(*case, ends=np.array([[score, row, column]], np.int64))
        assert (found[0], found[2], found[4]) != (score, row, column)
    assert align(*case, ends=np.array([[40, 20, 0]], np.int64)) == EMPTY


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.array([0, 40], np.int32)}, r"rows\[1\] is not a row"),
        ({"rows": np.array([0, -1], np.int32)}, r"rows\[1\] is not a row"),
        ({"rows": np.array([0], np.int32)}, "differ in length"),
        ({"starts": np.array([11], np.uint64)}, "subject 0 leaves"),
        ({"starts": np.array([2**64 - 1], np.uint64)}, "subject 0 leaves"),
        ({"lengths": np.array([11], np.uint32)}, "subject 0 leaves"),
        ({"lengths": np.array([1, 1], np.uint32)}, "starts and lengths"),
        ({"gap_open": -1}, "gap costs"),
        ({"gap_open": 0, "gap_extend": 0}, "cost nothing"),
        ({"identity": np.zeros(4, np.uint8)}, "32 entries"),
        ({"instruction_set": "mmx"}, "no instruction set is named mmx"),
        ({"ends": np.zeros((2, 3), np.int64)}, "ends and lengths"),
        ({"ends": np.array([[1, 3, 1]], np.int64)}, "end of subject 0 leaves"),
        ({"ends": np.array([[1, 1, 11]], np.int64)}, "end of subject 0 leaves"),
        ({"ends": np.array([[-1, 1, 1]], np.int64)}, "end of subject 0 leaves"),
        ({"ends": np.zeros((1, 3), np.int64), "most": 2}, "leave most at 1"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    """Expected by hand: every index outside its array is detected before anything is read."""
    given = {
        "query_codes": np.zeros(2, np.uint8), "rows": np.zeros(2, np.int32), "table": np.zeros((32, 32), np.int8),
        "gap_open": 1, "gap_extend": 1, "identity": IDENTITY, "residues": np.zeros(10, np.uint8),
        "starts": np.zeros(1, np.uint64), "lengths": np.full(1, 10, np.uint32),
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        _native.align_local(**(given | change))


def long_work(n_subjects=200):
    """Return arguments for which the scalar kernel needs a third of a second per subject of 100,000 residues."""
    rng = np.random.default_rng(1)
    table = np.full((32, 32), -3, np.int8)
    np.fill_diagonal(table, 2)
    query = rng.integers(0, 4, 1000).astype(np.uint8)
    residues = rng.integers(0, 4, 100_000).astype(np.uint8)
    starts, lengths = np.zeros(n_subjects, np.uint64), np.full(n_subjects, 100_000, np.uint32)
    return query, query.astype(np.int32), table, 5, 2, IDENTITY, residues, starts, lengths, 2


def test_an_interrupt_ends_the_work_soon():
    """Expected: less than half of the processor time of all subjects, estimated from that of a fiftieth of them."""
    began = time.process_time()
    _native.align_local(*long_work(4), instruction_set="scalar")
    whole_seconds = 50 * (time.process_time() - began)
    began = time.process_time()
    interrupt(lambda: _native.align_local(*long_work(), instruction_set="scalar"))
    assert time.process_time() - began < whole_seconds / 2


def test_what_progress_raises_is_passed_on():
    """Expected: the caller's own exception."""

    def refuse(cells: int) -> None:
        raise RuntimeError(f"enough after {cells > 0}")

    with pytest.raises(RuntimeError, match="enough after True"):
        _native.align_local(*long_work(), progress=refuse, instruction_set="scalar")

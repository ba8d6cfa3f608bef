"""Scores and ends of pairs by diamonds, with all host code and kernels, on the emulated device.

The expected ends are those of the full matrix (``tests/pairs/whole_matrix.py``), of parasail, of edlib, or of the CPU's
pair kernels where a matrix in Python would take too long.
"""

import dataclasses

import numpy as np
import pytest

from swsearch.engine.cuda.pairs import diamond_launch
from swsearch.engine.cuda.pairs.diamond_launch import PairEnd
from swsearch.engine.cuda.pairs.diamond_plan import SweepShape, choose_shape, table_columns
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import OutOfDeviceMemory
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds
from swsearch.errors import InputError
from swsearch.pairs.pair_alignment import align_pair
from swsearch.pairs.sequence import PairSequence
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.pairs.whole_matrix import PROBLEMS, judged
from tests.peers import oracle

NARROW = SweepShape(narrow=True, words=2)
WIDE = SweepShape(narrow=False, words=2)
S = NARROW.strip_rows


def related(seed: int, m: int, n: int, n_letters: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return two sequences; the beginning of one is a mutated copy of the other's beginning."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, n_letters, m).astype(np.uint16)
    subject = rng.integers(0, n_letters, n).astype(np.uint16)
    shared = min(m, n) * 2 // 3
    subject[:shared] = np.where(rng.random(shared) < 0.2, subject[:shared], query[:shared])
    return query, subject


def by_definition(query: np.ndarray, subject: np.ndarray, p: AlignmentProblem) -> PairEnd:
    """Return the end according to the full matrix."""
    wanted = judged(query, subject, p)
    return PairEnd(wanted.score, wanted.query_end, wanted.subject_end)


def problems(*, local: bool, affine: bool, costs: list[tuple[int, int]], tables: bool) -> list[AlignmentProblem]:
    """Return problems for one kernel: all free ends, several costs, and score tables."""
    rng = np.random.default_rng(1)
    gaps = [(5, 2), (11, 1), (3, 0)] if affine else [(0, 2), (0, 1)]
    found = []
    modes = ["local"] * 3 if local else list(PROBLEMS)[1:]
    for number, mode in enumerate(modes):
        table = rng.integers(-6, 9, (4, 4)).astype(np.int8) if number % 2 and tables else None
        gap, (match, mismatch) = gaps[number % len(gaps)], costs[number % len(costs)]
        found.append(AlignmentProblem(*PROBLEMS[mode], *gap, match, mismatch, table))
    return found


LENGTHS = [(1, 1), (S - 1, 9), (S, 32), (S + 1, 33), (1, 200), (150, 1), (2 * S + 5, 40), (70, 97)]
SMALL = [(2, -3), (1, -1), (5, -4)]
LARGE = [(150, -200), (127, -129)]


@pytest.mark.parametrize(
    ("shape", "local", "affine", "costs", "n_letters"),
    [
        (NARROW, True, True, SMALL, 4),
        (NARROW, False, True, SMALL, 4),
        (NARROW, True, False, SMALL, 60),
        (NARROW, False, False, [(0, -1), (1, -1)], 60),
        (WIDE, True, True, LARGE, 4),
        (WIDE, False, True, SMALL, 4),
    ],
)
def test_ends_are_as_defined(
    emulated: MakeDevice, shape: SweepShape, local: bool, affine: bool, costs: list[tuple[int, int]], n_letters: int
) -> None:
    """Expected: the full matrix. 1, S - 1, S, S + 1, several S rows, 1 x n, m x 1; letters looked up and compared."""
    device = emulated()
    sweep = DiamondSweep(device, shape=shape)
    pairs = [related(seed, m, n, n_letters) for seed, (m, n) in enumerate(LENGTHS)]
    for problem in problems(local=local, affine=affine, costs=costs, tables=n_letters == 4 and costs is SMALL):
        assert shape.fits(problem)
        assert (table_columns(pairs, problem) is None) == (n_letters == 60 or costs is LARGE)
        found = sweep.ends(pairs, problem)
        assert found == [by_definition(query, subject, problem) for query, subject in pairs]
    assert device.used_bytes == 0


@pytest.mark.parametrize("words", [4, 8])
def test_more_words_a_lane_change_nothing(emulated: MakeDevice, words: int) -> None:
    """Expected: the full matrix."""
    shape = SweepShape(narrow=True, words=words)
    s = shape.strip_rows
    pairs = [related(words, s - 1, 40), related(words, s + 1, 90)]
    for problem in problems(local=words == 8, affine=words == 8, costs=SMALL, tables=True)[:2]:
        found = DiamondSweep(emulated(), shape=shape).ends(pairs, problem)
        assert found == [by_definition(query, subject, problem) for query, subject in pairs]


def test_threads_in_reverse_order_and_more_strips_than_run_at_a_time(emulated: MakeDevice) -> None:
    """A race would make the result depend on the order of threads; three warps compute thirteen strips."""
    pair = related(5, 12 * S + 1, 150)
    problem = AlignmentProblem(True, FreeEnds.ALL, 5, 2, 2, -3)
    ends = {
        reverse: DiamondSweep(emulated(reversed_order=reverse, multiprocessors=1), shape=NARROW).ends([pair], problem)
        for reverse in (False, True)
    }
    assert ends[True] == ends[False] == [by_definition(*pair, problem)]


def test_risotto_becomes_presto_in_four_edits(emulated: MakeDevice) -> None:
    """The count is that of the well-known exercise; the texts are compared with edlib and rapidfuzz."""
    edlib, similarity = oracle("edlib"), oracle("rapidfuzz.distance").LCSseq.similarity
    gpu = DiamondSweep(emulated())
    assert align_pair(PairSequence("", "RISOTTO"), PairSequence("", "PRESTO"), "edit", backend=gpu).score == 4
    rng = np.random.default_rng(2)
    one = "".join(map(chr, rng.integers(0x3B0, 0x400, 170)))
    other = one[20:100] + one[:30] + one[90:]
    distance = edlib.align(one, other, additionalEqualities=None)["editDistance"]
    for path in (False, True):
        query, subject = PairSequence("", one), PairSequence("", other)
        assert align_pair(query, subject, "edit", backend=gpu, path=path).score == distance
        assert align_pair(query, subject, "lcs", backend=gpu, path=path).score == similarity(one, other)


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_scores_are_parasails(emulated: MakeDevice, mode: str) -> None:
    """Expected: parasail's 32-bit scan kernels, with open + extend as their open."""
    parasail = oracle("parasail")
    codes = related(7, 600, 500)
    text = ["".join("ACGT"[letter] for letter in side) for side in codes]
    problem = AlignmentProblem(*PROBLEMS[mode], 5, 2, 2, -3)
    function = {"local": parasail.sw_scan_32, "global": parasail.nw_scan_32, "semiglobal": parasail.sg_scan_32}[mode]
    wanted = function(*text, 7, 2, parasail.matrix_create("ACGT", 2, -3)).score
    assert DiamondSweep(emulated()).ends([codes], problem)[0].score == wanted


def test_scores_that_no_diamond_holds_in_16_bits_are_done_in_32(emulated: MakeDevice) -> None:
    """Expected: the full matrix. Gap costs of 2,300 exceed 16 bits in any diamond."""
    device = emulated()
    pair = related(8, 200, 60)
    for local in (True, False):
        problem = AlignmentProblem(local, FreeEnds.NONE, 2000, 300, 900, -1000)
        lengths = [(len(pair[0]), len(pair[1]))]
        assert not choose_shape(problem, lengths, table_columns([pair], problem), device.facts).narrow
        assert DiamondSweep(device).ends([pair], problem) == [by_definition(*pair, problem)]


def test_a_device_with_little_shared_memory_gets_narrower_strips(emulated: MakeDevice) -> None:
    """28 letters and 8 words per lane need 60 KB per block; a device of 32 KB uses fewer words, with equal results."""
    device = emulated()
    pair = related(9, 900, 200, 28)
    problem = AlignmentProblem(False, FreeEnds.NONE, 5, 2, 2, -3)
    shapes = []
    for shared_bytes in (227 * 1024, 32 * 1024):
        device.facts = dataclasses.replace(device.facts, shared_bytes=shared_bytes, multiprocessors=1)
        shapes.append(choose_shape(problem, [(100_000, 200)], table_columns([pair], problem), device.facts))
        assert DiamondSweep(device).ends([pair], problem) == [by_definition(*pair, problem)]
    assert shapes[0].words > shapes[1].words


def test_a_long_sweep_is_several_launches(emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expected: the full matrix; the horizon is retained between launches; progress counts all cells with padding."""
    monkeypatch.setattr(diamond_launch, "CELLS_PER_LAUNCH", 2 * S * 100)
    device = emulated()
    pair = related(4, 5 * S + 1, 100)
    reported: list[int] = []
    problem = AlignmentProblem(True, FreeEnds.ALL, 5, 2, 2, -3)
    sweep = DiamondSweep(device, shape=NARROW)
    assert sweep.ends([pair], problem, reported.append) == [by_definition(*pair, problem)]
    assert [entry for entry, _ in device.launches] == ["sweep_pairs"] * 3 + ["locate_best"]
    assert sum(reported) == 6 * S * 100


def test_memory_grows_with_the_lengths(emulated: MakeDevice) -> None:
    """Twice the lengths need about twice the memory, measured as bytes that the device allocated."""
    problem = AlignmentProblem(True, FreeEnds.ALL, 5, 2, 2, -3)
    bytes_of = []
    for factor in (1, 2):
        device = emulated()
        DiamondSweep(device, shape=NARROW).ends([related(1, factor * 4 * S, factor * 320)], problem)
        bytes_of.append(device.peak_bytes)
    assert bytes_of[1] < 2.1 * bytes_of[0]


LOCAL = AlignmentProblem(True, FreeEnds.ALL, 5, 2, 2, -3)


def memory_for(emulated: MakeDevice, pairs: list[tuple[np.ndarray, np.ndarray]]) -> int:
    """Return the bytes that pairs need concurrently, measured on a device with sufficient memory."""
    device = emulated()
    DiamondSweep(device).ends(pairs, LOCAL)
    return device.peak_bytes


@pytest.mark.parametrize("n_at_once", [3, 2, 1])
def test_pairs_beyond_the_memory_go_in_groups(emulated: MakeDevice, n_at_once: int) -> None:
    """Expected: the full matrix. Seven pairs are halved to three and to one, and all device memory is freed."""
    pairs = [related(seed, 2 * S, 90) for seed in range(7)]
    device = emulated(memory_bytes=memory_for(emulated, pairs[:n_at_once]))
    reported: list[int] = []
    assert DiamondSweep(device).ends(pairs, LOCAL, reported.append) == [by_definition(*pair, LOCAL) for pair in pairs]
    n_sweeps = sum(entry == "sweep_pairs" for entry, _ in device.launches)
    assert n_sweeps == (3 if n_at_once == 3 else 7)
    assert sum(reported) == 7 * 2 * S * 90
    assert device.used_bytes == 0


def test_a_pair_that_does_not_fit_is_one_clear_line(emulated: MakeDevice) -> None:
    """The memory is a kilobyte less than a pair needs, alone and among others; smaller pairs can then be aligned."""
    large, small = related(1, 4 * S, 900), related(2, 30, 40)
    device = emulated(memory_bytes=memory_for(emulated, [large]) - 1024)
    sweep = DiamondSweep(device)
    for pairs in ([large], [small, large, small]):
        with pytest.raises(OutOfDeviceMemory) as caught:
            sweep.ends(pairs, LOCAL)
        line = "emulated device has 0.0 GB free, no room for 512 against 900 letters; choose --engine cpu"
        assert str(caught.value) == line
        assert device.used_bytes == 0
    assert sweep.ends([small], LOCAL) == [by_definition(*small, LOCAL)]


def test_other_memory_is_freed_for_a_pair(emulated: MakeDevice) -> None:
    """Another owner retains a third of the memory, because one pair fits; two thirds must be freed."""
    pairs = [related(seed, 2 * S, 90) for seed in range(2)]
    device = emulated(memory_bytes=2 * memory_for(emulated, pairs[:1]))
    others = device.allocate(device.facts.memory_bytes // 3)
    asked: list[int] = []

    def make_room() -> None:
        asked.append(device.used_bytes)
        others.free()

    sweep = DiamondSweep(device, make_room)
    assert sweep.ends(pairs, LOCAL) == [by_definition(*pair, LOCAL) for pair in pairs]
    assert asked == []
    others.free()
    others = device.allocate(device.facts.memory_bytes * 2 // 3)
    assert sweep.ends(pairs, LOCAL) == [by_definition(*pair, LOCAL) for pair in pairs]
    assert asked == [others.n_bytes]


def test_empty_sides_need_no_device_work(emulated: MakeDevice) -> None:
    """Expected: the CPU's kernels, which are compared with the full matrix in other tests."""
    device = emulated()
    full, empty = related(1, 30, 30)[0], np.empty(0, np.uint16)
    for query, subject in [(full, empty), (empty, full), (empty, empty)]:
        for problem in problems(local=False, affine=True, costs=SMALL, tables=False):
            assert DiamondSweep(device).ends([(query, subject)], problem) == [by_definition(query, subject, problem)]
    assert device.launches == []


def test_what_the_kernels_cannot_do_is_refused(emulated: MakeDevice) -> None:
    sweep = DiamondSweep(emulated())
    pair = related(1, 5, 5)
    with pytest.raises(InputError, match="split them"):
        sweep.ends([pair], AlignmentProblem(False, FreeEnds.NONE, 16_383, 16_383, 1 << 28, -1))
    with pytest.raises(InputError, match="split them"):
        sweep.ends([pair], AlignmentProblem(True, FreeEnds.ALL, 1, 1, 1 << 29, -1))
    with pytest.raises(InputError, match="up to 16383"):
        sweep.ends([pair], AlignmentProblem(True, FreeEnds.ALL, 16_384, 16_384, 1, -1))
    with pytest.raises(InputError, match="cost nothing"):
        sweep.ends([pair], AlignmentProblem(True, FreeEnds.ALL, 0, 0, 1, -1))
    with pytest.raises(InputError, match="--engine cpu"):
        sweep.ends([pair], AlignmentProblem(True, FreeEnds.ALL, 1, 1, 2, 1))

"""Paths of pairs on the emulated device: checkpoints of strips, bands, and the blocks on the path.

The expected paths are those of the full matrix (``tests/pairs/whole_matrix.py``), or, where a matrix in Python would
take too long, of the CPU's pair kernels, which are compared with that matrix in other tests.
"""

import numpy as np
import pytest

from swsearch.engine.cpu.pairs import CpuPairs
from swsearch.engine.cuda.pairs import diamond_launch
from swsearch.engine.cuda.pairs.diamond_launch import strip_bytes
from swsearch.engine.cuda.pairs.diamond_plan import CHECKPOINT_COLUMNS, SweepShape
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import OutOfDeviceMemory
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, SequencePairs
from swsearch.pairs.pair_alignment import MODES, align_pair, scheme_scoring
from swsearch.pairs.sequence import PairSequence, from_record
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import DNA
from swsearch.sequences.record import SequenceRecord
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice, MakeDevice
from tests.pairs.whole_matrix import PROBLEMS, Judged, found, judged

Pair = tuple[np.ndarray, np.ndarray]

NARROW = SweepShape(narrow=True, words=2)
WIDE = SweepShape(narrow=False, words=2)
S = NARROW.strip_rows
BLOCK = CHECKPOINT_COLUMNS


def broken(seed: int, m: int, n: int, n_letters: int = 4) -> Pair:
    """Return two sequences that agree before and after a long gap; few letters give many paths of equal score."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, n_letters, m).astype(np.uint16)
    subject = rng.integers(0, n_letters, n).astype(np.uint16)
    shared = min(m, n)
    subject[: shared // 3] = query[: shared // 3]
    subject[n - shared // 2 :] = query[m - shared // 2 :]
    changed = rng.random(n) < 0.15
    subject[changed] = rng.integers(0, n_letters, int(changed.sum()))
    return query, subject


def by_device(device: EmulatedDevice, pair: Pair, problem: AlignmentProblem, memory_bytes: int = 1 << 20,
              shape: SweepShape | None = NARROW) -> Judged:  # fmt: skip
    sweep = DiamondSweep(device, memory_bytes=memory_bytes, shape=shape)
    (aligned,) = found(sweep.align(SequencePairs.of([pair]), problem))
    assert device.used_bytes == 0
    return aligned


def by_cpu(pair: Pair, problem: AlignmentProblem) -> Judged:
    return found(CpuPairs().align(SequencePairs.of([pair]), problem))[0]


LENGTHS = [(1, 2 * BLOCK + 5), (150, 1), (S, BLOCK), (S + 1, BLOCK + 1), (2 * S - 3, 2 * BLOCK + 9)]


@pytest.mark.parametrize(
    ("shape", "gap", "costs", "n_letters", "tables"),
    [
        (NARROW, (5, 2), (2, -3), 4, True),
        (NARROW, (0, 2), (1, -1), 2, False),
        (NARROW, (3, 0), (2, -3), 60, False),
        (WIDE, (2000, 300), (900, -1000), 3, False),
    ],
)
def test_paths_are_as_defined(
    emulated: MakeDevice, shape: SweepShape, gap: tuple[int, int], costs: tuple[int, int], n_letters: int, tables: bool
) -> None:
    """Expected: the full matrix. Lengths near a strip and near a checkpoint, all ends, letters of all kinds."""
    rng = np.random.default_rng(n_letters)
    device = emulated()
    for number, ends in enumerate(PROBLEMS.values()):
        for index, (m, n) in enumerate(LENGTHS):
            if (number + index) % 2 and index < 4:
                continue
            table = rng.integers(-6, 9, (4, 4)).astype(np.int8) if tables and index % 2 else None
            problem = AlignmentProblem(*ends, *gap, *costs, table)
            pair = broken(10 * number + index, m, n, n_letters)
            assert by_device(device, pair, problem, shape=shape) == judged(*pair, problem)


@pytest.mark.parametrize("words", [4, 8])
@pytest.mark.parametrize("local", [True, False])
def test_more_words_a_lane_change_no_path(emulated: MakeDevice, words: int, local: bool) -> None:
    """Expected: the CPU's alignment."""
    shape = SweepShape(narrow=True, words=words)
    problem = AlignmentProblem(local, FreeEnds.NONE, 1, 1, 2, -2)
    for seed, (m, n) in enumerate([(shape.strip_rows - 1, 3 * BLOCK), (2 * shape.strip_rows + 7, 1400)]):
        pair = broken(seed, m, n, 3)
        assert by_device(emulated(), pair, problem, shape=shape) == by_cpu(pair, problem)


@pytest.mark.parametrize("local", [True, False])
def test_bands_that_little_memory_cuts_change_no_path(emulated: MakeDevice, local: bool) -> None:
    """Expected: the CPU's alignment. Memory suffices for the checkpoints of all strips, of some, or of one."""
    pair = broken(3, 12 * S - 5, 900)
    problem = AlignmentProblem(local, FreeEnds.NONE, 5, 2, 2, -3)
    wanted = by_cpu(pair, problem)
    roomy = emulated()
    DiamondSweep(roomy, shape=NARROW).ends([pair], problem)
    a_strip = strip_bytes(NARROW, 900)
    n_sweeps = []
    for strips, memory_bytes in [(100, 1), (14, 1 << 20), (6, 1), (2, 1)]:
        device = emulated(memory_bytes=roomy.peak_bytes + strips * a_strip)
        assert by_device(device, pair, problem, memory_bytes) == wanted
        n_sweeps.append([entry for entry, _ in device.launches].count("trace_pairs"))
    assert n_sweeps[0] == 1
    assert n_sweeps == sorted(n_sweeps)
    assert n_sweeps[-1] > 6  # one per strip, and sweeps for the rows between checkpoints


def test_a_path_without_room_for_one_strip_is_one_clear_line(emulated: MakeDevice) -> None:
    """The end alone can be found in the same memory."""
    pair = broken(3, 4 * S, 5000)
    problem = AlignmentProblem(True, FreeEnds.ALL, 5, 2, 2, -3)
    roomy = emulated()
    ends = DiamondSweep(roomy, shape=NARROW).ends([pair], problem)
    device = emulated(memory_bytes=roomy.peak_bytes + strip_bytes(NARROW, 5000) // 2)
    sweep = DiamondSweep(device, memory_bytes=1, shape=NARROW)
    assert sweep.ends([pair], problem) == ends
    with pytest.raises(OutOfDeviceMemory, match=r"no room for 512 against 5,000 letters; choose --engine cpu"):
        sweep.align(SequencePairs.of([pair]), problem)
    assert device.used_bytes == 0


def test_other_memory_is_freed_for_a_path(emulated: MakeDevice) -> None:
    """Expected: the CPU's alignment; the other memory of the device is freed exactly once."""
    pair = broken(4, 3 * S, 600)
    problem = AlignmentProblem(False, FreeEnds.NONE, 5, 2, 2, -3)
    roomy = emulated()
    DiamondSweep(roomy, shape=NARROW).ends([pair], problem)
    device = emulated(memory_bytes=roomy.peak_bytes + 4 * strip_bytes(NARROW, 600))
    others = device.allocate(4 * strip_bytes(NARROW, 600))
    asked = []

    def make_room() -> None:
        asked.append(True)
        others.free()

    sweep = DiamondSweep(device, make_room, memory_bytes=1 << 20, shape=NARROW)
    aligned = sweep.align(SequencePairs.of([pair]), problem)
    assert found(aligned) == [by_cpu(pair, problem)]
    assert asked == [True]


@pytest.mark.parametrize("local", [True, False])
def test_a_path_in_reverse_order_and_in_several_launches(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    """Expected: the CPU's alignment. The reversed thread order reveals races, several launches a lost horizon."""
    pair = broken(6, 9 * S + 1, 700)
    problem = AlignmentProblem(local, FreeEnds.ALL, 5, 2, 2, -3)
    wanted = by_cpu(pair, problem)
    monkeypatch.setattr(diamond_launch, "CELLS_PER_LAUNCH", 3 * S * 700)
    for reverse in (False, True):
        device = emulated(reversed_order=reverse, multiprocessors=1)
        assert by_device(device, pair, problem) == wanted
        assert [entry for entry, _ in device.launches].count("trace_pairs") >= 3


@pytest.mark.parametrize("mode", MODES)
def test_alignments_are_the_cpus(emulated: MakeDevice, mode: str) -> None:
    """Expected: the CPU's alignment, through the functions that the command line calls."""
    codes = broken(3, 1300, 700)
    sides = [from_record(SequenceRecord("x", side.astype(np.uint8), DNA)) for side in codes]
    scoring = scheme_scoring(default_scheme(DNA))
    if mode in ("edit", "lcs"):
        sides, scoring = [PairSequence("x", "".join("ACGT"[letter] for letter in side)) for side in codes], None
    wanted = align_pair(*sides, mode, scoring)
    aligned = align_pair(*sides, mode, scoring, backend=DiamondSweep(emulated()))
    for name in ("cigar", "score", "query_start", "query_end", "subject_start", "subject_end"):
        assert getattr(aligned, name) == getattr(wanted, name)

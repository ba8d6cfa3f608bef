"""Pairs by diamonds on a GPU. The expected ends are those of the CPU's pair kernels, which other tests compare with the
full matrix.

The same driver and kernel run without a GPU in ``test_emulated_diamonds.py``; on a GPU, many warps run concurrently and
wait for one another.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cpu.pairs import CpuPairs
from swsearch.engine.cuda.pairs import diamonds
from swsearch.engine.cuda.pairs.diamond_launch import PairEnd, strip_bytes
from swsearch.engine.cuda.pairs.diamond_plan import SweepShape
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import Device
from swsearch.engine.cuda.runtime.kernels import SWEEP_WORDS
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, SequencePairs
from swsearch.engine.protocol import score_requests
from swsearch.pairs.pair_alignment import MODES, align_pair, scheme_scoring
from swsearch.pairs.sequence import PairSequence, from_record
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import DNA
from swsearch.sequences.record import SequenceRecord
from tests.engine.cuda.pairs.test_emulated_diamonds import related
from tests.engine.cuda.search.test_emulated_engine import assert_same

pytestmark = pytest.mark.gpu

SHAPES = [SweepShape(narrow, words) for narrow in (True, False) for words in SWEEP_WORDS]


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    opened = PyCudaDevice()
    yield opened
    opened.close()


def on_cpu(query: np.ndarray, subject: np.ndarray, p: AlignmentProblem) -> PairEnd:
    found = CpuPairs(2).align(SequencePairs.of([(query, subject)]), p, path=False)
    return PairEnd(*found.ends[0, :3].tolist())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("local", [True, False])
def test_ends_are_those_of_the_cpu(device: Device, shape: SweepShape, local: bool) -> None:
    """Many pairs per launch: lengths in every relation to a strip, free ends, tables and compared letters, all gaps."""
    rng = np.random.default_rng(shape.words)
    s = shape.strip_rows
    lengths = [
        (1, 1),
        (s - 1, 31),
        (s, 32),
        (s + 1, 33),
        (9 * s + 5, 700),
        (1, 900),
        (2000, 1),
        (3 * s, 64),
        (777, 3000),
    ]
    table = rng.integers(-6, 7, (20, 20)).astype(np.int8)
    for case in range(6):
        free = (FreeEnds.NONE, FreeEnds.ALL, FreeEnds.QUERY_START, FreeEnds.SUBJECT_END)[case % 4]
        gap = [(0, 2), (5, 2), (3, 1)][case % 3]
        problem = AlignmentProblem(local, free, *gap, 2, -3, table if case % 2 else None)
        n_letters = 20 if case % 2 else (4, 60)[case // 2 % 2]
        pairs = [related(10 * case + number, m, n, n_letters) for number, (m, n) in enumerate(lengths)]
        assert shape.fits(problem)
        found = DiamondSweep(device, shape=shape).ends(pairs, problem)
        assert found == [on_cpu(query, subject, problem) for query, subject in pairs]


@pytest.mark.parametrize("local", [True, False])
def test_more_strips_than_run_at_a_time(device: Device, local: bool) -> None:
    """Warps continue with later strips while earlier ones run; a 300,000-letter query has 2,344 strips of 128 rows."""
    pair = related(3, 300_000, 2_500)
    problem = AlignmentProblem(local, FreeEnds.ALL, 5, 2, 2, -3)
    for words in SWEEP_WORDS:
        sweep = DiamondSweep(device, shape=SweepShape(True, words))
        assert sweep.ends([pair], problem) == [on_cpu(*pair, problem)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("local", [True, False])
def test_paths_are_those_of_the_cpu(device: Device, shape: SweepShape, local: bool) -> None:
    """Expected: the CPU's kernels. Many strips run concurrently; few letters give many paths of equal score."""
    rng = np.random.default_rng(shape.words)
    table = rng.integers(-6, 7, (20, 20)).astype(np.int8)
    for case, (m, n) in enumerate([(1, 900), (2000, 1), (3 * shape.strip_rows + 5, 1024), (30_000, 27_000)]):
        gap = [(0, 2), (5, 2), (3, 1), (5, 2)][case]
        pair = SequencePairs.of([related(case, m, n, 20 if case == 2 else 3)])
        problem = AlignmentProblem(local, FreeEnds.NONE, *gap, 2, -3, table if case == 2 else None)
        found = DiamondSweep(device, memory_bytes=1 << 26, shape=shape).align(pair, problem)
        wanted = CpuPairs(2).align(pair, problem)
        assert (found.ends.tolist(), found.runs.tolist()) == (wanted.ends.tolist(), wanted.runs.tolist())


@pytest.mark.parametrize("local", [True, False])
def test_paths_through_many_bands_are_those_of_the_cpu(
    device: Device, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    """Expected: the CPU's kernels. Memory holds the output of a tenth of the strips, and two rows on the host."""
    n = 50_000
    pair = SequencePairs.of([related(8, 40_000, n)])
    problem = AlignmentProblem(local, FreeEnds.NONE, 5, 2, 2, -3)
    shape = SweepShape(True, 8)
    monkeypatch.setattr(diamonds, "PATH_SHARE", 8 * strip_bytes(shape, n) / device.free_bytes())
    found = DiamondSweep(device, memory_bytes=2 * 8 * n, shape=shape).align(pair, problem)
    wanted = CpuPairs(2).align(pair, problem)
    assert (found.ends.tolist(), found.runs.tolist()) == (wanted.ends.tolist(), wanted.runs.tolist())


def test_paths_and_scores_are_the_cpus_in_every_mode(device: Device) -> None:
    """Expected: the CPU's alignment of the same pair."""
    sweep = DiamondSweep(device)
    codes = related(5, 9_000, 12_000)
    residues = [from_record(SequenceRecord("x", side.astype(np.uint8), DNA)) for side in codes]
    texts = [PairSequence("x", "".join("ACGT"[letter] for letter in side)) for side in codes]
    for mode in MODES:
        sides, scoring = (texts, None) if mode in ("edit", "lcs") else (residues, scheme_scoring(default_scheme(DNA)))
        wanted = align_pair(*sides, mode, scoring)
        found = align_pair(*sides, mode, scoring, backend=sweep)
        alone = align_pair(*sides, mode, scoring, backend=sweep, path=False)
        assert (found.score, found.cigar, found.subject_start) == (wanted.score, wanted.cigar, wanted.subject_start)
        assert (alone.score, alone.query_end, alone.subject_end) == (
            wanted.score, wanted.query_end, wanted.subject_end,
        )  # fmt: skip


@pytest.mark.parametrize("query_length", [60, 700, 3_000, 20_000])
def test_long_subjects_are_scored_as_by_the_cpu(query_length: int) -> None:
    """Expected: the CPU engine. Three queries use windows, one uses diamonds; a subject contains the query."""
    rng = np.random.default_rng(query_length)
    query = rng.integers(0, 4, query_length).astype(np.uint8)
    subjects = [rng.integers(0, 4, length).astype(np.uint8) for length in (50, 300, 900, 30_000, 400_000)]
    subjects[4][200_000 : 200_000 + query_length] = query
    partition = Partition.pack(subjects)
    profiles = [sequence_profile(query, default_scheme(DNA)), sequence_profile(query[::-1].copy(), default_scheme(DNA))]
    with CudaEngine() as engine, CpuEngine(threads=2) as cpu:
        for floors in (None, [30, 40]):
            requests = score_requests(profiles, floors)
            assert_same(engine.score(requests, partition), cpu.score(requests, partition))

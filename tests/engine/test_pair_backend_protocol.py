"""Checks that every backend that aligns pairs gives the same result: score, ends and path.

Under test are the implementations of ``PairBackend`` (``swsearch/engine/pair_arrays.py``): the reference, the CPU with
each instruction set, and the emulated and the real GPU. The inputs are random pairs of sequences in local, global and
semi-global problems, with affine, linear and table scores. The expected values come from
``tests/pairs/whole_matrix.py``, which fills all cells in plain Python and shares no code with the program. A backend
that cannot run on this machine is skipped with its reason.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from swsearch.engine.cpu.pairs import CpuPairs, usable_instruction_sets
from swsearch.engine.cuda.history.wavefront import WavefrontPairs
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.pairs.short_pairs import ShortPairs
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, PairBackend, SequencePairs
from swsearch.engine.reference import ReferencePairs
from swsearch.errors import EngineError
from swsearch.scoring.matrix import named_matrix
from swsearch.typing import Closeable
from tests.pairs.whole_matrix import PROBLEMS, found, judged

SCORES = {
    "affine": {"gap_open": 5, "gap_extend": 2, "match": 2, "mismatch": -3},
    "linear": {"gap_open": 0, "gap_extend": 2, "match": 1, "mismatch": -1},
    "table": {"gap_open": 11, "gap_extend": 1, "table": named_matrix("BLOSUM62").scores},
}


@dataclass(frozen=True)
class BackendCase:
    """A backend by name, how to make it on the CPU or a device, and which cases it does not accept."""

    name: str
    build: Callable[..., PairBackend]
    device: str = ""
    paths: bool = True
    empty: bool = True
    problems: tuple[str, ...] = tuple(PROBLEMS)
    scores: tuple[str, ...] = tuple(SCORES)

    def param(self) -> object:
        marks = {"gpu": [pytest.mark.gpu], "emulated": [pytest.mark.peer("emulated GPU")]}
        return pytest.param(self, id=self.name, marks=marks.get(self.device, []))


CASES = [
    BackendCase("reference", ReferencePairs),
    *(
        BackendCase(f"cpu-{name}-{threads}", lambda n=name, t=threads: CpuPairs(t, instruction_set=n))
        for name in usable_instruction_sets()
        for threads in (1, 2)
    ),
    *(
        case
        for device in ("emulated", "gpu")
        for case in (
            BackendCase(f"cuda-short-{device}", ShortPairs, device, empty=False),
            BackendCase(f"cuda-diamond-{device}", DiamondSweep, device),
            BackendCase(
                f"cuda-wavefront-{device}", WavefrontPairs, device, paths=False, empty=False,
                problems=("global",), scores=("linear",),
            ),
        )
    ),
]  # fmt: skip


@pytest.fixture(params=[case.param() for case in CASES])
def case(request: pytest.FixtureRequest) -> BackendCase:
    return request.param


@pytest.fixture
def backend(case: BackendCase, request: pytest.FixtureRequest) -> PairBackend:
    if not case.device:
        yield case.build()
        return
    device = PyCudaDevice() if case.device == "gpu" else request.getfixturevalue("emulated")()
    made = case.build(device)
    yield made
    if isinstance(made, Closeable):
        made.close()
    device.close()


def pairs_of(seed: int, sizes: list[tuple[int, int]], letters: int) -> SequencePairs:
    """Return pairs of the given lengths; every second subject repeats its query with some letters changed."""
    rng = np.random.default_rng(seed)
    pairs = []
    for number, (m, n) in enumerate(sizes):
        query = rng.integers(0, letters, m).astype(np.uint16)
        subject = rng.integers(0, letters, n).astype(np.uint16)
        if number % 2 and m and n:
            subject = np.resize(query, n)
            changed = rng.random(n) < 0.2
            subject[changed] = rng.integers(0, letters, int(changed.sum()))
        pairs.append((query, subject))
    return SequencePairs.of(pairs)


SIZES = [(1, 1), (1, 30), (30, 1), (7, 8), (8, 7), (9, 33), (31, 32), (64, 33), (37, 70)]


def test_every_backend_gives_the_alignment_of_whole_matrices(case: BackendCase, backend: PairBackend) -> None:
    """Expected values: ``whole_matrix.py``, which shares no code with the program."""
    for seed, name in enumerate(case.scores):
        pairs = pairs_of(seed, SIZES, 20 if name == "table" else 4)
        for mode in case.problems:
            problem = AlignmentProblem(*PROBLEMS[mode], **SCORES[name])
            wanted = [judged(query, subject, problem) for query, subject in pairs]
            scored = backend.align(pairs, problem, path=False)
            assert scored.ends[:, :3].tolist() == [[one.score, one.query_end, one.subject_end] for one in wanted]
            if case.paths:
                assert found(backend.align(pairs, problem)) == wanted, (name, mode)
            assert len(scored.runs) == 0
            assert len(scored.run_ends) == len(pairs)


def test_empty_sides_are_aligned_with_gaps_alone(case: BackendCase, backend: PairBackend) -> None:
    """Expected values by hand: a gap of 3 costs 5 + 3 * 2."""
    three, none = np.zeros(3, np.uint16), np.zeros(0, np.uint16)
    if not case.empty:
        linear = AlignmentProblem(False, FreeEnds.NONE, **SCORES["linear"])
        with pytest.raises(EngineError, match="letter"):
            backend.align(SequencePairs.of([(none, three)]), linear, path=False)
        return
    problem = AlignmentProblem(False, FreeEnds.NONE, **SCORES["affine"])
    aligned = backend.align(SequencePairs.of([(none, three), (three, none), (none, none)]), problem)
    assert aligned.ends[:, 0].tolist() == [-11, -11, 0]
    assert aligned.runs.tolist() == [3 << 2 | 2, 3 << 2 | 1]
    assert aligned.run_ends.tolist() == [1, 2, 2]


def test_progress_ends_at_the_cells_of_the_pairs(case: BackendCase, backend: PairBackend) -> None:
    pairs = pairs_of(3, [(40, 50), (60, 70)], 4)
    problem = AlignmentProblem(False, FreeEnds.NONE, **SCORES["linear"])
    reported: list[int] = []
    backend.align(pairs, problem, path=False, progress=reported.append)
    assert sum(reported) <= 40 * 50 + 60 * 70
    assert all(cells >= 0 for cells in reported)


def test_no_pairs_have_no_outcome(case: BackendCase, backend: PairBackend) -> None:
    problem = AlignmentProblem(False, FreeEnds.NONE, **SCORES["linear"])
    aligned = backend.align(SequencePairs.of([]), problem, path=False)
    assert aligned.ends.shape == (0, 5)
    assert len(aligned.run_ends) == len(aligned.runs) == 0

"""The CUDA engine on a GPU. The expected scores are the reference engine's, on generated sequences.

The same engine and kernels run without a GPU in ``test_emulated_engine.py``; the tests here add the compiler, the
driver, texture objects and the hardware's own order of execution.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from swsearch import _native
from swsearch.database.builder import build_database
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime import compiled_kernels
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.protocol import score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from swsearch.typing import Codes
from tests.engine.cuda.search.test_emulated_engine import assert_exact, assert_same

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> Iterator[CudaEngine]:
    with CudaEngine() as opened:
        yield opened


def case(seed: int, query_lengths: Sequence[int], n_subjects: int, letters: int = 20) -> tuple[list[Codes], Partition]:
    rng = np.random.default_rng(seed)
    queries = [rng.integers(0, letters, length).astype(np.uint8) for length in query_lengths]
    subjects = [rng.integers(0, letters, length).astype(np.uint8) for length in rng.integers(1, 300, n_subjects)]
    subjects += [query[: int(rng.integers(1, len(query) + 1))] for query in queries for _ in range(4)]
    subjects.append(np.concatenate([rng.integers(0, letters, 1600).astype(np.uint8), *queries]))
    return queries, Partition.pack(subjects)


@pytest.mark.parametrize(
    ("matrix", "gap"),
    [
        ("BLOSUM62", GapPenalty(11, 1)),
        ("BLOSUM50", GapPenalty(13, 2)),
        ("PAM250", GapPenalty(14, 2)),
        ("BLOSUM62", GapPenalty(0, 4)),
        ("BLOSUM62", GapPenalty(3000, 7)),
    ],
)
def test_protein_scores_are_exact(engine: CudaEngine, matrix: str, gap: GapPenalty) -> None:
    queries, partition = case(1, (30, 61, 64, 250, 700), 400)
    scheme = ScoringScheme(named_matrix(matrix), gap)
    profiles = [sequence_profile(query, scheme) for query in queries]
    assert_exact(engine, profiles, partition)
    assert_exact(engine, profiles, partition, [45] * len(profiles))


def test_both_strands_of_dna_are_exact(engine: CudaEngine) -> None:
    queries, partition = case(2, (120,), 300, 16)
    profiles = [sequence_profile(q, default_scheme(DNA)) for q in (queries[0], reverse_complement(queries[0]))]
    assert_exact(engine, profiles, partition)


def test_scores_of_every_size_are_exact(engine: CudaEngine) -> None:
    """Match 127 gives 290 bases a self-score beyond 16 bits."""
    queries, partition = case(3, (290,), 50, 4)
    profiles = [sequence_profile(queries[0], ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10)))]
    assert_exact(engine, profiles, partition)
    assert_exact(engine, profiles, partition, [33_000])


def test_a_streamed_database_gives_the_same_blocks() -> None:
    queries, partition = case(4, (61, 250), 20_000)
    profiles = [sequence_profile(query, default_scheme(PROTEIN)) for query in queries]
    with CudaEngine() as whole:
        wanted = whole.score(score_requests(profiles), partition)
    with CudaEngine(memory_limit=1 << 20) as streamed:
        found = streamed.score(score_requests(profiles), partition)
    assert_same(found, wanted)


@pytest.mark.parametrize("words", range(4, 29, 3))
def test_every_tile_is_exact(engine: CudaEngine, words: int) -> None:
    """The query lengths use tiles of different widths, in one strip and in several."""
    queries, partition = case(words, (8 * words - 1, 8 * words * 3), 60)
    profiles = [sequence_profile(query, default_scheme(PROTEIN)) for query in queries]
    assert_exact(engine, profiles[:1], partition)
    assert_exact(engine, profiles[1:], partition)
    assert_exact(engine, profiles[1:] * 2, partition, [30, 40])


def assert_native_ends(engine: CudaEngine, profile: QueryProfile, partition: Partition) -> None:
    """Compare scores and ends with those of the CPU's alignments, whose rule for ties is tested by the definition."""
    native = _native.align_local(
        np.zeros(profile.length, np.uint8), profile.rows, profile.table, profile.gap.open, profile.gap.extend,
        np.arange(32, dtype=np.uint8), partition.residues, partition.starts, partition.lengths,
    )  # fmt: skip
    scores, rows, columns = np.array([(best[0][0], best[0][2], best[0][4]) if best else (0, 0, 0) for best in native]).T
    found = engine.ends(profile, partition, scores.astype(np.int32))
    assert found is not None
    np.testing.assert_array_equal(found.query_end, rows)
    np.testing.assert_array_equal(found.subject_end, columns)


@pytest.mark.parametrize("gap", [GapPenalty(11, 1), GapPenalty(0, 4), GapPenalty(3000, 7)], ids=str)
def test_ends_are_those_of_the_cpu(engine: CudaEngine, gap: GapPenalty) -> None:
    """A warp scores a subject where many are listed, a block where few are; low scores end at many positions."""
    queries, partition = case(6, (30, 250, 2100), 900)
    for query in queries:
        profile = sequence_profile(query, ScoringScheme(named_matrix("BLOSUM62"), gap))
        assert_native_ends(engine, profile, partition)
        assert_native_ends(engine, profile, partition[-9:])


def test_ends_of_every_type_and_of_long_subjects(engine: CudaEngine) -> None:
    """Match 127 gives 290 bases a self-score beyond 16 bits; a subject of 300,000 residues is scored in windows."""
    queries, partition = case(7, (290,), 50, 4)
    assert_native_ends(
        engine, sequence_profile(queries[0], ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10))), partition
    )
    rng = np.random.default_rng(8)
    genome = rng.integers(0, 4, 300_000).astype(np.uint8)
    genome[123_456 : 123_456 + 290] = queries[0]
    assert_native_ends(engine, sequence_profile(queries[0], default_scheme(DNA)), Partition.pack([genome, queries[0]]))


LOST = """
import sys
import numpy as np
from swsearch.cli.app import main
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice

real, launches = PyCudaDevice.launch, []

def nowhere(value):  # parameters with an address that no memory has, in place of each address
    if value.dtype.names is None:
        return 8 if value.dtype == np.uint64 else value.item()
    return tuple(nowhere(value[name]) for name in value.dtype.names)

def launch(self, spec, grid, shared_bytes, parameters, stream):
    launches.append(spec)
    if len(launches) == int(sys.argv[1]):
        parameters = np.array(nowhere(parameters), parameters.dtype)[()]
    real(self, spec, grid, shared_bytes, parameters, stream)

PyCudaDevice.launch = launch
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("launch", [1, 3])
def test_a_device_that_fails_names_itself_in_one_line(tmp_path: Path, launch: int) -> None:
    """A kernel gets invalid addresses; the driver then destroys the context."""
    rng = np.random.default_rng(5)
    lines = [f">s{n}\n{PROTEIN.decode(rng.integers(0, 20, 200).astype(np.uint8))}\n" for n in range(1200)]
    (tmp_path / "subjects.fasta").write_text("".join(lines))
    (tmp_path / "queries.fasta").write_text("".join(lines[:3]))
    build_database([tmp_path / "subjects.fasta"], tmp_path / "subjects.db")
    command = ["query", "queries.fasta", "subjects.db", "--engine", "cuda", "--quiet", "--store", "none"]
    done = subprocess.run(
        [sys.executable, "-c", LOST, str(launch), *command],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("swsearch: error: ")
    assert " at PCI " in line
    assert "illegal" in line or "misaligned" in line  # the driver names what it meets first


def test_devices_of_one_thread_may_be_closed_in_any_order() -> None:
    """Two handles of one GPU share its context; the stack of contexts must name each as often as it is open."""
    rng = np.random.default_rng(4)
    profile = sequence_profile(rng.integers(0, 20, 60).astype(np.uint8), default_scheme(PROTEIN))
    partition = Partition.pack([rng.integers(0, 20, 80).astype(np.uint8)])
    first, second = CudaEngine(), CudaEngine()
    first.close()
    with second:
        assert_exact(second, [profile], partition)


@pytest.mark.peer("nvcc")
def test_the_kernels_of_the_package_are_exact(
    engine: CudaEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive of this device's architecture is built first; then nothing is compiled, whatever the gap costs."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("SWSEARCH_KERNEL_CACHE", str(cache))
    monkeypatch.setattr(compiled_kernels, "resource_folder", lambda name: tmp_path / name)
    script = Path(__file__).parents[4] / "scripts" / "build_kernels.py"
    out, architecture = str(tmp_path / "cubins"), str(engine.device.facts.architecture)
    subprocess.run([sys.executable, str(script), "--out", out, "--architectures", architecture], check=True)
    device = PyCudaDevice()
    assert compiled_kernels.refusals(device.kernel_cache.archives) == []
    with CudaEngine(device) as shipped:
        for gap in (GapPenalty(11, 1), GapPenalty(0, 2), GapPenalty(2100, 5)):
            scheme = ScoringScheme(named_matrix("BLOSUM62"), gap)
            queries, partition = case(5, (20, 80, 375, 1_000), 2_000)
            profiles = [sequence_profile(query, scheme) for query in queries]
            assert_exact(shipped, profiles, partition)
            assert_exact(shipped, profiles, partition, [60] * len(profiles))
            (wanted,) = ReferenceEngine().score(score_requests(profiles[2:3]), partition)
            assert shipped.ends(profiles[2], partition, wanted.score) is not None
    compiled = {path.name.partition("-")[0] for path in cache.glob("*.cubin")}
    assert compiled <= {"locate_best"}  # finds the end in a subject that diamonds align, which takes longer

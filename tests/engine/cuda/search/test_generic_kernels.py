"""Generic kernels on the emulated device: one kernel for all gap costs, the change to compiled ones, and no compiler.

Expected scores and hits: the reference engine's and the CPU engine's. The tests of the engine, of windows, of the bound
and of ends run with generic kernels too (``conftest.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsearch.cli.app import main
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.kernels import CODE_COLUMNS, KernelSpec, Pairing
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.kernel_choice import KERNEL_COMPILE_SECONDS, VARIABLE, KernelPolicy
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.cuda.search.plan import Thresholds, expected_rate
from swsearch.engine.cuda.search.planner import layout
from swsearch.engine.cuda.search.tiles import GENERIC_BAND, SMALL_KERNELS, generic_kernels, generic_tiles
from swsearch.engine.protocol import ScoreRequest
from swsearch.engine.reference import ReferenceEngine
from swsearch.errors import InputError
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.threads import usable_cores
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice, OneAtATime
from tests.support import random_codes
from tests.tiers import mostly_thorough

MakeDevice = Callable[..., EmulatedDevice]
GAPS = (GapPenalty(11, 1), GapPenalty(0, 2), GapPenalty(13, 2), GapPenalty(5, 7), GapPenalty(2000, 47))

pytestmark = pytest.mark.peer("emulated GPU")


class Waiting(OneAtATime):
    """A device without compiled kernels; it fails if a kernel that scores a database is launched but not ready.

    It is so slow that every search is worth a compilation. Diamonds, for rare cases, may wait for the compiler.

    Attributes
    ----------
    compiled : set of KernelSpec
        The kernels that are ready beside the generic ones.
    finishes_after : int or None
        The number of launches after which all kernels that were begun are compiled.
    """

    def __init__(
        self, *, compiles: bool = True, finishes_after: int | None = None, clock_hz: float = 1.0, **options: Any
    ) -> None:
        super().__init__(**{"shuffle": 1, **options})
        self.facts = replace(self.facts, clock_hz=clock_hz)
        self._compiles = compiles
        self.generic = set(generic_kernels(self.facts.architecture))
        self.compiled: set[KernelSpec] = set()
        self.finishes_after = finishes_after

    @property
    def compiles(self) -> bool:
        return self._compiles

    def ready(self, specs: Sequence[KernelSpec]) -> bool:
        return all(spec in self.generic or spec in self.compiled for spec in specs)

    def launch(self, spec: KernelSpec, *arguments: Any) -> None:
        waits = not self.ready([spec]) and not (self._compiles and spec.folder == "pairs")
        assert not waits, f"the search waits for {spec}"
        super().launch(spec, *arguments)
        if self.finishes_after is not None and len(self.launched) >= self.finishes_after:
            self.compiled.update(self.prepared)

    @property
    def begun(self) -> set[KernelSpec]:
        """The kernels that a compiler was asked for."""
        return set(self.prepared) - self.generic


def assert_same(found: Sequence[ScoreBlock], wanted: Sequence[ScoreBlock]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.subject_index, other.subject_index)
        np.testing.assert_array_equal(one.score, other.score)


def protein_case(seed: int, lengths: Sequence[int]) -> tuple[list[QueryProfile], Partition]:
    """Queries, and subjects that are random or contain a changed part of a query."""
    rng = np.random.default_rng(seed)
    queries = [random_codes(rng, length) for length in lengths]
    subjects = [random_codes(rng, int(length), 27) for length in rng.integers(3, 90, 20)]
    for query in queries:
        changed = query.copy()
        changed[::9] = 3
        subjects.append(np.concatenate([changed[:40], changed[55:90], random_codes(rng, 7)]))
    return [sequence_profile(query, default_scheme(PROTEIN)) for query in queries], Partition.pack(subjects)


# --- One kernel for all costs ---
@pytest.mark.parametrize("architecture", mostly_thorough([75, 86, 90], 90))
def test_one_kernel_serves_all_gap_costs(emulated: MakeDevice, architecture: int) -> None:
    """Every route's kernel is launched with each of five gap costs; the last is the largest that the fast type holds.

    The queries are short or have several strips, alone or in pairs; long subjects take the intra-task route, and
    windows; floors take the bound and the list of subjects that pass.
    """
    rng = np.random.default_rng(3)
    queries = [random_codes(rng, length) for length in (20, 70, 75)]
    related = np.concatenate([queries[1][:30], queries[1][36:], queries[2]])
    subjects = [random_codes(rng, int(n)) for n in rng.integers(3, 50, 40)]
    subjects += [related, np.concatenate([random_codes(rng, 1501), related])]
    partition = Partition.pack(subjects)
    launched: dict[GapPenalty, set[KernelSpec]] = {}
    for gap in GAPS:
        scheme = ScoringScheme(named_matrix("BLOSUM62"), gap)
        profiles = [sequence_profile(query, scheme) for query in queries]
        scores = ReferenceEngine().score(profiles, partition)
        floors = [2200, 45, 45] if gap.open == 2000 else [25, 45, 45]
        from_floors = [block.at_least(floor) for block, floor in zip(scores, floors, strict=True)]
        device = Waiting(architecture=architecture)
        for thresholds in (
            Thresholds(bound_subjects=1),
            Thresholds(window_overlap=64, window_stride=128, windowed_residues=60),
        ):
            with CudaEngine(device, thresholds=thresholds, kernels=KernelPolicy.GENERIC) as engine:
                assert_same(engine.score(profiles, partition), scores)
                assert_same(engine.score(profiles, partition, floors), from_floors)
                assert engine.ends(profiles[1], partition, scores[1].score) is not None
        launched[gap] = {spec for spec in device.launched if spec.folder == "search"}
        assert launched[gap] <= device.generic
    shared = set.intersection(*launched.values())
    entries = {"inter_task", "intra_task", "score_windows", "end_positions"}
    assert entries <= {spec.entry for spec in shared}
    shared = set.intersection(*(launched[gap] for gap in GAPS[:4]))  # the last gap cost leaves no room for a floor
    inter_task = [dict(spec.constants) for spec in shared if spec.entry == "inter_task"]
    if architecture == 90:
        assert {constants["PAIRING"] for constants in inter_task} == {"kTwoBlocks", "kTwoQueries"}
    bands = {dict(spec.constants).get("BAND") for gap in GAPS[:4] for spec in launched[gap]}
    assert str(GENERIC_BAND) in bands


def test_a_gap_cost_beyond_the_fast_type_takes_the_intra_task_kernel(emulated: MakeDevice) -> None:
    profiles, partition = protein_case(4, (70,))
    profiles = [QueryProfile(profiles[0].rows, profiles[0].table, GapPenalty(2100, 5))]
    device = Waiting()
    with CudaEngine(device, kernels=KernelPolicy.GENERIC) as engine:
        assert_same(engine.score(profiles, partition), ReferenceEngine().score(profiles, partition))
        floors = [40]
        assert_same(engine.score(profiles, partition, floors), ReferenceEngine().score(profiles, partition, floors))
    assert set(device.launched) <= device.generic
    assert "inter_task" not in {spec.entry for spec in device.launched}


@pytest.mark.parametrize("architecture", [75, 80, 86, 89, 90, 100, 110, 120, 130])
def test_every_length_is_covered_by_the_generic_tiles(architecture: int) -> None:
    """The plans of queries of 1 to 1,500 rows need no kernel that is not in the list."""
    kernels = set(generic_kernels(architecture))
    assert len(kernels) <= 28
    shapes = {
        (pairing, band): {shape.tile for shape in generic_tiles(architecture, pairing, band)}
        for pairing in (Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES)
        for band in (0, GENERIC_BAND)
    }
    assert all(tile.columns <= CODE_COLUMNS for tiles in shapes.values() for tile in tiles)
    for length in (*range(1, 200, 3), 375, 1_500):
        for lengths in ((length,), (length, length + 7)):
            for band in (0, GENERIC_BAND):
                found = layout(architecture, 28, lengths, band=band, generic=True)
                pairing = Pairing.TWO_BLOCKS if len(lengths) == 1 else Pairing.TWO_QUERIES
                assert {strip.shape.tile for strip in found.strips} <= shapes[pairing, band]
                rows = sum(strip.shape.tile.rows for strip in found.strips)
                assert max(lengths) <= rows <= max(lengths) * 1.35 + 2 * 8 * 12


# --- The change to compiled kernels ---


@pytest.mark.parametrize("finishes_after", mostly_thorough([1, 9, 25], 9))
@pytest.mark.parametrize("seed", mostly_thorough([1, 2], 1))
def test_a_search_takes_its_own_kernels_when_they_are_compiled(seed: int, finishes_after: int) -> None:
    """More batches than are in flight; some have generic kernels and the later ones their own, with the same blocks."""
    profiles, partition = protein_case(5, (20, 90, 33, 64, 61, 40, 130, 35, 77, 52))
    floors = [30 + 3 * number for number in range(len(profiles))]
    thresholds = Thresholds(window_overlap=64, window_stride=128, windowed_residues=60, downloaded=3)
    wanted = ReferenceEngine().score(profiles, partition, floors)
    device = Waiting(finishes_after=finishes_after, shuffle=seed)
    with CudaEngine(device, thresholds=thresholds, pairs=False, kernels=KernelPolicy.AUTO) as engine:
        assert_same(engine.score(profiles, partition, floors), wanted)
        launched = [spec in device.generic for spec in device.launched if spec.entry == "inter_task"]
        assert launched[0]  # the first batch does not wait
        assert not launched[-1]  # the last one has its own kernels
        assert launched == sorted(launched, reverse=True)  # no batch goes back
        device.launched.clear()
        assert_same(engine.score(profiles, partition, floors), wanted)
    assert {spec for spec in device.launched if spec in device.generic} <= set(SMALL_KERNELS)


def test_pieces_of_a_streamed_database_change_over_as_well(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swsearch.engine.cuda.search.subjects.SMALLEST_PIECE", 400)
    monkeypatch.setattr("swsearch.engine.cuda.search.subjects.ONE_SLOT_RESIDUES", 0)
    profiles, partition = protein_case(9, (35, 30))
    device = Waiting(finishes_after=4)
    with CudaEngine(device, memory_limit=480, pairs=False, kernels=KernelPolicy.AUTO) as engine:
        assert engine.n_pieces(partition, 65) >= 3
        assert_same(engine.score(profiles, partition), ReferenceEngine().score(profiles, partition))
    used = [spec in device.generic for spec in device.launched if spec.entry == "inter_task"]
    assert used[0]
    assert not used[-1]


def test_a_short_search_asks_for_no_compiler_and_many_of_them_do() -> None:
    """By hand: a search of one hundredth of the time that the compilers take is the first of a hundred to compile."""
    profiles, partition = protein_case(6, (40,))
    wanted = ReferenceEngine().score(profiles, partition)
    cells = partition.n_residues * profiles[0].length
    with CudaEngine(Waiting()) as engine:
        own = set(engine.plan([ScoreRequest(profiles[0])], partition).kernels) - set(generic_kernels(90))
        rate_at_one_hertz = expected_rate(engine.facts, bounded=False)
    compile_seconds = len(own) * KERNEL_COMPILE_SECONDS / usable_cores()
    device = Waiting(clock_hz=cells / (compile_seconds / 100) / rate_at_one_hertz)
    with CudaEngine(device, kernels=KernelPolicy.AUTO) as engine:
        n_searches = 0
        while not device.begun:
            assert_same(engine.score(profiles, partition), wanted)
            n_searches += 1
            assert n_searches <= 101
    assert n_searches >= 99  # sums of floating numbers
    assert device.begun == own


def test_an_engine_that_waits_uses_no_generic_kernel(emulated: MakeDevice) -> None:
    """The default of :class:`CudaEngine`, so that measurements are those of compiled kernels."""

    class Patient(Waiting):
        def launch(self, spec: KernelSpec, *arguments: Any) -> None:
            self.compiled.add(spec)  # as a device that waits for the compiler
            super().launch(spec, *arguments)

    profiles, partition = protein_case(7, (40, 90))
    device = Patient()
    with CudaEngine(device) as engine:
        assert_same(engine.score(profiles, partition), ReferenceEngine().score(profiles, partition))
    assert {spec for spec in device.launched if spec in device.generic} <= set(SMALL_KERNELS)
    assert {spec.entry for spec in device.begun} >= {"inter_task"}


# --- No compiler ---


def test_without_a_compiler_generic_kernels_serve_every_route(emulated: MakeDevice) -> None:
    """Scores beyond 11 and 16 bits, windows that are not proven, ends, and a query of too many rows for windows."""
    rng = np.random.default_rng(8)
    scheme = ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10))
    long = random_codes(rng, 400, 4)
    queries = [random_codes(rng, 40, 4), long[:270], long]
    profiles = [sequence_profile(query, scheme) for query in queries]
    subjects = [random_codes(rng, int(n), 4) for n in rng.integers(4, 60, 10)]
    subjects += [long[:16], long, np.concatenate([random_codes(rng, 300, 4), long, long, random_codes(rng, 400, 4)])]
    partition = Partition.pack(subjects)
    wanted = ReferenceEngine().score(profiles, partition)
    device = Waiting(compiles=False)
    thresholds = Thresholds(
        window_overlap=64, window_stride=128, windowed_residues=300, windowed_rows=300, diamond_residues=300
    )
    with CudaEngine(device, thresholds=thresholds, kernels=KernelPolicy.AUTO) as engine:
        assert_same(engine.score(profiles, partition), wanted)
        floors = [900, 3_000, 40_000]
        assert_same(engine.score(profiles, partition, floors), ReferenceEngine().score(profiles, partition, floors))
        assert engine.windows.n_whole > 0  # by the kernel for windows, not by diamonds
        assert engine.ends(profiles[2], partition, wanted[2].score) is not None
    assert {spec.entry for spec in device.launched} >= {
        "inter_task", "intra_task", "score_windows", "end_positions", "collect"
    }  # fmt: skip
    arithmetics = {dict(spec.constants).get("ARITHMETIC") for spec in device.launched}
    assert arithmetics >= {"FastPair", "ShortPair", "Wide"}


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two DNA queries and a database that contains parts of them."""
    rng = np.random.default_rng(31)
    queries = [random_codes(rng, length, 4) for length in (60, 47)]
    subjects = [random_codes(rng, int(n), 4) for n in rng.integers(10, 90, 25)]
    subjects += [np.concatenate([random_codes(rng, 9, 4), query[5:]]) for query in queries]
    for name, sequences in (("queries", queries), ("subjects", subjects)):
        records = "".join(f">s{n}\n{DNA.decode(codes)}\n" for n, codes in enumerate(sequences))
        (tmp_path / f"{name}.fasta").write_text(records)
    monkeypatch.chdir(tmp_path)
    assert main(["index", "subjects.fasta", "-o", "subjects.db", "--quiet", "--alphabet", "dna"]) == 0
    return tmp_path


def use(monkeypatch: pytest.MonkeyPatch, device: Callable[[], Waiting]) -> None:
    """Make the engine named cuda run on an emulated device, with the policy of the environment."""
    from swsearch.engine import registry as engines

    really_open = engines.open_named

    def opened(name: str, threads: int | None, devices: Any, gpus: Any, *, bound: bool) -> Any:
        if name != "cuda":
            return really_open(name, threads, devices, gpus, bound=bound)
        cuda = CudaDevices(devices, lambda _: device(), kernels=KernelPolicy.of_environment())
        return cuda, "emulated"

    monkeypatch.setattr(engines, "open_named", opened)


def query(*arguments: str) -> list[str]:
    return ["query", "queries.fasta", "subjects.db", "--store", "none", "--quiet", *arguments]


@pytest.mark.parametrize("policy", ["auto", "generic", ""])
def test_the_command_gives_the_same_bytes(case: Path, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    monkeypatch.setenv(VARIABLE, policy)
    devices: list[Waiting] = []

    def open_device() -> Waiting:
        devices.append(Waiting(compiles=policy != ""))
        return devices[-1]

    use(monkeypatch, open_device)
    for engine in ("cuda", "cpu"):
        assert main([*query("--engine", engine), "--format", "json", "--out", f"{engine}.json"]) == 0
    assert Path("cuda.json").read_bytes() == Path("cpu.json").read_bytes()
    assert devices[0].launched
    assert set(devices[0].launched) <= devices[0].generic


@pytest.mark.parametrize(
    ("policy", "compiles", "reason"),
    [
        ("auto", True, "their own are compiled only for a search that takes longer"),
        ("auto", False, "there is no compiler"),
        ("generic", True, "SWSEARCH_KERNELS=generic"),
    ],
)
def test_the_plan_names_generic_kernels_and_the_reason(
    case: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    policy: str,
    compiles: bool,
    reason: str,
) -> None:
    monkeypatch.setenv(VARIABLE, policy)
    use(monkeypatch, lambda: Waiting(compiles=compiles))
    capsys.readouterr()
    assert main(query("--engine", "cuda", "--explain")) == 0
    shown = capsys.readouterr().out
    assert "queries of 60 and 60 residues that share words; generic kernels" in shown
    assert f"generic kernels for 2 of 2 batches: {reason}" in shown


def test_the_plan_of_compiled_kernels_names_no_generic_ones(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ready(Waiting):
        def ready(self, specs: Sequence[KernelSpec]) -> bool:
            return True

    use(monkeypatch, Ready)
    assert main(query("--engine", "cuda", "--explain")) == 0
    assert "generic" not in capsys.readouterr().out


def test_a_policy_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "fastest")
    with pytest.raises(InputError, match="SWSEARCH_KERNELS='fastest': choose compiled, auto, generic"):
        KernelPolicy.of_environment()

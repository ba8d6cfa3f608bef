"""The kernels of the package: they serve all gap costs, lengths and routes, on the emulated device and in plans.

Expected scores: the reference engine's. Expected kernels: the list that ``scripts/build_kernels.py`` compiles.
"""

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.cuda.search.planner import Planner
from swsearch.engine.cuda.search.tiles import available_bands, package_kernels
from swsearch.engine.protocol import ScoreRequest, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.query.profile import sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.engine.cuda.search.test_emulated_engine import assert_exact, assert_same
from tests.support import random_codes
from tests.tiers import mostly_thorough

GAPS = (
    GapPenalty(11, 1), GapPenalty(5, 2), GapPenalty(0, 2), GapPenalty(13, 2), GapPenalty(5, 7), GapPenalty(2000, 47),
    GapPenalty(2100, 5), GapPenalty(0, 3000),
)  # fmt: skip
"""Kernels have the first two as constants; the last two cost more than the fast type holds."""

pytestmark = pytest.mark.peer("emulated GPU")


@pytest.mark.parametrize("architecture", mostly_thorough([75, 86, 90], 90))
def test_one_set_of_kernels_serves_all_gap_costs(emulated: MakeDevice, architecture: int) -> None:
    """Every route's kernel is launched with each of the gap costs.

    The queries are short or have several strips, alone or in pairs; long subjects take the intra-task route, whole
    and in windows; floors take the bound and the list of subjects that pass.
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
        scores = ReferenceEngine().score(score_requests(profiles), partition)
        floors = [2200, 45, 45] if gap.open == 2000 else [25, 45, 45]
        from_floors = [block.at_least(floor) for block, floor in zip(scores, floors, strict=True)]
        device = emulated(architecture=architecture, shuffle=1)
        for options in (
            PlanOptions(bound_subjects=1),
            PlanOptions(long_residues=60, window_residues=60),
        ):
            with CudaEngine(device, options=options) as engine:
                assert_same(engine.score(score_requests(profiles), partition), scores)
                assert_same(engine.score(score_requests(profiles, floors), partition), from_floors)
                assert engine.ends(profiles[1], partition, scores[1].score) is not None
        launched[gap] = {spec for spec in device.launched if spec.folder == "search"}
    entries = {"inter_task", "intra_task", "end_positions"}
    for parameter_costs in (True, False):  # those that kernels have as constants come first
        of_costs = GAPS[2:] if parameter_costs else GAPS[:2]
        shared = set.intersection(*(launched[gap] for gap in of_costs))
        assert (entries <= {spec.entry for spec in shared}) == parameter_costs
        assert all(entries <= {spec.entry for spec in launched[gap]} for gap in of_costs)
    for gap in GAPS[:5]:  # higher costs leave no room for a floor
        assert {dict(spec.constants).get("BAND", "0") for spec in launched[gap]} > {"0"}


def test_every_route_has_its_kernels_in_the_package(emulated: MakeDevice) -> None:
    """Scores beyond 11 and 16 bits, windows, ends, and a query of too many rows for windows."""
    rng = np.random.default_rng(8)
    scheme = ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10))
    long = random_codes(rng, 400, 4)
    queries = [random_codes(rng, 40, 4), long[:270], long]
    profiles = [sequence_profile(query, scheme) for query in queries]
    subjects = [random_codes(rng, int(n), 4) for n in rng.integers(4, 60, 10)]
    subjects += [long[:16], long, np.concatenate([random_codes(rng, 300, 4), long, long, random_codes(rng, 400, 4)])]
    partition = Partition.pack(subjects)
    wanted = ReferenceEngine().score(score_requests(profiles), partition)
    device = emulated(shuffle=1)
    options = PlanOptions(long_residues=300, window_residues=300, diamond_rows=300, diamond_residues=300)
    with CudaEngine(device, options=options) as engine:
        assert_same(engine.score(score_requests(profiles), partition), wanted)
        floors = [900, 3_000, 40_000]
        assert_exact(engine, profiles, partition, floors)
        assert engine.ends(profiles[2], partition, wanted[2].score) is not None
    assert {spec.entry for spec in device.launched} >= {
        "inter_task", "intra_task", "end_positions", "collect", "sweep_pairs", "locate_best"
    }  # fmt: skip
    assert {dict(spec.constants).get("ARITHMETIC") for spec in device.launched} >= {"FastPair", "ShortPair", "Wide"}


@pytest.mark.parametrize("architecture", [75, 80, 86, 89, 90, 100, 110, 120, 130])
def test_plans_of_all_lengths_take_kernels_of_the_package(architecture: int) -> None:
    """With and without a bound, one query or two, and with subjects of every route."""
    lengths = np.concatenate([np.full(40_000, 300), [9_000, 40_000]]).astype(np.uint32)
    starts = np.concatenate([[0], np.cumsum(lengths.astype(np.uint64) + 16)])[:-1].astype(np.uint64)
    partition = Partition(np.zeros(0, np.uint8), starts, lengths, np.arange(len(lengths), dtype=np.uint32))
    facts = DeviceFacts("device", "", architecture, 40, 64 << 10, 1 << 34, 1.5e9, "")
    shipped = set(package_kernels(architecture))
    rng = np.random.default_rng(1)
    bands = set()
    for length in (*range(1, 230, 3), 375, 650, 1_000, 1_500, 4_000):
        profiles = [
            sequence_profile(random_codes(rng, rows), ScoringScheme(named_matrix("BLOSUM62"), GapPenalty(11, 1)))
            for rows in (length, length + 7, 2 * length)
        ]
        for floor in (None, 90):
            requests = [ScoreRequest(profile, floor) for profile in profiles]
            for chosen in ((0,), (0, 1), (0, 2)):
                of_batch = [requests[index] for index in chosen]
                plan = Planner(facts, PlanOptions()).plan_batch(chosen, of_batch, partition)
                assert set(plan.kernels) <= shipped
                bands |= {dict(spec.constants).get("BAND", "0") for spec in plan.kernels}
    assert bands == {"0", *map(str, available_bands(architecture))}

"""The upper bound in 8-bit lanes: its kernel, and the searches and plans of devices that have such lanes.

Expected values: the definition in NumPy (``bound_reference.py``), and the scores of the reference engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import Arithmetic, Pairing, Tile
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.kernel_choice import KernelPolicy
from swsearch.engine.cuda.search.options import PlanOptions, Thresholds
from swsearch.engine.cuda.search.plan import BoundPlan
from swsearch.engine.cuda.search.planner import plan_search
from swsearch.engine.cuda.search.routing import InterTaskPlan, plan_byte_bound
from swsearch.engine.cuda.search.tuning import tiles
from swsearch.engine.protocol import ScoreRequest
from swsearch.engine.reference import ReferenceEngine
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import ScoringScheme, default_scheme
from swsearch.sequences.alphabet import PROTEIN
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice
from tests.engine.cuda.search.test_bound import (
    BANDS,
    Scored,
    expected_results,
    kernel_results,
    linked,
    related_subjects,
)
from tests.engine.cuda.search.test_emulated_engine import assert_same, profiles_of
from tests.support import random_codes, random_profile

MakeDevice = Callable[..., EmulatedDevice]

BLACKWELL = DeviceFacts("emulated", "", 120, 2, 99 << 10, 1 << 32, 1e9, "", byte_lanes=True)
BOUNDED = PlanOptions(thresholds=Thresholds(bound_subjects=1))
"""Bounds even for databases of a few subjects."""


def four(group: int, words: int) -> Tile:
    return Tile(Pairing.FOUR_BLOCKS, group, words, 28)


# --- The kernel ---


@pytest.mark.parametrize(
    ("band", "gap", "group", "words", "length"),
    [
        (4, GapPenalty(11, 1), 4, 4, 61),
        (4, GapPenalty(11, 1), 4, 12, 192),
        (5, GapPenalty(11, 1), 4, 10, 150),
        (6, GapPenalty(5, 2), 8, 6, 180),
        (8, GapPenalty(14, 2), 4, 16, 230),
        (8, GapPenalty(11, 1), 16, 8, 500),
        (4, GapPenalty(7, 0), 4, 8, 128),
        (5, GapPenalty(0, 2), 4, 5, 66),
        (4, GapPenalty(0, 1), 4, 4, 64),
        (4, GapPenalty(2, 1), 4, 8, 128),
        (5, GapPenalty(22, 5), 4, 10, 160),
    ],
    ids=str,
)  # fmt: skip
def test_the_kernel_of_8_bit_lanes_computes_the_bound(
    emulated: MakeDevice, band: int, gap: GapPenalty, group: int, words: int, length: int
) -> None:
    """Byte for byte, saturated ones too, for related subjects, few letters, random tables and scores of up to 127."""
    device = emulated(architecture=120)
    plan = InterTaskPlan(Arithmetic.BYTES, (0,), linked([four(group, words)]), True, 0.0, band)
    for seed, letters in enumerate((20, 2)):
        rng = np.random.default_rng(seed)
        query = random_codes(rng, length, letters)
        partition = related_subjects(rng, [query], letters)
        profiles = [
            sequence_profile(query, ScoringScheme(named_matrix("BLOSUM62"), gap)),
            random_profile(rng, length, 9, gap, -14, 7),
            random_profile(rng, length, 30, gap, -128, 127),
        ]
        largest = []
        for profile in profiles:
            (found,) = kernel_results(device, [profile], partition, plan)
            expected = expected_results(0, profile, partition, plan)
            np.testing.assert_array_equal(found, expected)
            largest.append(int(expected.max()))
        assert largest[-1] >= 255 - gap.first - 3 * gap.extend  # a number saturated


def test_two_queries_in_8_bit_lanes_have_strips_of_their_own(emulated: MakeDevice) -> None:
    """Of different tiles and of the same tile; the longer query is the first of the batch."""
    device = emulated(architecture=120)
    rng = np.random.default_rng(4)
    for lengths in ((190, 100), (100, 90)):
        queries = [random_codes(rng, length) for length in lengths]
        profiles = profiles_of(queries, default_scheme(PROTEIN))
        partition = related_subjects(rng, queries, 20)
        plan = plan_byte_bound(profiles, 120, 4)
        assert plan is not None
        assert [strip.shape.tile.rows >= length for strip, length in zip(plan.strips, lengths[::-1], strict=True)]
        assert [plan.queries(strip) for strip in plan.strips] == [(1,), (0,)]
        for query, found in enumerate(kernel_results(device, profiles, partition, plan)):
            np.testing.assert_array_equal(found, expected_results(query, profiles[query], partition, plan))


@pytest.mark.parametrize("gap", [GapPenalty(11, 1), GapPenalty(100, 27), GapPenalty(60, 40), GapPenalty(0, 127)])
def test_saturated_values_remain_bounds(emulated: MakeDevice, gap: GapPenalty) -> None:
    """Every result is at least what the smaller of 255 and the exact score would give.

    Scores far beyond 8 bits, and costs of up to 127 per band, of which the sum for a block is not subtracted in full.
    """
    rng = np.random.default_rng(3)
    query = random_codes(rng, 128, 4)
    profile = sequence_profile(query, ScoringScheme(match_mismatch(12, -9), gap))
    segments = [query[begin : begin + n] for begin in (0, 50) for n in range(2, 78, 4)]
    gapped = [np.concatenate([query[:n], query[n + 4 : 2 * n]]) for n in range(10, 64, 6)]
    partition = Partition.pack([*segments, *gapped, query, query[::-1].copy()])
    (block,) = ReferenceEngine().score([profile], partition)
    exact = np.empty(len(partition), np.int64)
    exact[np.argsort(partition.subject_index)] = block.score[np.argsort(block.subject_index)]
    for band in BANDS:
        plan = InterTaskPlan(Arithmetic.BYTES, (0,), linked([four(4, 24 if band == 6 else 40)]), True, 0.0, band)
        (found,) = kernel_results(emulated(architecture=120), [profile], partition, plan)
        assert (found >= np.minimum(exact, 255) - gap.open - 4 * gap.extend).all()
    assert (exact > 255).sum() > 10
    assert (exact < 255).sum() > 10


# --- Searches ---


@pytest.fixture(scope="module")
def scored() -> Scored:
    """Queries of a strip each: one, and two that share words in 16 bits; a few of 300 subjects are related to them."""
    rng = np.random.default_rng(11)
    queries = [random_codes(rng, length) for length in (40, 100, 110)]
    subjects = [random_codes(rng, int(length)) for length in rng.integers(30, 90, 300)]
    for query in queries:
        subjects += [query[5:], np.concatenate([query[:16], query[22:36], random_codes(rng, 3), query[36:]])]
    return Scored.of(profiles_of(queries, default_scheme(PROTEIN)), Partition.pack(subjects))


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("shuffle", [None, 3])
def test_hits_with_8_bit_lanes_are_those_of_the_reference(
    emulated: MakeDevice, scored: Scored, pairs: bool, shuffle: int | None
) -> None:
    """Floors from few subjects to none; from 255 on, no 8 bits prove anything."""
    for floor in (45, 60, 254, 255, 400):
        device = emulated(architecture=120, byte_lanes=True, shuffle=shuffle)
        with CudaEngine(device, pairs=pairs, thresholds=Thresholds(bound_subjects=1)) as engine:
            found = engine.score(scored.profiles, scored.partition, [floor] * 3)
            assert_same(found, scored.at_least(floor))
            assert any(spec.has_byte_lanes for spec in device.launched) is (floor < 255)
            assert all(block.n_bounded > 250 for block in found)
    assert max(block.score.max() for block in scored.scores) > 400


def test_a_floor_for_each_length_and_a_sample_that_passes(emulated: MakeDevice, scored: Scored) -> None:
    """The highest of the floors decides; a floor that most subjects reach leaves the bound unused."""
    device = emulated(architecture=120, byte_lanes=True)
    length_of = np.empty(len(scored.partition), np.uint32)
    length_of[scored.partition.subject_index] = scored.partition.lengths
    with CudaEngine(device, thresholds=Thresholds(bound_subjects=1)) as engine:
        for short, long, is_bounded in ((45, 50, True), (45, 254, True), (20, 25, False)):
            requests = [ScoreRequest(profile, short, floors_by_length=((60, long),)) for profile in scored.profiles]
            found = dict(engine.score_each(requests, scored.partition))
            for query, block in enumerate(scored.scores):
                floors = np.where(length_of[block.subject_index] < 60, short, long)
                kept = np.flatnonzero(block.score >= floors)
                np.testing.assert_array_equal(found[query].subject_index, block.subject_index[kept])
                np.testing.assert_array_equal(found[query].score, block.score[kept])
                assert (found[query].n_bounded > 250) is is_bounded
    assert any(spec.has_byte_lanes for spec in device.launched)


def test_a_search_in_8_bit_lanes_writes_the_bytes_of_one_without_a_bound(emulated: MakeDevice, scored: Scored) -> None:
    """Subjects, scores and counts of the blocks, from devices with 8-bit lanes, without them, and without bounds."""
    blocks = []
    for byte_lanes, bound_subjects in ((True, 1), (False, 1), (True, 1 << 20)):
        device = emulated(architecture=120, byte_lanes=byte_lanes)
        with CudaEngine(device, thresholds=Thresholds(bound_subjects=bound_subjects)) as engine:
            found = engine.score(scored.profiles, scored.partition, [50] * 3)
        blocks.append([(block.subject_index.tobytes(), block.score.tobytes(), block.n_rescored) for block in found])
        assert any(spec.has_byte_lanes for spec in device.launched) is (byte_lanes and bound_subjects == 1)
    assert blocks[0] == blocks[1] == blocks[2]


# --- Plans ---


def bound_of(
    profiles: Sequence[QueryProfile], floor: int, facts: DeviceFacts = BLACKWELL, options: PlanOptions = BOUNDED
) -> BoundPlan:
    """Return the bound of the only batch."""
    partition = Partition.pack([random_codes(np.random.default_rng(1), 90) for _ in range(64)])
    requests = [ScoreRequest(profile, floor) for profile in profiles]
    (batch,) = plan_search(requests, partition, facts, options).batches
    assert batch.bound is not None
    return batch.bound


def profile_of(length: int, gap: GapPenalty | None = None) -> QueryProfile:
    codes = random_codes(np.random.default_rng(length), length)
    return sequence_profile(codes, ScoringScheme(named_matrix("BLOSUM62"), gap or GapPenalty(11, 1)))


def test_8_bit_lanes_need_their_range_a_strip_and_a_device_that_has_them() -> None:
    """By hand: floors to 254, gaps of a residue to 127, 16 lanes x 45 words x 4 rows, a compiler, no generic kernel."""

    def bits(profile: QueryProfile, floor: int = 60, **changes: bool) -> Arithmetic:
        facts = replace(BLACKWELL, byte_lanes=changes.get("byte_lanes", True))
        options = replace(BOUNDED, generic=changes.get("generic", False))
        return bound_of([profile], floor, facts, options).inter_task.arithmetic

    assert bits(profile_of(300)) is Arithmetic.BYTES
    assert bits(profile_of(300), 254) is Arithmetic.BYTES
    assert bits(profile_of(300), 255) is Arithmetic.FAST
    assert bits(profile_of(300, GapPenalty(126, 1)), 254) is Arithmetic.BYTES
    assert bits(profile_of(300, GapPenalty(127, 1)), 254) is Arithmetic.FAST
    assert bits(profile_of(2880)) is Arithmetic.BYTES
    assert bits(profile_of(2881)) is Arithmetic.FAST
    assert bits(profile_of(300), byte_lanes=False) is Arithmetic.FAST
    assert bits(profile_of(300), generic=True) is Arithmetic.FAST


def test_the_other_kernels_of_a_plan_do_not_depend_on_8_bit_lanes() -> None:
    """The bound of two queries that share words, and the other kernels, whether or not the bound has 8-bit lanes."""
    profiles = [profile_of(300), profile_of(310)]
    partition = Partition.pack([random_codes(np.random.default_rng(1), 90) for _ in range(64)])
    requests = [ScoreRequest(profile, 60) for profile in profiles]
    plans = [
        plan_search(requests, partition, replace(BLACKWELL, byte_lanes=byte_lanes), BOUNDED)
        for byte_lanes in (False, True)
    ]
    batches = [plan.batches[0] for plan in plans]
    assert [batch.bound.inter_task.arithmetic for batch in batches if batch.bound] == [
        Arithmetic.FAST,
        Arithmetic.BYTES,
    ]
    others = [
        [kernel for kernel in batch.kernels if kernel not in batch.bound.kernels] for batch in batches if batch.bound
    ]
    assert others[0] == others[1]


def test_the_plan_names_8_bit_lanes(scored: Scored) -> None:
    """24 words of 4 lanes are 384 rows; each query of a pair has its strip."""
    (line,) = (
        line
        for line in plan_search([ScoreRequest(profile_of(380), 60)], scored.partition, BLACKWELL, BOUNDED).lines()
        if "inter-task" in line
    )
    assert line.endswith("8 bits, bound, bands of 6 rows, strips of lanes x words: 4 x 24")


def test_generic_kernels_serve_until_those_of_8_bit_lanes_are_compiled(emulated: MakeDevice, scored: Scored) -> None:
    device = emulated(architecture=120, byte_lanes=True)
    thresholds = Thresholds(bound_subjects=1)
    with CudaEngine(device, thresholds=thresholds, kernels=KernelPolicy.GENERIC) as engine:
        assert_same(engine.score(scored.profiles, scored.partition, [50] * 3), scored.at_least(50))
    assert not any(spec.has_byte_lanes for spec in device.launched)


def test_tiles_of_8_bit_lanes_fit_the_device() -> None:
    """99 KB of shared memory per block of 12.0 and 100 per multiprocessor, of which each block takes 1 KB more."""
    for band in BANDS:
        for shape in tiles(120, Pairing.FOUR_BLOCKS, 28, band):
            assert shape.tile.words % band == 0
            assert shape.tile.shared_bytes <= 99 * 1024
            assert shape.blocks * (shape.tile.shared_bytes + 1024) <= 100 * 1024
            assert shape.threads * shape.blocks == 512
            assert shape.alone[1] > 0

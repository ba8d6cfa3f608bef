"""Long subjects in a search, in verified windows or by diamonds, on the emulated device.

The expected scores are the reference engine's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.plan import Thresholds
from swsearch.engine.cuda.search.planner import chain_limit
from swsearch.engine.cuda.search.subjects import device_bytes
from swsearch.engine.protocol import ScoreRequest
from swsearch.engine.reference import ReferenceEngine
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA
from swsearch.typing import Codes
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice
from tests.support import random_codes

MakeDevice = Callable[..., EmulatedDevice]
STRIDE = 256


def genome(seed: int, query: Codes) -> Partition:
    """Return short subjects, and two long ones that contain the query, intact and in segments far apart."""
    rng = np.random.default_rng(seed)
    long = random_codes(rng, 2_500, 4)
    half = len(query) // 2
    long[1_000 : 1_000 + half] = query[:half]
    long[1_000 + half + 15 : 1_015 + len(query)] = query[half:]
    other = random_codes(rng, 1_500, 4)
    other[-len(query) :] = query
    return Partition.pack([random_codes(rng, length, 4) for length in (5, 60, 200)] + [other, long])


def engine_with_small_windows(device: EmulatedDevice) -> CudaEngine:
    thresholds = Thresholds(
        window_overlap=128, window_stride=STRIDE, windowed_residues=2 * STRIDE, windowed_rows=400,
        diamond_residues=2 * STRIDE,
    )  # fmt: skip
    return CudaEngine(device, thresholds=thresholds)


def assert_as_reference(engine: CudaEngine, profiles: list[QueryProfile], partition: Partition) -> None:
    for floors in (None, [25] * len(profiles)):
        found, wanted = (e.score(profiles, partition, floors) for e in (engine, ReferenceEngine()))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.subject_index, other.subject_index)
            np.testing.assert_array_equal(one.score, other.score)


def test_all_ways_score_as_the_reference(emulated: MakeDevice) -> None:
    """Some queries use verified windows and others diamonds in one call; progress counts each cell once."""
    rng = np.random.default_rng(1)
    queries = [random_codes(rng, length, 4) for length in (40, 300, 500)]
    partition = genome(2, queries[0])
    profiles = [sequence_profile(query, default_scheme(DNA)) for query in queries]
    device = emulated(multiprocessors=16)
    reported: list[int] = []
    with engine_with_small_windows(device) as engine:
        assert_as_reference(engine, profiles, partition)
        assert {entry for entry, _ in device.launches} >= {"inter_task", "score_windows", "sweep_pairs"}
        engine.score(profiles, partition, progress=reported.append)
    assert sum(reported) == partition.n_residues * sum(map(len, queries))


@pytest.mark.parametrize(("less_bytes", "makes_room"), [(35_000, False), (115_000, True)])
def test_diamonds_find_room_where_the_database_takes_it(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch, less_bytes: int, makes_room: bool
) -> None:
    """If memory is insufficient, the long subjects are swept one by one, and then the cached database is freed."""
    kept: list[int] = []
    make_room = CudaEngine.make_room

    def watched(engine: CudaEngine) -> None:
        kept.append(device.used_bytes)
        make_room(engine)
        assert device.used_bytes == 0

    monkeypatch.setattr(CudaEngine, "make_room", watched)
    rng = np.random.default_rng(3)
    short, long = (sequence_profile(random_codes(rng, n, 4), default_scheme(DNA)) for n in (30, 500))
    partition = genome(5, random_codes(rng, 40, 4))
    n_sweeps, peak_bytes = [], 2**30
    for less in (0, less_bytes):
        device = emulated(memory_bytes=peak_bytes - less)
        with engine_with_small_windows(device) as engine:
            for profile in (short, long):
                assert_as_reference(engine, [profile], partition)
        n_sweeps.append([entry for entry, _ in device.launches].count("sweep_pairs"))
        peak_bytes = device.peak_bytes
    assert n_sweeps[0] == 2  # a call with floors and one without
    assert n_sweeps[1] > 2
    assert bool(kept) == makes_room
    assert all(kept)


def test_all_subjects_may_be_long(emulated: MakeDevice) -> None:
    """A genome and its plasmid are the only subjects, and the query has too many rows for windows."""
    partition = genome(6, random_codes(np.random.default_rng(6), 500, 4))[3:]
    profiles = [sequence_profile(random_codes(np.random.default_rng(7), n, 4), default_scheme(DNA)) for n in (450, 440)]
    device = emulated()
    with engine_with_small_windows(device) as engine:
        assert {
            batch.n_windowed for batch in engine.plan([ScoreRequest(each) for each in profiles], partition).batches
        } == {0}
        assert_as_reference(engine, profiles, partition)
    assert "sweep_pairs" in {entry for entry, _ in device.launches}


def test_queries_of_many_rows_share_words_where_no_subject_is_long(emulated: MakeDevice) -> None:
    profiles = [sequence_profile(random_codes(np.random.default_rng(8), 450, 4), default_scheme(DNA))] * 2
    short = Partition.pack([random_codes(np.random.default_rng(9), 50, 4)] * 3)
    with engine_with_small_windows(emulated()) as engine:
        assert [batch.indices for batch in engine.plan([ScoreRequest(each) for each in profiles], short).batches] == [
            (0, 1)
        ]


def test_gaps_that_cost_nothing_to_extend_are_proven_by_no_checkpoint(emulated: MakeDevice) -> None:
    """Alignments then have unbounded length, and the long subjects are scored completely."""
    query = random_codes(np.random.default_rng(4), 40, 4)
    profile = sequence_profile(query, ScoringScheme(default_scheme(DNA).matrix, GapPenalty(4, 0)))
    with engine_with_small_windows(emulated(multiprocessors=16)) as engine:
        assert_as_reference(engine, [profile], genome(3, query))


@pytest.mark.parametrize("n_long", [0, 3])
def test_subjects_that_end_in_time_stay_with_the_others(emulated: MakeDevice, n_long: int) -> None:
    """Many subjects of similar length are all scored by the inter-task kernels."""
    rng = np.random.default_rng(7)
    partition = Partition.pack([random_codes(rng, 400 + 100 * (number < n_long), 4) for number in range(30)])
    device = emulated(multiprocessors=16)
    with engine_with_small_windows(device) as engine:
        engine.score([sequence_profile(random_codes(rng, 30, 4), default_scheme(DNA))], partition)
    assert not {entry for entry, _ in device.launches} & {"score_windows", "sweep_pairs"}


def test_a_profile_with_a_row_for_each_position_is_not_given_to_diamonds(emulated: MakeDevice) -> None:
    """500 rows exceed the row limit of the diamond kernel; verified windows have no such limit."""
    rng = np.random.default_rng(8)
    query = random_codes(rng, 500, 4)
    plain = sequence_profile(query, default_scheme(DNA))
    profile = QueryProfile(np.arange(500, dtype=np.int32), plain.table[plain.rows], plain.gap)
    device = emulated(multiprocessors=16)
    with engine_with_small_windows(device) as engine:
        assert_as_reference(engine, [profile], genome(9, query[:40]))
    entries = {entry for entry, _ in device.launches}
    assert "score_windows" in entries
    assert "sweep_pairs" not in entries


def test_a_subject_is_long_if_its_chain_takes_longer_than_the_launch() -> None:
    """By hand: N residues and 256 rows take 256 N / (26 x 132) cycles, a column 200, or 3,200 with several strips."""
    launch = 180_000_000 * 256 / (26 * 132)
    assert chain_limit(180_000_000, [256], 132) == int(launch / 200)
    assert chain_limit(180_000_000, [128, 128], 132) == int(launch / 200)
    assert chain_limit(180_000_000, [2_560], 132) == int(10 * launch / 3200)


def test_a_database_with_long_subjects_is_uploaded_once(emulated: MakeDevice) -> None:
    """The shorter subjects are a prefix of the uploaded partition, so no limit between them needs a second copy."""
    rng = np.random.default_rng(11)
    profiles = [sequence_profile(random_codes(rng, length, 4), default_scheme(DNA)) for length in (300, 390)]
    partition = genome(12, profiles[0].rows.astype(np.uint8)[:40])
    with engine_with_small_windows(emulated(multiprocessors=16)) as engine:
        assert_as_reference(engine, profiles, partition)
        assert engine._store.kept_bytes == device_bytes(partition)

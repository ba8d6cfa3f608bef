"""Several devices as one engine, on emulated devices. The expected scores are the reference engine's."""

from __future__ import annotations

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Device
from swsearch.engine.cuda.search.multi_gpu import PROFILES_PER_DEVICE, CudaDevices
from swsearch.engine.cuda.search.subjects import chunk_bytes
from swsearch.engine.protocol import MemoryEngine, ScoreEngine, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.errors import EngineUnavailable
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice, opener
from tests.support import random_codes


def small_case(seed: int, n_queries: int) -> tuple[list[QueryProfile], Partition]:
    """Return queries of at least 20 residues, and 40 subjects, a quarter of them related to the first query."""
    rng = np.random.default_rng(seed)
    queries = [random_codes(rng, 20 + index) for index in range(n_queries)]
    subjects = [random_codes(rng, int(length)) for length in rng.integers(1, 60, 30)]
    subjects += [np.concatenate([random_codes(rng, 5), queries[0][: 5 + index]]) for index in range(10)]
    return [sequence_profile(query, default_scheme(PROTEIN)) for query in queries], Partition.pack(subjects)


def assert_same(found: list[ScoreBlock], wanted: list[ScoreBlock]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.subject_index, other.subject_index)
        np.testing.assert_array_equal(one.score, other.score)


@pytest.mark.parametrize("n_queries", [1, 2 * PROFILES_PER_DEVICE + 1])
def test_two_devices_score_as_one(n_queries):
    """With few queries each device scores a share of the subjects, with many it scores its own queries."""
    profiles, partition = small_case(5, n_queries)
    reported: list[int] = []
    with CudaDevices([0, 1], opener()) as engine:
        assert isinstance(engine, ScoreEngine)
        for _ in range(2):
            found = engine.score(profiles, partition, progress=reported.append)
            assert_same(found, ReferenceEngine().score(profiles, partition))
        floors = [30] * n_queries
        assert_same(engine.score(profiles, partition, floors), ReferenceEngine().score(profiles, partition, floors))
    assert sum(reported) == 2 * partition.n_residues * sum(profile.length for profile in profiles)


@pytest.mark.parametrize(("missing_bytes", "n_of_first"), [(0, 20), (1, 29)])
def test_the_memory_decides_how_subjects_are_divided(missing_bytes, n_of_first):
    """Of 40 subjects each device is dealt 20; ranges of equal residues give the first device the 29 shortest."""
    profiles, partition = small_case(8, 1)
    assert partition.lengths[:28].sum() < partition.n_residues / 2 <= partition.lengths[:30].sum()
    with CudaDevices([0, 1], opener(), chunk_bytes(partition) - missing_bytes) as engine:
        assert f"{n_of_first} subjects" in "".join(engine.explain(score_requests(profiles, [30]), partition))
        for floors in (None, [30]):
            found = engine.score(profiles, partition, floors)
            assert_same(found, ReferenceEngine().score(profiles, partition, floors))


def test_the_memory_of_the_engine_is_that_of_its_devices():
    """Expected value: the sum of what the devices state."""
    with CudaDevices([0, 1], opener()) as engine:
        assert isinstance(engine, MemoryEngine)
        assert engine.memory_bytes == sum(one.facts.memory_bytes for one in engine.engines) > 0
    assert not isinstance(ReferenceEngine(), MemoryEngine)


def test_a_device_that_cannot_be_opened_closes_the_others():
    closed: list[int] = []

    class Observed(EmulatedDevice):
        def close(self) -> None:
            closed.append(0)
            super().close()

    def open_device(ordinal: int) -> Device:
        if ordinal == 1:
            raise EngineUnavailable("cuda", "there is no device 1")
        return Observed()

    with pytest.raises(EngineUnavailable, match="there is no device 1"):
        CudaDevices([0, 1], open_device)
    assert closed == [0]


def test_a_stopped_search_leaves_the_devices_idle_and_usable():
    profiles, partition = small_case(6, 3)

    def stop(cells: int) -> None:
        raise KeyboardInterrupt

    with CudaDevices([0, 1], opener()) as engine:
        with pytest.raises(KeyboardInterrupt):
            engine.score(profiles, partition, progress=stop)
        assert_same(engine.score(profiles, partition), ReferenceEngine().score(profiles, partition))

"""Several devices as one engine, on emulated devices and, with ``-m gpu``, on two GPUs where there are two.

The expected scores are the reference engine's.
"""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Device
from swsearch.engine.cuda.runtime.presence import LIBRARY, ask_driver
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search import multi_gpu
from swsearch.engine.cuda.search.multi_gpu import PROFILES_PER_DEVICE, CudaDevices
from swsearch.engine.cuda.search.subjects import device_bytes
from swsearch.engine.protocol import BackgroundEngine, Scored, ScoreEngine, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.errors import EngineError, EngineUnavailable
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.search.searcher import FIRST_SHARE
from swsearch.sequences.alphabet import PROTEIN
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice, opener
from tests.engine.cuda.search.test_emulated_engine import assert_exact, assert_same
from tests.support import random_codes


def small_case(seed: int, n_queries: int) -> tuple[list[QueryProfile], Partition]:
    """Return queries of at least 20 residues, and 40 subjects, a quarter of them related to the first query."""
    rng = np.random.default_rng(seed)
    queries = [random_codes(rng, 20 + index) for index in range(n_queries)]
    subjects = [random_codes(rng, int(length)) for length in rng.integers(1, 60, 30)]
    subjects += [np.concatenate([random_codes(rng, 5), queries[0][: 5 + index]]) for index in range(10)]
    return [sequence_profile(query, default_scheme(PROTEIN)) for query in queries], Partition.pack(subjects)


@pytest.fixture(params=["emulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def open_device(request: pytest.FixtureRequest) -> Callable[[int], Device]:
    """Opens one of two devices."""
    if request.param == "emulated":
        return opener()
    if ask_driver(LIBRARY).n_devices < 2:
        pytest.skip("there are no two GPUs")
    return PyCudaDevice


@pytest.mark.parametrize("n_queries", [1, 2 * PROFILES_PER_DEVICE + 1])
def test_two_devices_score_as_one(open_device, n_queries):
    """With few queries each device scores a share of the subjects, with many it scores its own queries."""
    profiles, partition = small_case(5, n_queries)
    reported: list[int] = []
    with CudaDevices([0, 1], open_device) as engine:
        assert isinstance(engine, ScoreEngine)
        for _ in range(2):
            found = engine.score(score_requests(profiles), partition, reported.append)
            assert_same(found, ReferenceEngine().score(score_requests(profiles), partition))
        floors = [30] * n_queries
        assert_exact(engine, profiles, partition, floors)
    assert sum(reported) == 2 * partition.n_residues * sum(profile.length for profile in profiles)


@pytest.mark.parametrize(("missing_bytes", "n_of_first"), [(0, 20), (1, 29)])
def test_the_memory_decides_how_subjects_are_divided(open_device, missing_bytes, n_of_first):
    """Of 40 subjects each device is dealt 20; ranges of equal residues give the first device the 29 shortest."""
    profiles, partition = small_case(8, 1)
    assert partition.lengths[:28].sum() < partition.n_residues / 2 <= partition.lengths[:30].sum()
    with CudaDevices([0, 1], open_device, device_bytes(partition) - missing_bytes) as engine:
        assert f"{n_of_first} subjects" in "".join(engine.explain(score_requests(profiles, [30]), partition))
        for floors in (None, [30]):
            found = engine.score(score_requests(profiles, floors), partition)
            assert_same(found, ReferenceEngine().score(score_requests(profiles, floors), partition))


def test_a_device_that_keeps_the_database_scores_its_share_of_it(open_device):
    """The second device cannot keep half of it. Many queries come first, then one, then many again."""
    profiles, partition = small_case(12, 2 * PROFILES_PER_DEVICE)
    with CudaDevices([0, 1], open_device) as engine:
        for one, part in zip(engine.engines, (2.0, 0.25), strict=True):
            one.store.limit_bytes = one.store.piece_bytes = int(device_bytes(partition) * part)
        for chosen in (profiles, profiles[:1], profiles):
            assert engine.shares_subjects(len(chosen), partition) == (len(chosen) == 1)
            assert not engine.shares_subjects(engine.profiles_per_call // FIRST_SHARE, partition)
            assert_exact(engine, chosen, partition, [5] * len(chosen))


def test_a_scoring_that_has_ended_is_kept_by_nobody(open_device):
    """It is freed with the last reference, without a search for cycles."""
    profiles, partition = small_case(13, 1)
    with CudaDevices([0, 1], open_device) as engine:
        scoring = engine.begin(score_requests(profiles), partition)
        known = [weakref.ref(each) for each in (scoring, *scoring.calls)]
        assert len(dict(scoring.results())) == 1
        for gpu in engine._gpus:
            gpu.do(lambda _: None)  # the thread has left the call
        del scoring
        assert [each() for each in known] == [None] * 3
        assert len(engine._shares) == 1
        del partition
        assert len(engine._shares) == 0


def test_a_database_is_kept_that_each_device_keeps():
    """Expected value: the least of what the devices keep."""
    with CudaDevices([0, 1], opener()) as engine:
        assert isinstance(engine, BackgroundEngine)
        assert engine.kept_bytes == min(one.store.limit_bytes for one in engine.engines) > 0
    assert not isinstance(ReferenceEngine(), BackgroundEngine)


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


def test_each_device_streams_subjects_beyond_its_memory(open_device):
    """Neither all subjects nor a device's share fit a third of the memory that they need."""
    profiles, partition = small_case(9, 2 * PROFILES_PER_DEVICE + 1)
    with CudaDevices([0, 1], open_device, device_bytes(partition) // 3) as engine:
        assert not engine.shares_subjects(len(profiles), partition)
        for chosen in (profiles, profiles[:1]):
            shares = [partition[rows] for rows in engine._ranges_of(partition)]
            assert not any(one.store.keeps(share) for one in engine.engines for share in shares)
            found = engine.score(score_requests(chosen, [30] * len(chosen)), partition)
            assert_same(found, ReferenceEngine().score(score_requests(chosen, [30] * len(chosen)), partition))


@pytest.mark.parametrize("n_queries", [1, 2 * PROFILES_PER_DEVICE + 1])
def test_the_error_of_one_device_ends_the_call_and_no_other(open_device, monkeypatch, n_queries):
    """Expected values: the error of the second device; blocks before it are exact; both devices score the next call."""
    profiles, partition = small_case(10, n_queries)
    wanted = ReferenceEngine().score(score_requests(profiles), partition)
    with CudaDevices([0, 1], open_device) as engine:
        assert_same(engine.score(score_requests(profiles), partition), wanted)
        failing = engine.engines[1].device
        launches: list[int] = []
        launch = failing.launch

        def fail(*arguments: Any) -> None:
            launches.append(1)
            if len(launches) == min(n_queries, 3):
                raise EngineError("the device has fallen off the bus")
            launch(*arguments)

        monkeypatch.setattr(failing, "launch", fail)
        kept: list[Scored] = []
        with pytest.raises(EngineError, match="fallen off the bus"):
            kept.extend(engine.begin(score_requests(profiles, None), partition).results())
        assert len(kept) < n_queries
        assert_same([block for _, block in kept], [wanted[index] for index, _ in kept])
        assert_same(engine.score(score_requests(profiles), partition), wanted)


def test_idle_devices_begin_one_after_another(open_device, monkeypatch):
    """The second device prepares its launches when the first computes; the first goes on when both compute."""
    profiles, partition = small_case(11, 1)
    events: list[str] = []

    def noted(name: str, method: Callable[..., None]) -> Callable[..., None]:
        def note(call: Any) -> None:
            events.append(f"{call._number} {name}")
            method(call)
            events.append(f"{call._number} {name} ended")

        return note

    monkeypatch.setattr(multi_gpu, "PATIENCE_SECONDS", 60.0)
    with CudaDevices([0, 1], open_device) as engine:
        for name in ("wait", "launched"):
            monkeypatch.setattr(multi_gpu._DeviceCall, name, noted(name, getattr(multi_gpu._DeviceCall, name)))
        assert_exact(engine, profiles, partition, [30])
    assert events.index("0 launched") < events.index("1 wait ended") < events.index("1 launched")
    assert events.index("1 launched") < events.index("0 launched ended")


def test_a_stopped_search_leaves_the_devices_idle_and_usable(open_device):
    profiles, partition = small_case(6, 3)

    def stop(cells: int) -> None:
        raise KeyboardInterrupt

    with CudaDevices([0, 1], open_device) as engine:
        with pytest.raises(KeyboardInterrupt):
            engine.score(score_requests(profiles), partition, stop)
        assert_exact(engine, profiles, partition)

"""Several calls of one device, on the emulated device. Expected blocks: the reference engine's."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Buffer, DeviceLost, OutOfDeviceMemory
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.engine.cuda.search.engine import CudaEngine, ScoreCall
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.cuda.search.subjects import device_bytes
from swsearch.engine.protocol import ScoreRequest, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice, MakeDevice
from tests.engine.cuda.search.test_emulated_engine import assert_same
from tests.support import random_codes


class Noted(ScoreCall):
    """A call that keeps its blocks, and notes what happens in a list that several calls share."""

    def __init__(self, name: str, requests: Sequence[ScoreRequest], partition: Partition, events: list[str]) -> None:
        super().__init__(requests, partition)
        self.name = name
        self.events = events
        self.n_cells = 0
        self.cancelled = False

    @property
    def is_cancelled(self) -> bool:
        return self.cancelled

    def prepared(self) -> None:
        self.events.append(f"{self.name} prepared")

    def advanced(self, n_cells: int) -> None:
        self.n_cells += n_cells

    def scored(self, index: int, block: ScoreBlock) -> None:
        assert index not in self.blocks
        self.events.append(f"{self.name} scored {index}")
        super().scored(index, block)

    def ended(self, error: BaseException | None) -> None:
        self.events.append(f"{self.name} ended")
        super().ended(error)


def source(calls: Sequence[ScoreCall]) -> Callable[[], ScoreCall | None]:
    waiting = list(calls)
    return lambda: waiting.pop(0) if waiting else None


def profiles_of(seed: int, *lengths: int) -> list[QueryProfile]:
    rng = np.random.default_rng(seed)
    return [sequence_profile(random_codes(rng, length), default_scheme(PROTEIN)) for length in lengths]


def subjects(seed: int, n: int = 20) -> Partition:
    rng = np.random.default_rng(seed)
    return Partition.pack([random_codes(rng, int(length), 27) for length in rng.integers(3, 80, n)])


def assert_complete(call: Noted) -> None:
    assert call.error is None
    profiles = [request.profile for request in call.requests]
    floors = [request.floor for request in call.requests]
    known = None if None in floors else [floor for floor in floors if floor is not None]
    wanted = ReferenceEngine().score(score_requests(profiles, known), call.partition)
    assert sorted(call.blocks) == list(range(len(profiles)))
    assert_same([call.blocks[index] for index in range(len(profiles))], wanted)
    assert call.n_cells == sum(profile.length for profile in profiles) * call.partition.n_residues
    assert call.events.count(f"{call.name} ended") == 1
    assert (call.cut, call.waiting, call.parts, call.tiled) == (None, {}, {}, {})


def several(events: list[str], partitions: Sequence[Partition]) -> list[Noted]:
    """Calls of one query, of five, and of none, with and without floors."""
    lengths = [(31,), (40, 33, 29, 25, 61), (), (22, 50), (35,), (44, 44, 12)]
    calls = []
    for number, of_call in enumerate(lengths):
        profiles = profiles_of(number, *of_call)
        floors = None if number % 2 else [15] * len(profiles)
        partition = partitions[number % len(partitions)]
        calls.append(Noted(str(number), score_requests(profiles, floors), partition, events))
    return calls


@pytest.mark.parametrize("seed", range(4))
def test_calls_in_one_pipeline_have_the_blocks_of_single_calls(emulated: MakeDevice, seed: int) -> None:
    """The operations of the device's streams end in random order."""
    events: list[str] = []
    calls = several(events, [subjects(1)])
    with CudaEngine(emulated(shuffle=seed)) as engine:
        engine.serve(source(calls))
    for call in calls:
        assert_complete(call)
    order = [event.split()[0] for event in events if event.endswith("ended")]
    assert [name for name in order if name != "2"] == ["0", "1", "3", "4", "5"]  # call 2 has no requests


def test_the_next_call_begins_before_the_last_one_has_ended(emulated: MakeDevice) -> None:
    events: list[str] = []
    partition = subjects(2)

    class Device(EmulatedDevice):
        def launch(self, spec: Any, *arguments: Any) -> None:
            events.append("launch")
            super().launch(spec, *arguments)

    calls = [Noted(name, score_requests(profiles_of(3, 30), [20]), partition, events) for name in "ab"]
    with CudaEngine(Device()) as engine:
        engine.serve(source(calls))
    first, second = events.index("a ended"), events.index("b prepared")
    assert second < first
    assert "launch" in events[second:first]
    for call in calls:
        assert_complete(call)


def test_calls_of_other_subjects_wait_for_the_last_one(emulated: MakeDevice) -> None:
    """Two partitions that fit the memory together, and two of which either takes the place of the other."""
    both = [subjects(4), subjects(5, 25)]
    for memory_limit in (1 << 20, max(map(device_bytes, both))):
        events: list[str] = []
        calls = several(events, both)
        with CudaEngine(emulated(shuffle=1), memory_limit) as engine:
            engine.serve(source(calls))
        for call in calls:
            assert_complete(call)


def test_a_streamed_partition_is_scored_between_calls_of_one_that_is_kept(emulated: MakeDevice) -> None:
    small, large = subjects(6, 4), subjects(7, 60)
    events: list[str] = []
    calls = several(events, [small, large])
    with CudaEngine(emulated(shuffle=2), device_bytes(small)) as engine:
        engine.serve(source(calls))
    for call in calls:
        assert_complete(call)


@pytest.mark.parametrize("memory_limit", [100, 10_000, 1 << 20], ids=["streamed", "kept", "closed"])
def test_a_database_that_the_device_no_longer_has_is_kept_by_nobody(emulated: MakeDevice, memory_limit: int) -> None:
    """Its longest subject is cut; the next database takes its place, or the engine is closed."""
    rng = np.random.default_rng(30)
    first, second = (Partition.pack([random_codes(rng, length) for length in (*[30] * 20, 6000)]) for _ in range(2))
    requests = score_requests(profiles_of(31, 30))
    known = [weakref.ref(each.residues) for each in (first, second)]
    with CudaEngine(emulated(multiprocessors=16), memory_limit, PlanOptions(long_residues=200)) as engine:
        assert_same(engine.score(requests, first), ReferenceEngine().score(requests, first))
        del first
        engine.score(requests, second)
        assert (known[0]() is None) == (memory_limit < 1 << 20)
    del second
    assert [each() for each in known] == [None, None]


def test_calls_with_subjects_for_diamonds_join_the_others(emulated: MakeDevice) -> None:
    """The long subject of the second call's long query is scored by diamonds, and that of the short queries is not."""
    rng = np.random.default_rng(8)
    partition = Partition.pack([random_codes(rng, length) for length in (20, 30, 1500)])
    options = PlanOptions(long_residues=100, window_residues=1000, diamond_rows=100, diamond_residues=1000)
    events: list[str] = []
    queries = [(40,), (150, 30), (20,)]
    calls = [
        Noted(str(number), score_requests(profiles_of(number, *lengths), None), partition, events)
        for number, lengths in enumerate(queries)
    ]
    device = emulated()
    with CudaEngine(device, options=options) as engine:
        engine.serve(source(calls))
    assert "sweep_pairs" in [entry for entry, _ in device.launches]
    for call in calls:
        assert_complete(call)


def test_calls_are_complete_although_the_device_runs_out_of_memory(emulated: MakeDevice) -> None:
    """The device has one byte less than the calls take, and then one byte less again, as often as that suffices."""
    partition = subjects(9, 200)
    refused: list[int] = []

    class Small(EmulatedDevice):
        def allocate(self, n_bytes: int) -> Buffer:
            if n_bytes > self.free_bytes():
                refused.append(n_bytes)
            return super().allocate(n_bytes)

    wanted = ReferenceEngine().score(score_requests(profiles_of(10, 60, 61, 62, 63), [20] * 4), partition)
    memory_bytes, n_short = 1 << 30, 0
    for attempt in range(6):
        refused.clear()
        device = Small(memory_bytes=memory_bytes, shuffle=attempt)
        calls = [
            Noted(str(number), score_requests([profile], [20]), partition, [])
            for number, profile in enumerate(profiles_of(10, 60, 61, 62, 63))
        ]
        with CudaEngine(device, 1 << 20) as engine:
            engine.serve(source(calls))
        for call, block in zip(calls, wanted, strict=True):
            assert call.error is None
            assert call.blocks[0].score.tolist() == block.score.tolist()
        n_short += bool(refused)
        memory_bytes = device.peak_bytes - 1
    assert n_short > 0


def test_a_cancelled_call_ends_without_blocks_and_the_others_go_on(emulated: MakeDevice) -> None:
    """One is cancelled before it is taken, and one by what happens during the first."""
    events: list[str] = []
    partition = subjects(11)

    class Cancelling(Noted):
        def scored(self, index: int, block: ScoreBlock) -> None:
            super().scored(index, block)
            during.cancelled = True

    lengths = [31, 32, 33, 34, 35, 36]
    first = Cancelling("first", score_requests(profiles_of(12, *lengths), None), partition, events)
    before = Noted("before", score_requests(profiles_of(13, 40), None), partition, events)
    during = Noted("during", score_requests(profiles_of(14, *lengths), None), partition, events)
    last = Noted("last", score_requests(profiles_of(15, 30), None), partition, events)
    before.cancelled = True
    with CudaEngine(emulated(), options=PlanOptions(pairs=False)) as engine:
        engine.serve(source([first, before, during, last]))
    for call in (first, last):
        assert_complete(call)
    assert "before prepared" not in events
    for call in (before, during):
        assert call.error is None
        assert not call.blocks
        assert events.count(f"{call.name} ended") == 1


def test_a_call_that_ends_while_its_next_batch_is_started_disturbs_no_other(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cancelled when its first batch ends, which is when the only slot is free for the next one."""

    class Cancelling(Noted):
        def scored(self, index: int, block: ScoreBlock) -> None:
            super().scored(index, block)
            self.cancelled = True

    monkeypatch.setattr("swsearch.engine.cuda.search.engine.IN_FLIGHT", 1)
    partition = subjects(27)
    first = Cancelling("first", score_requests(profiles_of(28, 30, 31, 32)), partition, [])
    last = Noted("last", score_requests(profiles_of(29, 30)), partition, [])
    with CudaEngine(emulated(), options=PlanOptions(pairs=False)) as engine:
        engine.serve(source([first, last]))
    assert first.error is None
    assert first.events.count("first ended") == 1
    assert_complete(last)


def test_a_call_that_is_cancelled_while_a_kernel_is_compiled_loads_no_other(emulated: MakeDevice) -> None:
    """Other work is done before each kernel. Neither the second kernel nor a subject is loaded."""
    events: list[str] = []

    class Device(EmulatedDevice):
        def prepare(self, spec: KernelSpec) -> None:
            super().prepare(spec)
            call.cancelled = True

    call = Noted("a", score_requests(profiles_of(21, 30, 60), [20, 20]), subjects(22), events)
    device = Device()
    with CudaEngine(device, options=PlanOptions(pairs=False)) as engine:
        engine.serve(source([call]), lambda: events.append(f"{len(device.prepared)} kernels"))
        assert engine.store.kept_bytes == 0
    assert events[:5] == ["0 kernels", "0 kernels", "1 kernels", "a prepared", "a ended"]
    assert len(device.prepared) == 1
    assert not device.launches


def test_a_call_that_is_cancelled_before_its_first_batch_uploads_nothing(emulated: MakeDevice) -> None:
    class Prepared(Noted):
        def prepared(self) -> None:
            super().prepared()
            self.cancelled = True

    call = Prepared("a", score_requests(profiles_of(23, 30), [20]), subjects(24), [])
    with CudaEngine(emulated()) as engine:
        engine.serve(source([call]))
        assert engine.store.kept_bytes == 0
    assert call.events == ["a prepared", "a ended"]


def test_a_call_is_complete_although_there_is_no_memory_for_its_kernels_at_first(emulated: MakeDevice) -> None:
    class Full(EmulatedDevice):
        def prepare(self, specs: Sequence[KernelSpec]) -> None:
            raise OutOfDeviceMemory("out of memory while loading a kernel")

    call = Noted("a", score_requests(profiles_of(25, 30, 40), [20, 20]), subjects(26), [])
    with CudaEngine(Full()) as engine:
        engine.serve(source([call]))
    assert call.events[0] == "a prepared"
    assert_complete(call)


def test_an_error_of_a_caller_ends_the_calls_in_progress(emulated: MakeDevice) -> None:
    """A later call is scored."""

    class Interrupted(Noted):
        def advanced(self, n_cells: int) -> None:
            raise KeyboardInterrupt

    partition = subjects(16)
    wrong, other, later = (
        kind(kind.__name__, score_requests(profiles_of(17, 30), None), partition, [])
        for kind in (Interrupted, Noted, Noted)
    )
    with CudaEngine(emulated()) as engine:
        engine.serve(source([wrong, other]))
        assert not engine._calls
        engine.serve(source([later]))
    assert isinstance(wrong.error, KeyboardInterrupt)
    assert other.error is wrong.error
    assert wrong.blocks == other.blocks == {}
    assert_complete(later)


def test_a_lost_device_ends_all_calls_in_progress_with_its_error() -> None:
    events: list[str] = []
    partition = subjects(19)
    lost = DeviceLost("the device is lost")

    class Device(EmulatedDevice):
        def launch(self, spec: Any, *arguments: Any) -> None:
            if "b prepared" in events:
                raise lost
            super().launch(spec, *arguments)

    calls = [Noted(name, score_requests(profiles_of(20, 30), None), partition, events) for name in "abc"]
    take = source(calls)
    with CudaEngine(Device()) as engine:
        engine.serve(take)
        assert [call.error for call in calls] == [lost, lost, None]
        assert take() is calls[2]  # it was not taken

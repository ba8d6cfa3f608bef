"""Which worker gets which part, and that every query is answered once, whatever happens in whatever order.

The workers of these tests are in this process: a test sees each task that is sent, and decides who answers next, who
ends, and when the scheduler does. ``test_losses.py`` has the same events with real processes. Expected values are
written by hand.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from swsearch.cluster import dispatcher as dispatching
from swsearch.cluster.connection import PREPARE, Answered, WorkerInfo
from swsearch.cluster.dispatcher import BatchStream, Dispatcher, SliceTask
from swsearch.cluster.tasks import Failed, Found, Ready, packed, unpacked
from swsearch.engine.registry import Machine
from swsearch.errors import EngineError, InputError
from swsearch.hits.result import QueryResult, SearchStats
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord

GB = 10**9


@dataclass
class Sent:
    """A task at a worker."""

    ticket: int
    worker: str
    slice: int
    names: list[str]


@dataclass
class Hands:
    """A connection whose workers answer when a test says so."""

    memory: dict[str, int]
    where: str = "by hand"
    is_lost: bool = False
    sent: list[Sent] = field(default_factory=list)
    preparing: list[tuple[int, str]] = field(default_factory=list)
    ready: dict[int, Answered] = field(default_factory=dict)
    n_sent: int = 0
    unwell: dict[str, Failed] = field(default_factory=dict)

    def workers(self) -> dict[str, WorkerInfo]:
        return {name: WorkerInfo(name, f"worker {name}", 1, limit_bytes=memory) for name, memory in self.memory.items()}

    def ask(self, worker: str, request: str, *arguments: Any) -> int:
        self.n_sent += 1
        if request == PREPARE:
            said = self.unwell.get(worker, Ready("an engine", 0))
            self.ready[self.n_sent] = Answered(self.n_sent, packed(said))
        else:
            spec, queries, _ = arguments
            names = [query.header for query in unpacked(queries)]
            self.sent.append(Sent(self.n_sent, worker, int(unpacked(spec)), names))
        return self.n_sent

    def forget(self, ticket: int) -> None:
        self.sent = [one for one in self.sent if one.ticket != ticket]

    def answered(self, _seconds: float) -> list[Answered]:
        found, self.ready = list(self.ready.values()), {}
        return found

    def reconnect(self) -> None:
        self.is_lost = False

    # --- what a test does ---

    def answer(self, one: Sent, seconds: float = 1.0) -> None:
        """Let a worker answer; a result names its slice and worker."""
        self.sent.remove(one)
        stats = SearchStats(1, 1.0, 1.0, 0)
        results = [QueryResult(0, name, f"{one.slice}", (), 1, stats) for name in one.names]
        self.ready[one.ticket] = Answered(one.ticket, packed(Found(results, seconds)))

    def fail(self, one: Sent, failure: Failed) -> None:
        self.sent.remove(one)
        self.ready[one.ticket] = Answered(one.ticket, packed(failure))

    def end(self, worker: str) -> list[Sent]:
        """Let a worker end; returns what it had."""
        del self.memory[worker]
        lost = [one for one in self.sent if one.worker == worker]
        self.sent = [one for one in self.sent if one.worker != worker]
        return lost

    def of(self, worker: str) -> list[tuple[int, list[str]]]:
        return [(one.slice, one.names) for one in self.sent if one.worker == worker]


def query(number: int) -> SequenceRecord:
    return SequenceRecord(f"q{number}", np.zeros(10, dtype=np.uint8), PROTEIN)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are looked at in each step, and each part has one query."""
    monkeypatch.setattr(dispatching, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(dispatching, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(dispatching, "TASK_SECONDS", 1e-12)


def dealt(hands: Hands, n_queries: int, slices: list[int], **named: Any) -> tuple[Dispatcher, Iterator[QueryResult]]:
    """A search of so many queries in slices of these sizes; a result has the slices that were joined as letters."""
    deals = Dispatcher(hands, Machine(), cells_of=lambda _: 1000, top=25, **named)  # type: ignore[arg-type]
    deals.meet()
    deals.slices = [SliceTask(packed(number), n_bytes, 1 / len(slices)) for number, n_bytes in enumerate(slices)]

    def joined(parts: Any) -> QueryResult:
        letters = "".join(part.letters for part in parts)
        return QueryResult(0, parts[0].header, letters, (), len(parts), parts[0].stats)

    return deals, deals.search(map(query, range(n_queries)), None, joined)


def answers(results: Iterator[QueryResult]) -> list[tuple[int, str, str]]:
    return [(result.number, result.header, result.letters) for result in results]


def settle(deals: Dispatcher) -> None:
    """Let the dispatcher take what was answered, and send what follows from it."""
    for _ in range(3):
        deals.step()


def test_each_worker_has_two_parts_and_results_are_in_order():
    """The first query is answered last; its result comes first."""
    hands = Hands({"a": GB, "b": GB})
    deals, results = dealt(hands, 6, [1])
    assert hands.of("a") == [(0, ["q0"]), (0, ["q2"])]
    assert hands.of("b") == [(0, ["q1"]), (0, ["q3"])]
    last = hands.sent[0]
    while len(hands.sent) > 1 or hands.ready:
        for one in [one for one in hands.sent if one is not last]:
            hands.answer(one)
        settle(deals)
    hands.answer(last)
    assert answers(results) == [(number, f"q{number}", "0") for number in range(6)]


def test_the_number_of_unfinished_batches_is_bounded():
    """The first part is never answered: 4 and twice the places of the workers, 12 batches, are begun."""
    hands = Hands({"a": GB, "b": GB})
    read: list[int] = []
    deals = Dispatcher(hands, Machine(), cells_of=lambda _: 1000, top=25)  # type: ignore[arg-type]
    deals.meet()
    deals.slices = [SliceTask(packed(0), 1, 1.0)]
    results = deals.search(
        (read.append(number) or query(number) for number in range(10**6)), None, lambda parts: parts[0]
    )
    stuck = hands.sent[0]
    for _ in range(50):
        for one in [one for one in hands.sent if one is not stuck]:
            hands.answer(one)
        settle(deals)
    assert len(read) == 12
    results.close()
    assert hands.sent == []


def test_workers_open_different_slices_first_and_further_ones_when_idle():
    """Three slices, two workers with memory for two: a opens 0, b opens 1, then the first with a free place opens 2."""
    hands = Hands({"a": 4 * GB, "b": 4 * GB})
    deals, results = dealt(hands, 4, [GB, GB, GB])
    assert hands.of("a") == [(0, ["q0"]), (2, ["q0"])]
    assert hands.of("b") == [(1, ["q0"]), (1, ["q1"])]
    found = []
    for _ in range(40):
        for one in list(hands.sent):
            hands.answer(one)
        settle(deals)
    found = answers(results)
    assert found == [(number, f"q{number}", "012") for number in range(4)]


def test_an_idle_worker_opens_the_slice_for_which_most_work_waits():
    """Worker a holds both slices and answers nothing; b, which joins, holds none, and gets each in turn."""
    hands = Hands({"a": 4 * GB})
    deals, _ = dealt(hands, 40, [GB, GB])
    assert hands.of("a") == [(0, ["q0"]), (1, ["q0"])]
    hands.memory["b"] = 4 * GB
    settle(deals)
    assert hands.of("b") == [(0, ["q1"]), (0, ["q2"])]


def test_a_slice_with_few_holders_is_opened_first():
    """Slice 0 has two holders and slice 1 one; one that joins opens slice 1, though parts of slice 0 come first."""
    hands = Hands(dict.fromkeys("abc", GB))
    deals, _ = dealt(hands, 40, [GB, GB])
    assert [{number for number, _ in hands.of(name)} for name in "abc"] == [{0}, {1}, {0}]
    hands.memory["d"] = GB
    settle(deals)
    assert {number for number, _ in hands.of("d")} == {1}


def test_a_worker_without_room_replaces_a_slice_only_if_nobody_holds_the_needed_one():
    """One worker with memory for one of three slices searches them one after the other; nothing waits for ever."""
    hands = Hands({"a": GB})
    deals, results = dealt(hands, 3, [GB, GB, GB])
    order = []
    while hands.sent:
        assert len({one.slice for one in hands.sent}) == 1
        order.append(hands.sent[0].slice)
        hands.answer(hands.sent[0])
        settle(deals)
    assert answers(results) == [(number, f"q{number}", "012") for number in range(3)]
    assert sorted(order) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_an_idle_worker_takes_what_another_has_not_begun():
    """Two queries at worker a; b joins when none is left, and gets the second of them."""
    hands = Hands({"a": GB})
    deals, results = dealt(hands, 2, [1])
    assert hands.of("a") == [(0, ["q0"]), (0, ["q1"])]
    hands.memory["b"] = GB
    settle(deals)
    assert (hands.of("a"), hands.of("b")) == ([(0, ["q0"])], [(0, ["q1"])])
    for one in list(hands.sent):
        hands.answer(one)
    assert answers(results) == [(0, "q0", "0"), (1, "q1", "0")]


def test_a_part_that_ends_its_workers_is_divided_and_the_guilty_query_is_named(monkeypatch):
    """Parts of several queries; whoever has q2 ends."""
    monkeypatch.setattr(dispatching, "TASK_SECONDS", 1.0)
    hands = Hands({"w0": GB})
    deals, results = dealt(hands, 5, [1])
    assert hands.of("w0") == [(0, ["q0", "q1", "q2", "q3", "q4"])]
    innocent: set[str] = set()

    def go_on() -> None:
        for number in range(1, 50):
            first = hands.sent[0]
            if "q2" in first.names:
                hands.memory[f"w{number}"] = GB
                hands.end(first.worker)
            else:
                innocent.update(first.names)
                hands.answer(first)
            settle(deals)

    with pytest.raises(EngineError, match=r"^3 workers ended while they searched query q2; leave it out"):
        go_on()
    assert innocent == {"q0", "q1"}
    results.close()


def test_a_part_that_is_divided_leaves_those_of_other_slices(monkeypatch):
    """Three workers end with five queries in slice 0, which are searched one by one; those in slice 1, together."""
    monkeypatch.setattr(dispatching, "TASK_SECONDS", 1.0)
    hands = Hands({"w0": GB})
    deals, results = dealt(hands, 5, [1, 1])
    for number in range(1, 4):
        assert len(hands.sent[0].names) == 5
        hands.memory[f"w{number}"] = GB
        hands.end(hands.sent[0].worker)
        settle(deals)
    sizes = []
    while hands.sent:
        sizes.append((hands.sent[0].slice, len(hands.sent[0].names)))
        hands.answer(hands.sent[0])
        settle(deals)
    assert sorted(sizes) == [(0, 1)] * 5 + [(1, 5)]
    assert answers(results) == [(number, f"q{number}", "01") for number in range(5)]


def test_the_first_answer_counts(monkeypatch):
    """A silent worker's part is given to another; both answer in the end."""
    hands = Hands({"a": GB, "b": GB})
    said: list[str] = []
    deals, results = dealt(hands, 2, [1], deadline_seconds=0.0, notify=said.append)
    slow = next(one for one in hands.sent if one.worker == "a")
    monkeypatch.setattr(dispatching, "OPENING_SECONDS", 0.0)
    settle(deals)
    assert any("worker a has not answered" in line for line in said)
    for one in list(hands.sent):
        hands.answer(one)
    assert slow not in hands.sent
    settle(deals)
    for one in list(hands.sent):
        hands.answer(one)
    assert answers(results) == [(0, "q0", "0"), (1, "q1", "0")]


def test_a_worker_whose_engine_fails_is_left_out_and_the_last_one_ends_the_search():
    """Expected value: the message of the last engine."""
    hands = Hands({"a": GB, "b": GB})
    said: list[str] = []
    deals, results = dealt(hands, 3, [1], notify=said.append)
    hands.fail(next(one for one in hands.sent if one.worker == "a"), Failed("EngineError", "out of order"))
    settle(deals)
    assert said == ["worker a: out of order; it gets no more work"]
    hands.fail(next(one for one in hands.sent if one.worker == "b"), Failed("EngineError", "gone as well"))
    with pytest.raises(EngineError, match=r"^worker b: gone as well$"):
        answers(results)


def test_a_misfit_ends_a_search_only_if_it_was_there_at_the_start():
    """A worker with another version that joins later is left out; one at the start is an error."""
    other = Failed("InputError", "this worker has swsearch 0.0.1")
    said: list[str] = []
    hands = Hands({"a": GB}, unwell={"b": other})
    deals, results = dealt(hands, 2, [1], notify=said.append)
    hands.memory["b"] = GB
    settle(deals)
    assert said == ["worker b: this worker has swsearch 0.0.1; it gets no more work"]
    while hands.sent:
        hands.answer(hands.sent[0])
        settle(deals)
    assert len(answers(results)) == 2
    with pytest.raises(InputError, match=r"^worker b: this worker has swsearch 0\.0\.1$"):
        dealt(Hands({"a": GB, "b": GB}, unwell={"b": other}), 2, [1])


class Chance(Hands):
    """Workers come, go and answer in a random order, and the scheduler ends now and then."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        super().__init__({f"w{number}": self._memory() for number in range(self.chance.randint(1, 4))})

    def _memory(self) -> int:
        return self.chance.randint(1, 4) * GB

    def answered(self, seconds: float) -> list[Answered]:
        event = self.chance.random()
        if event < 0.8 and self.sent:
            self.answer(self.chance.choice(self.sent), self.chance.random())
        elif event < 0.85 and len(self.memory) > 1:
            self.end(self.chance.choice(sorted(self.memory)))
        elif event < 0.9:
            self.memory[f"w{self.n_sent}"] = self._memory()
        elif event < 0.91:
            self.sent.clear()
            self.ready.clear()
            self.memory = {f"s{self.n_sent}": self._memory()}
            self.is_lost = True
        return super().answered(seconds)


@pytest.mark.parametrize("seed", range(30))
def test_every_query_is_answered_once_and_in_order(seed, monkeypatch):
    """Forty queries in one to three slices, of which each worker has memory for some."""
    monkeypatch.setattr(dispatching, "MAX_LOSSES", 1000)
    n_slices = 1 + seed % 3
    _, results = dealt(Chance(seed), 40, [GB // 2] * n_slices)
    assert answers(results) == [(number, f"q{number}", "012"[:n_slices]) for number in range(40)]


def test_batches_become_smaller_toward_the_end(monkeypatch):
    """Two workers of 1,000 cells per second each, and queries of 1,000 cells."""
    monkeypatch.setattr(dispatching, "TASK_SECONDS", 8.0)
    monkeypatch.setattr(dispatching, "LEAST_SECONDS", 1.0)
    monkeypatch.setattr(dispatching, "FIRST_CELLS_PER_SECOND", 500.0)
    hands = Hands({"a": GB, "b": GB})
    _, results = dealt(hands, 100, [1])
    sizes = []
    while hands.sent:
        one = hands.sent[0]
        sizes.append(len(one.names))
        hands.answer(one, seconds=len(one.names))
        assert [next(results).header for _ in one.names] == one.names
    assert list(results) == []
    assert sizes[:12] == [1] * 12  # begun before a speed was known
    assert sizes[12:20] == [8] * 8
    assert sizes[20:] == [6, 5, 4, 3, 2, 1, 1, 1, 1]


def test_queries_are_read_ahead_within_bounds(monkeypatch):
    monkeypatch.setattr(dispatching, "MAX_AHEAD_BYTES", 50)
    read: list[int] = []

    def queries() -> Iterator[SequenceRecord]:
        for number in range(100):
            read.append(number)
            yield query(number)  # 10 letters

    stream = BatchStream(queries(), lambda _: 1000, 2000, None)
    assert not stream.read_ahead(3000)
    assert (len(read), stream.cells_ahead) == (3, 3000)
    assert not stream.read_ahead(1e9)
    assert (len(read), stream.cells_ahead) == (5, 5000)
    batch = stream.add_batch(6500, 2)
    assert batch is not None
    assert [one.header for one in batch.queries] == [f"q{number}" for number in range(7)]
    assert (batch.cells, len(batch.parts), stream.cells_ahead) == ([1000] * 7, 2, 0)
    batch = stream.add_batch(1e9, 2)
    assert batch is not None
    assert len(batch.queries) == 93
    assert stream.is_read
    assert stream.read_ahead(1)
    assert stream.add_batch(1.0, 2) is None
    assert list(stream.batches)[1:] == [batch]

"""Who waits for a search is told of its end, and the store is read no more often than that takes."""

import asyncio
from types import SimpleNamespace

import pytest

from swsearch.service.hub import Hub
from tests.patience import LIMIT_SECONDS


class Searches:
    """A service whose searches end when the test says so, and the looks at them."""

    def __init__(self):
        self.looks = []
        self.is_finished = False

    def statuses(self, keys, ends=()):
        self.looks.append((list(keys), list(ends)))
        found = SimpleNamespace(search=SimpleNamespace(is_finished=self.is_finished))
        return dict.fromkeys(keys, found) | (dict.fromkeys(ends, found) if self.is_finished else {})


@pytest.fixture
def searches(monkeypatch):
    monkeypatch.setattr("swsearch.service.hub.LOOK_SECONDS", 1000.0)
    return Searches()


def run(hub, steps):
    """Run the steps of a test beside a hub."""

    async def beside():
        hub.start()
        while not hub._looks_at_all:
            hub.look_at_all()
            await asyncio.sleep(0)
        await steps()
        await hub.stop()

    asyncio.run(asyncio.wait_for(beside(), LIMIT_SECONDS))


async def until(condition):
    """Let the hub work until the condition holds."""
    while not condition():
        await asyncio.sleep(0)


def test_a_request_that_is_held_is_told_of_the_end_without_a_look(searches):
    hub = Hub(searches)

    async def steps():
        held = asyncio.create_task(hub.may_have_ended("held", LIMIT_SECONDS))
        await until(lambda: "held" in hub._held)
        hub.hint_changed(["held"])
        assert not hub._hint.is_set(), "a change is not an end"
        hub.hint_ended(["held"])
        assert await held
        assert not hub._held

    run(hub, steps)
    assert searches.looks == []


def test_an_end_of_which_no_worker_has_told_is_seen_by_the_next_look_at_all(searches):
    hub = Hub(searches)

    async def steps():
        held = asyncio.create_task(hub.may_have_ended("held", LIMIT_SECONDS))
        await until(lambda: "held" in hub._held)
        hub.look_at_all()
        await until(lambda: searches.looks)
        await asyncio.sleep(0.1)
        assert not held.done(), "it is unfinished"
        searches.is_finished = True
        hub.look_at_all()
        assert await held

    run(hub, steps)
    assert searches.looks == [([], ["held"])] * 2


def test_nobody_is_held_longer_than_the_time_or_the_server(searches):
    hub = Hub(searches)

    async def steps():
        assert not await hub.may_have_ended("held", 0.01)
        held = asyncio.create_task(hub.may_have_ended("held", LIMIT_SECONDS))
        await until(lambda: "held" in hub._held)
        hub.release()
        assert not await held
        assert not await hub.may_have_ended("held", LIMIT_SECONDS)

    run(hub, steps)


def test_a_stream_of_changes_has_the_begin_too(searches):
    hub = Hub(searches)

    async def steps():
        stream = hub.changes("seen")
        assert not (await anext(stream)).search.is_finished
        hub.hint_changed(["seen", "another"])
        await until(lambda: len(searches.looks) > 1)
        await stream.aclose()

    run(hub, steps)
    assert searches.looks == [(["seen"], [])] * 2


def test_an_end_between_the_answer_of_the_store_and_the_wait_is_not_missed(searches):
    hub = Hub(searches)

    async def steps():
        hub.hint_ended(["quick"])
        assert await hub.may_have_ended("quick", LIMIT_SECONDS)
        assert not await hub.may_have_ended("quick", 0.01), "it is told once"

    run(hub, steps)
    assert searches.looks == []


def test_hints_that_nobody_waits_for_are_forgotten_the_oldest_first(searches, monkeypatch):
    monkeypatch.setattr("swsearch.service.hub._MOST_UNHEARD", 2)
    hub = Hub(searches)
    for key in ("first", "second", "first", "third"):
        hub.hint_ended([key])
    assert list(hub._unheard) == ["first", "third"]

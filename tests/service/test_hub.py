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
            hub.hint()
            await asyncio.sleep(0)
        await steps()
        await hub.stop()

    asyncio.run(asyncio.wait_for(beside(), LIMIT_SECONDS))


async def until(condition):
    """Let the hub work until the condition holds."""
    while not condition():
        await asyncio.sleep(0)


def test_a_request_that_is_held_until_the_end_reads_the_store_once(searches):
    hub = Hub(searches)

    async def steps():
        held = asyncio.create_task(hub.finished("held", LIMIT_SECONDS))
        await until(lambda: "held" in hub._watched)
        hub.hint_begun(["held"])
        assert not hub._hint.is_set(), "a begin is not an end"
        searches.is_finished = True
        hub.hint(["held"])
        assert (await held).search.is_finished

    run(hub, steps)
    assert searches.looks == [([], ["held"])]


def test_a_stream_of_changes_has_the_begin_too(searches):
    hub = Hub(searches)

    async def steps():
        stream = hub.changes("seen")
        assert not (await anext(stream)).search.is_finished
        hub.hint_begun(["seen", "another"])
        await until(lambda: len(searches.looks) > 1)
        await stream.aclose()

    run(hub, steps)
    assert searches.looks == [(["seen"], [])] * 2


def test_an_end_between_the_answer_of_the_store_and_the_wait_is_not_missed(searches):
    hub = Hub(searches)

    async def steps():
        searches.is_finished = True
        hub.hint(["quick"])
        assert (await hub.finished("quick", LIMIT_SECONDS)).search.is_finished

    run(hub, steps)
    assert searches.looks == [([], ["quick"])]


def test_hints_that_nobody_waits_for_are_forgotten_the_oldest_first(searches, monkeypatch):
    monkeypatch.setattr("swsearch.service.hub._MOST_UNHEARD", 2)
    hub = Hub(searches)
    for key in ("first", "second", "first", "third"):
        hub.hint([key])
    assert list(hub._unheard) == ["first", "third"]

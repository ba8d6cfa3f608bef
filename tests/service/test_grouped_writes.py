"""What is written while others write is written together: results of a worker, submissions of the web process."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from swsearch.errors import Refused, StoreError
from swsearch.service.service import Service, Submissions
from swsearch.service.settings import Settings
from swsearch.service.submit import Submission
from swsearch.service.worker import GROUP, MAX_WAITING, ResultWriter


class SlowStore:
    """A store that waits until the test lets it go on."""

    def __init__(self):
        self.groups = []
        self.may_go_on = threading.Semaphore(0)
        self.began = threading.Semaphore(0)
        self.error = None

    def write(self, group):
        self.groups.append(list(group))
        self.began.release()
        assert self.may_go_on.acquire(timeout=60)
        if self.error is not None:
            raise self.error
        return [(f"stored {each}", True) if each != "refused" else Refused("queue_full", "full") for each in group]


@pytest.fixture
def store():
    return SlowStore()


@pytest.fixture
def writer(store):
    made = ResultWriter(store.write)
    yield made
    store.may_go_on.release(1000)
    made.close()


def test_results_that_wait_are_stored_together(store, writer):
    writer.put("first")
    assert store.began.acquire(timeout=60)
    for number in range(1, 4):
        writer.put(number)
    store.may_go_on.release(2)
    writer.flush()
    assert store.groups == [["first"], [1, 2, 3]]


def test_results_that_follow_each_other_soon_are_stored_together(store, writer, monkeypatch):
    monkeypatch.setattr("swsearch.service.worker.LINGER_SECONDS", 60)
    store.may_go_on.release(10)
    for number in range(GROUP):
        writer.put(number, more_soon=True)
    assert store.began.acquire(timeout=30), "a full group does not wait"
    writer.put("last but one", more_soon=True)
    writer.put("last")
    assert store.began.acquire(timeout=30), "nothing follows, so nothing is waited for"
    writer.put("of an abandoned batch", more_soon=True)
    writer.flush()
    assert store.began.acquire(timeout=30)
    writer.flush()
    writer.put("of the next batch", more_soon=True)
    assert not store.began.acquire(timeout=0.2), "another one may follow"
    assert store.groups == [list(range(GROUP)), ["last but one", "last"], ["of an abandoned batch"]]


def test_a_search_waits_for_a_slow_store(store, writer):
    writer.put("first")
    assert store.began.acquire(timeout=60)
    for number in range(MAX_WAITING):
        writer.put(number)
    waiting = threading.Thread(target=writer.put, args=("one too many",))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    store.may_go_on.release(3)
    waiting.join()
    writer.flush()
    assert [len(group) for group in store.groups[:2]] == [1, MAX_WAITING]
    assert store.groups[2] == ["one too many"]


def test_the_last_result_is_stored_by_its_own_thread_unless_others_wait(store, writer, monkeypatch):
    threads = []
    write = writer._store
    monkeypatch.setattr(writer, "_store", lambda results: (threads.append(threading.current_thread()), write(results)))
    store.may_go_on.release(10)
    writer.finish("alone")
    assert (store.groups, threads) == ([["alone"]], [threading.current_thread()])
    monkeypatch.setattr("swsearch.service.worker.LINGER_SECONDS", 60)
    writer.put("one of two", more_soon=True)
    writer.finish("the other")
    assert store.groups[1:] == [["one of two", "the other"]]
    assert threads[1] is not threading.current_thread()
    store.error = StoreError("the disk is full")
    with pytest.raises(StoreError, match="disk is full"):
        writer.finish("alone")
    store.error = None
    writer.flush()
    assert len(store.groups) == 3, "the error was told, and its result is not kept"


@pytest.mark.parametrize("how", ["put", "flush"])
def test_a_failed_store_is_reported_once_and_what_waited_is_discarded(store, writer, how):
    writer.put("first")
    assert store.began.acquire(timeout=60)
    writer.put("second")
    store.error = StoreError("the disk is full")
    store.may_go_on.release()
    with pytest.raises(StoreError, match="disk is full"):
        writer.flush()
    store.error = None
    store.may_go_on.release()
    if how == "put":
        writer.put("third")
    writer.flush()
    assert store.groups == [["first"], *([["third"]] if how == "put" else [])]


@pytest.fixture
def submissions(store):
    with Submissions(store.write) as made:
        yield made
        store.may_go_on.release(1000)


def test_submissions_at_once_are_one_transaction(store, submissions):
    first = submissions.store("first")
    assert store.began.acquire(timeout=60)
    waiting = [submissions.store(name) for name in ("a", "refused", "withdrawn", "b")]
    assert waiting[2].cancel()
    assert not first.cancel(), "it is being stored"
    store.may_go_on.release(2)
    assert first.result(60) == ("stored first", True)
    assert waiting[0].result(60) == ("stored a", True)
    with pytest.raises(Refused, match="full"):
        waiting[1].result(60)
    assert waiting[3].result(60) == ("stored b", True)
    assert store.groups == [["first"], ["a", "refused", "b"]]


def test_submissions_that_follow_soon_are_one_transaction(store, monkeypatch):
    """After a transaction, the thread pauses; a pause of a test ends when the test lets it."""
    pauses, may_go_on = [], threading.Event()

    def pause(seconds):
        pauses.append(seconds)
        assert may_go_on.wait(60)

    times = iter(range(100))
    clock = SimpleNamespace(sleep=pause, monotonic=lambda: 0.001 * next(times))
    monkeypatch.setattr("swsearch.service.service.time", clock)
    store.may_go_on.release(10)
    with Submissions(store.write) as submissions:
        assert submissions.store("first").result(60) == ("stored first", True)
        followers = [submissions.store(name) for name in ("a", "b")]
        may_go_on.set()
        assert [each.result(60) for each in followers] == [("stored a", True), ("stored b", True)]
    assert store.groups == [["first"], ["a", "b"]]
    assert pauses == [pytest.approx(0.002)] * 2, "twice the time of a transaction"


def test_submissions_fail_together(store, submissions):
    store.error = StoreError("the disk is full")
    store.may_go_on.release()
    with pytest.raises(StoreError, match="disk is full"):
        submissions.store("first").result(60)
    store.error = None
    store.may_go_on.release()
    assert submissions.store("second").result(60) == ("stored second", True)


def test_what_was_submitted_is_stored_before_the_end(store):
    submissions = Submissions(store.write)
    first = submissions.store("first")
    assert store.began.acquire(timeout=60)
    second = submissions.store("second")
    store.may_go_on.release(2)
    submissions.close()
    assert (first.result(0), second.result(0)) == (("stored first", True), ("stored second", True))


def test_a_search_is_one_of_the_present_generation_whatever_was_submitted_before(databases, tmp_path, monkeypatch):
    settings = Settings({"few.db": databases / "few.db"}, str(tmp_path / "hits.sqlite"))
    with Service(settings) as service:
        first = Submission(">q\nMKVLAAGIVGLLLAQ\n", "few.db", {"top": 3})
        before, _ = service.submit(first, "ann")
        offered = service.databases.current("few.db")
        newer = replace(offered, catalogue=replace(offered.catalogue, generation=7))
        monkeypatch.setattr(service.databases, "current", lambda name: newer)
        after, is_new = service.submit(first, "ann")
        assert is_new
        assert (before.database.generation, after.database.generation) == (1, 7)
        assert before.content != after.content, "the results of the last generation are not those of this one"


def test_a_submission_like_one_that_was_accepted_is_checked_in_a_moment(databases, tmp_path, monkeypatch):
    """Only such a submission may be checked by the thread of short calls, which all other requests wait for."""
    monkeypatch.setattr("swsearch.service.service._MOST_KINDS", 2)
    settings = Settings({"few.db": databases / "few.db"}, str(tmp_path / "hits.sqlite"))
    with Service(settings) as service:
        first = Submission(">q\nMKVLAAGIVGLLLAQ\n", "few.db", {"top": 3})
        assert not service.is_quick(first)
        service.submit(first, "ann")
        assert service.is_quick(replace(first, queries=">other\nWWHHKK\n", idempotency_key="again"))
        longer = [replace(first, queries=">q\n" + 4200 * "A"), replace(first, subjects=">s\nMKVLA\n")]
        other = [replace(first, options={"top": 3, "gap_open": 9}), replace(first, alphabet="protein")]
        assert not any(service.is_quick(each) for each in (*longer, *other))
        of_people = replace(first, options={"taxid": "9606"})  # the database is opened to see whether it has any
        service.submit(of_people, "ann")
        assert not service.is_quick(of_people)
        service.submit(other[1], "ann")
        service.submit(replace(first, options={"top": 4}), "ann")
        assert [service.is_quick(each) for each in (first, other[1], replace(first, options={"top": 4}))] == [
            False, False, True,
        ], "what is remembered does not grow without end"  # fmt: skip

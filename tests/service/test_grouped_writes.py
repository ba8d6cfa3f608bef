"""What is written while others write is written together: results of a worker, submissions of the web process."""

import threading

import pytest

from swsearch.errors import Refused, StoreError
from swsearch.service.commits import MAX_WAITING, Commits
from swsearch.service.web.submissions import Submissions


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
def commits(store):
    stored = []
    made = Commits(lambda group: store.write([each.result for each in group]), stored.extend)
    made.stored = stored
    yield made
    store.may_go_on.release(1000)
    made.close()


def test_results_that_wait_are_stored_together(store, commits):
    commits.put("q0", 1, "first")
    assert store.began.acquire(timeout=60)
    for number in range(1, 4):
        commits.put(f"q{number}", 1, number)
    store.may_go_on.release(2)
    commits.flush()
    assert store.groups == [["first"], [1, 2, 3]]
    assert commits.stored == ["q0", "q1", "q2", "q3"]


def test_a_search_waits_for_a_slow_store(store, commits):
    commits.put("q", 1, "first")
    assert store.began.acquire(timeout=60)
    for number in range(MAX_WAITING):
        commits.put("q", 1, number)
    waiting = threading.Thread(target=commits.put, args=("q", 1, "one too many"))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    store.may_go_on.release(3)
    waiting.join()
    commits.flush()
    assert [len(group) for group in store.groups[:2]] == [1, MAX_WAITING]
    assert store.groups[2] == ["one too many"]


@pytest.mark.parametrize("how", ["put", "flush"])
def test_a_failed_store_is_reported_once_and_what_waited_is_discarded(store, commits, how):
    commits.put("q0", 1, "first")
    assert store.began.acquire(timeout=60)
    commits.put("q1", 1, "second")
    store.error = StoreError("the disk is full")
    store.may_go_on.release()
    with pytest.raises(StoreError, match="disk is full"):
        commits.flush()
    store.error = None
    store.may_go_on.release()
    if how == "put":
        commits.put("q2", 1, "third")
    commits.flush()
    assert store.groups == [["first"], *([["third"]] if how == "put" else [])]
    assert commits.stored == (["q2"] if how == "put" else [])


def test_submissions_at_once_are_one_transaction(store):
    submissions = Submissions(store.write)
    answers = {}

    def submit(name):
        try:
            answers[name] = submissions.store(name)
        except Refused as refusal:
            answers[name] = refusal.code

    threads = [threading.Thread(target=submit, args=("first",))]
    threads[0].start()
    assert store.began.acquire(timeout=60)
    for name in ("a", "refused", "b"):
        threads.append(threading.Thread(target=submit, args=(name,)))
        threads[-1].start()
    while len(submissions.waiting) < 3:
        threads[0].join(0.01)
    store.may_go_on.release(2)
    for thread in threads:
        thread.join()
    assert [sorted(group) for group in store.groups] == [["first"], ["a", "b", "refused"]]
    stored = {name: (f"stored {name}", True) for name in ("first", "a", "b")}
    assert answers == {**stored, "refused": "queue_full"}


def test_submissions_fail_together(store):
    submissions = Submissions(store.write)
    store.error = StoreError("the disk is full")
    store.may_go_on.release(2)
    with pytest.raises(StoreError, match="disk is full"):
        submissions.store("first")
    store.error = None
    assert submissions.store("second") == ("stored second", True)

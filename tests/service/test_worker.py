"""A worker whose engine works in the background gets its next batch before it has finished the current one.

The engine of these tests is the CPU's, which scores when its results are asked for, in the order of the protocol. It
calls the test at the moments that matter, so that nothing depends on time. Expected values: the rules of
docs/design/service.md, and the hits of a search without a service.
"""

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest

from swsearch.cli.serve import _shares
from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import BackgroundEngine
from swsearch.engine.registry import Machine
from swsearch.errors import DatabaseError, StoreError
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.service import searcher_cache
from swsearch.service import worker as worker_module
from swsearch.service.databases import Databases
from swsearch.service.estimates import HIT_SECONDS, QUERY_SECONDS, Pace
from swsearch.service.searcher_cache import SearcherCache
from swsearch.service.settings import ServerLimits
from swsearch.service.submit import Submission, search_maker
from swsearch.service.worker import SearchWorker
from swsearch.store.queue import Queue
from swsearch.store.store import Store
from swsearch.threads import SWITCH_SECONDS, beat
from tests.patience import LIMIT_SECONDS
from tests.processes import start
from tests.store.conftest import submit as submit_search

LETTERS = "MKVLAAGIVGLCAKAYLEWTNQDERSTHPFY"


class QueuedScoring:
    """The scores of one call, computed when they are asked for."""

    def __init__(self, engine, requests, partition):
        self.engine = engine
        self.requests = requests
        self.partition = partition

    def wait_until_prepared(self):
        pass

    def results(self, progress=None):
        blocks = self.engine.score(self.requests, self.partition)
        for index, block in enumerate(blocks):
            if self.engine.on_block is not None:
                self.engine.on_block(len(blocks) - index, progress or (lambda cells: None))
            yield index, block

    def cancel(self):
        pass


class QueuedEngine(CpuEngine):
    """An engine that works in the background, as far as a worker can see."""

    kept_bytes = 1 << 30
    on_begin: Callable[[], None] | None = None
    on_block: Callable[[int, Callable[[int], None]], None] | None = None

    def __init__(self):
        super().__init__(1)
        self.rows_per_call = 1 << 20

    def begin(self, requests, partition):
        if self.on_begin is not None:
            self.on_begin()
        return QueuedScoring(self, requests, partition)

    def preload(self, partition):
        pass

    def explain(self, requests, partition):
        return []

    def ends(self, *_):
        return None

    forward = ends

    def forecast(self, batches, partitions, n_cells, *, floors=True):
        return SimpleNamespace(seconds=n_cells / 1e9)


class CountingQueue(Queue):
    """A queue that counts the looks for work."""

    n_looks = 0

    def has_work(self):
        self.n_looks += 1
        return super().has_work()


@pytest.fixture
def offered(databases):
    """One database, as a service knows it."""
    return Databases({"few.db": databases / "few.db"})


@pytest.fixture(autouse=True)
def batches_follow_each_other(monkeypatch):
    """The next batch is taken early only soon after a look at the databases, and a busy machine takes any time."""
    monkeypatch.setattr(worker_module, "NOTICE_SECONDS", LIMIT_SECONDS)


@pytest.fixture
def store(tmp_path):
    with Store(str(tmp_path / "hits.sqlite"), create=True) as opened:
        yield opened


@contextmanager
def running(store, offered, **options):
    """A worker in a thread, with an engine whose moments the caller has chosen."""
    with Store(store.name) as opened, SearcherCache(offered, Machine("cpu", 1)) as searchers:
        searchers.engine = engine = QueuedEngine()
        assert isinstance(engine, BackgroundEngine)
        worker = SearchWorker(CountingQueue(opened), searchers, **options)
        before = sys.getswitchinterval()
        yield engine, worker
        sys.setswitchinterval(before)


def submit_text(store, offered, text, name="few.db", owner="ann", **options):
    """Store a search of some queries; return its key."""
    made = search_maker(options, offered.current(name), ServerLimits())
    return submit_search(store.searches, made(Submission(text, name, options), owner))[0].key


def submit(store, offered, n_queries):
    """Store a search of different proteins; return its key."""
    start = len(store.searches.of_owner("ann"))
    queries = [LETTERS[number + start :] + LETTERS * 2 for number in range(n_queries)]
    text = "".join(f">q{number}\n{letters}\n" for number, letters in enumerate(queries))
    return submit_text(store, offered, text, top=5, evalue=1e6)


def submit_to(store, offered, name, owner="ann", top=5):
    return submit_text(store, offered, f">q\n{LETTERS}\n", name, owner, top=top, evalue=1e6)


def stored_hits(store, key):
    """Query, subject and score of all hits of a search."""
    found = store.searches.get(key)
    assert found.run_id is not None
    return [
        (query.number, query.letters, hit.subject_header, hit.score)
        for query in store.results.queries(found.run_id)
        for hit in query.hits
    ]


def expected_hits(databases, letters):
    """The same without a service."""
    with open_database(databases / "few.db") as database, CpuEngine(1) as engine:
        searcher = Searcher(database, engine, SearchOptions(top=5, evalue=1e6))
        results = searcher.search([SequenceRecord("", PROTEIN.encode(each), PROTEIN) for each in letters])
        return [
            (result.number, result.letters, hit.subject_header, hit.score) for result in results for hit in result.hits
        ]


def run_until(worker, is_over):
    """Run the worker in a thread until the condition holds."""
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        while not is_over():
            assert thread.is_alive()
            time.sleep(0.01)
    finally:
        worker.stop()
        thread.join()


def test_the_next_batch_begins_before_the_last_result(store, offered, databases):
    keys = [submit(store, offered, 5)]
    at_begin = []
    with running(store, offered) as (engine, worker):

        def on_begin():
            assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS), "the threads would wait for each other"
            if worker._running:
                at_begin.append([store.searches.get(key).n_done for key in keys])

        def on_block(n_left, _progress):
            if n_left == 2 and len(keys) == 1 and store.searches.get(keys[0]).state == "running":
                keys.append(submit(store, offered, 3))

        engine.on_begin, engine.on_block = on_begin, on_block
        run_until(worker, lambda: len(keys) == 2 and all(store.searches.get(key).is_finished for key in keys))
    assert at_begin[0] == [0]
    assert at_begin[1][0] < 5, "the second batch began when a result of the first was missing"
    assert at_begin[1:] == [[at_begin[1][0], 0]]
    for key in keys:
        found = stored_hits(store, key)
        letters = list(dict.fromkeys(letters for _, letters, _, _ in found))
        assert found == expected_hits(databases, letters)
        assert store.searches.get(key).state == "done"


def test_a_worker_that_is_told_of_work_does_not_look_for_it_after_each_result(store, offered, monkeypatch):
    """The first search is one batch. The second comes in its middle, with the hint of the server."""
    monkeypatch.setattr(worker_module, "LOOK_SECONDS", LIMIT_SECONDS)
    pipe, end_of_server = os.pipe()
    monkeypatch.setattr(worker_module.os, "read", lambda _, most, read=os.read: read(pipe, most))
    keys = [submit(store, offered, 12)]
    looks = []
    with running(store, offered, hints=True) as (engine, worker):

        def on_block(n_left, _progress):
            if store.searches.get(keys[0]).state != "running":
                return
            looks.append(worker._queue.n_looks)
            if n_left == 2 and len(keys) == 1:
                keys.append(submit(store, offered, 1))
                os.write(end_of_server, b"work\n")
                while not worker._wake.is_set():
                    time.sleep(0.001)
            if n_left == 1 and len(keys) == 2:
                assert store.searches.get(keys[1]).state == "running", (
                    "it was taken although the first has results to come"
                )

        engine.on_block = on_block
        try:
            run_until(worker, lambda: len(keys) == 2 and all(store.searches.get(key).is_finished for key in keys))
        finally:
            os.close(end_of_server)
    assert looks[10] - looks[0] <= 1, "after the first look that found nothing, none before the hint"
    os.close(pipe)


def test_a_cancelled_batch_does_not_end_the_next(store, offered):
    keys = [submit(store, offered, 3)]
    with running(store, offered) as (engine, worker):

        def on_block(n_left, progress):
            if store.searches.get(keys[0]).state != "running":
                return
            if n_left == 3:
                keys.append(submit(store, offered, 2))
            if n_left == 1:
                assert store.searches.get(keys[1]).state == "running"
                while store.searches.get(keys[0]).n_done < 2:  # the other results are being stored
                    time.sleep(0.01)
                store.searches.cancel(keys[0])
                while True:  # the engine works until it is told to stop
                    progress(0)
                    time.sleep(0.01)

        engine.on_block = on_block
        run_until(worker, lambda: len(keys) == 2 and all(store.searches.get(key).is_finished for key in keys))
    first, second = (store.searches.get(key) for key in keys)
    assert (first.state, first.n_done) == ("cancelled", 2)
    assert (second.state, second.n_done) == ("done", 2)


def test_a_query_that_was_lost_is_searched_alone(store, offered):
    lost = submit(store, offered, 1)
    with Store(store.name) as other:
        known = [offered.current("few.db").searched]
        assert other.queue.claim("one that dies", known, {"few.db": 10**12}, timedelta(seconds=-1)) is not None
        assert other.queue.recover(None) == 1
    first = []
    at_begin = []
    with running(store, offered) as (engine, worker):

        def on_begin():
            batches = [each.batch for each in worker._running]
            at_begin.append([batch.keys[query.search_id] for batch in batches for query in batch.queries])

        def on_block(n_left, _progress):
            if n_left == 1 and first and len(first) == 1:
                first.append(submit(store, offered, 2))

        first.append(submit(store, offered, 4))
        engine.on_begin, engine.on_block = on_begin, on_block
        run_until(
            worker, lambda: len(first) == 2 and all(store.searches.get(key).is_finished for key in (*first, lost))
        )
    assert [keys for keys in at_begin if lost in keys] == [[lost]], "it has the engine for itself"
    assert any(first[0] in keys for keys in at_begin)
    assert store.searches.get(lost).state == "done"


def test_a_worker_that_hangs_does_not_say_that_it_is_alive(store, offered, monkeypatch):
    """A batch hangs in a loop of Python, so that the other thread of the worker goes on."""
    monkeypatch.setattr(worker_module, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(worker_module, "HANG_SECONDS", 0.5)
    key = submit(store, offered, 2)
    silences, after = [], []
    with running(store, offered) as (engine, worker):
        heartbeat = worker._queue.heartbeat

        def noted(name, speed, lease, silence):
            silences.append(silence.total_seconds())
            return heartbeat(name, speed, lease, silence)

        worker._queue.heartbeat = noted

        def on_block(n_left, progress):
            if n_left > 1 or store.searches.get(key).state != "running":
                return
            while time.monotonic() - worker._progressed < 0.6:
                time.sleep(0.01)
            silences.append(0.0)
            time.sleep(0.1)
            after.extend(silences[silences.index(0.0) + 1 :])
            assert store.searches.speeds(timedelta(seconds=0.3)) == []
            progress(0)
            while not store.searches.speeds(timedelta(seconds=0.3)):
                time.sleep(0.001)

        engine.on_block = on_block
        run_until(worker, lambda: store.searches.get(key).is_finished)
    assert max(silences) > 0.2, "the store knows since when there is no progress"
    assert len(after) <= 1, "then the leases are left to end"
    assert store.searches.get(key).state == "done"


def test_a_worker_says_that_it_is_alive_while_it_warms_up(store, offered, monkeypatch):
    """Kernels are compiled and databases uploaded for longer than the silence after which its server ends it."""
    monkeypatch.setattr(worker_module, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(SearchWorker, "_listen", lambda self: None)
    with SearcherCache(offered, Machine("cpu", 1)) as searchers:
        worker = SearchWorker(store.queue, searchers, hints=True)
        said = []
        monkeypatch.setattr(worker, "_say", said.append)

        def warm_up():
            while said.count("alive") < 3:
                beat()
                time.sleep(0.001)
            worker.stop()

        monkeypatch.setattr(searchers, "warm_up", warm_up)
        worker.run()
    before = said[: said.index("ready")]
    assert len(before) >= 3
    assert set(before) == {"alive"}


# --- how long a batch is predicted to take ---


def test_a_batch_of_tiny_queries_is_bounded_by_their_number(store, offered):
    """In cells, all of them are a thousandth of a batch; so are queries whose lists of hits are long."""
    text = "".join(f">q{number}\n{LETTERS[number % 20 :]}\n" for number in range(1000))
    for options in ({"top": 1}, {"top": 60, "max_hsps": 1000}):
        submit_text(store, offered, text, owner="eve", **options)
    sizes = []
    with running(store, offered) as (_engine, worker):
        worker._notice_generations()
        for _ in range(2):
            assert worker._take()
            sizes.append(len(worker._running.pop().queries))
    seconds = worker_module.BATCH_SECONDS / 2  # an engine that works in the background has two batches
    assert sizes[0] == pytest.approx(seconds / QUERY_SECONDS, rel=0.1)
    assert sizes[1] == pytest.approx(seconds / (QUERY_SECONDS + 60_000 * HIT_SECONDS), abs=1)


def test_who_comes_during_a_batch_of_tiny_queries_waits_for_some_of_them(store, offered):
    """Ann's search comes when the engine has eve's first batch."""
    text = "".join(f">q{number}\n{LETTERS[number % 20 :]}\n" for number in range(1000))
    eve = submit_text(store, offered, text, owner="eve", top=1)
    ann = []
    n_done = []

    def is_over():
        if not ann or store.searches.get(ann[0]).state != "done":
            return False
        n_done.append(store.searches.get(eve).n_done)
        return True

    with running(store, offered) as (engine, worker):
        engine.on_begin = lambda: ann or ann.append(submit_to(store, offered, "few.db"))
        run_until(worker, is_over)
    assert n_done[0] < 1000


@pytest.mark.parametrize("query_seconds", [0.0005, 0.02])
@pytest.mark.parametrize("speed", [1e9, 2e10])
def test_a_pace_tells_queries_from_cells(query_seconds, speed):
    """Source: the times of which the batches are made. Only tiny queries come for a minute, then others."""

    def measured(n_queries, n_cells, n_hits):
        return n_queries * query_seconds + n_cells / speed + n_hits * HIT_SECONDS

    pace = Pace(5e9)
    for _ in range(10):
        pace.add(8, 3 * 10**10, 200, measured(8, 3 * 10**10, 200))
    before = pace.cells_per_second
    assert before == pytest.approx(speed, rel=0.2)
    for _ in range(40):
        pace.add(400, 10**8, 0, measured(400, 10**8, 0))
    assert pace.cells_per_second == pytest.approx(before, rel=0.5)
    assert pace.query_seconds == pytest.approx(query_seconds, rel=0.2)
    cells = pace.overhead(1000)
    assert cells / pace.cells_per_second == pytest.approx(pace.query_seconds + 1000 * HIT_SECONDS)


# --- databases that cannot be opened, a store that fails ---


@pytest.fixture
def many(tmp_path):
    """Eight databases of one protein each."""
    for number in range(8):
        (tmp_path / "one.fasta").write_text(f">protein{number}\n{LETTERS[number:]}\n")
        build_database(tmp_path / "one.fasta", tmp_path / f"db{number}")
    return Databases({f"db{number}": tmp_path / f"db{number}" for number in range(8)})


def test_databases_are_closed_before_descriptors_run_out(store, many, monkeypatch):
    """There are descriptors for three databases of seven files, and searches of eight, twice."""
    n_of_process = searcher_cache._OTHER_DESCRIPTORS + 3 * 7
    monkeypatch.setattr(searcher_cache.resource, "getrlimit", lambda kind: (n_of_process, n_of_process))
    n_open = []
    rounds = [[submit_to(store, many, name) for name in many.always]]

    def is_over():
        if not all(store.searches.get(key).is_finished for key in rounds[-1]):
            return False
        if len(rounds) == 1:
            rounds.append([submit_to(store, many, name, top=6) for name in many.always])
        return all(store.searches.get(key).is_finished for key in rounds[1])

    with running(store, many) as (engine, worker):
        engine.on_begin = lambda: n_open.append(len(worker._searchers._open))
        run_until(worker, is_over)
    assert {store.searches.get(key).state for keys in rounds for key in keys} == {"done"}
    assert max(n_open) == 3


def test_what_cannot_be_opened_waits_with_a_reason_and_others_are_searched(store, many, monkeypatch, capfd):
    opened = open_database
    is_full = [True]

    def open_or_fail(path, **wanted):
        if path.name == "db0" and is_full[0]:
            raise DatabaseError(f"{path} cannot be read") from OSError(errno.EMFILE, "Too many open files")
        return opened(path, **wanted)

    monkeypatch.setattr("swsearch.service.databases.open_database", open_or_fail)
    waiting = submit_to(store, many, "db0", "eve")
    others = [submit_to(store, many, name) for name in ("db1", "db2", "db3")]
    seen = []

    def is_done():
        if all(store.searches.get(key).state == "done" for key in others) and store.searches.get(waiting).reason:
            seen.append(store.searches.get(waiting))
            is_full[0] = False
        return store.searches.get(waiting).is_finished

    monkeypatch.setattr(worker_module, "OPEN_AGAIN_SECONDS", 0.01)
    with running(store, many) as (_engine, worker):
        run_until(worker, is_done)
    reason = "the database db0 cannot be opened at the moment: Too many open files; it is tried again"
    assert (seen[0].state, seen[0].reason) == ("queued", reason)
    assert (store.searches.get(waiting).state, store.searches.get(waiting).reason) == ("done", None)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines].count("database cannot be opened") == 1


def test_a_store_that_fails_again_and_again_is_said_once(store, offered, monkeypatch, capfd):
    """The disk is full; then there is room, and the search is done."""
    key = submit_to(store, offered, "few.db")
    attempts = []
    with running(store, offered) as (_engine, worker):
        complete = worker._queue.complete

        def fail(*arguments):
            attempts.append(arguments)
            if len(attempts) < 5:
                raise StoreError("hits.sqlite: the disk is full; this test says so")
            return complete(*arguments)

        monkeypatch.setattr(worker._queue, "complete", fail)
        monkeypatch.setattr(worker_module, "_FIRST_PAUSE", 0.001)
        worker._pause = 0.001
        run_until(worker, lambda: store.searches.get(key).is_finished)
    assert store.searches.get(key).state == "done"
    assert len(attempts) == 5
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines].count("store failed") == 1


STOPPED = """
import os, signal, threading
from swsearch.cli.serve import handler_of
stopping = threading.Event()
signal.signal(signal.SIGTERM, handler_of(stopping.set))
with stopping._cond:  # as in a call of stopping.wait()
    os.kill(os.getpid(), signal.SIGTERM)
stopping.wait()
print("stopped", flush=True)
"""


def test_a_signal_waits_for_no_lock_of_the_code_that_it_interrupts():
    """A handler that sets the event itself would wait forever for the lock that its own thread holds."""
    program = f"import signal; signal.alarm({round(LIMIT_SECONDS)}){STOPPED}"
    with start(["-c", program], stdout=subprocess.PIPE) as process:
        assert process.communicate()[0] == "stopped\n"


@pytest.mark.parametrize(
    ("devices", "threads", "expected"),
    [
        (None, None, [[]]),
        ([1], 6, [["--devices", "1", "--threads", "6"]]),
        ([0, 2], 6, [["--devices", "0", "--threads", "3"], ["--devices", "2", "--threads", "3"]]),
    ],
)
def test_a_server_has_a_worker_for_each_gpu(
    devices: list[int] | None, threads: int | None, expected: list[list[str]]
) -> None:
    """Expected values: the options of each worker, written by hand."""
    assert _shares(devices, threads) == expected

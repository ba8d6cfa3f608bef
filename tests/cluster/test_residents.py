"""Tasks of a worker whose engine works in the background: each begins before the one before it has ended.

The worker is this process, without Dask, and its engine an emulated GPU; the expected results are those of one search
of all queries by the CPU engine. Which task has begun is read from the searcher's calls.
"""

import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsearch.cluster.residents import Residents, Task
from swsearch.cluster.tasks import Answer, Failed, Found, Ready, SearchSpec
from swsearch.database.builder import build_database
from swsearch.database.changes import compact_database
from swsearch.database.opening import open_database
from swsearch.database.reader import DatabasePart
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.registry import Machine
from swsearch.hits.result import QueryResult
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher, open_searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice
from tests.patience import wait_until

pytestmark = pytest.mark.thorough

OPTIONS = SearchOptions(evalue=1000.0, top=5)
ENGINE = Machine("cuda", 1)


class Worker:
    """The tasks of a worker, and when each search was begun and each result was there."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with open_searcher(path, OPTIONS, engine="cpu") as searcher:
            database = searcher.database.locations[0], DatabasePart(searcher.database.digest)
            info = searcher.run_info("")
        self.spec = SearchSpec((database,), OPTIONS, ENGINE, one_round=False, expected=info)
        self.events: list[str] = []
        self.turn = threading.Event()
        self.turn.set()
        self.tasks = Residents(lambda *_, **__: (CudaDevices([0], lambda _: EmulatedDevice()), "emulated"))
        monkeypatch.setattr(Searcher, "search", self._noted(Searcher.search))

    def _noted(self, searched: Callable[..., Generator[QueryResult, None, None]]) -> Callable[..., Any]:
        def search(*given: Any, **named: Any) -> Generator[QueryResult, None, None]:
            self.events.append("begun")
            self.turn.wait()
            results = searched(*given, **named)

            def read() -> Generator[QueryResult, None, None]:
                with closing(results):
                    for result in results:
                        self.events.append(result.header)
                        yield result

            return read()

        return search

    def task(self, queries: list[SequenceRecord], key: bytes = b"a search", **changed: Any) -> Callable[[], Answer]:
        """A function that searches the queries."""
        spec = replace(self.spec, **changed)
        return lambda: self.tasks.search(Task(spec, key, queries, None))

    def together(self, *calls: Callable[[], Answer]) -> list[Answer]:
        """The answers to calls, the first a task, of which the others come, in this order, while it begins."""
        self.turn.clear()
        answers: dict[int, Answer] = {}
        threads = []
        for number, call in enumerate(calls):

            def work(number: int = number, call: Callable[[], Answer] = call) -> None:
                answers[number] = call()

            threads.append(threading.Thread(target=work))
            threads[-1].start()
            wait_until(lambda number=number: (self.events, len(self.tasks._waiting)) == (["begun"], number), "the call")
        self.turn.set()
        for thread in threads:
            thread.join()
        return [answers[number] for number in range(len(calls))]


def random_query(number: int) -> SequenceRecord:
    codes = np.random.default_rng(100 + number).integers(0, 20, 30 + number).astype(np.uint8)
    return SequenceRecord(f"q{number}", codes, PROTEIN)


QUERIES = [random_query(number) for number in range(9)]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(7)
    lines = [f">s{n}\n{PROTEIN.decode(rng.integers(0, 20, 60).astype(np.uint8))}\n" for n in range(40)]
    (folder / "subjects.fasta").write_text("".join(lines))
    build_database(folder / "subjects.fasta", folder / "subjects.db")
    return folder / "subjects.db"


@pytest.fixture
def worker(database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """A worker whose engine is open."""
    before = sys.getswitchinterval()
    started = Worker(database, monkeypatch)
    assert isinstance(started.tasks.prepare(ENGINE), Ready)
    assert started.tasks.is_background
    yield started
    started.tasks.close()
    sys.setswitchinterval(before)


def hits(*answers: Answer) -> list[list[Any]]:
    found = []
    for answer in answers:
        assert isinstance(answer, Found), answer
        assert answer.seconds > 0
        found.append([(result.header, result.hits) for result in answer.results])
    return found


def expected(database: Path, *tasks: list[SequenceRecord]) -> list[list[Any]]:
    with open_searcher(database, OPTIONS, engine="cpu") as searcher:
        return [[(one.header, one.hits) for one in searcher.search(task)] for task in tasks]


def test_the_next_task_begins_before_the_last_results_of_this_one(worker, database):
    tasks = [QUERIES[:3], QUERIES[3:5], QUERIES[5:]]
    answers = worker.together(*map(worker.task, tasks))
    assert hits(*answers) == expected(database, *tasks)
    begun = [number for number, event in enumerate(worker.events) if event == "begun"]
    last = [worker.events.index(task[-1].header) for task in tasks]
    assert begun[0] < begun[1] < last[0] < begun[2] < last[1]


def test_a_task_that_cannot_begin_fails_in_its_turn(worker, database):
    """A query without letters is refused; the tasks before and after it are answered."""
    empty = SequenceRecord("empty", np.zeros(0, dtype=np.uint8), PROTEIN)
    first, second, third = worker.together(
        worker.task(QUERIES[:2]), worker.task([QUERIES[2], empty]), worker.task(QUERIES[3:5])
    )
    assert hits(first, third) == expected(database, QUERIES[:2], QUERIES[3:5])
    assert isinstance(second, Failed)
    assert second.kind == "InputError"
    assert "empty" in second.message


def test_a_task_of_another_search_waits_for_its_turn(worker, database):
    other = replace(OPTIONS, top=2)
    with open_searcher(database, other, engine="cpu") as searcher:
        info = searcher.run_info("")
    first, second = worker.together(
        worker.task(QUERIES[:2]), worker.task(QUERIES[2:4], b"another search", options=other, expected=info)
    )
    assert worker.events == ["begun", "q0", "q1", "begun", "q2", "q3"]
    assert hits(first) == expected(database, QUERIES[:2])
    assert isinstance(second, Found)
    assert [[hit.rank for hit in result.hits] for result in second.results] == [[1, 2], [1, 2]]


def test_another_engine_may_be_asked_for_between_two_tasks(worker, database):
    """The second task has begun on the engine that is closed before its turn; it begins again on the next one."""
    first, prepared, second = worker.together(
        worker.task(QUERIES[:2]),
        lambda: worker.tasks.prepare(Machine("cuda", 2)),
        worker.task(QUERIES[2:4], machine=Machine("cuda", 2)),
    )
    assert worker.events == ["begun", "begun", "q0", "q1", "begun", "q2", "q3"]
    assert isinstance(prepared, Ready)
    assert hits(first, second) == expected(database, QUERIES[:2], QUERIES[2:4])


def test_a_worker_opens_the_new_slices_of_a_database_that_is_dealt_again(tmp_path, database):
    """The content and so the digest stay the same, but a slice of the same number has other subjects."""
    options = replace(OPTIONS, top=40)
    with open_searcher(database, options, engine="cpu") as searcher:
        (whole,) = searcher.search(QUERIES[:1])
    path = tmp_path / "sliced.db"
    build_database(database.with_name("subjects.fasta"), path, slices=2)
    residents = Residents()
    for n_slices in (2, 3):
        if n_slices != 2:
            compact_database(path, slices=n_slices)
        found: list[int] = []
        for number in range(n_slices):
            with (
                open_database(path, parts=[DatabasePart(segments=(number,))]) as part,
                open_searcher(part, options, engine="cpu") as searcher,
            ):
                slice_ = part.locations[0], DatabasePart(part.digest, (number,), part.catalogue.layout)
                expected = searcher.run_info("")
            spec = SearchSpec((slice_,), options, Machine("cpu", 1), one_round=True, expected=expected)
            answer = residents.search(Task(spec, f"{slice_}".encode(), QUERIES[:1], None))
            assert isinstance(answer, Found)
            found += [hit.subject_index for hit in answer.results[0].hits]
        assert sorted(found) == sorted(hit.subject_index for hit in whole.hits)
    residents.close()

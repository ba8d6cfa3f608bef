"""Workers that come, go or do not answer, a scheduler or a driver that ends: no result is lost or counted twice.

Expected values: the results of a search in this process. What ends is really killed, or stopped by a signal.
"""

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import swsearch
from swsearch.cluster import dispatcher, open_cluster_searcher
from swsearch.engine.registry import Machine
from swsearch.errors import DatabaseError, EngineError, InputError
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import open_searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from tests.cluster.clusters import PATCHED, SMALL_PARTS, Cluster, essence, searched
from tests.patience import wait_until
from tests.processes import start
from tests.sliced_databases import records_of

pytestmark = pytest.mark.thorough

OPTIONS = SearchOptions(top=2)
N_QUERIES = 48
OLDER_WORKER = """
import sys
import swsearch

swsearch.__version__ = "0.0.1"
for name in ("tasks", "residents", "dask_connection"):  # imported again, they find this version
    sys.modules.pop(f"swsearch.cluster.{name}", None)
"""


@pytest.fixture(scope="module")
def queries(folder: Path) -> list[SequenceRecord]:
    """Some sequences of the database."""
    path = folder / "queries_of_losses.fasta"
    letters = [text for _, text in records_of(folder / "proteins1.fasta")][:N_QUERIES]
    path.write_text("".join(f">q{number}\n{text}\n" for number, text in enumerate(letters)))
    return list(read_sequences(path, PROTEIN))


@pytest.fixture(scope="module")
def expected(folder: Path, queries: list[SequenceRecord]) -> list[object]:
    with open_searcher(folder / "proteins.db", OPTIONS, engine="cpu", threads=1) as searcher:
        return [essence(result) for result in searcher.search(queries)]


@pytest.fixture
def own_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster without workers, whose workers end with the test; and parts so small that each has a query or two."""
    monkeypatch.setattr(dispatcher, "TASK_SECONDS", 1e-4)
    yield cluster
    cluster.end_workers()


@pytest.mark.parametrize("slices", ["no", "yes"])
def test_the_work_of_a_killed_worker_is_done_by_others(folder, own_cluster, queries, expected, slices):
    """One of two workers is killed after the first result; the other has its parts, and its slices."""
    first, _ = own_cluster.add_worker(), own_cluster.add_worker()
    own_cluster.wait_for_workers()
    said: list[str] = []
    with open_cluster_searcher(
        folder / "proteins.db", OPTIONS, own_cluster.place, machine=Machine("cpu"), slices=slices, notify=said.append
    ) as searcher:
        results = searched(searcher, queries)
        found = [next(results)]
        own_cluster.end_worker(first)
        found += results
    assert found == expected
    assert any("has left" in line for line in said)


def test_a_silent_worker_is_not_waited_for(folder, own_cluster, queries, expected):
    """A stopped worker keeps its connection; its parts are searched elsewhere, and its late answers change nothing."""
    first, _ = own_cluster.add_worker(), own_cluster.add_worker()
    own_cluster.wait_for_workers()
    said: list[str] = []
    with open_cluster_searcher(
        folder / "proteins.db",
        OPTIONS,
        own_cluster.place,
        machine=Machine("cpu"),
        deadline_seconds=0.3,
        notify=said.append,
    ) as searcher:
        assert list(searched(searcher, queries[:8])) == expected[:8]  # so both have opened the database
        results = searched(searcher, queries)
        found = [next(results)]
        first.send_signal(signal.SIGSTOP)
        for result in results:
            found.append(result)
            if any("has not answered" in line for line in said):
                first.send_signal(signal.SIGCONT)
    assert found == expected
    assert any("has not answered" in line for line in said)


def test_a_worker_that_joins_gets_work(folder, own_cluster, queries, expected):
    """The first worker is killed; only one that joined after the start can have searched the rest."""
    first = own_cluster.add_worker()
    with open_cluster_searcher(folder / "proteins.db", OPTIONS, own_cluster.place, machine=Machine("cpu")) as searcher:
        results = searched(searcher, queries)
        found = [next(results)]
        own_cluster.end_worker(first)
        own_cluster.add_worker()
        found += results
    assert found == expected


def test_a_scheduler_that_ends_is_waited_for(folder, own_cluster, queries, expected):
    """Dask cancels everything when its scheduler ends; a new one, at another port, is found by the file."""
    own_cluster.add_worker()
    said: list[str] = []
    with open_cluster_searcher(
        folder / "proteins.db", OPTIONS, own_cluster.place, machine=Machine("cpu"), notify=said.append
    ) as searcher:
        results = searched(searcher, queries)
        found = [next(results)]
        own_cluster.kill_scheduler()
        own_cluster.start_scheduler()
        own_cluster.add_worker()
        found += results
    assert found == expected
    assert any("waiting for another" in line for line in said)


def test_a_query_that_ends_its_workers_ends_the_search(folder, own_cluster, queries, tmp_path, monkeypatch):
    """A worker that dies at one query, as one with too little memory would; the message names the query."""
    preload = tmp_path / "mortal.py"
    preload.write_text(PATCHED.format(header="q5", action="os._exit(1)"))
    monkeypatch.setattr(dispatcher, "MAX_LOSSES", 2)
    for _ in range(2):
        own_cluster.add_worker("--preload", str(preload))
    own_cluster.wait_for_workers()
    with (
        open_cluster_searcher(folder / "proteins.db", OPTIONS, own_cluster.place, machine=Machine("cpu")) as searcher,
        pytest.raises(EngineError, match=r"2 workers ended while they searched query q5; leave it out"),
    ):
        list(searched(searcher, queries[5:6]))


def test_a_driver_that_is_killed_resumes(folder, own_cluster, queries, tmp_path):
    """The command line; what the killed driver committed is not searched again, and the report is complete.

    The worker waits with a query until the driver is dead, so the driver cannot have finished before.
    """
    go_on = tmp_path / "go_on"
    preload = tmp_path / "waiting.py"
    preload.write_text(
        PATCHED.format(header="q12", action=f"while not Path({str(go_on)!r}).exists(): time.sleep(0.05)")
    )
    own_cluster.add_worker("--preload", str(preload))
    path = folder / "queries_of_losses.fasta"
    store, out, plain = tmp_path / "hits.sqlite", tmp_path / "hits.jsonl", tmp_path / "plain.jsonl"
    command = ["-c", SMALL_PARTS, "batch", str(path), str(folder / "proteins.db"), "--quiet"]
    command += ["--store", str(store), "--engine", "cpu", "--cluster", own_cluster.place, "--resume", "latest"]
    command += ["--min-length", "600", "--format", "jsonl", "--out", str(out)]
    driver = start(command)

    def n_stored() -> int:
        if not store.exists():
            return 0
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            try:
                return int(connection.execute("SELECT count(*) FROM queries").fetchone()[0])
            except sqlite3.OperationalError:
                return 0

    wait_until(lambda: n_stored() or driver.poll() is not None, "the first result in the store")
    driver.kill()
    driver.wait()
    before = n_stored()
    go_on.touch()
    assert 0 < before <= 12
    assert not out.exists()
    again = subprocess.run([sys.executable, *command], check=False, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert f"{N_QUERIES - before} queries done, {before} w" in again.stdout
    with open_searcher(folder / "proteins.db", SearchOptions(min_length=600), engine="cpu") as searcher:
        swsearch.write_report((searcher.run_info(""), searcher.search(queries)), plain, "jsonl")
    assert out.read_bytes() == plain.read_bytes()


def test_a_worker_with_another_program_or_database_is_refused(folder, own_cluster, queries, tmp_path):
    """Each error is one line that names the worker, the difference and what to do."""
    preload = tmp_path / "older.py"
    preload.write_text(OLDER_WORKER)
    older = own_cluster.add_worker("--preload", str(preload))
    message = r"worker tcp://.* has swsearch 0\.0\.1, and the driver has swsearch .*; install the same"
    with (
        pytest.raises(InputError, match=message),
        open_cluster_searcher(folder / "proteins.db", OPTIONS, own_cluster.place, machine=Machine("cpu")),
    ):
        pass
    own_cluster.end_worker(older)

    copy = tmp_path / "proteins.db"
    shutil.copytree(folder / "proteins.db", copy)
    own_cluster.add_worker()
    with open_cluster_searcher(copy, OPTIONS, own_cluster.place, machine=Machine("cpu")) as searcher:
        shutil.rmtree(copy)
        with pytest.raises(DatabaseError, match=r"worker tcp://.*proteins\.db does not exist"):
            list(searched(searcher, queries[:1]))
        swsearch.build_database(folder / "proteins1.fasta", copy)
        with pytest.raises(
            DatabaseError, match=r"worker tcp://.* has other content \(digest .*; give the worker a copy"
        ):
            list(searched(searcher, queries[:1]))


def test_a_worker_finds_its_database_elsewhere(folder, own_cluster, queries, expected, tmp_path):
    """The driver's copy is gone when the worker opens its own; another database of that name is passed over."""
    copy, other, local = (tmp_path / name / "proteins.db" for name in ("driver", "other", "local"))
    for path in (copy, local):
        shutil.copytree(folder / "proteins.db", path)
    other.parent.mkdir()
    swsearch.build_database(folder / "proteins1.fasta", other)
    own_cluster.add_worker(SWSEARCH_DATABASES=f"{other.parent}:{local.parent}")
    with open_cluster_searcher(copy, OPTIONS, own_cluster.place, machine=Machine("cpu")) as searcher:
        shutil.rmtree(copy)
        assert list(searched(searcher, queries[:3])) == expected[:3]


def test_a_place_without_a_scheduler_is_one_line(folder, tmp_path, monkeypatch):
    """Expected values: the messages."""
    monkeypatch.setattr("swsearch.cluster.dask_connection.FIRST_SECONDS", 0.0)
    for place, message in (
        ("local:none", "give the number of workers"),
        (str(tmp_path / "missing.json"), "there is no scheduler: the file does not exist"),
        (str(folder / "proteins0.fasta"), "there is no scheduler: the file has no address"),
    ):
        with pytest.raises(InputError, match=message), open_cluster_searcher(folder / "proteins.db", OPTIONS, place):
            pass
    monkeypatch.setattr("swsearch.cluster.dask_connection.FIRST_SECONDS", 0.6)
    place = str(tmp_path / "missing.json")
    told: list[str] = []
    with (
        pytest.raises(InputError, match="the file does not exist; start one with"),
        open_cluster_searcher(folder / "proteins.db", OPTIONS, place, notify=told.append),
    ):
        pass
    assert told == [f"--cluster {place}: there is no scheduler: the file does not exist; waiting for one for up to 1 s"]

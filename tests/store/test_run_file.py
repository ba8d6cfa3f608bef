"""The file of a store as a search writes it: the same rows and errors as those of a store, without SQLAlchemy.

What is written is read by :class:`~swsearch.store.store.Store`, whose tests say that it reads what a store has.
"""

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import create_engine

from swsearch.errors import InputError, RunNotFound, StoreError
from swsearch.file_registry import registered
from swsearch.hits.shards import AskedQueries, Failure, Shard
from swsearch.store import connections, models, run_file
from swsearch.store.run_file import RunFile, open_run_store
from swsearch.store.store import Store
from tests.store.conftest import RUN, bound_by_modes, make_hit, make_query

ODD = "\\ \0 \udcff \N{GREEK SMALL LETTER LAMDA}"
OPENED = """
import sys
from swsearch.store.run_file import RunFile
print(RunFile.opened(sys.argv[1]))
"""
WRITTEN = """
import sys
from swsearch.store.run_file import RunFile
from tests.store.conftest import RUN, make_query
with RunFile.opened(sys.argv[1]) as store:
    run = store.runs.start(RUN)
    for number in range(20):
        store.results.add(run, make_query(number))
    store.runs.finish(run)
print(run)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "hits.sqlite"


@pytest.fixture
def opened(path):
    with RunFile.opened(path) as store:
        yield store


def content(path):
    """The rows of a store, without the times at which they were written."""
    times = "datetime('started_at'), datetime('finished_at')"
    with closing(sqlite3.connect(path)) as connection:
        runs = connection.execute(f"SELECT *, {times} FROM runs").fetchall()
        queries = connection.execute("SELECT * FROM queries").fetchall()
        others = [connection.execute(f"SELECT * FROM {name}").fetchall() for name in ("hits", "failures")]
    names = [column.name for column in models.RUNS.columns]
    at = [names.index(name) for name in ("started_at", "finished_at")]
    stamped = [column.name for column in models.QUERIES.columns].index("committed_at")
    times = [len(row[place]) for row in runs for place in at if row[place] is not None]
    times += [len(row[stamped]) for row in queries]
    bare = [[value for place, value in enumerate(row) if place not in at] for row in runs]
    return bare, [[*row[:stamped], *row[stamped + 1 :]] for row in queries], *others, times


def write(store):
    """Two runs with all that a search writes, and with texts that no database takes as they are."""
    asked = AskedQueries(Shard(1, 2), None, None)
    first = store.runs.start(replace(RUN, command=f"swsearch {ODD}", statistics=ODD, parameters={"out": ODD}), asked)
    store.results.add_failure(first, Failure(2, "an earlier reason"))
    store.results.add_failure(first, Failure(2, ODD))
    store.results.add_failure(first, Failure(3, "it is searched after all"))
    odd = replace(make_hit(1), subject_header=f"s{ODD}")
    store.results.add(first, replace(make_query(0), header=f"q{ODD}", hits=(odd, make_hit(2))))
    store.results.add(first, make_query(3))
    store.runs.note_asked(first, replace(asked, n_queries=4, digest="d"))
    store.runs.note_statistics(first, ODD)
    store.runs.note_remark(first, ODD)
    store.runs.finish(first)
    store.runs.interrupt(store.runs.start(RUN))


def test_the_rows_are_those_that_a_store_writes(tmp_path):
    """The parts of a run that the writers share are the same by construction, times and transactions are not."""
    with RunFile.opened(tmp_path / "file.sqlite") as store:
        write(store)
    with Store(tmp_path / "store.sqlite", create=True) as store:
        write(store)
        run = store.runs.get(1)
    assert content(tmp_path / "file.sqlite") == content(tmp_path / "store.sqlite")
    with Store(tmp_path / "file.sqlite") as store:
        found = store.runs.get(1)
        assert (found.info, found.asked, found.remark, found.state) == (run.info, run.asked, ODD, "finished")
        assert found.info.statistics == f"{ODD}; {ODD}"
        assert abs((found.started - run.started).total_seconds()) < 60
        assert store.results.failures(1) == [Failure(2, ODD)]
        assert [query.header for query in store.results.queries(1)] == [f"q{ODD}", make_query(3).header]


def test_the_tables_of_a_new_file_are_those_of_the_models(path, opened):
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        models.METADATA.create_all(connection)
        expected = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master").fetchall()
    engine.dispose()
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE type <> 'view'").fetchall()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    described = [sorted((kind, name, (sql or "").split()) for kind, name, sql in rows) for rows in (found, expected)]
    assert described[0] == described[1]
    assert sorted(models.HITS.columns.keys()) == sorted(run_file.HIT_COLUMNS)


def test_processes_that_create_one_file_at_once_all_write_to_it(path):
    processes = [subprocess.Popen([sys.executable, "-c", WRITTEN, str(path)], stdout=subprocess.PIPE) for _ in range(4)]
    runs = sorted(process.communicate()[0] for process in processes)
    assert [process.returncode for process in processes] == [0] * 4
    assert runs == [b"1\n", b"2\n", b"3\n", b"4\n"]
    with Store(path) as store:
        assert [(run.state, run.n_queries) for run in store.runs.all()] == [("finished", 20)] * 4


def test_threads_share_a_file(path, opened):
    run = opened.runs.start(RUN)
    threads = [threading.Thread(target=opened.results.add, args=(run, make_query(number))) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(path) as store:
        assert list(store.results.queries(run)) == [make_query(number) for number in range(12)]


def test_rows_that_the_tables_refuse_are_told_as_a_store_tells_them(path, opened):
    """The first query stays as it is, and of a query with two hits of one rank nothing is stored."""
    run = opened.runs.start(RUN)
    opened.results.add(run, make_query(4))
    with pytest.raises(StoreError, match=f"{path.name}: run {run} has its query 4 already"):
        opened.results.add(run, make_query(4, n_hits=1))
    with pytest.raises(StoreError, match=f"{path.name}: UNIQUE constraint failed: hits"):
        opened.results.add(run, replace(make_query(5), hits=(make_hit(1), make_hit(1))))
    for use in (lambda: opened.results.add(99, make_query(0)), lambda: opened.results.add_failure(99, Failure(0, ""))):
        with pytest.raises(RunNotFound):
            use()
    for change in (opened.runs.finish, opened.runs.interrupt, lambda run: opened.runs.note_statistics(run, "")):
        with pytest.raises(RunNotFound):
            change(99)
    assert list(opened.full.results.queries(run)) == [make_query(4)]


def test_a_full_disk_loses_nothing_that_was_committed(path, opened):
    """The file may not grow beyond its pages, as on a full disk: SQLite reports the same error."""
    run = opened.runs.start(RUN)
    opened.results.add(run, make_query(0))
    pages = opened._driver.execute("PRAGMA page_count").fetchone()[0]
    opened._driver.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreError, match="the disk is full"):
        opened.results.add(run, make_query(1, n_hits=2000))
    opened._driver.execute(f"PRAGMA max_page_count = {pages + 2000}")
    opened.results.add(run, make_query(2))
    assert [query.number for query in opened.full.results.queries(run)] == [0, 2]


def test_a_file_that_is_deleted_or_locked_meanwhile_is_noticed(path, opened, monkeypatch):
    monkeypatch.setattr(run_file, "BUSY_SECONDS", 0.1)
    run = opened.runs.start(RUN)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process is writing to it and does not finish"):
            opened.results.add(run, make_query(0))
    opened.results.add(run, make_query(0))
    path.unlink()
    with pytest.raises(StoreError, match="it was deleted or replaced while it was in use"):
        opened.results.add(run, make_query(1))


def test_a_file_that_the_same_command_reads_is_refused(path):
    path.write_text(">q\nMKV\n")
    with registered() as files:
        files.read(path, "the queries")
        with pytest.raises(InputError, match="the queries"):
            RunFile.opened(path)


@pytest.mark.parametrize("kind", ["url", "folder", "no folder", "text", "other tables", "other version", "shared"])
def test_what_is_not_an_ordinary_file_of_this_version_is_left_to_a_store(path, kind, monkeypatch):
    """Nothing is created or changed by looking."""
    target = str(path)
    if kind == "url":
        target = f"sqlite:///{path}"
    elif kind == "folder":
        path.mkdir()
    elif kind == "no folder":
        target = str(path / "no" / "hits.sqlite")
    elif kind == "text":
        path.write_text("no database, and longer than the header of a file of SQLite, which has a hundred bytes " * 9)
    elif kind == "shared":
        monkeypatch.setattr(run_file, "is_shared", lambda path: True)
    else:
        RunFile.opened(path).close() if kind == "other version" else None
        other = "UPDATE swsearch_schema SET version_num = '9.9.9'" if path.exists() else "CREATE TABLE t (n INTEGER)"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(other)
    before = path.read_bytes() if path.is_file() else path.exists()
    assert RunFile.opened(target) is None
    assert (path.read_bytes() if path.is_file() else path.exists()) == before


def test_a_file_that_cannot_be_written_is_left_to_a_store(path):
    RunFile.opened(path).close()
    path.chmod(0o444)
    ended = subprocess.run(
        [*bound_by_modes(), sys.executable, "-c", OPENED, str(path)], capture_output=True, text=True, check=False
    )
    assert ended.stdout == "None\n", ended.stderr


def test_a_search_opens_an_ordinary_file_unless_it_is_to_be_staged(path):
    with open_run_store(path) as store:
        assert isinstance(store, RunFile)
    for target, stage in ((path, "always"), (f"sqlite:///{path}", "auto")):
        with open_run_store(target, stage=stage) as store:
            assert isinstance(store, Store)
            assert store.full is store
    with pytest.raises(StoreError, match="cannot be kept in mysql"):
        connections.check_url("mysql://user@host/name")

"""The file of a store as a search writes it: the tables of the models, and what threads and processes share.

What is written is read by :class:`~swsearch.store.store.Store`, whose tests say that it reads what a store has.
"""

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from swsearch.errors import InputError, RunNotFound, StoreError
from swsearch.file_registry import registered
from swsearch.hits.shards import AskedQueries, Failure, Shard
from swsearch.store import connections, rows
from swsearch.store.staged_store import StagedStore
from swsearch.store.store import Store, open_store
from tests.store.conftest import RUN, make_hit, make_query

ODD = "\\ \0 \udcff \N{GREEK SMALL LETTER LAMDA}"
WRITTEN = """
import sys
from swsearch.store.store import open_store
from tests.store.conftest import RUN, make_query
with open_store(sys.argv[1], create=True) as store:
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
    with open_store(path, create=True) as store:
        yield store


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


def test_what_a_search_writes_is_read_again(path):
    with Store(path, create=True) as store:
        write(store)
        run = store.runs.get(1)
    info = replace(RUN, command=f"swsearch {ODD}", statistics=f"{ODD}; {ODD}", parameters={"out": ODD})
    asked = AskedQueries(Shard(1, 2), 4, "d")
    assert (run.info, run.asked, run.remark, run.state) == (info, asked, ODD, "finished")
    with Store(path) as store:
        assert store.runs.get(1) == run
        assert store.runs.newest().state == "interrupted"
        assert store.results.failures(1) == [Failure(2, ODD)]
        odd, plain = store.results.queries(1)
        assert (odd.header, odd.hits[0].subject_header, plain) == (f"q{ODD}", f"s{ODD}", make_query(3))


def test_a_new_file_is_in_wal_mode_and_its_numbers_are_never_used_again(path, opened):
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    first = opened.runs.start(RUN)
    opened.runs.delete(first, force=True)
    assert opened.runs.start(RUN) == first + 1


def test_hits_have_a_value_for_each_column():
    columns, _ = rows.reader_of("hits", ())
    assert sorted(columns.split(", ")) == sorted(rows.HIT_COLUMNS)


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
    assert list(opened.results.queries(run)) == [make_query(4)]


def test_a_file_that_is_deleted_or_locked_meanwhile_is_noticed(path):
    opened = Store(path, create=True, busy_seconds=0.1)
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
            open_store(path, create=True)


def test_a_file_is_staged_where_that_is_asked_for(path):
    for target, stage, kind in (
        (path, "auto", Store),
        (path, "always", StagedStore),
        (f"sqlite:///{path}", "auto", Store),
    ):
        with open_store(target, create=True, stage=stage) as store:
            assert type(store) is kind
    with pytest.raises(StoreError, match="cannot be kept in mysql"):
        connections.check_url("mysql://user@host/name")

"""Stores that cannot be opened, read or written: one line states why, and nothing is damaged.

The expected words are written by hand; the causes are files, modes and limits that the tests set.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from swsearch.errors import InputError, StoreError
from swsearch.file_registry import registered
from swsearch.store.schema import upgrade
from swsearch.store.store import Store
from tests.store.conftest import RUN, bound_by_modes, make_query

REPOSITORY = Path(__file__).parents[2]


def refusal(target: object, *, create: bool = True) -> str:
    """Return the message with which the opening of a store is refused."""
    with pytest.raises(StoreError) as caught:
        Store(target, create=create)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_store_is_not_made_by_a_reader(tmp_path):
    path = tmp_path / "hits.sqlite"
    assert f"there is no store {path}" in refusal(path, create=False)
    assert not path.exists()


@pytest.mark.parametrize("content", [b">a\nACGT\n", b"\0" * 5000, b"SQLite format 2\0"])
def test_another_kind_of_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "hits.sqlite"
    path.write_bytes(content)
    assert f"{path} is not an SQLite database" in refusal(path)
    assert path.read_bytes() == content


def test_a_file_that_the_same_command_reads_is_refused(tmp_path):
    path = tmp_path / "q.fa"
    path.write_text(">q\nMKV\n")
    with registered() as files:
        files.read(path, "the queries")
        with pytest.raises(InputError, match="the queries"):
            Store(path, create=True)


@pytest.mark.parametrize("create", [True, False])
def test_another_programs_database_is_refused_and_left_alone(tmp_path, create):
    path = tmp_path / "places.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE runs (id INTEGER, title TEXT)")
    other.close()
    before = path.read_bytes()
    assert "another program's SQLite database" in refusal(path, create=create)
    assert path.read_bytes() == before


@pytest.mark.parametrize("create", [True, False])
def test_a_schema_that_is_no_text_is_damage(tmp_path, create):
    """SQLite's message quotes the damaged name, whose bytes the driver cannot decode."""
    path = tmp_path / "hits.sqlite"
    Store(path, create=True).close()
    content = path.read_bytes()
    damaged = content.replace(b"ix_queries_run_digest", b"ix_queries\xff\xferun_digest"[:21])
    path.write_bytes(damaged.replace(b"CREATE INDEX", b"CREAXE INDEX"))
    assert "the database is damaged" in refusal(path, create=create)
    with pytest.raises(StoreError, match="the database is damaged"):
        upgrade(path)


CLOSED_BY_SIGNAL = """
import os, signal, sqlite3, sys
from swsearch.cli.app import main

class Ended(sqlite3.Connection):
    def close(self):
        os.kill(os.getpid(), getattr(signal, sys.argv.pop(1)))
        super().close()

connect = sqlite3.connect
sqlite3.connect = sqlite3.dbapi2.connect = lambda *given, **named: connect(*given, factory=Ended, **named)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("sent", "code", "message"), [("SIGTERM", 143, ""), ("SIGINT", 130, "swsearch: interrupted\n")]
)
def test_a_signal_while_a_store_is_closed_shows_no_traceback(tmp_path, sent, code, message):
    """Source: the exit codes of the command and its message; the connection sends the signal to its own process."""
    with Store(tmp_path / "hits.sqlite", create=True) as store:
        store.runs.start(RUN)
    outcome = subprocess.run(
        [sys.executable, "-c", CLOSED_BY_SIGNAL, sent, "--", "runs", "list", "--store", "hits.sqlite"],
        check=False, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert (outcome.returncode, outcome.stderr) == (code, message)


def test_a_damaged_store_is_refused(tmp_path):
    """The pages after the first are overwritten."""
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True) as store:
        store.runs.start(RUN)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    with pytest.raises(StoreError, match=r"damaged|malformed|file is not a database"), Store(path) as store:
        store.runs.all()


def test_a_folder_is_refused(tmp_path):
    assert "is a folder" in refusal(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    assert f"the folder {tmp_path / 'no'} does not exist" in refusal(tmp_path / "no" / "hits.sqlite")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://user@host/name", "cannot be kept in mysql"),
        ("://", "is not a store"),
        ("postgresql://swsearch:secret@localhost:1/none", "postgresql+psycopg://swsearch:***@localhost:1/none: "),
    ],
)
def test_urls_that_lead_nowhere_are_refused_without_their_password(url, words):
    message = refusal(url)
    assert words in message
    assert "secret" not in message


def test_a_full_disk_loses_nothing_that_was_committed(tmp_path):
    """The file may not grow beyond its pages, as on a full disk: SQLite reports the same error."""
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True) as store:
        run_id = store.runs.start(RUN)
        store.results.add(run_id, make_query(0))
        with store.reading() as rows:  # its connection is that of the next transaction
            (pages,) = rows.execute("PRAGMA page_count").fetchone()
            rows.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreError, match="the disk is full") as caught:
            store.results.add(run_id, make_query(1, n_hits=2000))
        assert "\n" not in str(caught.value)
        assert list(store.results.queries(run_id)) == [make_query(0)]
    with Store(path) as store:
        store.results.add(run_id, make_query(1, n_hits=2000))
        assert list(store.results.queries(run_id)) == [make_query(0), make_query(1, n_hits=2000)]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_stop_within_a_commit_is_told_as_a_stop(tmp_path, monkeypatch):
    """SIGTERM raises SystemExit at any moment; what was to be committed is then discarded."""

    class Stopped(sqlite3.Connection):
        def commit(self) -> None:
            raise SystemExit(143)

    path = tmp_path / "hits.sqlite"
    with Store(path, create=True) as store:
        run_id = store.runs.start(RUN)
        store.runs.interrupt(run_id)
    connect = sqlite3.connect
    with Store(path) as store:
        store._connections.close()
        with monkeypatch.context() as stopping:
            stopping.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, factory=Stopped, **named))
            for ask in (store.runs.all, lambda: store.runs.resume(run_id)):
                with pytest.raises(SystemExit):
                    ask()
        store._connections.close()
        assert [(run.id, run.state) for run in store.runs.all()] == [(run_id, "interrupted")]


READER = """
import sys
from swsearch.errors import InputError, StoreError
from swsearch.file_registry import registered
from swsearch.store.store import Store
from tests.store.conftest import RUN, bound_by_modes, make_query
try:
    with Store(sys.argv[1], create=True) as store:
        print([query == make_query(0) for query in store.results.queries("latest")])
        store.runs.start(RUN)
    print("written")
except StoreError as error:
    print(f"refused: {error}")
"""


def read_bound_by_modes(path: Path) -> subprocess.CompletedProcess[str]:
    """Return what the files' owner can read of a store, and whether it can write."""
    return subprocess.run(
        [*bound_by_modes(), sys.executable, "-c", READER, str(path)],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may write anywhere, and setpriv is not there"
)
@pytest.mark.parametrize(("mode", "folder_mode"), [(0o444, 0o555), (0o444, 0o777), (0o644, 0o555)])
def test_a_store_that_cannot_be_written_can_be_read(tmp_path, mode, folder_mode):
    """The files' owner has no right to write: the file is read-only, its folder, or both."""
    folder = tmp_path / "shared"
    folder.mkdir()
    path = folder / "hits.sqlite"
    with Store(path, create=True) as store:
        store.results.add(store.runs.start(RUN), make_query(0))
    path.chmod(mode)
    folder.chmod(folder_mode)
    try:
        done = read_bound_by_modes(path)
    finally:
        folder.chmod(0o755)
    read, refused = done.stdout.splitlines() or [done.stderr, ""]
    assert read == "[True]"
    assert refused.startswith(f"refused: {path}")
    assert "cannot be written to" in refused
    assert not path.with_name("hits.sqlite-wal").exists()


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may write anywhere, and setpriv is not there"
)
@pytest.mark.parametrize(("empty_file", "words"), [(True, "it cannot be written to"), (False, "cannot be opened")])
def test_no_store_is_made_where_nothing_can_be_written(tmp_path, empty_file, words):
    """An empty read-only file, or a folder in which no file may be created."""
    folder = tmp_path / "shared"
    folder.mkdir()
    path = folder / "hits.sqlite"
    if empty_file:
        path.touch(mode=0o444)
    folder.chmod(0o555)
    done = read_bound_by_modes(path)
    folder.chmod(0o755)
    assert done.stdout.startswith(f"refused: {path}: "), done.stderr
    assert words in done.stdout
    assert path.exists() == empty_file


def test_nothing_but_a_store_is_upgraded(tmp_path):
    path = tmp_path / "places.sqlite"
    with pytest.raises(StoreError, match="there is no store"):
        upgrade(path)
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE places (id INTEGER)")
    other.close()
    with pytest.raises(StoreError, match="is not a store of hits"):
        upgrade(path)


def test_tables_of_another_version_are_told_with_what_to_do(target):
    """A run is read and a result is stored without a column that this program has, in either database."""
    with Store(target, create=True) as store:
        run = store.runs.start(RUN)
        store.results.add(run, make_query(0))
        with store.writing() as rows:
            rows.execute("DROP VIEW blast6")
            rows.execute("ALTER TABLE hits DROP COLUMN n_hsps")
            rows.execute("ALTER TABLE queries DROP COLUMN n_passed")
    with Store(target) as store:
        for use in (lambda: list(store.results.queries(run)), lambda: store.results.add(run, make_query(1))):
            with pytest.raises(StoreError) as caught:
                use()
            assert "its tables are not those of this swsearch (" in str(caught.value)
            assert "use the swsearch that wrote it, or choose another store" in str(caught.value)
            assert "\n" not in str(caught.value)

"""Several processes and one store: processes that are killed, wait for each other, or create the store concurrently.

The expected values are the records that the processes report as written.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from swsearch.errors import StoreError
from swsearch.store.store import Store
from tests.patience import wait_until
from tests.processes import start
from tests.store.conftest import RUN, make_query

NO_PROCESS = 2**22 + 1
"""A number above any process number of Linux."""

REPOSITORY = Path(__file__).parents[2]

WRITER = """
import itertools, sys
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_query
store = Store(sys.argv[1], create=True)
run_id = store.runs.start(RUN)
for number in itertools.count():
    store.results.add(run_id, make_query(number, n_hits=200))
    print(number, flush=True)
"""


def wait_for_server(target: str) -> None:
    """Wait until a database server has cleaned up after a killed process; a file has no server."""
    if not target.startswith("postgresql:"):
        return
    import psycopg

    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(target, autocommit=True) as connection:

        def is_alone() -> bool:
            row = connection.execute(f"SELECT count(*) {others} AND backend_type = 'client backend'").fetchone()
            return row == (0,)

        wait_until(is_alone, "the server's end of the killed process")


def test_a_killed_process_loses_no_committed_query(target):
    """A writer reports which queries were committed, and is killed with SIGKILL in the middle of the next one."""
    process = start(["-c", WRITER, target], cwd=REPOSITORY, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process:
        reported = [int(process.stdout.readline()) for _ in range(5)]
        with Store(target) as store:
            assert store.runs.get("latest").state == "running"
        time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        reported += [int(line) for line in process.stdout]
        process.wait()
    assert process.returncode == -signal.SIGKILL
    wait_for_server(target)
    with Store(target) as store:
        stored = store.runs.get("latest")
        assert stored.state == "interrupted"
        assert stored.finished is None
        committed = list(store.results.queries(stored.id))
        # One more query may be committed than was reported: the kill can fall between the commit and the report.
        assert len(committed) - len(reported) in {0, 1}
        assert committed == [make_query(number, n_hits=200) for number in range(len(committed))]
        assert stored.n_hits == 200 * len(committed)
        store.runs.resume(stored.id)
        store.results.add(stored.id, make_query(len(committed)))
        store.runs.finish(stored.id)


def test_a_writer_waits_for_another_and_says_so_when_it_does_not_end(tmp_path):
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True, busy_seconds=0.3) as store:
        run_id = store.runs.start(RUN)
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            with pytest.raises(StoreError, match="another process is writing to it") as caught:
                store.results.add(run_id, make_query(0))
            assert time.monotonic() - started >= 0.2
            assert "\n" not in str(caught.value)
            assert store.runs.get(run_id).n_queries == 0  # readers do not wait
            other.execute("COMMIT")
        finally:
            other.close()
        store.results.add(run_id, make_query(0))
        assert store.runs.get(run_id).n_queries == 1


@pytest.mark.parametrize("ends", [True, False])
def test_a_store_that_another_process_is_creating_is_waited_for(tmp_path, ends):
    """Source: SQLite, which refuses at once to choose WAL mode while another connection holds the writer's lock."""
    path = tmp_path / "hits.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    end = threading.Timer(0.2, other.execute, ["COMMIT"])
    try:
        if ends:
            end.start()
            Store(path, create=True).close()
        else:
            with pytest.raises(StoreError, match="another process is writing to it"):
                Store(path, create=True, busy_seconds=0.1)
    finally:
        if ends:
            end.join()
        other.close()


CREATOR = """
import sys
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_query
print("ready", flush=True)
sys.stdin.readline()
with Store(sys.argv[1], create=True) as store:
    run_id = store.runs.start(RUN)
    for query in range(10):
        store.results.add(run_id, make_query(query, n_hits=20))
    store.runs.finish(run_id)
"""


def test_processes_that_create_and_write_at_once_all_succeed(target):
    """Four processes start without a store; at the end, the run of each has its ten queries."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    creators = [start(["-c", CREATOR, target], cwd=REPOSITORY, **streams) for _ in range(4)]
    for creator in creators:
        assert creator.stdout.readline() == "ready\n"
    for creator in creators:
        creator.stdin.write("\n")
        creator.stdin.flush()
    for creator in creators:
        _, errors = creator.communicate()
        assert creator.returncode == 0, errors
    with Store(target) as store:
        assert [(run.state, run.n_queries, run.n_hits) for run in store.runs.all()] == [("finished", 10, 200)] * 4


def test_a_run_of_another_machine_is_not_called_interrupted(tmp_path, monkeypatch):
    """This machine cannot know whether the process of the run is alive."""
    with Store(tmp_path / "hits.sqlite", create=True) as store:
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr("swsearch.store.runs.host_name", lambda: "elsewhere")
            elsewhere.setattr(os, "getpid", lambda: NO_PROCESS)
            run_id = store.runs.start(RUN)
        assert store.runs.get(run_id).state == "running"
        assert str(store.runs.get(run_id).process) == f"process {NO_PROCESS} on elsewhere"


def test_a_process_number_given_to_another_process_does_not_keep_a_run(tmp_path):
    """After a restart, a number may belong to another process: the run gets that of a process that began later."""
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True) as store:
        run_id = store.runs.start(RUN)
        assert store.runs.get(run_id).state == "running"
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
            connection = sqlite3.connect(path)
            connection.execute("UPDATE runs SET process = ?", (other.pid,))
            connection.commit()
            connection.close()
            assert store.runs.get(run_id).state == "interrupted"
            other.communicate(b"\n")


def test_a_run_of_before_is_judged_by_its_process_number_alone(tmp_path):
    """An older program did not store the time at which its process began."""
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True) as store:
        run_id = store.runs.start(RUN)
        connection = sqlite3.connect(path)
        connection.execute("UPDATE runs SET process_began = NULL")
        connection.commit()
        assert store.runs.get(run_id).state == "running"
        connection.execute("UPDATE runs SET process = ?", (NO_PROCESS,))
        connection.commit()
        connection.close()
        assert store.runs.get(run_id).state == "interrupted"


@pytest.mark.thorough
def test_a_second_store_of_the_process_takes_no_locks_from_the_first(tmp_path):
    """If the file were opened and closed beside SQLite, POSIX would release the locks of the first store.

    Another process that closes the store would then delete the log in use, and what follows would be lost.
    """
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True) as first:
        first.runs.start(RUN)
        with Store(path) as second:
            assert len(second.runs.all()) == 1
        code = "import sys; from swsearch.store.store import Store; Store(sys.argv[1]).close()"
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        assert Path(f"{path}-wal").exists()
        first.runs.start(RUN)
        count = "import sys; from swsearch.store.store import Store; print(len(Store(sys.argv[1]).runs.all()))"
        done = subprocess.run([sys.executable, "-c", count, str(path)], check=True, capture_output=True, text=True)
        assert done.stdout == "2\n"


@pytest.mark.thorough
def test_a_killed_process_whose_parent_has_not_asked_for_its_exit_code_has_ended(tmp_path):
    """The process is a zombie, as it is below an init program of a container that waits for no child."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "z.sqlite"], cwd=REPOSITORY, stdout=-1)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    wait_until(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes() == b"", "the end of the process")
    wait_until(lambda: " Z " in Path(f"/proc/{process.pid}/stat").read_text(), "the end of its threads")
    with Store(tmp_path / "z.sqlite") as store:
        assert store.runs.get(1).state == "interrupted"
    process.communicate()

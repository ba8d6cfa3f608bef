"""Disturbed stores: another process holds the lock, bytes are damaged, the server is killed."""

import shutil
import sqlite3
import time
from functools import cache
from pathlib import Path

import pytest

from swsearch.errors import StoreError
from swsearch.store.store import Store
from tests.campaign import faults
from tests.campaign.commands import SEARCH, StoreCommand, Template, prepared, unstamped
from tests.campaign.faults import Fault
from tests.campaign.program import forked, run
from tests.campaign.trials import Trial, told
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.thorough, pytest.mark.peer("gcc")]

STORING = ("query", "batch", "runs_merge")
READING = (
    ("runs", "list", "--store", "hits.sqlite"),
    ("runs", "show", "1", "--store", "hits.sqlite"),
    ("report", "1", "--store", "hits.sqlite", "--format", "tsv"),
    ("report", "latest", "--store", "hits.sqlite", "--format", "json"),
    ("query", "q.fa", "base.db", "--store", "hits.sqlite", *SEARCH),
    ("runs", "merge", "hits.sqlite", "--store", "merged.sqlite"),
    ("runs", "delete", "1", "--store", "hits.sqlite"),
)


@pytest.mark.campaign(1, 90)
def test_a_search_waits_while_another_process_holds_the_lock(trial: Trial) -> None:
    """Another connection locks the store from time to time while a search stores its hits."""
    command, folder = prepared(trial, STORING[trial.number % len(STORING)])
    assert isinstance(command, StoreCommand)
    path = folder / command.store
    if not path.exists():
        Template.make(trial.state_dir).copy(("hits.sqlite",), folder)
        assert run(("runs", "merge", "hits.sqlite", "--store", command.store), folder).code == 0
        assert run(("runs", "delete", "1", "--store", command.store), folder).code == 0
        (folder / "hits.sqlite").unlink()
    process = forked(command.arguments, folder)
    other = sqlite3.connect(path, isolation_level=None, timeout=60)
    try:
        while not process.has_ended():
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                continue
            time.sleep(trial.rng.random() * 0.1)
            other.execute("ROLLBACK")
            time.sleep(trial.rng.random() * 0.02)
    finally:
        other.close()
    done = process.wait()
    assert done.code == 0, done.text
    with Store(path) as store:
        last = store.runs.get("latest")
        assert last.state == "finished"
        assert [unstamped(result) for result in store.results.queries(last.id)] == command.wanted


@pytest.mark.campaign(3, 400)
def test_damage_of_a_store_is_one_line_and_never_a_crash(trial: Trial) -> None:
    """Bytes are changed or cut off; a command that still succeeds may not have met the damage."""
    _, folder = prepared(trial, "query")
    path = folder / "hits.sqlite"
    data = bytearray(path.read_bytes())
    if trial.rng.random() < 0.25:
        data = data[: trial.rng.randrange(len(data))]
        how = f"a store cut to {len(data)} bytes"
    else:
        n_changed = trial.rng.choice((1, 1, 8, 200))
        first = 100 if trial.rng.random() < 0.8 else 0
        for _ in range(n_changed):
            data[trial.rng.randrange(first, len(data))] = trial.rng.randrange(256)
        how = f"a store with {n_changed} bytes changed"
    path.write_bytes(data)
    for arguments in trial.rng.sample(READING, 3):
        with told(f"`{' '.join(arguments[:2])}` of {how}"):
            run(arguments, folder).check_end()


@pytest.mark.campaign(1, 200)
def test_damage_of_a_log_loses_nothing_that_was_committed_before_it(trial: Trial) -> None:
    """Bytes of the write-ahead log of a killed query are changed or cut off, as after a crash of the machine."""
    command, folder = prepared(trial, "query")
    assert isinstance(command, StoreCommand)
    store_path, log = folder / "hits.sqlite", folder / "hits.sqlite-wal"
    untouched = store_path.read_bytes()
    call = trial.rng.randrange(command.calls // 3, command.calls)
    run(command.arguments, folder, Fault(call, faults.KILL_BEFORE))
    if not log.exists() or not log.stat().st_size:
        return
    data = bytearray(log.read_bytes())
    if trial.rng.random() < 0.5:
        data = data[: trial.rng.randrange(len(data))]
    else:
        data[trial.rng.randrange(len(data))] ^= 1 << trial.rng.randrange(8)
    log.write_bytes(data)
    (folder / "hits.sqlite-shm").unlink(missing_ok=True)
    if store_path.read_bytes() != untouched:
        # A checkpoint has begun, which copies the log into the store. SQLite has synchronized the log by then, so no
        # crash leaves it in this state: this is damage like that of the store itself.
        for arguments in READING[:3]:
            run(arguments, folder).check_end()
        return
    with Store(store_path) as store:
        runs = store.runs.all()
        for found in runs:
            results = [unstamped(result) for result in store.results.queries(found.id)]
            assert results == command.wanted[: len(results)], f"run {found.id}: committed queries differ"
    assert len(runs) >= len(command.learned["old"])
    with sqlite3.connect(store_path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    command.must(folder, command.arguments)


# --- PostgreSQL ---


@cache
def undisturbed(postgres: PostgresServer, state_dir: Path) -> tuple[Template, bytes, float]:
    """Return the template, the report of a batch that nothing disturbs, and its seconds."""
    template = Template.make(state_dir)
    folder = state_dir / "undisturbed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    template.copy(("many.fa", "base.db"), folder)
    url = postgres.url("undisturbed")
    done = run(("batch", "many.fa", "base.db", "--store", url, *SEARCH), folder)
    assert done.code == 0, done.text
    report = run(("report", "latest", "--store", url, "--format", "tsv"), folder)
    return template, report.out, done.seconds


@pytest.mark.peer("postgresql")
@pytest.mark.campaign(0, 50)
def test_a_killed_server_of_postgresql_loses_nothing_that_was_committed(trial: Trial, postgres: PostgresServer) -> None:
    """It is killed while a batch stores its hits; the resumed batch gives the bytes of an undisturbed one."""
    template, wanted, seconds = undisturbed(postgres, trial.state_dir)
    folder = trial.folder / "work"
    folder.mkdir()
    template.copy(("many.fa", "base.db"), folder)
    url = postgres.url(f"trial_{trial.number}")
    arguments = ("batch", "many.fa", "base.db", "--store", url, *SEARCH)
    process = forked((*arguments, "--events", "events.jsonl"), folder)
    time.sleep(trial.rng.random() * seconds)
    postgres.kill()
    done = process.wait()
    postgres.start()
    done.check_end()
    events = folder / "events.jsonl"
    n_reported = events.read_text().count('"event": "query"') if events.exists() else 0
    try:
        with Store(url) as store:
            n_stored = sum(found.n_queries for found in store.runs.all())
    except StoreError:
        n_stored = 0
    assert n_stored >= n_reported
    again = run((*arguments, "--resume", "latest"), folder)
    assert again.code == 0, again.text[-400:]
    assert run(("report", "latest", "--store", url, "--format", "tsv"), folder).out == wanted

"""Disturbed stores: another process holds the lock, bytes are damaged, the server is killed.

`locked_store`: a search whose store another process has locked waits and then stores its hits. `damaged_store`: after
bytes were changed or cut off, commands end with 0 or with one clear line, never with a traceback, a crash or a hang;
where only the write-ahead log was damaged, what was committed before the damaged position is present and intact.
`killed_server`: PostgreSQL is killed with SIGKILL in the middle of a batch and started again; no committed data is
lost, and the resumed batch gives the same bytes as an undisturbed one.
"""

import atexit
import os
import shutil
import sqlite3
import tempfile
import time
from functools import cache
from pathlib import Path

from swsearch.errors import StoreError
from swsearch.store.store import Store
from tests.campaign import faults
from tests.campaign.commands import SEARCH, StoreCommand, Template, prepared, unstamped
from tests.campaign.faults import Fault
from tests.campaign.processes import Done, forked
from tests.campaign.processes import run as run_forked
from tests.campaign.trials import LeftOut, Trial
from tests.peers import POSTGRES
from tests.postgres_server import PostgresServer

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


def locked_store(trial: Trial) -> None:
    """Lock the store from another connection from time to time while a search stores its hits."""
    name = STORING[trial.number % len(STORING)]
    command, folder = prepared(trial, name)
    assert isinstance(command, StoreCommand)
    path = folder / command.store
    if not path.exists():
        Template.make(trial.state_dir).copy(("hits.sqlite",), folder)
        done = run_forked(("runs", "merge", "hits.sqlite", "--store", command.store), folder)
        assert done.code == 0, done.text
        run_forked(("runs", "delete", "1", "--store", command.store), folder)
        (folder / "hits.sqlite").unlink()
    process = forked(command.arguments, folder)
    other = sqlite3.connect(path, isolation_level=None, timeout=60)
    try:
        while not process.has_ended():
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                continue
            trial.counts["locks held"] += 1
            time.sleep(trial.rng.random() * 0.1)
            other.execute("ROLLBACK")
            time.sleep(trial.rng.random() * 0.02)
    finally:
        other.close()
    done = process.wait()
    trial.check(done.code == 0, f"{name} beside another writer: exit code {done.code}: {done.text}")
    with Store(path) as store:
        run = store.runs.get("latest")
        results = [unstamped(result) for result in store.results.queries(run.id)]
    trial.check(run.state == "finished" and results == command.wanted, f"{name} beside another writer: other results")


def damaged_store(trial: Trial) -> None:
    """Change or cut off bytes of the store, or of the write-ahead log that a killed batch left."""
    command, folder = prepared(trial, "query")
    if trial.number % 3 == 0:
        _damaged_log(trial, command, folder)
        return
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
        _ends_well(trial, run_forked(arguments, folder), f"`{' '.join(arguments[:2])}` of {how}")


def _damaged_log(trial: Trial, command: StoreCommand, folder: Path) -> None:
    """Kill a query that stores hits, damage its write-ahead log, and check what is committed."""
    before = command.learned["old"]
    untouched = (folder / "hits.sqlite").read_bytes()
    call = trial.rng.randrange(command.calls // 3, command.calls)
    forked(command.arguments, folder, Fault(call, faults.KILL_BEFORE)).wait()
    log = folder / "hits.sqlite-wal"
    if not log.exists() or not log.stat().st_size:
        trial.counts["no log was left to hurt"] += 1
        return
    data = bytearray(log.read_bytes())
    if trial.rng.random() < 0.5:
        data = data[: trial.rng.randrange(len(data))]
    else:
        data[trial.rng.randrange(len(data))] ^= 1 << trial.rng.randrange(8)
    log.write_bytes(data)
    (folder / "hits.sqlite-shm").unlink(missing_ok=True)  # as after a crash of the machine
    if (folder / "hits.sqlite").read_bytes() != untouched:
        # A checkpoint has begun, which copies the log into the store. SQLite has synchronized the log by then, so no
        # crash leaves it in this state: this is damage like that of the store itself.
        for arguments in READING[:3]:
            _ends_well(trial, run_forked(arguments, folder), f"`{' '.join(arguments[:2])}` of a store with a hurt log")
        trial.counts["hurt logs of a checkpoint"] += 1
        return
    with Store(folder / "hits.sqlite") as store:
        runs = store.runs.all()
        for run in runs:
            results = [unstamped(result) for result in store.results.queries(run.id)]
            trial.check(
                results == command.wanted[: len(results)], f"run {run.id}: committed queries differ after a hurt log"
            )
    trial.check(len(runs) >= len(before), "a run that was there before the log is gone")
    with sqlite3.connect(folder / "hits.sqlite") as connection:
        found = connection.execute("PRAGMA integrity_check").fetchall()
        trial.check(found == [("ok",)], f"integrity_check after a hurt log: {found}")
    connection.close()
    command.must(trial, folder, command.arguments)
    trial.counts["hurt logs"] += 1


def _ends_well(trial: Trial, done: Done, how: str) -> None:
    trial.check(done.code in (0, 1), f"{how}: exit code {done.code}: {done.text[-400:]}")
    trial.check("Traceback" not in done.text, f"{how}: a traceback: {done.text[-700:]}")
    if done.code == 1:
        trial.check(len(done.errors) == 1, f"{how}: {len(done.errors)} lines of error: {done.text[-400:]}")
        trial.counts["ended with one clear line"] += 1
    else:
        trial.counts["ended well"] += 1


# --- PostgreSQL ---


@cache
def server_of(state_dir: Path) -> PostgresServer:
    """Return the server of a part's trials; it is stopped with the part's process."""
    if not POSTGRES:
        raise LeftOut("PostgreSQL's server is not installed")
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        raise LeftOut("the server refuses to run as root, and setpriv is not there")
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="swsearch-pg-", dir="/tmp")), "max_connections=20")
    atexit.register(server.stop)
    return server


@cache
def undisturbed(state_dir: Path) -> tuple[Template, bytes, float]:
    """Return the template, the report of a batch that nothing disturbs, and its seconds."""
    template = Template.make(state_dir)
    folder = state_dir / "undisturbed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    template.copy(("many.fa", "base.db"), folder)
    url = server_of(state_dir).url("undisturbed")
    done = run_forked(("batch", "many.fa", "base.db", "--store", url, *SEARCH), folder)
    assert done.code == 0, done.text
    report = run_forked(("report", "latest", "--store", url, "--format", "tsv"), folder)
    return template, report.out, done.seconds


def killed_server(trial: Trial) -> None:
    """Kill the server while a batch stores its hits, start the server, resume."""
    server = server_of(trial.state_dir)
    template, wanted, seconds = undisturbed(trial.state_dir)
    folder = trial.folder / "work"
    folder.mkdir()
    template.copy(("many.fa", "base.db"), folder)
    url = server.url(f"trial_{trial.number}")
    arguments = ("batch", "many.fa", "base.db", "--store", url, *SEARCH)
    process = forked((*arguments, "--events", "events.jsonl"), folder)
    time.sleep(trial.rng.random() * seconds)
    server.kill()
    done = process.wait()
    server.start()
    how = "batch whose server was killed"
    trial.check(done.code in (0, 1), f"{how}: exit code {done.code}: {done.text[-400:]}")
    trial.check("Traceback" not in done.text, f"{how}: a traceback: {done.text[-700:]}")
    trial.check(done.code == 0 or len(done.errors) == 1, f"{how}: {done.text[-400:]}")
    events = folder / "events.jsonl"
    reported = events.read_text().count('"event": "query"') if events.exists() else 0
    try:
        with Store(url) as store:
            stored = sum(run.n_queries for run in store.runs.all())
    except StoreError:
        stored = 0
    trial.check(stored >= reported, f"{how}: {reported} queries were committed, {stored} are there")
    again = run_forked((*arguments, "--resume", "latest"), folder)
    trial.check(again.code == 0, f"{how}, resumed: {again.text[-400:]}")
    report = run_forked(("report", "latest", "--store", url, "--format", "tsv"), folder)
    trial.check(report.out == wanted, f"{how}, resumed: the report differs")
    trial.counts["servers killed in the middle of a batch"] += done.code != 0
    trial.counts["committed queries found again"] += reported

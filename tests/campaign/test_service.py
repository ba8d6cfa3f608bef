"""kill -9 of the processes of a search service at random moments, under load.

A client submits searches one after the other, each with another length of the list, and waits for them as a script
does. Meanwhile the worker or the web process is killed. The web process is started again, as by systemd; the worker is
started by it. In the end every accepted search is done, once, with the bytes of an undisturbed run.
"""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from swsearch.cli.app import main
from swsearch.service.client import Client
from swsearch.store.rows import LEASED
from swsearch.store.store import Store
from tests.campaign.trials import Trial
from tests.postgres_server import PostgresServer
from tests.service.servers import RunningServer, local_report, worker_pids
from tests.support import DATA

pytestmark = pytest.mark.thorough

KILLS = 5
"""Kills of a trial."""
MAX_TOP = 40
FIELDS = ["qseqid", "rank", "sseqid", "score", "evalue", "cigar"]
# A query fails when it was in the hands of several dead workers. Here it is not the query that ends them.
NEVER = ("--give-up-after", "1000000")


def database_and_expected(state_dir: Path) -> tuple[Path, list[str]]:
    """The database of all trials, and the lines of an undisturbed run with the longest lists."""
    database, report = state_dir / "proteins.db", state_dir / "expected.tsv"
    if not report.exists():
        assert main(["index", str(DATA / "proteins.fasta.gz"), "-o", str(database), "--quiet", "--force"]) == 0
        options = ["--top", str(MAX_TOP), "--format", "tsv", "--fields", " ".join(FIELDS)]
        report.write_bytes(local_report(database, state_dir, *options))
    return database, report.read_text().splitlines(keepends=True)


def shortened_to(lines: list[str], top: int) -> bytes:
    """The report of the lists' first ``top`` subjects: the length of a list changes nothing else."""
    head, *rows = lines
    return "".join([head, *(row for row in rows if int(row.split("\t")[1]) <= top)]).encode()


class Load(threading.Thread):
    """Submits searches until it is told to stop, and remembers what it was answered."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.stopping = threading.Event()
        self.accepted: dict[int, str] = {}
        self.reports: dict[int, bytes] = {}
        self.states: dict[int, str] = {}
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            client = Client(self.url, patience=600)
            queries = (DATA / "queries.fasta").read_text()
            for top in range(MAX_TOP, 1, -2):
                pair = (top, top - 1)  # two at a time, so that one waits behind the other
                for wanted in pair:
                    self.accepted[wanted] = client.submit(queries, "proteins.db", {"top": wanted})["id"]
                for wanted in pair:
                    self.states[wanted] = client.wait(self.accepted[wanted])["state"]
                    self.reports[wanted] = client.report(self.accepted[wanted], "tsv", FIELDS)
                if self.stopping.is_set():
                    return
        except BaseException as error:
            self.problem = error


@pytest.mark.campaign(1, 20)
def test_every_search_of_a_killed_service_ends_once(trial: Trial) -> None:
    judged = kill_five_times(trial, str(trial.folder / "hits.sqlite"), ["main process", "worker", "worker"])
    assert judged >= {MAX_TOP, MAX_TOP - 1}


@pytest.mark.peer("postgresql")
@pytest.mark.campaign(0, 10)
def test_every_search_of_a_killed_service_with_postgresql_ends_once(trial: Trial, postgres: PostgresServer) -> None:
    victims = ["main process", "worker", "PostgreSQL"]
    assert kill_five_times(trial, postgres.url(f"trial_{trial.number}"), victims, postgres) >= {MAX_TOP, MAX_TOP - 1}


def kill_five_times(trial: Trial, target: str, victims: list[str], postgres: PostgresServer | None = None) -> set[int]:
    """Kill a process of the service, or its PostgreSQL, five times while somebody searches; the judged searches."""
    database, lines = database_and_expected(trial.state_dir)
    server = RunningServer(trial.folder, [database], *NEVER, store=target)
    port = int(server.url.rpartition(":")[2])
    load = Load(server.url)
    try:
        load.start()
        for _ in range(KILLS):
            wait_for_a_moment(trial, target)
            victim = trial.rng.choice(victims)
            if victim == "main process":
                server.kill()
                server = RunningServer(trial.folder, [database], *NEVER, port=port, store=target)
            elif victim == "worker":
                for pid in worker_pids(server):
                    os.kill(pid, signal.SIGKILL)
            else:
                assert postgres is not None
                postgres.kill()
                postgres.start()
        load.stopping.set()
        load.join()
    finally:
        code = server.stop()
    assert code == 0, server.log[-3:]
    assert load.problem is None, server.events("error")[-3:]
    judge(load, lines, target)
    return set(load.reports)


def wait_for_a_moment(trial: Trial, target: str) -> None:
    """Wait for a random time; of three times, twice until a worker has queries in hand."""
    with Store(target) as store:
        if trial.rng.random() < 2 / 3:
            ends = time.monotonic() + 5
            while time.monotonic() < ends and not _n_leased(store):
                time.sleep(0.005)
            time.sleep(trial.rng.random() * 0.3)
        else:
            time.sleep(trial.rng.random() * 1.5)


def _n_leased(store: Store) -> int:
    with store.reading() as rows:
        return int(rows.execute("SELECT COUNT(*) FROM search_queries WHERE state = ?", LEASED).fetchone()[0])


def judge(load: Load, lines: list[str], target: str) -> None:
    """Check every accepted search, by what the client was given and by what is in the store."""
    for top, key in load.accepted.items():
        assert load.states.get(top) == "done", f"search {key} is {load.states.get(top)}"
        assert load.reports.get(top) == shortened_to(lines, top), f"search {key}: its report has other bytes"
    with Store(target) as store:
        found = store.searches.of_owner("local", 1000)
        with store.reading() as rows:
            (n_left,) = rows.execute("SELECT COUNT(*) FROM search_queries").fetchone()
        runs = store.runs.all()
    assert sorted(search.key for search in found) == sorted(load.accepted.values())
    assert {(search.state, search.n_queries, search.n_done, search.n_failed) for search in found} == {("done", 7, 7, 0)}
    assert n_left == 0, f"{n_left} queries were left in the queue"
    assert sorted(run.id for run in runs) == sorted(search.run_id or 0 for search in found)
    assert all((run.state, run.n_missing) == ("finished", 0) for run in runs)

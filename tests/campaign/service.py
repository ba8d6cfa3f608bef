"""kill -9 of the processes of a search service at random moments, under load.

A client submits searches one after the other, each with another length of the list, and waits for them as a script
does. Meanwhile the worker or the web process is killed; a web process is started again, as by systemd, and the worker
is started by the server. In the end every accepted search is done, once, with the bytes of an undisturbed run.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from swsearch.cli.app import main
from swsearch.store.repository import HitStore
from tests.campaign.parts import Budget, Outcome
from tests.campaign.trials import Trial, run_trials
from tests.service.servers import RunningServer, local_report, worker_pids

DATA = Path(__file__).parents[2] / "data"
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
        options = ["--top", str(MAX_TOP), "--store", "none", "--quiet", "--format", "tsv", "--fields", " ".join(FIELDS)]
        report.write_bytes(local_report(["query", str(DATA / "queries.fasta"), str(database), *options], state_dir))
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
        from swsearch.service.client import Client

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


def killed_processes(trial: Trial) -> None:
    """Kill the web process or the worker five times while somebody searches."""
    database, lines = database_and_expected(trial.state_dir)
    server = RunningServer(trial.folder, [database], *NEVER)
    port = int(server.url.rpartition(":")[2])
    load = Load(server.url)
    try:
        load.start()
        for _ in range(KILLS):
            time.sleep(trial.rng.random() * 1.5)
            with closing(sqlite3.connect(server.store)) as store:
                leased = store.execute("SELECT count(*) FROM search_queries WHERE state = 'leased'").fetchone()
            trial.counts["kills with queries in hand"] += leased != (0,)
            if trial.rng.random() < 0.5:
                server.kill()
                trial.counts["kills of the web process"] += 1
                server = RunningServer(trial.folder, [database], *NEVER, port=port)
            else:
                for pid in worker_pids(server):
                    os.kill(pid, signal.SIGKILL)
                    trial.counts["kills of a worker"] += 1
        load.stopping.set()
        load.join()
    finally:
        code = server.stop()
    trial.check(code == 0, f"the server ended with {code}: {server.log[-3:]}")
    trial.check(load.problem is None, f"the client: {load.problem!r}")
    judge(trial, load, lines, server.store)
    trial.counts["searches"] += len(load.accepted)


def judge(trial: Trial, load: Load, lines: list[str], path: Path) -> None:
    """Check every accepted search, by what the client was given and by what is in the store."""
    for top, key in load.accepted.items():
        trial.check(load.states.get(top) == "done", f"search {key} is {load.states.get(top)}")
        trial.check(load.reports.get(top) == shortened_to(lines, top), f"search {key}: its report has other bytes")
    with closing(sqlite3.connect(path)) as store:
        ended = store.execute("SELECT key, state, n_queries, n_done, n_failed, run_id FROM searches").fetchall()
        left = store.execute("SELECT count(*) FROM search_queries").fetchone()
        whole = store.execute("PRAGMA integrity_check").fetchone()
    trial.check(sorted(row[0] for row in ended) == sorted(load.accepted.values()), "a search was stored twice, or lost")
    trial.check(all(row[1:5] == ("done", 7, 7, 0) for row in ended), f"searches did not end as they should: {ended}")
    trial.check(left == (0,), f"{left} queries were left in the queue")
    trial.check(whole == ("ok",), f"the store is damaged: {whole}")
    with HitStore(path) as hits:
        runs = hits.runs()
        trial.check(sorted(run.id for run in runs) == sorted(row[5] for row in ended), "a search has two runs, or none")
        trial.check(all((run.state, run.n_missing) == ("finished", 0) for run in runs), "a run is not complete")


def run_killed(budget: Budget, seed: int, state_dir: Path) -> Outcome:
    """The part."""
    return run_trials("kill_service", killed_processes, budget, seed, state_dir)

"""Workers that are processes of this machine: the bytes of one process, and what happens when one ends or fails.

Expected values: the results of a search in this process by the CPU engine. GPUs are emulated, each in a process of its
own; with ``-m gpu``, they are those of this machine if it has two.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swsearch.cli import command_run
from swsearch.cli.app import main
from swsearch.cluster import dispatcher, open_cluster_searcher, processes
from swsearch.cluster.cluster_searcher import ClusterSearcher
from swsearch.cluster.processes import WorkerProcesses
from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.engine.cuda.runtime import presence
from swsearch.engine.cuda.runtime.presence import LIBRARY
from swsearch.engine.registry import Machine
from swsearch.errors import EngineError
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import open_searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from tests.cluster.clusters import PATCHED, SMALL_PARTS, essence, searched
from tests.patience import wait_until
from tests.support import random_codes

OPTIONS = SearchOptions(evalue=1000.0, top=5)
N_QUERIES = 18
EMULATED = """
import sys
sys.path.insert(0, {root!r})
from swsearch.engine import registry
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from tests.engine.cuda.emulation.emulated_device import opener
registry.open_engine = lambda *given, **_: (CudaDevices(given[0].devices, opener()), "emulated")
"""
"""The beginning of a worker with an emulated GPU."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 60 proteins, their database, and queries that are parts of some."""
    folder = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(11)
    letters = [PROTEIN.decode(random_codes(rng, int(length))) for length in rng.integers(30, 90, 60)]
    (folder / "subjects.fasta").write_text("".join(f">s{n}\n{text}\n" for n, text in enumerate(letters)))
    (folder / "queries.fasta").write_text("".join(f">q{n}\n{letters[n][:28]}\n" for n in range(N_QUERIES)))
    build_database(folder / "subjects.fasta", folder / "db")
    return folder


@pytest.fixture(scope="module")
def queries(small: Path) -> list[SequenceRecord]:
    return list(read_sequences(small / "queries.fasta", PROTEIN))


@pytest.fixture(scope="module")
def expected(small: Path, queries: list[SequenceRecord]) -> list[object]:
    with open_searcher(small / "db", OPTIONS, engine="cpu", threads=1) as searcher:
        return [essence(result) for result in searcher.search(queries)]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part has a query or two."""
    monkeypatch.setattr(dispatcher, "TASK_SECONDS", 1e-9)
    monkeypatch.setattr(dispatcher, "LEAST_BACKGROUND_SECONDS", 1e-9)


def begin_with(monkeypatch: pytest.MonkeyPatch, *beginnings: str) -> None:
    """Let workers begin with some program; ``device`` is in it the number of the GPU."""
    program = "".join(beginnings).replace("{", "{{").replace("}", "}}")
    monkeypatch.setattr(processes, "_WORK", f"device = {{device}}\n{program}\n{processes._WORK}")
    monkeypatch.setattr(processes, "_WARM_UP", "")


def emulated() -> str:
    return EMULATED.format(root=str(Path(__file__).parents[2]))


@pytest.fixture(params=["emulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def two_gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The beginning of workers that have two GPUs, of which the program knows."""
    if request.param == "gpu":
        if presence.ask_driver(LIBRARY).n_devices < 2:
            pytest.skip("there are no two GPUs")
        return ""
    there = presence.GpuProbe(True, True, None, lambda: presence.DriverFacts(2))
    monkeypatch.setattr(presence, "look_for_gpus", lambda: there)
    return emulated()


def test_gpus_with_a_process_each_give_the_bytes_of_one_process(small, tmp_path, monkeypatch, capfd, two_gpus):
    """The report and the run of a batch, for which GPUs are used apart from 16 queries on."""
    begin_with(monkeypatch, two_gpus)
    monkeypatch.setattr(command_run, "SEPARATE_CELLS", 0)
    reports = []
    for engine in (["--engine", "cpu"], ["--engine", "cuda", "--devices", "0,1"]):
        store, report = tmp_path / f"{engine[1]}.sqlite", tmp_path / engine[1]
        line = ["batch", str(small / "queries.fasta"), str(small / "db"), "--evalue", "1000", *engine]
        assert main([*line, "--store", str(store), "--format", "jsonl", "--out", str(report)]) == 0
        reports.append(report.read_bytes())
    assert reports[0] == reports[1]
    assert "2 GPUs, a process each: 2 workers with " in capfd.readouterr().err
    assert main(["runs", "show", "latest", "--store", str(store)]) == 0
    assert "cuda" in capfd.readouterr().out


def test_few_queries_stay_in_one_process(small, tmp_path, monkeypatch):
    """Eight queries for each GPU are needed; plans and plots need this process."""
    few = tmp_path / "few.fasta"
    few.write_text("".join(f">q{number}\nMKVLA\n" for number in range(15)))
    started: list[int] = []
    monkeypatch.setattr(processes, "WorkerProcesses", lambda *_: started.append(1))
    monkeypatch.setattr(command_run, "SEPARATE_CELLS", 0)
    there = presence.GpuProbe(True, True, None, lambda: presence.DriverFacts(0, "no driver"))
    monkeypatch.setattr(presence, "look_for_gpus", lambda: there)
    for arguments in ([str(few)], [str(small / "queries.fasta"), "--explain"]):
        line = ["batch", *arguments[:1], str(small / "db"), "--store", str(tmp_path / "s"), "--devices", "0,1"]
        main([*line, *arguments[1:]])
    assert not started


@pytest.mark.thorough
def test_a_gpu_that_fails_leaves_its_work_to_the_other(small, queries, expected, monkeypatch, small_parts, two_gpus):
    """The second GPU fails in its second part; nothing of the search is lost."""
    failing = """
from swsearch.engine.cuda.search.batch_run import BatchRun
from swsearch.errors import EngineError
finished, plain_finish = [], BatchRun.finish
def finish(self):
    finished.append(1)
    if device == 1 and len(finished) > 2:
        raise EngineError("the GPU has fallen off the bus")
    return plain_finish(self)
BatchRun.finish = finish
"""
    begin_with(monkeypatch, two_gpus, failing)
    said: list[str] = []
    with (
        open_database(small / "db") as database,
        WorkerProcesses(2, 1, [0, 1]) as workers,
    ):
        searcher = ClusterSearcher(database, OPTIONS, workers, Machine("cuda"), slices="no", notify=said.append)
        assert list(searched(searcher, queries)) == expected
    assert said == ["the process of GPU 1: the GPU has fallen off the bus; it gets no more work"]


@pytest.mark.thorough
def test_if_all_gpus_fail_the_search_fails_with_their_error(small, queries, monkeypatch, two_gpus):
    action = "raise EngineError('out of order')"
    begin_with(monkeypatch, two_gpus, PATCHED.format(header="q17", action=action))
    with open_database(small / "db") as database, WorkerProcesses(2, 1, [0, 1]) as workers:
        searcher = ClusterSearcher(database, OPTIONS, workers, Machine("cuda"), slices="no")
        with pytest.raises(EngineError, match=r"the process of GPU [01]: out of order"):
            list(searched(searcher, queries))


def test_queries_are_observed_in_their_order_while_workers_search(small, queries, expected):
    """As by a check of the statistics, of which a command warns once; the last results are then not returned yet."""
    observed: list[str] = []
    answered: list[int] = []
    results: list[object] = []
    with open_database(small / "db") as database, WorkerProcesses(2, 1) as workers:
        searcher = ClusterSearcher(database, OPTIONS, workers, Machine("cpu"), own=Machine("cpu"), slices="no")
        searcher.when_answered = lambda: answered.append(len(results))
        searcher.observe_batch = lambda batch: observed.extend(query.header for query, _ in batch)
        results.extend(searched(searcher, queries))
    assert results == expected
    assert observed == [query.header for query in queries]
    assert answered
    assert answered[0] < len(queries)


def test_a_killed_worker_is_replaced_and_nothing_is_lost(small, tmp_path, queries, expected, monkeypatch, small_parts):
    """The first worker that gets the seventh query ends by SIGKILL."""
    flag = tmp_path / "killed"
    kill = f"Path({str(flag)!r}).exists() or (Path({str(flag)!r}).touch(), os.kill(os.getpid(), signal.SIGKILL))"
    begin_with(monkeypatch, PATCHED.format(header="q6", action=kill))
    said: list[str] = []
    with open_cluster_searcher(
        small / "db", OPTIONS, "local:2", machine=Machine("cpu"), notify=said.append
    ) as searcher:
        assert list(searched(searcher, queries)) == expected
    assert flag.exists()
    assert [line.split(" ", 2)[2] for line in said] == ["has left; other workers take its work"]


@pytest.mark.thorough
def test_a_killed_process_of_a_gpu_is_replaced_and_nothing_is_lost(
    small, tmp_path, queries, expected, monkeypatch, small_parts, two_gpus
):
    """The first process that gets the seventh query ends by SIGKILL while the other one goes on."""
    flag = tmp_path / "killed"
    kill = f"Path({str(flag)!r}).exists() or (Path({str(flag)!r}).touch(), os.kill(os.getpid(), signal.SIGKILL))"
    begin_with(monkeypatch, two_gpus, PATCHED.format(header="q6", action=kill))
    said: list[str] = []
    with open_database(small / "db") as database, WorkerProcesses(2, 1, [0, 1]) as workers:
        searcher = ClusterSearcher(database, OPTIONS, workers, Machine("cuda"), slices="no", notify=said.append)
        assert list(searched(searcher, queries)) == expected
    assert flag.exists()
    (line,) = said
    assert re.fullmatch("the process of GPU [01] has left; other workers take its work", line)


@pytest.mark.thorough
def test_a_query_that_ends_worker_after_worker_ends_the_search(small, queries, monkeypatch, small_parts):
    kill = "(time.sleep(0.5), os.kill(os.getpid(), signal.SIGKILL))"  # the answer before it is on its way
    begin_with(monkeypatch, PATCHED.format(header="q6", action=kill))
    with (
        open_cluster_searcher(small / "db", OPTIONS, "local:2", machine=Machine("cpu")) as searcher,
        pytest.raises(EngineError, match="3 workers ended while they searched query q6"),
    ):
        list(searched(searcher, queries))


@pytest.mark.thorough
def test_a_worker_that_cannot_start_is_an_error(small, monkeypatch):
    begin_with(monkeypatch, "raise SystemExit(7)")
    with (
        pytest.raises(EngineError, match=r"worker [12] could not start, its exit code is 7"),
        open_cluster_searcher(small / "db", OPTIONS, "local:2", machine=Machine("cpu")),
    ):
        pass


@pytest.mark.thorough
def test_no_worker_outlives_its_driver(small, tmp_path):
    """A batch is ended in the middle by SIGKILL."""
    many = tmp_path / "many.fasta"
    many.write_text((small / "queries.fasta").read_text().replace(">q", ">p") * 400)
    events = tmp_path / "events"
    line = ["batch", str(many), str(small / "db"), "--store", str(tmp_path / "s"), "--engine", "cpu", "--quiet"]
    driver = subprocess.Popen(
        [sys.executable, "-c", SMALL_PARTS, *line, "--cluster", "local:2", "--events", str(events)],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: events.exists() and b'"query"' in events.read_bytes(), "the first result")
        children = Path(f"/proc/{driver.pid}/task/{driver.pid}/children").read_text().split()
        assert len(children) == 2
    finally:
        driver.kill()
        driver.wait()
    wait_until(lambda: not any(is_running(int(child)) for child in children), "the ends of the workers")


def is_running(process: int) -> bool:
    """Whether a process is there and no zombie, which nobody may have waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

"""A complete search on emulated devices: the command line, the pipeline of scoring and aligning, and lost devices.

The expected values are the CPU engine's, whose scores other tests compare with other programs.
"""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from swsearch.cli.app import main
from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.runtime.device import DeviceLost
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.protocol import BackgroundEngine, score_requests
from swsearch.engine.registry import Machine
from swsearch.errors import EngineError
from swsearch.hits.hit import Hit
from swsearch.query.profile import sequence_profile
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher, open_searcher
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from swsearch.threads import beat
from swsearch.typing import Codes
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice, OneAtATime, opener
from tests.support import random_codes

OpenDevice = Callable[[int], Any]

pytestmark = pytest.mark.peer("emulated GPU")


def write_fasta(path: Path, sequences: list[Codes], alphabet: Any) -> None:
    path.write_text("".join(f">s{n}\n{alphabet.decode(codes)}\n" for n, codes in enumerate(sequences)))


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with queries of 40 to 25 residues, the longest first, and a database that contains segments of them."""
    rng = np.random.default_rng(21)
    queries = [random_codes(rng, length) for length in (40, 33, 29, 25)]
    subjects = [random_codes(rng, int(length)) for length in rng.integers(5, 60, 30)]
    subjects += [np.concatenate([random_codes(rng, 5), query[part:]]) for query in queries for part in (0, 5, 8)]
    write_fasta(tmp_path / "queries.fasta", queries, PROTEIN)
    write_fasta(tmp_path / "subjects.fasta", subjects, PROTEIN)
    monkeypatch.chdir(tmp_path)
    assert main(["index", "subjects.fasta", "-o", "subjects.db", "--quiet", "--alphabet", "protein"]) == 0
    return tmp_path


def use(monkeypatch: pytest.MonkeyPatch, open_device: OpenDevice) -> None:
    """Make the engine named cuda run on emulated devices."""
    from swsearch.engine import registry as engines

    really_open = engines.open_named

    def opened(name: str, threads: int | None, devices: Any, gpus: Any, *, bound: bool) -> Any:
        return (
            (CudaDevices(devices, open_device, options=PlanOptions(band_rows=None if bound else 0)), "emulated")
            if name == "cuda"
            else really_open(name, threads, devices, gpus, bound=bound)
        )

    monkeypatch.setattr(engines, "open_named", opened)


def searched(engine: str, *arguments: str) -> int:
    command = ["query", "queries.fasta", "subjects.db", "--engine", engine, "--alphabet", "protein", "--store", "none"]
    return main([*command, "--format", "json", "--out", f"{engine}.json", "--quiet", *arguments])


@pytest.mark.parametrize(
    "choice",
    [
        ["--devices", "0"],
        ["--devices", "0,1"],
        ["--evalue", "inf", "--top", "3"],
        ["--evalue", "inf", "--top", "3", "--ties", "all", "--devices", "0,1"],
        ["--gap-open", "4", "--gap-extend", "1", "--top", "4"],  # no statistics: the linear phase
        ["--sensitive", "--evalue", "1e6", "--devices", "0,1"],
    ],
    ids=" ".join,
)
def test_hits_are_the_cpu_engines_to_the_byte(case, monkeypatch, choice):
    """Two queries per call, in two partitions: the engine ends short queries first, and batches follow one another."""
    monkeypatch.setattr("swsearch.engine.cuda.search.engine.CudaEngine.profiles_per_call", 2)
    use(monkeypatch, opener())
    variant = [*choice, "--partition-residues", "1000"]
    assert searched("cuda", *variant) == 0
    if "--devices" in variant:  # an option of the CUDA engine only
        at = variant.index("--devices")
        del variant[at : at + 2]
    assert searched("cpu", *variant) == 0
    assert Path("cuda.json").read_bytes() == Path("cpu.json").read_bytes()
    assert len(json.loads(Path("cuda.json").read_text())["queries"]) == 4


@pytest.mark.parametrize("devices", ["0", "0,1"])
def test_slices_are_searched_as_the_whole_database(case, monkeypatch, devices):
    """The CPU engine searches the database without slices, and the emulated devices the same subjects in three."""
    assert searched("cpu") == 0
    assert main(["db", "compact", "subjects.db", "--slices", "3", "--quiet"]) == 0
    monkeypatch.setattr("swsearch.engine.cuda.search.engine.CudaEngine.profiles_per_call", 2)
    use(monkeypatch, opener())
    assert searched("cuda", "--devices", devices) == 0
    reports = [json.loads(Path(f"{engine}.json").read_text()) for engine in ("cuda", "cpu")]
    generations = [report["database"].pop("generation") for report in reports]
    assert generations == [2, 1]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("devices", ["0", "0,1"])
def test_all_pairs_are_those_of_the_cpu_engine(case, monkeypatch, devices):
    """Two queries per call, each call with fewer subjects than the one before it."""
    monkeypatch.setattr("swsearch.engine.cuda.search.engine.CudaEngine.profiles_per_call", 2)
    use(monkeypatch, opener())
    for engine, machine in (("cuda", ["--devices", devices]), ("cpu", [])):
        asked = ["allpairs", "subjects.db", "--engine", engine, *machine, "--store", "none", "--format", "json"]
        assert main([*asked, "--evalue", "1", "--quiet", "--out", f"{engine}.json"]) == 0
    assert Path("cuda.json").read_bytes() == Path("cpu.json").read_bytes()
    assert sum(len(query["hits"]) for query in json.loads(Path("cpu.json").read_text())["queries"]) > 5


@pytest.mark.parametrize("evalue", [1e-9, 30.0], ids=["too few pass", "enough pass"])
@pytest.mark.parametrize("devices", ["0", "0,1"])
def test_the_best_without_a_cut_are_found_with_a_provisional_one(case, monkeypatch, evalue, devices):
    """Two queries per call; a query for which too few subjects pass is scored again while the next call is scored."""
    without_cut = ["--evalue", "inf", "--top", "5"]
    assert searched("cpu", *without_cut) == 0  # a database of this size has no provisional cut
    monkeypatch.setattr("swsearch.engine.cuda.search.engine.CudaEngine.profiles_per_call", 2)
    monkeypatch.setattr("swsearch.search.threshold.SMALLEST_SHARE", 0)
    monkeypatch.setattr("swsearch.search.threshold.expected_hits", lambda _: evalue)
    use(monkeypatch, opener())
    assert searched("cuda", *without_cut, "--devices", devices) == 0
    assert Path("cuda.json").read_bytes() == Path("cpu.json").read_bytes()


def test_a_store_that_cannot_be_opened_ends_the_search(case, monkeypatch, capsys):
    """The store is opened when the GPU is already at work."""
    closed = []

    class Observed(OneAtATime):
        def close(self) -> None:
            closed.append(self)
            super().close()

    use(monkeypatch, opener(Observed))
    assert searched("cuda", "--store", "no/such/folder/hits.sqlite") == 1
    assert "no/such/folder" in capsys.readouterr().err
    assert len(closed) == 1
    assert not Path("cuda.json").exists()


def test_long_subjects_give_the_cpu_engines_hits(tmp_path, monkeypatch):
    """Two proteins that contain the queries are scored in windows, for a short query and a long one."""
    rng = np.random.default_rng(23)
    queries = [random_codes(rng, length) for length in (420, 40)]
    subjects = [random_codes(rng, int(length)) for length in rng.integers(30, 300, 12)]
    subjects += [
        np.concatenate([random_codes(rng, before), *queries, random_codes(rng, 2_500)]) for before in (1_800, 3)
    ]
    subjects.append(np.concatenate([random_codes(rng, 8_000), queries[1]]))
    write_fasta(tmp_path / "queries.fasta", queries, PROTEIN)
    write_fasta(tmp_path / "subjects.fasta", subjects, PROTEIN)
    monkeypatch.chdir(tmp_path)
    assert main(["index", "subjects.fasta", "-o", "subjects.db", "--quiet", "--alphabet", "protein"]) == 0
    launched = []

    class Observed(OneAtATime):
        def launch(self, spec: Any, *rest: Any) -> None:
            launched.append(spec.entry)
            super().launch(spec, *rest)

    use(monkeypatch, opener(Observed, multiprocessors=8))
    for engine in ("cuda", "cpu"):
        assert searched(engine, "--evalue", "inf", "--top", "3") == 0
    assert Path("cuda.json").read_bytes() == Path("cpu.json").read_bytes()
    assert {"intra_task", "inter_task"} <= set(launched)


def test_both_strands_of_dna_give_the_cpu_engines_hits(tmp_path, monkeypatch):
    rng = np.random.default_rng(22)
    queries = [random_codes(rng, length, 4) for length in (40, 30)]
    subjects = [random_codes(rng, int(length), 4) for length in rng.integers(10, 80, 12)]
    subjects += [
        np.concatenate([random_codes(rng, 9, 4), part]) for q in queries for part in (q, reverse_complement(q))
    ]
    write_fasta(tmp_path / "queries.fasta", queries, DNA)
    write_fasta(tmp_path / "subjects.fasta", subjects, DNA)
    monkeypatch.chdir(tmp_path)
    assert main(["index", "subjects.fasta", "-o", "subjects.db", "--quiet", "--alphabet", "dna"]) == 0
    use(monkeypatch, opener())
    for engine in ("cuda", "cpu"):
        command = ["query", "queries.fasta", "subjects.db", "--engine", engine, "--store", "none", "--quiet"]
        assert main([*command, "--format", "json", "--out", f"{engine}.json"]) == 0
    assert Path("cuda.json").read_bytes() == Path("cpu.json").read_bytes()
    assert {hit["strand"] for q in json.loads(Path("cpu.json").read_text())["queries"] for hit in q["hits"]} == {
        "plus",
        "minus",
    }


class Counting(OneAtATime):
    """Count the launches of all devices of the class."""

    entries: ClassVar[list[str]] = []

    def launch(self, spec: Any, *rest: Any) -> None:
        Counting.entries.append(spec.entry)
        super().launch(spec, *rest)


@pytest.mark.parametrize(
    "choice",
    [
        ["--devices", "0,1"],
        ["--translate", "subject", "--evalue", "1e6"],
        ["--max-hsps", "2"],
    ],
    ids=" ".join,
)
def test_ends_from_the_engine_change_no_byte(case, monkeypatch, choice):
    """Ends are requested for every hit or for none; for several alignments per hit, for none.

    Expected: the CPU engine's report, whose alignments are made without ends.
    """
    if "--translate" in choice:
        bases = np.random.default_rng(23).integers(0, 4, (6, 240)).astype(np.uint8)
        write_fasta(Path("subjects.fasta"), list(bases), DNA)
        assert main(["index", "subjects.fasta", "-o", "subjects.db", "--quiet", "--alphabet", "dna", "--force"]) == 0
    monkeypatch.setattr("swsearch.engine.cuda.search.engine.CudaEngine.profiles_per_call", 2)
    use(monkeypatch, opener(Counting))
    assert searched("cpu", *(word for word in choice if word not in ("--devices", "0,1"))) == 0
    for spared in (2**60, -(2**60)):
        monkeypatch.setattr("swsearch.search.alignments.SPARED_CELLS", spared)
        Counting.entries.clear()
        assert searched("cuda", *choice) == 0
        assert ("end_positions" in Counting.entries) is (spared < 0 and "--max-hsps" not in choice)
        assert Path("cuda.json").read_bytes() == Path("cpu.json").read_bytes()
    assert all(query["hits"] for query in json.loads(Path("cpu.json").read_text())["queries"])


def searched_with_ends(options: PlanOptions | None = None) -> tuple[list[list[int]], list[tuple[Hit, ...]]]:
    """The lengths of the subjects in each request for ends, and the hits of the query on either engine: CUDA, CPU."""
    asked: list[list[int]] = []

    class Noting(CudaDevices):
        def ends(self, profile: Any, subjects: Any, scores: Any) -> Any:
            asked.append(subjects.lengths.tolist())
            return super().ends(profile, subjects, scores)

    found = []
    with Noting([0], opener(), options=options) as engine, CpuEngine(1) as cpu:
        for each in (engine, cpu):
            searcher = Searcher(open_database("subjects.db"), each, SearchOptions(max_hsps=1))
            (result,) = searcher.search(list(read_sequences("queries.fasta", DNA)))
            found.append(result.hits)
    return asked, found


def test_a_subject_far_longer_than_the_query_is_asked_for_by_itself(tmp_path, monkeypatch):
    """The threshold lies between the cells that the long and the short subjects save; both strands. Source: the CPU.

    The engine notes the columns of the window with the score only of subjects that are cut.
    """
    rng = np.random.default_rng(24)
    query, long = random_codes(rng, 40, 4), random_codes(rng, 9_000, 4)
    long[4_000:4_040] = reverse_complement(query)
    subjects = [long, *(np.concatenate([random_codes(rng, 30, 4), query[:n]]) for n in (40, 30, 25))]
    write_fasta(tmp_path / "queries.fasta", [query], DNA)
    write_fasta(tmp_path / "subjects.fasta", subjects, DNA)
    monkeypatch.chdir(tmp_path)
    assert main(["index", "subjects.fasta", "-o", "subjects.db", "--quiet", "--alphabet", "dna"]) == 0
    monkeypatch.setattr("swsearch.search.alignments.SPARED_CELLS", 100_000)
    asked, found = searched_with_ends()
    assert asked == [[2_048]]  # of the window that has it
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_the_alignments_of_a_genome_are_looked_for_in_the_windows_that_have_them(tmp_path, monkeypatch):
    """Each contig has the query twice; the first of equal alignments is reported. Source: the CPU."""
    rng = np.random.default_rng(25)
    query = random_codes(rng, 40, 4)
    contigs = [random_codes(rng, length, 4) for length in (9_000, 20_000, 30_000)]
    for contig in contigs:
        for place in rng.integers(0, len(contig) - 40, 2).tolist():
            contig[place : place + 40] = query if place % 2 else reverse_complement(query)
    write_fasta(tmp_path / "queries.fasta", [query], DNA)
    write_fasta(tmp_path / "subjects.fasta", contigs, DNA)
    monkeypatch.chdir(tmp_path)
    assert main(["index", "subjects.fasta", "-o", "subjects.db", "--quiet", "--alphabet", "dna"]) == 0
    monkeypatch.setattr("swsearch.search.alignments.SPARED_CELLS", 100_000)
    asked, found = searched_with_ends(PlanOptions(gathered_residues=0, gather_picoseconds=0))
    assert found[0] == found[1]
    lengths = [length for request in asked for length in request]
    assert len(found[0]) == len(lengths) == 3
    assert max(lengths) < 2_000


def test_ends_are_answered_between_two_batches_and_failures_raised_to_the_caller(case):
    """A request that arrives while the first of two pairs of queries is scored is answered before the second pair.

    Expected: the order of the recorded launches, and the answer of an idle engine.
    """
    Counting.entries.clear()
    answers: list[Future[Any]] = []

    class Asked(Counting):
        def launch(self, spec: Any, *rest: Any) -> None:
            if spec.entry == "inter_task" and not answers:
                answers.append(asker.submit(engine.ends, profiles[0], partition, scores))
                while engine._gpus[0]._other.empty():
                    time.sleep(0.001)
            super().launch(spec, *rest)

    with ThreadPoolExecutor(1) as asker, CudaDevices([0], opener(Asked)) as engine:
        searcher, queries = open_case(engine)
        profiles = [sequence_profile(query.codes, searcher.scheme) for query in queries]
        (partition,) = searcher.database.partitions()
        with CpuEngine(1) as cpu:
            scores = cpu.score(score_requests(profiles[:1]), partition)[0].score
        assert len(engine.score(score_requests(profiles), partition)) == 4
        ranges = [index for index, entry in enumerate(Counting.entries) if entry == "inter_task"]
        assert ranges[0] < Counting.entries.index("end_positions") < ranges[-1]
        idle, busy = engine.ends(profiles[0], partition, scores), answers[0].result()
        assert idle is not None
        assert (idle.query_end.tolist(), idle.subject_end.tolist()) == (
            busy.query_end.tolist(),
            busy.subject_end.tolist(),
        )
        with pytest.raises(EngineError, match="is given as"):
            engine.ends(profiles[0], partition, scores + np.int32(1))
    with pytest.raises(EngineError, match="closed"):
        engine.ends(profiles[0], partition, scores)


def open_case(engine: Any) -> tuple[Searcher, list[SequenceRecord]]:
    database = open_database("subjects.db")
    return Searcher(database, engine, SearchOptions()), list(read_sequences("queries.fasta", PROTEIN))


def test_the_next_batch_is_begun_before_this_one_is_taken(case, monkeypatch):
    """Source: the recorded order of the engine's calls and of the results."""
    events: list[str] = []

    class Observed(CudaDevices):
        def begin(self, requests: Any, *rest: Any) -> Any:
            events.append(f"begin {[request.profile.length for request in requests]}")
            return super().begin(requests, *rest)

    monkeypatch.setattr("swsearch.engine.cuda.search.engine.CudaEngine.profiles_per_call", 2)
    with Observed([0], opener()) as engine:
        assert isinstance(engine, BackgroundEngine)
        searcher, queries = open_case(engine)
        for result in searcher.search(queries):
            events.append(f"result {result.length}")
            assert result.stats.score_seconds > 0
    assert events == ["begin [40, 33]", "begin [29, 25]", "result 40", "result 33", "result 29", "result 25"]


def test_results_of_several_threads_are_those_of_one(case, monkeypatch):
    """The second query is the last to be ranked; expected values: hits and order of one thread."""
    ranking: set[str] = set()
    ranked = Searcher._result

    def delayed(searcher: Searcher, prepared: Any, *scored: Any) -> Any:
        ranking.add(threading.current_thread().name)
        if prepared.number == 1:
            time.sleep(0.2)
        return ranked(searcher, prepared, *scored)

    monkeypatch.setattr(Searcher, "_result", delayed)
    found = {}
    for n_threads in (1, 2):
        ranking.clear()
        with CudaDevices([0], opener()) as engine, open_database("subjects.db") as database:
            queries = list(read_sequences("queries.fasta", PROTEIN))
            searcher = Searcher(database, engine, SearchOptions(), machine=Machine("cuda", n_threads))
            found[n_threads] = [(result.number, result.hits) for result in searcher.search(queries)]
        assert (ranking == {threading.current_thread().name}) is (n_threads == 1)
    assert found[2] == found[1]
    assert [number for number, _ in found[2]] == [0, 1, 2, 3]
    assert all(hits for _, hits in found[2])


def test_a_search_given_up_ends_what_its_threads_rank(case, monkeypatch):
    """The ranking of the second query, which never ends by itself, ends at its next beat."""
    ranked = Searcher._result

    def endless(searcher: Searcher, prepared: Any, *scored: Any) -> Any:
        while prepared.number == 1:
            beat()
        return ranked(searcher, prepared, *scored)

    monkeypatch.setattr(Searcher, "_result", endless)
    with CudaDevices([0], opener()) as engine, open_database("subjects.db") as database:
        searcher = Searcher(database, engine, SearchOptions(), machine=Machine("cuda", 2))
        results = searcher.search(list(read_sequences("queries.fasta", PROTEIN)))
        assert next(results).number == 0
        results.close()


def test_time_counts_from_when_the_engine_began(case):
    """Time does not count from the request for the first result, because a command opens its store in between."""
    with CudaDevices([0], opener()) as engine:
        searcher, queries = open_case(engine)
        results = searcher.search(queries)
        start = time.perf_counter()
        engine._gpus[0].thread.submit(int).result()  # all subjects are scored
        seconds = time.perf_counter() - start
        stats = [result.stats for result in results]
    assert stats[-1].score_seconds / stats[-1].cells * sum(each.cells for each in stats) >= seconds


def test_a_search_given_up_leaves_the_engine_idle_and_usable(case, monkeypatch):
    """The consumer abandons the search before any result or after one, or Ctrl-C interrupts the wait for scores."""
    monkeypatch.setattr("swsearch.engine.cuda.search.engine.CudaEngine.profiles_per_call", 2)

    def interrupt(cells: int) -> None:
        raise KeyboardInterrupt

    with CudaDevices([0], opener()) as engine:
        searcher, queries = open_case(engine)
        wanted = [result.hits for result in searcher.search(queries)]
        searcher.search(queries).close()
        results = searcher.search(queries)
        assert next(results).hits == wanted[0]
        results.close()
        with pytest.raises(KeyboardInterrupt):
            list(searcher.search(queries, interrupt))
        assert [result.hits for result in searcher.search(queries)] == wanted


class Failing(OneAtATime):
    """Fail permanently at a given launch, counted over all devices of the class."""

    launches_left = 0

    def launch(self, *arguments: Any) -> None:
        if Failing.launches_left == 0:
            raise DeviceLost(
                f"{self.facts.name} at PCI {self.facts.pci_bus_id} failed while starting (ECC error); advice"
            )
        Failing.launches_left -= 1
        super().launch(*arguments)


def test_a_lost_device_ends_the_batch_with_what_is_committed_and_it_resumes(case, monkeypatch, capfd):
    """Queries are scored one by one; the fourth meets the failure, when the first has ended.

    Expected: the results of a batch without a failure.
    """
    monkeypatch.setattr("swsearch.engine.cuda.search.engine.CudaEngine.profiles_per_call", 1)
    batch = ["batch", "queries.fasta", "subjects.db", "--alphabet", "protein"]
    counting: list[str] = []

    class Counting(OneAtATime):
        def launch(self, spec: Any, *arguments: Any) -> None:
            counting.append(spec.entry)
            super().launch(spec, *arguments)

    use(monkeypatch, opener(Counting))
    assert main([*batch, "--engine", "cuda", "--store", "whole.sqlite"]) == 0
    use(monkeypatch, opener(Failing))
    Failing.launches_left = len(counting) - 1
    capfd.readouterr()
    assert main([*batch, "--engine", "cuda", "--store", "hits.sqlite", "--quiet"]) == 1
    *kept, line = capfd.readouterr().err.splitlines()
    assert line == "swsearch: error: emulated device at PCI 0000:00:00.0 failed while starting (ECC error); advice"
    assert [one.split(" ")[1:3] for one in kept] == [["run", "1"], ["to", "go"]]
    assert main(["runs", "list", "--store", "hits.sqlite"]) == 0
    assert "interrupted" in capfd.readouterr().out
    Failing.launches_left = -1
    assert main([*batch, "--engine", "cuda", "--store", "hits.sqlite", "--resume", "latest"]) == 0
    printed = capfd.readouterr().out
    n_before = int(printed.split(" were there before")[0].split()[-1])
    assert 0 < n_before < 4
    for store in ("hits", "whole"):
        assert main(["report", "latest", "--store", f"{store}.sqlite", "--format", "tsv", "--out", f"{store}.tsv"]) == 0
    assert Path("hits.tsv").read_text() == Path("whole.tsv").read_text()


def test_one_lost_device_of_two_ends_the_search_and_leaves_the_other_idle(case):
    class SecondFails(OneAtATime):
        def launch(self, *arguments: Any) -> None:
            raise DeviceLost("emulated device at PCI 0000:00:01.0 failed")

    def open_device(ordinal: int) -> EmulatedDevice:
        return (SecondFails if ordinal else OneAtATime)()

    with CudaDevices([0, 1], open_device) as engine:
        searcher, queries = open_case(engine)
        with pytest.raises(DeviceLost, match="00:01"):
            list(searcher.search(queries))
        (block,) = engine.engines[0].score(
            score_requests([sequence_profile(queries[0].codes, searcher.scheme)]), next(searcher.database.partitions())
        )
        assert len(block) == searcher.database.n_subjects


def test_an_open_searcher_closes_its_engine_when_the_device_is_lost(case, monkeypatch):
    class Lost(OneAtATime):
        def launch(self, *arguments: Any) -> None:
            raise DeviceLost("lost")

    use(monkeypatch, opener(Lost))
    with pytest.raises(DeviceLost), open_searcher("subjects.db", engine="cuda") as searcher:
        list(searcher.search(open_case(searcher.engine)[1]))
    assert searcher.engine.engines == []  # type: ignore[attr-defined]


def test_a_long_search_says_its_plan_beforehand(case, monkeypatch, capfd):
    """By hand: 127 query residues times the database's, at 2 multiprocessors x 10,000 Hz x 24 cells; two pairs."""
    use(monkeypatch, opener())
    n_residues = open_database("subjects.db").n_residues
    command = ["query", "queries.fasta", "subjects.db", "--alphabet", "protein", "--engine", "cuda", "--store", "none"]
    monkeypatch.setattr("swsearch.cli.command_run.LONG_SECONDS", 0.0)
    assert main(command) == 0
    (plan,) = [line for line in capfd.readouterr().err.splitlines() if "plan" in line]
    seconds = 127 * n_residues / (2 * 1e4 * 24)
    assert plan.startswith("swsearch: plan: the database of 0.00 GB kept on the GPU (1 GB free); ")
    assert plan.endswith(f"; 2 pairs of queries and 0 alone; about {round(seconds)} s")
    assert main([*command, "--quiet"]) == 0
    assert "plan" not in capfd.readouterr().err
    monkeypatch.setattr("swsearch.cli.command_run.LONG_SECONDS", seconds + 1)
    assert main(command) == 0
    assert "plan" not in capfd.readouterr().err


def test_the_plan_tells_how_a_database_beyond_the_memory_is_laid_out(case, monkeypatch):
    """With a limit of 700 bytes, the database of about 2 kB is streamed by one device, and divided among four."""
    monkeypatch.setattr("swsearch.engine.cuda.search.subjects.SMALLEST_PIECE", 300)
    with CudaDevices([0], opener(), memory_limit=700) as engine:
        searcher, queries = open_case(engine)
        forecast = searcher.forecast(10**9, queries)
        (partition,) = searcher.database.partitions()
        assert f"streamed in {engine.engines[0].store.n_pieces(partition, 127)} pieces" in str(forecast)
    with CudaDevices([0, 1, 2, 3], opener(), memory_limit=1000) as engine:
        searcher, queries = open_case(engine)
        forecast = searcher.forecast(10**9)
        assert str(forecast).startswith("a share of 0.00 GB kept on each of 4 GPUs (1 GB free)")
        assert forecast.seconds == pytest.approx(10**9 / (4 * 2 * 1e4 * 24))


@pytest.mark.parametrize(
    ("band_rows", "observed", "speedup"), [(None, False, 1.4), (5, False, 1.4), (0, False, 1.0), (None, True, 1.0)]
)
def test_the_time_of_a_search_with_a_bound_is_shorter(case, band_rows, observed, speedup):
    """Not if all scores are asked for. The factor is the one that was measured."""
    with CudaDevices([0], opener(), options=PlanOptions(band_rows=band_rows, bound_subjects=1)) as engine:
        searcher, queries = open_case(engine)
        searcher.observe = (lambda *_: None) if observed else None
        forecast = searcher.forecast(10**9, queries)
        assert forecast.seconds == pytest.approx(10**9 / (2 * 1e4 * 24 * speedup))

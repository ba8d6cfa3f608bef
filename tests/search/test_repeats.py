"""Searches of databases with equal subjects, of which one is scored, and parts of others, of which few are.

Expected values: the reports of the same search without ``repeats.bin``, in which every subject is scored.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from swsearch.cli.app import main
from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.options import EVERY_SUBJECT
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.fasta import read_sequences
from tests.support import random_dna, random_protein

QUERY = ["query", "queries.fasta", "subjects.db"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six queries, and 400 subjects of 150 sequences: random ones, parts of the queries, and parts of both.

    All thresholds count as selective, unless they are those of all scores.
    """
    monkeypatch.setattr("swsearch.database.segment_writer.SHORTEST_PART", 16)
    monkeypatch.setattr("swsearch.search.threshold.SELECTIVE_SHARE", np.inf)
    rng = np.random.default_rng(5)
    queries = [random_protein(rng, length) for length in (150, 90, 90, 60, 40, 25)]
    sequences = [random_protein(rng, int(length)) for length in rng.integers(10, 200, 60)]
    sequences += [query[part : part + 70] for query in queries for part in (0, 5, 9, 12, 20)]
    sequences += [codes[3 : -int(rng.integers(1, 9))] for codes in sequences if len(codes) > 30]
    chosen = rng.integers(0, len(sequences), 400)
    write(tmp_path / "queries.fasta", queries)
    write(tmp_path / "subjects.fasta", [sequences[which] for which in chosen])
    (tmp_path / "ids.txt").write_text("".join(f"s{number}\n" for number in range(0, 400, 3)))
    monkeypatch.chdir(tmp_path)
    index("subjects.fasta", "subjects.db")
    return tmp_path


def write(path: Path, sequences: list, alphabet=PROTEIN) -> None:
    path.write_text("".join(f">s{number}\n{alphabet.decode(codes)}\n" for number, codes in enumerate(sequences)))


def index(fasta: str, target: str, *options: str) -> None:
    assert main(["index", fasta, "-o", target, "--quiet", *options]) == 0


def reports(monkeypatch: pytest.MonkeyPatch, *command: str) -> tuple[bytes, bytes]:
    """The report of a command, and that without repeats."""
    found = []
    for name in ("with", "without"):
        with monkeypatch.context() as patched:
            if name == "without":
                patched.setattr("swsearch.database.segment.repeats_of", lambda *_: np.empty((0, 2), np.uint32))
            assert main([*command, "--store", "none", "--quiet", "--out", f"{name}.json"]) == 0
        found.append(Path(f"{name}.json").read_bytes())
    return found[0], found[1]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--top", "3"],
        ["--top", "all", "--evalue", "1000"],
        ["--evalue", "inf", "--top", "7"],
        ["--evalue", "inf", "--top", "7", "--composition", "none"],
        ["--top", "4", "--composition", "none", "--ties", "all"],
        ["--max-hsps", "3", "--min-identity", "40"],
        ["--iterations", "3", "--inclusion-evalue", "1"],
        ["--sensitive"],
        ["--sensitive", "--iterations", "2"],
        ["--mask", "tantan", "--min-score", "30"],
        ["--partition-residues", "2000"],
        ["--include", "ids.txt"],
        ["--exclude", "ids.txt", "--evalue", "inf", "--top", "9"],
    ],
    ids=" ".join,
)
def test_reports_are_those_of_all_subjects(folder, monkeypatch, options):
    one, other = reports(monkeypatch, *QUERY, "--format", "json", *options)
    assert one == other
    assert sum(len(query["hits"]) for query in json.loads(one)["queries"]) > 5


@pytest.mark.parametrize("share", [0.01, 1.0])
def test_a_threshold_that_many_subjects_reach_needs_the_scores_of_parts(folder, monkeypatch, share):
    """Of 400 subjects, 10 are expected to reach the usual E-value by chance."""
    monkeypatch.setattr("swsearch.search.threshold.SELECTIVE_SHARE", share)
    with open_database("subjects.db") as database, CpuEngine(1) as engine:
        searcher = Searcher(database, engine, SearchOptions())
        subjects = searcher.search_subjects
        assert searcher.usual_partitions is (subjects.maximal if share == 1.0 else subjects.distinct)
        assert 40 < len(subjects.distinct[0]) - len(subjects.maximal[0]) < 90
    one, other = reports(monkeypatch, *QUERY, "--format", "json")
    assert one == other


@pytest.mark.parametrize("command", ["allpairs", "cluster", "rbh"])
def test_all_against_all_is_that_of_all_subjects(folder, monkeypatch, command):
    """Each subject is compared with those before it, among which are repeats."""
    if command == "rbh":
        index("queries.fasta", "queries.db")
    databases = ["queries.db", "subjects.db"] if command == "rbh" else ["subjects.db"]
    one, other = reports(monkeypatch, command, *databases)
    assert one == other
    assert len(one) > 1000


@pytest.mark.parametrize("n_slices", [2, 3])
def test_slices_and_removed_subjects_change_nothing(folder, monkeypatch, n_slices):
    index("subjects.fasta", "sliced.db", "--slices", str(n_slices))
    for database in ("subjects.db", "sliced.db"):
        assert main(["db", "remove", database, "--from-file", "ids.txt", "--quiet"]) == 0
    whole = reports(monkeypatch, *QUERY, "--format", "tsv")
    sliced = reports(monkeypatch, "query", "queries.fasta", "sliced.db", "--format", "tsv")
    assert len({*whole, *sliced}) == 1
    assert len(whole[0]) > 1000


def test_translated_subjects_are_those_of_all_subjects(folder, monkeypatch):
    rng = np.random.default_rng(6)
    genes = [random_dna(rng, 300) for _ in range(20)]
    write(folder / "genes.fasta", [genes[which] for which in rng.integers(0, 20, 60)], DNA)
    index("genes.fasta", "genes.db", "--alphabet", "dna")
    command = "query queries.fasta genes.db --translate subject --evalue 1e6 --format tsv"
    one, other = reports(monkeypatch, *command.split())
    assert one == other
    assert len(one) > 1000


def test_the_engine_scores_each_sequence_once(folder):
    """The statistics of the result count the cells of all subjects; the engine is given those that are part of none."""
    scored: list[int] = []

    class Noting(CpuEngine):
        def score(self, requests, partition, *rest):
            scored.append(len(partition))
            return super().score(requests, partition, *rest)

    with open_database("subjects.db") as database, Noting(1) as engine:
        n_distinct = len({record.codes.tobytes() for record in database})
        n_maximal = n_distinct - count_parts({record.codes.tobytes() for record in database})
        searcher = Searcher(database, engine, SearchOptions())
        queries = list(read_sequences("queries.fasta", PROTEIN))
        results = list(searcher.search(queries))
        cells = [len(result.letters) * database.n_residues for result in results]
    assert scored == [n_maximal]
    assert n_maximal < n_distinct - 40
    assert [result.stats.cells for result in results] == cells


def test_a_part_is_listed_though_the_whole_does_not_reach_the_limit(folder, monkeypatch):
    """Both have the same alignment; its E-value is smaller in the shorter subject, and the limit lies between."""
    rng = np.random.default_rng(8)
    query = random_protein(rng, 120)
    whole = np.concatenate([random_protein(rng, 300), query[40:75], random_protein(rng, 300)])
    write(folder / "query.fasta", [query])
    write(folder / "few.fasta", [whole, whole[290:350], *(random_protein(rng, 200) for _ in range(2))])
    index("few.fasta", "few.db")
    assert left_out("few.db")
    command = ["query", "query.fasta", "few.db", "--composition", "none", "--format", "json"]
    (found,) = json.loads(reports(monkeypatch, *command)[0])["queries"]
    part, other = (hit["evalue"] for hit in found["hits"][:2])
    assert part < other
    one, without = reports(monkeypatch, *command, "--evalue", str((part * other) ** 0.5))
    assert one == without
    assert len(json.loads(one)["queries"][0]["hits"]) == 1


def left_out(database: str) -> bool:
    """Whether a search may leave out subjects."""
    with open_database(database) as opened, CpuEngine(1) as engine:
        return Searcher(opened, engine, SearchOptions()).search_subjects.has_repeats


def test_few_parts_are_scored_as_all_others_are(folder):
    """One of 60 residues among 4,200: the engines may count subjects, as nothing is left out."""
    subjects = [random_protein(np.random.default_rng(seed), 200) for seed in range(21)]
    write(folder / "few.fasta", [*subjects, subjects[0][20:80]])
    index("few.fasta", "few.db")
    with open_database("few.db") as database:
        assert database.repeats() == (1, 60)
    assert not left_out("few.db")


def test_an_observer_sees_the_scores_of_all_subjects(folder):
    """Those of parts below the threshold as well, which the list does not need."""
    observed = []
    with open_database("subjects.db") as database, CpuEngine(1) as engine:
        searcher = Searcher(database, engine, SearchOptions())
        searcher.observe = lambda n_letters, scored: observed.append((n_letters, len(scored)))
        list(searcher.search(list(read_sequences("queries.fasta", PROTEIN))))
    assert observed == [(length, 400) for length in (150, 90, 90, 60, 40, 25)]


def count_parts(sequences: set[bytes]) -> int:
    return sum(any(one in whole and one != whole for whole in sequences) for one in sequences if len(one) >= 16)


@pytest.mark.peer("emulated GPU")
@pytest.mark.parametrize(
    "options",
    [[], ["--evalue", "inf", "--top", "7", "--composition", "none"], ["--top", "4", "--composition", "none"]],
    ids=" ".join,
)
@pytest.mark.parametrize("devices", ["0", "0,1"])
def test_gpus_give_the_report_of_the_cpu(folder, monkeypatch, use_emulated, options, devices):
    wanted, _ = reports(monkeypatch, *QUERY, "--format", "json", "--engine", "cpu", *options)
    use_emulated()
    found = reports(monkeypatch, *QUERY, "--format", "json", "--engine", "cuda", "--devices", devices, *options)
    assert found == (wanted, wanted)


@pytest.mark.peer("emulated GPU")
def test_a_gpu_scores_parts_too(folder):
    from swsearch.engine.cuda.search.multi_gpu import CudaDevices
    from tests.engine.cuda.emulation.emulated_device import opener

    with open_database("subjects.db") as database, CudaDevices([0], opener()) as gpu, CpuEngine(1) as cores:
        queries = list(read_sequences("queries.fasta", PROTEIN))[:1]
        on_gpu, on_cores = (Searcher(database, engine, SearchOptions()) for engine in (gpu, cores))
        n_scored = [result.stats.n_scores for each in (on_gpu, on_cores) for result in each.search(queries)]
        subjects = on_cores.search_subjects
        assert n_scored == [len(subjects.distinct[0]), len(subjects.maximal[0])]


@pytest.mark.parametrize(
    "limits", [{"evalue": 1e-3}, {"mask": "seg"}, {"evalue": 1e3, "min_score": 40, "max_length": 80}]
)
def test_subjects_that_pass_are_those_that_are_listed(folder, limits):
    """Source: the hits of the search, which aligns them."""
    with open_database("subjects.db") as database, CpuEngine(2) as engine:
        searcher = Searcher(database, engine, SearchOptions(top=EVERY_SUBJECT, composition="none", **limits))
        queries = list(read_sequences("queries.fasta", PROTEIN))
        listed = [sorted({hit.subject_index for hit in result.hits}) for result in searcher.search(queries)]
        assert [subjects.tolist() for subjects in searcher.passing(queries)] == listed
        assert sum(map(len, listed)) > 100


@pytest.fixture
def use_emulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make the engine named cuda run on emulated devices."""
    from tests.engine.cuda.emulation.emulated_device import opener
    from tests.engine.cuda.search.test_whole_search import use

    return lambda: use(monkeypatch, opener())

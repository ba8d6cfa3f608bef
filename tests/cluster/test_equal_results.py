"""A search with the workers of a cluster gives the bytes of a search in one process.

Expected values: the reports of a run in this process with the CPU engine. All tests share one cluster, to which workers
are added.
"""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import swsearch
from swsearch.cluster import open_cluster_searcher
from swsearch.engine.registry import Machine
from swsearch.hits.result import QueryResult, SearchStats
from swsearch.options import EVERY_SUBJECT
from swsearch.run import Run
from swsearch.search.options import SearchOptions
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.queries import QueryFiles, SubjectQueries
from swsearch.search.searcher import open_searcher
from tests.sliced_databases import DATA
from tests.tiers import mostly_thorough

NO_COST = SearchStats(cells=0, score_seconds=0.0, total_seconds=0.0, n_rescored=0)
LIBRARY = os.path.relpath(DATA / "contexts.lib")
FORMATS = ("blast6", "xml", "jsonl", "parquet")
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("queries.fasta", "proteins", {"evalue": 1000, "max_hsps": 3}),
    ("queries.fasta", "proteins", {"evalue": 1000, "top": 3, "ties": "all", "min_identity": 30}),
    ("queries.fasta", "proteins", {"iterations": 3, "top": 5, "id_pattern": "^[a-z0-9_]*(tr|sp)", "mask": "tantan"}),
    ("queries.fasta", "proteins", {"sensitive": True, "contexts": LIBRARY, "iterations": 3, "top": 5}),
    ("obg.sto", "proteins", {"iterations": 2}),
    ("reads.fasta", "bases", {"top": 2, "ties": "all", "evalue": float("inf")}),
    ("reads.fasta", "proteins", {"translate": "query", "evalue": 1000}),
    ("queries.fasta", "bases", {"translate": "subject", "evalue": 1000, "max_hsps": 2}),
]


def reported(searcher: PlannedSearch, queries: Path, output: Path) -> dict[str, str]:
    """The SHA-256 of a run's reports, by format."""
    results = []
    files = QueryFiles.of([queries], "auto")
    with Run(files, searcher) as run:
        results.extend(run)
    assert any(result.hits for result in results)
    digests = {}
    for form in FORMATS:
        swsearch.write_report((searcher.run_info("test"), results), output, form)
        digests[form] = hashlib.sha256(output.read_bytes()).hexdigest()
    return digests


@pytest.fixture(scope="module")
def expected(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The digests of the reports of each case, searched in this process."""
    digests = []
    for name, database, chosen in CASES:
        with open_searcher(folder / f"{database}.db", SearchOptions(**chosen), engine="cpu", threads=1) as searcher:
            digests.append(reported(searcher, query_file(folder, name), tmp_path_factory.mktemp("plain") / "report"))
    return digests


def query_file(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).exists() else DATA / name


@pytest.mark.parametrize(
    ("n_workers", "n_cases"),
    mostly_thorough([(1, 2), (2, len(CASES)), (3, 1), (4, 2)], (1, 2)),
)
def test_reports_are_those_of_one_process(folder, cluster, expected, tmp_path, n_workers, n_cases):
    """Whole databases and slices of them; two workers search all kinds of queries."""
    cluster.have_workers(n_workers)
    cluster.wait_for_workers()
    for (name, database, chosen), digests in list(zip(CASES, expected, strict=True))[:n_cases]:
        path, options = folder / f"{database}.db", SearchOptions(**chosen)
        for slices in ("no", "yes"):
            with open_cluster_searcher(path, options, cluster.place, machine=Machine("cpu"), slices=slices) as searcher:
                assert searcher.is_sliced == (slices == "yes")
                found = reported(searcher, query_file(folder, name), tmp_path / "report")
                assert found == digests, (name, chosen, slices)


@pytest.mark.thorough
@pytest.mark.parametrize("chosen", [{"top": 3, "ties": "all", "evalue": 1000}, {"iterations": 2, "id_pattern": "[AC]"}])
def test_several_databases_are_searched_as_one(folder, cluster, tmp_path, chosen):
    """Workers hold both databases, or slices of either; expected value: a search of both in this process."""
    cluster.have_workers(2)
    cluster.wait_for_workers()
    databases, options = [folder / "proteins.db", folder / "dealt_proteins.db"], SearchOptions(**chosen)
    with open_searcher(databases, options, engine="cpu", threads=1) as searcher:
        expected = reported(searcher, folder / "queries.fasta", tmp_path / "plain")
    for slices in ("no", "yes"):
        with open_cluster_searcher(
            databases, options, cluster.place, machine=Machine("cpu"), slices=slices
        ) as searcher:
            assert len(searcher.slices) == (6 if slices == "yes" else 1)
            assert reported(searcher, folder / "queries.fasta", tmp_path / "cluster") == expected, slices


@pytest.mark.thorough
def test_all_pairs_are_those_of_one_process(folder, cluster):
    """Expected values: a search of all against all in this process, which is tested by itself."""
    cluster.have_workers(2)
    cluster.wait_for_workers()
    options = SearchOptions(top=EVERY_SUBJECT, max_length=250)

    def pairs(searcher: PlannedSearch) -> list[QueryResult]:
        found: list[QueryResult] = []
        with Run(SubjectQueries.of(searcher), searcher) as run:
            found.extend(run)
        return [replace(result, stats=NO_COST) for result in found]

    with open_searcher(folder / "proteins.db", options, engine="cpu", threads=1) as searcher:
        expected = pairs(searcher)
    assert sum(len(result.hits) for result in expected) > len(expected)
    for slices in ("no", "yes"):
        with open_cluster_searcher(
            folder / "proteins.db", options, cluster.place, machine=Machine("cpu"), slices=slices
        ) as searcher:
            assert searcher.is_sliced == (slices == "yes")
            assert pairs(searcher) == expected, slices


@pytest.mark.thorough
def test_two_slices_are_the_whole_database(folder, cluster, tmp_path):
    """A third segment that is too small to be a slice goes with the second."""
    cluster.have_workers(2)
    database = tmp_path / "two.db"
    swsearch.build_database(folder / "proteins0.fasta", database)
    (tmp_path / "few.fasta").write_text(">few\nMKVLAAGIVGLLLAQWERTYHHEDKN\n")
    for addition in (folder / "proteins1.fasta", tmp_path / "few.fasta"):
        swsearch.database.changes.add_to_database(database, [addition])
    options = SearchOptions(evalue=1000)
    with open_searcher(database, options, engine="cpu", threads=1) as searcher:
        expected = reported(searcher, folder / "queries.fasta", tmp_path / "plain")
    with open_cluster_searcher(database, options, cluster.place, machine=Machine("cpu"), slices="yes") as searcher:
        assert [one.segments for one in searcher.slices] == [(0,), (1, 2)]
        assert reported(searcher, folder / "queries.fasta", tmp_path / "cluster") == expected

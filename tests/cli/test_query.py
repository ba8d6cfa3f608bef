"""`swsearch query` and `report` from end to end, on real sequences.

The expected output comes from other runs of the same search, from the reference engine, or from ssearch36.
"""

import json
import re
import subprocess

import pytest

from swsearch.cli import databases
from swsearch.cli.app import main
from swsearch.cli.query import about_subjects
from swsearch.database.builder import build_database
from swsearch.engine.registry import Machine
from swsearch.errors import SwSearchError
from tests.cli.conftest import DATA, QUERIES


def test_hits_are_printed_and_stored_and_printed_again_to_the_byte(swsearch, user_store, some_proteins_db):
    """Source: the output of the first run, in every format."""
    first = swsearch("query", QUERIES, some_proteins_db, "--top", "5")
    assert "GTPase Obg" in first.printed
    assert f"stored as run 1 in {user_store}" in first.err
    for name in ("table", "blast6", "blast7", "tsv", "csv", "json", "jsonl", "pairwise"):
        again = swsearch("query", QUERIES, some_proteins_db, "--top", "5", "--format", name, "--store", "none")
        stored = swsearch("report", "latest", "--format", name)
        assert stored.out == again.printed, name


def test_the_size_of_a_database_is_asked_of_its_catalogue_alone(tmp_path):
    """A compaction removes segments while a search starts: it used to end with "No such file or directory"."""
    (tmp_path / "two.fa").write_text(">P1\nMKVLL\n>P2\nWYR\n")
    build_database(tmp_path / "two.fa", tmp_path / "db")
    (tmp_path / "db" / "segment-000001").rename(tmp_path / "gone")
    assert about_subjects([str(tmp_path / "db")]) == 8
    assert about_subjects([str(tmp_path / "db"), str(tmp_path / "gone")]) == 0
    n_bytes = (tmp_path / "two.fa").stat().st_size
    assert about_subjects([str(tmp_path / "db"), str(tmp_path / "two.fa")]) == 8 + n_bytes


def test_gpus_start_before_databases_are_opened(swsearch, some_proteins_db, tmp_path, monkeypatch):
    """The driver takes a third of a second, which passes while the program opens its databases."""
    order: list[str] = []
    opened = databases.open_database
    n_residues = about_subjects([str(some_proteins_db)])
    query = tmp_path / "q.fa"
    query.write_text(">q\nMKVLLAAGWYR\n")
    cells = n_residues * query.stat().st_size
    monkeypatch.setattr(Machine, "warm_up_gpus", lambda _, about: not order.append(f"{about == cells}"))
    monkeypatch.setattr(databases, "open_database", lambda *args, **kw: order.append("opened") or opened(*args, **kw))
    assert swsearch("query", query, some_proteins_db).code == 0
    assert order == ["True", "opened"]


@pytest.fixture(scope="module")
def default_report(some_proteins_db, tmp_path_factory) -> str:
    """The report of a search with default options."""
    out = tmp_path_factory.mktemp("default") / "report.json"
    command = ["query", str(QUERIES), str(some_proteins_db), "--format", "json", "--store", "none", "--out", str(out)]
    assert main([*command, "--quiet"]) == 0
    return out.read_text()


@pytest.mark.parametrize(
    "variant",
    [
        ["--threads", "1"],
        ["--threads", "2"],
        ["--threads", "2", "--partition-residues", "1"],
        ["--no-bound"],
        ["--threads", "1", "--partition-residues", "50000"],
        ["--engine", "cpu"],
    ],
)
def test_threads_and_partitions_do_not_change_a_byte(swsearch, some_proteins_db, default_report, variant):
    """Source: the same search with default options."""
    arguments = ["query", QUERIES, some_proteins_db, "--format", "json", "--store", "none"]
    assert swsearch(*arguments, *variant).out == default_report


def test_the_reference_engine_gives_the_same_bytes(swsearch, few_proteins_db):
    query = ["query", QUERIES, few_proteins_db, "--evalue", "inf", "--format", "json", "--store", "none", "--engine"]
    found = swsearch(*query, "cpu").out
    assert json.loads(found)["queries"]
    assert swsearch(*query, "reference").out == found


def test_an_out_file_is_whole_or_not_there(swsearch, some_proteins_db, tmp_path, monkeypatch):
    assert swsearch("query", QUERIES, some_proteins_db, "--out", "hits.txt", "--store", "none").code == 0
    before = (tmp_path / "hits.txt").read_text()
    from swsearch.search.searcher import Searcher

    real = Searcher.search

    def broken(self, queries, progress=None):
        for result in real(self, queries, progress):
            if result.number == 3:
                raise SwSearchError("broken on purpose")
            yield result

    monkeypatch.setattr(Searcher, "search", broken)
    outcome = swsearch("query", QUERIES, some_proteins_db, "--out", "hits.txt", "--top", "1")
    assert "broken on purpose" in outcome.refusal
    assert (tmp_path / "hits.txt").read_text() == before
    assert not list(tmp_path.glob(".hits.txt*"))
    listed = swsearch("runs", "list").out.splitlines()
    assert "interrupted" in listed[1]
    assert " 3 " in listed[1]  # three queries were committed before the failure


def test_a_list_that_filters_have_shortened_says_so(swsearch, protein_db):
    """Source: the longer list; 106 subjects have an E-value of at most 10."""
    shown = swsearch("query", QUERIES, protein_db, "--store", "none", "--top", "4", "--min-identity", "60").out
    assert "106 of 1,500 subjects have an E-value of at most 10; the best 4 whose alignments pass the filters" in shown


def test_a_full_list_of_adjusted_evalues_has_up_to_as_many_subjects_as_pass_by_score(swsearch, protein_db):
    """Expected: a list that ends where no further subject remains claims no more of them than there may be."""

    def said(*options: str) -> str:
        out = swsearch("query", QUERIES, protein_db, "--store", "none", *options).out
        return next(line for line in out.splitlines() if line.startswith("Hits:"))

    found = re.fullmatch(
        r"Hits: +(\d+) of 1,500 .* by score; (\d+) remain after the adjustment .*", said("--top", "all")
    )
    assert found
    n_passed, n_remaining = map(int, found.groups())
    assert n_remaining < n_passed
    up_to = f"up to {n_passed} of 1,500 subjects have an E-value of at most 10; the best {n_remaining} are shown"
    assert said("--top", str(n_remaining)).endswith(up_to)
    assert " up to " not in said("--top", "3", "--composition", "none")


def test_a_report_says_that_its_queries_were_profiles(swsearch, few_proteins_db):
    """By hand: the name is that of the family in the file."""
    assert swsearch("query", DATA / "obg.sto", few_proteins_db).code == 0
    table = swsearch("report", "latest").out
    assert "Query:    Obg_GTPase profile of " in table
    assert "Scoring:  position-specific scores on the scale of BLOSUM62, a gap of k residues costs 11 + 1k" in table
    assert "--query-format stockholm" in swsearch("runs", "show", "latest").out


def test_a_query_format_that_does_not_exist_or_fit_is_one_line(swsearch, protein_db):
    assert "choose auto, fasta, pssm" in swsearch("query", QUERIES, protein_db, "--query-format", "clustal").error
    assert "line 1: expected 'HMMER3/f'" in swsearch("query", QUERIES, protein_db, "--query-format", "hmm").error
    assert "the first sequence has" in swsearch("query", QUERIES, protein_db, "--query-format", "aligned").error


@pytest.mark.peer("ssearch36")
def test_the_top_50_scores_are_ssearchs(swsearch, protein_db, tmp_path):
    """Source: ssearch36 with BLOSUM62, gap 11 + k. With adjusted E-values another alignment may be a subject's best."""
    library = tmp_path / "library.fasta"
    with library.open("wb") as stream:
        subprocess.run(["gzip", "-dc", DATA / "proteins.fasta.gz"], stdout=stream, check=True)
    peer = subprocess.run(
        ["ssearch36", "-q", "-T", "1", "-s", "BL62", "-f", "-11", "-g", "-1", "-b", "=50", "-d", "0", "-E", "1e9",
         QUERIES, library],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    expected: list[dict[str, int]] = []
    for line in peer.splitlines():
        if line.startswith("The best scores are"):
            expected.append({})
        elif expected and line[:3] in {"sp|", "tr|"}:
            fields = line.split(")")[-1].split()
            expected[-1][line.split()[0]] = int(fields[0])
    outcome = swsearch(
        "query", QUERIES, protein_db, "--evalue", "inf", "--top", "1500", "--format", "tsv", "--fields",
        "qseqid,sseqid,score", "--store", "none", "--composition", "none",
    )  # fmt: skip
    ours: dict[str, dict[str, int]] = {}
    for line in outcome.out.splitlines()[1:]:
        query, subject, score = line.split("\t")
        ours.setdefault(query, {})[subject] = int(score)
    assert len(expected) == len(ours) == 7
    for query, scores in zip(ours, expected, strict=True):
        assert len(scores) >= 50
        assert {subject: ours[query][subject] for subject in scores} == scores

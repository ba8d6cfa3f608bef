"""The ten questions of the page on the store, answered in SQL. Expected values: computed in Python from the reports."""

import csv
import gzip
import json
import re
import sqlite3
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from Bio.SeqIO.FastaIO import SimpleFastaParser

from swsearch.cli.app import main
from swsearch.store.store import Store
from tests.store.conftest import DIALECTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "store.md").read_text()
QUESTIONS = {
    int(section.partition(".")[0]): re.search(r"```(\w+)\n(.*?)```", section, re.DOTALL).groups()
    for section in PAGE.partition("\n## Ten questions\n")[2].partition("\n## ")[0].split("\n### ")[1:]
}
FIELDS = "qseqid sseqid rank hsp evalue bitscore pident qstart qend qlen"
Row = dict[str, str]


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """The folder with the store ``hits.sqlite``, and the report of each of its runs as rows by the names of columns.

    Run 1 searches the queries, one of which has no hits, in all proteins, and run 3 repeats it with another matrix. Run
    2 searches the best three subjects of each query among the queries.
    """
    folder = tmp_path_factory.mktemp("questions")
    queries, store = folder / "queries.fasta", folder / "hits.sqlite"
    queries.write_text((ROOT / "data" / "queries.fasta").read_text() + ">nothing like it\nGG\n")
    proteins = ROOT / "data" / "proteins.fasta.gz"

    def search(first: Path, second: Path, *options: str) -> list[Row]:
        report = folder / "report.tsv"
        wanted = ["--format", "tsv", "--fields", FIELDS, "--out", str(report), "--store", str(store), "--quiet"]
        assert main(["query", str(first), str(second), *options, *wanted]) == 0
        with report.open() as lines:
            rows = list(csv.DictReader(lines, delimiter="\t"))
        report.unlink()
        return rows

    forth = search(queries, proteins)
    best = {row["sseqid"] for row in forth if int(row["rank"]) <= 3}
    with gzip.open(proteins, "rt") as file, (folder / "best.fasta").open("w") as subjects:
        for title, letters in SimpleFastaParser(file):
            if title.split()[0] in best:
                subjects.write(f">{title}\n{letters}\n")
    back = search(folder / "best.fasta", queries)
    return folder, [forth, back, search(queries, proteins, "--matrix", "PAM30")]


@pytest.fixture(params=DIALECTS)
def ask(request, reported):
    """A function that returns the rows of a question's statement, in each kind of database."""
    path = reported[0] / "hits.sqlite"
    url = str(path) if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    if request.param == "postgresql":
        with Store(path) as source, Store(url, create=True) as copy:
            for run in source.runs.all():
                copied = copy.runs.start(run.info)
                for result in source.results.queries(run.id):
                    copy.results.add(copied, result)

    def answer(number):
        kind, statement = QUESTIONS[number]
        assert kind == "sql"
        with store.reading() as rows:
            return list(rows.execute(statement))

    with Store(url) as store:
        yield answer


def is_best(row):
    return (row["rank"], row["hsp"]) == ("1", "1")


def places(row):
    return abs(int(row["qend"]) - int(row["qstart"])) + 1


def test_the_page_has_ten_questions():
    assert list(QUESTIONS) == list(range(1, 11))


def test_the_statements_answer_what_the_reports_do(ask, reported):
    """One test for all statements: a database of PostgreSQL is filled once."""
    first, second, third = reported[1]
    assert [
        (query, subject, f"{identity:.3f}", f"{evalue:.2e}" if evalue > 1e-180 else "0.0", f"{bits:.1f}")
        for query, subject, identity, evalue, bits in ask(1)
    ] == [
        (row["qseqid"], row["sseqid"], row["pident"], row["evalue"], row["bitscore"]) for row in first if is_best(row)
    ]

    wanted = "sp|B4RQP4|OBG_NEIG2"
    of_subject = [
        (run, row["qseqid"]) for run, rows in enumerate(reported[1], 1) for row in rows if row["sseqid"] == wanted
    ]
    assert [(run, query) for run, query, _ in ask(2)] == of_subject
    assert {run for run, _ in of_subject} == {1, 2, 3}

    assert ask(3) == [(7, "nothing")]
    assert "nothing" not in {row["qseqid"] for row in first}

    best_back = {row["qseqid"]: row["sseqid"] for row in second if is_best(row)}
    best_forth = {row["qseqid"]: row["sseqid"] for row in first if is_best(row)}
    pairs = [(query, subject) for query, subject in best_forth.items() if best_back.get(subject) == query]
    assert [(query, subject) for query, subject, *_ in ask(4)] == pairs
    assert 0 < len(pairs) < len(best_forth) + 1

    databases = [(*json.loads(paths), *rest) for paths, _, *rest in ask(5)]
    (proteins, n_runs, n_queries, n_hits), (queries, *counts) = databases
    assert (Path(proteins).name, n_runs, n_queries, n_hits) == ("proteins.fasta.gz", 2, 16, len(first) + len(third))
    assert (Path(queries).name, *counts) == ("queries.fasta", 1, len(best_back), len(second))

    kept = [row for row in first if float(row["pident"]) >= 90 and places(row) >= 0.8 * int(row["qlen"])]
    assert [(query, subject, f"{identity:.3f}", f"{cover:.4f}") for query, subject, identity, cover in ask(6)] == [
        (row["qseqid"], row["sseqid"], row["pident"], f"{100 * places(row) / int(row['qlen']):.4f}") for row in kept
    ]
    assert 0 < len(kept) < len(first)

    only_first = {(row["qseqid"], row["sseqid"]) for row in first} - {(row["qseqid"], row["sseqid"]) for row in third}
    assert set(ask(7)) == only_first
    assert only_first

    limits = {"below 1e-100": 1e-100, "1e-100 to 1e-10": 1e-10, "1e-10 to 1e-3": 1e-3, "1e-3 to 1": 1, "from 1": 99}
    counted = Counter(next(name for name, limit in limits.items() if float(row["evalue"]) < limit) for row in first)
    assert dict(ask(8)) == counted
    assert [name for name, _ in ask(8)] == [name for name in limits if name in counted]
    assert len(counted) >= 3


def exported(folder):
    """The file that the command of question 9 writes, as rows."""
    kind, command = QUESTIONS[9]
    assert kind == "sh"
    subprocess.run(["sh", "-ec", command], cwd=folder, check=True)
    with (folder / "hits.csv").open() as lines:
        return list(csv.DictReader(lines))


@pytest.mark.peer("sqlite3")
def test_sqlite3_exports_the_hits_of_a_run(reported):
    folder, (first, *_) = reported
    rows = exported(folder)
    assert [(row["qaccver"], row["saccver"], row["qstart"], row["rank"]) for row in rows] == [
        (row["qseqid"], row["sseqid"], row["qstart"], row["rank"]) for row in first
    ]
    with sqlite3.connect(folder / "hits.sqlite") as store:
        assert list(rows[0]) == [column[0] for column in store.execute("SELECT * FROM blast6").description]
    store.close()


@pytest.mark.parametrize("library", ["pandas", pytest.param("duckdb", marks=pytest.mark.peer("sqlite3"))])
def test_data_frames_have_the_best_bit_score_of_each_query(reported, capsys, monkeypatch, library):
    folder, (first, *_) = reported
    blocks = re.findall(r"```py\n(.*?)```", PAGE, re.S)
    (code,) = [block for block in blocks if f"import {library}" in block]
    if library == "duckdb":
        exported(folder)
    monkeypatch.chdir(folder)
    exec(compile(code, "store.md", "exec"), {})
    printed = dict(re.findall(r"((?:sp|tr)\|\S+)[ │]+([\d.]+)", capsys.readouterr().out))
    best: dict[str, float] = {}
    for row in first:
        best[row["qseqid"]] = max(best.get(row["qseqid"], 0.0), float(row["bitscore"]))
    assert {name: round(float(bits), 1) for name, bits in printed.items()} == best

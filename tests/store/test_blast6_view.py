"""The view ``blast6``, identifiers beside headers, and their indexes. Expected values: the reports, and the headers."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from swsearch.cli.app import main
from swsearch.hits.formatting import UNKNOWN, blast_bits, blast_evalue
from swsearch.sequences.record import identifier
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_query
from tests.support import protein_records

DATA = Path(__file__).parents[2] / "data"
STANDARD = "qaccver, saccver, pident, length, mismatch, gapopen, qstart, qend, sstart, send, evalue, bitscore"
HEADERS = (
    "plain text",
    "",
    "tab\there",
    "\u2003wide\u3000spaces",
    "caf\u00e9 \u00fc",
    "back\\slash \udcff",
    "nul\0byte x",
    "a" * 9000,
)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A store with a search for proteins, one of DNA on both strands, and translated ones; and the reports' lines."""
    folder = tmp_path_factory.mktemp("searched")
    (folder / "proteins.fasta").write_text("".join(protein_records()[:60]))
    reads = (DATA / "lambda_reads.fastq").read_text().splitlines()[:48]
    (folder / "reads.fastq").write_text("\n".join(reads) + "\n")
    genome = "".join((DATA / "lambda_phage.fasta").read_text().splitlines()[1:])
    (folder / "genome.fasta").write_text(f">part of_a_genome\n{genome[:9000]}\n")
    store = folder / "hits.sqlite"
    searches = (
        (DATA / "queries.fasta", "proteins.fasta"),
        (DATA / "lambda_reads.fastq", DATA / "lambda_phage.fasta"),
        (folder / "genome.fasta", "proteins.fasta", "--translate", "query", "--evalue", "1000"),
        (DATA / "queries.fasta", "genome.fasta", "--translate", "subject", "--evalue", "100", "--max-hsps", "3"),
        (folder / "reads.fastq", "genome.fasta", "--translate", "both"),
        (folder / "reads.fastq", "genome.fasta", "--match", "3", "--mismatch", "-1", "--gap-open", "1"),  # no E-values
    )
    reports = []
    for queries, subjects, *options in searches:
        report = folder / "report"
        files = [str(queries), str(folder / subjects)]
        wanted = ["--format", "blast6", "--out", str(report), "--store", str(store), "--quiet"]
        assert main(["query", *files, *options, *wanted]) == 0
        reports.append(report.read_text().splitlines())
        report.unlink()
    return store, reports


def as_printed(row):
    """Return the twelve values of a row with the number formats of BLAST."""
    *values, evalue, bits = row
    values[2] = f"{values[2]:.3f}"
    return "\t".join([*map(str, values), blast_evalue(evalue, digits=2), blast_bits(bits)])


def test_the_view_has_the_values_of_the_report(searched):
    """Source: ``--format blast6`` of the same searches."""
    path, reports = searched
    with sqlite3.connect(path) as store:
        statement = f"SELECT {STANDARD} FROM blast6 WHERE run_id = ? ORDER BY query_number, rank, hsp"
        found = [[as_printed(row) for row in store.execute(statement, (run,))] for run in range(1, len(reports) + 1)]
    store.close()
    assert found == reports
    assert all(len(lines) > 5 for lines in reports)
    # Both strands of DNA, and both directions of translated queries and subjects, occur.
    for run, column, ascends in ((1, 8, {True}), (2, 8, {True, False}), (3, 6, {True, False}), (4, 8, {True, False})):
        cells = [line.split("\t") for line in reports[run - 1]]
        assert {int(row[column]) < int(row[column + 1]) for row in cells} == ascends
    assert all(line.endswith(f"\t{UNKNOWN}") for line in reports[5])


def test_the_view_is_the_same_in_postgresql(searched, postgres_url):
    """Source: the view of SQLite."""
    path, reports = searched
    statement = "SELECT * FROM blast6 ORDER BY run_id, query_number, rank, hsp"
    with sqlite3.connect(path) as store:
        cursor = store.execute(statement)
        names = [column[0] for column in cursor.description]
        expected = [dict(zip(names, row, strict=True)) for row in cursor]
    store.close()
    with Store(path) as source, Store(postgres_url, create=True) as copy:
        for run in source.runs.all():
            copied = copy.runs.start(run.info)
            for result in source.results.queries(run.id):
                copy.results.add(copied, result)
        with copy.reading() as rows:
            cursor = rows.execute(statement)
            names = [column[0] for column in cursor.description]
            found = [dict(zip(names, row, strict=True)) for row in cursor]
    assert found == expected
    assert len(found) == sum(map(len, reports))


def odd_results():
    """Queries and hits whose headers are those of :data:`HEADERS`."""
    hits = [replace(hit, subject_header=header) for hit, header in zip(make_query(0, 8).hits, HEADERS, strict=True)]
    return [
        replace(make_query(number), header=header, hits=tuple(hits) if number == 0 else ())
        for number, header in enumerate(HEADERS)
    ]


def identifiers(target):
    """Return all identifiers in a store, of queries and of subjects, in the order of :func:`odd_results`."""
    with Store(target) as store, store.reading() as rows:
        queries = [row.identifier for row in rows.records("queries", "ORDER BY number")]
        return queries, [row.subject_identifier for row in rows.records("hits", "ORDER BY rank")]


def test_identifiers_are_the_first_words_of_any_headers(target):
    """Source: ``identifier``, which reports use. A B-tree of PostgreSQL has no place for 9,000 letters."""
    with Store(target, create=True) as store:
        run = store.runs.start(RUN)
        for result in odd_results():
            store.results.add(run, result)
        assert list(store.results.queries(run)) == odd_results()
    expected = [identifier(header) for header in HEADERS]
    assert expected[1:4] == ["unnamed", "tab", "wide"]
    assert identifiers(target) == (expected, expected)


@pytest.mark.parametrize("further", ["", " AND run_id = 1", " AND evalue < 1e-5 ORDER BY evalue"])
def test_the_hits_of_a_subject_are_found_by_an_index(searched, further):
    """Source: SQLite's plan, also in a store that was never analysed."""
    with sqlite3.connect(searched[0]) as store:
        statement = f"EXPLAIN QUERY PLAN SELECT qaccver, evalue FROM blast6 WHERE saccver = 'x'{further}"
        plan = [row[3] for row in store.execute(statement)]
    store.close()
    assert plan[0] == "SEARCH h USING INDEX ix_hits_subject (subject_identifier=?)"
    assert plan[1] == "SEARCH q USING INTEGER PRIMARY KEY (rowid=?)"


def test_the_hits_of_a_subject_are_found_by_an_index_in_postgresql(postgres_url):
    """Source: PostgreSQL's plan, with statistics of 20,000 hits."""
    with Store(postgres_url, create=True) as store:
        run = store.runs.start(RUN)
        for number in range(10):
            store.results.add(run, make_query(number, 2000))
        with store.writing() as rows:
            rows.execute("ANALYZE")
            statement = "EXPLAIN SELECT qaccver, evalue FROM blast6 WHERE saccver = 'sp|P00007|NAME_ORGANISM'"
            plan = "\n".join(line for (line,) in rows.execute(statement))
    assert "ix_hits_subject" in plan
    assert "Seq Scan on hits" not in plan

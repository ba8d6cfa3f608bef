"""Databases in slices on the command line: searches give the bytes of the database without slices.

The expected reports come from the same sequences indexed without slices; the messages are written by hand.
"""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import DATA, QUERIES

FORMATS = ["blast6", "xml", "jsonl", "pairwise"]


@pytest.fixture
def three_queries(tmp_path) -> Path:
    """The first three of the queries, for searches whose number is not the point."""
    path = tmp_path / "queries.fasta"
    path.write_text(">".join(QUERIES.read_text().split(">")[:4]))
    return path


def reports(swsearch, tmp_path, database, queries, *options) -> dict[str, str]:
    """Return the hits in several formats; the database always has the same name, because reports print it."""
    os.rename(tmp_path / database, tmp_path / "searched.db")
    command = ["query", queries, "searched.db", "--store", "hits.sqlite", "--quiet", *options]
    assert swsearch(*command).code == 0
    os.rename(tmp_path / "searched.db", tmp_path / database)
    return {name: swsearch("report", "latest", "--store", "hits.sqlite", "--format", name).out for name in FORMATS}


def both(swsearch, tmp_path, fasta, *options) -> None:
    """Index a FASTA without slices and in three slices."""
    assert swsearch("index", fasta, "-o", "plain.db", *options).code == 0
    assert swsearch("index", fasta, "-o", "sliced.db", "--slices", 3, *options).code == 0


def assert_searched_alike(swsearch, tmp_path, queries, *options) -> None:
    expected = reports(swsearch, tmp_path, "plain.db", queries, *options)
    assert expected["blast6"].count("\n") > 10
    assert reports(swsearch, tmp_path, "sliced.db", queries, *options) == expected


def test_proteins_in_slices_are_searched_as_a_whole(swsearch, tmp_path, few_proteins_db, three_queries):
    """Copies under other names make ties at all ranks; additions and removals follow."""
    records = swsearch("db", "export", few_proteins_db).out.split(">")[1:]
    copies = [record.replace("|", "-copy|", 1) for record in records[::-2]]
    (tmp_path / "some.fasta").write_text("".join(f">{record}" for record in [*records, *copies]))
    (tmp_path / "more.fasta").write_text("".join(f">{record.replace('|', '-more|', 1)}" for record in records[::3]))
    both(swsearch, tmp_path, "some.fasta")
    assert_searched_alike(swsearch, tmp_path, three_queries, "--top", "40", "--evalue", "1000")
    ties = ["--top", "7", "--ties", "all", "--partition-residues", "3000", "--evalue", "inf", "--max-hsps", "2"]
    assert_searched_alike(swsearch, tmp_path, three_queries, *ties)
    for database in ("plain.db", "sliced.db"):
        assert swsearch("db", "remove", database, *[record.split()[0] for record in records[::5]]).code == 0
        assert swsearch("db", "add", database, "more.fasta").code == 0
        assert swsearch("db", "remove", database, copies[4].split()[0], records[3].split()[0]).code == 0
    assert_searched_alike(swsearch, tmp_path, three_queries, "--top", "40", "--evalue", "1000")
    assert swsearch("db", "verify", "sliced.db").code == 0
    exports = [swsearch("db", "export", database).out for database in ("plain.db", "sliced.db")]
    assert exports[0] == exports[1]


@pytest.mark.parametrize(
    ("queries", "options"),
    [(DATA / "lambda_reads.fastq", ["--top", "20"]), (QUERIES, ["--translate", "subject", "--evalue", "1e6"])],
    ids=["strands", "translated"],
)
def test_dna_in_slices_is_searched_as_a_whole(swsearch, tmp_path, queries, options):
    genome = "".join((DATA / "lambda_phage.fasta").read_text().split("\n")[1:])
    pieces = [f">piece{n}\n{genome[n * 400 : n * 400 + 300 + n * 7]}\n" for n in range(90)]
    (tmp_path / "some.fasta").write_text("".join(pieces))
    both(swsearch, tmp_path, "some.fasta")
    for database in ("plain.db", "sliced.db"):
        assert swsearch("db", "remove", database, "piece3", "piece50").code == 0
    assert_searched_alike(swsearch, tmp_path, queries, *options)


def test_the_reference_engine_and_filters_agree_on_slices(swsearch, tmp_path):
    records = [f">s{n}\n{'MKWVTFISLLFLFSSAYSRGVFRRDAHKSEVAHRFKDLGEENFKALVLIA'[: 9 + n]}\n" for n in range(40)]
    (tmp_path / "some.fasta").write_text("".join(records))
    (tmp_path / "q.fasta").write_text(">q\nMKWVTFISLLFLFSSAYSRGVFRRDAHKSEVAHRFKDLGEENF\n")
    (tmp_path / "chosen.txt").write_text("".join(f"s{n}\n" for n in range(0, 40, 2)))
    both(swsearch, tmp_path, "some.fasta", "--alphabet", "protein")
    query = ["query", "q.fasta", "--store", "none", "--format", "tsv", "--top", "99", "--evalue", "1e9"]
    for options in ([], ["--include", "chosen.txt"]):
        found = {
            swsearch(*query[:2], database, *query[2:], "--engine", engine, *options).out
            for engine in ("reference", "cpu")
            for database in ("plain.db", "sliced.db")
        }
        (only,) = found
        assert only.count("\n") == (21 if options else 41)


@pytest.fixture
def small_db(swsearch, tmp_path) -> Path:
    (tmp_path / "abc.fasta").write_text(">a first\nMKVLW\n>b\nMKV\n>c\nWWWWWWW\n>d\nML\n")
    indexed = swsearch("index", "abc.fasta", "-o", "small.db", "--alphabet", "protein", "--slices", "2")
    assert indexed.code == 0
    assert "4 sequences, 17 residues, protein (as asked), 2 slices" in indexed.err
    return tmp_path / "small.db"


def test_slices_are_shown_and_changed(swsearch, small_db):
    """Source: counts made by hand: 7 + 2 and 5 + 3 residues."""
    assert "\nslices      2 of 8 to 9 residues each\n" in swsearch("db", "info", small_db).out
    assert "is compact already" in swsearch("db", "compact", small_db).err
    assert "2 segments made 4 slices" in swsearch("db", "compact", small_db, "--slices", "4").err
    merged = swsearch("db", "compact", small_db, "--slices", "1")
    assert "4 segments made one" in merged.err
    assert "\nslices      none\n" in swsearch("db", "info", small_db).out


def test_impossible_slices_are_one_line(swsearch, tmp_path, small_db):
    for number, message in ((0, "--slices 0: 1 to 128 slices are possible"), (5, "4 sequences cannot be divided")):
        for command in (["index", "abc.fasta", "-o", "new.db"], ["db", "compact", small_db]):
            refused = swsearch(*command, "--slices", number)
            assert refused.code == 1
            assert message in refused.err
            assert refused.err.count("\n") == 1
    assert not (tmp_path / "new.db").exists()

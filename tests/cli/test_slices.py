"""Databases in slices on the command line: searches give the bytes of the database without slices.

The expected reports come from the same sequences indexed without slices; the messages are written by hand.
"""

from pathlib import Path

import pytest

from tests.cli.conftest import DATA
from tests.cli.test_db import reports

QUERIES = DATA / "queries.fasta"


@pytest.fixture
def three_queries(tmp_path) -> Path:
    """The first three of the queries, for searches whose number is not the point."""
    path = tmp_path / "queries.fasta"
    path.write_text(">".join(QUERIES.read_text().split(">")[:4]))
    return path


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
    assert swsearch("index", "some.fasta", "-o", "plain.db").code == 0
    assert swsearch("index", "some.fasta", "-o", "sliced.db", "--slices", 3).code == 0
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

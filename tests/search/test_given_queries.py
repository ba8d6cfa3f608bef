"""Queries in memory: every type gives the results of a file with the same sequences; other types raise at the call.

The expected results are those of the search with the file.
"""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from Bio import SeqIO
from Bio.Seq import MutableSeq, Seq
from Bio.SeqRecord import SeqRecord

import swsearch
from swsearch.errors import AlphabetMismatch, InputError

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    (folder / "subjects.fasta").write_text((DATA / "queries.fasta").read_text())
    swsearch.build_database([folder / "subjects.fasta"], folder / "proteins.db")
    swsearch.build_database([DATA / "lambda_phage.fasta"], folder / "dna.db")
    return folder / "proteins.db"


def found(queries, database):
    return [(result.header, result.letters, result.hits) for result in swsearch.search_database(queries, database)]


def test_every_kind_finds_what_a_file_finds(database):
    """Source: the search with the file itself; Biopython reads the same file."""
    path = DATA / "queries.fasta"
    expected = found(path, database)
    assert len(expected) > 2
    assert found(str(path), database) == expected
    with path.open() as file:
        theirs = list(SeqIO.parse(file, "fasta"))
    assert found(theirs, database) == expected
    assert found(iter(theirs), database) == expected
    assert found([(record.description, str(record.seq)) for record in theirs], database) == expected
    ours = [swsearch.sequence(str(record.seq), "protein", header=record.description) for record in theirs]
    assert found(ours, database) == expected
    assert found(theirs[0], database) == expected[:1] == found(ours[0], database)
    nameless = [("", letters, hits) for _, letters, hits in expected]
    assert found([str(record.seq) for record in theirs], database) == nameless
    assert found([record.seq for record in theirs], database) == nameless
    assert found(MutableSeq(str(theirs[0].seq)), database) == nameless[:1]
    assert found([], database) == []


@pytest.mark.parametrize(
    ("record", "header"),
    [
        (SeqRecord(Seq("MKVLA"), id="one"), "one"),
        (SeqRecord(Seq("MKVLA"), id="one", description="a protein"), "one a protein"),
        (SeqRecord(Seq("MKVLA"), id="one", description="one a protein"), "one a protein"),
        (SeqRecord(Seq("MKVLA")), ""),
    ],
)
def test_biopythons_records_keep_their_names(database, record, header):
    assert [name for name, _, _ in found([record], database)] == [header]


@pytest.mark.parametrize(
    ("queries", "error", "words"),
    [
        (7, TypeError, "queries is an int; give a path"),
        (None, TypeError, "queries is None; give a path"),
        (b"MKV", TypeError, "queries is a bytes; give a path"),
        (["MKV", 7], TypeError, r"queries\[1\] is an int, not a query"),
        (["MKV", None], TypeError, r"queries\[1\] is None, not a query"),
        ([b"MKV"], TypeError, r"queries\[0\] is a bytes, not a query"),
        ([("a", "b", "c")], TypeError, r"queries\[0\] is a tuple, not a query"),
        ([("a", 1)], TypeError, r"queries\[0\] is a tuple, not a query"),
        ([Path("q.fasta")], TypeError, r"queries\[0\] is a PosixPath; a path is given alone"),
        ([SeqRecord(None, id="x")], TypeError, r"queries\[0\] is a SeqRecord, not a query"),
        (["MKV", "queries.fasta"], InputError, r"queries\[1\], residue 8: '\.' is a gap"),
        (["MKV", ("a", "MK7")], InputError, r"queries\[1\], residue 3: '7' is not in alphabet protein"),
        ([SeqRecord(Seq("MK V"))], InputError, r"queries\[0\], residue 3: byte 0x20"),
        ([Seq(None, length=5)], InputError, r"queries\[0\]: Sequence content is undefined"),
        (["MKV", ""], InputError, "the query has 0 residues"),
        (["ACGTTGCA" * 5], AlphabetMismatch, r"queries\[0\] is dna, .*translate='query' .*swsearch\.sequence\(letters"),
        ("nowhere.fasta", InputError, "nowhere.fasta: cannot be read"),
    ],
)
def test_what_is_no_query_is_named_at_the_call(database, queries, error, words):
    with pytest.raises(error, match=words):
        swsearch.search_database(queries, database)


def test_proteins_against_dna_hear_of_translation_at_the_call(database):
    dna = database.with_name("dna.db")
    with pytest.raises(InputError, match=r"queries\[0\], residue 3: 'L' .* translate='subject' .*dna\.db is dna"):
        swsearch.search_database(["MKLV"], dna)
    with pytest.raises(AlphabetMismatch, match=r"query p is protein, but dna is needed; .*translate='subject'"):
        swsearch.search_database([swsearch.sequence("MKLV", "protein", "p")], dna)


def test_options_and_databases_are_checked_at_the_call(database):
    with pytest.raises(TypeError, match="options is a dict; a SearchOptions is needed"):
        swsearch.search_database(["MKV"], database, {"top": 3})
    with pytest.raises(swsearch.SwSearchError, match=r"nowhere\.db"):
        swsearch.search_database(["MKV"], "nowhere.db")
    with pytest.raises(TypeError, match="database is None; give a path, an open database, or a list of these"):
        swsearch.search_database(["MKV"], None)
    with pytest.raises(swsearch.SwSearchError, match="the name of the database is empty; give its path"):
        swsearch.search_database(["MKV"], "")
    with pytest.raises(swsearch.SwSearchError, match="the name of the database is empty; give the path of the new"):
        swsearch.build_database("queries.fasta", "")
    with pytest.raises(InputError, match="threads='2': a whole number is needed"):
        swsearch.search_database(["MKV"], database, threads="2")
    with pytest.raises(InputError, match=r"devices='0': give a list of CUDA numbers, such as \[0, 1\]"):
        swsearch.search_database(["MKV"], database, devices="0")
    with pytest.raises(TypeError, match="results is None; give the results of a search, or the record"):
        swsearch.write_report(None, "x.tsv", "tsv")
    with (
        swsearch.open_searcher(database) as searcher,
        pytest.raises(TypeError, match=r"of type str; swsearch\.seq"),
    ):
        searcher.search(["MKV"])
    with pytest.raises(TypeError, match="letters is None; a string is needed"):
        swsearch.sequence(None, "protein")


def test_results_that_nobody_takes_close_what_they_opened(database):
    results = swsearch.search_database(["MKV", "MKL"], database)
    assert isinstance(results, Iterator)
    next(results)
    results.close()
    with pytest.raises(InputError, match="the results were closed after 1 of 2 queries"):
        list(results)
    swsearch.search_database(["MKV"], database)
    gc.collect()  # a file that stays open would cause a warning and therefore an error

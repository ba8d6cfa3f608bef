"""``a3m``: the rows by hand, the rows that this program reads back, and what is refused."""

import re
from dataclasses import replace

import pytest

from swsearch.errors import InputError
from swsearch.hits.cigar import gapped
from swsearch.hits.formatting import shown
from swsearch.query.multiple_alignment import read_aligned_fasta
from swsearch.report.formats import FORMATS, new_report
from tests.report.conftest import BASES, DNA_QUERIES, DNA_RUN, GAPPED, MINUS, PROTEIN_QUERIES, PROTEIN_RUN, SELF
from tests.report.test_several_alignments import QUERY, RUN
from tests.report.test_translated import CASES, STATS, QueryResult, run_of


def rows_of(report: str) -> list[list[tuple[list[str], str]]]:
    """The rows of each block: columns of the header, letters."""
    blocks = [block.splitlines() for block in report.split("\0")]
    assert all(line.startswith(">") == (place % 2 == 0) for block in blocks for place, line in enumerate(block))
    return [[(header[1:].split("\t"), row) for header, row in zip(b[::2], b[1::2], strict=True)] for b in blocks]


@pytest.mark.parametrize(("run", "queries"), [(PROTEIN_RUN, PROTEIN_QUERIES), (DNA_RUN, DNA_QUERIES), (RUN, [QUERY])])
def test_columns_are_those_of_the_pairwise_alignments(written, run, queries):
    """Source: the two rows of ``qseq`` and ``sseq``, aligned column by column."""
    for query, rows in zip(queries, rows_of(written("a3m", run, queries)), strict=True):
        assert rows[0] == ([query.header.split()[0]], query.letters)
        assert len(rows) == 1 + len(query.hits)
        for hit, (columns, row) in zip(query.hits, rows[1:], strict=True):
            above, below = gapped(*shown(query.letters, hit))
            found = re.sub("[a-z]", "", row)
            assert len(found) == query.length
            start = hit.alignment.query_start
            pairs = [(a, b) for a, b in zip(above, below, strict=True) if a != "-"]
            assert "".join(a for a, _ in pairs) == query.letters[start : start + len(pairs)]
            assert found == "-" * start + "".join(b for _, b in pairs) + "-" * (query.length - start - len(pairs))
            assert re.sub("[-A-Z]", "", row).upper() == "".join(
                b for a, b in zip(above, below, strict=True) if a == "-"
            )
            assert columns[0] == hit.subject_header.split()[0]


def test_this_program_reads_its_rows(written, tmp_path):
    """Source: the reader of A3M profiles, which requires rows of one length."""
    path = tmp_path / "query.a3m"
    path.write_text(written("a3m"))
    read, short = read_aligned_fasta(path, insertions=True)
    assert (short.name, short.codes.shape) == ("q2", (1, 7))
    assert read.codes.shape == (3, 144)
    assert (read.codes[0] == read.codes[1]).all()
    assert (read.codes[2] == 31).sum() == 16 + 27


def test_headers_have_the_columns_of_mmseqs2(written):
    """By hand: 98 of 120 columns are 0.8166…; positions from 0, the last one included; a minus strand descends."""
    ((_, first, second), (query,)) = rows_of(written("a3m"))
    assert first[0] == ["s1", "280", "1.000", "2.580E-103", "0", "143", "144", "0", "143", "144"]
    assert second[0] == ["s3", "176", "0.816", "1.420E-62", "0", "116", "144", "0", "103", "104"]
    assert query == (["q2"], "WCWCHHW")
    ((_, plus, minus),) = rows_of(written("a3m", DNA_RUN, DNA_QUERIES))
    assert plus[0][4:] == ["0", "65", "66", "4", "69", "74"]
    assert minus[0] == ["m2", "101", "0.939", "4.190E-27", "0", "65", "66", "64", "3", "69"]


def test_without_statistics_there_is_the_raw_score(written):
    hit = replace(SELF, bits=None, evalue=None)
    query = replace(PROTEIN_QUERIES[0], hits=(hit,))
    assert rows_of(written("a3m", queries=(query,)))[0][1][0][:4] == ["s1", "715", "1.000", "NaN"]


def test_case_stops_and_odd_headers(written):
    """By hand: a masked query and subject are upper case in the columns; a stop is X; an identifier stays one word."""
    alignment = replace(
        GAPPED.alignment, query_start=1, query_end=4, subject_start=2, subject_end=6, cigar="1=2D1X1=", columns=5,
        identities=2, subject_letters="kaC*c",
    )  # fmt: skip
    hit = replace(GAPPED, subject_header="a\0b\x7f c", subject_length=9, alignment=alignment)
    query = replace(PROTEIN_QUERIES[0], header="", letters="mkwc*", hits=(hit,))
    report = written("a3m", queries=(query,))
    assert report == ">unnamed\nMKWCX\n>a_b_\t176\t0.400\t1.420E-62\t1\t3\t5\t2\t5\t9\n-KacXC-\n"


def test_an_alignment_that_does_not_fit_its_letters_is_refused(written):
    damaged = replace(SELF, alignment=replace(SELF.alignment, cigar="143="))
    with pytest.raises(InputError, match="covers 143 query residues, 144 are given"):
        written("a3m", queries=(replace(PROTEIN_QUERIES[0], hits=(damaged,)),))


@pytest.mark.parametrize("name", CASES)
def test_translated_queries_are_refused_and_translated_subjects_are_not(written, name):
    """By hand: MKILWH on bases 21 down to 4 of 26, counted from 0 in the header."""
    translate, hit, letters = CASES[name]
    run, query = run_of(translate), QueryResult(0, "q1 the query", letters, (hit,), 1, STATS)
    if name == "tblastn":
        ((_, row),) = rows_of(written("a3m", run, [query]))
        assert row[0][4:] == ["0", "5", "6", "20", "3", "26"]
        assert row[1] == "MKILWH"
        assert {*FORMATS} - {name for name, form in FORMATS.items() if form.fits(run)} == {"sam"}
        return
    for attempt in (lambda: written("a3m", run, [query]), lambda: new_report("a3m").format.check_fits(run)):
        with pytest.raises(InputError, match="a3m cannot hold a search with a translated query"):
            attempt()
    assert {*FORMATS} - {name for name, form in FORMATS.items() if form.fits(run)} == {"sam", "a3m", "sto", "afasta"}


def test_the_minus_strand_is_in_the_direction_of_the_query(written):
    """By hand: positions 6-9 of the query CTGATCGATT; the subject's letters are their reverse complement."""
    alignment = replace(MINUS.alignment, query_start=5, query_end=9, subject_start=2, subject_end=6, cigar="4=",
                        columns=4, identities=4, gap_residues=0, gap_openings=0, subject_letters="ATCG")  # fmt: skip
    query = replace(DNA_QUERIES[0], letters="CTGATCGATT", hits=(replace(MINUS, alignment=alignment),))
    assert rows_of(written("a3m", DNA_RUN, [query]))[0][1][1] == "-----CGAT-"
    assert len(BASES) == DNA_QUERIES[0].length

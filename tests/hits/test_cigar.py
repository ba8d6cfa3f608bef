"""CIGAR strings and the columns that reports derive from them. The expected values are written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsearch.errors import InputError
from swsearch.hits import cigar
from swsearch.scoring.matrix import match_mismatch, named_matrix


@given(st.text("=XID", max_size=40))
def test_parse_undoes_run_length(operations):
    """Expected: the original operations."""
    assert "".join(op * n for n, op in cigar.parse(cigar.run_length(operations))) == operations


@pytest.mark.parametrize("text", ["M", "3", "3M", "0=", "03=", "3=2", "=3", "3 =", "3=4=", "-1="])
def test_what_is_no_cigar_is_refused(text):
    """Expected by hand: counts from 1, an operation of =XID each, adjacent operations different."""
    with pytest.raises(InputError, match="CIGAR"):
        cigar.parse(text)


def test_counts():
    """Expected by hand."""
    counts = cigar.count("5=1X2D3=4I1=")
    assert (counts.identities, counts.mismatches, counts.insertions, counts.deletions) == (9, 1, 4, 2)
    assert (counts.columns, counts.query_residues, counts.subject_residues, counts.gap_openings) == (16, 14, 12, 2)


def test_rows_and_midlines():
    """Expected by hand: BLOSUM62 gives K:R +2 and A:W -3; DNA marks only equal bases."""
    args = ("MKALV", "MRWGLV", "1=2X1D2=")
    assert cigar.gapped(*args) == ("MKA-LV", "MRWGLV")
    assert cigar.midline(*cigar.gapped(*args), named_matrix("BLOSUM62")) == "M+  LV"
    assert cigar.midline(*cigar.gapped("acgT", "ACCU", "2=1X1="), match_mismatch(2, -3)) == "|| |"


def test_btop():
    """Expected by hand from BLAST's description: counts of matches, otherwise the query's and the subject's letter."""
    assert cigar.btop("MKALVW", "MRWGLV", "1=2X1D2=1I") == "1KRAW-G2W-"
    assert cigar.btop("acgt", "ACGT", "4=") == "4"


def test_letters_that_the_cigar_does_not_cover_are_refused():
    """Expected by hand."""
    with pytest.raises(InputError, match="covers 3 query residues, 4 are given"):
        cigar.gapped("ACGT", "ACG", "3=")
    with pytest.raises(InputError, match="covers 4 subject residues, 3 are given"):
        cigar.gapped("ACGT", "ACG", "4=")

"""The conversion of a matrix to text and back. Expected values: the matrix itself, and Biopython's matrices."""

import io

import numpy as np
import pytest
from Bio.Align import substitution_matrices

from swsearch.errors import ScoringError
from swsearch.scoring.matrix import (
    match_mismatch,
    matrix_file,
    matrix_names,
    matrix_text,
    named_matrix,
    parse_matrix_text,
)
from swsearch.sequences.alphabet import DNA, PROTEIN


def test_a_named_matrix_comes_back_from_its_text():
    """Source: the matrix itself, in Biopython's copy."""
    for name in matrix_names():
        matrix = named_matrix(name)
        assert parse_matrix_text(matrix_text(matrix), name, matrix.alphabet) == matrix


def test_a_dna_matrix_comes_back_from_its_text():
    matrix = match_mismatch(2, -3)
    assert parse_matrix_text(matrix_text(matrix), matrix.name, DNA) == matrix


def test_biopython_reads_the_text():
    """Source: Biopython's own BLOSUM62, for the letters that it has."""
    ours = substitution_matrices.read(io.StringIO(matrix_text(named_matrix("BLOSUM62"))))
    theirs = substitution_matrices.load("BLOSUM62")
    letters = "".join(theirs.alphabet)
    assert np.array_equal(ours.select(letters), theirs)


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "  A R\nA 1 2\n", "  A R\nA 1 2\nN 1 2\n", "  A X\nA 1 x\nX 1 2\n"]
)
def test_what_is_no_matrix_is_refused(text):
    with pytest.raises(ScoringError, match="the stored scores of matrix M"):
        parse_matrix_text(text, "M", PROTEIN)


BAD_TABLES = [
    ("   A  C  X\nA  5 -4  0\nC -4  5\nX  0  0 -1\n", "line 3: 2 scores in row C, but 3 column letters"),
    ("   A  C  X\nA  5 -4  0\n", "without a row for C"),
    ("   A  C  X\nA  5 -4  0\nA -4  5  0\nX  0  0 -1\n", "line 3: there are two rows A"),
    ("   A  AC X\nA  5 -4  0\nAC -4  5  0\nX  0  0 -1\n", "line 1, column letter 2: 'AC' is not a letter"),
    ("   A  a  X\nA  5 -4  0\na -4  5  0\nX  0  0 -1\n", "line 1: there are two columns A"),
    ("   A  X\nA  1_0  0\nX  0  -1\n", "line 2: score '1_0' of A with A is not a whole number"),
    ("   A  X\nA  nan  0\nX  0  -1\n", "line 2: score 'nan' of A with A is not a whole number"),
    ("   A  X\nA  " + "9" * 400 + "  0\nX  0  -1\n", "line 2: score 9+ of A with A is outside"),
]


@pytest.mark.parametrize(("text", "words"), BAD_TABLES)
def test_a_matrix_that_is_cut_or_mixed_up_is_refused(tmp_path, text, words):
    """Missing rows and scores used to count as 0; expected words: the line and what is wrong with it."""
    path = tmp_path / "mine.mat"
    path.write_text(text)
    with pytest.raises(ScoringError, match=words) as caught:
        matrix_file(path, PROTEIN)
    assert "mine.mat" in str(caught.value)
    with pytest.raises(ScoringError, match=words):
        parse_matrix_text(text, "M", PROTEIN)


def test_rows_of_a_matrix_may_come_in_any_order(tmp_path):
    path = tmp_path / "mine.mat"
    path.write_text("# mine\n   A  R  X\nR  -2  5  0\n\n# more\nX 0 0 -1\nA  4 -1  0\n")
    matrix = matrix_file(path, PROTEIN)
    assert (matrix.score("A", "R"), matrix.score("R", "A"), matrix.score("R", "R")) == (-1, -2, 5)

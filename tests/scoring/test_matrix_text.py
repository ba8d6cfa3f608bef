"""The conversion of a matrix to text and back. Expected values: the matrix itself, and Biopython's matrices."""

import io

import numpy as np
import pytest
from Bio.Align import substitution_matrices

from swsearch.errors import ScoringError
from swsearch.scoring.matrix import (
    matrix_file,
    matrix_names,
    matrix_text,
    named_matrix,
    parse_matrix_text,
)
from swsearch.sequences.alphabet import PROTEIN


def test_a_named_matrix_comes_back_from_its_text():
    """Source: the matrix itself, in Biopython's copy."""
    for name in matrix_names():
        matrix = named_matrix(name)
        assert parse_matrix_text(matrix_text(matrix), name, matrix.alphabet) == matrix


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


def test_rows_of_a_matrix_may_come_in_any_order(tmp_path):
    path = tmp_path / "mine.mat"
    path.write_text("# mine\n   A  R  X\nR  -2  5  0\n\n# more\nX 0 0 -1\nA  4 -1  0\n")
    matrix = matrix_file(path, PROTEIN)
    assert (matrix.score("A", "R"), matrix.score("R", "A"), matrix.score("R", "R")) == (-1, -2, 5)

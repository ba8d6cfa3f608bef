"""Matrices and gap costs, against Biopython's own tables and hand calculation."""

import numpy as np
import pytest
from Bio.Align import substitution_matrices

from swsearch.errors import ScoringError
from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.matrix import (
    PAD_SCORE,
    SubstitutionMatrix,
    match_mismatch,
    matrix_file,
    matrix_names,
    named_matrix,
)
from swsearch.sequences.alphabet import DNA, IUPAC_BASES, PAD_CODE, PROTEIN


@pytest.mark.parametrize(
    "name", ["BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM80", "BLOSUM90", "PAM30", "PAM70", "PAM250"]
)
def test_named_matrices_hold_ncbis_scores(name):
    """Source: Biopython's copy of NCBI's files, letter pair by letter pair; U, O and J are compared as X."""
    loaded = substitution_matrices.load(name)
    matrix = named_matrix(name)
    for query in PROTEIN.letters:
        for subject in PROTEIN.letters:
            a, b = PROTEIN.scored_as.get(query, query), PROTEIN.scored_as.get(subject, subject)
            assert matrix.score(query, subject) == loaded[a, b]


def test_padding_scores_lowest_against_everything():
    """A kernel may run over padding because no alignment gains there."""
    for matrix in (named_matrix("BLOSUM62"), match_mismatch(2, -3)):
        assert (matrix.scores[PAD_CODE] == PAD_SCORE).all()
        assert (matrix.scores[:, PAD_CODE] == PAD_SCORE).all()


def test_names_are_found_in_any_case_and_unknown_ones_list_the_known():
    assert named_matrix("blosum62") == named_matrix("BLOSUM62")
    with pytest.raises(ScoringError, match="BLOSUM45, BLOSUM50, BLOSUM62"):
        named_matrix("BLOSUM63")
    assert "PAM250" in matrix_names()


def test_ambiguous_bases_score_the_mean_rounded_down():
    """Hand calculation with 2/-3: NA (2-9)/4 -> -2; RR (4-6)/4 -> -1; RY -3; NN (8-36)/16 -> -2; WA (2-3)/2 -> -1."""
    matrix = match_mismatch(2, -3)
    assert [matrix.score(*pair) for pair in ("NA", "RR", "RY", "NN", "WA", "UT", "UA")] == [-2, -1, -3, -2, -1, 2, -3]
    assert all(matrix.score(a, b) == matrix.score(b, a) for a in IUPAC_BASES for b in IUPAC_BASES)


def test_a_matrix_written_to_a_file_reads_back(tmp_path):
    """Source: the matrix itself, through Biopython's writer."""
    path = tmp_path / "mine.txt"
    path.write_text(str(substitution_matrices.load("BLOSUM62")))
    assert matrix_file(path, PROTEIN) == named_matrix("BLOSUM62")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not in NCBI's format"),
        ("   A  C\nA  1  x\nC  1  2\n", "not in NCBI's format"),
        ("   A  C\nA  1.5  0\nC  0  1.5\n", "not whole numbers|not in NCBI's format"),
        ("   A  C\nA  4 -1\nC -1  4\n", "has no row for"),
        ("   A  C  N\nA  400 -1 0\nC -1  4 0\nN 0 0 0\n", "outside -127"),
        ("   A  N\nA -1 -1\nN -1 -1\n", "no positive score"),
    ],
)
def test_unusable_matrix_files_are_one_clear_line(tmp_path, text, words):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(ScoringError, match=words) as caught:
        matrix_file(path, DNA)
    assert "\n" not in str(caught.value)


def test_a_missing_matrix_file_is_named(tmp_path):
    with pytest.raises(ScoringError, match=r"nowhere\.txt: No such file"):
        matrix_file(tmp_path / "nowhere.txt", DNA)


def test_matrices_cannot_be_changed_and_compare_by_content():
    matrix = named_matrix("BLOSUM62")
    with pytest.raises(ValueError, match="read-only"):
        matrix.scores[0, 0] = 1
    copy = SubstitutionMatrix("mine", PROTEIN, matrix.scores)
    assert copy == matrix
    assert hash(copy) == hash(matrix)
    other = np.array(matrix.scores)
    other[0, 0] += 1
    assert SubstitutionMatrix("mine", PROTEIN, other) != matrix


def test_a_gap_of_k_residues_costs_open_plus_k_extend():
    """Source: BLAST's "11/1", whose first residue costs 12."""
    assert [GapPenalty(11, 1).cost(k) for k in (0, 1, 2, 10)] == [0, 12, 13, 21]
    assert GapPenalty(0, 2).linear
    assert GapPenalty(11, 1).first == 12


@pytest.mark.parametrize(("opening", "extend"), [(-1, 1), (1, -1), (0, 0), (16_384, 1), (1, 16_384)])
def test_gap_costs_out_of_range_are_refused(opening, extend):
    with pytest.raises(ScoringError):
        GapPenalty(opening, extend)

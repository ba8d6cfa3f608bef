"""Matrices and gap costs, compared with Biopython's tables and with hand calculation."""

import io
import math
from fractions import Fraction

import numpy as np
import pytest
from Bio.Align import substitution_matrices

from swsearch.errors import ScoringError
from swsearch.scoring.matrix import (
    PAD_SCORE,
    SubstitutionMatrix,
    match_mismatch,
    matrix_file,
    matrix_names,
    matrix_text,
    named_matrix,
    parse_matrix_text,
    unit_of,
)
from swsearch.scoring.scheme import GapPenalty, default_gap
from swsearch.sequences.alphabet import DNA, IUPAC_BASES, PAD_CODE, PROTEIN

IN_TENTHS = {"DAYHOFF", "GENETIC", "JOHNSON", "JONES", "MDM78", "RISLER"}
"""Matrices with fractions and no score above 12.7; ten times the others' scores would not fit eight bits."""

PARTS_OF_PROTEIN = {"B": "DN", "Z": "EQ", "X": "ACDEFGHIKLMNPQRSTVWY"}


@pytest.mark.parametrize("name", sorted(set(substitution_matrices.load()) - {"SCHNEIDER"}))
def test_named_matrices_have_biopythons_scores(name):
    """Source: ``Bio.Align``, in exact arithmetic. Scores are rounded, halves to even; a letter that the matrix lacks
    has the mean score of the letters that it represents, rounded down; U, O and J have the scores of X.
    """
    loaded = substitution_matrices.load(name)
    matrix, unit = named_matrix(name), unit_of(name)
    alphabet, parts = matrix.alphabet, PARTS_OF_PROTEIN if matrix.alphabet is PROTEIN else IUPAC_BASES
    published = {pair: Fraction(str(float(score))) for pair, score in loaded.items()}
    assert unit == (10 if name in IN_TENTHS else 1)
    rounded = {pair: round(score * unit) for pair, score in published.items()}

    def letters_of(letter):
        own = alphabet.scored_as.get(letter, letter)
        return own if own in loaded.alphabet else parts.get(own, "")

    for query in alphabet.letters:
        for subject in alphabet.letters:
            pairs = [rounded[a, b] for a in letters_of(query) for b in letters_of(subject)]
            lacks_stop = "*" in query + subject and "*" not in loaded.alphabet
            stop = 1 if query == subject else min(rounded.values())
            assert matrix.score(query, subject) == (
                stop if lacks_stop else math.floor(Fraction(sum(pairs), len(pairs)))
            )


def test_padding_scores_lowest_against_everything():
    """A kernel may compute over padding, because no alignment gains score there."""
    for matrix in (named_matrix("BLOSUM62"), match_mismatch(2, -3)):
        assert (matrix.scores[PAD_CODE] == PAD_SCORE).all()
        assert (matrix.scores[:, PAD_CODE] == PAD_SCORE).all()


def test_names_are_found_in_any_case_and_unknown_ones_get_suggestions():
    """Source: the names of Biopython's files. SCHNEIDER has scores of codons, which no sequence here contains."""
    assert named_matrix("blosum62") == named_matrix("BLOSUM62")
    assert named_matrix("nuc.4.4").alphabet is DNA
    assert set(matrix_names()) == set(substitution_matrices.load()) - {"SCHNEIDER"}
    assert set(matrix_names()) == {*matrix_names(PROTEIN), *matrix_names(DNA)}
    for wrong, similar in {"BLOSUM63": "BLOSUM62", "NUC44": "NUC.4.4", "gonnet": "GONNET1992"}.items():
        with pytest.raises(ScoringError, match=f"there is no matrix '{wrong}'; did you mean .*{similar}"):
            named_matrix(wrong)
    for wrong in ("SCHNEIDER", "0123456789", ""):
        with pytest.raises(ScoringError, match=f"there is no matrix '{wrong}'; .*swsearch matrices lists all"):
            named_matrix(wrong)


def test_the_dna_matrices_of_blast_are_those_of_match_and_mismatch():
    """Source: BLAST's scores. The files round the means of ambiguous letters in another way, so bases are compared."""
    bases = slice(4)
    for name, pair in {"BLASTN": (2, -3), "MEGABLAST": (1, -2), "NUC.4.4": (5, -4)}.items():
        assert np.array_equal(named_matrix(name).scores[bases, bases], match_mismatch(*pair).scores[bases, bases])


def test_named_matrices_have_gap_costs_in_their_unit():
    """Source: blastp's defaults; Chiaromonte, Yap and Miller 2002. A file with the name, but other scores, has those of
    its alphabet.
    """
    usual = {"BLOSUM62": "11/1", "BLOSUM45": "14/2", "PAM30": "9/1", "PAM70": "10/1", "HOXD70": "400/30"}
    assert {name: str(default_gap(named_matrix(name))) for name in usual} == usual
    other = SubstitutionMatrix("PAM30", PROTEIN, named_matrix("BLOSUM62").scores)
    assert str(default_gap(other)) == "11/1"


def test_ambiguous_bases_score_the_mean_rounded_down():
    """Hand calculation with 2/-3: NA (2-9)/4 -> -2; RR (4-6)/4 -> -1; RY -3; NN (8-36)/16 -> -2; WA (2-3)/2 -> -1."""
    matrix = match_mismatch(2, -3)
    assert [matrix.score(*pair) for pair in ("NA", "RR", "RY", "NN", "WA", "UT", "UA")] == [-2, -1, -3, -2, -1, 2, -3]
    assert all(matrix.score(a, b) == matrix.score(b, a) for a in IUPAC_BASES for b in IUPAC_BASES)


SQUARE = "   A  C  N\nA  4 -1 0\nC -1  4 0\nN 0 0 0\n"
BAD_MATRICES = {
    "empty": (b"", "bad.txt has no line of column letters"),
    "a word as score": (b"   A  C\nA  1  x\nC  1  2\n", "line 2: score 'x' of A with C is not a whole number"),
    "a fraction": (b"   A  C\nA  1.5  0\nC  0  1.5\n", "line 2: score '1.5' of A with A is not a whole number"),
    "digits in groups": (b"   A  C\nA  1  1_0\nC  1 0\n", "line 2: score '1_0' of A with C"),
    "other digits": ("   A  C\nA  1  ٣\nC  1 0\n".encode(), "line 2: byte 0xD9 has no place in a matrix"),
    "letters that lack": (b"   A  C\nA  4 -1\nC -1  4\n", "has no row for GT.* and none for N"),
    "out of range": (SQUARE.replace("4", "400").encode(), "line 2: score 400 of A with A is outside -127"),
    "below the range": (SQUARE.replace("-1", "-128").encode(), "line 2: score -128 of A with C is outside -127"),
    "endless digits": (SQUARE.replace("4", "4" * 5000).encode(), "line 2: score 4{16} of A with A is outside -127"),
    "a row too short": (b"   A  C  N\nA  4 -1\n", "line 2: 2 scores in row A, but 3 column letters"),
    "a row too long": (b"   A  C\nA  4 -1 0\n", "line 2: 3 scores in row A, but 2 column letters"),
    "a row too few": (b"   A  C  N\nA  4 -1 0\nC -1  4 0\n", "ends without a row for N"),
    "two rows": (SQUARE.replace("\nN", "\nA").encode(), "line 4: there are two rows A"),
    "two columns": (SQUARE.replace("C  N", "c  C").encode(), "line 1: there are two columns C"),
    "a row without column": (SQUARE.replace("\nN", "\nG").encode(), "line 4: row G has no column"),
    "no labels": (b" A C\n4 -1\n-1 4\n", "line 2, row label: '4' is not a letter of dna"),
    "a matrix of proteins": (b" A R N D C E\n", "line 1, column letter 6: 'E' is not a letter of dna"),
    "a password file": (b"root:x:0:0:root:/root:/bin/bash\n", "line 1, column letter 1: 'root:x:0:0:root:/roo' is not"),
    "binary": (b"\x7fELF\x02\x00\x00", "line 1: byte 0x7F has no place in a matrix"),
    "UTF-16": ("   A  C\n".encode("utf-16"), "line 1: byte 0xFF has no place in a matrix"),
    "huge": (b"#" * (1 << 20) + b"\n" + SQUARE.encode(), "more than 1,048,576 bytes"),
}


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_unusable_matrix_files_are_one_line_that_names_file_line_and_fault(tmp_path, case):
    text, words = BAD_MATRICES[case]
    path = tmp_path / "bad.txt"
    path.write_bytes(text)
    with pytest.raises(ScoringError, match=words) as caught:
        matrix_file(path, DNA)
    assert "bad.txt" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_matrix_files_may_look_like(tmp_path):
    """By hand: comments, a byte order mark, Windows line endings, another order of rows, lower case, 4.0 for 4."""
    plain, other = tmp_path / "plain.txt", tmp_path / "other.txt"
    plain.write_text(SQUARE)
    other.write_bytes("\ufeff# für Basen\r\n\r\n   a  C  n\r\nN 0 0 0\r\nA  4.0 -1. +0\r\nC -1  4 0\r\n".encode())
    assert matrix_file(other, DNA) == matrix_file(plain, DNA)


def test_a_file_may_lack_the_letters_that_stand_for_several(tmp_path):
    """By hand: B is the mean of N and D, (6 + 1 + 1 + 6)/4 = 3.5; the stop has the lowest score, and 1 with itself."""
    path = tmp_path / "twenty.txt"
    letters = "ACDEFGHIKLMNPQRSTVWY"
    scores = {("N", "N"): 6, ("D", "D"): 6, ("N", "D"): 1, ("D", "N"): 1, ("A", "A"): 4, ("W", "A"): -7}
    rows = [f"{a} {' '.join(str(scores.get((a, b), 0)) for b in letters)}" for a in letters]
    path.write_text("\n".join(["  " + " ".join(letters), *rows]))
    matrix = matrix_file(path, PROTEIN)
    assert [matrix.score(*pair) for pair in ("BB", "NB", "BA", "W*", "*W", "**", "XX", "UU")] == [
        3, 3, 0, -7, -7, 1, 0, 0,
    ]  # fmt: skip


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for name, words in (("nowhere.txt", "No such file"), (".", "Is a directory"), ("x" * 300, "File name too long")):
        with pytest.raises(ScoringError, match=f"matrix file .*{name}: {words}"):
            matrix_file(f"{tmp_path}/{name}", DNA)
    with pytest.raises(ScoringError, match="embedded null"):
        matrix_file("a\0b", DNA)


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
    assert GapPenalty(11, 1).first == 12


@pytest.mark.parametrize(("opening", "extend"), [(-1, 1), (1, -1), (0, 0), (16_384, 1), (1, 16_384)])
def test_gap_costs_out_of_range_are_refused(opening, extend):
    with pytest.raises(ScoringError):
        GapPenalty(opening, extend)

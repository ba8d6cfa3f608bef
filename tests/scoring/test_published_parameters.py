"""The published parameters of a scoring scheme, or the reason why there are none.

The expected values come from NCBI's tables and reports, and from the theory of ungapped alignments.
"""

from itertools import pairwise

import numpy as np
import pytest

from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import SubstitutionMatrix, match_mismatch, matrix_file, named_matrix
from swsearch.scoring.published_parameters import NoStatistics, find_statistics
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, N_CODES, PROTEIN

LETTERS = "ARNDCQEGHILKMFPSTWYV"

# BLAST's BLOSUM80, half bits, lower triangle in the order of LETTERS (NCBI C++ toolkit, sm_blosum80.c, public domain).
HALF_BIT_BLOSUM80 = """
5
-2 6
-2 -1 6
-2 -2 1 6
-1 -4 -3 -4 9
-1 1 0 -1 -4 6
-1 -1 -1 1 -5 2 6
0 -3 -1 -2 -4 -2 -3 6
-2 0 0 -2 -4 1 0 -3 8
-2 -3 -4 -4 -2 -3 -4 -5 -4 5
-2 -3 -4 -5 -2 -3 -4 -4 -3 1 4
-1 2 0 -1 -4 1 1 -2 -1 -3 -3 5
-1 -2 -3 -4 -2 0 -2 -4 -2 1 2 -2 6
-3 -4 -4 -4 -3 -4 -4 -4 -2 -1 0 -4 0 6
-1 -2 -3 -2 -4 -2 -2 -3 -3 -4 -3 -1 -3 -4 8
1 -1 0 -1 -2 0 0 -1 -1 -3 -3 -1 -2 -3 -1 5
0 -1 0 -1 -1 -1 -1 -2 -2 -1 -2 -1 -1 -2 -2 1 5
-3 -4 -4 -6 -3 -3 -4 -4 -3 -3 -2 -4 -2 0 -5 -4 -4 11
-2 -3 -3 -4 -3 -2 -3 -4 2 -2 -2 -3 -2 3 -4 -2 -2 2 7
0 -3 -4 -4 -1 -3 -3 -4 -4 3 1 -3 1 -1 -3 -2 0 -3 -2 4
"""


def scheme(matrix: SubstitutionMatrix, opening: int, extend: int) -> ScoringScheme:
    return ScoringScheme(matrix, GapPenalty(opening, extend))


def dna(match: int, mismatch: int, opening: int, extend: int) -> Statistics | NoStatistics:
    return find_statistics(scheme(match_mismatch(match, mismatch), opening, extend))


def write_matrix(path, scores: np.ndarray) -> None:
    lines = ["  " + " ".join(LETTERS + "X")]
    for letter, row in zip(LETTERS + "X", np.pad(scores, ((0, 1), (0, 1)), constant_values=-1), strict=True):
        lines.append(f"{letter} " + " ".join(str(int(value)) for value in row))
    path.write_text("\n".join(lines) + "\n")


def half_bit_blosum80() -> np.ndarray:
    scores = np.zeros((20, 20), dtype=int)
    for number, line in enumerate(HALF_BIT_BLOSUM80.split("\n")[1:-1]):
        scores[number, : number + 1] = [int(value) for value in line.split()]
    return scores + np.tril(scores, -1).T


def test_blosum62_has_the_published_values():
    """Source: blastp's report for 11/1 (Lambda 0.267, K 0.0410, a 1.90, alpha 42.6, sigma 43.6); b, β, τ by hand."""
    found = find_statistics(default_scheme(PROTEIN))
    assert isinstance(found, Statistics)
    assert (found.lam, found.k, found.a, found.alpha, found.sigma) == (0.267, 0.041, 1.9, 42.6028, 43.6362)
    assert found.b == pytest.approx(24 * (0.7916 - 1.9))
    assert found.beta == pytest.approx(24 * (4.96466 - 42.6028))
    assert found.tau == pytest.approx(24 * (4.96466 - 43.6362))
    assert found.score_step == 1


def test_dna_default_has_the_published_values():
    """Source: blastn's report for 2/-3, 5/2 (Lambda 0.625, K 0.410); even scores only."""
    found = find_statistics(default_scheme(DNA))
    assert isinstance(found, Statistics)
    assert (found.lam, found.k, found.a, found.score_step) == (0.625, 0.41, 0.8, 2)


def test_a_matrix_is_known_by_content(tmp_path):
    """Source: BLOSUM62's scores written to a file under another name; then one score changed."""
    scores = named_matrix("BLOSUM62").scores[:20, :20].astype(int)
    write_matrix(tmp_path / "mine.txt", scores)
    same = find_statistics(scheme(matrix_file(tmp_path / "mine.txt", PROTEIN), 11, 1))
    assert same == find_statistics(default_scheme(PROTEIN))
    scores[3, 4] += 1
    write_matrix(tmp_path / "other.txt", scores)
    other = find_statistics(scheme(matrix_file(tmp_path / "other.txt", PROTEIN), 11, 1))
    assert isinstance(other, NoStatistics)
    assert "BLOSUM62" in other.reason
    assert "other.txt" in other.reason


def test_only_blasts_blosum80_has_blasts_parameters(tmp_path):
    """Source: the two matrices' λ without gaps, 0.343 and 0.226; the parameters are published with 0.343."""
    third = find_statistics(scheme(named_matrix("BLOSUM80"), 10, 1))
    assert isinstance(third, NoStatistics)
    assert "half bits" in third.reason
    write_matrix(tmp_path / "half.txt", half_bit_blosum80())
    half = find_statistics(scheme(matrix_file(tmp_path / "half.txt", PROTEIN), 10, 1))
    assert isinstance(half, Statistics)
    assert (half.lam, half.k) == (0.299, 0.071)


def test_a_missing_gap_pair_is_refused_with_the_nearest_first():
    """Source: the table; 11/2 is one step from 11/3."""
    found = find_statistics(scheme(named_matrix("BLOSUM62"), 11, 3))
    assert isinstance(found, NoStatistics)
    assert "BLOSUM62 with gap costs 11/3; choose one of 11/2, " in found.reason


@pytest.mark.parametrize(
    ("scoring", "lam", "k"),
    [
        ((1, -2, 3, 1), 1.32, 0.57),  # a row of the table
        ((10, -20, 30, 10), 0.132, 0.57),  # NCBI's unit test of reduced pairs: lambda 0.132, K 0.57
        ((4, -6, 10, 4), 0.3125, 0.41),  # twice 2/-3, 5/2
        ((1, -3, 5, 2), 1.374063122, 0.710602795),  # above the thresholds 2/2: ungapped
        ((2, -6, 10, 4), 0.687031561, 0.710602795),  # the same, doubled
        ((2, -7, 0, 8), 0.69, 0.73),  # NCBI's linear gap: 2/2 + 7
        ((2, -10, 0, 11), 0.695, 0.747),  # 1/-5 with extend 5.5, doubled
        ((2, -3, 0, 4), 0.55, 0.21),  # a row of the table, and the linear gap 2/2 + 3
        ((5, -4, 25, 10), 0.1915292834, 0.175528889),  # at the thresholds
    ],
)
def test_dna_rows_are_found(scoring, lam, k):
    """Source: NCBI's table, by hand; ungapped values from the theory (above)."""
    found = dna(*scoring)
    assert isinstance(found, Statistics)
    assert (found.lam, found.k) == pytest.approx((lam, k))


@pytest.mark.parametrize("scoring", [(2, -3, 0, 2), (2, -3, 7, 1), (1, -5, 0, 5), (2, -7, 0, 7), (10, -20, 31, 10)])
def test_dna_gap_costs_outside_the_table_are_refused(scoring):
    """Source: NCBI's table has none of these costs, and they do not reach the thresholds."""
    found = dna(*scoring)
    assert isinstance(found, NoStatistics)
    assert f"gap costs {scoring[2]}/{scoring[3]}; choose one of " in found.reason


def test_dna_pairs_outside_the_table_are_refused():
    """Source: NCBI's table; the reason lists the existing pairs."""
    found = dna(7, -3, 5, 2)
    assert isinstance(found, NoStatistics)
    assert "match 7, mismatch -3; choose one of 1/-5, 1/-4, 2/-7" in found.reason


def test_dna_matrices_with_transitions_are_refused():
    """Source: the parameters hold for one match score and one mismatch score."""
    scores = match_mismatch(2, -3).scores.copy()
    scores[DNA.code("A"), DNA.code("G")] = -1
    assert scores.shape == (N_CODES, N_CODES)
    found = find_statistics(scheme(SubstitutionMatrix("transitions", DNA, scores), 5, 2))
    assert isinstance(found, NoStatistics)


@pytest.mark.parametrize(
    ("scoring", "step"),
    [((2, -3, 5, 2), 2), ((4, -6, 10, 4), 2), ((3, -4, 6, 3), 2), ((4, -5, 6, 5), 1), ((2, -4, 4, 4), 1)],
)
def test_scores_are_judged_even_where_the_table_says_so(scoring, step):
    """Source: NCBI's rule for 2/-3, 2/-5, 2/-7 and 3/-4: an odd score has the E-value of the even score below it.

    Each score has its own bit score (tests/report/test_blastn.py compares both with blastn, also for multiples).
    """
    found = dna(*scoring)
    assert isinstance(found, Statistics)
    assert found.score_step == step
    scores = np.arange(4 * step)
    evalues = found.evalue(scores, 100, np.full(len(scores), 5000), 5000)
    assert all(low >= high for low, high in pairwise(evalues))
    assert len(np.unique(evalues)) == 4
    assert all(low < high for low, high in pairwise(found.bits(scores)))

"""The theory of ungapped alignments. Expected values: the published parameters, and random walks by hand."""

import csv
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

import swsearch.scoring
from swsearch.query.scale import query_lambda
from swsearch.scoring.matrix import SubstitutionMatrix, match_mismatch, named_matrix
from swsearch.scoring.ungapped import background, find_lambda, matrix_lambda, matrix_parameters, ungapped_parameters
from swsearch.sequences.alphabet import PROTEIN
from tests.scoring.test_published_parameters import half_bit_blosum80

TABLE = Path(swsearch.scoring.__file__).with_name("karlin_altschul.tsv").read_text().splitlines()
ROWS = list(csv.DictReader((line for line in TABLE if not line.startswith("#")), delimiter="\t"))
PUBLISHED = {row["scoring"]: row for row in ROWS if row["gap_open"] == "none"}


@pytest.mark.parametrize(
    "name", ["BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM80", "BLOSUM90", "PAM30", "PAM70", "PAM250"]
)
def test_protein_parameters_are_ncbis(name):
    """Source: the ungapped rows of NCBI's blast_stat.c, to the digits given there; BLOSUM80 is in half bits."""
    matrix = named_matrix(name)
    if name == "BLOSUM80":
        scores = np.array(matrix.scores)
        scores[:20, :20] = half_bit_blosum80()
        matrix = SubstitutionMatrix("half bits", PROTEIN, scores)
    found, row = matrix_parameters(matrix), PUBLISHED[name]
    assert found.lam == pytest.approx(float(row["lambda"]), abs=0.0001)
    assert found.k == pytest.approx(float(row["k"]), rel=0.01)
    assert found.a == pytest.approx(float(row["a"]), rel=0.04 if name == "PAM250" else 0.002)
    assert found.alpha == pytest.approx(float(row["alpha"]), rel=0.002)


@pytest.mark.parametrize(
    ("match", "mismatch", "lam", "k"), [(1, -3, 1.374, 0.711), (1, -2, 1.33, 0.621), (2, -3, 0.634, 0.408)]
)
def test_dna_parameters_are_blastns(match, mismatch, lam, k):
    """Source: blastn's output for ungapped alignments with these scores."""
    found = matrix_parameters(match_mismatch(match, mismatch))
    assert found.lam == pytest.approx(lam, abs=0.005)
    assert found.k == pytest.approx(k, abs=0.002)


@pytest.mark.parametrize("row", [row for row in ROWS if row["gap_open"].endswith("+")], ids=lambda row: row["scoring"])
def test_published_rows_of_dna_without_gaps_follow_from_the_scores(row):
    """Source: the theory; those of gaps that cost too much to occur."""
    found = matrix_parameters(match_mismatch(*map(int, row["scoring"].split("/"))))
    expected = [float(row[name]) for name in ("lambda", "k", "a", "alpha")]
    assert [found.lam, found.k, found.a, found.alpha] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("p", [0.05, 0.25, 0.4])
def test_a_random_walk_has_its_textbook_parameters(p):
    """Steps of +1 and -1 with probabilities p < q: λ = ln(q/p) and K = (q - p)²/q (gambler's ruin, by hand)."""
    found = ungapped_parameters(-1, np.array([1 - p, 0.0, p]))
    assert found.lam == pytest.approx(math.log((1 - p) / p), rel=1e-9)
    assert found.k == pytest.approx((1 - 2 * p) ** 2 / (1 - p), rel=1e-4)


def test_scores_in_steps_are_scores_of_their_lattice():
    """By hand: doubled scores halve λ and leave K unchanged."""
    once, twice = matrix_parameters(match_mismatch(1, -2)), matrix_parameters(match_mismatch(2, -4))
    assert twice.lam == pytest.approx(once.lam / 2, rel=1e-9)
    assert twice.k == pytest.approx(once.k, rel=1e-9)


def test_scores_that_do_not_fall_or_cannot_rise_have_no_parameters():
    assert ungapped_parameters(-1, np.array([0.4, 0.0, 0.6])) is None
    assert ungapped_parameters(-1, np.array([0.5, 0.0, 0.5])) is None
    assert ungapped_parameters(-2, np.array([0.5, 0.5])) is None


@pytest.mark.parametrize("name", ["BLOSUM45", "BLOSUM62", "PAM250"])
def test_lambda_solves_its_equation_and_is_the_same_wherever_it_is_asked(name):
    """Source: the equation with 40 digits; statistics, compositions and the scale of profiles use the same number."""
    matrix = named_matrix(name)
    lam = matrix_lambda(matrix)
    assert matrix_parameters(matrix).lam == lam
    p, scores = background(PROTEIN).tolist(), matrix.scores[:20, :20].tolist()
    with mpmath.workdps(40):

        def excess(x):
            return mpmath.fsum(p[i] * p[j] * mpmath.expm1(x * scores[i][j]) for i in range(20) for j in range(20))

        exact = mpmath.findroot(excess, lam)
        assert abs(lam / exact - 1) < 4e-16
    rows = np.repeat(matrix.scores[:20, :20], np.rint(background(PROTEIN) * 100_000).astype(int), axis=0)
    assert query_lambda(rows) == pytest.approx(lam, rel=1e-14)  # each amino acid with its natural frequency


@pytest.mark.parametrize("p", [1e-12, 0.3, 0.5 - 1e-12])
def test_lambda_is_found_near_its_limits(p):
    """Source: ln(q/p) of a random walk, where scores are almost never, or in almost half of the cases, positive."""
    lam = find_lambda(-1, np.array([1 - p, 0.0, p]))
    assert lam == pytest.approx(math.log1p((1 - 2 * p) / p), rel=1e-3 if p > 0.4 else 1e-14)
    assert find_lambda(-127, np.concatenate(([0.5], np.zeros(253), [0.5 - 1e-9]))) == pytest.approx(
        2e-9 / 127, rel=1e-6
    )


def test_background_frequencies_sum_to_one_and_leucine_leads():
    """Source: Robinson and Robinson 1991: leucine 9.0 %, tryptophan 1.3 %."""
    frequencies = background(PROTEIN)
    assert math.fsum(frequencies.tolist()) == 1.0
    assert frequencies.argmax() == PROTEIN.code("L")
    assert frequencies[PROTEIN.code("W")] == pytest.approx(0.0133, abs=1e-4)

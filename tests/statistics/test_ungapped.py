"""The theory without gaps gives the published parameters."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import swsearch.statistics
from swsearch.scoring.background import background
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.sequences.alphabet import PROTEIN
from swsearch.statistics.ungapped import matrix_parameters, ungapped_parameters

TABLE = Path(swsearch.statistics.__file__).with_name("karlin_altschul.tsv").read_text().splitlines()
PUBLISHED = {
    row["scoring"]: row
    for row in csv.DictReader((line for line in TABLE if not line.startswith("#")), delimiter="\t")
    if row["gap_open"] == "none"
}


@pytest.mark.parametrize("name", ["BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM90", "PAM30", "PAM70"])
def test_protein_parameters_are_ncbis(name):
    """Source: the ungapped rows of NCBI's blast_stat.c, to the digits that they have."""
    found, row = matrix_parameters(named_matrix(name)), PUBLISHED[name]
    assert found.lam == pytest.approx(float(row["lambda"]), abs=0.0001)
    assert found.k == pytest.approx(float(row["k"]), rel=0.01)
    assert found.a == pytest.approx(float(row["a"]), rel=0.002)
    assert found.alpha == pytest.approx(float(row["alpha"]), rel=0.002)


@pytest.mark.parametrize(
    ("match", "mismatch", "lam", "k"), [(1, -3, 1.374, 0.711), (1, -2, 1.33, 0.621), (2, -3, 0.634, 0.408)]
)
def test_dna_parameters_are_blastns(match, mismatch, lam, k):
    """Source: what blastn prints for ungapped alignments with these scores."""
    found = matrix_parameters(match_mismatch(match, mismatch))
    assert found.lam == pytest.approx(lam, abs=0.005)
    assert found.k == pytest.approx(k, abs=0.002)


@pytest.mark.parametrize("p", [0.05, 0.25, 0.4])
def test_a_random_walk_has_its_textbook_parameters(p):
    """Steps of +1 and -1 with chances p < q: λ = ln(q/p) and K = (q - p)²/q (gambler's ruin, by hand)."""
    found = ungapped_parameters(-1, np.array([1 - p, 0.0, p]))
    assert found.lam == pytest.approx(math.log((1 - p) / p), rel=1e-9)
    assert found.k == pytest.approx((1 - 2 * p) ** 2 / (1 - p), rel=1e-4)


def test_scores_in_steps_are_scores_of_their_lattice():
    """By hand: twice the scores halve λ and leave K."""
    once, twice = matrix_parameters(match_mismatch(1, -2)), matrix_parameters(match_mismatch(2, -4))
    assert twice.lam == pytest.approx(once.lam / 2, rel=1e-9)
    assert twice.k == pytest.approx(once.k, rel=1e-9)


def test_scores_that_do_not_fall_or_cannot_rise_have_no_parameters():
    assert ungapped_parameters(-1, np.array([0.4, 0.0, 0.6])) is None
    assert ungapped_parameters(-1, np.array([0.5, 0.0, 0.5])) is None
    assert ungapped_parameters(-2, np.array([0.5, 0.5])) is None


def test_background_frequencies_sum_to_one_and_leucine_leads():
    """Source: Robinson and Robinson 1991: leucine 9.0 %, tryptophan 1.3 %."""
    frequencies = background(PROTEIN)
    assert frequencies.sum() == pytest.approx(1.0)
    assert frequencies.argmax() == PROTEIN.code("L")
    assert frequencies[PROTEIN.code("W")] == pytest.approx(0.0133, abs=1e-4)

"""E-values of profiles, adjusted for composition: the documented formulas in plain Python, and what they change."""

from __future__ import annotations

import math

import numpy as np
import pytest

from swsearch.query.composition import SMALLEST_RATIO, ProfileAdjustment
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import PROTEIN
from tests.support import coded, random_protein

BLOSUM62 = named_matrix("BLOSUM62")
LAMBDA = matrix_lambda(BLOSUM62) or 0.0
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"


def scores_of(letters: str) -> np.ndarray:
    return np.ascontiguousarray(BLOSUM62.scores[PROTEIN.encode(letters)])


def plain_ratio(scores: np.ndarray, aligned: str) -> float:
    """λ' / λ by bisection."""
    p = background(PROTEIN).tolist()
    counted = [aligned.upper().count(a) for a in AMINO_ACIDS]
    r = [(n + 40 * q) / (sum(counted) + 40) for n, q in zip(counted, p, strict=True)]

    def excess(lam: float) -> float:
        rows = [sum(q * math.exp(lam * float(s)) for q, s in zip(r, row[:20], strict=True)) for row in scores]
        return sum(rows) / len(rows) - 1

    if excess(LAMBDA) <= 0:
        return 1.0
    low, high = LAMBDA / 2, LAMBDA
    if excess(low) >= 0:
        return 0.5
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return high / LAMBDA


def test_ratios_are_those_of_the_formula():
    """Source: the documented equation, solved by bisection; usual, biased, unknown, empty and lower-case letters."""
    rng = np.random.default_rng(3)
    query = PROTEIN.decode(random_protein(rng, 60)) + "LLLVVLILLVLLFFLLIVLL"
    scores = scores_of(query)
    adjustment = ProfileAdjustment(scores, LAMBDA, 0.267)
    aligned = [PROTEIN.decode(random_protein(rng, int(length))) for length in rng.integers(1, 200, 30)]
    aligned += [
        "LLLVVLILLVLLFFLLIVLLLLVVLILLVLLFFLLIVLLAVLIL",
        "L" * 500,
        "XBXZXX",
        "",
        "llllvvvlliifl",
        "WWWWCCCC",
        "E" * 90,
    ]
    expected = [plain_ratio(scores, one) for one in aligned]
    assert adjustment.ratios(coded(aligned), coded(aligned)) == pytest.approx(expected, rel=1e-9)
    assert min(expected) < 0.9 < max(expected) == 1.0


def test_a_profile_that_scores_a_bias_above_zero_has_the_smallest_ratio():
    adjustment = ProfileAdjustment(scores_of("L" * 30), LAMBDA, 0.267)
    assert adjustment.ratios(coded([""]), coded(["L" * 400])).tolist() == [SMALLEST_RATIO]


def test_evalues_grow_by_the_lost_score_and_never_shrink():
    """By hand: E exp(λ_g S (1 - ratio))."""
    rng = np.random.default_rng(4)
    adjustment = ProfileAdjustment(scores_of("LLVVFILMLLVVAGSTLIVF"), LAMBDA, 0.267)
    aligned = [random_protein(rng, 80), PROTEIN.encode("LVLVLIVLLFFLLVVI" * 3)]
    evalues, raw = np.array([1e-3, 1e-9]), np.array([80, 150], dtype=np.int32)
    adjusted = adjustment.adjusted(evalues, raw, aligned, aligned)
    ratios = adjustment.ratios(aligned, aligned)
    assert adjusted.tolist() == pytest.approx(
        [e * math.exp(0.267 * s * (1 - r)) for e, s, r in zip(evalues, raw.tolist(), ratios, strict=True)]
    )
    assert (adjusted >= evalues).all()
    assert adjusted[1] > 1e3 * evalues[1]
    assert adjustment.adjusted(np.empty(0), np.empty(0, dtype=np.int32), [], []).shape == (0,)


def test_an_evalue_of_zero_stays_zero():
    """E-values of scores above 3,000 are 0, and half of such a score is lost to the bias."""
    adjustment = ProfileAdjustment(scores_of("L" * 30), LAMBDA, 0.267)
    parts = coded([""]), coded(["L" * 4000])
    assert adjustment.adjusted(np.array([0.0]), np.array([30_000], dtype=np.int32), *parts).tolist() == [0.0]


def test_hits_do_not_depend_on_the_others():
    rng = np.random.default_rng(5)
    adjustment = ProfileAdjustment(scores_of(PROTEIN.decode(random_protein(rng, 50))), LAMBDA, 0.267)
    aligned = [random_protein(rng, int(length)) for length in rng.integers(1, 90, 20)]
    together = adjustment.ratios(aligned, aligned)
    assert together.tolist() == [float(adjustment.ratios([one], [one])[0]) for one in aligned]

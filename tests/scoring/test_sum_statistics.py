"""Sum statistics against their definition: the largest scores of a Poisson process, drawn at random."""

import math

import numpy as np
import pytest

from swsearch.scoring.sum_statistics import GAP_DECAY, divisor, log_factorial, sum_evalue, sum_probability


@pytest.mark.parametrize("r", [1, 2, 3, 5, 10])
def test_the_probability_is_that_of_the_best_scores_of_random_sequences(r):
    """Source: normalized scores of chance alignments are -ln of the points of a Poisson process (Karlin & Altschul)."""
    points = np.cumsum(np.random.default_rng(r).exponential(size=(200_000, r)), axis=1)
    sums = -np.log(points).sum(axis=1)
    for t in (-3.0, 0.0, 1.5, 4.0, 6.0):
        expected = float((sums >= t).mean())
        error = math.sqrt(expected * (1 - expected) / len(sums))
        assert sum_probability(r, t) == pytest.approx(expected, abs=4 * error + 1e-6)


@pytest.mark.parametrize("r", [2, 3, 6, 15])
def test_large_sums_have_the_limit_of_the_paper(r):
    """Source: exp(-t) t^(r-1) / (r! (r-1)!); the integral joins it within a tenth."""
    join = 40.0 + 10 * r
    before, after = sum_probability(r, join), sum_probability(r, join + 1e-9)
    assert before == pytest.approx(after, rel=0.1)
    t = 300.0
    limit = math.exp(-t + (r - 1) * math.log(t) - math.lgamma(r + 1) - math.lgamma(r))
    assert sum_probability(r, t) == pytest.approx(limit, rel=1e-9)


def test_evalues_decrease_with_the_sum_and_are_those_of_one_alignment_but_for_the_decay():
    """By hand: one alignment of 20 nats in one space, divided by 1 - d; weights of all lengths sum to 1."""
    assert sum_evalue(1, 20.0, 3.0) == pytest.approx(3 * math.exp(-20.0) / 0.9, rel=1e-6)
    for r in (1, 2, 4, 8):
        evalues = [sum_evalue(r, t, 1.0) for t in (-20.0, 0.0, 5.0, 20.0, 60.0, 119.0, 121.0, 400.0, 3000.0)]
        assert evalues == sorted(evalues, reverse=True)
    assert sum_evalue(2, 3000.0, 1.0) == 0.0
    assert math.fsum(divisor(r) for r in range(1, 40)) == pytest.approx(1.0)
    assert divisor(3) == pytest.approx((1 - GAP_DECAY) * GAP_DECAY**2)
    assert log_factorial(170) == pytest.approx(math.lgamma(171), rel=1e-12)

"""The fit recovers the distribution from which a sample was drawn. Expected values: that distribution, and scipy."""

import numpy as np
import pytest

from swsearch.errors import InputError
from swsearch.scoring.extreme_value import fit_extreme_value

LAM, LOG_K = 0.27, 9.5


@pytest.fixture(scope="module")
def sample():
    """40,000 draws from Gumbel's distribution, by scipy."""
    from scipy import stats

    return stats.gumbel_r.rvs(loc=LOG_K / LAM, scale=1 / LAM, size=40_000, random_state=3)


def counted(sample, edges):
    return np.histogram(sample, np.concatenate(([-np.inf], edges, [np.inf])))[0]


def test_all_of_a_sample_gives_what_scipy_finds(sample):
    """Source: scipy.stats.gumbel_r.fit on the numbers themselves; the histogram's cells are narrow."""
    from scipy import stats

    loc, scale = stats.gumbel_r.fit(sample)
    edges = np.arange(20.0, 90.0, 0.05)
    fit = fit_extreme_value(edges, counted(sample, edges))
    assert fit.lam == pytest.approx(1 / scale, rel=1e-3)
    assert fit.log_k == pytest.approx(loc / scale, rel=1e-3)
    assert fit.lam_error == pytest.approx(0.78 / np.sqrt(len(sample)), rel=0.02)  # Gumbel's known variance


def test_whole_numbers_are_fitted_as_what_they_are(sample):
    """Source: the parameters of the distribution; a fit that treated integers as exact values would have a wrong K."""
    edges = np.arange(20.0, 90.0)
    fit = fit_extreme_value(edges, counted(np.floor(sample), edges))
    assert fit.lam == pytest.approx(LAM, abs=3 * 0.78 / 200 * LAM)
    assert fit.log_k == pytest.approx(LOG_K, abs=0.15)


def test_a_spoilt_top_and_bottom_do_not_matter(sample):
    """Source: the parameters of the distribution; all scores below the median are lowered, and 1 % are relatives."""
    low = np.where(sample < np.median(sample), sample - 10.0, sample)
    spoilt = np.concatenate((low, np.full(400, 75.0)))
    edges = np.arange(np.median(sample), 55.0, 0.1)
    fit = fit_extreme_value(edges, counted(spoilt, edges), top_unknown=True)
    assert fit.lam == pytest.approx(LAM, rel=0.04)
    naive = fit_extreme_value(edges, counted(spoilt, edges))
    assert abs(naive.lam - LAM) > abs(fit.lam - LAM)


def test_an_area_that_shrinks_with_the_score_is_allowed_for():
    """Source: a sample drawn by inverting the distribution with the area (1 - x/1000)²."""
    uniform = np.random.default_rng(8).random(40_000)
    grid = np.arange(10.0, 120.0, 0.01)
    area = 2 * np.log(1 - grid / 1000)
    sample = np.interp(uniform, np.exp(-np.exp(LOG_K + area - LAM * grid)), grid)
    edges = np.arange(20.0, 90.0, 0.5)
    fit = fit_extreme_value(edges, counted(sample, edges), 2 * np.log(1 - edges / 1000))
    assert fit.lam == pytest.approx(LAM, rel=0.015)
    assert fit.log_k == pytest.approx(LOG_K, rel=0.015)


def test_too_few_scores_to_tell_are_refused():
    with pytest.raises(InputError, match="too few or too equal"):
        fit_extreme_value(np.arange(5.0), np.array([0, 3, 0, 0, 2, 0]))

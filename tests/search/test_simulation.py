"""Simulated parameters equal the published ones where these exist, and are the same on every machine."""

import json
import math
from functools import cache

import numpy as np
import pytest

from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.published_parameters import NoStatistics, find_statistics
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from swsearch.search import significance, simulation
from swsearch.search.significance import scheme_statistics
from swsearch.search.simulation import random_letters, simulate

BLOSUM62 = named_matrix("BLOSUM62")
THIRD_BIT = ScoringScheme(named_matrix("BLOSUM80"), GapPenalty(17, 2))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """An empty cache, on disk and in memory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    simulation._simulated.cache_clear()
    yield tmp_path / "cache" / "swsearch" / "statistics"
    simulation._simulated.cache_clear()


@pytest.fixture
def few_sequences(monkeypatch):
    """Use a seventh of the pairs, in tests that do not depend on their number."""
    monkeypatch.setattr(simulation, "N_SEQUENCES", 96)


@cache
def simulated_third_bit():
    return simulate(THIRD_BIT, threads=1)


@pytest.fixture
def third_bit(few_sequences):
    """A simulation of BLOSUM80 with one thread and few sequences."""
    return simulated_third_bit()


def splitmix64(state):
    """Return SplitMix64 by its authors' definition, in integers of unlimited size."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        yield mixed ^ (mixed >> 31)


def test_random_letters_are_those_of_splitmix64():
    """Source: the generator in plain Python, itself compared with the published first value for the state 1234567."""
    assert next(splitmix64(1234567)) == 6457827717110365317
    numbers = splitmix64((7 << 32) * 0x9E3779B97F4A7C15 % 2**64)
    frequencies = np.array([0.1, 0.2, 0.3, 0.4])
    expected = [int(np.searchsorted([0.1, 0.3, 0.6], (next(numbers) >> 11) * 2.0**-53, "right")) for _ in range(500)]
    assert random_letters(7, 500, frequencies).tolist() == expected


@pytest.mark.thorough
def test_blosum62_has_its_published_parameters():
    """Source: NCBI's table, λ 0.267 and K 0.041; tolerance 1.5 % and 12 %, which move E by 20 % at a score of 60."""
    found = simulate(ScoringScheme(BLOSUM62, GapPenalty(11, 1)), threads=2)
    assert found.lam == pytest.approx(0.267, rel=0.015)
    assert found.k == pytest.approx(0.041, rel=0.12)
    assert found.a == pytest.approx(1.9, rel=0.2)
    assert found.lam_error < 0.005


@pytest.mark.thorough
def test_dna_e_values_are_those_of_the_published_parameters(monkeypatch):
    """Source: E-values from NCBI's table for 2/-3 5/2, at even scores, for which that table holds."""
    scheme = ScoringScheme(match_mismatch(2, -3), GapPenalty(5, 2))
    published = find_statistics(scheme)
    monkeypatch.setattr(significance, "find_statistics", lambda scheme: NoStatistics("not in this test"))
    found = scheme_statistics(scheme, threads=2)
    assert isinstance(found, Statistics)
    assert found.source.startswith("simulated with 65,536 pairs of random sequences of 1,000 residues, match 2")
    scores = np.array([26, 32, 38])
    ratio = found.evalue(scores, 500, 5000, 10**6, 2) / published.evalue(scores, 500, 5000, 10**6, 2)
    np.testing.assert_allclose(ratio, 1.0, rtol=0.3)


def test_a_scheme_outside_the_tables_is_simulated_once(own_cache, monkeypatch, third_bit):
    """BLOSUM80 in thirds of a bit is in no table. Its parameters are stored on disk, where another process finds them;
    a file that cannot be read is written again.
    """
    calls = []
    monkeypatch.setattr(simulation, "simulate", lambda *scheme: calls.append(scheme) or third_bit)
    assert isinstance(find_statistics(THIRD_BIT), NoStatistics)
    first = scheme_statistics(THIRD_BIT, threads=1)
    assert isinstance(first, Statistics)
    assert 0.19 < first.lam < 0.226  # below the value without gaps
    (cached,) = own_cache.glob("*.json")
    simulation._simulated.cache_clear()  # as in a new process
    assert scheme_statistics(THIRD_BIT, threads=2) == first
    assert scheme_statistics(THIRD_BIT, threads=2) == first
    assert len(calls) == 1

    for damage in ('{"lam": 1', '{"lam": 1}', "[]"):
        cached.write_text(damage)
        simulation._simulated.cache_clear()
        assert scheme_statistics(THIRD_BIT, threads=2) == first
        assert json.loads(cached.read_text())["k"] == first.k
    assert len(calls) == 4


def test_threads_change_nothing(third_bit, few_sequences):
    """Source: a simulation with one thread."""
    assert simulate(THIRD_BIT, threads=2) == third_bit


def test_gaps_that_never_occur_need_no_simulation():
    """Source: NCBI's ungapped row for BLOSUM62: λ 0.3176, K 0.134; a 0.7916 and no gap terms."""
    found = scheme_statistics(ScoringScheme(BLOSUM62, GapPenalty(60, 2)))
    assert found.source.startswith("ungapped Karlin-Altschul theory")
    assert (round(found.lam, 4), round(found.k, 3), round(found.a, 4)) == (0.3176, 0.134, 0.7916)
    assert (found.b, found.beta, found.tau) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("matrix", "gap", "words"),
    [
        (BLOSUM62, (5, 1), r"grow with the length of the sequences \(3\.\d-fold from 250 to 1000 random residues\)"),
        (match_mismatch(1, -1), (0, 1), "choose larger gap costs"),
        (match_mismatch(5, -1), (5, 2), "random residues score 0 or more on average with match 5, mismatch -1"),
    ],
)
def test_schemes_of_the_linear_phase_are_refused_with_the_reason(matrix, gap, words):
    """BLOSUM62 5/1 and +1/-1 with gap 1 are in the linear phase (Waterman, Gordon and Arratia 1987); with 5/-1 a pair
    of bases scores (5 - 3)/4 on average, by hand.
    """
    found = scheme_statistics(ScoringScheme(matrix, GapPenalty(*gap)))
    assert isinstance(found, NoStatistics)
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(found.reason)


def test_published_schemes_are_not_simulated(monkeypatch):
    monkeypatch.setattr(simulation, "simulate", None)
    scheme = ScoringScheme(BLOSUM62, GapPenalty(11, 1))
    assert scheme_statistics(scheme) == find_statistics(scheme)
    assert math.isclose(scheme_statistics(scheme).lam, 0.267)

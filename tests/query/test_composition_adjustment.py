"""E-values adjusted for the composition of both aligned parts. Expected: the formulas, solved by SciPy or bisection."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from swsearch import _native
from swsearch.errors import InputError
from swsearch.query.composition import PSEUDOCOUNTS, SMALLEST_RATIO, PairAdjustment, ProfileAdjustment
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import SubstitutionMatrix, named_matrix
from swsearch.scoring.published_parameters import NoStatistics, find_statistics
from swsearch.scoring.scheme import ScoringScheme, default_scheme
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import AMINO_ACIDS, DNA, PROTEIN
from tests.support import coded, random_protein

BLOSUM62 = named_matrix("BLOSUM62")
LAMBDA = matrix_lambda(BLOSUM62) or 0.0


def statistics_of(scheme: ScoringScheme) -> Statistics:
    found = find_statistics(scheme)
    assert isinstance(found, Statistics)
    return found


def adjustment() -> PairAdjustment:
    found = PairAdjustment.of(BLOSUM62, statistics_of(default_scheme(PROTEIN)))
    assert found is not None
    return found


def random_part(rng: np.random.Generator, length: int, favoured: str = "") -> str:
    """Letters of natural composition, of which half are replaced by favoured ones."""
    letters = np.array(list(PROTEIN.letters[:20]))[rng.choice(20, length, p=background(PROTEIN))]
    if favoured:
        replaced = rng.random(length) < 0.5
        letters[replaced] = rng.choice(list(favoured), int(replaced.sum()))
    return "".join(letters.tolist())


def expected_ratio(query: str, subject: str) -> float:
    def composition(part: str) -> np.ndarray:
        counts = np.array([part.upper().count(letter) for letter in PROTEIN.letters[:20]])
        return (counts + PSEUDOCOUNTS * background(PROTEIN)) / (counts.sum() + PSEUDOCOUNTS)

    pairs = np.outer(composition(query), composition(subject))
    scores = BLOSUM62.scores[:20, :20].astype(float)

    def excess(x: float) -> float:
        return float((pairs * np.exp(x * scores)).sum() - pairs.sum())

    if excess(LAMBDA) <= 0:
        return 1.0
    return (
        max(SMALLEST_RATIO, brentq(excess, 0.01, LAMBDA, xtol=1e-14) / LAMBDA) if excess(0.01) < 0 else SMALLEST_RATIO
    )


PARTS = ["", "AILMV", "LKELKEKLEELKEKLEEL", "GPPGPPGPPGPPGPP", "Q" * 200, "acdefGHIKLMNPQRSTVWY", "XXBZJOU*", "W" * 60]


def test_ratios_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(1)
    parts = [*PARTS, *(random_part(rng, 120, favoured) for favoured in ("", "AL", "ILVFM", "KE", "GP", "S"))]
    pairs = [(one, other) for one in parts for other in parts]
    found = adjustment().ratios(coded([one for one, _ in pairs]), coded([other for _, other in pairs]))
    wanted = [expected_ratio(one, other) for one, other in pairs]
    assert found == pytest.approx(wanted, rel=1e-9)
    assert min(wanted) == SMALLEST_RATIO
    assert 1.0 in wanted
    assert len(set(wanted)) > 50


def test_the_evalue_grows_with_the_score_and_the_share_that_is_lost() -> None:
    """By hand: E' = E exp(λ_g S (1 - ratio))."""
    parts = coded(["L" * 300, "ILVFMILVFMLLVVIILLFFMMAILVLLVVILA", "MKTAYIAKQRQISFVKSHFSRQ"])
    evalues, scores = np.array([1e-20, 0.5, 3.0]), np.array([120, 60, 40], dtype=np.int32)
    ratios = adjustment().ratios(parts, parts)
    lam = statistics_of(default_scheme(PROTEIN)).lam
    wanted = evalues * np.exp(lam * scores * (1 - ratios))
    assert adjustment().adjusted(evalues, scores, parts, parts) == pytest.approx(wanted, rel=1e-12)
    assert ratios[0] == SMALLEST_RATIO
    assert SMALLEST_RATIO < ratios[1] < 1.0


def test_no_evalue_becomes_smaller_and_zero_stays_zero() -> None:
    rng = np.random.default_rng(2)
    parts = coded([random_part(rng, int(length)) for length in rng.integers(5, 400, 100)])
    evalues = np.full(100, 0.25)
    assert (adjustment().adjusted(evalues, np.full(100, 50, dtype=np.int32), parts, parts[::-1]) >= evalues).all()
    long = coded(["L" * 4000])
    huge = adjustment().adjusted(np.array([0.0]), np.array([30_000], dtype=np.int32), long, long)
    assert huge.tolist() == [0.0]


def test_a_hit_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(3)
    parts = coded([random_part(rng, 80, favoured) for favoured in ("", "AL", "KE", "GP")])
    together = adjustment().ratios(parts, parts).tolist()
    assert together == [adjustment().ratios([one], [one]).tolist()[0] for one in parts]
    assert adjustment().adjusted(np.empty(0), np.empty(0, dtype=np.int32), [], []).shape == (0,)


def test_schemes_without_statistics_or_with_positive_means_have_no_adjustment() -> None:
    assert PairAdjustment.of(BLOSUM62, NoStatistics("a reason")) is None
    positive = SubstitutionMatrix("positive", PROTEIN, np.abs(BLOSUM62.scores))
    assert PairAdjustment.of(positive, statistics_of(default_scheme(PROTEIN))) is None
    assert statistics_of(default_scheme(DNA)).lam > 0


def test_malformed_arrays_are_refused() -> None:
    letters, ends = np.zeros(5, np.uint8), np.array([3, 5], np.int64)
    scores = np.ascontiguousarray(BLOSUM62.scores[:20, :20], dtype=np.int32)

    def call(**changed: object) -> None:
        arguments = {
            "kinds_of_one": letters, "ends_of_one": ends, "kinds_of_other": letters, "ends_of_other": ends,
            "scores": scores, "background": background(PROTEIN), "pseudocounts": 40.0, "usual": 1.3, "lowest": 1.1,
            "scales": np.empty(2),
        }  # fmt: skip
        _native.composition_scales(**{**arguments, **changed})  # type: ignore[arg-type]

    call()
    for name, wrong in (
        ("ends_of_one", np.array([3, 6], np.int64)),
        ("ends_of_other", np.array([4, 3], np.int64)),
        ("ends_of_one", np.array([-1, 3], np.int64)),
        ("scores", scores * 100),
        ("scales", np.empty(3)),
        ("background", np.ones(4)),
        ("pseudocounts", 0.0),
        ("usual", 1.05),
    ):
        with pytest.raises((InputError, ValueError)):
            call(**{name: wrong})


# --- profiles ---


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


def test_ratios_of_profiles_are_those_of_the_formula():
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


def test_hits_do_not_depend_on_the_others():
    rng = np.random.default_rng(5)
    adjustment = ProfileAdjustment(scores_of(PROTEIN.decode(random_protein(rng, 50))), LAMBDA, 0.267)
    aligned = [random_protein(rng, int(length)) for length in rng.integers(1, 90, 20)]
    together = adjustment.ratios(aligned, aligned)
    assert together.tolist() == [float(adjustment.ratios([one], [one])[0]) for one in aligned]

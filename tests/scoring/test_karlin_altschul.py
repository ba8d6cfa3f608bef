"""Bit scores, E-values and the lowest useful score. Expected values: BLAST, mpmath, and the documented properties."""

from dataclasses import fields
from itertools import product

import mpmath
import numpy as np
import parasail
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch import _native
from swsearch.errors import InputError
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.published_parameters import estimated_statistics, find_statistics
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.scoring.ungapped import matrix_parameters
from swsearch.search.significance import scheme_statistics
from swsearch.sequences.alphabet import DNA, PROTEIN


def statistics(scheme: ScoringScheme) -> Statistics:
    found = find_statistics(scheme)
    assert isinstance(found, Statistics)
    return found


BLOSUM62 = statistics(default_scheme(PROTEIN))
DNA_DEFAULT = statistics(default_scheme(DNA))
SYSTEMS = [
    BLOSUM62,
    DNA_DEFAULT,
    *(statistics(ScoringScheme(named_matrix("BLOSUM62"), GapPenalty(*gap))) for gap in [(6, 2), (9, 1), (11, 2)]),
    statistics(ScoringScheme(named_matrix("PAM30"), GapPenalty(9, 1))),
    statistics(ScoringScheme(named_matrix("PAM30"), GapPenalty(15, 3))),
    statistics(ScoringScheme(named_matrix("PAM70"), GapPenalty(11, 2))),
    statistics(ScoringScheme(named_matrix("PAM250"), GapPenalty(17, 1))),
    statistics(ScoringScheme(named_matrix("BLOSUM45"), GapPenalty(16, 1))),
    statistics(ScoringScheme(match_mismatch(1, -1), GapPenalty(0, 2))),
    statistics(ScoringScheme(match_mismatch(3, -2), GapPenalty(5, 5))),
    statistics(ScoringScheme(match_mismatch(5, -4), GapPenalty(8, 6))),
    statistics(ScoringScheme(match_mismatch(1, -5), GapPenalty(3, 3))),
]

# query length, subject length, raw score, bit score, E-value; database of 10,836,920 residues.
BLASTP = [
    (375, 343, 207, 84.3, 3.49e-18),
    (375, 352, 200, 81.6, 3.16e-17),
    (375, 343, 222, 90.1, 3.50e-20),
    (375, 357, 224, 90.9, 2.20e-20),
    (375, 336, 290, 116.0, 1.37e-29),
    (464, 405, 449, 177.0, 6.22e-51),
    (144, 161, 271, 108.0, 3.86e-31),
    (375, 373, 138, 57.8, 2.87e-09),
    (375, 587, 62, 28.5, 7.0),
    (222, 420, 63, 28.9, 2.3),
]


@pytest.mark.parametrize("hit", BLASTP)
def test_agrees_with_blastp(hit):
    """Source: blastp 2.12.0+ on 30,000 Swiss-Prot proteins with five of the CUDASW++ queries.

    ``blastp -comp_based_stats 0 -seg no -matrix BLOSUM62 -gapopen 11 -gapextend 1 -outfmt "6 qlen slen score bitscore
    evalue"``. blastp truncates bit scores above 99.9 to integers. Of 104 hits with E above 1e-170, those printed with
    three digits agree to 0.3 %; the rest are printed with one or two digits and agree within that rounding.
    """
    query_length, subject_length, score, bits, evalue = hit
    assert BLOSUM62.bits([score])[0] == pytest.approx(bits, abs=1.0 if bits > 99.9 else 0.06)
    found = BLOSUM62.evalue([score], query_length, [subject_length], 10_836_920)[0]
    assert found == pytest.approx(evalue, rel=0.03 if evalue > 1 else 0.003)


def plainly(s: Statistics, score: int, m: int, n: int, space: int) -> mpmath.mpf:
    """Return the formula of the module's docstring, evaluated term by term with 50 digits."""
    with mpmath.workdps(50):
        y = mpmath.mpf(score // s.score_step * s.score_step)
        lam, alpha, sigma = mpmath.mpf(s.lam), mpmath.mpf(s.alpha), mpmath.mpf(s.sigma)
        least = mpmath.mpf(1) / 12
        v = max(2 * alpha / lam, alpha * y + s.beta, least)
        c = max(2 * sigma / lam, sigma * y + s.tau, least)
        root = mpmath.sqrt(v)
        parts, some = [], []
        for length in (m, n):
            effective = length - (s.a * y + s.b)
            some.append(mpmath.ncdf(effective / root))
            parts.append(effective * some[-1] + root * mpmath.npdf(effective / root))
        area = parts[0] * parts[1] + c * some[0] * some[1]
        return s.k * area * mpmath.exp(-lam * y) * space / n


@pytest.mark.parametrize("place", range(len(SYSTEMS)))
def test_evalue_is_the_formula(place):
    """Source: direct evaluation with mpmath."""
    s = SYSTEMS[place]
    for score, m, n in [
        (0, 1, 1),
        (30, 60, 300),
        (44, 15, 8),
        (75, 60, 30_000),
        (120, 250, 35_000),
        (300, 500, 4_641_652),
    ]:
        expected = plainly(s, score, m, n, 187_000_000)
        assert float(s.evalue([score], m, [n], 187_000_000)[0]) == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize("place", range(len(SYSTEMS)))
def test_evalue_falls_with_the_score_at_every_length(place):
    """Source: the property that ``min_score`` requires; strictly, from one score step to the next until underflow."""
    s = SYSTEMS[place]
    scores = np.arange(0, 2500 * s.score_step, s.score_step)
    for query_length in (1, 5, 60, 500, 35_000):
        for length in (1, 5, 15, 60, 300, 5_000, 35_000, 4_641_652):
            values = s.evalue(scores, query_length, [length], 10_000_000)
            assert np.all(np.isfinite(values))
            assert np.all(values >= 0)
            normal = values > 1e-300
            assert np.all(np.diff(values[normal]) < 0)
            assert np.all(np.diff(values) <= 0)


def test_huge_scores_underflow_to_zero_and_no_earlier():
    """Source: K area exp(-λS) D/n with 50 digits, compared with the smallest float64."""
    assert 0 < BLOSUM62.evalue([2800], 5000, [5000], 10**9)[0] < 1e-300
    assert BLOSUM62.evalue([34_350 * 6, 2**31 - 1], 34_350, [34_350], 10**9).tolist() == [0.0, 0.0]


def test_one_subject_alone_has_the_same_bytes_as_in_an_array():
    """Source: the same call on one element."""
    rng = np.random.default_rng(4)
    scores = rng.integers(20, 400, 333)
    lengths = rng.integers(1, 3000, 333)
    together = BLOSUM62.evalue(scores, 217, lengths, 187_000_000)
    bits = BLOSUM62.bits(scores)
    for index in range(333):
        alone = BLOSUM62.evalue(scores[index : index + 1], 217, lengths[index : index + 1], 187_000_000)
        assert alone.tobytes() == together[index : index + 1].tobytes()
        assert BLOSUM62.bits(scores[index : index + 1]).tobytes() == bits[index : index + 1].tobytes()


def test_values_are_the_same_bytes_on_every_machine():
    """Source: this formula on x86-64 with AVX-512; a machine with other bytes breaks the promise of equal bytes."""
    values = [
        *BLOSUM62.evalue([40, 66, 138, 449], 375, [12, 300, 343, 5000], 10_836_920),
        *BLOSUM62.bits([138]),
        *DNA_DEFAULT.evalue([40, 81], 120, [4_641_652, 300], 4_641_652, 2),
    ]
    assert [float(value).hex() for value in values] == [
        "0x1.96029d6778edcp+8",
        "0x1.e4c0d54efdbbep+0",
        "0x1.61de2346748e0p-29",
        "0x1.86fffc0498f92p-161",
        "0x1.ce204dfdc7302p+5",
        "0x1.35f6775da4a80p-8",
        "0x1.2ed384e4758cbp-45",
    ]


@settings(max_examples=150)
@given(
    place=st.integers(0, len(SYSTEMS) - 1),
    cut=st.sampled_from([0.0, 1e-200, 1e-30, 1e-3, 0.1, 1.0, 10.0, 1e6, float("inf")]),
    query_length=st.integers(1, 40_000),
    lengths=st.lists(st.integers(1, 10**6), min_size=1, max_size=30),
    strands=st.sampled_from([1, 2]),
)
def test_min_score_loses_no_hit_and_is_tight(place, cut, query_length, lengths, strands):
    """Source: the E-values of all lower scores, none of which may pass; at the returned score one does."""
    s, space = SYSTEMS[place], sum(lengths)
    (floor,) = s.min_scores(cut, query_length, [lengths], space, strands)
    assert floor >= 1
    below = np.arange(max(1, floor - 500), floor)[:, None]
    assert not np.any(s.evalue(below, query_length, np.array(lengths)[None, :], space, strands) <= cut)
    assert np.any(s.evalue(floor, query_length, lengths, space, strands) <= cut)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1], 10, [10], 10), "raw score of -1"),
        (([1], 0, [10], 10), "at least 1 residue"),
        (([1], 10, [0], 10), "at least 1 residue"),
        (([1], 10, [10], 0), "at least 1 residue"),
        (([1], 10, [10], 10, 0), "strands is 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    """Source: the documented ranges."""
    with pytest.raises(InputError, match=message):
        BLOSUM62.evalue(*arguments)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lengths": np.ones(2)}, "differ in length"),
        ({"values": np.empty(4)}, "differ in length"),
        ({"model": np.ones(11)}, "12 numbers"),
        ({"score_step": 0}, "score_step is below 1"),
        ({"scores": np.ones(3, np.int32)}, "array of int64"),
    ],
)
def test_malformed_arrays_are_refused(changed, message):
    """Source: the documented arrays."""
    arguments = {
        "scores": np.ones(3, np.int64), "lengths": np.ones(3), "model": np.ones(12), "score_step": 1,
        "values": np.empty(3),
    }  # fmt: skip
    assert _native.evalues(**arguments)
    with pytest.raises((TypeError, ValueError), match=message):
        _native.evalues(**{**arguments, **changed})


@pytest.mark.parametrize("cut", [-1.0, float("nan")])
def test_bad_cut_offs_are_named(cut):
    """Source: the documented range."""
    with pytest.raises(InputError, match="choose 0 or more"):
        BLOSUM62.min_scores(cut, 10, [[10]], 10)


def test_a_cut_off_needs_subjects():
    """Source: the documented range."""
    with pytest.raises(InputError, match="no subjects"):
        BLOSUM62.min_scores(10, 10, [[]], 10)


@pytest.mark.parametrize(("name", "query_length"), [("protein", 60), ("protein", 250), ("dna", 60), ("dna", 250)])
def test_random_sequences_have_the_expected_number_of_hits(name, query_length):
    """Source: the definition of an E-value, on seeded random sequences scored by parasail.

    The ratio is that of hits with E ≤ 10 to the number that the same statistics predict at the integer scores that
    pass. About 150 are expected; with independent queries the ratio is within a quarter of 1, and the statistics
    themselves are accurate within a tenth to a fifth (docs/design/statistics.md).
    """
    rng = np.random.default_rng(11)
    if name == "protein":
        s, letters, matrix, gaps = BLOSUM62, "ARNDCQEGHILKMFPSTWYV", parasail.blosum62, (12, 1)
        chances = np.array([78, 51, 45, 54, 19, 43, 63, 74, 22, 51, 90, 57, 22, 39, 52, 71, 58, 13, 32, 64], float)
    else:
        s, letters, matrix, gaps = DNA_DEFAULT, "ACGT", parasail.matrix_create("ACGT", 2, -3), (7, 2)
        chances = np.ones(4)
    alphabet, chances = np.array(list(letters)), chances / chances.sum()
    lengths = rng.integers(100, 600, 800)
    subjects = ["".join(rng.choice(alphabet, int(n), p=chances)) for n in lengths]
    space, n_queries, hits = int(lengths.sum()), 15, 0
    grid = np.arange(1, 200)[:, None]
    evalues = s.evalue(grid, query_length, lengths[None, :], space)
    reached = evalues[(evalues <= 10).argmax(axis=0), np.arange(len(lengths))] * lengths / space
    expected = n_queries * float(-np.expm1(-reached).sum())
    for _ in range(n_queries):
        query = "".join(rng.choice(alphabet, query_length, p=chances))
        profile = parasail.profile_create_16(query, matrix)
        scores = [parasail.sw_striped_profile_16(profile, subject, *gaps).score for subject in subjects]
        hits += int((s.evalue(scores, query_length, lengths, space) <= 10).sum())
    assert 0.6 < hits / expected < 1.5


class Counting(Statistics):
    """Statistics that count the calls of ``evalue``."""

    calls = 0

    def evalue(self, *arguments, **values):
        Counting.calls += 1
        assert Counting.calls < 200
        return super().evalue(*arguments, **values)


def test_extreme_dna_schemes_have_finite_e_values_that_fall():
    """Source: the documented properties of E-values and of ``min_score``, whose work is bounded by its number of calls.

    If mismatches cost so much that alignments contain none, a score determines the length, and its variance is 0.
    """
    for match, mismatch in product((1, 2, 5, 41, 42, 126, 127), (-1, -2, -7, -43, -64, -126, -127)):
        matrix = match_mismatch(match, mismatch)
        ungapped = matrix_parameters(matrix)
        if match + 3 * mismatch >= 0:
            assert ungapped is None
            continue
        scheme = ScoringScheme(matrix, GapPenalty(16383, 16383))
        source = "theory"
        check(estimated_statistics(scheme, ungapped, ungapped.lam, ungapped.k, ungapped.a, source, gapped=False), match)


@pytest.mark.parametrize(
    ("match", "mismatch", "gap", "lam", "k", "a"),
    [
        (1, -127, (0, 1), 0.3902, 0.00362, 8.48),
        (127, -127, (16383, 0), 0.008169, 0.0974, 0.0157),
        (1, -127, (16383, 0), 1.381, 0.715, 1.0),
        (1, -127, (4, 1), 1.379, 0.709, 1.0),
        (2, -127, (4, 4), 0.6388, 0.189, 0.504),
    ],
)
def test_extreme_simulated_schemes_have_finite_e_values_that_fall(match, mismatch, gap, lam, k, a):
    """Source: as above; the parameters are the simulation's."""
    scheme = ScoringScheme(match_mismatch(match, mismatch), GapPenalty(*gap))
    check(estimated_statistics(scheme, matrix_parameters(scheme.matrix), lam, k, a, "simulated"), match)


def check(found, match):
    """Compare E-values and the lowest useful score with their documented properties."""
    scores = np.arange(0, 400 * match, max(1, match // 2))
    for query_length, length in [(1, 1), (1, 10_000), (49, 49), (49, 100_000), (35_000, 35_000)]:
        values = found.evalue(scores, query_length, [length], max(length, 10_000_000))
        assert np.all(np.isfinite(values))
        assert np.all(values >= 0)
        assert np.all(values[1:] <= values[:-1])
        assert values[0] > 0
    counted = Counting(**{field.name: getattr(found, field.name) for field in fields(found)})
    lengths = np.arange(1, 2000)
    for cut in (0.0, 1e-300, 10.0, float("inf")):
        Counting.calls = 0
        least = counted.min_scores(cut, 49, [lengths], 10_000)
        assert np.any(found.evalue(least, 49, lengths, 10_000) <= cut)


def test_a_perfect_match_where_mismatches_cannot_be_has_the_chance_of_its_letters():
    """Source: by hand. 20 equal bases begin at any position with probability 4**-20; full length: within 12."""
    scheme = ScoringScheme(match_mismatch(1, -127), GapPenalty(16383, 16383))
    found = scheme_statistics(scheme)
    assert found.evalue([20], 1000, [1000], 1000)[0] == pytest.approx(0.75 * 980 * 980 * 0.25**20, rel=1e-3)
    assert 1 / 12 < found.evalue([20], 20, [1000], 1000)[0] / (981 * 0.25**20) < 1

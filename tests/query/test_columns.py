"""Context columns and local Forward scores: the kernels against plain computations, and what the model predicts."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from swsearch import _native
from swsearch.engine.cpu.engine import usable_instruction_sets
from swsearch.query import columns
from swsearch.query.columns import SUBJECT_ADMIXTURE, ColumnModel, column_model, forward_scores, implied_model
from swsearch.query.contexts import UNITS, WEIGHT_UNITS, WIDTH, Contexts, program_contexts
from swsearch.query.estimation import estimated_query
from swsearch.query.profile import ProfileModel
from swsearch.query.scale import query_lambda
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import N_AMINO_ACIDS, PROTEIN
from swsearch.sequences.record import SequenceRecord

P = background(PROTEIN)


def random_model(rng, width=5, n_first=64, n_second=32):
    """A network with random weights, which are as large as those of a trained one."""

    def weights(most, *shape, kind=np.int16):
        return rng.integers(-most, most + 1, shape).astype(kind)

    return ColumnModel(
        first=weights(300, width * 21, n_first),
        first_bias=weights(300, n_first),
        second=weights(900, n_second, n_first),
        second_bias=weights(100_000, n_second, kind=np.int32),
        third=weights(900, 20, n_second),
        third_bias=weights(100_000, 20, kind=np.int32),
        decoys=np.zeros(0, dtype=np.uint8),
        decoy_ends=np.zeros(0, dtype=np.int32),
        training={},
    )


def plain_columns(model, codes):
    """The columns by the formulas, in Python's integers and float32."""
    reach = model.width // 2
    outside = np.full(reach, 20)
    letters = np.concatenate([outside, np.minimum(codes & 31, 20), outside]).astype(int)
    powers = np.exp2(np.arange(1024) / 1024).astype(np.float32)
    columns = []
    for i in range(len(codes)):
        rows = [21 * place + letters[i + place] for place in range(model.width)]
        first = np.clip(model.first[rows].sum(axis=0, dtype=int) + model.first_bias, 0, 1023)
        second = np.clip((model.second.astype(int) @ first + model.second_bias) >> 10, 0, 1023)
        sums = model.third.astype(int) @ second + model.third_bias
        below = [int(one) for one in sums - sums.max()]
        odds = [
            powers[(one & (2**18 - 1)) >> 8] * np.float32(2.0 ** (one >> 18) if one >> 18 >= -126 else 0)
            for one in below
        ]
        total = np.float32(0)
        for one in odds:
            total += one
        columns.append([one / total for one in odds])
    return np.array(columns, dtype=np.float32)


def plain_forward(model, query, codes):
    """The logarithm of the sum over all local alignments, in float64 with one scale for the whole matrix.

    The sum is that of a profile hidden Markov model, whose columns, times the probability of m->m, are rounded to 2^-15
    and odds to 2^-8. An alignment ends with this probability too. An insertion may follow a deletion, with the
    probability of m->i where that of m->m is the one of d->m.
    """
    shares = np.where((codes < 20)[:, None], SUBJECT_ADMIXTURE, 1.0) * plain_columns(model, codes).astype(float)
    shares[np.flatnonzero(codes < 20), codes[codes < 20]] += 1 - SUBJECT_ADMIXTURE
    mm, mi, md, im, ii, dm, dd = query.transitions.T
    units = np.floor(mm[:, None] * query.columns * 2**15 + 0.5) / 2**15
    odds = units @ (np.floor(shares / P * 2**8 + 0.5) / 2**8).T / mm[:, None]
    match, insertion, deletion = (np.zeros(len(query)) for _ in range(3))
    total, shift = 0.0, 0
    for column in odds.T:
        leaving = mm * match + im * insertion + dm * deletion
        insertion = mi * (match + dm / mm * deletion) + ii * insertion
        match = column * (2.0**-shift + np.concatenate([[0.0], leaving[:-1]]))
        deletion = np.zeros(len(query))
        for i in range(1, len(query)):
            deletion[i] = md[i - 1] * match[i - 1] + dd[i - 1] * deletion[i - 1]
        total += (mm * match).sum()
        if total > 1e200:
            match, insertion, deletion, total = (one * 2.0**-500 for one in (match, insertion, deletion, total))
            shift += 500
    return np.log(total) + shift * np.log(2)


def random_gaps(rng, length):
    """Transitions of positions; some open gaps seldom, others often."""
    open_gaps = rng.choice([0.001, 0.05, 0.4], (length, 2))
    end_gaps = rng.uniform(0.05, 0.95, (length, 2))
    parts = (1 - open_gaps.sum(axis=1), *open_gaps.T, end_gaps[:, 0], 1 - end_gaps[:, 0], end_gaps[:, 1])
    return np.stack([*parts, 1 - end_gaps[:, 1]], axis=1)


def random_codes(rng, length):
    codes = rng.choice(20, length, p=P / P.sum()).astype(np.uint8)
    codes[rng.random(length) < 0.02] = PROTEIN.code("X")
    return codes


def packed(sequences):
    """Residues, starts and lengths of sequences."""
    lengths = np.array([len(one) for one in sequences], dtype=np.uint32)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.uint64)
    return np.concatenate(sequences), starts, lengths


def by_context(codes):
    """A query with the scores that its context implies."""
    no_rows = np.empty((0, len(codes)), dtype=np.uint8)
    record = SequenceRecord("query", codes, PROTEIN)
    return estimated_query(record, no_rows, named_matrix("BLOSUM62"), contexts=program_contexts())


def query_model(codes):
    return implied_model(by_context(codes), named_matrix("BLOSUM62"))


def plain_odds(model, codes):
    """The odds of the columns of a sequence, in float32 as the native code computes them."""
    share = np.where(codes < 20, np.float32(SUBJECT_ADMIXTURE), np.float32(1))
    inverse = (1.0 / P).astype(np.float32)
    odds = share[:, None] * plain_columns(model, codes) * inverse
    known = np.flatnonzero(codes < 20)
    odds[known, codes[known]] += (np.float32(1) - np.float32(SUBJECT_ADMIXTURE)) * inverse[codes[known]]
    return (odds * np.float32(256) + np.float32(0.5)).astype(np.int16)


def forward(model, query, residues, starts, lengths, **how):
    return model.odds(residues, starts, lengths, **how).forward(query, **how)


@pytest.mark.parametrize(("width", "n_first", "n_second"), [(1, 32, 32), (5, 64, 32), (13, 160, 64)])
def test_odds_equal_the_plain_network(width, n_first, n_second):
    """Source: the formulas of the module, one residue at a time."""
    rng = np.random.default_rng(width)
    model = random_model(rng, width, n_first, n_second)
    for length in (1, 2, 130, 300):  # a part of a sequence has 128 residues
        codes = random_codes(rng, length)
        expected = plain_odds(model, codes)
        for instruction_set in usable_instruction_sets():
            found = model.odds(*packed([codes | np.uint8(32)]), instruction_set=instruction_set)  # a flag: lower case
            np.testing.assert_array_equal(found.odds, expected, instruction_set)
        np.testing.assert_array_equal(model.odds(*packed([codes]), n_threads=3).odds, expected)


def test_the_largest_total_decides_where_exponents_differ_by_thousands():
    """By hand: 1 + 2 ** 3000 and 2 ** 0 + 2 ** -3000, whose logarithms are 3,000 ln 2 and 0."""
    totals, exponents = np.ones((2, 2), np.float32), np.array([[0, 3000], [0, -3000]], np.int32)
    np.testing.assert_allclose(forward_scores(totals, exponents), [3000 * np.log(2), 0.0])


def test_contexts_predict_the_mean_of_their_central_columns():
    """Source: the formula of the module in float64; the whole numbers are rounded to a hundredth and 2^-20."""
    rng = np.random.default_rng(6)
    shares = rng.dirichlet(np.full(20, 0.4), (50, 13)) * 0.99 + 0.01 / 20
    library = Contexts(rng.integers(0, 100, 50, dtype=np.uint8), np.rint(-20 * np.log(shares)).astype(np.uint8))
    weights = 1.6 * 0.85 ** np.abs(np.arange(-6, 7))
    for length, most in ((1, 1), (7, 1), (300, 1), (140, 9)):  # a part of a sequence has 128 residues
        counts = rng.dirichlet(np.full(20, 0.1), length) * rng.uniform(1, most, (length, 1))
        if most == 1:  # a sequence, with letters that are not amino acid
            counts = np.eye(21)[np.minimum(random_codes(rng, length), 20)][:, :20]
        found = library.predicted(counts)
        for i in range(length):
            costs = library.priors / 20.0
            for j in range(max(-6, -i), min(7, length - i)):
                costs = costs + weights[j + 6] * (library.columns[:, j + 6] / 20.0) @ counts[i + j]
            column = np.exp(-(costs - costs.min())) @ np.exp(-library.columns[:, 6] / 20.0)
            np.testing.assert_allclose(found[i], column / column.sum(), atol=0.02)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        for instruction_set in usable_instruction_sets():
            np.testing.assert_array_equal(library.predicted(counts, 1, instruction_set), found, instruction_set)
        np.testing.assert_array_equal(library.predicted(counts, 3), found)


def test_costs_of_any_library_stay_in_the_range_of_the_kernel():
    """Source: the interface of the kernel (simd/context/kernel.hpp), for the largest costs that a library can have."""
    library = Contexts(np.full(32, 255, dtype=np.uint8), np.full((32, WIDTH, N_AMINO_ACIDS), 255, dtype=np.uint8))
    costs, _, weights, _ = library._arrays
    assert costs.min() >= 0
    assert costs.reshape(WIDTH, -1).max(axis=1).sum(dtype=np.int64) * 1001 * 64 < 2**30
    assert weights[-1] > 0
    assert np.rint(np.exp(len(weights) / -UNITS) * WEIGHT_UNITS) == 0


def test_contexts_that_do_not_fit_together_are_refused():
    """Source: the interface of the native function."""
    costs, priors, weights, central = program_contexts()._arrays
    counts, sums = np.full((3, 20), 64, dtype=np.int32), np.empty((3, 20))
    for changed, message in (
        ((costs, priors, weights, central, counts * 60, sums), "observations"),
        ((costs, priors, weights, central, -counts, sums), "negative"),
        ((costs[:-1], priors, weights, central, counts, sums), "odd"),
        ((costs[:, :-8].copy(), priors[:-8], weights, central[:-8], counts, sums), "multiple of 32"),
        ((costs, priors, weights, central[1:], counts, sums), "fit together"),
        ((costs, priors, weights, central, counts, sums[1:]), "one row"),
    ):
        with pytest.raises(ValueError, match=message):
            _native.context_sums(*changed)


def test_forward_scores_equal_the_plain_sum_over_alignments():
    """Source: the recurrence in float64. Related sequences have sums that no float holds."""
    rng = np.random.default_rng(2)
    model = random_model(rng)
    family = random_codes(rng, 260)
    query = np.where((family < 20)[:, None], 0.9 * plain_columns(model, family).astype(float), P)
    query[np.flatnonzero(family < 20), family[family < 20]] += 0.1
    usual = ProfileModel.of_columns(query)
    related = [np.where(rng.random(260) < share, random_codes(rng, 260), family) for share in (0.0, 0.3, 0.6)]
    deleted = np.delete(family, np.arange(100, 130))
    subjects = [*related, deleted, *(random_codes(rng, int(length)) for length in rng.integers(1, 300, 40))]
    for given in (usual, ProfileModel(query, random_gaps(rng, len(query)))):
        expected = [plain_forward(model, given, one) for one in subjects]
        found = forward(model, given, *packed(subjects), instruction_set="scalar")
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
        assert found[0] > 130 or given is not usual  # e**88 is the largest float


@pytest.mark.parametrize("without", [1, 2])  # insertions, deletions: one may follow the other in one direction only
def test_a_reversed_model_has_the_scores_of_reversed_subjects(without):
    """Source: each path has one probability in both directions, if all alignments end with the same one."""
    rng = np.random.default_rng(9)
    codes = random_codes(rng, 80)
    gaps = random_gaps(rng, 80)
    gaps[:, 0], gaps[:, without] = 0.7, 0.0
    query = ProfileModel(query_model(codes).columns, gaps)
    odds = column_model().odds(*packed([random_codes(rng, 90), codes, np.delete(codes, range(30, 40)), codes[20:70]]))
    backwards = [odds.odds[first : first + n][::-1] for first, n in zip(odds.starts, odds.lengths, strict=True)]
    turned = dataclasses.replace(odds, odds=np.concatenate(backwards))
    np.testing.assert_allclose(turned.forward(query.reversed), odds.forward(query), rtol=0, atol=2e-3)
    assert (np.abs(turned.forward(query) - odds.forward(query)) > 0.1).any()


def test_forward_scores_are_the_same_bytes_everywhere():
    """Instruction sets have 4 to 16 lanes, so the groups of subjects differ; so do those of several threads."""
    rng = np.random.default_rng(3)
    model = random_model(rng)
    family = random_codes(rng, 200)
    query = query_model(family)
    subjects = [random_codes(rng, int(length)) for length in rng.integers(1, 400, 50)]
    subjects += [family, np.tile(family, 4), np.concatenate([family[:90], random_codes(rng, 300), family])]
    expected = forward(model, query, *packed(subjects), instruction_set="scalar")
    for instruction_set in usable_instruction_sets():
        found = forward(model, query, *packed(subjects), instruction_set=instruction_set)
        np.testing.assert_array_equal(found, expected, instruction_set)
    np.testing.assert_array_equal(forward(model, query, *packed(subjects), n_threads=3), expected)
    alone = [forward(model, query, *packed([one]))[0] for one in subjects]
    np.testing.assert_array_equal(alone, expected)


def test_the_sums_of_the_model_stay_in_the_range_of_the_kernels():
    """Source: simd/context/kernel.hpp: 16 bits in the first layer and 30 in the others, for the largest activations."""
    model = column_model()
    of_places = np.abs(model.first.astype(np.int64)).reshape(model.width, 21, -1).max(axis=1).sum(axis=0)
    assert (of_places + np.abs(model.first_bias)).max() < 2**15
    for weights, bias in ((model.second, model.second_bias), (model.third, model.third_bias)):
        assert (np.abs(weights.astype(np.int64)).sum(axis=1) * 1023 + np.abs(bias.astype(np.int64))).max() < 2**30


def test_layers_that_do_not_fit_together_are_refused():
    """Source: the interface of the native function."""
    model = random_model(np.random.default_rng(4))
    codes = np.zeros(3, dtype=np.uint8)
    for changed, message in (
        (dataclasses.replace(model, first=model.first[:-21]), "odd"),
        (dataclasses.replace(model, third=model.third[:-1]), "fit together"),
    ):
        with pytest.raises(ValueError, match=message):
            changed.odds(*packed([codes]))


def test_arrays_that_do_not_fit_are_refused():
    model = random_model(np.random.default_rng(5))
    codes, starts, lengths = packed([np.zeros(4, dtype=np.uint8)])
    query = query_model(codes)
    odds = model.odds(codes, starts, lengths)
    longer = dataclasses.replace(odds, lengths=lengths + np.uint32(1))
    with pytest.raises(ValueError, match="leaves the array"):
        model.odds(codes, starts, longer.lengths)
    with pytest.raises(ValueError, match="leaves the array"):
        longer.forward(query)
    for call in (lambda: model.odds(codes, starts, lengths, 0), lambda: odds.forward(query, 0)):
        with pytest.raises(ValueError, match="threads"):
            call()
    with pytest.raises(ValueError, match="no instruction set"):
        odds.forward(query, instruction_set="avx1024")
    with pytest.raises(TypeError, match="columns"):
        dataclasses.replace(odds, odds=odds.odds[:, :19].copy()).forward(query)


def test_signals_are_looked_for_while_columns_are_computed():
    """A call that takes longer than the time between two looks, which is a tenth of a second."""
    rng = np.random.default_rng(6)
    model = random_model(rng, 13, 256, 64)
    codes = random_codes(rng, 1000)
    lengths = np.full(300, 1000, dtype=np.uint32)
    starts = np.zeros(300, dtype=np.uint64)
    query = query_model(codes[:100])
    found = forward(model, query, codes, starts, lengths, instruction_set="scalar")
    assert np.unique(found).size == 1


# --- the model of the program ---


def globin():
    """Residues 1 to 60 of sperm whale myoglobin (P02185)."""
    return PROTEIN.encode("MVLSEGEWQLVLHVWAKVEADVAGHGQDILIRLFKSHPETLEKFDRFKHLKTEAEMKASE")


def test_the_model_fits_the_package():
    """Source: the ranges that the native code checks, and 2 MB for the files."""
    model = column_model()
    assert sum(path.stat().st_size for path in Path(columns.__file__).parent.glob("*.npz")) < 2 * 2**20
    assert model.width % 2 == 1
    assert model.odds(*packed([globin()])).odds.shape == (60, 20)
    lengths = np.diff(model.decoy_ends, prepend=0)
    assert len(model.decoys) == model.decoy_ends[-1] == lengths.sum()
    assert lengths.min() >= 100
    assert model.decoys.max() < 20
    assert model.training["profiles"] > 1000


def test_the_model_predicts_the_plain_network():
    """Source: the formulas of the module, one residue at a time."""
    model, codes = column_model(), globin()
    np.testing.assert_array_equal(model.odds(*packed([codes])).odds, plain_odds(model, codes))


def test_predicted_columns_agree_better_with_a_relative_than_the_composition_of_proteins():
    """Human myoglobin (P02144) has another residue at 11 of these positions; the columns foresee some of them."""
    relative = PROTEIN.encode("MGLSDGEWQLVLNVWGKVEADIPGHGQEVLIRLFKGHPETLEKFDKFKHLKSEDEMKASE")
    codes = globin()
    predicted = plain_columns(column_model(), codes)
    np.testing.assert_allclose(predicted.sum(axis=1), 1.0, atol=1e-5)
    changed = np.flatnonzero(relative != codes)
    assert len(changed) == 12
    gain = np.log2(predicted[changed, relative[changed]] / P[relative[changed]])
    assert gain.mean() > 0


def test_the_scores_of_a_query_have_the_scale_of_the_matrix():
    """Source: λ of BLOSUM62 (Karlin and Altschul 1990), and of scores by bisection."""
    matrix = named_matrix("BLOSUM62")
    codes = globin()
    codes[30] = PROTEIN.code("X")
    query = by_context(codes)
    assert query_lambda(query.scores[:, :20]) == pytest.approx(matrix_lambda(matrix), rel=0.05)
    np.testing.assert_array_equal(query.scores[30, :20], matrix.scores[codes[30], :20])
    own = query.scores[np.arange(60), codes]
    assert np.delete(own, 30).min() > 0


def test_a_relative_has_a_larger_forward_score_than_reversed_proteins():
    relative = PROTEIN.encode("MGLSDGEWQLVLNVWGKVEADIPGHGQEVLIRLFKGHPETLEKFDKFKHLKSEDEMKASE")
    model = column_model()
    query = query_model(globin())
    of_decoys = model.decoy_odds.forward(query)
    assert len(of_decoys) == 256
    (of_relative,) = forward(model, query, *packed([relative]))
    assert of_relative > of_decoys.max() + 20

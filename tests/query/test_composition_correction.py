"""Corrected profiles have the scores of the formula, and every engine computes with them.

The expected values come from the documented formula in plain Python and from the reference engine.
"""

import math

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import score_requests
from swsearch.engine.reference import local_scores
from swsearch.query.composition import corrected_profile, local_counts
from swsearch.query.profile import sequence_profile
from swsearch.scoring.matrix import SubstitutionMatrix, named_matrix
from swsearch.scoring.scheme import GapPenalty, default_scheme
from swsearch.scoring.ungapped import background
from swsearch.sequences.alphabet import PROTEIN
from tests.support import random_protein

BLOSUM62 = named_matrix("BLOSUM62")
GAP = GapPenalty(11, 1)
LAMBDA = 0.3176


def by_formula(letters, strength):
    """Return scores by the documented formula, residue by residue, with letters and dictionaries."""
    amino_acids = "ARNDCQEGHILKMFPSTWYV"
    usual = dict(zip(amino_acids, background(PROTEIN).tolist(), strict=True))
    table = []
    for index, letter in enumerate(letters):
        around = [x for x in letters[max(0, index - 20) : index + 21] if x in usual]
        row = {}
        for other in PROTEIN.letters:
            row[other] = BLOSUM62.score(letter, other)
            if other in usual:
                frequency = (around.count(other) + 40 * usual[other]) / (len(around) + 40)
                row[other] -= round(strength * max(0.0, math.log(frequency / usual[other])) / LAMBDA)
        table.append(row)
    return table


@pytest.mark.parametrize("strength", [0.25, 1.0])
@pytest.mark.parametrize("biased", ["", "E" * 25, "QPQPQPQPQXBZ*U"])
def test_scores_are_those_of_the_formula(biased, strength):
    """Source: the documented formula in plain Python."""
    rng = np.random.default_rng(len(biased))
    letters = PROTEIN.decode(random_protein(rng, 45)) + biased + PROTEIN.decode(random_protein(rng, 30))
    profile = corrected_profile(PROTEIN.encode(letters), BLOSUM62, GAP, LAMBDA, strength)
    expected = by_formula(letters, strength)
    for index, row in enumerate(expected):
        found = dict(zip(PROTEIN.letters, profile.table[profile.rows[index]].tolist(), strict=False))
        assert found == row, index


def test_no_strength_is_no_correction_and_padding_stays_apart():
    """Source: the plain profile."""
    codes = random_protein(np.random.default_rng(1), 80)
    plain = sequence_profile(codes, default_scheme(PROTEIN))
    profile = corrected_profile(codes, BLOSUM62, GAP, LAMBDA, 0.0)
    np.testing.assert_array_equal(profile.table[profile.rows], plain.table[plain.rows])
    strong = corrected_profile(codes, BLOSUM62, GAP, LAMBDA, 3.0)
    assert (strong.table[:, len(PROTEIN.letters) :] == -128).all()
    assert (strong.table[strong.rows] <= plain.table[plain.rows]).all()


def test_scores_stay_in_their_type():
    """By hand: -120 minus a correction of hundreds is the lowest score that a letter may have."""
    values = np.full((32, 32), -120, np.int8)
    values[0, 0] = 5
    profile = corrected_profile(
        PROTEIN.encode("A" * 50), SubstitutionMatrix("steep", PROTEIN, values), GAP, 0.01, strength=5.0
    )
    assert profile.table.min() == -127


def test_soft_masked_letters_count_like_others():
    upper, lower = PROTEIN.encode("MKVEEEEL"), PROTEIN.encode("MKVeeeeL")
    np.testing.assert_array_equal(local_counts(upper, 20), local_counts(lower, 20))


def test_the_engine_gives_the_reference_scores():
    """Source: the reference recurrence on the same profile, which has more rows than there are letters."""
    rng = np.random.default_rng(9)
    query = np.concatenate((random_protein(rng, 150), np.tile(PROTEIN.encode("EK"), 20), random_protein(rng, 150)))
    subjects = [np.concatenate((random_protein(rng, 40), query[60:220], random_protein(rng, 30))) for _ in range(3)]
    subjects += [random_protein(rng, int(length)) for length in rng.integers(5, 400, 40)]
    profile = corrected_profile(query, BLOSUM62, GAP, LAMBDA)
    assert len(profile.table) > 32
    partition = Partition.pack(subjects)
    with CpuEngine(1) as engine:
        (block,) = engine.score(score_requests([profile]), partition)
    assert dict(zip(block.subject_index.tolist(), block.score.tolist(), strict=True)) == {
        number: local_scores(profile, [subject])[0] for number, subject in enumerate(subjects)
    }

"""Posterior decoding of domains: the native code against a plain computation of each state and row, and HMMER."""

import dataclasses
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import swsearch
from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.domains.decoding import COMPOSITION, Decoder, entry_probabilities, log_of
from swsearch.query.hmm import FamilyModel, ModelPlace, read_families
from swsearch.query.profile import PositionSpecificQuery, ProfileModel
from swsearch.scoring.matrix import named_matrix
from swsearch.sequences.alphabet import PROTEIN
from tests.query.test_columns import random_codes, random_gaps

DATA = Path(__file__).parents[2] / "data"
LETTERS = "ARNDCQEGHILKMFPSTWYV"
MEANINGS = {"B": "ND", "Z": "QE", "X": LETTERS, "J": "IL", "U": "C", "O": "K", "*": ""}
"""The amino acids for which other letters stand in HMMER."""


def family_of(rng, length):
    """A family of strongly conserved positions, and its consensus."""
    consensus = rng.integers(0, 20, length).astype(np.uint8)
    columns = np.full((length, 20), 0.2 / 20)
    columns[np.arange(length), consensus] += 0.8
    gaps = random_gaps(rng, length)
    gaps[-1] = [gaps[-1, 0] + gaps[-1, 2], gaps[-1, 1], 0, *gaps[-1, 3:5], 1, 0]
    query = PositionSpecificQuery(
        "family", consensus, PROTEIN, np.zeros((length, 32), np.int8), ProfileModel(columns, gaps)
    )
    return FamilyModel(query, "", {}, (-4.0, 0.7), 0.9, ModelPlace(0, 0, 1)), consensus


# --- every state of every row, with one logarithm for each ---


def scores_of_letters(scores):
    """The scores of each position and letter: those of amino acids, or means of them."""
    columns = np.full((len(scores), len(PROTEIN.letters)), -np.inf)
    for code, letter in enumerate(PROTEIN.letters):
        several = [LETTERS.index(one) for one in MEANINGS.get(letter, letter)]
        if several:
            columns[:, code] = np.average(scores[:, several], axis=1, weights=np.array(COMPOSITION)[several])
    return columns


class Plain:
    """Forward and Backward of a protein in logarithms; several domains, or one with the flanks of ``n`` residues."""

    def __init__(self, family, codes, n, several):
        with np.errstate(divide="ignore"):
            t = np.log(family.model.transitions)
            self.entry = np.log(entry_probabilities(family))
            odds = scores_of_letters(np.log(family.model.columns / np.array(COMPOSITION)))
        self.t, self.e = t, odds[:, codes & 31].T  # by residue, then position
        self.n, self.length = len(codes), len(t)
        extra = 3.0 if several else 2.0
        self.loop, self.move = np.log(n / (n + extra)), np.log(extra / (n + extra))
        self.again, self.at_an_end = (np.log(0.5), np.log(0.5)) if several else (-np.inf, 0.0)
        self.forward()
        self.backward()

    def forward(self):
        n, length, t = self.n, self.length, self.t
        self.fm, self.fi, self.fd = (np.full((n + 1, length), -np.inf) for _ in range(3))
        self.fn, self.fb, self.fe, self.fj, self.fc = (np.full(n + 1, -np.inf) for _ in range(5))
        self.fn[0], self.fb[0] = 0.0, self.move
        for i in range(1, n + 1):
            for k in range(length):
                arriving = [self.fb[i - 1] + self.entry[k]]
                if k > 0:
                    arriving += [self.fm[i - 1, k - 1] + t[k - 1, 0], self.fi[i - 1, k - 1] + t[k - 1, 3]]
                    arriving += [self.fd[i - 1, k - 1] + t[k - 1, 5]]
                    self.fd[i, k] = np.logaddexp(self.fm[i, k - 1] + t[k - 1, 2], self.fd[i, k - 1] + t[k - 1, 6])
                self.fm[i, k] = self.e[i - 1, k] + np.logaddexp.reduce(arriving)
                if k < length - 1:
                    self.fi[i, k] = np.logaddexp(self.fm[i - 1, k] + t[k, 1], self.fi[i - 1, k] + t[k, 4])
            self.fe[i] = np.logaddexp.reduce([*self.fm[i], *self.fd[i]])
            self.fj[i] = np.logaddexp(self.fj[i - 1] + self.loop, self.fe[i] + self.again)
            self.fc[i] = np.logaddexp(self.fc[i - 1] + self.loop, self.fe[i] + self.at_an_end)
            self.fn[i] = self.fn[i - 1] + self.loop
            self.fb[i] = np.logaddexp(self.fn[i], self.fj[i]) + self.move
        self.total = self.fc[n] + self.move

    def backward(self):
        n, length, t = self.n, self.length, self.t
        self.bm, self.bi, self.bd = (np.full((n + 2, length + 1), -np.inf) for _ in range(3))
        self.bn, self.bb, self.be, self.bj, self.bc = (np.full(n + 2, -np.inf) for _ in range(5))
        for i in range(n, -1, -1):
            pairs = self.bm[i + 1, :length] + self.e[i] if i < n else np.full(length, -np.inf)
            self.bb[i] = np.logaddexp.reduce(self.entry + pairs)
            self.bc[i] = self.move if i == n else self.bc[i + 1] + self.loop
            self.bj[i] = np.logaddexp(self.bj[i + 1] + self.loop, self.bb[i] + self.move)
            self.bn[i] = np.logaddexp(self.bn[i + 1] + self.loop, self.bb[i] + self.move)
            self.be[i] = np.logaddexp(self.bc[i] + self.at_an_end, self.bj[i] + self.again)
            for k in range(length - 1, -1, -1):
                pair = pairs[k + 1] if k < length - 1 else -np.inf
                insertion = self.bi[i + 1, k] if k < length - 1 else -np.inf
                deletion = self.bd[i, k + 1]
                self.bm[i, k] = np.logaddexp.reduce(
                    [self.be[i], pair + t[k, 0], insertion + t[k, 1], deletion + t[k, 2]]
                )
                self.bi[i, k] = np.logaddexp(pair + t[k, 3], insertion + t[k, 4])
                self.bd[i, k] = np.logaddexp.reduce([self.be[i], pair + t[k, 5], deletion + t[k, 6]])
        assert self.bn[0] == pytest.approx(self.total)

    def probabilities(self):
        """Of pairs, insertions, and residues before and behind domains, for the residues from 1 on."""
        n, length = self.n, self.length
        pairs = np.exp(self.fm[1:] + self.bm[1 : n + 1, :length] - self.total)
        insertions = np.exp(self.fi[1:] + self.bi[1 : n + 1, :length] - self.total)
        flanks = [
            np.exp(f[:-1] + self.loop + b[1 : n + 1] - self.total) for f, b in ((self.fn, self.bn), (self.fc, self.bc))
        ]
        return pairs, insertions, *flanks


def best_accuracy(plain):
    """The largest sum of the probabilities of a path's residues, by all states; every transition is possible."""
    pairs, insertions, before, behind = plain.probabilities()
    n, length = pairs.shape
    m, i, d = (np.full((n + 1, length), -np.inf) for _ in range(3))
    best, so_far = -np.inf, 0.0
    for row in range(1, n + 1):
        for k in range(length):
            arriving = [so_far, *([m[row - 1, k - 1], i[row - 1, k - 1], d[row - 1, k - 1]] if k else [])]
            m[row, k] = max(arriving) + pairs[row - 1, k]
            i[row, k] = max(m[row - 1, k], i[row - 1, k]) + insertions[row - 1, k]
            if k:
                d[row, k] = max(m[row, k - 1], d[row, k - 1])
        best = max(best + behind[row - 1], m[row].max())
        so_far += before[row - 1]
    return best


def of_path(plain, pairs):
    """The sum of the probabilities of the residues of a path, which is possible."""
    matches, insertions, before, behind = plain.probabilities()
    found = matches[pairs[:, 1], pairs[:, 0]].sum() + before[: pairs[0, 1]].sum() + behind[pairs[-1, 1] + 1 :].sum()
    for (position, residue), (next_position, next_residue) in pairwise(pairs.astype(int).tolist()):
        assert next_position > position
        assert next_residue > residue
        assert next_position == position + 1 or next_residue == residue + 1  # a deletion or an insertion, not both
        found += insertions[residue + 1 : next_residue, position].sum()
    return found


def members(rng, consensus):
    """Proteins with one domain, a half of one, three of them, one with a gap and an insertion, two with other letters,
    and none.
    """
    around = [random_codes(rng, int(n)) for n in rng.integers(5, 40, 4)]
    changed = np.concatenate([consensus[:8], consensus[11:20], random_codes(rng, 4), consensus[20:]])
    return [
        np.concatenate([around[0], consensus, around[1]]),
        np.concatenate([around[0], consensus[len(consensus) // 2 :]]),
        np.concatenate([around[0], consensus, around[1], consensus, consensus, around[2]]),
        np.concatenate([changed, around[3]]),
        with_other_letters(rng, np.concatenate([around[1], consensus, around[2]])),
        with_other_letters(rng, np.concatenate([consensus, around[3], consensus])),
        random_codes(rng, 60),
        np.full(30, PROTEIN.code("X"), np.uint8),
    ]


def with_other_letters(rng, codes):
    """A tenth of the residues are other letters than amino acids."""
    others = rng.integers(len(LETTERS), len(PROTEIN.letters), len(codes)).astype(np.uint8)
    return np.where(rng.random(len(codes)) < 0.1, others, codes)


def in_turn(family, sequences, threads=1):
    """What the native code finds in each sequence alone."""
    decoder = Decoder(family)
    found = []
    for one in sequences:
        given = one, np.zeros(1, np.uint64), np.array([len(one)], np.uint32)
        found += _native.decode_domains(
            decoder._odds, decoder._transitions, decoder._entry, *given, np.full(1, -(10**6)), threads
        )
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sums_probabilities_and_alignments_equal_the_plain_ones(seed):
    """Source: the recurrences in logarithms."""
    rng = np.random.default_rng(seed)
    family, consensus = family_of(rng, 30)
    n_domains = []
    sequences = members(rng, consensus)
    for codes, (value, exponent, several) in zip(sequences, in_turn(family, sequences), strict=True):
        assert log_of(value, exponent) == pytest.approx(Plain(family, codes, len(codes), True).total, abs=1e-9)
        n_domains.append(len(several))
        for first, last, total, of_total, accuracy, composition, pairs in several:
            plain = Plain(family, codes[first:last], len(codes), False)
            assert log_of(total, of_total) == pytest.approx(plain.total, abs=1e-9)
            matches, insertions, before, behind = plain.probabilities()
            expected = matches.sum(axis=0) @ (family.model.columns / np.array(COMPOSITION))
            expected = (expected + insertions.sum() + before.sum() + behind.sum()) / (last - first)
            np.testing.assert_allclose(composition, expected, rtol=1e-9)
            assert accuracy == pytest.approx(best_accuracy(plain), abs=1e-9)
            assert first <= pairs[0, 1] <= pairs[-1, 1] < last
            assert of_path(plain, pairs - [0, first]) == pytest.approx(accuracy, abs=1e-9)
    assert n_domains[:4] == [1, 1, 3, 1]


def test_values_beyond_the_range_of_float64():
    """Source: the plain logarithms, of a protein with odds of 10^500 and more."""
    rng = np.random.default_rng(5)
    family, consensus = family_of(rng, 60)
    codes = np.concatenate([*[consensus] * 7, random_codes(rng, 30), consensus])
    ((value, exponent, several),) = in_turn(family, [codes])
    assert log_of(value, exponent) == pytest.approx(Plain(family, codes, len(codes), True).total, abs=1e-8)
    assert log_of(value, exponent) > 1000
    assert len(several) == 8
    starts = [0, 60, 120, 180, 240, 300, 360, 450]
    for start, (first, last, *_, pairs) in zip(starts, several, strict=True):
        assert abs(first - start) <= 3
        assert abs(last - (start + 60)) <= 3
        assert (pairs[:, 1] - pairs[:, 0] == start).mean() > 0.9


def test_threads_and_neighbours_do_not_matter():
    rng = np.random.default_rng(6)
    family, consensus = family_of(rng, 40)
    sequences = [one for _ in range(5) for one in members(rng, consensus)]
    proteins = Partition.pack(sequences)
    for threads in (1, 3):
        found = Decoder(family).decode(proteins, threads=threads)
        for row, one in enumerate(found):
            (alone,) = Decoder(family).decode(Partition.pack([sequences[int(proteins.subject_index[row])]]))
            assert (one.bits, one.bias) == (alone.bits, alone.bias)
            for domain, other in zip(one.domains, alone.domains, strict=True):
                assert dataclasses.astuple(domain)[:5] == dataclasses.astuple(other)[:5]
                np.testing.assert_array_equal(domain.pairs, other.pairs)


def test_arrays_that_do_not_fit_are_refused():
    family, consensus = family_of(np.random.default_rng(7), 30)
    decoder = Decoder(family)
    model = decoder._odds, decoder._transitions, decoder._entry
    protein = consensus, np.zeros(1, np.uint64), np.array([30], np.uint32), np.full(1, -(10**6))
    for changed, message in (
        ((-model[0], *model[1:]), "odds of a pair"),
        ((model[0], model[1] * 2.0, model[2]), "of a transition"),
        ((*model[:2], model[2] + np.nan), "of a beginning"),
        ((model[0][:20].copy(), *model[1:]), "one row of odds"),
        ((model[0][:, :0].copy(), model[1][:, :0].copy(), model[2][:0]), "empty"),
    ):
        with pytest.raises(ValueError, match=message):
            _native.decode_domains(*changed, *protein)
    with pytest.raises(TypeError, match="columns"):
        _native.decode_domains(model[0][:, 1:].copy(), *model[1:], *protein)
    with pytest.raises(ValueError, match="leaves the array"):
        _native.decode_domains(*model, consensus, np.ones(1, np.uint64), *protein[2:])
    with pytest.raises(ValueError, match="threads"):
        _native.decode_domains(*model, *protein, 0)


def test_a_model_that_no_residue_can_have_has_no_domains():
    """By hand: with odds of 0, no path passes."""
    family, consensus = family_of(np.random.default_rng(8), 30)
    decoder = Decoder(family)
    protein = consensus, np.zeros(1, np.uint64), np.array([30], np.uint32), np.full(1, -(10**6))
    ((value, _, several),) = _native.decode_domains(0 * decoder._odds, decoder._transitions, decoder._entry, *protein)
    assert (value, several) == (0.0, [])


def test_expected_bits_are_about_those_of_one_domain():
    """Source: the decoded scores without their biases; the kernels have 16-bit numbers and other fragments."""
    rng = np.random.default_rng(10)
    (family, *_) = read_families(DATA / "families.hmm.gz", named_matrix("BLOSUM62"))
    with swsearch.open_database(DATA / "proteins.fasta.gz") as database:
        chosen = [record for record in database if "GTPase Obg" in record.header][:30]
        others = [database.record(int(one)) for one in rng.integers(0, 1500, 30)]
    proteins = Partition.pack([record.codes for record in [*chosen, *others]])
    decoded = Decoder(family).decode(proteins)
    bits = Decoder(family).expected_bits(proteins, 2)
    assert max(one.bits for one in decoded) > 400
    for one, expected in zip(decoded, bits, strict=True):
        if len(one.domains) == 1:
            assert expected == pytest.approx(one.bits + one.bias, rel=0.02, abs=3.0)
        assert expected > one.bits - 6.0 or len(one.domains) > 1


def compared_values(one):
    """Score, bias, the places in the model, of the alignment and of the envelope, and the accuracy, as in a table."""
    (model_start, model_end), (start, end) = one.of_model, one.of_protein
    places = [model_start + 1, model_end, start + 1, end, one.first + 1, one.last]
    return [one.bits, one.bias, *places, one.accuracy]


@pytest.mark.peer("hmmbuild")
def test_scores_and_places_are_those_of_hmmer(tmp_path):
    """Source: hmmsearch of HMMER 3, without its filters."""
    for name in ("families.hmm", "proteins.fasta"):
        (tmp_path / name).write_bytes(
            subprocess.run(["gzip", "-dc", DATA / f"{name}.gz"], check=True, capture_output=True).stdout
        )
    table = tmp_path / "domains.txt"
    command = ["hmmsearch", "--max", "--noali", "-o", "/dev/null", "--domtblout", table]
    subprocess.run([*command, tmp_path / "families.hmm", tmp_path / "proteins.fasta"], check=True)
    expected = {}
    for line in table.read_text().splitlines():
        if not line.startswith("#"):
            fields = line.split()
            expected.setdefault((fields[3], fields[0]), []).append([float(one) for one in fields[7:9] + fields[13:22]])
    differences, of_best = [], []
    with swsearch.open_database(DATA / "proteins.fasta.gz") as database:
        for family in read_families(DATA / "families.hmm.gz", named_matrix("BLOSUM62")):
            records = [one for one in database if (family.query.identifier, one.identifier) in expected]
            for record in records:
                (found,) = Decoder(family).decode(Partition.pack([record.codes]))
                theirs = expected[family.query.identifier, record.identifier]
                if theirs[0][0] < 10.0:  # by chance; its paths are many
                    continue
                domains = [compared_values(one) for one in found.domains]
                if len(domains) == len(theirs) == 1:
                    values = np.array([found.bits, found.bias, *domains[0]])
                    differences.append(np.abs(values - theirs[0]))
                else:
                    assert found.bits > theirs[0][0] - 2.0
                    of_best.append(max(one.bits for one in found.domains) - max(one[2] for one in theirs))
    columns = np.array(differences).T
    assert len(differences) > 120
    assert len(of_best) > 50
    assert abs(np.median(of_best)) < 0.1
    assert (np.quantile(columns[:4], 0.9, axis=1) < 0.3).all()
    assert (np.median(columns[:4], axis=1) < 0.05).all()  # scores and biases
    assert ((columns[4:10] == 0).all(axis=0)).mean() > 0.85  # all places
    assert np.quantile(columns[10], 0.9) < 0.01

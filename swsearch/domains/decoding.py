"""The domains of a family in proteins: envelopes, scores in bits and alignments, by posterior decoding.

The method is HMMER 3's (Eddy 2008, doi 10.1371/journal.pcbi.1000069, and 2011, doi 10.1371/journal.pcbi.1002195), so
scores are on the scale of its thresholds. Residues are compared with the model as they are written, without predicted
columns. Forward and Backward over the whole protein, with any number of domains, give the probability of each residue
to belong to one; residues with high probabilities are regions. Where a region probably has several domains, it is
divided between those of the most probable path (HMMER draws random paths there). Each envelope is then scored as one
domain, and aligned by the path with the largest sum of posterior probabilities.

The score of a domain is ln(F / N) / ln 2, where F is the sum of all paths through its envelope and N the probability of
the protein without a domain, minus a bias: ln(1 + r / 256) / ln 2, where r are the odds of the envelope's residues in
the composition of the states that are expected there. The score of the protein is that of all its paths, with the
biases of its domains, or the sum of its positive domains if that is larger.

A letter for several amino acids has the mean of their scores, by their shares among unrelated residues, and in a bias
the mean of their odds. ``*`` has no odds in a pair; in insertions and outside of domains all letters are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.deterministic import LN2, exp, log, sum_in_order
from swsearch.query.columns import SubjectOdds
from swsearch.query.hmm import FamilyModel
from swsearch.query.profile import DM, MI, MM
from swsearch.sequences.alphabet import AMINO_ACIDS, CODE_MASK, IUPAC_AMINO_ACIDS, N_AMINO_ACIDS, N_CODES, PROTEIN
from swsearch.typing import Codes, Floats, ScoreTable

BIAS_SHARE: Final = 1.0 / 256.0
"""The prior odds of a composition of its own."""
COMPOSITION: Final = (
    0.0787945, 0.0540978, 0.0414386, 0.0535222, 0.0151600, 0.0395639, 0.0668298, 0.0695071, 0.0229198, 0.0590092,
    0.0963728, 0.0594422, 0.0237718, 0.0397062, 0.0482904, 0.0683364, 0.0540687, 0.0114135, 0.0304133, 0.0673417,
)  # fmt: skip
"""Of unrelated residues in HMMER's models, that of Swiss-Prot 50.8, in the order ``ARNDCQEGHILKMFPSTWYV``. The search
has another one (:func:`swsearch.scoring.ungapped.background`), with which scores would be 0.5 bits higher."""
MAY_BE: Final = {**IUPAC_AMINO_ACIDS, "J": "IL", "U": "C", "O": "K"}
"""The amino acids that each other letter may be; as in HMMER, selenocysteine and pyrrolysine are read as cysteine and
lysine."""
_OTHERS: Final = [PROTEIN.code(letter) for letter in MAY_BE]
_LOG_BIAS_SHARE: Final = float(log(BIAS_SHARE))
_NO_BITS: Final = -1e6
"""Below every score."""
_WHOLE: Final = 4096
"""The whole of which shares are counted in whole numbers."""
_TINY: Final = float(np.finfo(np.float64).tiny)
"""In place of 0, which has no logarithm."""


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain in a protein.

    Attributes
    ----------
    first, last : int
        Residues of the envelope, which lie in first <= i < last.
    bits, bias : float
        The score, from which the bias has been subtracted.
    accuracy : float
        Mean posterior probability of the residues of the envelope in the alignment.
    pairs : uint32 array, shape (n, 2)
        The alignment: position of the model and residue of the protein of each pair, both ascending; empty if the
        domain was not aligned.
    """

    first: int
    last: int
    bits: float
    bias: float
    accuracy: float
    pairs: NDArray[np.uint32]

    @property
    def of_model(self) -> tuple[int, int]:
        """The positions of the model in the alignment, the first one and the one behind the last."""
        return int(self.pairs[0, 0]), int(self.pairs[-1, 0]) + 1

    @property
    def of_protein(self) -> tuple[int, int]:
        """The same for the residues of the protein."""
        return int(self.pairs[0, 1]), int(self.pairs[-1, 1]) + 1


@dataclass(frozen=True, eq=False)
class DecodedProtein:
    """A protein as a whole, in bits like its domains; these are in the order of their residues."""

    bits: float
    bias: float
    domains: tuple[Domain, ...]


class Decoder:
    """Finds the domains of one family."""

    def __init__(self, family: FamilyModel) -> None:
        self._model = family.model
        self._odds = np.ascontiguousarray(_odds(family.model.columns).T)
        self._transitions = np.ascontiguousarray(family.model.transitions.T)
        self._entry = entry_probabilities(family)

    def expected_bits(self, proteins: Partition, threads: int = 1) -> Floats:
        """About the score of each protein with one domain and without a bias, float64 of shape (n,).

        All fragments of the model are equally probable here, and the kernels of :mod:`swsearch.query.columns` add the
        paths in less than a tenth of the time.
        """
        n = proteins.lengths.astype(np.float64)
        ends = np.cumsum(proteins.lengths, dtype=np.uint64)
        starts = ends - proteins.lengths
        kinds = np.concatenate([proteins.codes(row) for row in range(len(proteins))]) & CODE_MASK
        odds = SubjectOdds(_odds_of_residues()[kinds], starts, proteins.lengths)
        n_fragments = len(self._model) * (len(self._model) + 1) / 2.0
        outside = n * log(n / (n + 3.0)) + log((3.0 / (n + 3.0)) ** 2 / 2.0) - _of_none(n)
        bits: Floats = (odds.forward(self._model, threads) - log(n_fragments) + outside) / LN2
        return bits

    def decode(self, proteins: Partition, least_bits: float = -np.inf, threads: int = 1) -> list[DecodedProtein]:
        """The domains in each protein; ``threads`` does not affect them.

        A protein whose score, before the bias is subtracted, is below ``least_bits`` may have no domains, and such a
        domain no alignment.
        """
        n = proteins.lengths.astype(np.float64)
        least = np.floor(np.maximum(least_bits, _NO_BITS) + _of_none(n) / LN2).astype(np.int64)
        found = _native.decode_domains(
            self._odds, self._transitions, self._entry, proteins.residues, proteins.starts, proteins.lengths, least,
            threads,
        )  # fmt: skip
        return [
            _scored(proteins.codes(row), log_of(total, exponent), several)
            for row, (total, exponent, several) in enumerate(found)
        ]


def entry_probabilities(family: FamilyModel) -> Floats:
    """The probability that a domain begins with each position, float64 of shape (length,).

    All fragments of the positions that a sequence of the family occupies are equally probable (Eddy 2008).
    """
    transitions = family.model.transitions[:-1]
    shares = [family.first_occupancy]
    for stays, returns in zip(
        (transitions[:, MM] + transitions[:, MI]).tolist(), transitions[:, DM].tolist(), strict=True
    ):
        shares.append(shares[-1] * stays + (1.0 - shares[-1]) * returns)
    occupied = np.array(shares)
    return occupied / float(sum_in_order(occupied * np.arange(len(occupied), 0, -1)))


@lru_cache(maxsize=1)
def _shares() -> Floats:
    """The shares of the amino acids among the unrelated residues that a letter of :data:`MAY_BE` is, shape (6, 20)."""
    may_be = np.array([[amino_acid in several for amino_acid in AMINO_ACIDS] for several in MAY_BE.values()])
    weights = may_be * np.array(COMPOSITION)
    shares: Floats = weights / sum_in_order(weights, axis=1)[:, None]
    return shares


def with_mean_scores(scores: ScoreTable) -> ScoreTable:
    """The score table of a search, in which letters for several amino acids have the mean of their scores."""
    shares = np.rint(_WHOLE * _shares())  # sums of whole numbers are exact in any order
    table = scores.copy()
    table[:, _OTHERS] = np.floor(scores[:, :N_AMINO_ACIDS].astype(np.float64) @ shares.T / _WHOLE + 0.5)
    return table


def _odds(columns: Floats) -> Floats:
    """The odds of each position and residue code, float64 of shape (length, 32); 0 for ``*`` and padding."""
    odds = np.zeros((len(columns), N_CODES))
    odds[:, :N_AMINO_ACIDS] = columns / np.array(COMPOSITION)
    shares = _shares()
    scores = np.zeros((len(columns), *shares.shape))
    np.multiply(log(odds[:, None, :N_AMINO_ACIDS]), shares, out=scores, where=shares > 0.0)
    odds[:, _OTHERS] = exp(sum_in_order(scores, axis=2))
    return odds


@lru_cache(maxsize=1)
def _odds_of_residues() -> NDArray[np.int16]:
    """The odds of the amino acids for each residue code, as :class:`SubjectOdds` has them, shape (32, 20).

    A letter for several has the mean of their odds, which is not less than that of the mean of their scores.
    """
    odds = np.zeros((N_CODES, N_AMINO_ACIDS))
    odds[:N_AMINO_ACIDS] = np.diag(1.0 / np.array(COMPOSITION))
    odds[_OTHERS] = _shares() / np.array(COMPOSITION)
    return np.rint(256.0 * odds).astype(np.int16)


def _of_all_letters(composition: Floats) -> Floats:
    """The odds of each residue code in a composition, from those of the amino acids; 1 for ``*``."""
    odds = np.ones(N_CODES)
    odds[:N_AMINO_ACIDS] = composition
    may_be = _shares() > 0.0
    odds[_OTHERS] = sum_in_order(composition * may_be, axis=1) / np.count_nonzero(may_be, axis=1)
    return odds


def _of_none(n: Floats) -> Floats:
    """The logarithm of the probability that proteins of n residues have no domain."""
    logarithms: Floats = n * log(n / (n + 1.0)) - log(n + 1.0)
    return logarithms


def log_of(value: float, exponent: int) -> float:
    """ln(value 2^exponent), where value is at least 0."""
    return float(log(max(value, _TINY))) + exponent * LN2


def _log1p_exp(value: float) -> float:
    """ln(1 + e^value)."""
    return value if value > 700.0 else float(log(1.0 + exp(value)))


def _scored(
    codes: Codes,
    total: float,
    several: Sequence[tuple[int, int, float, int, float, Floats, NDArray[np.uint32]]],
) -> DecodedProtein:
    """A protein from the logarithm of all its paths and what was found of each domain."""
    n = len(codes)
    kinds = codes & CODE_MASK
    of_none = float(_of_none(np.array([n], dtype=np.float64))[0])
    residue = float(log(n / (n + 3.0)))  # of a residue outside, where there may be several domains
    domains = []
    in_domains = sum_of_domains = expected_sum = all_expected = 0.0
    for first, last, value, exponent, accuracy, composition, pairs in several:
        counts = np.bincount(kinds[first:last], minlength=N_CODES)
        expected = float(sum_in_order(counts * log(np.maximum(_of_all_letters(composition), _TINY))))
        score = log_of(value, exponent)
        bias = _log1p_exp(expected + _LOG_BIAS_SHARE)
        bits = (score + (n - (last - first)) * residue - of_none - bias) / LN2
        domains.append(Domain(first, last, bits, bias / LN2, accuracy / (last - first), pairs))
        all_expected += expected
        if score > expected:
            sum_of_domains += score
            expected_sum += expected
            in_domains += last - first
    bias = _log1p_exp(all_expected + _LOG_BIAS_SHARE)
    before, bits = (total - of_none) / LN2, (total - of_none - bias) / LN2
    if in_domains:
        sum_of_domains += (n - in_domains) * residue
        bias_of_sum = _log1p_exp(expected_sum + _LOG_BIAS_SHARE)
        of_sum = (sum_of_domains - of_none - bias_of_sum) / LN2
        if of_sum > bits:
            before, bits = (sum_of_domains - of_none) / LN2, of_sum
    return DecodedProtein(bits, before - bits, tuple(domains))

"""The published Karlin-Altschul parameters: :func:`find_statistics` looks up a scoring scheme in NCBI's tables.

The table ``karlin_altschul.tsv`` in the folder of this module states its source and columns. The result for a scheme is
its :class:`Statistics`; for a scheme outside the table, it is the reason why there are none. Parameters of a similar
scheme are never used.

Protein matrices are identified by content, not by name: by the scores of pairs of the 20 amino acids, on which the
parameters depend. BLOSUM62 from a file is therefore BLOSUM62, and a copy with a changed score is not. There are two
versions of BLOSUM80: NCBI distributes one in thirds of a bit (A with A scores 7; Biopython has this one), and BLAST
uses another, in half bits (A with A scores 5). The published parameters are those of the second.

The rules for DNA are those of BLAST. Match, mismatch and gap costs are divided by the greatest common divisor of match
and mismatch. The rows of a match/mismatch pair have precedence. For gap costs at or above the thresholds of the pair,
gaps have no effect and the ungapped values apply. For 2/-3, 2/-5, 2/-7, 3/-4 and their multiples, scores are rounded
down to even ones before E-values are computed. NCBI's linear rows ("0/0") are stored with the costs that they denote,
open 0 and extend match/2 - mismatch, and apply only to these costs.

Variances of the aligned length are published for protein only. For DNA, the ungapped variances are exact,
α_u = s²/μ³, where μ and s² are the mean and variance of the score of a column in a true alignment. With gaps, they are
extrapolated from the mean length, ``alpha = α_u * max(1, a/a_u) ** 2.5``; the exponent is close to the one fitted to
the protein rows (2.48). The true covariance is close to the variance (within 3 % in most protein rows) and is assumed
to be equal to it.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from math import gcd, inf
from pathlib import Path
from typing import Final

import numpy as np

from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.scoring.scheme import ScoringScheme
from swsearch.scoring.ungapped import Ungapped, matrix_lambda
from swsearch.sequences.alphabet import N_AMINO_ACIDS, N_BASES, PROTEIN

SOURCE: Final = "NCBI BLAST tables (blast_stat.c)"

_DECIMAL: Final = Context(prec=40)
_UNGAPPED: Final = "none"
_EVEN_SCORES: Final = frozenset({"2/-3", "2/-5", "2/-7", "3/-4"})

_MATRIX_DIGESTS: Final = {
    "afe1980c0323001d": "BLOSUM45",
    "9912e2267a314d57": "BLOSUM50",
    "9b2ded231b0a76ed": "BLOSUM62",
    "dd731afc43071672": "BLOSUM80",
    "585cb3a639334bab": "BLOSUM90",
    "b15e7fd103f618d5": "PAM30",
    "bd2702cbf0c0258e": "PAM70",
    "350661c8ad10196b": "PAM250",
}
"""First 16 digits of the SHA-256 of a matrix's int8 scores, 20 by 20 in the order ARNDCQEGHILKMFPSTWYV."""

_THIRD_BIT_BLOSUM80: Final = "d8a824cff07fe072"


@dataclass(frozen=True)
class NoStatistics:
    """A scoring scheme without known statistics: hits have raw scores, no bit scores and no E-values.

    The ``reason`` also names similar schemes that have statistics.
    """

    reason: str


@dataclass(frozen=True)
class _Row:
    """A row of the table for gap costs (open, extend); ``alpha`` and ``sigma`` are None if not published."""

    gap: tuple[float, float]
    lam: float
    k: float
    a: float
    alpha: float | None
    sigma: float | None


@dataclass(frozen=True)
class _System:
    """The rows of one matrix or one reduced match/mismatch pair.

    ``ungapped_from`` are the smallest gap costs for which the ungapped parameters apply; None for protein, for which
    they never apply.
    """

    name: str
    gapped: tuple[_Row, ...]
    ungapped: Ungapped
    ungapped_from: tuple[float, float] | None

    def gaps(self, factor: int, near: tuple[int, int]) -> str:
        """The gap costs that have parameters, for scores of ``factor`` times this system; nearest to ``near`` first."""
        pairs = [(row.gap[0] * factor, row.gap[1] * factor) for row in self.gapped]
        whole = [pair for pair in pairs if pair[1] == int(pair[1])]
        whole.sort(key=lambda pair: (abs(pair[0] - near[0]) + 2 * abs(pair[1] - near[1]), pair))
        text = ", ".join(f"{opening:.0f}/{extend:.0f}" for opening, extend in whole)
        if self.ungapped_from is not None:
            opening, extend = self.ungapped_from
            text += f", or open {opening * factor:.0f} and extend {extend * factor:.0f} or more"
        return text


@cache
def _systems() -> dict[str, _System]:
    text = Path(__file__).with_name("karlin_altschul.tsv").read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    gapped: dict[str, list[_Row]] = {}
    ungapped: dict[str, tuple[Ungapped, tuple[float, float] | None]] = {}
    for record in csv.DictReader(lines, delimiter="\t"):
        name, costs = record["scoring"], (record["gap_open"], record["gap_extend"])
        gap = None if costs[0] == _UNGAPPED else (float(costs[0].rstrip("+")), float(costs[1].rstrip("+")))
        lam, k, a = (float(record[key]) for key in ("lambda", "k", "a"))
        alpha, sigma = (None if record[key] == "-" else float(record[key]) for key in ("alpha", "sigma"))
        if gap is None or costs[0].endswith("+"):
            assert alpha is not None
            ungapped[name] = (Ungapped(lam, k, a, alpha), gap)
        else:
            gapped.setdefault(name, []).append(_Row(gap, lam, k, a, alpha, sigma))
    return {name: _System(name, tuple(gapped[name]), free, start) for name, (free, start) in ungapped.items()}


def find_statistics(scheme: ScoringScheme) -> Statistics | NoStatistics:
    """The published statistics of a scoring scheme, or the reason why there are none.

    >>> from swsearch.scoring.scheme import default_scheme
    >>> found = find_statistics(default_scheme(PROTEIN))
    >>> found.lam, found.k
    (0.267, 0.041)
    """
    found = _system_of(scheme.matrix)
    if isinstance(found, NoStatistics):
        return found
    system, factor = found
    name, gap = system.name, (scheme.gap.open, scheme.gap.extend)
    row = next((row for row in system.gapped if (row.gap[0] * factor, row.gap[1] * factor) == gap), None)
    if scheme.alphabet is PROTEIN:
        scores, source = name, f"{SOURCE}, {name} {scheme.gap}"
    else:
        match, mismatch = (factor * int(score) for score in name.split("/"))
        scores = f"match {match}, mismatch {mismatch}"
        source = f"{SOURCE}, match/mismatch {name}, gap costs {scheme.gap}"
    if row is None:
        opening, extend = system.ungapped_from or (inf, inf)
        if gap[0] < opening * factor or gap[1] < extend * factor:
            return NoStatistics(
                f"no parameters are published for {scores} with gap costs {scheme.gap}; "
                f"choose one of {system.gaps(factor, gap)}"
            )
        source = f"ungapped Karlin-Altschul theory, match/mismatch {name}, as BLAST does for gap costs {scheme.gap}"
    if factor > 1:
        source += f", scaled by {factor}"
    return _statistics(row, system.ungapped, scheme, factor, 2 if name in _EVEN_SCORES else 1, source)


def published_gaps(scheme: ScoringScheme) -> str:
    """The gap costs with which parameters are published for a scheme's matrix, the nearest to the scheme's first.

    The text is empty if there are none.

    >>> from swsearch.scoring.scheme import default_scheme
    >>> published_gaps(default_scheme(PROTEIN))
    '11/1, 10/1, 12/1, 9/1, 11/2, 13/1, 10/2, 9/2, 8/2, 7/2, 6/2'
    """
    found = _system_of(scheme.matrix)
    return "" if isinstance(found, NoStatistics) else found[0].gaps(found[1], (scheme.gap.open, scheme.gap.extend))


def _system_of(matrix: SubstitutionMatrix) -> tuple[_System, int] | NoStatistics:
    """The published rows of a matrix, and the factor by which its scores exceed those of the rows."""
    return _protein_system(matrix) if matrix.alphabet is PROTEIN else _dna_system(matrix)


def _protein_system(matrix: SubstitutionMatrix) -> tuple[_System, int] | NoStatistics:
    scores = np.ascontiguousarray(matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS])
    digest = hashlib.sha256(scores.tobytes()).hexdigest()[:16]
    if digest == _THIRD_BIT_BLOSUM80:
        return NoStatistics(
            f"{matrix.name} is NCBI's BLOSUM80 in thirds of a bit, and the published parameters "
            "are for BLAST's BLOSUM80 in half bits; give that one as a matrix file, or choose BLOSUM62 or BLOSUM90"
        )
    name = _MATRIX_DIGESTS.get(digest)
    if name is None:
        return NoStatistics(
            f"no parameters are published for the scores of matrix {matrix.name}; "
            f"choose one of {', '.join(_MATRIX_DIGESTS.values())}"
        )
    return _systems()[name], 1


def _dna_system(matrix: SubstitutionMatrix) -> tuple[_System, int] | NoStatistics:
    scores = matrix.scores[:N_BASES, :N_BASES].astype(np.int64)
    match, mismatch = int(scores[0, 0]), int(scores[0, 1])
    if not np.array_equal(scores, np.where(np.eye(N_BASES, dtype=bool), match, mismatch)):
        return NoStatistics(
            f"the bases of matrix {matrix.name} have more than one match or mismatch score; "
            "choose a match and a mismatch score"
        )
    factor = gcd(match, mismatch) or 1
    system = _systems().get(f"{match // factor}/{mismatch // factor}")
    if system is None:
        known = [key for key, value in _systems().items() if value.ungapped_from is not None]
        return NoStatistics(
            f"no parameters are published for match {match}, mismatch {mismatch}; "
            f"choose one of {', '.join(known)} or a multiple"
        )
    return system, factor


def estimated_statistics(
    scheme: ScoringScheme,
    ungapped: Ungapped,
    lam: float,
    k: float,
    a: float,
    source: str,
    *,
    gapped: bool = True,
) -> Statistics:
    """Statistics of a scheme outside the table, from an estimate of its λ, K and mean aligned length.

    The variances of the aligned length are extrapolated from those without gaps, as for DNA (see above). ``ungapped``
    are the exact parameters of the same scores without gaps; ``a`` is the mean aligned length per unit of score, and
    ``source`` a sentence on the method. ``gapped`` is false if the estimate consists of the ungapped parameters.
    """
    row = _Row((float(scheme.gap.open), float(scheme.gap.extend)), lam, k, a, None, None)
    return _statistics(row if gapped else None, ungapped, scheme, 1, 1, source)


def _statistics(
    row: _Row | None, ungapped: Ungapped, scheme: ScoringScheme, factor: int, score_step: int, source: str
) -> Statistics:
    """Statistics from a table row, or without gaps if it is None; scores are ``factor`` times those of the row."""
    opening = 2.0 * (scheme.gap.open + scheme.gap.extend)  # G, the cost of a first gap residue, on both sides
    free = ungapped.alpha
    if row is None:
        row, opening = _Row((0.0, 0.0), ungapped.lam, ungapped.k, ungapped.a, free, free), 0.0
    alpha = row.alpha if row.alpha is not None else free * _to_the_5_halves(max(1.0, row.a / ungapped.a))
    sigma = row.sigma if row.sigma is not None else alpha
    return Statistics(
        lam=row.lam / factor,
        k=row.k,
        a=row.a / factor,
        b=opening * (ungapped.a - row.a) / factor,
        alpha=alpha / factor,
        beta=opening * (free - alpha) / factor,
        sigma=sigma / factor,
        tau=opening * (free - sigma) / factor,
        score_step=score_step,
        source=source,
    )


def _to_the_5_halves(ratio: float) -> float:
    """``ratio ** 2.5`` as the nearest float64, computed in decimal because the C library's ``pow`` is not portable."""
    exact = Decimal(ratio)
    return float(_DECIMAL.multiply(_DECIMAL.multiply(exact, exact), _DECIMAL.sqrt(exact)))


def source_of_evalues(scheme: ScoringScheme) -> str:
    """In a few words: NCBI's tables for some gap costs, a simulation for all others, or the reason why there are none.

    >>> from swsearch.scoring.matrix import named_matrix
    >>> from swsearch.scoring.scheme import default_gap
    >>> matrices = named_matrix("HOXD70"), named_matrix("TRANS")
    >>> [source_of_evalues(ScoringScheme(matrix, default_gap(matrix))) for matrix in matrices]
    ['simulated', 'none: random letters score 0 or more on average']
    """
    if matrix_lambda(scheme.matrix) is None:
        return "none: random letters score 0 or more on average"
    published = published_gaps(scheme)
    if isinstance(find_statistics(scheme), Statistics):
        return f"NCBI's for {published}"
    return f"simulated; NCBI's for {published}" if published else "simulated"

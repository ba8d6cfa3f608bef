"""The scoring scheme: a substitution matrix and a gap cost, which together define all scores of a search."""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.matrix import SubstitutionMatrix, match_mismatch, named_matrix
from swsearch.sequences.alphabet import PROTEIN, Alphabet


@dataclass(frozen=True)
class ScoringScheme:
    """A matrix with a gap cost; immutable, and the key of the statistics tables.

    >>> print(default_scheme(PROTEIN))
    BLOSUM62, a gap of k residues costs 11 + 1k
    """

    matrix: SubstitutionMatrix
    gap: GapPenalty

    @property
    def alphabet(self) -> Alphabet:
        """The required alphabet of query and subjects."""
        return self.matrix.alphabet

    def __str__(self) -> str:
        opening = f"{self.gap.open} + " if self.gap.open else ""
        return f"{self.matrix.name}, a gap of k residues costs {opening}{self.gap.extend}k"


def default_scheme(alphabet: Alphabet) -> ScoringScheme:
    """BLOSUM62 11/1 for protein; match 2, mismatch -3, gap 5/2 for DNA."""
    if alphabet is PROTEIN:
        return ScoringScheme(named_matrix("BLOSUM62"), GapPenalty(11, 1))
    return ScoringScheme(match_mismatch(2, -3), GapPenalty(5, 2))

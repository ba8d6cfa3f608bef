"""The scoring scheme: a substitution matrix and a gap cost, which together define all scores of a search.

A gap of ``k`` residues costs ``open + k * extend``; no other module defines this cost. BLAST, SSEARCH, SWIPE and
DIAMOND use the same convention: with "11/1" the first residue of a gap costs 12. Opal, parasail and CUDASW++4 charge
``open + (k - 1) * extend``, so their open corresponds to ``open + extend`` here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from swsearch.errors import ScoringError
from swsearch.scoring.matrix import SubstitutionMatrix, match_mismatch, named_matrix
from swsearch.sequences.alphabet import PROTEIN, Alphabet
from swsearch.words import option

MAX_GAP_COST: Final = 16_383
"""Largest open cost and largest extend cost; their sum, and twice each, fit in signed 16 bits in every engine."""


@dataclass(frozen=True)
class GapPenalty:
    """An affine gap cost; ``open`` is 0 for a linear one.

    Raises
    ------
    ScoringError
        ``open`` or ``extend`` is negative or above 16,383, or both are 0.
    """

    open: int
    extend: int

    def __post_init__(self) -> None:
        for name, value in (("gap open", self.open), ("gap extend", self.extend)):
            if not 0 <= value <= MAX_GAP_COST:
                raise ScoringError(f"{name} cost {value} is out of range; choose 0 to {MAX_GAP_COST}")
        if self.open + self.extend == 0:
            raise ScoringError("gaps would cost nothing; choose a gap open or gap extend cost of at least 1")

    @property
    def first(self) -> int:
        """Cost of a gap of one residue."""
        return self.open + self.extend

    def cost(self, length: int) -> int:
        """Cost of a gap of ``length`` residues.

        >>> GapPenalty(11, 1).cost(1), GapPenalty(11, 1).cost(3), GapPenalty(0, 2).cost(3)
        (12, 14, 6)
        """
        return self.open + length * self.extend if length > 0 else 0

    def __str__(self) -> str:
        return f"{self.open}/{self.extend}"


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

    def check_local(self) -> None:
        """Check that local alignments exist.

        Raises
        ------
        ScoringError
            No pair of letters has a score above 0.
        """
        if self.matrix.max_score <= 0:
            raise ScoringError(
                f"{self.matrix.name}: no pair of letters scores above 0, so nothing aligns locally; "
                f"choose scores above 0, or align {option('mode', 'global')}"
            )

    def __str__(self) -> str:
        opening = f"{self.gap.open} + " if self.gap.open else ""
        return f"{self.matrix.name}, a gap of k residues costs {opening}{self.gap.extend}k"


_GAPS: Final[Mapping[str, GapPenalty]] = MappingProxyType(
    {
        # BLAST's defaults. Its BLOSUM80 is another matrix (swsearch.scoring.published_parameters).
        "BLOSUM45": GapPenalty(14, 2),
        "BLOSUM50": GapPenalty(13, 2),
        "BLOSUM90": GapPenalty(10, 1),
        "PAM30": GapPenalty(9, 1),
        "PAM70": GapPenalty(10, 1),
        "PAM250": GapPenalty(14, 2),
        # Scores in thirds of a bit, as those of PAM250.
        "BENNER6": GapPenalty(14, 2),
        "BENNER22": GapPenalty(14, 2),
        "BENNER74": GapPenalty(14, 2),
        "BLOSUM80": GapPenalty(14, 2),
        "DAYHOFF": GapPenalty(14, 2),
        "GONNET1992": GapPenalty(14, 2),
        "JOHNSON": GapPenalty(14, 2),
        "JONES": GapPenalty(14, 2),
        "MDM78": GapPenalty(14, 2),
        # Costs of which the scores of random proteins grow with the logarithm of their length; with 110/10 they grow
        # with the length.
        "GENETIC": GapPenalty(150, 20),
        "HOXD70": GapPenalty(400, 30),  # Chiaromonte, Yap and Miller 2002; also the defaults of BLASTZ and LASTZ
        "NUC.4.4": GapPenalty(10, 6),  # BLAST has statistics for 5/-4 with these costs
    }
)
"""Default gap costs of named matrices; the others have those of their alphabet."""


def default_gap(matrix: SubstitutionMatrix) -> GapPenalty:
    """The default gap costs of a matrix: those of the matrix of this name, or else 11/1 for protein and 5/2 for DNA.

    >>> print(default_gap(named_matrix("BLOSUM62")), default_gap(match_mismatch(1, -3)))
    11/1 5/2
    """
    if matrix.name in _GAPS and matrix == named_matrix(matrix.name):  # a file of this name may have other scores
        return _GAPS[matrix.name]
    return GapPenalty(11, 1) if matrix.alphabet is PROTEIN else GapPenalty(5, 2)


def default_scheme(alphabet: Alphabet) -> ScoringScheme:
    """BLOSUM62 11/1 for protein; match 2, mismatch -3, gap 5/2 for DNA."""
    matrix = named_matrix("BLOSUM62") if alphabet is PROTEIN else match_mismatch(2, -3)
    return ScoringScheme(matrix, default_gap(matrix))

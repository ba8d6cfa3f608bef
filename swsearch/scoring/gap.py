"""Gap costs: a gap of ``k`` residues costs ``open + k * extend``. No other module defines this cost.

BLAST, SSEARCH, SWIPE and DIAMOND use the same convention: with "11/1" the first residue of a gap costs 12. Opal,
parasail and CUDASW++4 charge ``open + (k - 1) * extend``, so their open corresponds to ``open + extend`` here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from swsearch.errors import ScoringError

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

    @property
    def linear(self) -> bool:
        """Whether every residue of a gap costs the same."""
        return self.open == 0

    def cost(self, length: int) -> int:
        """Cost of a gap of ``length`` residues.

        >>> GapPenalty(11, 1).cost(1), GapPenalty(11, 1).cost(3), GapPenalty(0, 2).cost(3)
        (12, 14, 6)
        """
        return self.open + length * self.extend if length > 0 else 0

    def __str__(self) -> str:
        return f"{self.open}/{self.extend}"

"""Scores of letters and costs of gaps for pairs: a scoring scheme of a search, a named cost set, edit distance, LCS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from swsearch.errors import InputError
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.scoring.scheme import ScoringScheme


@dataclass(frozen=True)
class PairScoring:
    """Scores of letters and costs of gaps; a gap of k letters costs ``gap_open + k * gap_extend``.

    Attributes
    ----------
    name : str
        The name that reports print.
    match, mismatch : int
        Scores of equal and of different letters, used if there is no matrix.
    gap_open, gap_extend : int
        Costs, from 0 to 16,383.
    matrix : SubstitutionMatrix or None
        Scores of the letters of an alphabet; None if letters are compared.
    """

    name: str
    match: int
    mismatch: int
    gap_open: int
    gap_extend: int
    matrix: SubstitutionMatrix | None = None

    @property
    def max_score(self) -> int:
        """Largest score of two letters."""
        return max(self.match, self.mismatch) if self.matrix is None else self.matrix.max_score


def scheme_scoring(scheme: ScoringScheme) -> PairScoring:
    """The pair scoring of a search's scheme."""
    return PairScoring(str(scheme), 0, 0, scheme.gap.open, scheme.gap.extend, scheme.matrix)


EDIT: Final = PairScoring("edit distance: insertion, deletion and substitution cost 1", 0, -1, 0, 1)
LCS: Final = PairScoring("longest common subsequence: equal letters count 1", 1, -1, 0, 0)
"""Gaps cost nothing, so the alignment of two different letters (-1) always scores less than two gaps."""

COST_SETS: Final[Mapping[str, PairScoring]] = MappingProxyType(
    {
        "nw2009": PairScoring("costs: indel 3, substitution 1, match 0", 0, -1, 0, 3),
        "sw2023": PairScoring("match 1, substitution -1, gap -2", 1, -1, 0, 2),
    }
)
"""Cost sets by name. A cost is a score with the opposite sign."""


def cost_set(name: str) -> PairScoring:
    """A cost set by name.

    >>> cost_set("nw2009").gap_extend
    3
    """
    if name not in COST_SETS:
        raise InputError(f"--costs {name!r} is unknown; choose {', '.join(COST_SETS)}")
    return COST_SETS[name]

"""What letters and gaps are worth in a pair: a search's scoring scheme, a named cost set, edit distance, LCS."""

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
        As reports print it.
    match, mismatch : int
        Scores of equal and of different letters, where there is no matrix.
    gap_open, gap_extend : int
        Costs, from 0 to 16,383.
    matrix : SubstitutionMatrix or None
        Scores of the letters of an alphabet.
    """

    name: str
    match: int
    mismatch: int
    gap_open: int
    gap_extend: int
    matrix: SubstitutionMatrix | None = None


def scheme_scoring(scheme: ScoringScheme) -> PairScoring:
    """The scoring of a search."""
    return PairScoring(str(scheme), 0, 0, scheme.gap.open, scheme.gap.extend, scheme.matrix)


EDIT: Final = PairScoring("edit distance: insertion, deletion and substitution cost 1", 0, -1, 0, 1)
LCS: Final = PairScoring("longest common subsequence: equal letters count 1", 1, -1, 0, 0)
"""With free gaps, two different letters (-1) are always worse than one of each in a gap."""

COST_SETS: Final[Mapping[str, PairScoring]] = MappingProxyType(
    {
        "nw2009": PairScoring("costs: indel 3, substitution 1, match 0", 0, -1, 0, 3),
        "sw2023": PairScoring("match 1, substitution -1, gap -2", 1, -1, 0, 2),
    }
)
"""Cost sets by name. A cost is a score with its sign turned."""


def cost_set(name: str) -> PairScoring:
    """A cost set by name.

    >>> cost_set("nw2009").gap_extend
    3
    """
    if name not in COST_SETS:
        raise InputError(f"--costs {name!r} is unknown; choose {', '.join(COST_SETS)}")
    return COST_SETS[name]

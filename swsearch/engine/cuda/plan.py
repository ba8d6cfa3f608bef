"""How a query is scored: score type, tile, strips, and which subjects go to which kernel. Pure functions, no device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from swsearch.engine.cuda.kernels import Arithmetic, Pairing
from swsearch.engine.cuda.profile import residue_columns
from swsearch.engine.cuda.tuning import TunedTile, choose_list_tile, choose_tile
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths

FAST_GAP_LIMIT: Final = 2047
"""Largest cost of a gap's first residue that the fast type adds exactly."""
DEFERRED_COLUMNS: Final = 4
"""Columns between two looks at the largest E in the deferred kernels (``strip.cuh``)."""
PAIRING_GAIN: Final = 1.08
"""Speed of two queries a word over one, at equal padding; pairs whose padding costs more are not made."""
LONG_SHARE: Final = 0.7
LONG_LEAST: Final = 1500
"""Subjects longer than this part of a group's fair share of all residues, and than this length, get a warp each."""


@dataclass(frozen=True)
class Batch:
    """One query, or two that share words; by their place in the caller's list."""

    places: tuple[int, ...]


def fits_fast(profile: QueryProfile) -> bool:
    """Whether the fast type can hold the gap costs."""
    return profile.gap.first <= FAST_GAP_LIMIT


def pair_queries(profiles: Sequence[QueryProfile], architecture: int) -> list[Batch]:
    """Batches of two queries of like length where that is faster than one after the other, else of one.

    Every profile is in exactly one batch. Two queries share words only if both fit the fast type, with equal gap costs.
    """
    order = sorted(range(len(profiles)), key=lambda place: (profiles[place].length, place))
    batches: list[Batch] = []
    waiting: int | None = None
    for place in order:
        if waiting is not None and _worth_pairing(profiles[waiting], profiles[place], architecture):
            batches.append(Batch((waiting, place)))
            waiting = None
            continue
        if waiting is not None:
            batches.append(Batch((waiting,)))
        waiting = place
    if waiting is not None:
        batches.append(Batch((waiting,)))
    return batches


def _worth_pairing(first: QueryProfile, second: QueryProfile, architecture: int) -> bool:
    if first.gap != second.gap or not fits_fast(first):
        return False
    columns = residue_columns([first, second])

    def rows(pairing: Pairing, length: int) -> int:
        tile = choose_tile(architecture, pairing, columns, length).tile
        return tile.strips(length) * tile.rows

    alone = rows(Pairing.ROW_BLOCKS, first.length) + rows(Pairing.ROW_BLOCKS, second.length)
    together = 2 * rows(Pairing.TWO_QUERIES, max(first.length, second.length))
    return together < alone * PAIRING_GAIN


def deferred_limit(profile: QueryProfile, floor: int | None) -> int | None:
    """Lowest result of a deferred kernel with which a subject may score ``floor``, or None if deferring cannot tell.

    The floor is lowered to what the fast type holds for certain, so that no score that leaves the type is missed.
    """
    if floor is None:
        return None
    certain = min(floor, Arithmetic.FAST.largest_exact(profile.max_score) - profile.max_score)
    limit = certain - profile.gap.open - DEFERRED_COLUMNS * profile.gap.extend
    return limit if limit > 0 else None


def first_long(lengths: Lengths, n_residues: int, n_groups: int) -> int:
    """Place of the first subject that gets a warp of its own; lengths grow.

    A group of lanes that gets a subject of more than its fair share of all residues would end after all others.

    Parameters
    ----------
    lengths : uint32 array, growing
    n_residues : int
        Their sum.
    n_groups : int
        Groups of lanes that the device runs at a time.
    """
    limit = max(int(n_residues / max(n_groups, 1) * LONG_SHARE), LONG_LEAST)
    return int(np.searchsorted(lengths, limit, side="right"))


@dataclass(frozen=True)
class RangePlan:
    """The inter-task launches of a batch."""

    arithmetic: Arithmetic
    shape: TunedTile
    strips: int
    deferred: bool


def plan_range(profiles: Sequence[QueryProfile], architecture: int, *, deferred: bool) -> RangePlan:
    """Type and tile of one query or of two."""
    columns = residue_columns(profiles)
    length = max(profile.length for profile in profiles)
    arithmetic = Arithmetic.FAST if all(fits_fast(profile) for profile in profiles) else Arithmetic.SHORT
    pairing = Pairing.TWO_QUERIES if len(profiles) == 2 else Pairing.ROW_BLOCKS
    shape = choose_tile(architecture, pairing, columns, length)
    return RangePlan(arithmetic, shape, shape.tile.strips(length), deferred and arithmetic is Arithmetic.FAST)


def plan_list(profile: QueryProfile, architecture: int, arithmetic: Arithmetic) -> TunedTile:
    """Tile of the kernel for listed subjects."""
    pairing = Pairing.SINGLE if arithmetic is Arithmetic.WIDE else Pairing.ROW_BLOCKS
    return choose_list_tile(architecture, pairing, residue_columns([profile]), profile.length)

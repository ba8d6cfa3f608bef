"""Packed profiles on the host for one call of the engine: made while kernels run, and kept for the pieces to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from swsearch.engine.cuda.kernels import Arithmetic, Tile
from swsearch.engine.cuda.plan import InterTaskPlan
from swsearch.engine.cuda.profile import Words, pack_profile, pack_strip
from swsearch.query.profile import QueryProfile

CACHE_BYTES: Final = 256 << 20
"""Memory for packed profiles. A streamed database meets each query once a piece; packing takes as long as a piece of a
few megabytes takes to score."""

_Key = tuple[tuple[int, ...], Tile | InterTaskPlan, Arithmetic]


def _pack_plan(profiles: Sequence[QueryProfile], plan: InterTaskPlan) -> Words:
    parts = [
        pack_strip([profiles[i] for i in plan.queries(strip)], strip.shape.tile, plan.arithmetic, strip.first_row)
        for strip in plan.strips
    ]
    return np.concatenate(parts)


class ProfileCache:
    """The words of a call's profiles. Profiles are known by identity, so the call must hold them.

    Attributes
    ----------
    ahead : tuple of profiles, Tile or InterTaskPlan, and Arithmetic, or None
        What :meth:`pack_ahead` is to pack.
    """

    def __init__(self) -> None:
        self.ahead: tuple[Sequence[QueryProfile], Tile | InterTaskPlan, Arithmetic] | None = None
        self._cached: dict[_Key, Words] = {}
        self._cached_bytes = 0

    def words(self, profiles: Sequence[QueryProfile], strips: Tile | InterTaskPlan, arithmetic: Arithmetic) -> Words:
        """All strips of the profiles, one after another: in one tile, or in the tiles of a plan."""
        key = (tuple(map(id, profiles)), strips, arithmetic)
        words = self._cached.get(key)
        if words is None:
            if isinstance(strips, Tile):
                words = pack_profile(profiles, strips, arithmetic)
            else:
                words = _pack_plan(profiles, strips)
            self._cached_bytes += words.nbytes
            while self._cached and self._cached_bytes > CACHE_BYTES:
                self._cached_bytes -= self._cached.pop(next(iter(self._cached))).nbytes
            self._cached[key] = words
        return words

    def pack_ahead(self) -> None:
        """Pack what comes next, unless it is there."""
        if self.ahead is not None:
            self.words(*self.ahead)
            self.ahead = None

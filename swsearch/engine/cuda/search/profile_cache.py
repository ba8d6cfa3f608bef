"""A host cache of one engine call's packed profiles, which are reused by later pieces of the database."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

import numpy as np

from swsearch.engine.cuda.runtime.kernels import Arithmetic, Tile
from swsearch.engine.cuda.search.profile import Words, pack_profile, pack_strips
from swsearch.engine.cuda.search.routing import InterTaskPlan
from swsearch.query.profile import QueryProfile

CACHE_BYTES: Final = 256 << 20
"""Memory for packed profiles. Each piece of a streamed database needs every profile again, and packing takes as long as
scoring a piece of a few megabytes."""

_Key = tuple[tuple[int, ...], Tile | InterTaskPlan, Arithmetic]


def _pack_plan(profiles: Sequence[QueryProfile], plan: InterTaskPlan) -> Words:
    parts = []
    for (tile, queries), same in groupby(plan.strips, lambda strip: (strip.shape.tile, plan.queries(strip))):
        strips = list(same)
        chosen = [profiles[index] for index in queries]
        parts.append(pack_strips(chosen, tile, plan.arithmetic, strips[0].first_row, len(strips)))
    return np.concatenate(parts)


class ProfileCache:
    """The words of a call's profiles. The keys are object identities, so the caller must retain the profiles."""

    def __init__(self) -> None:
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

"""The place of a search in the queue, and the time until its end, from the cells that are left of all searches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from swsearch.store.search_records import Waiting


@dataclass(frozen=True)
class SearchForecast:
    """When a search is predicted to end.

    Attributes
    ----------
    position : int
        1 for the search that ends first.
    seconds : float or None
        Time left; None while no worker has searched anything.
    """

    position: int
    seconds: float | None


def forecasts(waiting: Sequence[Waiting], cells_per_second: float) -> dict[str, SearchForecast]:
    """The forecast of every unfinished search, by its key, if owners and each owner's searches share evenly.

    A search with c cells left ends when each other search of its owner has had min(c, its own) cells, and each other
    owner as many cells as this owner until then, or all of theirs if these are fewer. The counters of
    :mod:`swsearch.store.leases` share so; batches and fresh searches make it an estimate.

    >>> found = forecasts([Waiting("big", "ann", 900), Waiting("small", "ann", 100), Waiting("other", "bob", 50)], 10.0)
    >>> {key: (forecast.position, forecast.seconds) for key, forecast in found.items()}
    {'other': (1, 10.0), 'small': (2, 25.0), 'big': (3, 105.0)}
    """
    of_owner: dict[str, list[int]] = {}
    for search in waiting:
        of_owner.setdefault(search.owner, []).append(search.cells_left)
    within = {owner: _shared(cells) for owner, cells in of_owner.items()}
    among = _shared([sum(cells) for cells in of_owner.values()])
    ends = {}
    for search in waiting:
        mine = within[search.owner](search.cells_left)
        total = sum(of_owner[search.owner])
        # The owner's own cells are counted in full; the others have had as many, or all of theirs.
        ends[search.key] = among(mine) - min(mine, total) + mine
    order = sorted(ends, key=lambda key: ends[key])
    speed = cells_per_second if cells_per_second > 0 else None
    return {
        key: SearchForecast(place, None if speed is None else ends[key] / speed) for place, key in enumerate(order, 1)
    }


class _shared:  # noqa: N801 - used as a function
    """For amounts a₁ … aₙ, the function x → Σ min(aᵢ, x), in logarithmic time."""

    def __init__(self, amounts: Iterable[int]) -> None:
        self._sorted = sorted(amounts)
        self._sums = [0, *accumulate(self._sorted)]

    def __call__(self, x: int) -> int:
        n_smaller = bisect_right(self._sorted, x)
        return self._sums[n_smaller] + x * (len(self._sorted) - n_smaller)

"""Estimates of time: of the searches that wait (:func:`search_estimates`), and of a batch of a worker (:class:`Pace`).

The first are made from the cells that are left of all searches. The time of a batch has a part for its cells, one for
its queries, and one for its alignments. The first two are fitted to the batches that were measured. A batch of
thousands of tiny queries has few cells and takes long, because each query has a profile, a ranking and a row of the
store; with cells alone, its estimate would be far too short, and the speed that it seems to show far too low.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Final

Estimate = tuple[int, float | None]
"""When a search is predicted to end: its place among the unfinished ones, 1 for the one that ends first, and the time
left in seconds; None while no worker has searched anything."""


def search_estimates(waiting: Mapping[str, tuple[str, int]], cells_per_second: float) -> dict[str, Estimate]:
    """The estimate of every unfinished search, by its key, if owners and each owner's searches share evenly.

    ``waiting`` has the owner of each search and the cells that are left, by its key (:meth:`.Searches.waiting`).

    A search with c cells left ends when each other search of its owner has had min(c, its own) cells, and each other
    owner as many cells as this owner until then, or all of theirs if these are fewer. The counters of
    :mod:`swsearch.store.queue` share so; batches and fresh searches make it an estimate.

    >>> waiting = {"big": ("ann", 900), "small": ("ann", 100), "other": ("bob", 50)}
    >>> search_estimates(waiting, cells_per_second=10.0)
    {'other': (1, 10.0), 'small': (2, 25.0), 'big': (3, 105.0)}
    """
    of_owner: dict[str, list[int]] = {}
    for owner, n_left in waiting.values():
        of_owner.setdefault(owner, []).append(n_left)
    within = {owner: _shared(cells) for owner, cells in of_owner.items()}
    among = _shared([sum(cells) for cells in of_owner.values()])
    ends = {}
    for key, (owner, n_left) in waiting.items():
        mine = within[owner](n_left)
        total = sum(of_owner[owner])
        # The owner's own cells are counted in full; the others have had as many, or all of theirs.
        ends[key] = among(mine) - min(mine, total) + mine
    order = sorted(ends, key=lambda key: ends[key])
    speed = cells_per_second if cells_per_second > 0 else None
    return {key: (place, None if speed is None else ends[key] / speed) for place, key in enumerate(order, 1)}


def _shared(amounts: Iterable[int]) -> Callable[[int], int]:
    """For amounts a₁ … aₙ, the function x → Σ min(aᵢ, x), in logarithmic time."""
    ascending = sorted(amounts)
    sums = [0, *accumulate(ascending)]

    def shared(x: int) -> int:
        n_smaller = bisect_right(ascending, x)
        return sums[n_smaller] + x * (len(ascending) - n_smaller)

    return shared


# --- batches ---


QUERY_SECONDS: Final = 0.004
"""Time of a query without cells and alignments, until it is measured."""
HIT_SECONDS: Final = 35e-6
"""Time of an alignment on the way from the engine to the store: 450,000 of 300 queries took 16 s (16 cores, SQLite)."""
MEMORY_SECONDS: Final = 20.0
"""Time of measured work after which an earlier measurement has lost about two thirds of its weight."""
_CONFIDENCE: Final = 0.05
"""Weight of the imaginary batches, in measured ones of a second."""
_FASTEST: Final = 100.0
"""Largest speed, in units of the first: batches with few cells say little about it."""


class Pace:
    """The time of batches on one database, from recent ones.

    The times q of a query and b of a cell minimize the sum of (n q + c b - t)² / t over the batches. A batch has n
    queries and c cells, and took the time t besides that for its alignments. Two imaginary batches, one of queries
    alone and one of cells alone, took what was predicted before; so what recent batches do not tell stays as it was.

    Parameters
    ----------
    first_speed : float
        Cells per second that are assumed until they are measured, above 0.

    >>> pace = Pace(1e9)
    >>> pace.cells_per_second, round(pace.query_seconds, 6)
    (1000000000.0, 0.004)
    >>> for _ in range(20):
    ...     pace.add(2000, 10**6, 0, 10.0)  # tiny queries
    ...     pace.add(4, 10**10, 0, 5.02)  # others
    >>> print(f"{pace.cells_per_second:.1e} {pace.query_seconds:.3f}")
    2.0e+09 0.005
    """

    def __init__(self, first_speed: float) -> None:
        self._first = first_speed
        # Sums of products over the batches. Cells are counted in seconds at the first speed, queries in QUERY_SECONDS.
        self._query_query = self._query_cell = self._cell_cell = self._query_time = self._cell_time = 0.0
        self._queries, self._cells = 1.0, 1.0

    def add(self, n_queries: int, n_cells: int, n_hits: int, seconds: float) -> None:
        """Count a batch.

        Parameters
        ----------
        n_queries, n_cells, n_hits : int
            Its queries, their cells, and the alignments that were found.
        seconds : float
            Its time, above 0.
        """
        time = max(seconds - HIT_SECONDS * n_hits, seconds / 10, 1e-6)
        queries, cells = n_queries * QUERY_SECONDS, n_cells / self._first
        fading = 1 / (1 + seconds / MEMORY_SECONDS)
        self._query_query = self._query_query * fading + queries * queries / time
        self._query_cell = self._query_cell * fading + queries * cells / time
        self._cell_cell = self._cell_cell * fading + cells * cells / time
        self._query_time = self._query_time * fading + queries
        self._cell_time = self._cell_time * fading + cells
        self._fit()

    def _fit(self) -> None:
        """The solution of the normal equations, or the nearest one with times that are possible."""
        a, b, c = self._query_query + _CONFIDENCE, self._query_cell, self._cell_cell + _CONFIDENCE
        u, v = self._query_time + _CONFIDENCE * self._queries, self._cell_time + _CONFIDENCE * self._cells
        determinant = a * c - b * b  # positive, because of the imaginary batches
        self._queries, self._cells = (u * c - v * b) / determinant, (a * v - b * u) / determinant
        if self._cells < 1 / _FASTEST:
            self._cells = 1 / _FASTEST
            self._queries = (u - b * self._cells) / a
        if self._queries < 0:
            self._queries, self._cells = 0.0, max(1 / _FASTEST, v / c)

    @property
    def cells_per_second(self) -> float:
        """Speed of the engine; above 0."""
        return self._first / self._cells

    @property
    def query_seconds(self) -> float:
        """Time of a query besides that of its cells and alignments; 0 or more."""
        return self._queries * QUERY_SECONDS

    def overhead(self, n_hits: int) -> int:
        """Number of cells that take as long as a query with ``n_hits`` alignments takes besides its own cells."""
        return round((self.query_seconds + HIT_SECONDS * n_hits) * self.cells_per_second)

"""The queries of one search on their way to workers: :class:`Stream`, which divides them into batches.

A batch is as large as the dispatcher asks, in cells, but its queries, its results and its bytes are bounded. Queries
are read ahead, so that the dispatcher sees the end of a search some seconds before it comes and can ask for smaller and
smaller batches; the workers then end at about the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from swsearch.cluster.parts import Batch
from swsearch.engine.protocol import Progress
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.sequences.record import SequenceRecord

MAX_PACKED_BYTES: Final = 1 << 22
"""Approximate size of the largest batch of queries."""
MAX_AHEAD_BYTES: Final = 8 * MAX_PACKED_BYTES
"""Approximate size of the queries that are read ahead."""


class Stream:
    """One call of a search.

    Parameters
    ----------
    queries : iterable of SequenceRecord
    cells_of : callable
        The number of cells of a query with all slices.
    max_queries : int
        Largest number of queries in a batch.
    progress : callable or None
        Told the cells of each part that is done.

    Attributes
    ----------
    batches : deque of Batch
        The batches that are begun and not yet yielded.
    cells_ahead : int
        Cells of the queries that were read and are in no batch yet.
    """

    def __init__(
        self,
        queries: Iterable[SequenceRecord],
        cells_of: Callable[[SequenceRecord], int],
        max_queries: int,
        progress: Progress | None,
    ) -> None:
        self._queries = iter(queries)
        self._cells_of = cells_of
        self._max_queries = max_queries
        self.progress = progress
        self.batches: deque[Batch] = deque()
        self.cells_ahead = 0
        self._ahead: deque[tuple[SequenceRecord, int, int]] = deque()  # with cells and bytes
        self._bytes_ahead = 0
        self._is_at_end = False

    @property
    def is_read(self) -> bool:
        """Whether all queries are in batches."""
        return self._is_at_end and not self._ahead

    def read_ahead(self, cells: float) -> bool:
        """Read queries until so many cells are ahead, or as many bytes as may be; returns whether all are read."""
        while not self._is_at_end and self.cells_ahead < cells and self._bytes_ahead < MAX_AHEAD_BYTES:
            query = next(self._queries, None)
            if query is None:
                self._is_at_end = True
                break
            n_bytes = query.scores.nbytes if isinstance(query, PositionSpecificQuery) else len(query)
            n_cells = self._cells_of(query)
            self._ahead.append((query, n_cells, n_bytes))
            self.cells_ahead += n_cells
            self._bytes_ahead += n_bytes
        return self._is_at_end

    def add_batch(self, order: int, cells: float, n_slices: int) -> Batch | None:
        """Begin a batch with the next queries, at least one and at most so many that ``cells`` are exceeded by one.

        Returns None if there are no more queries. ``order`` is the batch's number among those of all streams.
        """
        queries: list[SequenceRecord] = []
        n_cells: list[int] = []
        total_cells = total_bytes = 0
        while total_cells < cells and total_bytes < MAX_PACKED_BYTES and len(queries) < self._max_queries:
            if not self._ahead:
                self.read_ahead(1)
            if not self._ahead:
                break
            query, query_cells, query_bytes = self._ahead.popleft()
            queries.append(query)
            n_cells.append(query_cells)
            total_cells += query_cells
            total_bytes += query_bytes
            self.cells_ahead -= query_cells
            self._bytes_ahead -= query_bytes
        if not queries:
            return None
        batch = Batch(order, queries, n_cells, [{} for _ in queries], len(queries) * n_slices)
        self.batches.append(batch)
        return batch

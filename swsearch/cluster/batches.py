"""Batches of queries and their parts, and the workers that have them, as the dispatcher knows them.

:class:`BatchStream` divides the queries of one search into batches. The dispatcher chooses the cells of a batch; its
queries, results and bytes are bounded. Queries are read ahead, so that the dispatcher sees the end of a search some
seconds in advance and can choose smaller and smaller batches; the workers then end at about the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from swsearch.cluster.connection import WorkerInfo
from swsearch.cluster.tasks import Ready
from swsearch.hits.result import QueryResult
from swsearch.query.profile import PositionSpecificQuery
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Progress

PLACES: Final = 2
"""Parts that a worker has at a time."""
MEMORY_SHARE: Final = 0.7
"""Share of the memory of a worker without a GPU that slices may take."""


@dataclass(frozen=True)
class SliceTask:
    """What all parts of one slice have in common.

    ``spec`` is its packed :class:`SearchSpec`, ``n_bytes`` the memory that a worker needs to hold the slice, ``share``
    its share of the cells of a query.
    """

    spec: bytes
    n_bytes: int
    share: float


@dataclass(eq=False)
class TaskBatch:
    """Queries that are sent together; ``found`` has the results of each query by slice."""

    order: int
    queries: list[SequenceRecord]
    cells: list[int]
    found: list[dict[int, QueryResult]]
    n_missing: int


@dataclass(eq=False)
class Part:
    """The search of the queries ``first`` to ``stop`` - 1 of a batch in one slice.

    ``at`` has the workers that have it, ``losses`` the number of workers that ended while they probably worked on it.
    """

    batch: TaskBatch
    slice: int
    first: int
    stop: int
    at: set[str] = field(default_factory=set)
    losses: int = 0
    is_done: bool = False

    @property
    def key(self) -> tuple[int, int, int]:
        """Parts of earlier queries come first."""
        return self.batch.order, self.first, self.slice


@dataclass(frozen=True, eq=False)
class Flight:
    """A part at a worker, or (if None) the request to open its engine."""

    part: Part | None
    cells: float
    sent: float


@dataclass(eq=False)
class Worker:
    """A worker as the dispatcher knows it.

    ``rate`` is in cells per second; it was measured, or is expected of its engine, if ``is_measured``, otherwise a
    guess. ``ready`` is its message when its engine was open. ``slices`` has the slices that were assigned to it, the
    least recently used one first, and whether it has answered for each; ``flights`` its tasks by ticket, in the order
    in which they were sent; ``heard`` the time of its last answer. It ``is_late`` if it came after the search had
    begun.
    """

    info: WorkerInfo
    rate: float
    is_measured: bool = False
    ready: Ready | None = None
    slices: dict[int, bool] = field(default_factory=dict)
    flights: dict[int, Flight] = field(default_factory=dict)
    heard: float = 0.0
    is_silent: bool = False
    is_left_out: bool = False
    is_late: bool = False

    @property
    def room_bytes(self) -> int:
        """Memory for slices, at most; 0 until it is known."""
        if self.ready is None:
            return 0
        if self.ready.kept_bytes is not None:
            return self.ready.kept_bytes
        return int(MEMORY_SHARE * (self.info.limit_bytes or self.ready.host_bytes // self.info.n_on_host))

    @property
    def is_well(self) -> bool:
        """Whether it is ready, answers and may be given work."""
        return self.ready is not None and not (self.is_silent or self.is_left_out or self.info.is_paused)


MAX_PACKED_BYTES: Final = 1 << 22
"""Approximate size of the largest batch of queries."""
MAX_AHEAD_BYTES: Final = 8 * MAX_PACKED_BYTES
"""Approximate size of the queries that are read ahead."""


class BatchStream:
    """One call of a search.

    ``cells_of`` is the number of cells of a query with all slices; ``progress`` gets the cells of each completed part.
    ``batches`` are those that are begun and not yet yielded, ``cells_ahead`` the cells of queries that were read and
    are in no batch yet.
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
        self.batches: deque[TaskBatch] = deque()
        self.cells_ahead = 0
        self._ahead: deque[tuple[SequenceRecord, int, int]] = deque()  # with cells and bytes
        self._bytes_ahead = 0
        self._is_at_end = False

    @property
    def is_read(self) -> bool:
        """Whether all queries are in batches."""
        return self._is_at_end and not self._ahead

    def read_ahead(self, cells: float) -> bool:
        """Read queries until this number of cells, or the largest number of bytes, is ahead; returns whether all are
        read.
        """
        while not self._is_at_end and self.cells_ahead < cells and self._bytes_ahead < MAX_AHEAD_BYTES:
            query = next(self._queries, None)
            if query is None:
                self._is_at_end = True
                break
            n_bytes = len(query.content) if isinstance(query, PositionSpecificQuery) else len(query)
            n_cells = self._cells_of(query)
            self._ahead.append((query, n_cells, n_bytes))
            self.cells_ahead += n_cells
            self._bytes_ahead += n_bytes
        return self._is_at_end

    def add_batch(self, order: int, cells: float, n_slices: int) -> TaskBatch | None:
        """Begin a batch with the next queries: at least one, and no further one once they have ``cells`` cells.

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
        batch = TaskBatch(order, queries, n_cells, [{} for _ in queries], len(queries) * n_slices)
        self.batches.append(batch)
        return batch

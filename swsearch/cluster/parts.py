"""What the dispatcher keeps account of: batches of queries, their parts, and the workers that have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from swsearch.cluster.connection import WorkerInfo
from swsearch.cluster.tasks import Ready, SearchSpec
from swsearch.hits.result import QueryResult
from swsearch.sequences.record import SequenceRecord

PLACES: Final = 2
"""Parts that a worker has at a time."""
MEMORY_SHARE: Final = 0.7
"""Share of a worker's memory that slices may take."""


@dataclass(frozen=True)
class SliceTask:
    """What is the same for all parts of one slice.

    Attributes
    ----------
    spec : SearchSpec
    n_bytes : int
        Memory that a worker needs to hold the slice.
    share : float
        Its share of the cells of a query.
    """

    spec: SearchSpec
    n_bytes: int
    share: float


@dataclass(eq=False)
class Batch:
    """Queries that are sent together; ``found`` has the results of each query by slice."""

    order: int
    queries: list[SequenceRecord]
    cells: list[int]
    found: list[dict[int, QueryResult]]
    n_missing: int


@dataclass(eq=False)
class Part:
    """The search of the queries ``first`` to ``stop`` - 1 of a batch in one slice.

    Attributes
    ----------
    at : set of str
        The workers that have it.
    losses : int
        Number of workers that ended while they probably worked on it.
    is_done : bool
    """

    batch: Batch
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

    Attributes
    ----------
    info : WorkerInfo
    rate : float
        Cells per second.
    is_measured : bool
        Whether ``rate`` was measured, or is expected of its engine; otherwise it is a guess.
    ready : Ready or None
        What it said when its engine was open.
    slices : dict of int to bool
        The slices that it was given, the least recently used one first; whether it has answered for each.
    flights : dict of int to Flight
        Its tasks by ticket, in the order in which they were sent.
    heard : float
        Time of its last answer.
    is_silent, is_left_out : bool
    is_late : bool
        Whether it came after the search had begun.
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
        share = self.info.limit_bytes or self.ready.host_bytes // self.info.n_on_host
        return int(MEMORY_SHARE * (self.ready.engine_bytes or share))

    @property
    def is_well(self) -> bool:
        """Whether it is ready, answers and may be given work."""
        return self.ready is not None and not (self.is_silent or self.is_left_out or self.info.is_paused)

    @property
    def can_take(self) -> bool:
        """Whether it may be given a part at present."""
        return self.is_well and len(self.flights) < PLACES

"""Several GPUs as one engine: each is driven by a thread of its own and holds the database, or a share of it.

With many queries at once each device takes whole queries, balanced by length, against the whole partition: the devices
never wait for one another. With fewer queries than that, each device takes every query against its share of the
subjects. Which device scored what changes no score, so it changes no hit.
"""

from __future__ import annotations

import itertools
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

import numpy as np

from swsearch.database.partition import Partition
from swsearch.engine.cuda.device import Device, PyCudaDevice
from swsearch.engine.cuda.engine import CudaEngine
from swsearch.engine.protocol import Progress
from swsearch.errors import EngineError
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile

PROFILES_PER_DEVICE: Final = 8
"""Queries a device needs for whole queries to balance: with this many the last one to end is a small part."""
POLL_SECONDS: Final = 0.05


class _Stopped(Exception):
    """Raised in a device's thread, by its progress call, when the search is given up."""


class CudaDevices:
    """Scores on several GPUs; see :class:`swsearch.engine.protocol.ScoreEngine`.

    Parameters
    ----------
    ordinals : sequence of int
        Devices by their CUDA numbers, each once.
    open_device : callable
        Opens one of them, in the thread that will use it.
    memory_limit : int, optional
        Bytes of each device's memory that databases may take.

    Raises
    ------
    EngineUnavailable
        One of the devices cannot be used; the others are closed again.
    """

    name = "cuda"

    def __init__(
        self,
        ordinals: Sequence[int],
        open_device: Callable[[int], Device] = PyCudaDevice,
        memory_limit: int | None = None,
    ) -> None:
        self.ordinals = tuple(dict.fromkeys(ordinals))
        self._stop = False
        self._told: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._shares: dict[int, tuple[Partition, list[Partition]]] = {}
        self._threads = [ThreadPoolExecutor(1, f"cuda{ordinal}") for ordinal in self.ordinals]
        self._engines: list[CudaEngine] = []

        def open_engine(ordinal: int) -> CudaEngine:
            return CudaEngine(open_device(ordinal), memory_limit)

        opening = [
            thread.submit(open_engine, ordinal) for thread, ordinal in zip(self._threads, self.ordinals, strict=True)
        ]
        errors = [error for error in (future.exception() for future in opening) if error is not None]
        if errors:
            for thread, future in zip(self._threads, opening, strict=True):
                if future.exception() is None:
                    thread.submit(future.result().close).result()
                thread.shutdown()
            raise errors[0]
        self._engines = [future.result() for future in opening]

    @property
    def description(self) -> str:
        """The devices' names."""
        return ", ".join(engine.description for engine in self._engines)

    @property
    def profiles_per_call(self) -> int:
        """As many as every device gains from."""
        return sum(engine.profiles_per_call for engine in self._engines)

    @property
    def rows_per_call(self) -> int:
        """As many as every device gains from."""
        return sum(engine.rows_per_call for engine in self._engines)

    def score(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> list[ScoreBlock]:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        if not self._engines:
            raise EngineError("the CUDA engine was closed; make a new one")
        self._stop = False
        if len(profiles) >= PROFILES_PER_DEVICE * len(self._engines):
            return self._score_by_query(profiles, partition, floors, progress)
        return self._score_by_share(profiles, partition, floors, progress)

    def close(self) -> None:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        for thread, engine in zip(self._threads, self._engines, strict=False):
            thread.submit(engine.close).result()
        for thread in self._threads:
            thread.shutdown()
        self._engines = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- Sharing out ---

    def _score_by_query(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None,
        progress: Progress | None,
    ) -> list[ScoreBlock]:
        dealt: list[list[int]] = [[] for _ in self._engines]
        loads = [0] * len(self._engines)
        for place in sorted(range(len(profiles)), key=lambda place: -profiles[place].length):
            least = loads.index(min(loads))
            dealt[least].append(place)
            loads[least] += profiles[place].length
        work = [
            (
                [profiles[place] for place in places],
                partition,
                None if floors is None else [floors[place] for place in places],
            )
            for places in dealt
        ]
        blocks: dict[int, ScoreBlock] = {}
        for places, scored in zip(dealt, self._run(work, progress), strict=True):
            blocks.update(zip(places, scored, strict=True))
        return [blocks[place] for place in range(len(profiles))]

    def _score_by_share(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None,
        progress: Progress | None,
    ) -> list[ScoreBlock]:
        scored = self._run([(profiles, share, floors) for share in self._shares_of(partition)], progress)
        return [ScoreBlock.concatenate(list(parts)) for parts in zip(*scored, strict=True)]

    def _shares_of(self, partition: Partition) -> list[Partition]:
        """Ranges of about equal residues, one a device; the same objects each time, so that devices keep them."""
        known = self._shares.get(id(partition))
        if known is None or known[0] is not partition:
            ends = np.cumsum(partition.lengths, dtype=np.uint64)
            total = float(ends[-1]) if len(ends) else 0.0
            count = len(self._engines)
            cuts = [int(np.searchsorted(ends, total * share / count)) for share in range(1, count)]
            bounds = [0, *cuts, len(partition)]
            shares = [partition[start:stop] for start, stop in itertools.pairwise(bounds)]
            known = self._shares[id(partition)] = (partition, shares)
        return known[1]

    def _run(
        self,
        work: Sequence[tuple[Sequence[QueryProfile], Partition, Sequence[int] | None]],
        progress: Progress | None,
    ) -> list[list[ScoreBlock]]:
        """Each device's piece of work in its thread; progress is told from this one. All threads are idle on return."""

        def tell(cells: int) -> None:
            if self._stop:
                raise _Stopped
            self._told.put(cells)

        futures: list[Future[list[ScoreBlock]]] = [
            thread.submit(engine.score, profiles, partition, floors, tell)
            for thread, engine, (profiles, partition, floors) in zip(self._threads, self._engines, work, strict=True)
        ]
        try:
            while not all(future.done() for future in futures):
                try:
                    cells = self._told.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                if progress is not None:
                    progress(cells)
        except BaseException:
            self._stop = True
            for future in futures:
                future.exception()
            raise
        while not self._told.empty():
            cells = self._told.get()
            if progress is not None:
                progress(cells)
        return [future.result() for future in futures]

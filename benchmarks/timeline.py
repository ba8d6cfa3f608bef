"""The timeline of the batches of a GPU's engine: when the host prepared each, and when the device computed it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from swsearch.engine.cuda.runtime.device import Event
from swsearch.engine.cuda.search import engine
from swsearch.engine.cuda.search.batch_run import BatchRun
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.hits.score_block import ScoreBlock


@dataclass(frozen=True)
class BatchTime:
    """When one batch was prepared, computed and handed on.

    ``host`` are seconds by ``time.perf_counter``: the batch is packed from the first to the second, its results are
    awaited from the third, and handled from the fourth to the fifth. ``device`` are the seconds from the first kernel
    of the timeline to the first kernel and to the end of this batch.
    """

    indices: tuple[int, ...]
    host: tuple[float, float, float, float, float]
    device: tuple[float, float]


class Timeline:
    """The batches of each engine that were finished since this object was made; :func:`noted` makes it."""

    def __init__(self) -> None:
        self._batches: defaultdict[int, list[BatchTime]] = defaultdict(list)
        self._first: dict[int, Event] = {}

    def of(self, engine: CudaEngine) -> list[BatchTime]:
        """The batches of an engine, in the order of their ends."""
        return self._batches[id(engine.timing)]

    def note(self, engine: int, run: BatchRun, host: tuple[float, float, float, float, float]) -> None:
        first = self._first.setdefault(engine, run._began)
        on_device = run._began.seconds_since(first), run._ended.seconds_since(first)
        self._batches[engine].append(BatchTime(run.plan.indices, host, on_device))


@contextmanager
def noted() -> Iterator[Timeline]:
    """The timeline of what engines score in the with-block."""
    timeline = Timeline()

    class TimedRun(BatchRun):
        def start(self, *, sleeping: bool = False) -> None:
            began = time.perf_counter()
            super().start(sleeping=sleeping)
            self.prepared = began, time.perf_counter()

        def finish(self) -> list[ScoreBlock]:
            awaited = time.perf_counter()
            self._ended.wait()
            ended = time.perf_counter()
            blocks = super().finish()
            host = (*self.prepared, awaited, ended, time.perf_counter())
            timeline.note(id(self._resources.timing), self, host)
            return blocks

    usual, engine.BatchRun = engine.BatchRun, TimedRun
    try:
        yield timeline
    finally:
        engine.BatchRun = usual

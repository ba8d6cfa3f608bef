"""The time that kernels take, by events on the device, and the timeline of batches in flight."""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.engine.cuda.runtime.device import Event


@dataclass(frozen=True)
class BatchTime:
    """When one batch was prepared, computed and handed on.

    ``host`` are seconds by ``time.perf_counter``: the batch is planned and packed from the first to the second, its
    results are awaited from the third, and handled from the fourth to the fifth. ``device`` are the seconds from the
    first kernel of the timeline to the first kernel and to the end of this batch.
    """

    indices: tuple[int, ...]
    host: tuple[float, float, float, float, float]
    device: tuple[float, float]


@dataclass
class Timing:
    """The work of an engine's kernels since the engine was created or the timing was reset.

    ``cells`` are query residues times subject residues, each pair counted once; ``seconds`` are kernel time by events
    on the device. ``batches`` is the timeline, if a list is given; ``first`` and ``last`` are its first kernel and the
    end of the last work.
    """

    cells: int = 0
    seconds: float = 0.0
    batches: list[BatchTime] | None = None
    first: Event | None = None
    last: Event | None = None

    def add(self, began: Event, ended: Event) -> None:
        """Add the time of work that ended after all earlier work; what overlapped with earlier work counts once."""
        seconds = ended.seconds_since(began)
        if self.last is not None:
            seconds = min(seconds, ended.seconds_since(self.last))
        self.seconds += seconds
        self.last = ended

    def reset(self) -> None:
        """Set the sums to zero."""
        self.cells, self.seconds = 0, 0.0

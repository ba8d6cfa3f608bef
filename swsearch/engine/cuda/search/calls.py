"""The calls that an engine scores: what the caller gives and receives, and their batches in progress.

Each :class:`ScoreCall` has requests and a partition, and receives its blocks as soon as they are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from swsearch.database.partition import Partition
from swsearch.engine.cuda.search.plan import BatchPlan
from swsearch.engine.cuda.search.windows import CutSubjects
from swsearch.engine.protocol import ScoreRequest
from swsearch.hits.score_block import ScoreBlock
from swsearch.typing import Progress


class ScoreCall:
    """Requests against one partition, and their blocks by index. The device's thread calls all methods.

    A subclass may hand the blocks on while the device computes others. ``error`` is the reason if blocks are missing.
    """

    def __init__(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> None:
        self.requests = requests
        self.partition = partition
        self.blocks: dict[int, ScoreBlock] = {}
        self.error: BaseException | None = None
        self._progress = progress

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the results any longer; no further batch is started then."""
        return False

    def launched(self) -> None:
        """The device computes scores of the call; called once or more often."""

    def prepared(self) -> None:
        """The call is planned, and its kernels are being compiled."""

    def advanced(self, n_cells: int) -> None:
        """Further cells were computed; an error raised here ends the call."""
        if self._progress is not None:
            self._progress(n_cells)

    def scored(self, index: int, block: ScoreBlock) -> None:
        """The block of a request, by its index, is complete."""
        self.blocks[index] = block

    def ended(self, error: BaseException | None) -> None:
        """The device has finished with this call."""
        self.error = error


@dataclass(eq=False)
class CallInProgress:
    """A call in progress: its requests without a block, its batches in flight, and the error of one of its methods.

    If ``cut`` is given, the windows of the subjects are scored in their place.
    """

    call: ScoreCall
    n_missing: int
    cut: CutSubjects | None = None
    n_in_flight: int = 0
    error: BaseException | None = None

    @property
    def partition(self) -> Partition:
        """What is scored: the subjects of the call, or windows of them."""
        return self.call.partition if self.cut is None else self.cut.partition

    @property
    def is_dropped(self) -> bool:
        """Whether no further batch is to be started."""
        return self.error is not None or self.call.is_cancelled

    def tell(self, method: Callable[..., None], *arguments: Any) -> None:
        """Call a method of the call; its error ends this call, and no other."""
        if not self.is_dropped:
            try:
                method(*arguments)
            except BaseException as error:
                self.error = error

    def deliver(self, index: int, block: ScoreBlock) -> None:
        """Hand on the block of a request, which has the subjects or windows that were scored."""
        if self.cut is not None:
            block = self.cut.block(block, self.call.requests[index].floor)
        self.n_missing -= 1
        self.tell(self.call.scored, index, block)


@dataclass(eq=False)
class BatchGroup:
    """The batches of a call for which the same subjects are scored by diamonds: all but the first ``n_direct``.

    ``waiting`` has the batches without results, by the indices of their requests, ``blocks`` the blocks of the pieces
    that were scored, by request, and ``tiled`` those of the subjects that were scored by diamonds.
    """

    progress: CallInProgress
    n_direct: int
    waiting: dict[tuple[int, ...], BatchPlan] = field(default_factory=dict)
    blocks: dict[int, list[ScoreBlock]] = field(default_factory=dict)
    tiled: dict[int, ScoreBlock] = field(default_factory=dict)

    @property
    def partition(self) -> Partition:
        """The subjects that are not scored by diamonds."""
        whole = self.progress.partition
        return whole if self.n_direct == len(whole) else whole[: self.n_direct]

    def has_subjects_of(self, other: BatchGroup) -> bool:
        """Whether both groups are scored against the same subjects."""
        return self.progress.partition is other.progress.partition and self.n_direct == other.n_direct

    def joined(self, index: int) -> ScoreBlock:
        """The block of a request that was scored against all pieces, with the subjects that were scored by diamonds."""
        return ScoreBlock.concatenate([*self.blocks.pop(index), *([self.tiled[index]] if self.tiled else [])])

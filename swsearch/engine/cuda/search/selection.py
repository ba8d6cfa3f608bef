"""Selects subjects by their scores on the device: those to score again, those that reach a floor, and the best.

The input is the int32 score of every subject in device memory; the output is the indices and scores of the selected
subjects. The device counts them, and the first of them are downloaded without knowledge of their number, so that the
host does not wait between two launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.runtime.device import Buffer, Device, Stream
from swsearch.engine.cuda.runtime.kernels import COLLECT_BYTES, COLLECT_KERNEL, COLLECTED, COUNT_KERNEL, COUNTED_SCORES
from swsearch.engine.cuda.runtime.parameters import COLLECT, COUNT, packed
from swsearch.engine.cuda.search.launches import address
from swsearch.engine.cuda.search.slots import Slot
from swsearch.engine.protocol import TopKBound
from swsearch.typing import Lengths, Scores


@dataclass(frozen=True)
class ScoreFilter:
    """The subjects ``first`` to ``first + n_candidates - 1``, and the lowest score that selects them."""

    first: int
    n_candidates: int
    limit: int


@dataclass(eq=False)
class Selection:
    """Selected subjects on the device, in any order: indices and count (u32), and int32 scores unless they are not
    needed.

    The host arrays are pinned memory with the number and the first of the selected subjects, once downloaded.
    """

    indices: Buffer
    count: Buffer
    values: Buffer | None
    host_count: NDArray[np.uint32]
    host_indices: NDArray[np.uint32]
    host_values: NDArray[np.int32]

    @property
    def listed(self) -> tuple[int, int]:
        """The addresses of the indices and of the count."""
        return address(self.indices), address(self.count)

    @property
    def n_found(self) -> int:
        """The number of selected subjects, once downloaded."""
        return int(self.host_count[0])


@dataclass(frozen=True, eq=False)
class Selector:
    """Selects subjects by the scores in the memory of one batch.

    ``n_downloaded`` subjects are downloaded with their number; further ones need another download.
    """

    device: Device
    slot: Slot
    n_downloaded: int

    def select(
        self, scores: Buffer, candidates: Sequence[ScoreFilter], name: str, *, with_scores: bool = False
    ) -> Selection:
        """Enqueue the selection of the candidates that reach their limits, into buffers of this name.

        The download of their number and of the first of them begins as well.
        """
        device, scratch = self.device, self.slot.scratch
        capacity = max(sum(group.n_candidates for group in candidates), 1)
        n_host = min(capacity, self.n_downloaded)
        found = Selection(
            scratch.buffer(name, capacity * 4),
            scratch.buffer(f"{name} count", 4),
            scratch.buffer(f"{name} scores", capacity * 4) if with_scores else None,
            self.slot.pinned(1, np.uint32),
            self.slot.pinned(n_host if with_scores else 0, np.uint32),
            self.slot.pinned(n_host if with_scores else 0, np.int32),
        )
        device.clear(found.count, 4, Stream.FINISH)
        lists = address(found.indices), address(found.values), address(found.count)
        self.collect(scores, candidates, lists, Stream.FINISH)
        device.begin_download(found.host_count, found.count, Stream.FINISH)
        device.begin_download(found.host_indices, found.indices, Stream.FINISH)
        if found.values is not None:
            device.begin_download(found.host_values, found.values, Stream.FINISH)
        return found

    def collect(
        self, scores: Buffer, candidates: Sequence[ScoreFilter], lists: tuple[int, int, int], stream: Stream
    ) -> None:
        """Enqueue the kernel for each group of candidates.

        ``lists`` are the addresses of the list and of its scores, each null if it is not needed, and of its length.
        """
        listed, listed_scores, n_listed = lists
        for group in candidates:
            if group.n_candidates > 0:
                n_blocks = -(-group.n_candidates // COLLECTED)
                parameters = packed(
                    COLLECT, scores=address(scores), first=group.first, n_candidates=group.n_candidates,
                    limit=group.limit, listed=listed, listed_scores=listed_scores, n_listed=n_listed,
                )  # fmt: skip
                grid = min(n_blocks, self.device.facts.multiprocessors * 8)
                self.device.launch(COLLECT_KERNEL, grid, COLLECT_BYTES, parameters, stream)

    def downloaded(self, found: Selection) -> tuple[NDArray[np.intp], Scores]:
        """All selected subjects, ascending, with their scores; waits only if not all were downloaded."""
        n = found.n_found
        indices, values = found.host_indices[:n], found.host_values[:n]
        if n > len(indices):
            assert found.values is not None
            indices, values = np.empty(n, np.uint32), np.empty(n, np.int32)
            self.device.download(indices, found.indices, Stream.FINISH)
            self.device.download(values, found.values, Stream.FINISH)
        order = np.argsort(indices)
        return indices[order].astype(np.intp), values[order]

    def best(
        self, found: Selection, scores: Buffer, lengths: Lengths, floor: int, bound: TopKBound | None, name: str
    ) -> tuple[NDArray[np.intp], Scores, int | None]:
        """The selected subjects that can be among the best, ascending, their scores, and the number of the others.

        The number is None if the bound was not applied: it is if more subjects than were downloaded reach the floor. A
        histogram of the scores then gives the N-th best score, so that the others need no download.
        """
        if bound is not None and found.n_found > max(len(found.host_indices), bound.top) and floor < COUNTED_SCORES:
            n_reaching = self._counts(scores, len(lengths), name)[::-1].cumsum()[::-1]
            nth = int(np.flatnonzero(n_reaching >= bound.top)[-1])
            rows, values = self._at_least(scores, len(lengths), nth, name)
            lowest = max(floor, bound.lowest(values, lengths[rows]))
            if lowest < nth:
                rows, values = self._at_least(scores, len(lengths), lowest, name)
            keep = values >= lowest
            return rows[keep], values[keep], int(n_reaching[floor]) - int(keep.sum())
        rows, values = self.downloaded(found)
        return rows, values, None

    def _at_least(self, scores: Buffer, n_subjects: int, limit: int, name: str) -> tuple[NDArray[np.intp], Scores]:
        """The subjects that reach a score, ascending, with their scores; waits for the device."""
        found = self.select(scores, [ScoreFilter(0, n_subjects, limit)], f"{name} best", with_scores=True)
        self.device.event(Stream.FINISH).wait()
        return self.downloaded(found)

    def _counts(self, scores: Buffer, n_subjects: int, name: str) -> NDArray[np.int64]:
        """Number of subjects by score, shape (COUNTED_SCORES,); larger scores are counted in the last entry."""
        device = self.device
        counts = self.slot.scratch.buffer(f"{name} histogram", COUNTED_SCORES * 4)
        device.clear(counts, counts.n_bytes, Stream.FINISH)
        grid = max(1, min(-(-n_subjects // COUNT_KERNEL.threads), device.facts.multiprocessors * 4))
        parameters = packed(
            COUNT, scores=address(scores), n_subjects=n_subjects, n_bins=COUNTED_SCORES, counts=address(counts)
        )
        device.launch(COUNT_KERNEL, grid, COUNTED_SCORES * 4, parameters, Stream.FINISH)
        found = np.empty(COUNTED_SCORES, dtype=np.uint32)
        device.download(found, counts, Stream.FINISH)
        return found.astype(np.int64)


def best_of(
    scores: Scores, lengths: Lengths, floor: int, bound: TopKBound | None
) -> tuple[NDArray[np.intp] | slice, int]:
    """The rows that can be among the best N of the subjects that reach the floor, and the number of the others.

    Without a bound, all rows are returned.
    """
    if bound is None or len(scores) <= bound.top:
        return slice(None), 0
    nth = np.partition(scores, -bound.top)[-bound.top]
    best = scores >= nth
    keep = np.flatnonzero(scores >= max(floor, bound.lowest(scores[best], lengths[best])))
    return keep, len(scores) - len(keep)

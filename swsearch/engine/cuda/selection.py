"""Selects subjects by their scores on the device: those to score again, those that reach a floor, and the best.

The input is the int32 score of every subject in device memory; the output is the indices and scores of the selected
subjects, on the device or on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.device import Argument, Buffer, Device, Stream
from swsearch.engine.cuda.kernels import COLLECT_KERNEL, COUNT_KERNEL, COUNTED_SCORES
from swsearch.engine.cuda.launches import address, signed, unsigned
from swsearch.engine.cuda.scratch import Scratch
from swsearch.engine.cuda.subjects import DeviceSubjects
from swsearch.engine.protocol import TopKBound
from swsearch.hits.score_block import ScoreBlock


@dataclass(frozen=True)
class ScoreFilter:
    """Candidates, and the lowest score that selects them.

    Candidates are the subjects first to first + n_candidates - 1 or, with ``among``, the first n_candidates of the list
    in that scratch buffer.
    """

    first: int
    n_candidates: int
    limit: int
    among: str | None = None


class Selector:
    """Selects subjects by the scores in one device's memory.

    Parameters
    ----------
    device : Device
    scratch : Scratch
    """

    def __init__(self, device: Device, scratch: Scratch) -> None:
        self._device = device
        self._scratch = scratch

    def collect(
        self, scores: Buffer, candidates: Sequence[ScoreFilter], name: str, values: Buffer | None = None
    ) -> int:
        """List the candidates that reach their limits in scratch buffer ``name``, and return their number."""
        device = self._device
        listed = self._scratch.buffer(name, max(sum(group.n_candidates for group in candidates), 1) * 4)
        count = self._scratch.buffer(f"{name} count", 4)
        device.clear(count, 4, Stream.COMPUTE)
        for group in candidates:
            if group.n_candidates == 0:
                continue
            grid = max(1, min(-(-group.n_candidates // COLLECT_KERNEL.threads), device.facts.multiprocessors * 8))
            arguments: list[Argument] = [
                address(scores), address(None if group.among is None else self._scratch[group.among]),
                unsigned(group.first), unsigned(group.n_candidates), signed(group.limit),
                address(listed), address(values), address(count),
            ]  # fmt: skip
            device.launch(COLLECT_KERNEL, grid, 0, arguments, Stream.COMPUTE)
        found = np.empty(1, dtype=np.uint32)
        device.download(found, count, Stream.COMPUTE)
        return int(found[0])

    def at_least(self, subjects: DeviceSubjects, scores: Buffer, floor: int) -> ScoreBlock:
        """Subjects that score ``floor`` or more, in stored order."""
        indices, values = self._listed(subjects, scores, floor)
        return ScoreBlock(subjects.partition.subject_index[indices], values)

    def best(self, subjects: DeviceSubjects, scores: Buffer, floor: int, rule: TopKBound | None) -> ScoreBlock:
        """Subjects that score at least ``floor`` and can be among the best, and the number of the others.

        A histogram of the scores gives the N-th best score; the rule derives its bound from the subjects that reach
        that score.
        """
        if rule is None or len(subjects) <= rule.top:
            return self.at_least(subjects, scores, floor)
        n_reaching = self._counts(subjects, scores)[::-1].cumsum()[::-1]
        if floor >= COUNTED_SCORES or n_reaching[floor] <= rule.top:
            return self.at_least(subjects, scores, floor)
        nth = int(np.flatnonzero(n_reaching >= rule.top)[-1])
        indices, values = self._listed(subjects, scores, nth)
        lowest = max(floor, rule.lowest(values, subjects.partition.lengths[indices]))
        if lowest < nth:
            indices, values = self._listed(subjects, scores, lowest)
        wanted = values >= lowest
        n_left_out = int(n_reaching[floor]) - int(wanted.sum())
        return ScoreBlock(subjects.partition.subject_index[indices[wanted]], values[wanted], n_left_out=n_left_out)

    def _counts(self, subjects: DeviceSubjects, scores: Buffer) -> NDArray[np.int64]:
        """Number of subjects by score, shape (COUNTED_SCORES,); larger scores are counted in the last entry."""
        device = self._device
        counts = self._scratch.buffer("score counts", COUNTED_SCORES * 4)
        device.clear(counts, counts.n_bytes, Stream.COMPUTE)
        grid = max(1, min(-(-len(subjects) // COUNT_KERNEL.threads), device.facts.multiprocessors * 4))
        arguments: list[Argument] = [
            address(scores), unsigned(len(subjects)), unsigned(COUNTED_SCORES), address(counts),
        ]  # fmt: skip
        device.launch(COUNT_KERNEL, grid, COUNTED_SCORES * 4, arguments, Stream.COMPUTE)
        found = np.empty(COUNTED_SCORES, dtype=np.uint32)
        device.download(found, counts, Stream.COMPUTE)
        return found.astype(np.int64)

    def _listed(
        self, subjects: DeviceSubjects, scores: Buffer, floor: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Indices, ascending, and scores of the subjects that score ``floor`` or more."""
        values_on_device = self._scratch.buffer("wanted scores", len(subjects) * 4)
        n_wanted = self.collect(scores, [ScoreFilter(0, len(subjects), floor)], "wanted", values_on_device)
        indices = np.empty(n_wanted, dtype=np.uint32)
        values = np.empty(n_wanted, dtype=np.int32)
        self._device.download(indices, self._scratch["wanted"], Stream.COMPUTE)
        self._device.download(values, values_on_device, Stream.COMPUTE)
        order = np.argsort(indices)
        return indices[order], values[order]

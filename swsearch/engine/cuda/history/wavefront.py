"""Needleman-Wunsch of one pair in a wavefront of 16 by 16 tiles: ``cuda/history/wavefront.cu``, one launch per wave.

Inputs are two uint16 letter arrays, the scores of equal and different letters and the cost of an indel; the output is
the global score. This is the algorithm of a published exercise of 2009, in memory linear in the lengths. A wave of few
tiles leaves most of a GPU idle, and every wave is a launch: the kernel serves for comparison, not for speed.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Final

import numpy as np

from swsearch.engine.cuda.runtime.device import Device, Stream, allocated
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.engine.cuda.runtime.parameters import WAVEFRONT, packed
from swsearch.engine.pair_arrays import AlignmentProblem, PairPaths, SequencePairs
from swsearch.errors import EngineError, InputError
from swsearch.typing import Letters, Progress

TILE: Final = 16
THREADS: Final = 64
MAX_SUM: Final = 2**30
WAVEFRONT_KERNEL: Final = KernelSpec("history", "wavefront", (("THREADS", str(THREADS)),), THREADS)


class WavefrontPairs:
    """The pair backend for scores of global problems with linear gaps and compared letters; the caller closes the
    device.
    """

    name = "cuda wavefront"

    def __init__(self, device: Device) -> None:
        self._device = device

    def align(
        self, pairs: SequencePairs, problem: AlignmentProblem, *, path: bool = True, progress: Progress | None = None
    ) -> PairPaths:
        """See :class:`swsearch.engine.pair_arrays.PairBackend`.

        Raises :class:`InputError` for paths and other problems, and :class:`EngineError` if a side is empty or
        scores may exceed 30 bits.
        """
        if path:
            raise InputError("--kernel wavefront computes scores only; leave out --cigar or the kernel")
        if problem.table is not None:
            raise InputError("--kernel wavefront compares letters and reads no score table; give --costs")
        if problem.gap_open or problem.local or problem.free_ends:
            raise InputError("--kernel wavefront is for global problems with linear gaps")
        found = []
        for query, subject in pairs:
            score = wavefront_score(
                self._device, query, subject,
                match=problem.match, mismatch=problem.mismatch, indel=problem.gap_extend,
            )  # fmt: skip
            found.append(PairPaths.of_pair((score, len(query), len(subject), 0, 0)))
            if progress is not None:
                progress(len(query) * len(subject))
        return PairPaths.concatenate(found)


def wavefront_score(device: Device, query: Letters, subject: Letters, *, match: int, mismatch: int, indel: int) -> int:
    """Global score of two uint16 letter arrays.

    ``indel`` is the cost of a letter in a gap, at least 0. Raises :class:`EngineError` if a sequence is empty or scores
    may exceed 30 bits.
    """
    rows, columns = len(query), len(subject)
    if not rows or not columns:
        raise EngineError("the wavefront kernel needs at least one letter on both sides")
    if (rows + columns + TILE) * max(abs(match), abs(mismatch), indel) >= MAX_SUM:
        raise EngineError(f"{rows:,} and {columns:,} letters may score beyond 30 bits; split them")
    tile_rows, tile_columns = -(-rows // TILE), -(-columns // TILE)
    with contextlib.ExitStack() as stack:
        allocate = partial(allocated, device, stack)
        sides = [allocate(side.nbytes) for side in (query, subject)]
        for buffer, side in zip(sides, (query, subject), strict=True):
            device.upload(buffer, np.ascontiguousarray(side), Stream.COMPUTE)
        boundaries = [allocate(n * 4) for n in (tile_columns * TILE, tile_rows * TILE, tile_rows + tile_columns - 1, 1)]
        bottom, right, corners, score = (buffer.address for buffer in boundaries)
        stack.callback(device.synchronize)
        for wave in range(tile_rows + tile_columns - 1):
            first = max(0, wave - tile_columns + 1)
            n_tiles = min(wave, tile_rows - 1) - first + 1
            grid = -(-n_tiles * TILE // THREADS)
            parameters = packed(
                WAVEFRONT, pair=(sides[0].address, sides[1].address, rows, columns), costs=(match, mismatch, indel),
                wave=wave, first=first, n_tiles=n_tiles, bottom=bottom, right=right, corners=corners, result=score,
            )  # fmt: skip
            device.launch(WAVEFRONT_KERNEL, grid, 0, parameters, Stream.COMPUTE)
        result = np.empty(1, dtype=np.int32)
        device.download(result, boundaries[-1], Stream.COMPUTE)
    return int(result[0])

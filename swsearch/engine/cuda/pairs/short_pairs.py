"""Aligns thousands of short pairs on a GPU with ``cuda/pairs/short_pairs.cu``, one warp per pair.

Inputs are sequences of uint16 letters and a problem; outputs are scores, ends and, if requested, the runs of the paths.
The host prepares the letters, the offsets of each pair's decisions and runs, and the order, with the largest pairs
first. A batch whose decisions do not fit their memory takes several launches. A pair needs two bytes per letter, four
bytes per letter for its runs and, with a path, half a byte per cell (a quarter with linear gaps).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import ranges_within
from swsearch.engine.cuda.runtime.device import Buffer, Device, Scratch, Stream, Timing, timed
from swsearch.engine.cuda.runtime.kernels import SHORT_ROWS, SHORT_THREADS, WARP, short_pairs_kernel
from swsearch.engine.cuda.runtime.parameters import SHORT_PAIRS, packed
from swsearch.engine.pair_arrays import AlignmentProblem, PairPaths, SequencePairs
from swsearch.errors import EngineError
from swsearch.typing import Closeable, Progress

LONGEST: Final = 8192
"""Letters of the longest sequence that the kernel supports; scores stay below 2**30."""
DECISION_SHARE: Final = 0.25
"""Share of the device's free memory that decisions may take."""
TABLE_BYTES: Final = 1024
SMALLEST_BUFFER: Final = 16

_RESULT: Final = np.dtype([(name, np.int32) for name in ("score", "qe", "se", "qs", "ss")] + [
    ("n_runs", np.uint32), ("runs", np.uint32), ("unused", np.uint32)
])  # fmt: skip


def decision_words(queries: NDArray[np.int64], subjects: NDArray[np.int64], rows: int, bits: int) -> NDArray[np.int64]:
    """32-bit words of each pair's decisions: those of every lane in every step of every strip of its query."""
    strips = -(-queries // (WARP * rows))
    return strips * (subjects + WARP - 1) * WARP * max(1, rows * bits // 32)


class ShortPairs(Closeable):
    """The pair backend for batches of short pairs on one device, which the caller owns and closes; for one thread.

    A context manager, which frees its buffers. Decisions take up to ``decision_limit`` bytes at a time, by default a
    quarter of the free memory.
    """

    name = "cuda short pairs"

    def __init__(self, device: Device, decision_limit: int | None = None) -> None:
        self._device = device
        if decision_limit is None:
            decision_limit = int(self._device.free_bytes() * DECISION_SHARE)
        self._decision_limit = decision_limit
        self._scratch = Scratch(self._device, SMALLEST_BUFFER)
        self.timing = Timing()

    def align(
        self, pairs: SequencePairs, problem: AlignmentProblem, *, path: bool = True, progress: Progress | None = None
    ) -> PairPaths:
        """See :class:`swsearch.engine.pair_arrays.PairBackend`.

        Raises :class:`EngineError` if a sequence is empty or has more than 8,192 letters.
        """
        lengths = pairs.lengths
        if lengths.size and not 1 <= int(lengths.min()) <= int(lengths.max()) <= LONGEST:
            raise EngineError(f"sequences of {lengths.min()} to {lengths.max()} letters; 1 to {LONGEST} can be aligned")
        longest_query = int(lengths[0].max(initial=1))
        few, many = SHORT_ROWS
        rows = few if longest_query <= WARP * few else many
        words = np.zeros(len(pairs), dtype=np.int64)
        if path:
            words = decision_words(lengths[0], lengths[1], rows, 4 if problem.gap_open > 0 else 2)
        parts = []
        # Their decisions and runs fit the memory for these.
        for chosen in ranges_within(4 * (words + lengths.sum(axis=0)), self._decision_limit):
            parts.append(self._launch(pairs, problem, rows, words, chosen, path=path))
            if progress is not None:
                progress(int(pairs.cells[chosen].sum()))
        self.timing.cells += int(pairs.cells.sum())
        return PairPaths.concatenate(parts)

    def close(self) -> None:
        """Free the buffers."""
        self._scratch.free()

    def _launch(
        self,
        pairs: SequencePairs,
        problem: AlignmentProblem,
        rows: int,
        words: NDArray[np.int64],
        chosen: slice,
        *,
        path: bool,
    ) -> PairPaths:
        device = self._device
        n_pairs = chosen.stop - chosen.start
        sides = []
        jobs = np.empty((n_pairs, 4), dtype=np.uint32)
        for number, side in enumerate((pairs.queries, pairs.subjects)):
            first = int(side.starts[chosen.start])
            sides.append(side.letters[first : int(side.ends[chosen.stop - 1])])
            jobs[:, 2 * number] = side.starts[chosen] - first
            jobs[:, 2 * number + 1] = side.lengths[chosen]
        query_lengths, subject_lengths = pairs.lengths[:, chosen]
        letters = query_lengths + subject_lengths
        largest_first = np.argsort(-pairs.cells[chosen], kind="stable").astype(np.uint32)
        decisions_start = (np.cumsum(words[chosen]) - words[chosen]).astype(np.uint64)
        runs_start = (np.cumsum(letters) - letters).astype(np.uint32)

        spec = short_pairs_kernel(
            rows=rows, affine=problem.gap_open > 0, local=problem.local, table=problem.table is not None, path=path
        )
        shared_bytes = 0 if problem.table is None else TABLE_BYTES
        resident = device.facts.multiprocessors * device.resident_blocks(spec, shared_bytes)
        grid = min(resident, -(-n_pairs // (SHORT_THREADS // WARP)))
        stride = int(subject_lengths.max())
        several = int(query_lengths.max()) > WARP * rows
        boundary = self._scratch.buffer("boundary", grid * (SHORT_THREADS // WARP) * stride * 8 if several else 0)
        n_letters = int(letters.sum())
        uploads = [self._upload(str(number), side) for number, side in enumerate(sides)]
        uploads += [
            self._upload("jobs", jobs),
            self._upload("decisions start", decisions_start),
            self._upload("runs start", runs_start),
        ]
        order = self._upload("order", largest_first)
        table = None if problem.table is None else self._upload("table", _square(problem.table))
        results = self._scratch.buffer("results", n_pairs * _RESULT.itemsize)
        runs = self._scratch.buffer("runs", n_letters * 4 if path else 0)
        counters = self._scratch.buffer("counters", 8)
        device.clear(counters, 8, Stream.COMPUTE)
        parameters = packed(
            SHORT_PAIRS,
            pairs=(*(buffer.address for buffer in uploads), n_pairs),
            order=order.address,
            scoring=(
                0 if table is None else table.address,
                problem.match, problem.mismatch, problem.gap_open, problem.gap_extend,
            ),
            free_ends=problem.free_ends,
            decisions=self._scratch.buffer("decisions", int(words[chosen].sum()) * 4).address,
            walked=self._scratch.buffer("walked", n_letters * 4 if path else 0).address,
            boundary=boundary.address,
            boundary_stride=stride,
            results=results.address,
            all_runs=runs.address,
            n_all_runs=counters.address,
            counter=counters.address + 4,
        )  # fmt: skip
        with timed(device, self.timing):
            device.launch(spec, grid, shared_bytes, parameters, Stream.COMPUTE)
        found = np.empty(n_pairs, dtype=_RESULT)
        device.download(found, results, Stream.COMPUTE)
        n_runs = found["n_runs"].astype(np.int64)
        packed_runs = np.empty(int(n_runs.sum()), dtype=np.uint32)
        device.download(packed_runs, runs, Stream.COMPUTE)
        self._scratch.free_replaced()
        ends = np.stack([found[name] for name in ("score", "qe", "se", "qs", "ss")], axis=1).astype(np.int64)
        run_ends = np.cumsum(n_runs)
        # Warps reserve memory for their runs in the order in which they end; this restores the order of the pairs.
        offset = np.arange(len(packed_runs)) - np.repeat(run_ends - n_runs, n_runs)
        return PairPaths(ends, run_ends, packed_runs[np.repeat(found["runs"].astype(np.int64), n_runs) + offset])

    def _upload(self, name: str, values: NDArray[np.generic]) -> Buffer:
        buffer = self._scratch.buffer(name, values.nbytes)
        self._device.upload(buffer, np.ascontiguousarray(values), Stream.COMPUTE)
        return buffer


def _square(table: NDArray[np.int8]) -> NDArray[np.int8]:
    """The table as the kernel reads it: 32 rows of 32 scores."""
    square = np.full((32, 32), -128, dtype=np.int8)
    square[: table.shape[0], : table.shape[1]] = table
    return square

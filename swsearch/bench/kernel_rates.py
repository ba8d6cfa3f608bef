"""Measurement of all methods of computation on the same data, with a check of their results against the reference.

There are three tasks, each with a list of methods:

========  ==========================================================================================================
task      methods
========  ==========================================================================================================
search    one query against many subjects: the reference, each CPU instruction set, each kernel of the CUDA engine
pair      one long pair, global, costs of 2009: the reference, diamonds on the CPU and the GPU, the GPU block wavefront
batch     many short pairs with their alignments: the reference, one CPU thread, all threads, the GPU
========  ==========================================================================================================

A slow method computes an evenly spaced sample of the same subjects or pairs, so that it ends in a short time; its rate
is that of its own cells. All results that two methods have in common must be equal; otherwise the benchmark ends with
an error. Times are wall times in seconds, the smallest of several runs. For a GPU, they include all uploads and
downloads of the call, and the time of the kernels is also reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from swsearch.bench.workloads import Workload, generated_query, profiles_of
from swsearch.engine.cpu.engine import CpuEngine, usable_instruction_sets
from swsearch.engine.cpu.pairs import CpuPairs, cigars
from swsearch.engine.cuda.history.cudasw2 import CLASSIC_KERNELS, Cudasw2Engine
from swsearch.engine.cuda.history.wavefront import WavefrontPairs
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.pairs.short_pairs import ShortPairs
from swsearch.engine.cuda.runtime.device import Device
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice, cuda_info
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, PairBackend, PairPaths, SequencePairs, Sequences
from swsearch.engine.protocol import ScoreEngine, score_requests
from swsearch.engine.reference import MAX_CELLS, ReferenceEngine, ReferencePairs
from swsearch.errors import EngineError
from swsearch.pairs.pair_alignment import PairAlignment, align_pair, cost_set
from swsearch.pairs.sequence import PairSequence

TASKS: Final = ("search", "pair", "batch")
REFERENCE_CELLS: Final = 20_000_000
"""Largest number of cells of a task that the reference computes: about one second."""
CPU_CELLS: Final = 4_000_000_000
SCALAR_CELLS: Final = 100_000_000
"""Largest numbers of cells of a search that a CPU row computes, with vectors and without."""
REPEATS: Final = 3
DEFAULTS: Final = {"search": "cuda strip", "pair": "cpu diamond", "batch": "cuda short pairs"}
"""The default method of each task, if all devices and libraries are available."""


@dataclass(frozen=True)
class KernelRow:
    """The measurement of one method.

    ``threads`` are those of the CPU, 0 for a GPU. ``cells`` are those that it computed, a part of the task's cells if
    it is slow. ``seconds`` is the smallest wall time of the runs and ``kernel_seconds``, on a GPU, the time of the
    kernels by device events; None if the method cannot run on this machine, for the reason ``missing``. ``checked`` is
    the number of scores or alignments that were compared with those of another method.
    """

    task: str
    kernel: str
    threads: int = 0
    cells: int = 0
    seconds: float | None = None
    kernel_seconds: float | None = None
    checked: int = 0
    missing: str = ""

    @property
    def gcups(self) -> float | None:
        """10^9 cells per second of wall time."""
        return None if self.seconds is None else self.cells / self.seconds / 1e9

    @property
    def kernel_gcups(self) -> float | None:
        """10^9 cells per second of kernel time."""
        return None if self.kernel_seconds is None else self.cells / self.kernel_seconds / 1e9


def ratio(row: KernelRow, to: str, rows: Sequence[KernelRow]) -> float | None:
    """The rate by wall time, divided by that of the method ``to`` of the task; None if one of them is missing."""
    for other in rows:
        if other.task == row.task and other.kernel == to and other.gcups is not None and row.gcups is not None:
            return row.gcups / other.gcups
    return None


def document(rows: Sequence[KernelRow]) -> list[dict[str, Any]]:
    """The rows as values for JSON, with their ratios to the reference and to the default method of their task."""
    return [
        {
            "task": row.task,
            "kernel": row.kernel,
            "threads": row.threads,
            "cells": row.cells,
            "seconds": row.seconds,
            "kernel_seconds": row.kernel_seconds,
            "gcups": row.gcups,
            "kernel_gcups": row.kernel_gcups,
            "times_reference": ratio(row, "reference", rows),
            "times_default": ratio(row, DEFAULTS[row.task], rows),
            "checked": row.checked,
            "missing": row.missing,
        }
        for row in rows
    ]


def best_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Smallest wall time of several runs in seconds, and the last result; repetition ends after a run of over 1 s."""
    least = float("inf")
    result = None
    for _ in range(REPEATS):
        began = time.perf_counter()
        result = work()
        least = min(least, max(time.perf_counter() - began, 1e-9))
        if least > 1.0:
            break
    return least, result


def best_kernel_seconds(engine: Any, work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Smallest wall time in seconds, mean kernel time in seconds, and result of several runs on a GPU's engine.

    A first run, in which kernels are compiled and loaded and subjects are uploaded, is not measured. See
    :func:`best_seconds`.
    """
    work()
    before, runs = engine.timing.seconds, 0

    def counted() -> Any:
        nonlocal runs
        runs += 1
        return work()

    least, result = best_seconds(counted)
    return least, (engine.timing.seconds - before) / runs, result


Known = dict[Hashable, tuple[object, str]]
"""The results of a task, each with the method that gave it first."""


def _compared(task: str, known: Known, kernel: str, found: Mapping[Any, object]) -> int:
    """The number of results in ``found`` that an earlier method also has; the others are added to ``known``.

    Raises :class:`EngineError` if a result differs from that of another method.
    """
    n_known = len(known)
    for place, value in found.items():
        before, other = known.setdefault(place, (value, kernel))
        if before != value:
            raise EngineError(
                f"{task} {place}: {kernel} gives {value}, {other} gave {before}; "
                "one of them is wrong: please report this"
            )
    return len(found) - (len(known) - n_known)


def even_share(n_items: int, cells: int, limit: int) -> slice:
    """Every k-th item, such that at most about ``limit`` cells remain.

    k is a power of two; a smaller sample is therefore a subset of every larger one and can be compared with it.
    """
    return slice(0, n_items, 1 << max(0, -(-cells // limit) - 1).bit_length())


Gpu = Callable[[], Device] | str
"""A function that opens the GPU, or the reason why none can be used."""


def usable_gpu() -> Gpu:
    """The GPU of this machine."""
    info = cuda_info()
    return PyCudaDevice if info.usable else info.reason


# --- search ---


def measure_search(workload: Workload, query_length: int, threads: int, gpu: Gpu) -> Iterator[KernelRow]:
    """Measure one generated query against a workload; all scores are computed.

    One row uses several CPU threads, ``threads``. Raises :class:`EngineError` if two methods compute different scores.
    """
    requests = score_requests(profiles_of(workload, generated_query(workload.scheme.alphabet, query_length)))
    partition = workload.partition
    task_cells = sum(request.profile.length for request in requests) * partition.n_residues
    known: Known = {}

    def measured(kernel: str, engine: ScoreEngine, limit: int, n_threads: int) -> KernelRow:
        chosen = partition[even_share(len(partition), task_cells, limit)]
        own = None
        if isinstance(engine, (CudaEngine, Cudasw2Engine)):
            seconds, own, blocks = best_kernel_seconds(engine, lambda: engine.score(requests, chosen))
        else:
            seconds, blocks = best_seconds(lambda: engine.score(requests, chosen))
        found = {
            (place, strand): score
            for strand, block in enumerate(blocks)
            for place, score in zip(block.subject_index.tolist(), block.score.tolist(), strict=True)
        }
        cells = sum(request.profile.length for request in requests) * chosen.n_residues
        n_compared = _compared("search, subject", known, kernel, found)
        return KernelRow("search", kernel, n_threads, cells, seconds, own, n_compared)

    yield measured("reference", ReferenceEngine(), REFERENCE_CELLS, 1)
    for name in reversed(usable_instruction_sets()):
        with CpuEngine(1, name) as one:
            yield measured(f"cpu {name}", one, SCALAR_CELLS if name == "scalar" else CPU_CELLS, 1)
    with CpuEngine(threads) as several:
        yield measured("cpu, all threads", several, CPU_CELLS, threads)
    for kernel in ("strip", *CLASSIC_KERNELS):
        if isinstance(gpu, str):
            yield KernelRow("search", f"cuda {kernel}", missing=gpu)
            continue
        with Cudasw2Engine(kernel, gpu()) if kernel in CLASSIC_KERNELS else CudaEngine(gpu()) as engine:
            yield measured(f"cuda {kernel}", engine, task_cells, 0)


# --- pair ---


def measure_pair(length: int, threads: int, gpu: Gpu) -> Iterator[KernelRow]:
    """Measure the global alignment of two random DNA sequences, with the costs of 2009: scores, and once the path.

    Parameters and errors as for :func:`measure_search`; the reference is omitted if it would use too much memory.
    """
    rng = np.random.default_rng(length)
    pair = tuple(PairSequence(name, "".join(rng.choice(list("ACGT"), length))) for name in ("query", "subject"))
    query, subject = pair[0], pair[1]
    scoring = cost_set("nw2009")
    known: Known = {}

    def measured(kernel: str, n_threads: int, backend: PairBackend, *, path: bool = False) -> KernelRow:
        def work() -> PairAlignment:
            return align_pair(query, subject, "global", scoring, path=path, backend=backend)

        if n_threads == 0:
            work()  # compiles the kernel
        seconds, found = best_seconds(work)
        n_compared = _compared("pair", known, kernel, {0: found.score})
        return KernelRow("pair", kernel, n_threads, length**2, seconds, None, n_compared)

    if length**2 <= MAX_CELLS:
        yield measured("reference", 1, ReferencePairs())
    else:
        yield KernelRow("pair", "reference", missing=f"whole matrices of {length**2:,} cells are too large")
    yield measured("cpu diamond", 1, CpuPairs())
    yield measured("cpu diamond, all threads", threads, CpuPairs(threads))
    yield measured("cpu diamond with path", 1, CpuPairs(), path=True)
    if isinstance(gpu, str):
        yield from (KernelRow("pair", kernel, missing=gpu) for kernel in ("cuda diamond", "cuda wavefront"))
        return
    with closing(gpu()) as device:
        yield measured("cuda diamond", 0, DiamondSweep(device))
        yield measured("cuda wavefront", 0, WavefrontPairs(device))


# --- batch ---


def random_batch(n_pairs: int, length: int) -> SequencePairs:
    """Random DNA pairs, all sequences of one length; identical in every call."""
    rng = np.random.default_rng(n_pairs)
    ends = np.arange(1, n_pairs + 1, dtype=np.int64) * length
    first, second = (rng.integers(0, 4, n_pairs * length).astype(np.uint16) for _ in range(2))
    return SequencePairs(Sequences(first, ends), Sequences(second, ends))


def measure_batch(n_pairs: int, length: int, threads: int, gpu: Gpu) -> Iterator[KernelRow]:
    """Measure local alignments of random DNA pairs, match 1, others -1, gap -2; from letters to CIGARs.

    Parameters and errors as for :func:`measure_search`.
    """
    batch = random_batch(n_pairs, length)
    scoring = cost_set("sw2023")
    problem = AlignmentProblem(
        True, FreeEnds.ALL, scoring.gap_open, scoring.gap_extend, scoring.match, scoring.mismatch
    )
    known: Known = {}

    def by_reference() -> dict[int, str]:
        chosen = np.arange(n_pairs)[even_share(n_pairs, n_pairs * length**2, REFERENCE_CELLS)].tolist()
        pairs = list(batch)
        part = SequencePairs.of([pairs[number] for number in chosen])
        found = all_of(ReferencePairs().align(part, problem), part)
        return {number: found[index] for index, number in enumerate(chosen)}

    def all_of(paths: PairPaths, pairs: SequencePairs = batch) -> dict[int, str]:
        written = cigars(paths, pairs)
        rows = paths.ends[:, :3].tolist()
        return {index: f"{a} {b} {c} {written[index]}" for index, (a, b, c) in enumerate(rows)}

    def row(kernel: str, n_threads: int, seconds: float, found: dict[int, str], own: float | None = None) -> KernelRow:
        n_compared = _compared("batch, pair", known, kernel, found)
        return KernelRow("batch", kernel, n_threads, len(found) * length**2, seconds, own, n_compared)

    yield row("reference", 1, *best_seconds(by_reference))

    def on_cpu(n: int) -> PairPaths:
        paths = CpuPairs(n).align(batch, problem)
        cigars(paths, batch, n)
        return paths

    for name, n_threads in (("cpu short pairs", 1), ("cpu short pairs, all threads", threads)):
        seconds, paths = best_seconds(lambda n=n_threads: on_cpu(n))  # type: ignore[misc]
        yield row(name, n_threads, seconds, all_of(paths))
    if isinstance(gpu, str):
        yield KernelRow("batch", "cuda short pairs", missing=gpu)
        return
    with closing(gpu()) as device, ShortPairs(device) as engine:

        def on_gpu() -> PairPaths:
            paths = engine.align(batch, problem)
            cigars(paths, batch, threads)
            return paths

        seconds, own, paths = best_kernel_seconds(engine, on_gpu)
        yield row("cuda short pairs", 0, seconds, all_of(paths), own)

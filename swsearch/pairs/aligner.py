"""Alignment of a stream of pairs, in order, each by a suitable backend; for the command line and for scripts.

:class:`PairAligner` takes pairs and yields a :class:`swsearch.pairs.pair_alignment.PairAlignment` for each. Short pairs
are aligned in batches, on all threads or, if a batch is large enough, on a GPU. A long pair is aligned individually, on
all threads or on a GPU. The engine ``reference`` computes complete matrices, and the kernel ``wavefront`` is the block
wavefront of the GPU. Alignments do not depend on the backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final

from swsearch.arrays import divided
from swsearch.engine.cpu.pairs import SHORT_LETTERS, CpuPairs
from swsearch.engine.pair_arrays import PairBackend
from swsearch.engine.reference import ReferencePairs
from swsearch.engine.registry import ENGINES, ONE_THREAD, Machine
from swsearch.errors import EngineUnavailable, InputError
from swsearch.pairs.pair_alignment import (
    CIGAR_CELLS,
    Pair,
    PairAlignment,
    PairScoring,
    align_pairs,
    free_ends_of_mode,
    mode_scoring,
)
from swsearch.typing import Closeable, Progress

if TYPE_CHECKING:
    from swsearch.engine.cuda.runtime.device import Device

PAIR_KERNELS: Final = ("diamond", "wavefront")
BATCH_PAIRS: Final = 16_384
BATCH_CELLS: Final = 8_000_000_000
"""Largest batch, in pairs and in cells: results are returned after each batch."""
GPU_BATCH_CELLS: Final = 4_000_000_000
"""Smallest number of cells of a batch for which ``auto`` opens a GPU; the CPU finishes smaller ones before it opens."""
GPU_PAIR_CELLS: Final = 10_000_000_000
"""Smallest number of cells of a pair for which ``auto`` opens a GPU, which takes about a second with its kernel."""


class PairAligner(Closeable):
    """Aligns pairs in their input order; a context manager that must not be shared between threads.

    Parameters
    ----------
    mode, scoring, free_ends
        As for :func:`swsearch.pairs.pair_alignment.align_pair`.
    path : bool, optional
        Whether alignments are computed; by default, for pairs of up to 25 million cells.
    machine : Machine
        Its threads, by default one, and its engine: ``reference`` computes complete matrices in NumPy.
    kernel : str
        ``diamond``, or ``wavefront``, which computes scores of global alignments with linear gap costs on a GPU.
    open_device : callable, optional
        Opens the GPU; by default the first one.

    Raises
    ------
    InputError
        The parameters do not fit each other.
    EngineUnavailable
        The parameters require a GPU, and none can be used.
    """

    def __init__(
        self,
        mode: str = "local",
        scoring: PairScoring | None = None,
        *,
        free_ends: str | None = None,
        path: bool | None = None,
        machine: Machine = ONE_THREAD,
        kernel: str = "diamond",
        open_device: Callable[[], Device] | None = None,
    ) -> None:
        if machine.engine not in ENGINES:
            raise InputError(f"--engine {machine.engine!r}: choose {', '.join(ENGINES)}")
        if kernel not in PAIR_KERNELS:
            raise InputError(f"--kernel {kernel!r}: choose {' or '.join(PAIR_KERNELS)}")
        self.mode = mode
        self.scoring = mode_scoring(mode, scoring)
        self._any_end_is_free = bool(free_ends_of_mode(mode, free_ends))
        self.free_ends = free_ends
        self.path = path
        self.engine = machine.engine
        self.kernel = kernel
        self.n_threads = machine.n_threads
        self._given = scoring
        if kernel == "wavefront":
            self._check_wavefront()
        self._open_device = first_gpu if open_device is None else open_device
        self._device: Device | None = None
        self._on_gpu: dict[str, PairBackend] = {}
        self._without_gpu = False
        self._on_host: PairBackend = ReferencePairs() if self.engine == "reference" else CpuPairs(self.n_threads)
        if kernel == "wavefront" or self.engine == "cuda":
            self._shared_device()

    @property
    def leaves_large_pairs(self) -> bool:
        """Whether only score and end of pairs of more than 25 million cells are computed, because ``path`` is None."""
        return self.path is None and self.engine != "reference" and self.kernel != "wavefront"

    def _check_wavefront(self) -> None:
        if self.engine not in ("auto", "cuda"):
            raise InputError(f"--kernel wavefront runs on a GPU; leave --engine {self.engine} out")
        if self._any_end_is_free or self.scoring.gap_open:
            raise InputError(
                "--kernel wavefront is for global problems with linear gaps; try --mode global --costs nw2009"
            )
        if self.path:
            raise InputError("--kernel wavefront computes scores only; leave out --cigar or the kernel")

    def align(self, pairs: Iterable[Pair], progress: Progress | None = None) -> Iterator[PairAlignment]:
        """The alignment of each pair, in order; a batch is filled before its first alignment is yielded."""
        for is_short, several in groupby(pairs, self._is_short):
            if is_short:
                for batch in divided(several, _cells, BATCH_PAIRS, BATCH_CELLS):
                    yield from self._align_batch(batch, progress)
            else:
                yield from (self._align_alone(pair, progress) for pair in several)

    def close(self) -> None:
        """Close the GPU, if one was opened."""
        for backend in self._on_gpu.values():
            if isinstance(backend, Closeable):
                backend.close()
        self._on_gpu.clear()
        if self._device is not None:
            self._device.close()
        self._device = None

    def _is_short(self, pair: Pair) -> bool:
        """Whether a pair is aligned in a batch: both sequences have at least one letter and at most SHORT_LETTERS."""
        if self.engine == "reference" or self.kernel == "wavefront":
            return False
        return all(1 <= len(side) <= SHORT_LETTERS for side in pair)

    def _align_batch(self, pairs: list[Pair], progress: Progress | None) -> list[PairAlignment]:
        takes_gpu = self._takes_gpu(sum(map(_cells, pairs)), GPU_BATCH_CELLS)
        backend = self._gpu_backend("short") if takes_gpu else self._on_host
        return self._aligned(pairs, backend, self.path is not False, progress)

    def _align_alone(self, pair: Pair, progress: Progress | None) -> PairAlignment:
        cells = _cells(pair)
        if self.kernel == "wavefront":
            return self._aligned([pair], self._gpu_backend("wavefront"), False, progress)[0]
        path = self.path is not False if self.engine == "reference" else self.path
        path = cells <= CIGAR_CELLS if path is None else path
        if self._takes_gpu(cells, GPU_PAIR_CELLS):
            from swsearch.engine.cuda.runtime.device import OutOfDeviceMemory

            try:
                return self._aligned([pair], self._gpu_backend("diamond"), path, progress)[0]
            except (InputError, OutOfDeviceMemory):
                # The CPU has more memory and supports some costs that the GPU does not; or it raises the same error.
                if self.engine == "cuda":
                    raise
        return self._aligned([pair], self._on_host, path, progress)[0]

    def _aligned(
        self, pairs: list[Pair], backend: PairBackend, path: bool, progress: Progress | None
    ) -> list[PairAlignment]:
        return align_pairs(
            pairs,
            self.mode,
            self._given,
            free_ends=self.free_ends,
            path=path,
            backend=backend,
            n_threads=self.n_threads,
            progress=progress,
        )

    def _takes_gpu(self, cells: int, min_cells: int) -> bool:
        """Whether to compute ``cells`` cells on a GPU; with ``auto``, at least ``min_cells`` if a GPU can be opened."""
        if self.engine != "auto":
            return self.engine == "cuda"
        if cells < min_cells or self._without_gpu:
            return False
        try:
            self._shared_device()
        except EngineUnavailable:
            self._without_gpu = True
        return not self._without_gpu

    def _shared_device(self) -> Device:
        """The GPU, opened on the first call; :meth:`close` closes it."""
        if self._device is None:
            self._device = self._open_device()
        return self._device

    def _gpu_backend(self, kernel: str) -> PairBackend:
        """The backend of a kernel, ``short``, ``diamond`` or ``wavefront``, on the shared device."""
        if kernel in self._on_gpu:
            return self._on_gpu[kernel]
        device = self._shared_device()
        backend: PairBackend
        if kernel == "short":
            from swsearch.engine.cuda.pairs.short_pairs import ShortPairs

            backend = ShortPairs(device)
        elif kernel == "diamond":
            from swsearch.engine.cuda.pairs.diamonds import DiamondSweep

            backend = DiamondSweep(device)
        else:
            from swsearch.engine.cuda.history.wavefront import WavefrontPairs

            backend = WavefrontPairs(device)
        self._on_gpu[kernel] = backend
        return backend


def _cells(pair: Pair) -> int:
    return len(pair[0]) * len(pair[1])


def first_gpu() -> Device:
    """The first GPU of the machine; raises :class:`EngineUnavailable` if none can be used."""
    from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice

    return PyCudaDevice()

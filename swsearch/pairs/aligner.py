"""Pairs as a command or a script has them, one after another: each goes the way that suits it, in order.

Short pairs go in batches, over all threads or, where there is enough of them to be worth it, to a GPU; a long one has
all threads, or a GPU, to itself. ``serial`` takes the reference implementation, and ``wavefront`` the GPU kernel of
that name. The way changes no alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from swsearch.closing import Closing
from swsearch.engine.cuda.device import Device, OutOfDeviceMemory, PyCudaDevice
from swsearch.engine.cuda.pairs import PairEngine
from swsearch.engine.registry import check_threads
from swsearch.errors import EngineUnavailable, InputError
from swsearch.pairs.align import CIGAR_CELLS, PairAlignment, align_pair, ends_of_mode, mode_scoring
from swsearch.pairs.batch import Pair, align_batch, is_short
from swsearch.pairs.gpu import GPU_CELLS, GpuPairs
from swsearch.pairs.scoring import PairScoring
from swsearch.pairs.serial import align_serial
from swsearch.pairs.wavefront import align_wavefront

ENGINES: Final = ("auto", "cuda", "cpu", "reference")
PAIR_KERNELS: Final = ("diamond", "wavefront")
BATCH_PAIRS: Final = 16_384
BATCH_CELLS: Final = 8_000_000_000
"""What a batch holds at most: results come after each batch."""
GPU_BATCH_CELLS: Final = 4_000_000_000
"""Cells of a batch that make ``auto`` open a GPU: fewer are done on the CPU before it is open."""


class PairAligner(Closing):
    """Aligns pairs in the order in which they come. A context manager; not shared between threads.

    Parameters
    ----------
    mode, scoring, free_ends
        As :func:`swsearch.pairs.align.align_pair` takes them.
    path : bool, optional
        Whether alignments are wanted; where it is not given, for pairs of up to 25 million cells.
    engine : str
        ``auto``, ``cuda``, ``cpu``, or ``reference``: whole matrices in NumPy.
    kernel : str
        ``diamond``, or ``wavefront``: scores of a global problem with linear gaps, on a GPU.
    n_threads : int
    open_device : callable, optional
        Opens the GPU; the first one by default.

    Raises
    ------
    InputError
        Parameters that do not fit each other.
    EngineUnavailable
        A GPU is asked for and cannot be used.
    """

    def __init__(
        self,
        mode: str = "local",
        scoring: PairScoring | None = None,
        *,
        free_ends: str = "both",
        path: bool | None = None,
        engine: str = "auto",
        kernel: str = "diamond",
        n_threads: int = 1,
        open_device: Callable[[], Device] | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise InputError(f"--engine {engine!r}: choose {', '.join(ENGINES)}")
        if kernel not in PAIR_KERNELS:
            raise InputError(f"--kernel {kernel!r}: choose {' or '.join(PAIR_KERNELS)}")
        check_threads(n_threads)
        self.mode = mode
        self.scoring = mode_scoring(mode, scoring)
        ends_of_mode(mode, free_ends)
        self.free_ends = free_ends
        self.path = path
        self.engine = engine
        self.kernel = kernel
        self.n_threads = n_threads
        self._given = scoring
        self._gpu: PairEngine | None = None
        self._gpu_of_long: GpuPairs | None = None
        self._without_gpu = False
        if kernel == "wavefront":
            self._check_wavefront()
        self._open_device = PyCudaDevice if open_device is None else open_device
        self._device: Device | None = None
        if kernel == "wavefront" or engine == "cuda":
            self._shared_device()

    @property
    def leaves_large_pairs(self) -> bool:
        """Whether pairs of more than 25 million cells get score and end alone, though nobody asked for these alone."""
        return self.path is None and self.engine != "reference" and self.kernel != "wavefront"

    def _check_wavefront(self) -> None:
        if self.engine not in ("auto", "cuda"):
            raise InputError(f"--kernel wavefront runs on a GPU; leave --engine {self.engine} out")
        if self.mode not in ("global", "edit", "lcs") or self.scoring.gap_open:
            raise InputError(
                "--kernel wavefront is for global problems with linear gaps; give --mode global --costs nw2009, say"
            )
        if self.path:
            raise InputError("--kernel wavefront gives scores alone; leave --cigar out, or the kernel")

    def align(self, pairs: Iterable[Pair], progress: Callable[[int], None] | None = None) -> Iterator[PairAlignment]:
        """The alignment of each pair, in order; batches are filled before their first one comes."""
        batch: list[Pair] = []
        cells = 0
        for pair in pairs:
            size = len(pair[0]) * len(pair[1])
            if self.engine == "reference" or self.kernel == "wavefront" or not is_short(pair):
                yield from self._batch(batch, cells, progress)
                batch, cells = [], 0
                yield self._alone(pair, progress)
                continue
            if batch and (len(batch) == BATCH_PAIRS or cells + size > BATCH_CELLS):
                yield from self._batch(batch, cells, progress)
                batch, cells = [], 0
            batch.append(pair)
            cells += size
        yield from self._batch(batch, cells, progress)

    def close(self) -> None:
        """Give a GPU back."""
        for holder in (self._gpu, self._gpu_of_long, self._device):
            if holder is not None:  # each of them closes the device that they share
                holder.close()
                break
        self._gpu = self._gpu_of_long = self._device = None

    def _batch(self, pairs: list[Pair], cells: int, progress: Callable[[int], None] | None) -> list[PairAlignment]:
        if not pairs:
            return []
        return align_batch(
            pairs,
            self.mode,
            self._given,
            free_ends=self.free_ends,
            path=self.path is not False,
            n_threads=self.n_threads,
            gpu=self._gpu_for(cells),
            progress=progress,
        )

    def _shared_device(self) -> Device:
        """The GPU, opened once; closed with this."""
        if self._device is None:
            self._device = self._open_device()
        return self._device

    def _takes_gpu(self, cells: int, least: int) -> bool:
        """Whether so many cells go to a GPU; ``auto`` takes one that can be opened where there are ``least``."""
        if self.engine != "auto":
            return self.engine == "cuda"
        if cells < least or self._without_gpu:
            return False
        try:
            self._shared_device()
        except EngineUnavailable:
            self._without_gpu = True
        return not self._without_gpu

    def _gpu_for(self, cells: int) -> PairEngine | None:
        """The GPU for a batch of so many cells, or None for the CPU."""
        if self._gpu is None and self._takes_gpu(cells, GPU_BATCH_CELLS):
            self._gpu = PairEngine(self._shared_device())
        return self._gpu

    def _gpu_for_long(self, cells: int) -> GpuPairs | None:
        """The GPU for one pair, or None for the CPU."""
        if not self._takes_gpu(cells, GPU_CELLS):
            return None
        if self._gpu_of_long is None:
            self._gpu_of_long = GpuPairs(self._shared_device())
        return self._gpu_of_long

    def _alone(self, pair: Pair, progress: Callable[[int], None] | None) -> PairAlignment:
        query, subject = pair
        cells = len(query) * len(subject)
        if self.kernel == "wavefront":
            found = align_wavefront(self._shared_device(), query, subject, self.mode, self._given)
        elif self.engine == "reference":
            found, _ = align_serial(
                query, subject, self.mode, self._given, free_ends=self.free_ends, path=self.path is not False
            )
        else:
            return self._by_diamonds(pair, progress)
        if progress is not None:
            progress(cells)
        return found

    def _by_diamonds(self, pair: Pair, progress: Callable[[int], None] | None) -> PairAlignment:
        cells = len(pair[0]) * len(pair[1])
        gpu = self._gpu_for_long(cells)

        def align(gpu: GpuPairs | None) -> PairAlignment:
            return align_pair(
                *pair,
                self.mode,
                self._given,
                free_ends=self.free_ends,
                path=cells <= CIGAR_CELLS if self.path is None else self.path,
                n_threads=self.n_threads,
                progress=progress,
                gpu=gpu,
            )

        try:
            return align(gpu)
        except (InputError, OutOfDeviceMemory):
            if gpu is None or self.engine == "cuda":
                raise
            return align(None)  # it has more memory, and takes a few costs that the GPU does not, or says the same

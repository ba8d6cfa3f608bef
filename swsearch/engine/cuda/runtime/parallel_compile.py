"""Compiles kernels concurrently, as many at a time as there are cores, while the engine continues.

The input is a list of kernel specifications; the output is one cubin per specification. A device begins the compilation
of the kernels that it will launch, and requests each compiled kernel at its launch. The compilers run in threads of
:class:`ParallelCompiler`; the thread that owns the device loads the results.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from swsearch.cores import usable_cores
from swsearch.engine.cuda.runtime.kernel_cache import KernelCache
from swsearch.engine.cuda.runtime.kernels import KernelSpec


class ParallelCompiler:
    """Compiled and pending kernels of one architecture. Used by one thread.

    Parameters
    ----------
    cache : KernelCache
    architecture : int
        90 for compute capability 9.0.
    n_threads : int, optional
        Kernels compiled at a time; by default the number of usable cores.
    """

    def __init__(self, cache: KernelCache, architecture: int, n_threads: int | None = None) -> None:
        self._cache = cache
        self._architecture = architecture
        self._n_threads = n_threads or usable_cores()
        self._threads: ThreadPoolExecutor | None = None
        self._begun: dict[str, Future[bytes]] = {}  # by the cache's keys

    def begin(self, specs: Iterable[KernelSpec]) -> None:
        """Begin to compile kernels that are not on disk, in this order; returns at once.

        Only :meth:`take` raises an error of the compiler, so a kernel that is never launched cannot fail a search.
        """
        for spec in specs:
            key = self._cache.key(spec, self._architecture)
            if key in self._begun or self._cache.path(spec, self._architecture).exists():
                continue
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._n_threads, "compile")
            self._begun[key] = self._threads.submit(self._cache.load, spec, self._architecture)

    def is_ready(self, spec: KernelSpec) -> bool:
        """Whether :meth:`take` returns a compiled kernel at once."""
        begun = self._begun.get(self._cache.key(spec, self._architecture))
        if begun is None:
            return self._cache.path(spec, self._architecture).exists()
        return begun.done() and begun.exception() is None

    def take(self, spec: KernelSpec) -> bytes:
        """The cubin; waits for a pending compilation, or compiles the kernel now.

        Raises
        ------
        KernelCompileError
            No compiler compiles the kernel.
        """
        begun = self._begun.get(self._cache.key(spec, self._architecture))
        return self._cache.load(spec, self._architecture) if begun is None else begun.result()

    def close(self) -> None:
        """Cancel compilations that have not begun; running ones finish and store their kernels on disk."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

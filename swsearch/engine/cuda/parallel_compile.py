"""Kernels compiled side by side, as many at a time as there are cores; the engine goes on with what it has meanwhile.

A device begins the kernels that it is about to launch, and takes each when it launches it. Compilers work in threads
here; what they make is loaded by the thread that owns the device.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from swsearch.cores import usable_cores
from swsearch.engine.cuda.compiler import KernelCache
from swsearch.engine.cuda.kernels import KernelSpec


class ParallelCompiler:
    """Kernels of one architecture that are compiled, or being compiled. Used by one thread.

    Parameters
    ----------
    cache : KernelCache
    architecture : int
        90 for compute capability 9.0.
    n_threads : int, optional
        Kernels compiled at a time; as many as there are usable cores where it is not given.
    """

    def __init__(self, cache: KernelCache, architecture: int, n_threads: int | None = None) -> None:
        self._cache = cache
        self._architecture = architecture
        self._n_threads = n_threads or usable_cores()
        self._threads: ThreadPoolExecutor | None = None
        # By file: specs that differ in the threads a block has may share their code.
        self._begun: dict[Path, Future[bytes]] = {}

    def begin(self, specs: Iterable[KernelSpec]) -> None:
        """Compile kernels that are not on disk, in this order as far as there are cores; returns at once.

        What goes wrong is told by :meth:`take`, and only there: a kernel that nobody takes fails no search.
        """
        for spec in specs:
            path = self._cache.path(spec, self._architecture)
            if path in self._begun or path.exists():
                continue
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._n_threads, "compile")
            self._begun[path] = self._threads.submit(self._cache.load, spec, self._architecture)

    def take(self, spec: KernelSpec) -> bytes:
        """The cubin; waits for it where it is being compiled, and compiles it where nobody does.

        Raises
        ------
        KernelCompileError
            The compiler rejects the kernel.
        """
        begun = self._begun.get(self._cache.path(spec, self._architecture))
        return self._cache.load(spec, self._architecture) if begun is None else begun.result()

    def close(self) -> None:
        """Begin no more; compilers that are at work end by themselves, and what they make is kept on disk."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

"""Compiles kernels concurrently, as many at a time as there are cores, while the engine continues.

The input is a list of kernel specifications; the output is one cubin per specification. A device begins the compilation
of the kernels that it will launch, and requests each compiled kernel at its launch. The compilers run in threads of
:class:`ParallelCompiler`; the thread that owns the device loads the results. Kernels that the package contains
(:mod:`swsearch.engine.cuda.runtime.shipped_kernels`) are not compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from swsearch.engine.cuda.runtime.kernel_cache import KernelCache
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.engine.cuda.runtime.shipped_kernels import ShippedKernels
from swsearch.errors import EngineError
from swsearch.threads import usable_cores

INSTALL_COMPILER = "install the CUDA toolkit or pip install nvidia-cuda-nvrtc"


class ParallelCompiler:
    """Compiled and pending kernels of one architecture (90 for compute capability 9.0). Used by one thread.

    By default, as many kernels are compiled at a time as there are usable cores.
    """

    def __init__(
        self,
        cache: KernelCache,
        architecture: int,
        n_threads: int | None = None,
        shipped: ShippedKernels | None = None,
    ) -> None:
        self._cache = cache
        self._shipped = shipped
        self._architecture = architecture
        self._n_threads = n_threads or usable_cores()
        self._threads: ThreadPoolExecutor | None = None
        self._begun: dict[str, Future[bytes]] = {}  # by the cache's keys

    def is_shipped(self, spec: KernelSpec) -> bool:
        """Whether the package contains a kernel: machine code or, if there is no compiler, PTX.

        The driver compiles PTX, which takes it as long as a compiler.
        """
        return self._shipped is not None and self._shipped.has(spec, virtual=self._needs_ptx(spec))

    def _needs_ptx(self, spec: KernelSpec) -> bool:
        """Whether a kernel's PTX is better than nothing. Only a kernel without machine code needs a compiler opened."""
        assert self._shipped is not None
        return not self._shipped.has(spec, virtual=False) and not self._cache.compiles

    def refuse(self, spec: KernelSpec, reason: str) -> None:
        """Stop using the kernels of the package that came with this one."""
        assert self._shipped is not None
        self._shipped.refuse(spec, reason, virtual=self._needs_ptx(spec))

    def begin(self, specs: Iterable[KernelSpec]) -> None:
        """Begin to compile kernels that are not on disk, in this order; returns at once.

        Only :meth:`take` raises an error of the compiler, so a kernel that is never launched cannot fail a search.
        """
        for spec in specs:
            if self.is_shipped(spec) or not self._cache.compiles:
                continue
            key = self._cache.key(spec, self._architecture)
            if key in self._begun or self._cache.path(spec, self._architecture).exists():
                continue
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._n_threads, "compile")
            self._begun[key] = self._threads.submit(self._cache.load, spec, self._architecture)

    def is_ready(self, spec: KernelSpec) -> bool:
        """Whether :meth:`take` returns a compiled kernel at once."""
        if self.is_shipped(spec):
            return True
        if not self._cache.compiles:
            return False
        begun = self._begun.get(self._cache.key(spec, self._architecture))
        if begun is None:
            return self._cache.path(spec, self._architecture).exists()
        return begun.done() and begun.exception() is None

    def take(self, spec: KernelSpec) -> bytes:
        """The cubin; waits for a pending compilation, or compiles the kernel now.

        Raises :class:`KernelCompileError` if no compiler compiles the kernel, and :class:`EngineError` if there is none
        and the package does not contain the kernel.
        """
        while self.is_shipped(spec):
            assert self._shipped is not None
            code = self._shipped.read(spec, virtual=self._needs_ptx(spec))
            if code is not None:
                return code
        if not self._cache.compiles:
            reasons = [] if self._shipped is None else self._shipped.refusals
            missing = "; ".join([f"there is no compiler for kernel {spec.entry}", *reasons])
            raise EngineError(f"{missing}; {INSTALL_COMPILER}")
        begun = self._begun.get(self._cache.key(spec, self._architecture))
        return self._cache.load(spec, self._architecture) if begun is None else begun.result()

    def close(self) -> None:
        """Cancel pending compilations and end running ones, so that nobody waits for them."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._cache.abandon()

"""The compiled kernels that a device loads, and their cache on disk.

A device begins the compilation of the kernels that it will launch, as many at a time as there are cores, while the
engine continues; it requests each kernel at its launch. Kernels that the package contains are not compiled
(:mod:`swsearch.engine.cuda.runtime.shipped_kernels`). The key of a kernel in the cache is the SHA-256 of everything
that determines its code (:func:`swsearch.engine.cuda.runtime.compiler.kernel_key`). Files are written under a
temporary name and renamed, so several processes may share the cache; the threads of one process do not compile a kernel
twice. The cache is the folder ``$SWSEARCH_KERNEL_CACHE`` if that variable is set, otherwise
``swsearch/kernels`` under ``$XDG_CACHE_HOME`` or ``~/.cache``; it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Final

from swsearch.engine.cuda.runtime.compiler import Compiler, Compilers, kernel_key, source_digest
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.engine.cuda.runtime.shipped_kernels import Archive, refusals
from swsearch.errors import EngineError
from swsearch.folders import user_cache, write_complete
from swsearch.threads import usable_cores

INSTALL_COMPILER: Final = "install the CUDA toolkit or pip install nvidia-cuda-nvrtc"
_COMPILING: Final[dict[Path, threading.Lock]] = {}
"""One lock per cached file that this process has compiled, because several devices may need the same kernel."""


def cache_folder() -> Path:
    """The folder of the cache of compiled kernels (see above)."""
    chosen = os.environ.get("SWSEARCH_KERNEL_CACHE")
    if chosen:
        return Path(os.path.expanduser(chosen))
    return user_cache("kernels")


class KernelCache:
    """The compiled kernels of one architecture: those of the package, those on disk, and those that are being compiled.

    A kernel that the package does not contain is compiled when it is first requested, or begun, by threads. A folder
    that cannot be written is not an error: each process then compiles its kernels again. Used by one thread.

    ``archives`` are those of the package for this architecture, the preferred one first. ``folder`` is by default
    :func:`cache_folder`. At most ``n_threads`` kernels, by default one for each usable core, are compiled at a time.
    """

    def __init__(
        self,
        compilers: Compilers,
        architecture: int,
        archives: Sequence[Archive],
        folder: Path | None = None,
        n_threads: int | None = None,
    ) -> None:
        self._compilers = compilers
        self._architecture = architecture
        self._archives = archives
        self.folder = cache_folder() if folder is None else folder
        self._n_threads = n_threads or usable_cores()
        self._threads: ThreadPoolExecutor | None = None
        self._begun: dict[str, Future[bytes]] = {}  # by the kernel's key, whichever compiler makes it

    @cached_property
    def _sources(self) -> str:
        return source_digest()

    def _key(self, spec: KernelSpec, compiler: Compiler | None = None) -> str:
        return kernel_key(self._sources, spec, self._architecture, compiler)

    def _path(self, spec: KernelSpec, compiler: Compiler | None = None) -> Path:
        """The file of a kernel by a compiler, by default the one that is used at present; it need not exist."""
        key = self._key(spec, compiler or self._compilers.current)
        return self.folder / f"{spec.entry}-sm{self._architecture}-{key[:32]}.cubin"

    @property
    def _compiles(self) -> bool:
        return self._compilers.current is not None

    def archive_of(self, spec: KernelSpec) -> Archive | None:
        """The archive of the package that has a kernel: machine code or, if there is no compiler, PTX.

        The driver compiles PTX, which takes it as long as a compiler. A compiler is opened only for a kernel without
        machine code.
        """
        for archive in self._archives:
            if (not archive.virtual or not self._compiles) and archive.has(spec):
                return archive
        return None

    def begin(self, specs: Iterable[KernelSpec]) -> None:
        """Begin to compile kernels that are not on disk, in this order; returns at once.

        Only :meth:`take` raises an error of the compiler, so a kernel that is never launched cannot fail a search.
        """
        for spec in specs:
            if self.archive_of(spec) is not None or not self._compiles:
                continue
            key = self._key(spec)
            if key in self._begun or self._path(spec).exists():
                continue
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._n_threads, "compile")
            self._begun[key] = self._threads.submit(self._load, spec)

    def is_ready(self, spec: KernelSpec) -> bool:
        """Whether :meth:`take` returns a compiled kernel at once."""
        if self.archive_of(spec) is not None:
            return True
        if not self._compiles:
            return False
        begun = self._begun.get(self._key(spec))
        return self._path(spec).exists() if begun is None else begun.done() and begun.exception() is None

    def take(self, spec: KernelSpec) -> bytes:
        """The cubin; waits for a pending compilation, or compiles the kernel now.

        Raises :class:`KernelCompileError` if no compiler compiles the kernel, and :class:`EngineError` if there is none
        and the package does not contain the kernel.
        """
        while (archive := self.archive_of(spec)) is not None:
            code = archive.read(spec)
            if code is not None:
                return code
        if not self._compiles:
            missing = "; ".join([f"there is no compiler for kernel {spec.entry}", *refusals(self._archives)])
            raise EngineError(f"{missing}; {INSTALL_COMPILER}")
        begun = self._begun.get(self._key(spec))
        return self._load(spec) if begun is None else begun.result()

    def _load(self, spec: KernelSpec) -> bytes:
        """The cubin, from disk or from the compiler. Several threads may call this concurrently."""
        path = self._path(spec)
        with contextlib.suppress(OSError):
            return path.read_bytes()
        with _COMPILING.setdefault(path, threading.Lock()):
            with contextlib.suppress(OSError):  # the previous holder of the lock has compiled it
                return path.read_bytes()
            compiler, code = self._compilers.compile(spec, self._architecture)
            path = self._path(spec, compiler)
            with contextlib.suppress(OSError):
                write_complete(path, code)
            return code

    def close(self) -> None:
        """Cancel pending compilations and end running ones, so that nobody waits for them."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._compilers.abandon()

"""The compiled kernels that a device loads, and their cache on disk.

A kernel that the package does not contain (:mod:`swsearch.engine.cuda.runtime.shipped_kernels`) is compiled when it is
first requested. Its key in the cache is the SHA-256 of everything that determines its code
(:func:`swsearch.engine.cuda.runtime.compiler.kernel_key`). Files are written under a temporary name and renamed, so
several processes may share the cache. The cache is the folder ``$SWSEARCH_KERNEL_CACHE`` if that variable is set,
otherwise ``swsearch/kernels`` under ``$XDG_CACHE_HOME`` or ``~/.cache``; it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from swsearch.engine.cuda.runtime.compiler import Compiler, installed_nvrtc, kernel_key, source_digest
from swsearch.engine.cuda.runtime.kernels import KernelSpec, compute_capability
from swsearch.engine.cuda.runtime.shipped_kernels import Archive, refusals
from swsearch.errors import EngineError
from swsearch.folders import user_cache, write_complete

INSTALL_COMPILER: Final = "pip install 'swsearch[cuda]' nvidia-cuda-nvrtc mends that"


def cache_folder() -> Path:
    """The folder of the cache of compiled kernels (see above)."""
    chosen = os.environ.get("SWSEARCH_KERNEL_CACHE")
    if chosen:
        return Path(os.path.expanduser(chosen))
    return user_cache("kernels")


class KernelCache:
    """The compiled kernels of one architecture: those of the package, those on disk, and those that it compiles.

    A folder that cannot be written is not an error: each process then compiles its kernels again. Used by one thread.

    ``archives`` are those of the package for this architecture, the preferred one first. ``find_compiler`` is called
    for the first kernel that must be compiled. ``folder`` is by default :func:`cache_folder`.
    """

    def __init__(
        self,
        architecture: int,
        archives: Sequence[Archive],
        folder: Path | None = None,
        find_compiler: Callable[[], Compiler | None] = installed_nvrtc,
    ) -> None:
        self._architecture = architecture
        self._archives = archives
        self.folder = cache_folder() if folder is None else folder
        self._find_compiler = find_compiler

    @cached_property
    def compiler(self) -> Compiler | None:
        """The compiler of this machine; None if there is none."""
        return self._find_compiler()

    @cached_property
    def _sources(self) -> str:
        return source_digest()

    def take(self, spec: KernelSpec) -> tuple[bytes, Archive | None]:
        """The cubin, and the archive that contains it.

        Raises :class:`KernelCompileError` if the compiler rejects the kernel, and :class:`EngineError`, with the
        remedy, if there is no compiler and the package does not contain the kernel.
        """
        for archive in self._archives:
            code = archive.read(spec)
            if code is not None:
                return code, archive
        if self.compiler is None:
            what = f"no kernel {spec.entry}" if self._archives else "no kernels"
            missing = f"the package has {what} for {compute_capability(self._architecture)}"
            raise EngineError("; ".join([missing, *refusals(self._archives), INSTALL_COMPILER]))
        compiler = f"{self.compiler.name} {self.compiler.version}"
        key = kernel_key(self._sources, spec, self._architecture, compiler)
        path = self.folder / f"{spec.entry}-sm{self._architecture}-{key[:32]}.cubin"
        with contextlib.suppress(OSError):
            return path.read_bytes(), None
        code, _ = self.compiler.compile(spec, self._architecture)
        with contextlib.suppress(OSError):
            write_complete(path, code)
        return code, None

"""The cache of compiled kernels on disk.

The key of a kernel is the SHA-256 of everything that determines its code: every file under ``cuda/``, the entry and its
constants, the architecture, the compiler's name and version, and the options that it takes from the environment. Files
are written under a temporary name and renamed, so several processes may share the cache; the threads of one process do
not compile a kernel twice. The cache is the folder ``$SWSEARCH_KERNEL_CACHE`` if that variable is set, otherwise
``swsearch/kernels`` under ``$XDG_CACHE_HOME`` or ``~/.cache``; it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
from pathlib import Path
from typing import Final

from swsearch.engine.cuda.runtime.compiler import Compiler, Compilers, compile_options
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.folders import resource_folder, user_cache

_COMPILING: Final[dict[Path, threading.Lock]] = {}
"""One lock per cached file that this process has compiled, because several devices may need the same kernel."""


def cache_folder() -> Path:
    """The folder of the cache of compiled kernels (see above)."""
    chosen = os.environ.get("SWSEARCH_KERNEL_CACHE")
    if chosen:
        return Path(os.path.expanduser(chosen))
    return user_cache("kernels")


def source_digest() -> str:
    """SHA-256 of every file under ``cuda/`` that a kernel may include, names and contents, in hexadecimal."""
    digest = hashlib.sha256()
    root = resource_folder("cuda")
    for path in sorted([*root.rglob("*.cuh"), *root.rglob("*.cu")]):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def kernel_key(
    sources: str, spec: KernelSpec, architecture: int, compiler: Compiler | None = None, *, virtual: bool = False
) -> str:
    """SHA-256 of everything that determines the code, in hexadecimal; without a compiler, of all but the compiler.

    ``sources`` is :func:`source_digest`; with ``virtual``, the code is PTX. Specifications that differ only in their
    threads per block share their code and their key.
    """
    parts = [sources, spec.entry, str(architecture)]
    if compiler is not None:
        parts += [compiler.name, compiler.version, compiler.flags]
    parts += compile_options(spec, architecture, Path("."), virtual=virtual)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class KernelCache:
    """Compiled kernels on disk, each compiled when it is first requested.

    A folder that cannot be written is not an error: each process then compiles its kernels again.
    """

    def __init__(self, compilers: Compilers, folder: Path | None = None) -> None:
        self._compilers = compilers
        self.folder = cache_folder() if folder is None else folder
        self._sources: str | None = None

    def _source_digest(self) -> str:
        if self._sources is None:
            self._sources = source_digest()
        return self._sources

    def key(self, spec: KernelSpec, architecture: int, compiler: Compiler | None = None) -> str:
        """See :func:`kernel_key`."""
        return kernel_key(self._source_digest(), spec, architecture, compiler)

    @property
    def compiles(self) -> bool:
        """Whether there is a compiler."""
        return self._compilers.current is not None

    def abandon(self) -> None:
        """See :meth:`Compilers.abandon`."""
        self._compilers.abandon()

    def path(self, spec: KernelSpec, architecture: int) -> Path:
        """The file of a kernel by the compiler that is used at present, whether or not it exists yet."""
        assert self._compilers.current is not None
        return self._path(spec, architecture, self._compilers.current)

    def _path(self, spec: KernelSpec, architecture: int, compiler: Compiler) -> Path:
        return self.folder / f"{spec.entry}-sm{architecture}-{self.key(spec, architecture, compiler)[:32]}.cubin"

    def load(self, spec: KernelSpec, architecture: int) -> bytes:
        """The cubin, from disk or from the compiler. Several threads may call this concurrently.

        Raises :class:`KernelCompileError` if no compiler compiles the kernel.
        """
        path = self.path(spec, architecture)
        with contextlib.suppress(OSError):
            return path.read_bytes()
        with _COMPILING.setdefault(path, threading.Lock()):
            with contextlib.suppress(OSError):  # the previous holder of the lock has compiled it
                return path.read_bytes()
            compiler, code = self._compilers.compile(spec, architecture)
            path = self._path(spec, architecture, compiler)
            with contextlib.suppress(OSError):
                self.folder.mkdir(parents=True, exist_ok=True)
                handle, name = tempfile.mkstemp(dir=self.folder, prefix=path.name)
                with os.fdopen(handle, "wb") as file:
                    file.write(code)
                os.replace(name, path)
            return code

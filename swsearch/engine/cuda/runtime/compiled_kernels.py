"""The compiled kernels that a device loads: those that the package contains, and those that are compiled here.

So that a search neither waits for a compiler nor needs one, ``scripts/build_kernels.py`` writes an archive for each
architecture while the package is built: ``sm90.zip`` has the machine code for compute capability 9.0, which later
architectures of the same major number run as well. An entry holds the kernels of a tile, which differ little and so are
compressed together. The archive's manifest has the place of each kernel by its key
(:func:`swsearch.engine.cuda.runtime.compiler.kernel_key`), which includes a digest of all sources, so code of other
sources is never found. The manifest names that digest too, for the message.

A kernel that the package does not contain is compiled when it is first requested, and kept on disk by its key, to which
the compiler belongs too. Files are written under a temporary name and renamed, so several processes may share this
cache. It is the folder ``$SWSEARCH_KERNEL_CACHE`` if that variable is set, otherwise ``swsearch/kernels`` under
``$XDG_CACHE_HOME`` or ``~/.cache``; it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from swsearch.engine.cuda.runtime.compiler import Compiler, installed_nvrtc, kernel_key, source_digest
from swsearch.engine.cuda.runtime.kernels import KernelSpec, compute_capability
from swsearch.errors import EngineError, SwSearchError
from swsearch.folders import resource_folder, user_cache, write_complete

INSTALL_COMPILER: Final = "pip install 'swsearch[cuda]' nvidia-cuda-nvrtc mends that"
MANIFEST: Final = "manifest.json"
_DAMAGE: Final = (
    OSError, EOFError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, zipfile.BadZipFile,
    lzma.LZMAError, zlib.error,
)  # fmt: skip
"""What reading a damaged archive may raise; ``RuntimeError`` where a method or an encryption is not supported."""


def write_archive(folder: Path, architecture: int, kernels: Sequence[tuple[KernelSpec, bytes]], compiler: str) -> Path:
    """Write the archive of an architecture, complete or not at all; the same kernels give the same bytes."""
    families: dict[str, bytearray] = {}
    places = {}
    for spec, code in kernels:
        name = _family(spec)
        family = families.setdefault(name, bytearray())
        places[kernel_key(spec, architecture)] = [name, len(family), len(code)]
        family += code
    manifest = {"sources": source_digest(), "compiler": compiler, "kernels": places}
    entries = [(MANIFEST, json.dumps(manifest).encode()), *families.items()]
    path = folder / f"sm{architecture}.zip"
    unfinished = path.with_suffix(".unfinished")
    try:
        with zipfile.ZipFile(unfinished, "w") as archive:
            for name, content in entries:
                archive.writestr(zipfile.ZipInfo(name), bytes(content), zipfile.ZIP_LZMA)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def _family(spec: KernelSpec) -> str:
    """The entry that a kernel shares with those of the same tile."""
    return "-".join([spec.entry, *(value for name, value in spec.constants if name in ("PAIRING", "WORDS", "BAND"))])


class Archive:
    """The kernels for one architecture, opened at its first use."""

    def __init__(self, path: Path, architecture: int) -> None:
        self.path = path
        self.refusal = ""
        self._architecture = architecture
        self._families: dict[str, bytes] = {}

    @cached_property
    def _places(self) -> dict[str, tuple[str, int, int]]:
        """The entry, the first byte there, and the size of each kernel, by its key; none if the archive is refused."""
        try:
            manifest = json.loads(self._entry(MANIFEST))
            places = {key: (str(name), int(at), int(size)) for key, (name, at, size) in manifest["kernels"].items()}
            made_from = manifest["sources"]
        except _DAMAGE as error:
            self._refuse_damaged(error)
            return {}
        if made_from != source_digest():
            self.refuse("it was made from other sources; run scripts/build_kernels.py again")
            return {}
        return places

    def _entry(self, name: str) -> bytes:
        """The contents of an entry, whose checksum is checked."""
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(name)

    def read(self, spec: KernelSpec) -> bytes | None:
        """The machine code of a kernel; None if the archive does not contain it, or is refused."""
        place = self._places.get(kernel_key(spec, self._architecture))
        if place is None or self.refusal:
            return None
        name, at, size = place
        if name not in self._families:
            try:
                self._families[name] = self._entry(name)
            except _DAMAGE as error:
                self._refuse_damaged(error)
                return None
        return self._families[name][at : at + size]

    def _refuse_damaged(self, error: Exception) -> None:
        self.refuse(f"it is damaged ({error}); install swsearch again")

    def refuse(self, reason: str) -> None:
        """Stop using the archive."""
        self.refusal = f"the kernels in {self.path} are refused: {reason}"


def package_folder() -> Path | None:
    """The folder of the package's archives; None if the package was built without nvcc."""
    try:
        return resource_folder("cubins")
    except SwSearchError:
        return None


def package_archives(architecture: int, folder: Path | None = None) -> list[Archive]:
    """The archives that a device can load, the newest architecture first.

    ``architecture`` is 90 for compute capability 9.0; ``folder`` is by default :func:`package_folder`.
    """
    folder = folder or package_folder()
    if folder is None:
        return []
    runs = range(architecture, architecture // 10 * 10 - 1, -1)
    return [Archive(path, each) for each in runs if (path := folder / f"sm{each}.zip").exists()]


def refusals(archives: Sequence[Archive]) -> list[str]:
    """Which archives are refused, and why: one line each."""
    return [archive.refusal for archive in archives if archive.refusal]


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
        self.archives = archives
        self.folder = cache_folder() if folder is None else folder
        self._find_compiler = find_compiler

    @cached_property
    def compiler(self) -> Compiler | None:
        """The compiler of this machine; None if there is none."""
        return self._find_compiler()

    def take(self, spec: KernelSpec) -> tuple[bytes, Archive | None]:
        """The cubin, and the archive that contains it.

        Raises :class:`KernelCompileError` if the compiler rejects the kernel, and :class:`EngineError`, with the
        remedy, if there is no compiler and the package does not contain the kernel.
        """
        for archive in self.archives:
            code = archive.read(spec)
            if code is not None:
                return code, archive
        if self.compiler is None:
            what = f"no kernel {spec.entry}" if self.archives else "no kernels"
            missing = f"the package has {what} for {compute_capability(self._architecture)}"
            raise EngineError("; ".join([missing, *refusals(self.archives), INSTALL_COMPILER]))
        compiler = f"{self.compiler.name} {self.compiler.version}"
        key = kernel_key(spec, self._architecture, compiler)
        path = self.folder / f"{spec.entry}-sm{self._architecture}-{key[:32]}.cubin"
        with contextlib.suppress(OSError):
            return path.read_bytes(), None
        code, _ = self.compiler.compile(spec, self._architecture)
        with contextlib.suppress(OSError):
            write_complete(path, code)
        return code, None

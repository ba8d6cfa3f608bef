"""The compiled kernels that the package contains, so that a search need not wait for a compiler, or can do without.

``scripts/build_kernels.py`` writes an archive for each architecture while the package is built: ``sm90.zip``
has machine code for compute capability 9.0, ``compute80.zip`` PTX, from which the driver compiles machine code for
newer architectures. Machine code runs on later architectures of the same major number as well. An entry holds the
kernels of a tile, which differ little and so are compressed together. The archive's manifest has the place of each
kernel by its key (:func:`swsearch.engine.cuda.runtime.compiler.kernel_key`), which includes a digest of all sources, so
code of other sources is never found. The manifest names that digest too, for the message.
"""

from __future__ import annotations

import json
import lzma
import re
import threading
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from swsearch.engine.cuda.runtime.compiler import kernel_key, source_digest
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.errors import SwSearchError
from swsearch.folders import resource_folder

MANIFEST: Final = "manifest.json"
_NAME: Final = re.compile(r"(sm|compute)(\d+)\.zip")
_DAMAGE: Final = (
    OSError, EOFError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, zipfile.BadZipFile,
    lzma.LZMAError, zlib.error,
)  # fmt: skip
"""What reading a damaged archive may raise; ``RuntimeError`` where a method or an encryption is not supported."""


def archive_name(architecture: int, *, virtual: bool) -> str:
    """The file of the kernels for an architecture: machine code or, if ``virtual``, PTX."""
    return f"{'compute' if virtual else 'sm'}{architecture}.zip"


def write_archive(folder: Path, architecture: int, kernels: Sequence[tuple[KernelSpec, bytes]], *, virtual: bool,
                  compiler: str) -> Path:  # fmt: skip
    """Write the archive of an architecture, complete or not at all; the same kernels give the same bytes."""
    sources = source_digest()
    families: dict[str, bytearray] = {}
    places = {}
    for spec, code in kernels:
        name = _family(spec)
        family = families.setdefault(name, bytearray())
        places[kernel_key(sources, spec, architecture, virtual=virtual)] = [name, len(family), len(code)]
        family += code
    manifest = {"sources": sources, "compiler": compiler, "kernels": places}
    entries = [(MANIFEST, json.dumps(manifest).encode()), *families.items()]
    path = folder / archive_name(architecture, virtual=virtual)
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
    """The kernels for one architecture: machine code, or PTX if ``virtual``.

    It is opened at its first use, and may be shared by threads.
    """

    def __init__(self, path: Path, architecture: int, *, virtual: bool) -> None:
        self.path = path
        self.virtual = virtual
        self._architecture = architecture
        self._lock = threading.Lock()
        self._places: dict[str, tuple[str, int, int]] | None = None
        self._families: dict[str, bytes] = {}
        self._sources = ""
        self.refusal = ""

    def _key(self, spec: KernelSpec) -> str:
        return kernel_key(self._sources, spec, self._architecture, virtual=self.virtual)

    def _open(self) -> dict[str, tuple[str, int, int]]:
        """The entry, the first byte there, and the size of each kernel, by its key; none if the archive is refused."""
        with self._lock:
            if self._places is None:
                self._places = {}
                self._sources = source_digest()
                try:
                    with zipfile.ZipFile(self.path) as archive:
                        manifest = json.loads(archive.read(MANIFEST))
                    made_from = manifest["sources"]
                    places = {
                        key: (str(name), int(at), int(size)) for key, (name, at, size) in manifest["kernels"].items()
                    }
                except _DAMAGE as error:
                    self.refuse(f"it is damaged ({error}); install swsearch again")
                else:
                    if made_from != self._sources:
                        self.refuse("it was made from other sources; run scripts/build_kernels.py again")
                    else:
                        self._places = places
            return self._places

    def has(self, spec: KernelSpec) -> bool:
        """Whether the archive contains a kernel, as far as is known before its code is read."""
        places = self._open()
        return not self.refusal and bool(places) and self._key(spec) in places

    def read(self, spec: KernelSpec) -> bytes | None:
        """The code of a kernel, as the driver loads it; None if the archive turns out to be damaged."""
        name, at, size = self._open()[self._key(spec)]
        if name not in self._families:
            try:
                with zipfile.ZipFile(self.path) as archive:
                    self._families[name] = archive.read(name)  # checks the entry's checksum
            except _DAMAGE as error:
                self.refuse(f"it is damaged ({error}); install swsearch again")
                return None
        code = self._families[name][at : at + size]
        return code + b"\0" if self.virtual else code  # PTX is text, which the driver reads up to a zero

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
    """The archives that a device can load, in the order of preference: machine code, then PTX, the newest first.

    ``architecture`` is 90 for compute capability 9.0; ``folder`` is by default :func:`package_folder`.
    """
    folder = folder or package_folder()
    if folder is None:
        return []
    found = [(match, path) for path in folder.glob("*.zip") if (match := _NAME.fullmatch(path.name))]
    archives = [(match[1] == "compute", int(match[2]), path) for match, path in found]
    return [
        Archive(path, made_for, virtual=virtual)
        for virtual, made_for, path in sorted(archives, key=lambda each: (each[0], -each[1]))
        if made_for <= architecture and (virtual or made_for // 10 == architecture // 10)
    ]


def refusals(archives: Sequence[Archive]) -> list[str]:
    """Which archives are refused, and why: one line each."""
    return [archive.refusal for archive in archives if archive.refusal]

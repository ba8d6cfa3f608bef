"""A cache of what tests compile or build, retained between test runs and shared by concurrent ones.

A file is identified by the SHA-256 of everything that determines it: the sources, the options and the compiler's
version. The first process that needs it builds it while the others wait for the lock; it is written under another name
and renamed, so no process sees an incomplete file. It lies in ``build/tests`` of the checkout, which ``make clean``
removes, or in ``$SWSEARCH_TEST_CACHE``; if that cannot be written, in a folder of this process. Beyond ``MOST_BYTES``
the least recently used files are removed, except those of the last hour, which a test may be about to open.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_BYTES = 1 << 29
KEPT_SECONDS = 3600.0


@cache
def _private_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="swsearch-compiled-")


@cache
def default_folder() -> Path:
    """Return the folder of compiled files (see above)."""
    folder = Path(os.environ.get("SWSEARCH_TEST_CACHE") or ROOT / "build" / "tests")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(_private_folder().name)


@cache
def compiler_version(program: str) -> str:
    """Return a compiler's version text."""
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


@cache
def digest_of(*folders: Path) -> str:
    """Return the SHA-256 of the sources in some folders: names and contents, in hexadecimal."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".cu", ".cuh", ".c", ".h", ".hpp", ".cpp"}:
                content = path.read_bytes()
                digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
                digest.update(content)
    return digest.hexdigest()


def compiled(name: str, parts: Iterable[str], make: Callable[[Path], None], folder: Path | None = None) -> Path:
    """Return the file that ``make`` writes, made now or earlier, here or in another process.

    Parameters
    ----------
    name : str
        Of the file, for people who look into the folder.
    parts : iterable of str
        Everything that determines the content: digests of sources, options, the compiler's version.
    make : callable
        Writes the file at the given path; an exception of it is raised here, and nothing is stored.
    folder : Path, optional
        The folder of the cache.
    """
    folder = default_folder() if folder is None else folder
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    path = folder / f"{digest[:32]}-{name}"
    if _used(path):
        return path
    with _locked(folder / f"lock-{digest[:2]}"):
        if _used(path):
            return path
        scratch = folder / f"making-{os.getpid()}-{path.name}"
        try:
            make(scratch)
            os.replace(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)
    remove_oldest(folder, MOST_BYTES)
    return path


def _used(path: Path) -> bool:
    """Return whether the file exists, and mark it as used now."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock for one process, and one thread of it; the system releases the lock of a killed process."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove_oldest(folder: Path, most_bytes: int) -> None:
    """Remove the least recently used files until the others fit, except those of the last hour."""
    found = []
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    n_bytes = sum(size for _, size, _ in found)
    for used, size, path in sorted(found):
        if n_bytes <= most_bytes or time.time() - used < KEPT_SECONDS:
            return
        if not path.name.startswith("lock-"):
            path.unlink(missing_ok=True)
            n_bytes -= size


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar archive into a folder, with Python's filter of members where there is one (from 3.11.4 on)."""
    with tarfile.open(archive) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(folder)

"""A cache of what tests compile or build, retained between test runs and shared by concurrent ones.

A file is identified by the SHA-256 of everything that determines it: the sources, the options and the compiler's
version. The first process that needs it builds it while the others wait for the lock; it is written under another name
and renamed, so no process sees an incomplete file. It lies in ``build/tests`` of the checkout, which ``make clean``
removes, or in ``$SWSEARCH_TEST_CACHE``.
"""

import fcntl
import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


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


def compiled(name: str, parts: Iterable[str], make: Callable[[Path], object]) -> Path:
    """Return the file that ``make`` writes, made now or earlier, here or in another process.

    Parameters
    ----------
    name : str
        Of the file, for people who look into the folder.
    parts : iterable of str
        Everything that determines the content: digests of sources, options, the compiler's version.
    make : callable
        Writes the file at the given path; an exception of it is raised here, and nothing is stored.
    """
    folder = Path(os.environ.get("SWSEARCH_TEST_CACHE") or ROOT / "build" / "tests")
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    path = folder / f"{digest[:32]}-{name}"
    if not path.exists():
        with (folder / f"lock-{digest[:2]}").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # which the system releases if this process is killed
            if not path.exists():
                scratch = folder / f"making-{os.getpid()}-{path.name}"
                try:
                    make(scratch)
                    os.replace(scratch, path)
                finally:
                    scratch.unlink(missing_ok=True)
    return path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar archive into a folder, with Python's filter of members where there is one (from 3.11.4 on)."""
    with tarfile.open(archive) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(folder)

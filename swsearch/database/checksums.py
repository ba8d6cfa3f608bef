"""The SHA-256 of files, remembered as long as a file cannot have changed.

A file is recognised by its device, inode, size and times of change. The kernel sets the time of the last change
(``ctime``), which no program can choose, so that a file with the same values has the same content, with one exception:
times are those of the last tick of a clock, or of the first write to mapped memory since it was flushed, and another
change soon after leaves them as they are. Therefore a checksum is remembered only if the file had been unchanged for a
minute when it was read. (The one change that remains unseen is a later write to mapped memory that is never flushed, as
on tmpfs.)

:class:`Checksums` keeps each checksum in a file of its own, which is named by these values and written by one rename.
The files that were not used for the longest time are removed beyond a number. If the folder cannot be written, nothing
is remembered.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

SETTLED_SECONDS: Final = 60.0
"""Time without a change after which a file is recognised by its values. The kernel writes memory back after 30 s."""
MAX_FILES: Final = 1000
"""Number of checksums that are kept."""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class HashedFile:
    """The SHA-256 of an open file, in hexadecimal, as :attr:`sha256`."""

    def __init__(self, descriptor: int, checksums: Checksums) -> None:
        self._descriptor = descriptor
        self._values = _values(descriptor)
        self._is_settled = self._age() > SETTLED_SECONDS
        known = checksums.get(self._values) if self._is_settled else None
        self.sha256 = known or _sha256(descriptor)
        if known is None and self._is_settled and _values(descriptor) == self._values:
            checksums.set(self._values, self.sha256)

    @property
    def has_changed(self) -> bool:
        """Whether the file has another content now; it is read again if it was changed lately."""
        is_known = self._is_settled and _values(self._descriptor) == self._values
        return not is_known and _sha256(self._descriptor) != self.sha256

    def _age(self) -> float:
        found = os.fstat(self._descriptor)
        return time.time() - max(found.st_ctime, found.st_mtime)


class Checksums:
    """A folder of remembered checksums.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, values: str) -> str | None:
        """The checksum of the file with these values, if it is known."""
        path = self._folder / values
        with suppress(OSError, UnicodeDecodeError):
            found = path.read_text("ascii")
            if _SHA256.fullmatch(found):
                os.utime(path)
                return found
        return None

    def set(self, values: str, sha256: str) -> None:
        """Remember a checksum."""
        unfinished = self._folder / f".{values}-{os.urandom(4).hex()}"
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._remove_oldest()
            try:
                unfinished.write_text(sha256, "ascii")
                unfinished.replace(self._folder / values)
            finally:
                unfinished.unlink(missing_ok=True)

    def _remove_oldest(self) -> None:
        with os.scandir(self._folder) as entries:
            found = sorted((entry.stat().st_mtime, entry.path) for entry in entries)
        for _, path in found[: max(0, len(found) + 1 - MAX_FILES)]:
            os.unlink(path)


def _values(descriptor: int) -> str:
    found = os.fstat(descriptor)
    return f"{found.st_dev}-{found.st_ino}-{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}"


def _sha256(descriptor: int) -> str:
    with open(f"/dev/fd/{descriptor}", "rb") as file:  # a position of its own
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Decompression of files: gzip, bzip2, xz and zstd, which are recognized by their first bytes and read to their end.

xopen decompresses gzip and zstd; the standard library decompresses bzip2 and xz. A reader must treat every exception as
damage to the file, because each decompressor has its own exceptions.
"""

from __future__ import annotations

import bz2
import io
import lzma
from collections.abc import Callable, Mapping
from typing import BinaryIO, Final, Protocol, cast

_MAGIC: Final = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
ARCHIVE_FORMATS: Final = frozenset(_MAGIC.values())
MAGIC_BYTES: Final = 6
"""Number of bytes at the start of a file that determine the format."""
_BLOCK_BYTES: Final = 1 << 20


class Readable(Protocol):
    """A stream of bytes that can be read once."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        ...


def archive_format(start: bytes) -> str | None:
    """The format of a file with these first bytes: ``gz``, ``bz2``, ``xz`` or ``zst``, or None if not compressed."""
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def decompressed(file: BinaryIO | io.RawIOBase, name: str | None) -> Readable:
    """The decompressed content of ``file`` from its current position; ``name`` is from :func:`archive_format`.

    The caller closes ``file``.
    """
    if name is None:
        return cast(Readable, file)
    if name in _STRICT:
        return _StrictArchive(file, _STRICT[name])
    from xopen import xopen  # only here: its import takes longer than most files of queries

    return cast(Readable, xopen(cast(BinaryIO, file), "rb", threads=0, format=name))


class _StrictArchive:
    """A bzip2 or xz archive of one or several streams, without any other bytes between the streams or after them.

    The standard library's file classes, which xopen uses, treat damage between streams as the end of the file: an
    archive written by ``pbzip2`` or ``xz -T`` would then lose records without an error.
    """

    def __init__(self, file: Readable, new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> None:
        self._file = file
        self._new = new
        self._decompressor = new()

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        while True:
            if self._decompressor.eof:
                rest = self._decompressor.unused_data or self._file.read(_BLOCK_BYTES)
                if rest.startswith(b"\0") and self._new is _new_xz:  # xz pads streams with NUL bytes
                    while rest and not rest.strip(b"\0"):
                        rest = self._file.read(_BLOCK_BYTES)
                    rest = rest.lstrip(b"\0")
                if not rest:
                    return b""
                self._decompressor = self._new()
            elif self._decompressor.needs_input:
                rest = self._file.read(_BLOCK_BYTES)
                if not rest:
                    raise EOFError("the archive ends within a stream")
            else:
                rest = b""
            block = self._decompressor.decompress(rest, size)
            if block:
                return block


def _new_xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ)


_STRICT: Final[Mapping[str | None, Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]]] = {
    "bz2": bz2.BZ2Decompressor,
    "xz": _new_xz,
}

"""Decompression of files: gzip, bzip2, xz and zstd, which are recognized by their first bytes and read to their end.

xopen decompresses gzip and zstd; the standard library decompresses bzip2 and xz. A reader must treat every exception as
damage to the file, because each decompressor has its own exceptions.

:func:`decompressing` uses several threads for gzip of many members, such as bgzip's, and zstd of many frames, which can
be decompressed independently. The file is cut into *segments* of whole members or frames: at the sizes that bgzip
writes into its headers, at the sizes that zstd's blocks state, or where the header of a gzip member seems to begin. As
soon as a segment cannot be cut or is not what it seemed, the rest of the file, from the beginning of the segment, is
decompressed sequentially by :func:`decompressed`. So an archive of a single member, and every damage, is treated as
without threads, with the same errors.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache, partial
from typing import Any, BinaryIO, Final, Protocol, cast

from swsearch.threads import Threads

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


def decompressed(file: BinaryIO, name: str | None) -> Readable:
    """The decompressed content of ``file`` from its current position; ``name`` is from :func:`archive_format`.

    The caller closes ``file``.
    """
    if name is None:
        return cast(Readable, file)
    if name in _STRICT:
        return _StrictArchive(file, _STRICT[name])
    from xopen import xopen  # only here: its import takes longer than most files of queries

    return cast(Readable, xopen(file, "rb", threads=0, format=name))


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


SEGMENT_BYTES: Final = 1 << 19
"""Smallest size of a segment in compressed bytes, except for the last."""
MAX_SEGMENT_BYTES: Final = 1 << 23
"""Size of the compressed text in which a whole member must end; larger members are decompressed sequentially."""
MAX_OUTPUT_BYTES: Final = 1 << 26
"""Largest size of a decompressed segment; the rest of the file is decompressed sequentially otherwise."""

_BGZF_HEADER: Final = re.compile(rb"\x1f\x8b\x08\x04.{6}\x06\0BC\x02\0(..)", re.DOTALL)
"""The header of a block of bgzip, with the size of the block less one (SAM specification, section 4.1)."""
_GZIP_HEADER: Final = re.compile(rb"\x1f\x8b\x08[\0-\x1f].{4}[\0\x02\x04][\0-\x0d\xff]", re.DOTALL)
"""The header of a gzip member (RFC 1952, section 2.3); deflated text contains it by chance once in some terabytes."""
_ZSTD_HEADER: Final = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)
"""The beginning of a zstd frame, or of a frame to skip (RFC 8878, section 3.1)."""
_GZIP_BITS: Final = 31

PARALLEL_FORMATS: Final = frozenset({"gz", "zst"})


class ParallelArchive(io.RawIOBase):
    """The decompressed text of a gzip or zstd archive.

    Parameters
    ----------
    file : binary file
        A seekable file at its beginning; the caller closes it, after this object.
    name : str
        ``gz`` or ``zst``.
    threads : Threads
    """

    def __init__(self, file: BinaryIO, name: str, threads: Threads) -> None:
        self._file = file
        self._name = name
        self._texts = self._decompressed(threads)
        self._text = memoryview(b"")

    def readable(self) -> bool:
        """True: the text can be read."""
        return True

    def close(self) -> None:
        """End the work on segments that were not read; the file stays open."""
        self._texts.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes, or a part of it; the number of bytes, 0 at the end."""
        view = memoryview(buffer)
        while not self._text:
            text = next(self._texts, None)
            if text is None:
                return 0
            self._text = memoryview(text)
        n_bytes = min(len(view), len(self._text))
        view[:n_bytes] = self._text[:n_bytes]
        self._text = self._text[n_bytes:]
        return n_bytes

    def _decompressed(self, threads: Threads) -> Generator[bytes, None, None]:
        """The texts of the segments, and of the rest of the file if it must be decompressed sequentially."""

        def text_of(segment: tuple[int, bytes | None]) -> tuple[int, list[bytes] | None]:
            offset, data = segment
            return offset, None if data is None else _members(data, self._name)

        for offset, texts in threads.in_order(text_of, self._segments()):
            if texts is None:
                self._file.seek(offset)
                rest = decompressed(self._file, self._name)
                while text := rest.read(_BLOCK_BYTES):
                    yield text
                return
            yield from texts

    def _segments(self) -> Iterator[tuple[int, bytes | None]]:
        """Offset and compressed bytes of each segment; None instead of the bytes where the file cannot be cut."""
        size_of_whole = _WHOLE[self._name]
        offset = 0
        data = b""
        while True:
            block = self._file.read(SEGMENT_BYTES)
            data += block
            if not block:
                if data:
                    yield offset, data
                return
            whole = size_of_whole(data) if len(data) >= SEGMENT_BYTES else 0
            if whole:
                yield offset, data[:whole]
                offset, data = offset + whole, data[whole:]
            elif len(data) >= MAX_SEGMENT_BYTES:
                yield offset, None
                return


def _whole_gzip(data: bytes) -> int:
    """The size of a beginning of the data that seems to consist of whole gzip members, before another member; or 0."""
    end = 0
    header = _BGZF_HEADER.match(data)
    if header is not None:
        while header := _BGZF_HEADER.match(data, end + int.from_bytes(header[1], "little") + 1):
            end = header.start()
        return end
    candidate = len(data)
    while (candidate := data.rfind(b"\x1f\x8b\x08", 1, candidate)) > 0:
        if _GZIP_HEADER.match(data, candidate):
            return candidate
        candidate += 2
    return 0


def _whole_zstd(data: bytes) -> int:
    """The size of a beginning of the data that consists of whole zstd frames, before another frame; or 0."""
    zstd = _zstd()
    view = memoryview(data)
    end = 0
    while True:
        try:
            following = end + zstd.get_frame_size(view[end:])
        except zstd.ZstdError:
            return end
        if not _ZSTD_HEADER.match(data, following):
            return end
        end = following


def _members(data: bytes, name: str) -> list[bytes] | None:
    """The texts of whole members or frames; None if the data is anything else, or its text is too long."""
    new_decompressor, errors = _decompressor(name)
    texts: list[bytes] = []
    left = MAX_OUTPUT_BYTES
    try:
        while data:
            decompressor = new_decompressor()
            texts.append(decompressor.decompress(data, left))
            left -= len(texts[-1])
            if not decompressor.eof or left <= 0:
                return None
            data = decompressor.unused_data
    except errors:
        return None
    return texts


@cache
def _decompressor(name: str) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """What makes a decompressor of members of gzip, of ISA-L or else of zlib, or of frames of zstd; and its errors."""
    if name == "zst":
        zstd = _zstd()
        return zstd.ZstdDecompressor, (zstd.ZstdError,)
    from xopen import isal_zlib

    gzip, errors = (zlib, (zlib.error,)) if isal_zlib is None else (isal_zlib, (zlib.error, isal_zlib.error))
    return partial(gzip.decompressobj, _GZIP_BITS), errors


@cache
def _zstd() -> Any:
    """The module that decompresses zstd."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


_WHOLE: Final[Mapping[str, Callable[[bytes], int]]] = {"gz": _whole_gzip, "zst": _whole_zstd}


@contextmanager
def decompressing(file: BinaryIO, name: str | None, threads: Threads) -> Iterator[Readable]:
    """The content of ``file`` as from :func:`decompressed`, by several threads if its format allows it.

    It must be read only in the body of the ``with`` statement, at whose end all work has ended.
    """
    if name not in PARALLEL_FORMATS or threads.n_threads == 1:
        yield decompressed(file, name)
        return
    with closing(ParallelArchive(file, name, threads)) as archive:
        yield cast(Readable, archive)

"""Files of HTTP servers that are read while they arrive, and that continue to arrive where they were cut off.

What has arrived of a file is kept in the folder ``downloads`` of the cache, with the version of the file beside it: the
entity tag that the server stated, or else the time of the last change. The next request asks for the rest of this very
version with ``Range`` and ``If-Range`` (RFC 9110, sections 13.1.5 and 14.2), so that parts of two versions are never
joined; from a server that has another version, or sends no parts, the whole file comes again.

:func:`published` reads the checksums that a provider publishes: a metalink, as UniProt's, or the lines of ``md5sum``
and its like, as Pfam's and NCBI's.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from typing import Any, BinaryIO, Final, cast
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen
from xml.etree import ElementTree

from swsearch import __version__
from swsearch.database.node_cache import FOLDER_VARIABLE, NodeCache
from swsearch.errors import DatabaseError
from swsearch.folders import locked_file
from swsearch.sequences.source import HeldFile
from swsearch.words import counted

TIMEOUT_SECONDS: Final = 30.0
"""Time for which a server may be silent."""
ATTEMPTS: Final = 4
"""Number of connections in a row that bring nothing before a download ends; before the n-th, n - 1 seconds pass."""
MAX_LIST_BYTES: Final = 16 << 20
"""Largest size of a list of checksums."""
_BLOCK_BYTES: Final = 1 << 20
_KEY_DIGITS: Final = 16
"""Hexadecimal digits of the SHA-256 of an address in the name of the file of the cache."""
_ALGORITHMS: Final = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
"""The algorithm of a checksum by its number of hexadecimal digits."""
_CHECKSUM_LINE: Final = re.compile(r"([0-9A-Fa-f]{32,128})\s+\*?(\S+)")
_RANGE: Final = re.compile(r"bytes (?:([0-9]+)-[0-9]+|\*)/([0-9]+)")


@dataclass(frozen=True)
class Published:
    """What a provider publishes about a file.

    ``address`` is that of the list. ``checksum`` is in hexadecimal, and its length tells the algorithm; ``size`` is in
    bytes. ``release`` is that of the provider, such as ``2026_04``, and empty if the list has none.
    """

    address: str
    checksum: str
    size: int | None = None
    release: str = ""

    @property
    def algorithm(self) -> str:
        """The name of the algorithm, such as ``md5``."""
        return _ALGORITHMS[len(self.checksum)]


def published(address: str, name: str) -> Published:
    """What the list at an address says about the file of this name.

    Raises
    ------
    DatabaseError
        The list cannot be fetched or read, or does not have the file.
    """
    try:
        with _request(address) as response:
            text = response.read(MAX_LIST_BYTES).decode("utf-8", "replace")
        found = _in_metalink(address, text, name) if text.lstrip().startswith("<") else _in_lines(address, text, name)
    except (OSError, HTTPException) as error:
        raise _unreached(address, error) from error
    except (ElementTree.ParseError, ValueError) as error:
        raise DatabaseError(f"{address} is not a list of checksums: {error}; try again later") from error
    if found is None or len(found.checksum) not in _ALGORITHMS:
        raise DatabaseError(f"{address} has no checksum of {name}; check the addresses")
    return found


def _in_lines(address: str, text: str, name: str) -> Published | None:
    found = map(_CHECKSUM_LINE.fullmatch, map(str.strip, text.splitlines()))
    checksums = (match[1].lower() for match in found if match and match[2].rpartition("/")[2] == name)
    checksum = next(checksums, None)
    return None if checksum is None else Published(address, checksum)


def _in_metalink(address: str, text: str, name: str) -> Published | None:
    root = ElementTree.fromstring(text)
    for file in root.iterfind(".//{*}file"):
        if file.get("name") == name:
            checksums = [(one.text or "").strip().lower() for one in file.iterfind(".//{*}hash")]
            size = (file.findtext("{*}size") or "").strip()
            release = (root.findtext("{*}version") or "").strip()
            return Published(address, max(checksums, key=len, default=""), int(size) if size else None, release)
    return None


class HttpFile(HeldFile):
    """A file of a server as a sequence file, whose readers wait for what has not arrived yet.

    One process at a time fetches a file. The connection begins with the object.

    Parameters
    ----------
    address : str
        A URL of http or https.
    published : Published, optional
        The whole file must have this checksum and size.

    Attributes
    ----------
    path : Path
        The file of the cache, with the bytes that have arrived.
    n_here : int
        The number of these bytes.
    n_bytes : int or None
        The size of the whole file, if it is known.
    reach : callable
        Called with :attr:`n_here` when bytes have arrived.

    Raises
    ------
    DatabaseError
        The server cannot be reached or has no such file, another process fetches it, the cache cannot be written, or
        the size is another one.
    """

    def __init__(self, address: str, published: Published | None = None) -> None:
        folder = NodeCache().folder.with_name("downloads")
        key = hashlib.sha256(address.encode()).hexdigest()[:_KEY_DIGITS]
        self.path = folder / f"{file_name(address)}-{key}"
        self._version_file = self.path.with_name(f"{self.path.name}.version")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            super().__init__(address, locked_file(self.path, fcntl.LOCK_EX | fcntl.LOCK_NB))
            stored = self._version_file.read_text("utf-8") if self._version_file.exists() else ""
        except BlockingIOError:
            problem = f"another process fetches it into {self.path}"
            raise DatabaseError(f"{address}: {problem}; run the command again when that has ended") from None
        except OSError as error:
            problem = f"the cache {folder} cannot be used: {error.strerror or error}"
            raise DatabaseError(f"{problem}; choose another folder with {FOLDER_VARIABLE}") from error
        self._version, _, self._changed = stored.partition("\n")
        self.n_here = os.fstat(self.descriptor).st_size if self._version else 0
        self.n_bytes: int | None = None
        self.reach: Callable[[int], None] = lambda _: None
        self._published = published
        self._response: HTTPResponse | None = None
        self._is_whole = self._is_read = self._has_ended = False
        self._begin_hash()
        try:
            self._connect()
        except (OSError, HTTPException) as error:
            if not self.n_here:
                self.remove()
            raise _unreached(address, error) from error
        size = None if published is None else published.size
        if published is not None and size is not None and self.n_bytes not in (None, size):
            problem = f"the file has {self.n_bytes:,} bytes, but {published.address} says {size:,}"
            raise DatabaseError(f"{address}: {problem}; the provider may be replacing it, so try again later")

    @property
    def label(self) -> str:
        """The name of the file with its release or the date of its last change, for the catalogue of a database."""
        release = (self._published.release if self._published else "") or self._changed
        return f"{file_name(self.given)} ({release})" if release else file_name(self.given)

    def opened(self) -> BinaryIO:
        """A stream of the file from its beginning."""
        return cast(BinaryIO, io.BufferedReader(_Arriving(self), _BLOCK_BYTES))

    def await_all(self) -> None:
        """Wait until the file is whole; errors are those of :meth:`read_at`."""
        while not self._is_whole:
            self._receive()

    def read_at(self, start: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``start`` on, as soon as some are here; empty at the end of the file.

        Raises
        ------
        DatabaseError
            The server or the network fails, the disk is full, the server has another version of the file meanwhile,
            or the whole file does not have its checksum.
        """
        while self.n_here <= start and not self._is_whole:
            self._receive()
        self._is_read = True
        return os.pread(self.descriptor, size, start)

    def remove(self) -> None:
        """Remove what has arrived from the cache; open streams can still read it."""
        for path in (self._version_file, self.path):
            path.unlink(missing_ok=True)

    @contextmanager
    def ending_at_signals(self) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM end the connection too, so that no thread waits for a silent server.

        Only signals that the main thread turns into exceptions are meant, if this is the main thread.
        """
        usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def end(number: int, frame: Any) -> None:
            self._has_ended = True
            with suppress(OSError, ValueError):  # ValueError: it is closed
                if self._response is not None:
                    with socket.socket(fileno=os.dup(self._response.fileno())) as connection:
                        connection.shutdown(socket.SHUT_RDWR)
            cast(Any, usual[signal.Signals(number)])(number, frame)

        if threading.current_thread() is not threading.main_thread():
            usual = {}
        handled = [number for number, handler in usual.items() if callable(handler)]
        try:
            for number in handled:
                signal.signal(number, end)
            yield
        finally:
            for number in handled:
                signal.signal(number, usual[number])

    def _connect(self) -> None:
        """Ask for the rest of the file; if the server has another version of it, or sends no parts, for all of it."""
        response = self._rest() if self.n_here else None
        if response is None and not self._is_whole:
            if self._is_read:
                problem = "the connection was cut, and the server has another version now or sends no parts of the file"
                raise DatabaseError(f"{self.given}: {problem}; run the command again, which begins anew")
            response = _request(self.given)
            length = response.headers.get("Content-Length", "")
            self.n_bytes = int(length) if length.isdecimal() else None
            self._version, self._changed = _version_of(response), _date_of(response)
            self.n_here = 0
            self._begin_hash()
            with self._writing():
                os.ftruncate(self.descriptor, 0)
                self._version_file.write_text(f"{self._version}\n{self._changed}", "utf-8")
        self._response = response

    def _rest(self) -> HTTPResponse | None:
        """The answer with the rest of the version of which a part is here; None if nothing is missing, or comes."""
        try:
            response = _request(self.given, {"Range": f"bytes={self.n_here}-", "If-Range": self._version})
        except HTTPError as error:
            with error:
                if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    raise
                found = _RANGE.fullmatch(error.headers.get("Content-Range", ""))
            if found is not None and int(found[2]) == self.n_here:
                self.n_bytes = self.n_here
                self._finish()
            return None
        found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        is_same = _version_of(response) in ("", self._version)  # not every server understands If-Range
        if response.status == HTTPStatus.PARTIAL_CONTENT and found and found[1] == str(self.n_here) and is_same:
            self.n_bytes = int(found[2])
            return response
        response.close()
        return None

    def _receive(self) -> None:
        """Append the next bytes, from another connection if this one is cut."""
        problem = ""
        for attempt in range(ATTEMPTS):
            try:
                if self._response is None:
                    time.sleep(attempt)
                    self._connect()
                block = b"" if self._response is None else self._response.read1(_BLOCK_BYTES)
                problem = "the connection was cut"
                if not block and self.n_bytes is None:
                    self.n_bytes = self.n_here
            except (OSError, HTTPException) as error:
                block, problem = b"", _reason(error)
            if block:
                self._append(block)
            if self.n_here == self.n_bytes and not self._is_whole:
                self._finish()
            if block or self._is_whole:
                return
            self._disconnect()
            if self._has_ended:
                break
        whole = "" if self.n_bytes is None else f" of {self.n_bytes:,}"
        here = f"{self.n_here:,}{whole} bytes are kept in {self.path}"
        raise DatabaseError(f"{self.given}: {problem}; {here}, and the same command continues there")

    def _append(self, block: bytes) -> None:
        with self._writing():
            view = memoryview(block)
            while view:
                n_written = os.pwrite(self.descriptor, view, self.n_here)
                view = view[n_written:]
                self.n_here += n_written
        self._hash_arrived()
        self.reach(self.n_here)

    def _begin_hash(self) -> None:
        published = self._published
        self._hash: Any = None if published is None else hashlib.new(published.algorithm, usedforsecurity=False)
        self._n_hashed = 0

    def _hash_arrived(self) -> None:
        while self._hash is not None and (block := os.pread(self.descriptor, _BLOCK_BYTES, self._n_hashed)):
            self._hash.update(block)
            self._n_hashed += len(block)

    def _finish(self) -> None:
        """Compare the whole file with its checksum; if it differs, it is removed."""
        self._disconnect()
        self._hash_arrived()
        if self._published is not None and self._hash.hexdigest() != self._published.checksum:
            self.remove()
            problem = f"the {self._published.algorithm} differs from the one that {self._published.address} says"
            advice = "the file is damaged or being replaced; it was removed from the cache, so try again later"
            raise DatabaseError(f"{self.given}: {problem}; {advice}")
        self._is_whole = True

    def _disconnect(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            problem = f"{self.path} cannot be written: {error.strerror or error}"
            here = f"{counted(self.n_here, 'byte')} are kept, and the same command continues there"
            advice = f"make room, or name another folder with {FOLDER_VARIABLE}"
            raise DatabaseError(f"{problem}; {here}; {advice}") from error


class _Arriving(io.RawIOBase):
    """A stream of a file that is still arriving."""

    def __init__(self, download: HttpFile) -> None:
        self._download = download
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end has not arrived")
        self._position = offset + (self._position if whence == io.SEEK_CUR else 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        block = self._download.read_at(self._position, len(view))
        view[: len(block)] = block
        self._position += len(block)
        return len(block)


def file_name(address: str) -> str:
    """The name of the file at an address.

    >>> file_name("https://ftp.example.org/pub/proteins.fasta.gz?download=1")
    'proteins.fasta.gz'
    """
    return unquote(urlsplit(address).path).rpartition("/")[2]


def _request(address: str, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    request = Request(address, headers={"User-Agent": f"swsearch/{__version__}", **(headers or {})})
    return cast(HTTPResponse, urlopen(request, timeout=TIMEOUT_SECONDS))


def _version_of(response: HTTPResponse) -> str:
    """What identifies the version of a file in ``If-Range``: a strong entity tag, or the time of its last change."""
    tag: str = response.headers.get("ETag", "")
    changed: str = response.headers.get("Last-Modified", "")
    return tag if tag.startswith('"') else changed


def _date_of(response: HTTPResponse) -> str:
    """The date of the last change of a file, as ``2026-11-04``; empty if it is unknown."""
    changed = parsedate(response.headers.get("Last-Modified", ""))
    return "" if changed is None else time.strftime("%Y-%m-%d", changed)


def _unreached(address: str, error: Exception) -> DatabaseError:
    return DatabaseError(f"{address} cannot be fetched: {_reason(error)}; check the address, or try again later")


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"the server answers {error.code} {error.reason}"
    cause = getattr(error, "reason", error)  # URLError has the error of the system as its reason
    return str(getattr(cause, "strerror", None) or cause) or type(error).__name__

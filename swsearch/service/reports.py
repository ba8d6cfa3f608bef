"""Reports as downloads: the bytes of `swsearch report`, sent while they are written.

A report format writes to a stream, and an answer is read from an iterator, so a thread writes into a bounded queue. It
never holds more than some blocks; a reader that goes away ends it at its next block.
"""

from __future__ import annotations

import io
import queue
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, suppress
from typing import Any, BinaryIO, Final, cast

from anyio import CapacityLimiter, to_thread
from fastapi.responses import StreamingResponse

from swsearch.database.reader import PackedDatabase
from swsearch.errors import InputError, OutputClosed, Refused
from swsearch.hits.result import RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.report_context import DatabaseUse, database_use, report_context
from swsearch.service.service import Service

GONE: Final = "the database of this search has changed or is not offered any more; download aligned parts"
"""The message for what needs the database of a search."""
_BLOCK_BYTES: Final = 1 << 16
_MAX_BLOCKS: Final = 16


def opens_database(report: Report, run: RunInfo) -> bool:
    """Whether a report of this run reads the database that was searched."""
    return database_use(report, run) is not DatabaseUse.NONE


def context_of(report: Report, run: RunInfo, database: PackedDatabase | None) -> ReportContext:
    """What the report reads beside the results.

    Parameters
    ----------
    report : Report
    run : RunInfo
    database : PackedDatabase or None
        The database of the run, if :func:`opens_database` and it is still offered.

    Raises
    ------
    InputError
        The report needs the database, which is None, or a taxonomy, which the database does not have.
    """
    if database is None and database_use(report, run) is DatabaseUse.NEEDED:
        raise InputError(GONE)
    return report_context(report, run, database)


class _Blocks(io.RawIOBase):
    """A file whose blocks another thread takes."""

    def __init__(self) -> None:
        self.blocks: queue.Queue[bytes | None] = queue.Queue(_MAX_BLOCKS)
        self.is_deaf = threading.Event()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.put(bytes(data))
        return len(data)

    def put(self, block: bytes | None) -> None:
        """Give a block away, None as the last."""
        while not self.is_deaf.is_set():
            with suppress(queue.Full):
                self.blocks.put(block, timeout=0.5)
                return
        raise OutputClosed


class Download:
    """A report of a run; everything that can be refused is refused here, before the first byte.

    Parameters
    ----------
    service : Service
    run_id : int
    report : Report

    Raises
    ------
    InputError
        The format cannot represent the run, or it needs the run's database, which has changed or is not offered any
        more.
    Refused
        As many downloads as the server allows are running.
    """

    def __init__(self, service: Service, run_id: int, report: Report) -> None:
        self._service = service
        self._run_id = run_id
        self._report = report
        self._info = service.store.runs.get(run_id).info
        report.format.check_fits(self._info)
        if not service.download_slots.acquire(blocking=False):
            most = service.settings.limits.downloads
            raise Refused("too_many_downloads", f"{most} reports are being downloaded; try again in some seconds")
        self._opened = ExitStack()
        self._opened.callback(service.download_slots.release)
        try:
            database = self._open_subjects()
            self._context = context_of(self._report, self._info, database)
        except BaseException:
            self._opened.close()
            raise
        self._blocks = _Blocks()
        self._waiter = CapacityLimiter(1)
        self._problem: BaseException | None = None
        self._first: bytes | None = None

    def _open_subjects(self) -> PackedDatabase | None:
        """The database of the run, if the format reads it."""
        if not opens_database(self._report, self._info):
            return None
        return self._opened.enter_context(self._service.open_database(self._info.database))

    def _write(self) -> None:
        try:
            with io.BufferedWriter(self._blocks, _BLOCK_BYTES) as buffer:
                stream = io.TextIOWrapper(
                    cast(BinaryIO, buffer), encoding="utf-8", errors="surrogateescape", newline="\n"
                )
                queries = self._service.downloads.results.queries(self._run_id)
                self._report.write_all(self._context, queries, stream)
                stream.flush()
                stream.detach()
                buffer.flush()
        except OutputClosed:
            pass
        except BaseException as error:
            self._problem = error
        finally:
            self._opened.close()
            with suppress(OutputClosed):
                self._blocks.put(None)

    async def answer(self, media_type: str, headers: Mapping[str, str] | None = None) -> StreamingResponse:
        """The report as an answer, once its first bytes are there; what fails until then is raised here."""
        threading.Thread(target=self._write, daemon=True).start()
        try:
            self._first = await self._next()
        except BaseException:
            self._blocks.is_deaf.set()
            raise
        if self._first is None and self._problem is not None:
            raise self._problem
        return StreamingResponse(self._rest(), headers=headers, media_type=media_type)

    async def _next(self) -> bytes | None:
        # A thread of its own, since it waits for a report that may take long.
        return await to_thread.run_sync(self._blocks.blocks.get, limiter=self._waiter)

    async def _rest(self) -> AsyncIterator[bytes]:
        """The bytes of the report.

        A report that cannot be completed ends the connection, so that no client takes a part of it for the whole.
        """
        block = self._first
        try:
            while block is not None:
                yield block
                block = await self._next()
        finally:
            self._blocks.is_deaf.set()
        if self._problem is not None:
            raise self._problem

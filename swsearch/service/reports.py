"""Reports as downloads: the bytes of `swsearch report`, sent while they are written.

A report format writes to a stream, and an answer is read from an iterator, so a thread writes into a bounded queue. It
never holds more than some blocks; a reader that goes away ends it at its next block.
"""

from __future__ import annotations

import io
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, BinaryIO, Final, cast

from anyio import CapacityLimiter, to_thread
from fastapi.responses import StreamingResponse

from swsearch.database.reader import PackedDatabase
from swsearch.errors import InputError, OutputClosed, Refused
from swsearch.hits.result import QueryResult, RunInfo, with_subjects, with_taxonomy
from swsearch.organisms import cannot_do_without, known_taxonomy, reads_database
from swsearch.report.protocol import ReportFormat
from swsearch.report.registry import check_fits, needs_subjects, taxonomy_use
from swsearch.service.service import Service

GONE: Final = "the database of this search has changed or is not offered any more; download aligned parts"
"""The message for what needs the database of a search."""
_BLOCK_BYTES: Final = 1 << 16
_MAX_BLOCKS: Final = 16

MEDIA_TYPES: Final = {
    "table": "text/plain; charset=utf-8",
    "pairwise": "text/plain; charset=utf-8",
    "blast6": "text/tab-separated-values; charset=utf-8",
    "blast7": "text/plain; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "lca": "text/tab-separated-values; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "sam": "text/plain; charset=utf-8",
    "a3m": "text/plain; charset=utf-8",
    "sto": "text/plain; charset=utf-8",
    "afasta": "text/plain; charset=utf-8",
    "xml": "application/xml",
    "xml2": "application/xml",
    "json2": "application/json",
    "html": "text/html; charset=utf-8",
    "fasta": "text/x-fasta; charset=utf-8",
    "multiqc": "text/tab-separated-values; charset=utf-8",
    "kraken": "text/plain; charset=utf-8",
    "taxa-html": "text/html; charset=utf-8",
}
_ENDINGS: Final = {
    "table": ".txt", "pairwise": ".txt", "blast6": ".tsv", "blast7": ".txt", "xml2": ".xml", "json2": ".json",
    "multiqc": "_mqc.tsv", "lca": ".lca.tsv", "kraken": ".kreport.txt",
    "taxa-html": ".taxa.html",
}  # fmt: skip
"""Ends of file names, where they are not the name of the format."""


def ending(format_name: str) -> str:
    """The end of the name of a file in a format.

    >>> ending("blast6"), ending("csv")
    ('.tsv', '.csv')
    """
    return _ENDINGS.get(format_name, f".{format_name}")


def opens_database(report: ReportFormat, run: RunInfo) -> bool:
    """Whether a report of this run reads the database that was searched."""
    return needs_subjects(report, run) or reads_database(taxonomy_use(report), run, None, None)


def completion(
    report: ReportFormat, run: RunInfo, database: PackedDatabase | None
) -> Callable[[Iterable[QueryResult]], Iterable[QueryResult]]:
    """A function that adds to results what the report takes from the database: letters and organisms of subjects.

    Parameters
    ----------
    report : ReportFormat
    run : RunInfo
    database : PackedDatabase or None
        The database of the run, if :func:`opens_database` and it is still offered.

    Raises
    ------
    InputError
        The report needs the database, which is None, or a taxonomy, which the database does not have.
    """
    use = taxonomy_use(report)
    if database is None and (needs_subjects(report, run) or cannot_do_without(use, None, None)):
        raise InputError(GONE)
    taxonomy = known_taxonomy(use, database, None, None)

    def complete(results: Iterable[QueryResult]) -> Iterable[QueryResult]:
        if database is not None and needs_subjects(report, run):
            results = with_subjects(results, database)
        return results if taxonomy is None else with_taxonomy(results, taxonomy)

    return complete


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
    report : ReportFormat

    Raises
    ------
    InputError
        The format cannot represent the run, or it needs the run's database, which has changed or is not offered any
        more.
    Refused
        As many downloads as the server allows are running.
    """

    def __init__(self, service: Service, run_id: int, report: ReportFormat) -> None:
        self._service = service
        self._run_id = run_id
        self._format = report
        self._info = service.run_info(run_id)
        check_fits(self._format, self._info)
        if not service.download_slots.acquire(blocking=False):
            most = service.settings.limits.downloads
            raise Refused("too_many_downloads", f"{most} reports are being downloaded; try again in some seconds")
        self._opened = ExitStack()
        self._opened.callback(service.download_slots.release)
        try:
            database = self._open_subjects()
            self._complete = completion(self._format, self._info, database)
        except BaseException:
            self._opened.close()
            raise
        self._blocks = _Blocks()
        self._waiter = CapacityLimiter(1)
        self._problem: BaseException | None = None
        self._first: bytes | None = None

    def _open_subjects(self) -> PackedDatabase | None:
        """The database of the run, if the format reads it."""
        if not opens_database(self._format, self._info):
            return None
        return self._opened.enter_context(self._service.open_database(self._info.database))

    def _write(self) -> None:
        try:
            with io.BufferedWriter(self._blocks, _BLOCK_BYTES) as buffer:
                stream = io.TextIOWrapper(
                    cast(BinaryIO, buffer), encoding="utf-8", errors="surrogateescape", newline="\n"
                )
                queries = self._service.downloads.results.queries(self._run_id)
                self._format.write(self._info, self._complete(queries), stream)
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

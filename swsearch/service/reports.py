"""Reports as downloads: the bytes of `swsearch report`, sent while they are written.

A report format writes to a stream, and an answer is read from an iterator, so a thread writes into a pipe, which holds
64 kB. A reader that goes away closes it, which ends the report at its next block.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import ExitStack
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Final

from anyio import CapacityLimiter, to_thread
from fastapi.responses import StreamingResponse

from swsearch.errors import InputError, Refused
from swsearch.hits.result import TAXONOMY_DIGEST, QueryResult, RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.report.formats import FORMATS, TAXA, Use
from swsearch.report_context import database_use, report_context
from swsearch.sequences.fasta_text import SubjectPart
from swsearch.sequences.record import split_header
from swsearch.service.service import Service
from swsearch.store.store import Store

GONE: Final = (
    "the database of this search has changed or is not offered any more; download aligned parts, whose residues are "
    "also the column sseq of the report tsv"
)
"""The message for what needs the database of a search."""
PARTS: Final = ("aligned", "flanks", "whole")
"""The parts of a hit sequence that can be downloaded."""
_BLOCK_BYTES: Final = 1 << 16


def offered_formats(run: RunInfo) -> list[tuple[str, str]]:
    """The formats that can represent a run, with words for them; those about taxa if its database has a taxonomy."""
    left_out = () if TAXONOMY_DIGEST in run.parameters else TAXA
    return [(name, form.title) for name, form in FORMATS.items() if form.fits(run) and name not in left_out]


def file_name(header: str, end: str) -> str:
    """A name for a downloaded file, from a header or a title.

    >>> file_name("sp|P02232|LGB1_VICFA Leghemoglobin-1", ".xml")
    'sp_P02232_LGB1_VICFA.xml'
    """
    first = split_header(header)[0]
    stem = re.sub(r"[^A-Za-z0-9.-]+", "_", first).strip("._")[:80]
    return f"{stem or 'result'}{end}"


def subject_part(part: str, flank: int) -> SubjectPart:
    """One of :data:`PARTS`, with the residues on each side for ``flanks``; raises InputError for any other."""
    if part not in PARTS:
        raise InputError(f"there is no part {part[:20]!r} of a sequence; choose {', '.join(PARTS)}")
    return SubjectPart(aligned=part != "whole", flank=flank if part == "flanks" else 0)


class Download:
    """A report of a run; everything that can be refused is refused here, before the first byte.

    ``queries`` reads the queries with the hits to report from the store; by default, all of the run.

    Raises
    ------
    InputError
        The format cannot represent the run, or it needs the run's database, which has changed or is not offered any
        more.
    Refused
        As many downloads as the server allows are running.
    """

    def __init__(
        self,
        service: Service,
        run_id: int,
        report: Report,
        queries: Callable[[Store], Iterable[QueryResult]] | None = None,
    ) -> None:
        self._service = service
        self._report = report
        self._queries = queries or (lambda store: store.results.queries(run_id))
        self._info = service.store.runs.get(run_id).info
        report.check_fits(self._info)
        if not service.download_slots.acquire(blocking=False):
            most = service.settings.limits.downloads
            raise Refused("too_many_downloads", f"{most} reports are being downloaded; try again in some seconds")
        self._opened = ExitStack()
        self._opened.callback(service.download_slots.release)
        try:
            self._context = self._opened_context()
            reads, self._writes = os.pipe()
        except BaseException:
            self._opened.close()
            raise
        self._pipe = FileIO(reads)
        self._waiter = CapacityLimiter(1)
        self._problem: BaseException | None = None

    def _opened_context(self) -> ReportContext:
        """What the report reads beside the results; the database of the run is opened if the report reads it."""
        use = database_use(self._report, self._info)
        database = None
        if use is not Use.NONE:
            database = self._opened.enter_context(self._service.open_database(self._info.database))
        if database is None and use is Use.NEEDED:
            raise InputError(GONE)
        return report_context(self._report, self._info, database)

    def _write(self) -> None:
        pipe = FileIO(self._writes, "w")
        with TextIOWrapper(BufferedWriter(pipe, _BLOCK_BYTES), "utf-8", "surrogateescape", "\n") as stream:
            try:
                self._report.write_all(self._context, self._queries(self._service.downloads), stream)
                stream.flush()
            except BrokenPipeError:  # the reader has gone; kept, the error would keep the store's connection
                pipe.close()
            except BaseException as error:
                self._problem = error
            self._opened.close()  # before the end of the pipe, at which the reader asks for the problem
            if self._problem is not None:
                pipe.close()  # what the stream still holds would be the first bytes of a success

    async def answer(self, media_type: str, headers: Mapping[str, str] | None = None) -> StreamingResponse:
        """The report as an answer, once its first bytes are there; what fails until then is raised here."""
        threading.Thread(target=self._write, daemon=True).start()
        try:
            first = await self._next()
            if not first and self._problem is not None:
                raise self._problem
        except BaseException:
            self._pipe.close()
            raise
        return StreamingResponse(self._blocks(first), headers=headers, media_type=media_type)

    async def _next(self) -> bytes:
        # A thread of its own, since it waits for a report that may take long.
        return await to_thread.run_sync(self._pipe.read, _BLOCK_BYTES, limiter=self._waiter)

    async def _blocks(self, block: bytes) -> AsyncIterator[bytes]:
        """The bytes of the report.

        A report that cannot be completed ends the connection, so that no client takes a part of it for the whole.
        """
        with self._pipe:
            while block:
                yield block
                block = await self._next()
        if self._problem is not None:
            raise self._problem

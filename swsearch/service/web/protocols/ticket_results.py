"""The results of tickets: archives as ColabFold and MMseqs2-App send them, and MMseqs2-App's JSON."""

from __future__ import annotations

import asyncio
import gzip
import io
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from typing import IO, Any, Final, TextIO

from starlette.concurrency import run_in_threadpool

from swsearch.errors import InputError
from swsearch.hits.cigar import gapped
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.anchored import SEPARATOR, query_row
from swsearch.report.formatting import percent, shown
from swsearch.report.pairing import organism_of, write_pairs
from swsearch.report.protocol import ReportFormat
from swsearch.report.registry import get_format
from swsearch.sequences.headers import header_organism
from swsearch.sequences.record import identifier
from swsearch.service.logs import log
from swsearch.service.web import models
from swsearch.service.web.protocols.ticket_jobs import (
    DIVERSE_ROWS,
    ENVIRONMENT,
    ENVIRONMENT_TEMPLATES,
    MSA_TEMPLATES,
    PAIR_COMPLETE,
    UNFILTERED,
    Ticket,
)
from swsearch.service.web.state import Service
from swsearch.store.result_views import ResultViews
from swsearch.store.search_records import StoredSearch

UNIREF: Final = "uniref.a3m"
ENVIRONMENTAL: Final = "bfd.mgnify30.metaeuk30.smag30.a3m"
TEMPLATES: Final = "pdb70.m8"
PAIRS: Final = "pair.a3m"
"""The files of ColabFold's server."""
_M8_FIELDS: Final = (
    "qseqid", "sseqid", "pident", "length", "mismatch", "gapopen", "qstart", "qend", "sstart", "send", "evalue",
    "bitscore", "qlen", "slen", "qseq", "sseq",
)  # fmt: skip
KEEP_ALIVE_SECONDS: Final = 2.0
"""Time between the bytes of an archive that is being made; ColabFold's client waits 6 seconds for each."""
_NOTHING: Final = gzip.compress(b"", mtime=0)
"""A part of a gzip file without content; a file may have any number of parts."""
_SPOOLED: Final = 8 << 20
_CHUNK: Final = 1 << 16


def write_archive(service: Service, ticket: Ticket, searches: Sequence[StoredSearch]) -> IO[bytes]:
    """The ``tar.gz`` of a complete ticket, as an open temporary file at its beginning."""
    archive: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_SPOOLED)  # noqa: SIM115
    try:
        with (
            gzip.GzipFile(filename="", mode="wb", compresslevel=4, fileobj=archive, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as files,
        ):
            for name, write in _files(service, ticket, searches):
                _add(files, name, write)
    except BaseException:
        archive.close()
        raise
    archive.seek(0)
    return archive


def _files(
    service: Service, ticket: Ticket, searches: Sequence[StoredSearch]
) -> Iterable[tuple[str, Callable[[TextIO], None]]]:
    """The names of the archive's files, each with the function that writes it."""
    if ticket.type == "pair":
        yield PAIRS, lambda stream: _write_pairs(service, searches, stream, complete=ticket.kind == PAIR_COMPLETE)
    elif ticket.type == "msa":
        alignment = get_format("a3m", rows=None if ticket.kind in UNFILTERED else DIVERSE_ROWS)
        kind = ticket.kind.lower()
        yield UNIREF, lambda stream: _write_report(service, searches[0], alignment, stream)
        if kind in (ENVIRONMENT, ENVIRONMENT_TEMPLATES):
            if len(searches) > 1:
                yield ENVIRONMENTAL, lambda stream: _write_report(service, searches[1], alignment, stream)
            else:
                yield ENVIRONMENTAL, lambda stream: _write_queries(service, searches[0], stream)
        if kind in (MSA_TEMPLATES, ENVIRONMENT_TEMPLATES):
            yield TEMPLATES, lambda _stream: None  # there is no database of structures
    else:
        for search in searches:
            yield f"alis_{search.database.name}.m8", _m8_writer(service, search)


def _m8_writer(service: Service, search: StoredSearch) -> Callable[[TextIO], None]:
    return lambda stream: _write_report(service, search, get_format("blast6", _M8_FIELDS), stream)


def _write_report(service: Service, search: StoredSearch, report: ReportFormat, stream: TextIO) -> None:
    report.write(service.run_info(_run(search)), service.downloads.queries(_run(search)), stream)


def _write_queries(service: Service, search: StoredSearch, stream: TextIO) -> None:
    for place, query in enumerate(service.downloads.queries(_run(search))):
        stream.write((SEPARATOR if place else "") + query_row(query))


def _write_pairs(service: Service, searches: Sequence[StoredSearch], stream: TextIO, *, complete: bool) -> None:
    for place, search in enumerate(searches):
        if place:
            stream.write(SEPARATOR)
        write_pairs(service.downloads.queries(_run(search)), stream, complete=complete)


def _run(search: StoredSearch) -> int:
    assert search.run_id is not None  # it is done
    return search.run_id


def _add(files: tarfile.TarFile, name: str, write: Callable[[TextIO], None]) -> None:
    """Add a file; its size must be known before its content."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOLED) as content:
        # Clients read UTF-8, so a byte of a header that is none becomes a question mark.
        stream = io.TextIOWrapper(content, encoding="utf-8", errors="replace", newline="\n", write_through=True)
        write(stream)
        stream.flush()
        entry = tarfile.TarInfo(name)
        entry.size = content.tell()
        entry.mode = 0o644
        content.seek(0)
        files.addfile(entry, content)
        stream.detach()


async def archive_bytes(making: asyncio.Task[IO[bytes]]) -> AsyncIterator[bytes]:
    """The bytes of an archive that is being made; some come every other second until it is there.

    An archive that cannot be completed ends the connection, so that no client takes a part of it for the whole.
    """
    try:
        while not (await asyncio.wait({making}, timeout=KEEP_ALIVE_SECONDS))[0]:
            yield _NOTHING
        try:
            file = making.result()
        except Exception as error:
            log("download failed", "error", message=str(error))
            raise RuntimeError("an archive could not be completed") from error
        while chunk := await run_in_threadpool(file.read, _CHUNK):
            yield chunk
    finally:
        making.add_done_callback(_close)


def _close(making: asyncio.Task[IO[bytes]]) -> None:
    with suppress(Exception, asyncio.CancelledError):
        making.result().close()


# --- MMseqs2-App's JSON ---


def query_answer(
    store: ResultViews, searches: Sequence[StoredSearch], number: int, database: str | None
) -> dict[str, Any]:
    """The hits of one query of a search ticket, in all databases or in one.

    Raises
    ------
    InputError
        The ticket has no such query or database.
    """
    wanted = [search for search in searches if database in (None, search.database.name)]
    if not wanted:
        raise InputError(f"this ticket has no database {database!r}")
    if not 0 <= number < wanted[0].n_queries:
        raise InputError(f"this ticket has no query {number}; they are numbered from 0 to {wanted[0].n_queries - 1}")
    results = []
    for search in wanted:
        query = store.query(_run(search), number)
        listed = [_hit_answer(query, hit) for hit in query.hits]
        results.append({"db": search.database.name, "alignments": [listed] if listed else [], "taxonomyreports": []})
    return {
        "queries": [{"header": models.shown(query.header), "sequence": query.letters}],
        "mode": "all",
        "results": results,
    }


def _hit_answer(query: QueryResult, hit: Hit) -> dict[str, Any]:
    alignment = hit.alignment
    above, below = gapped(*shown(query, hit))
    answer: dict[str, Any] = {
        "query": models.shown(identifier(query.header)),
        "target": models.shown(identifier(hit.subject_header)),
        "seqId": round(percent(alignment.identities, alignment.columns), 3),
        "alnLength": alignment.columns,
        "missmatches": alignment.mismatches,  # as MMseqs2-App spells it
        "gapsopened": alignment.gap_openings,
        "qStartPos": hit.qstart,
        "qEndPos": hit.qend,
        "dbStartPos": hit.sstart,
        "dbEndPos": hit.send,
        "eval": hit.evalue,
        "score": hit.score if hit.bits is None else int(hit.bits + 0.5),
        "qLen": query.length,
        "dbLen": hit.subject_length,
        "qAln": above,
        "dbAln": below,
    }
    organism, name = organism_of(hit.subject_header), header_organism(hit.subject_header)
    if organism is not None and organism.isdecimal():
        answer["taxId"] = int(organism)
    if name is not None:
        answer["taxName"] = models.shown(name)
    return answer

"""Tickets: what a client sent, as searches of the service, their common status, and their results.

A ticket is one search for each database. Its id is a hash of what was sent, of the owner and of the databases' content,
and the searches have it in their idempotency keys. So a client that sends again gets the same ticket, and tickets need
no table: they are as durable as the searches. Two characters of the id say what kind of ticket it is and how many
searches it has. The results are archives as ColabFold and MMseqs2-App send them, and MMseqs2-App's JSON.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import json
import re
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, Final, TextIO

from starlette.concurrency import run_in_threadpool

from swsearch import __version__
from swsearch.errors import InputError, Refused
from swsearch.hits.cigar import gapped
from swsearch.hits.formatting import percent, shown
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.options import FAMILY_EVALUE, FAMILY_ITERATIONS, FAMILY_TOP
from swsearch.report.anchored import SEPARATOR, query_row
from swsearch.report.base import Report, ReportContext
from swsearch.report.formats import new_report
from swsearch.report.pairing import organism_of, write_pairs
from swsearch.report.row_filter import RowFilter
from swsearch.sequences.headers import header_organism
from swsearch.sequences.record import identifier
from swsearch.service import api_models
from swsearch.service.databases import OfferedDatabase
from swsearch.service.logs import log
from swsearch.service.service import Service
from swsearch.service.submit import Submission
from swsearch.store.rows import CANCELLED, DONE, FAILED, RUNNING
from swsearch.store.search_records import StoredSearch
from swsearch.store.store import Store
from swsearch.words import shortened

Options = Mapping[str, float]
_FAMILY: Final[Options] = {"evalue": FAMILY_EVALUE, "top": FAMILY_TOP, "iterations": FAMILY_ITERATIONS}
_PAIR: Final[Options] = {**_FAMILY, "evalue": 0.001}
_SEARCH: Final[Options] = {"evalue": 0.001, "top": 300, "iterations": 1}
"""Options: the E-value of pairs is that of ColabFold's server, those of searches are those of MMseqs2."""
DIVERSE_ROWS: Final = RowFilter(max_identity=95, diff=3000, filter_above=1000)
"""Rows that ColabFold's server keeps of an alignment, unless the mode says ``nofilter``."""

PENDING, RUNS, COMPLETE, ERROR, UNKNOWN = "PENDING", "RUNNING", "COMPLETE", "ERROR", "UNKNOWN"

MSA: Final = "m"
MSA_TEMPLATES: Final = "t"
ENVIRONMENT: Final = "e"
ENVIRONMENT_TEMPLATES: Final = "f"
ALIGNMENTS: Final = MSA + MSA_TEMPLATES + ENVIRONMENT + ENVIRONMENT_TEMPLATES
UNFILTERED: Final = ALIGNMENTS.upper()
PAIR_GREEDY: Final = "g"
PAIR_COMPLETE: Final = "c"
SEARCH: Final = "s"
TYPES: Final = {
    **dict.fromkeys(ALIGNMENTS + UNFILTERED, "msa"),
    PAIR_GREEDY: "pair",
    PAIR_COMPLETE: "pair",
    SEARCH: "search",
}
"""The kinds of tickets by their letter in the id, with MMseqs2-App's names of their types. For alignments, a kind says
whether the archive has files for the environment and for templates, and, as a capital letter, that it has all rows; for
pairs, how complete an organism must be."""
_COUNTS: Final = "0123456789"
_ID: Final = re.compile(rf"([{''.join(TYPES)}])([1-9])([A-Za-z0-9_-]{{36}})")
_MODES: Final = {
    "ticket/msa": {"", "all", "env", "nofilter", "notemplates"},
    "ticket/pair": {"", "all", "env", "pairgreedy", "paircomplete", "pairfilterbest"},
}
MAX_DATABASES: Final = len(_COUNTS) - 1


@dataclass(frozen=True)
class Ticket:
    """A ticket by its id."""

    id: str
    """38 characters, as MMseqs2-App's have."""
    kind: str
    """One of the letters of :data:`TYPES`."""
    keys: tuple[str, ...]
    """The idempotency keys of its searches. They have blanks, which no key of the API has."""

    @classmethod
    def of(cls, ticket_id: str) -> Ticket:
        """The ticket with an id; raises InputError if no ticket has such an id."""
        found = _ID.fullmatch(ticket_id)
        if found is None:
            raise InputError(f"{shortened(ticket_id)!r} is not the id of a ticket")
        return cls(ticket_id, found[1], tuple(f"ticket {ticket_id} {place}" for place in range(int(found[2]))))

    @property
    def type(self) -> str:
        """``msa``, ``pair`` or ``search``."""
        return TYPES[self.kind]


# --- submission ---


def submit_msa(service: Service, owner: str, queries: str, mode: str, databases: Sequence[str]) -> Ticket:
    """Submit searches for alignments of one sequence each.

    Raises
    ------
    InputError
        The queries, the mode or a database cannot be used; :class:`Refused` names a limit.
    """
    words = _words("ticket/msa", mode)
    chosen = _proteins(service, databases, with_second="env" in words)
    kinds = (MSA, ENVIRONMENT) if "notemplates" in words else (MSA_TEMPLATES, ENVIRONMENT_TEMPLATES)
    kind = kinds["env" in words]
    kind = kind.upper() if "nofilter" in words else kind
    return _submit(service, owner, kind, queries, chosen, _FAMILY)


def submit_pair(service: Service, owner: str, queries: str, mode: str, databases: Sequence[str]) -> Ticket:
    """Submit searches for the paired alignments of the chains of a complex; errors are those of ``submit_msa``."""
    words = _words("ticket/pair", mode)
    if {"pairgreedy", "paircomplete"} <= words:
        raise InputError("mode names pairgreedy and paircomplete; choose one")
    chosen = _proteins(service, databases, with_second="env" in words)
    kind = PAIR_COMPLETE if "paircomplete" in words else PAIR_GREEDY
    return _submit(service, owner, kind, queries, chosen, _PAIR)


def submit_search(service: Service, owner: str, queries: str, mode: str, databases: Sequence[str], taxa: str) -> Ticket:
    """Submit searches of several databases; errors are those of ``submit_msa``."""
    if mode not in ("", "all"):
        raise InputError(f"mode {shortened(mode)!r} of /ticket is not offered; choose all")
    if taxa:
        raise InputError("taxfilter is not offered, because it needs a taxonomic tree; leave it out")
    names = list(dict.fromkeys(databases))
    if not 1 <= len(names) <= MAX_DATABASES:
        offered = ", ".join(one.name for one in service.databases.offered())
        raise InputError(f"give 1 to {MAX_DATABASES} fields database[]; the databases are {offered}")
    chosen = [service.databases.current(name) for name in names]
    return _submit(service, owner, SEARCH, queries, chosen, _SEARCH)


def _proteins(service: Service, names: Sequence[str], *, with_second: bool) -> list[OfferedDatabase]:
    """The databases of an alignment: those that are named, or the first protein databases that are offered."""
    if names:
        chosen = [service.databases.current(name) for name in dict.fromkeys(names)]
    else:
        chosen = [one for one in service.databases.offered() if one.catalogue.alphabet == "protein"]
    for one in chosen:
        if one.catalogue.alphabet != "protein":
            raise InputError(f"database {one.name} is {one.catalogue.alphabet}; an alignment needs proteins")
    if not chosen:
        raise InputError("an alignment needs a database of proteins, and this server has none")
    return chosen[: 2 if with_second else 1]


def _submit(
    service: Service, owner: str, kind: str, queries: str, databases: Sequence[OfferedDatabase], wanted: Options
) -> Ticket:
    options = {**wanted, "top": min(wanted["top"], service.settings.limits.top)}
    searched = [(one.name, one.catalogue.digest) for one in databases]
    ticket = Ticket.of(kind + _COUNTS[len(databases)] + _digest(owner, kind, queries, searched, options))
    status = status_of(service.store.searches.under(owner, ticket.keys))
    if status in (PENDING, RUNS, COMPLETE):
        return ticket
    if status == ERROR:
        service.store.searches.release_failed(owner, ticket.keys)
    alphabet = None if kind == SEARCH else "protein"
    for key, database in zip(ticket.keys, databases, strict=True):
        service.submit(Submission(queries, database.name, options, alphabet, key), owner)
    return ticket


# --- status ---


def finished(service: Service, owner: str, ticket: Ticket) -> list[StoredSearch]:
    """The searches of a complete ticket.

    Raises
    ------
    Refused
        There is no such ticket, or it is not complete.
    """
    searches = service.store.searches.under(owner, ticket.keys)
    status = status_of(searches)
    if status != COMPLETE:
        raise Refused("not_finished", f"the status of this ticket is {status}; its result is not there")
    return [search for search in searches if search is not None]


def status_of(searches: Sequence[StoredSearch | None]) -> str:
    """The status of a ticket with these searches."""
    found = [search for search in searches if search is not None]
    if any(search.state in (FAILED, CANCELLED) or search.n_failed for search in found):
        return ERROR
    if len(found) < len(searches):
        return UNKNOWN
    states = {search.state for search in found}
    if states == {DONE}:
        return COMPLETE
    return RUNS if states & {RUNNING, DONE} else PENDING


def _words(path: str, mode: str) -> set[str]:
    """The words of a mode, such as ``env-nofilter``."""
    words = set(mode.split("-"))
    unknown = sorted(words - _MODES[path])
    if unknown:
        known = ", ".join(sorted(_MODES[path] - {""}))
        raise InputError(f"mode {shortened(unknown[0])!r} of /{path} is not offered; choose from {known}, joined by -")
    return words


def _digest(*sent: Any) -> str:
    text = json.dumps([__version__, *sent]).encode()
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode()[:36]


# --- results ---


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
            _add_files(files, service, ticket, searches)
    except BaseException:
        archive.close()
        raise
    archive.seek(0)
    return archive


def _add_files(files: tarfile.TarFile, service: Service, ticket: Ticket, searches: Sequence[StoredSearch]) -> None:
    kind = ticket.kind.lower()
    if ticket.type == "pair":
        with _new_file(files, PAIRS) as stream:
            for place, search in enumerate(searches):
                stream.write(SEPARATOR if place else "")
                write_pairs(_queries(service, search), stream, complete=kind == PAIR_COMPLETE)
    elif ticket.type == "msa":
        alignment = new_report("a3m", rows=None if ticket.kind in UNFILTERED else DIVERSE_ROWS)
        with _new_file(files, UNIREF) as stream:
            _write_report(service, searches[0], alignment, stream)
        if kind in (ENVIRONMENT, ENVIRONMENT_TEMPLATES):
            with _new_file(files, ENVIRONMENTAL) as stream:
                if len(searches) > 1:
                    _write_report(service, searches[1], alignment, stream)
                else:
                    for place, query in enumerate(_queries(service, searches[0])):
                        stream.write((SEPARATOR if place else "") + query_row(query))
        if kind in (MSA_TEMPLATES, ENVIRONMENT_TEMPLATES):
            with _new_file(files, TEMPLATES):
                pass  # there is no database of structures
    else:
        for search in searches:
            with _new_file(files, f"alis_{search.database.name}.m8") as stream:
                _write_report(service, search, new_report("blast6", _M8_FIELDS), stream)


@contextmanager
def _new_file(files: tarfile.TarFile, name: str) -> Iterator[TextIO]:
    """A context with a new file of an archive, which is added at its end, since its size comes before its content."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOLED) as content:
        # Clients read UTF-8, so a byte of a header that is none becomes a question mark.
        stream = io.TextIOWrapper(content, encoding="utf-8", errors="replace", newline="\n", write_through=True)
        yield stream
        stream.flush()
        entry = tarfile.TarInfo(name)
        entry.size = content.tell()
        entry.mode = 0o644
        content.seek(0)
        files.addfile(entry, content)
        stream.detach()


def _write_report(service: Service, search: StoredSearch, report: Report, stream: TextIO) -> None:
    context = ReportContext(service.store.runs.get(_run(search)).info)
    report.write_all(context, _queries(service, search), stream)


def _queries(service: Service, search: StoredSearch) -> Iterator[QueryResult]:
    return service.downloads.results.queries(_run(search))


def _run(search: StoredSearch) -> int:
    assert search.run_id is not None  # it is done
    return search.run_id


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


def query_answer(store: Store, searches: Sequence[StoredSearch], number: int, database: str | None) -> dict[str, Any]:
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
        query = store.results.query(_run(search), number)
        listed = [_hit_answer(query, hit) for hit in query.hits]
        results.append({"db": search.database.name, "alignments": [listed] if listed else [], "taxonomyreports": []})
    return {
        "queries": [{"header": api_models.shown(query.header), "sequence": query.letters}],
        "mode": "all",
        "results": results,
    }


def _hit_answer(query: QueryResult, hit: Hit) -> dict[str, Any]:
    alignment = hit.alignment
    above, below = gapped(*shown(query.letters, hit))
    answer: dict[str, Any] = {
        "query": api_models.shown(identifier(query.header)),
        "target": api_models.shown(identifier(hit.subject_header)),
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
        answer["taxName"] = api_models.shown(name)
    return answer

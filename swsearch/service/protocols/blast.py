"""The BLAST URL API at ``/blast/Blast.cgi`` (NCBI's Common URL API), for Biopython, Biotite, BioPerl and others.

``CMD=Put`` submits a search and answers with its RID, ``CMD=Get`` gives its state or its report, ``CMD=Delete`` cancels
it. A RID is a name of the search (:func:`~swsearch.service.protocols.common.public_name`), so it lives as long as the
search does. A Get is held until the search is finished, because clients pause for long when it is not.

A refusal is a page with status 200, as NCBI's, because clients show its text then, and otherwise only the number. Where
clients would ask again for ever (a Get of an unknown RID or of a failed search), it has another status.

Parameters are taken, have no effect (:data:`WITHOUT_EFFECT`), or are refused with the reason (:data:`REFUSED`). A
refused parameter may be sent with a value that says no. :func:`submission_of` makes a search of those of ``CMD=Put``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse

from swsearch.errors import InputError, SearchNotFound, SwSearchError
from swsearch.service.api import owner_of, service_of
from swsearch.service.protocols.blast_answers import (
    MEDIA_TYPES,
    error_page,
    report_of,
    state_page,
    submitted_page,
)
from swsearch.service.protocols.common import (
    Program,
    composition_of,
    failure,
    held_status,
    is_off,
    key_of,
    number_of,
    problem,
    program_named,
    public_name,
    refuse_other_sites,
    sent_fields,
    submitted,
    whole_of,
)
from swsearch.service.reports import Download
from swsearch.service.service import SearchStatus, Service
from swsearch.service.submit import Submission
from swsearch.words import shortened

MAX_ADDRESS: Final = 1 << 17
"""Longest query string, in bytes. Longer requests are sent by POST."""
HOLD_SECONDS: Final = 50.0
"""Time for which a Get of a report is held; proxies end requests after 60."""
HOLD_STATE_SECONDS: Final = 3.0
"""The same for a Get of the state: the time for which Biotite pauses between two of them."""
_UNKNOWN: Final = "there is no search of yours with this RID, or it has expired"


def blast_router() -> APIRouter:
    """The routes of this protocol."""
    router = APIRouter()

    @router.api_route("/blast/Blast.cgi", methods=["GET", "POST"])
    async def blast(request: Request) -> Response:
        """Answer one request."""
        command = ""
        try:
            if len(request.scope["query_string"]) > MAX_ADDRESS:
                return error_page(f"Submitted URI too large (maximum {MAX_ADDRESS:,} bytes); send it by POST", 414)
            fields = await sent_fields(request)
            command = next((value for name, value in fields if name.upper() == "CMD"), "").strip().lower()
            return await _answer(request, command, checked_parameters(fields))
        except SwSearchError as error:
            status, message = problem(request, error)
            return error_page(message, 200 if command == "put" and status < 500 else status)

    return router


async def _answer(request: Request, command: str, sent: Mapping[str, str]) -> Response:
    if command not in ("put", "get", "delete"):
        found = f"CMD={shortened(command)} is not available" if command else "CMD is missing"
        raise InputError(f"{found}; choose Put, Get or Delete")
    if command == "get":
        return await _get(request, sent)
    refuse_other_sites(request)
    return await (_put if command == "put" else _delete)(request, sent)


async def _put(request: Request, sent: Mapping[str, str]) -> HTMLResponse:
    submission, program = submission_of(sent)
    database = await run_in_threadpool(service_of(request).databases.current, submission.database)
    program.check(database)
    status = await submitted(request, submission, database, program.advice)
    seconds = None if status.forecast is None else status.forecast.seconds
    return submitted_page(public_name(status.search.key), seconds, _page_address(request, status))


async def _delete(request: Request, sent: Mapping[str, str]) -> HTMLResponse:
    """Cancel a search; one that is finished is kept until it expires, as all are."""
    rid = sent.get("RID", "").strip()
    try:
        status = await run_in_threadpool(service_of(request).cancel, key_of(rid), owner_of(request))
    except SearchNotFound:
        return state_page("UNKNOWN", _UNKNOWN, status=404)
    text = "is cancelled" if status.search.state == "cancelled" else "was finished, and is kept until it expires"
    return HTMLResponse(f"<!doctype html>\n<title>swsearch</title>\n<p>Search {rid} {text}.</p>\n")


async def _get(request: Request, sent: Mapping[str, str]) -> Response:
    wanted = sent.get("FORMAT_OBJECT", "Alignment").strip().lower()
    if wanted not in ("alignment", "searchinfo"):
        raise InputError(f"FORMAT_OBJECT={shortened(wanted)} is not available; choose Alignment or SearchInfo")
    is_state = wanted == "searchinfo"
    form = None if is_state else _wanted_form(sent)
    service = service_of(request)
    try:
        key = key_of(sent.get("RID", "").strip())
        status = await held_status(request, key, HOLD_STATE_SECONDS if is_state else HOLD_SECONDS)
    except SearchNotFound:
        return state_page("UNKNOWN", _UNKNOWN, status=200 if is_state else 404)
    if status.search.state == "cancelled":
        return state_page("UNKNOWN", "this search was cancelled", status=200 if is_state else 404)
    if not status.search.is_finished:
        return state_page("WAITING", "this search is not finished")
    reason = await run_in_threadpool(failure, service, status)
    if reason is not None:
        return state_page("FAILED", reason, status=200 if is_state else 409)
    if is_state:
        return state_page("READY", has_hits=await run_in_threadpool(_has_hits, service, status))
    if form is None:
        return RedirectResponse(_page_address(request, status), 303)
    return await _report(request, status, *form)


def _wanted_form(sent: Mapping[str, str]) -> tuple[str, int | None] | None:
    """Format and largest number of subjects of a report; None for a person with a browser, who names no format.

    Raises
    ------
    InputError
        There is no such format.
    """
    if "FORMAT_TYPE" not in sent:
        return None
    kind = sent["FORMAT_TYPE"].strip().upper()
    view = sent.get("ALIGNMENT_VIEW", "Pairwise").strip().lower()
    if view not in ("pairwise", "tabular"):
        raise InputError(f"ALIGNMENT_VIEW={shortened(view)} is not available; choose Pairwise or Tabular")
    if kind == "HTML":
        # Bio.Blast would take any page for one that says WAITING, and ask again for ever.
        raise InputError("FORMAT_TYPE=HTML is not for programs; leave it out in a browser, or choose XML")
    if kind not in MEDIA_TYPES:
        raise InputError(f"FORMAT_TYPE={shortened(kind)} is not available; choose {', '.join(MEDIA_TYPES)}")
    if kind == "TEXT" and view == "tabular":
        kind = "TABULAR"
    n_subjects = whole_of("ALIGNMENTS", sent["ALIGNMENTS"]) if "ALIGNMENTS" in sent else None
    if n_subjects is not None and n_subjects < 1:
        raise InputError(f"ALIGNMENTS={n_subjects}: at least 1 subject must be asked for")
    return kind, n_subjects


def _has_hits(service: Service, status: SearchStatus) -> bool:
    """Whether any query of a finished search has a hit."""
    offset, step = 0, 1000
    while summaries := service.queries(status.search.key, status.search.owner, offset, step):
        if any(summary.n_hits for summary in summaries):
            return True
        offset += step
    return False


async def _report(request: Request, status: SearchStatus, kind: str, n_subjects: int | None) -> Response:
    rid = public_name(status.search.key)
    service = service_of(request)

    def prepared() -> Download:
        search, run_id = service.finished_run(status.search.key, owner_of(request))
        cut = n_subjects if n_subjects is not None and n_subjects < int(search.options.get("top") or 0) else None
        return Download(service, run_id, report_of(kind, rid, cut))

    download = await run_in_threadpool(prepared)
    media_type = MEDIA_TYPES[kind]
    headers = {"Content-Disposition": f'attachment; filename="{rid}.zip"'} if media_type.endswith("zip") else {}
    return await download.answer(media_type, headers)


def _page_address(request: Request, status: SearchStatus) -> str:
    return f"{request.scope.get('root_path', '')}/results/{status.search.key}"


# --- parameters ---


HITLIST_SIZE: Final = 100
"""Subjects in a list of hits, if the client does not say how many."""

PUT: Final = frozenset({
    "CMD", "PROGRAM", "DATABASE", "QUERY", "EXPECT", "HITLIST_SIZE", "GAPCOSTS", "MATRIX", "MATRIX_NAME", "NUCL_REWARD",
    "NUCL_PENALTY", "FILTER", "LCASE_MASK", "GENETIC_CODE", "DB_GENETIC_CODE", "ENTREZ_QUERY", "PERC_IDENT",
    "COMPOSITION_BASED_STATISTICS",
})  # fmt: skip
"""Parameters of a submission that are taken."""
GET: Final = frozenset({"CMD", "RID", "FORMAT_TYPE", "FORMAT_OBJECT", "ALIGNMENT_VIEW", "ALIGNMENTS"})
"""Parameters of the other requests that are taken."""
WITHOUT_EFFECT: Final = frozenset({
    "WORD_SIZE", "THRESHOLD", "I_THRESH", "DESCRIPTIONS", "NCBI_GI", "EMAIL", "TOOL", "AUTO_FORMAT", "LAYOUT",
    "ENDPOINTS", "QUERY_BELIEVE_DEFLINE", "NUM_THREADS", "JOB_TITLE", "CLIENT", "NUM_OVERVIEW", "SHOW_OVERVIEW",
    "SHOW_LINKOUT", "GET_SEQUENCE", "NEW_VIEW", "DISPLAY_SORT", "DATABASE_SORT", "ENTREZ_LINKS_NEW_WINDOW",
    "RESULTS_FILE", "MASK_CHAR", "MASK_COLOR", "ADV_VIEW", "LINE_LENGTH",
})  # fmt: skip
"""Parameters that are accepted with every value: they serve heuristics, NCBI's pages, or its statistics of clients."""
_MEGABLAST: Final = (
    "every base is compared here; say the scores of megablast with NUCL_REWARD, NUCL_PENALTY and GAPCOSTS"
)
_ONE_ROUND: Final = "this server searches in one round, with a matrix; leave it out"
REFUSED: Final[Mapping[str, str]] = {
    "QUERY_FROM": "send the part of the query that is to be searched",
    "QUERY_TO": "send the part of the query that is to be searched",
    "QUERY_FILE": "send the sequences themselves in QUERY",
    "MEGABLAST": _MEGABLAST,
    "TEMPLATE_TYPE": _MEGABLAST,
    "TEMPLATE_LENGTH": _MEGABLAST,
    "UNGAPPED_ALIGNMENT": "alignments here have gaps; to have none, let GAPCOSTS be high",
    "SHORT_QUERY_ADJUST": "short queries are searched with the parameters that are sent; choose EXPECT and MATRIX",
    "PHI_PATTERN": _ONE_ROUND,
    "OTHER_ADVANCED": "send parameters by their names",
    "SEARCHSP_EFF": "E-values refer to the size of the database",
    "EXPECT_LOW": "hits are not selected when they are fetched; say EXPECT when the search is submitted",
    "EXPECT_HIGH": "hits are not selected when they are fetched; say EXPECT when the search is submitted",
    "FORMAT_ENTREZ_QUERY": "hits are not selected when they are fetched; say ENTREZ_QUERY when the search is submitted",
}
"""Parameters that are refused unless their value says no, each with what to do."""
_TAXID: Final = re.compile(
    r"\(?\s*txid(\d{1,10})\s*\[\s*(?:orgn|organism|porgn)(?:\s*:\s*(exp|noexp))?\s*\]\s*\)?", re.I
)


def checked_parameters(fields: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The parameters of a request by their names in capitals; those that say nothing are left out.

    Raises
    ------
    InputError
        A parameter is unknown, refused, or sent twice.
    """
    found: dict[str, str] = {}
    for given, value in fields:
        name = given.upper()
        if name in REFUSED and not is_off(value):
            raise InputError(f"{name} is not available: {REFUSED[name]}")
        if name == "SERVICE" and value.strip().lower() not in ("", "plain"):
            raise InputError(f"SERVICE={shortened(value)} is not available: {_ONE_ROUND}")
        if name not in PUT | GET | WITHOUT_EFFECT | REFUSED.keys() | {"SERVICE"}:
            raise InputError(f"there is no parameter {shortened(given)}; leave it out")
        if name in found and found[name] != value:
            raise InputError(f"{name} is sent twice, with different values")
        found[name] = value
    return {name: value for name, value in found.items() if value.strip()}


def submission_of(sent: Mapping[str, str]) -> tuple[Submission, Program]:
    """The search of a submission, and its program.

    Raises
    ------
    InputError
        A value cannot be used.
    """
    program = program_named(sent.get("PROGRAM", ""), "PROGRAM")
    if "DATABASE" not in sent:
        raise InputError("DATABASE is missing; name one of the databases of this server")
    query = sent.get("QUERY", "")
    if not query:
        raise InputError("QUERY is missing; send sequences in FASTA")
    if re.fullmatch(r"\s*[A-Za-z]\w{3,14}\d(\.\d+)?\s*", query):
        raise InputError(f"QUERY={shortened(query.strip())} looks like an accession; send the sequence itself")
    options: dict[str, Any] = {"top": HITLIST_SIZE, "translate": program.translate, **_scoring(sent, program)}
    if "EXPECT" in sent:
        options["evalue"] = number_of("EXPECT", sent["EXPECT"])
    if "HITLIST_SIZE" in sent:
        options["top"] = whole_of("HITLIST_SIZE", sent["HITLIST_SIZE"])
        if options["top"] < 1:
            raise InputError(f"HITLIST_SIZE={options['top']}: at least 1 subject must be asked for")
    if not is_off(sent.get("PERC_IDENT", "")):
        options["min_identity"] = number_of("PERC_IDENT", sent["PERC_IDENT"])
    if "COMPOSITION_BASED_STATISTICS" in sent:
        name = "COMPOSITION_BASED_STATISTICS"
        options |= composition_of(name, sent[name], program.aligned)
    options |= _masking(sent, program)
    options["genetic_code"] = _genetic_code(sent, program)
    options["taxid"] = _taxid(sent.get("ENTREZ_QUERY", ""))
    return Submission(query, sent["DATABASE"].strip(), options), program


def _scoring(sent: Mapping[str, str], program: Program) -> dict[str, Any]:
    options: dict[str, Any] = {}
    names = {sent[name].strip().upper() for name in ("MATRIX", "MATRIX_NAME") if name in sent}
    if len(names) > 1:
        raise InputError("MATRIX and MATRIX_NAME are two names of one parameter, and their values differ; send one")
    for matrix in names:
        if program.aligned == "dna":
            raise InputError(f"MATRIX={shortened(matrix)} is for protein; for blastn send NUCL_REWARD and NUCL_PENALTY")
        options["matrix"] = matrix
    for name, option in (("NUCL_REWARD", "match"), ("NUCL_PENALTY", "mismatch")):
        if name in sent:
            if program.aligned != "dna":
                raise InputError(f"{name} is for blastn; for {program.name} send MATRIX")
            options[option] = whole_of(name, sent[name])
    if "GAPCOSTS" in sent:
        costs = sent["GAPCOSTS"].replace(",", " ").split()
        if len(costs) != 2:
            raise InputError(f"GAPCOSTS={shortened(sent['GAPCOSTS'])}: send two numbers, such as 11 1")
        options["gap_open"], options["gap_extend"] = (whole_of("GAPCOSTS", cost) for cost in costs)
    return options


def _masking(sent: Mapping[str, str], program: Program) -> dict[str, Any]:
    """Masks of FILTER and LCASE_MASK; ``m`` in FILTER masks softly: for the choice of subjects, not in alignments."""
    given = sent.get("FILTER", "")
    letters = re.sub(r"[;\s]", "", given)
    maskers = []
    if not is_off(letters.replace("m", "")):
        if letters.replace("m", "").upper() not in ("T", "L"):
            raise InputError(f"FILTER={shortened(given)} is not available: choose F, L or mL")
        maskers.append("dust" if program.aligned == "dna" else "seg")
    if not is_off(sent.get("LCASE_MASK", "")):
        maskers.append("lower")
    if not maskers:
        return {}
    return {"mask": ",".join(maskers), "mask_mode": "soft" if "m" in letters else "hard"}


def _genetic_code(sent: Mapping[str, str], program: Program) -> int | None:
    translated = {
        "GENETIC_CODE": program.translate in ("query", "both"),
        "DB_GENETIC_CODE": program.translate in ("subject", "both"),
    }
    codes = {name: whole_of(name, sent[name]) for name in translated if name in sent}
    for name, code in codes.items():
        if not translated[name] and code != 1:
            raise InputError(f"{name}={code} has no meaning for {program.name}, which does not translate that side")
    used = {codes.get(name, 1) for name, is_used in translated.items() if is_used}
    if len(used) > 1:
        raise InputError("GENETIC_CODE and DB_GENETIC_CODE differ; tblastx has one code for both sides here")
    return used.pop() if used else None


def _taxid(query: str) -> str | None:
    """The taxonomy ids of an Entrez query, such as ``txid9606[ORGN] OR txid10090[ORGN]``; None for all subjects.

    The option ``taxid`` includes the descendants of an organism, as NCBI does, if the database has a taxonomy.
    """
    if is_off(query):
        return None
    found = [_TAXID.fullmatch(part.strip()) for part in re.split(r"\s+OR\s+", query.strip())]
    taxids = [match[1] for match in found if match]
    if len(taxids) < len(found):
        raise InputError(
            f"ENTREZ_QUERY={shortened(query)} is not available: choose organisms as txid9606[ORGN], joined by OR"
        )
    if any((match[2] or "").lower() == "noexp" for match in found if match):
        raise InputError(f"ENTREZ_QUERY={shortened(query)}: organisms include their descendants; leave :noexp out")
    return ",".join(taxids)

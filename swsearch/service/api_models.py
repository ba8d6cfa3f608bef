"""The JSON of the API, as pydantic models, from which the OpenAPI document is made."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import to_json

from swsearch.options import SEARCH_FILES, SEARCH_OPTIONS
from swsearch.report.jsons import describe_hit, describe_query
from swsearch.scoring.matrix import matrix_names
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.service.databases import OfferedDatabase
from swsearch.service.service import SearchStatus
from swsearch.store.results import ResultPage
from swsearch.store.rows import STATES

Option = str | int | float | bool | None


def one_of(words: Iterable[str | None]) -> dict[str, JsonValue]:
    """What the description of a value says that must be one of some words; the service checks it."""
    return {"enum": list(words)}


def _described_options() -> dict[str, JsonValue]:
    """The description of the options of a search: what each does, and its values where they are words."""
    words = {row.name: row.choices for row in SEARCH_OPTIONS.values() if row.choices} | {"matrix": matrix_names()}
    described: dict[str, JsonValue] = {}
    for row in SEARCH_OPTIONS.values():
        if row.name != "alphabet" and row.name not in SEARCH_FILES:
            values = one_of([*words[row.name], None]) if row.name in words else {}
            described[row.name] = {"description": row.help_in_python, "default": row.default, **values}
    return described


class ErrorBody(BaseModel):
    """What went wrong: a word for programs, and a sentence for people."""

    code: str
    message: str


class ErrorAnswer(BaseModel):
    """The answer for every error."""

    error: ErrorBody


class SearchRequest(BaseModel):
    """A search to submit."""

    model_config = ConfigDict(extra="forbid")

    queries: str = Field(description="FASTA or FASTQ text.", examples=[">mine\nMKVLAAGIVGLLLAQWERTY\n"])
    database: str = Field(default="", description="Name of a database; not with subjects.", examples=["proteins.db"])
    subjects: str | None = Field(
        default=None, description="FASTA or FASTQ text of subjects that are searched in place of a database."
    )
    options: dict[str, Option] = Field(
        default_factory=dict,
        description="Options of `swsearch query` that determine the hits, with _ in place of -.",
        examples=[{"top": 100, "evalue": 0.001}],
        json_schema_extra={"properties": _described_options()},
    )
    alphabet: str | None = Field(
        default=None,
        description="What the queries are, if it must not be detected.",
        json_schema_extra=one_of([*ALPHABETS, None]),
    )


class DatabaseName(BaseModel):
    """One generation of a database."""

    name: str
    digest: str
    generation: int


class Database(DatabaseName):
    """A database that can be searched."""

    name_in_reports: str = Field(description="Name that reports print, that of its folder; a link has another one.")
    taxonomy_digest: str | None = Field(description="SHA-256 of its organisms; null if they are not stored.")
    alphabet: str
    n_subjects: int
    n_residues: int
    created: str = Field(description="Time at which it was written, in UTC.")
    sources: list[str] = Field(description="Names of the files that its sequences are from.")


class QueryCounts(BaseModel):
    """How many queries a search has."""

    total: int
    done: int
    failed: int


class Search(BaseModel):
    """A search and how far it is."""

    id: str
    state: str = Field(json_schema_extra=one_of(STATES))
    reason: str | None = Field(description="Why it failed, or why it waits although it is its turn.")
    database: DatabaseName
    options: dict[str, Option]
    queries: QueryCounts
    cells: int = Field(description="Cells of all alignment matrices.")
    cells_done: int
    position: int | None = Field(description="1 for the search that is predicted to end first.")
    seconds_left: float | None = Field(description="Predicted time until the end; null if it is not known yet.")
    created: datetime
    started: datetime | None
    finished: datetime | None
    expires: datetime | None = Field(description="When the search and its results will be deleted.")
    run: int | None = Field(description="The run in the server's store, once a worker has begun.")


class FoundSearch(Search):
    """A search, and some of its hits if the request asked for them."""

    hits: HitPage | None = Field(
        default=None, description="The best hits of its first query; null while it is not finished."
    )


class Link(BaseModel):
    """A link that shows a search to everybody who has it."""

    id: str = Field(description="The name by which the link is withdrawn.")
    created: datetime


class NewLink(Link):
    """A link that was just made."""

    key: str = Field(description="Takes the place of the search's id in requests that read. It is told this once.")
    page: str = Field(description="The path of the page with the result.")


class FailedQuery(BaseModel):
    """A query that could not be searched."""

    number: int
    reason: str


class Query(BaseModel):
    """A query that was searched."""

    number: int
    id: str
    header: str
    length: int
    n_hits: int = Field(description="Alignments in the list of hits.")
    n_passed: int = Field(description="Subjects that passed the filters before the list was cut.")


class QueryPage(BaseModel):
    """Some of the queries of a search, in order, and those that failed."""

    queries: list[Query]
    failed: list[FailedQuery]
    list_ends: str | None = Field(
        description="What the lists that end at `top` leave out; null if nothing, while the search is not finished, "
        "and on further pages."
    )


class HitPage(BaseModel):
    """Some of the hits of a query."""

    query: dict[str, Any]
    total: int = Field(description="Hits on all pages.")
    offset: int
    hits: list[dict[str, Any]] = Field(description="As in the report format json.")


class Usage(BaseModel):
    """What an owner submitted on one day (UTC)."""

    day: str
    searches: int
    queries: int
    cells: int


def database_answer(offered: OfferedDatabase) -> Database:
    """A database as the API shows it."""
    catalogue = offered.catalogue
    return Database(
        name=offered.name,
        digest=catalogue.digest,
        generation=catalogue.generation,
        name_in_reports=offered.name_in_reports,
        taxonomy_digest=catalogue.taxonomy_digest,
        alphabet=catalogue.alphabet,
        n_subjects=catalogue.n_subjects,
        n_residues=catalogue.n_residues,
        created=catalogue.created,
        sources=list(catalogue.sources),
    )


def hit_page_json(page: ResultPage, offset: int) -> bytes:
    """A page of hits as the API shows it, in JSON: validating each hit again would take longer than reading it.

    Query and hits are those of the format json, with their letters.
    """
    query = page.query
    listed = []
    for hit in query.hits:
        letters = {"subject_letters": hit.alignment.subject_letters, "query_letters": hit.alignment.query_letters}
        listed.append(_shown_values({**describe_hit(query, hit), **letters}))
    described = _shown_values({**describe_query(query), "letters": query.letters})
    return to_json({"query": described, "total": page.n_matching, "offset": offset, "hits": listed})


def search_answer(status: SearchStatus) -> Search:
    """A search as the API shows it."""
    search = status.search
    return Search(
        id=search.key,
        state=search.state,
        reason=search.reason,
        database=DatabaseName(
            name=search.database.name, digest=search.database.digest, generation=search.database.generation
        ),
        options=dict(search.options),
        queries=QueryCounts(total=search.n_queries, done=search.n_done, failed=search.n_failed),
        cells=search.cells,
        cells_done=search.cells_done,
        position=status.position,
        seconds_left=None if status.seconds_left is None else round(status.seconds_left, 2),
        created=search.created,
        started=search.started,
        finished=search.finished,
        expires=search.expires,
        run=search.run_id,
    )


def shown(text: str) -> str:
    """Text of a file for JSON in UTF-8: bytes that are not UTF-8 become U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _shown_values(described: dict[str, Any]) -> dict[str, Any]:
    return {name: shown(value) if isinstance(value, str) else value for name, value in described.items()}

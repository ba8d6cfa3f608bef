"""The tables of a store, and the check of a row that was read.

Runs have ``runs``, ``queries``, ``hits`` and ``failures``; ``blast6`` (``schema.sql``) is a view of them for other
programs and for people who write SQL. The search service has ``searches``, ``search_queries``, ``owners``, ``usage``,
``workers``, ``tokens`` and ``links``: a search is what somebody submitted, and its results are a run like any other.
``swsearch_schema`` has the revision of all of them.

The rest of the program does not use rows: the repositories (:mod:`swsearch.store`) translate between rows and records.
The SQL is the same for SQLite and PostgreSQL. :data:`~swsearch.store.rows.SCHEMA` names the Alembic revision that these
tables describe, and a test compares them with the result of the migrations.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
from math import inf
from typing import Any, Final, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator

from swsearch.store.driver import Rows
from swsearch.store.rows import restored, storable


class FileText(TypeDecorator[str]):
    """A column type for text with NUL or bytes that are not UTF-8 (surrogate escapes), which databases refuse."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text as it is stored."""
        return None if value is None else storable(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """The original text."""
        return None if value is None else restored(value)


class UtcTime(TypeDecorator[datetime]):
    """A column type for times in UTC, also for databases without time zones (SQLite)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The time in UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """The time, with UTC as its zone."""
        return None if value is None else _utc(value)


Big = BigInteger().with_variant(Integer(), "sqlite")
"""A 64-bit integer; the INTEGER of SQLite also has 64 bits, and its row ids must have this type."""

METADATA: Final = MetaData()

HASHED: Final = {"postgresql_using": "hash"}
"""For ``info`` of an index that is a hash in PostgreSQL.

It becomes an option of the index where that is created (:mod:`swsearch.store.schema`): SQLAlchemy imports the dialect
of every option at once, and that of PostgreSQL takes a tenth of a second, also in a program that uses SQLite.
"""

SCHEMA_TABLE: Final = Table(
    "swsearch_schema",
    METADATA,
    Column("version_num", String(32), primary_key=True),
)
"""Alembic's version table, under a name that distinguishes a store from databases of other programs."""

RUNS: Final = Table(
    "runs",
    METADATA,
    Column("id", Big, primary_key=True),
    Column("state", String(16), nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    Column("host", Text, nullable=False),
    Column("process", Integer, nullable=False),
    Column("command", FileText, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("matrix", FileText, nullable=False),
    Column("matrix_scores", FileText, nullable=False),
    Column("gap_open", Integer, nullable=False),
    Column("gap_extend", Integer, nullable=False),
    Column("lam", Double),
    Column("k", Double),
    Column("statistics", FileText, nullable=False),
    Column("search_space", Big, nullable=False),
    Column("database_paths", Text, nullable=False),
    Column("database_digests", Text, nullable=False),
    Column("database_generation", Big, nullable=False),
    Column("database_alphabet", FileText, nullable=False),
    Column("database_n_subjects", Big, nullable=False),
    Column("database_n_residues", Big, nullable=False),
    Column("program", FileText, nullable=False),
    Column("engine", FileText, nullable=False),
    Column("threads", Integer, nullable=False),
    Column("process_began", Text),
    Column("shard_index", Integer),
    Column("shard_count", Integer),
    Column("asked_n_queries", Big),
    Column("asked_digest", String(64)),
    Column("remark", FileText),
    sqlite_autoincrement=True,  # the number of a deleted run is not reused
)
"""One run: all values of :class:`~swsearch.hits.result.RunInfo`, its times, its process and its shard.

``parameters`` is a JSON object; ``database_paths`` and ``database_digests`` are JSON arrays, because a run may search
several databases as one.
"""

QUERIES: Final = Table(
    "queries",
    METADATA,
    Column("id", Big, primary_key=True),
    Column("run_id", Big, ForeignKey("runs.id", ondelete="CASCADE", name="fk_queries_run"), nullable=False),
    Column("number", Big, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("header", FileText, nullable=False),
    Column("letters", FileText, nullable=False),
    Column("n_hits", Big, nullable=False),
    Column("n_passed", Big, nullable=False),
    Column("cells", Big, nullable=False),
    Column("score_seconds", Double, nullable=False),
    Column("total_seconds", Double, nullable=False),
    Column("n_rescored", Big, nullable=False),
    Column("committed_at", UtcTime, nullable=False),
    Column("n_rounds", Integer, nullable=False),
    Column("converged", Integer, nullable=False),
    Column("pssm", Text),
    Column("identifier", FileText, nullable=False),
    UniqueConstraint("run_id", "number", name="uq_queries_run_number"),
    Index("ix_queries_run_digest", "run_id", "digest"),
    Index("ix_queries_identifier", "identifier", info=HASHED),
    sqlite_autoincrement=True,
)
"""One query whose search is complete."""

FAILURES: Final = Table(
    "failures",
    METADATA,
    Column("run_id", Big, ForeignKey("runs.id", ondelete="CASCADE", name="fk_failures_run"), primary_key=True),
    Column("number", Big, primary_key=True),
    Column("reason", FileText, nullable=False),
)
"""One query that cannot be searched, and the reason. A query in neither ``queries`` nor ``failures`` is missing."""

HITS: Final = Table(
    "hits",
    METADATA,
    Column("query_id", Big, ForeignKey("queries.id", ondelete="CASCADE", name="fk_hits_query"), primary_key=True),
    Column("rank", Big, primary_key=True),
    Column("hsp", Big, primary_key=True),
    Column("subject_index", Big, nullable=False),
    Column("subject_header", FileText, nullable=False),
    Column("subject_length", Big, nullable=False),
    Column("score", Big, nullable=False),
    Column("bits", Double),
    Column("evalue", Double),
    Column("strand", String(5), nullable=False),
    Column("query_start", Big, nullable=False),
    Column("query_end", Big, nullable=False),
    Column("subject_start", Big, nullable=False),
    Column("subject_end", Big, nullable=False),
    Column("cigar", Text, nullable=False),
    Column("identities", Big, nullable=False),
    Column("positives", Big, nullable=False),
    Column("columns", Big, nullable=False),
    Column("gap_openings", Big, nullable=False),
    Column("gap_residues", Big, nullable=False),
    Column("subject_letters", FileText, nullable=False),
    Column("query_letters", FileText, nullable=False),
    Column("query_frame", Integer, nullable=False),
    Column("subject_frame", Integer, nullable=False),
    Column("round", Integer, nullable=False),
    Column("subject_identifier", FileText, nullable=False),
    Column("number", Big, nullable=False),
    Column("masked_evalue", Double),
    Column("n_hsps", Big),
    Column("forward_bits", Double),
    Index("ix_hits_subject", "subject_identifier", info=HASHED),
)
"""One alignment; its key is the rank of its subject and its own rank among the alignments of the subject.

The identifier of the subject is stored, although it is a part of the header: it ends at white space of any kind,
which no expression finds in both databases. On SQLite, an index on an expression took as long to write and to
read, and 8 % less space. In PostgreSQL the index is a hash, because a key of a B-tree has at most 2.7 kB.
"""

SEARCHES: Final = Table(
    "searches",
    METADATA,
    Column("id", Big, primary_key=True),
    Column("key", String(32), nullable=False),
    Column("owner", FileText, nullable=False),
    Column("database_name", FileText, nullable=False),
    Column("database_digest", String(64), nullable=False),
    Column("database_generation", Big, nullable=False),
    Column("options", Text, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("content", String(64), nullable=False),
    Column("asked_digest", String(64), nullable=False),
    Column("idempotency_key", FileText),
    Column("state", String(16), nullable=False),
    Column("reason", FileText),
    Column("created_at", UtcTime, nullable=False),
    Column("started_at", UtcTime),
    Column("finished_at", UtcTime),
    Column("expires_at", UtcTime),
    Column("run_id", Big, ForeignKey("runs.id", ondelete="CASCADE", name="fk_searches_run")),
    Column("n_queries", Big, nullable=False),
    Column("n_done", Big, nullable=False),
    Column("n_failed", Big, nullable=False),
    Column("cells", Big, nullable=False),
    Column("cells_done", Big, nullable=False),
    Column("n_hits", Big, nullable=False),
    Column("served", Big, nullable=False),
    UniqueConstraint("key", name="uq_searches_key"),
    UniqueConstraint("owner", "idempotency_key", name="uq_searches_owner_idempotency_key"),
    Index("ix_searches_state", "state", "owner"),
    Index("ix_searches_content", "content", "state"),
    Index("ix_searches_owner", "owner", "id"),
    Index("ix_searches_run", "run_id"),
    sqlite_autoincrement=True,
)
"""One search: who submitted it, what is searched, how far it is, and the run with its results.

``n_hits`` is the number of stored alignments, so that the sum of an owner's is computed without reading runs.
"""

SEARCH_QUERIES: Final = Table(
    "search_queries",
    METADATA,
    Column(
        "search_id",
        Big,
        ForeignKey("searches.id", ondelete="CASCADE", name="fk_search_queries_search"),
        primary_key=True,
    ),
    Column("number", Big, primary_key=True),
    Column("header", FileText, nullable=False),
    Column("letters", FileText, nullable=False),
    Column("cells", Big, nullable=False),
    Column("state", String(16), nullable=False),
    Column("lease_owner", String(64)),
    Column("lease_until", UtcTime),
    Column("losses", Integer, nullable=False),
    Index("ix_search_queries_next", "search_id", "state", "losses", "number"),
    Index("ix_search_queries_lease", "lease_owner"),
)
"""One query of an unfinished search: its letters, and the lease of the worker that searches it."""

OWNERS: Final = Table(
    "owners",
    METADATA,
    Column("owner", FileText, primary_key=True),
    Column("served", Big, nullable=False),
)
"""The virtual counter of an owner: millions of cells that were searched for the owner, or forgone while idle."""

USAGE: Final = Table(
    "usage",
    METADATA,
    Column("owner", FileText, primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("n_searches", Big, nullable=False),
    Column("n_queries", Big, nullable=False),
    Column("cells", Big, nullable=False),
)
"""What an owner submitted on one day (UTC, ``YYYY-MM-DD``)."""

WORKERS: Final = Table(
    "workers",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("host", Text, nullable=False),
    Column("process", Integer, nullable=False),
    Column("process_began", Text),
    Column("engine", Text, nullable=False),
    Column("cells_per_second", Double, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("seen_at", UtcTime, nullable=False),
)
"""A worker process, how fast it searches, and when it was last alive."""

TOKENS: Final = Table(
    "tokens",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("owner", FileText, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("revoked_at", UtcTime),
    UniqueConstraint("digest", name="uq_tokens_digest"),
)
"""A token of an owner; the token itself is not stored, only its SHA-256."""

LINKS: Final = Table(
    "links",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("search_id", Big, ForeignKey("searches.id", ondelete="CASCADE", name="fk_links_search"), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("digest", name="uq_links_digest"),
    Index("ix_links_search", "search_id"),
)
"""A link that shows one search to everybody who has it; its key is not stored, only the key's SHA-256."""

_R = TypeVar("_R", bound=Iterable[Any])
_SIGNED: Final = frozenset({"query_frame", "subject_frame", "score"})


def checked(row: _R, table: Table) -> _R:
    """The row itself, if every value has the type of its column and no count or index is negative.

    SQLite accepts any value in any column, and a store may have been edited. The meaning of values is not checked. The
    first columns of the row are those of the table.

    Raises
    ------
    ValueError
        A value has another type or is out of range; the message names its column.
    """
    for value, (name, kinds, lowest, highest) in zip(row, _rules(table), strict=False):
        if type(value) not in kinds or (type(value) is int and not lowest <= value <= highest):
            shown = repr(value)
            shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
            raise ValueError(f"table {table.name}, column {name}: {shown} has no place there")
    return row


@cache
def _rules(table: Table) -> list[tuple[str, frozenset[type], float, float]]:
    """Of each column its name, the types of its values, and the range of integers."""
    rules = []
    for column in table.columns:
        is_time = isinstance(getattr(column.type, "impl", column.type), DateTime)
        kinds: set[type] = {datetime if is_time else str}
        lowest, highest = -inf, inf
        if isinstance(column.type, Double):
            kinds = {int, float}
        elif isinstance(column.type, Integer):
            kinds = {int}
            highest = 2**31 - 1 if type(column.type) is Integer else inf
            lowest = -highest if column.name in _SIGNED else 0
        rules.append((column.name, frozenset(kinds | ({type(None)} if column.nullable else set())), lowest, highest))
    return rules


def records(rows: Rows, table: Table, rest: str, *values: Any) -> list[Any]:
    """The :func:`checked` rows of a table, read by a plain statement, with their values by the names of the columns.

    ``rest`` is what follows the name of the table in the statement: conditions, order and limits.

    Raises
    ------
    ValueError
        A value has no place in its column.
    """
    columns, record, readers = _reading(table)
    found = []
    for row in rows.execute(f"SELECT {columns} FROM {table.name} {rest}", *values):
        read = list(row)
        for place, reader in readers:
            if read[place] is not None:
                read[place] = reader(read[place])
        found.append(checked(record(*read), table))
    return found


@cache
def _reading(table: Table) -> tuple[str, Callable[..., Any], list[tuple[int, Callable[[Any], Any]]]]:
    """The columns of a table, the class of its rows, and what reads the values of columns, by their places."""
    columns = table.columns
    readers = {FileText: restored, UtcTime: _utc}
    read = [(place, readers[type(each.type)]) for place, each in enumerate(columns) if type(each.type) in readers]
    return ", ".join(columns.keys()), namedtuple(table.name, columns.keys()), read


def _utc(value: Any) -> Any:
    """A time as a driver gives it; SQLite has no type for times, which are texts in UTC. Other values stay as they are,
    for the check of the record.
    """
    if not isinstance(value, str | datetime):
        return value
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)

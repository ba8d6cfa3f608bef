"""The tables of a store, and how a row that was read becomes a record.

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
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from math import inf
from typing import Any, Final

import sqlalchemy as sa

from swsearch.store.rows import restored


class FileText(sa.Text):
    """Text with NUL or bytes that are not UTF-8 (surrogate escapes), which databases refuse: it is stored by
    :func:`~swsearch.store.rows.storable`.
    """


UtcTime: Final = sa.DateTime(timezone=True)
"""A time in UTC."""

Big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A 64-bit integer; the INTEGER of SQLite also has 64 bits, and its row ids must have this type."""

METADATA: Final = sa.MetaData()

HASHED: Final = {"postgresql_using": "hash"}
"""For ``info`` of an index that is a hash in PostgreSQL.

It becomes an option of the index where that is created (:mod:`swsearch.store.schema`): SQLAlchemy imports the dialect
of every option at once, and that of PostgreSQL takes a tenth of a second, also in a program that uses SQLite.
"""

SCHEMA_TABLE: Final = sa.Table(
    "swsearch_schema",
    METADATA,
    sa.Column("version_num", sa.String(32), primary_key=True),
)
"""Alembic's version table, under a name that distinguishes a store from databases of other programs."""

RUNS: Final = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", Big, primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("command", FileText, nullable=False),
    sa.Column("parameters", sa.Text, nullable=False),
    sa.Column("matrix", FileText, nullable=False),
    sa.Column("matrix_scores", FileText, nullable=False),
    sa.Column("gap_open", sa.Integer, nullable=False),
    sa.Column("gap_extend", sa.Integer, nullable=False),
    sa.Column("lam", sa.Double),
    sa.Column("k", sa.Double),
    sa.Column("statistics", FileText, nullable=False),
    sa.Column("search_space", Big, nullable=False),
    sa.Column("database_paths", sa.Text, nullable=False),
    sa.Column("database_digests", sa.Text, nullable=False),
    sa.Column("database_generation", Big, nullable=False),
    sa.Column("database_alphabet", FileText, nullable=False),
    sa.Column("database_n_subjects", Big, nullable=False),
    sa.Column("database_n_residues", Big, nullable=False),
    sa.Column("program", FileText, nullable=False),
    sa.Column("engine", FileText, nullable=False),
    sa.Column("threads", sa.Integer, nullable=False),
    sa.Column("process_began", sa.Text),
    sa.Column("shard_index", sa.Integer),
    sa.Column("shard_count", sa.Integer),
    sa.Column("asked_n_queries", Big),
    sa.Column("asked_digest", sa.String(64)),
    sa.Column("remark", FileText),
    sqlite_autoincrement=True,  # the number of a deleted run is not reused
)
"""One run: all values of :class:`~swsearch.hits.result.RunInfo`, its times, its process and its shard.

``parameters`` is a JSON object; ``database_paths`` and ``database_digests`` are JSON arrays, because a run may search
several databases as one.
"""

QUERIES: Final = sa.Table(
    "queries",
    METADATA,
    sa.Column("id", Big, primary_key=True),
    sa.Column("run_id", Big, sa.ForeignKey("runs.id", ondelete="CASCADE", name="fk_queries_run"), nullable=False),
    sa.Column("number", Big, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("header", FileText, nullable=False),
    sa.Column("letters", FileText, nullable=False),
    sa.Column("n_hits", Big, nullable=False),
    sa.Column("n_passed", Big, nullable=False),
    sa.Column("cells", Big, nullable=False),
    sa.Column("score_seconds", sa.Double, nullable=False),
    sa.Column("total_seconds", sa.Double, nullable=False),
    sa.Column("n_rescored", Big, nullable=False),
    sa.Column("committed_at", UtcTime, nullable=False),
    sa.Column("n_rounds", sa.Integer, nullable=False),
    sa.Column("converged", sa.Integer, nullable=False),
    sa.Column("pssm", sa.Text),
    sa.Column("identifier", FileText, nullable=False),
    sa.UniqueConstraint("run_id", "number", name="uq_queries_run_number"),
    sa.Index("ix_queries_run_digest", "run_id", "digest"),
    sa.Index("ix_queries_identifier", "identifier", info=HASHED),
    sqlite_autoincrement=True,
)
"""One query whose search is complete."""

FAILURES: Final = sa.Table(
    "failures",
    METADATA,
    sa.Column("run_id", Big, sa.ForeignKey("runs.id", ondelete="CASCADE", name="fk_failures_run"), primary_key=True),
    sa.Column("number", Big, primary_key=True),
    sa.Column("reason", FileText, nullable=False),
)
"""One query that cannot be searched, and the reason. A query in neither ``queries`` nor ``failures`` is missing."""

HITS: Final = sa.Table(
    "hits",
    METADATA,
    sa.Column("query_id", Big, sa.ForeignKey("queries.id", ondelete="CASCADE", name="fk_hits_query"), primary_key=True),
    sa.Column("rank", Big, primary_key=True),
    sa.Column("hsp", Big, primary_key=True),
    sa.Column("subject_index", Big, nullable=False),
    sa.Column("subject_header", FileText, nullable=False),
    sa.Column("subject_length", Big, nullable=False),
    sa.Column("score", Big, nullable=False),
    sa.Column("bits", sa.Double),
    sa.Column("evalue", sa.Double),
    sa.Column("strand", sa.String(5), nullable=False),
    sa.Column("query_start", Big, nullable=False),
    sa.Column("query_end", Big, nullable=False),
    sa.Column("subject_start", Big, nullable=False),
    sa.Column("subject_end", Big, nullable=False),
    sa.Column("cigar", sa.Text, nullable=False),
    sa.Column("identities", Big, nullable=False),
    sa.Column("positives", Big, nullable=False),
    sa.Column("columns", Big, nullable=False),
    sa.Column("gap_openings", Big, nullable=False),
    sa.Column("gap_residues", Big, nullable=False),
    sa.Column("subject_letters", FileText, nullable=False),
    sa.Column("query_letters", FileText, nullable=False),
    sa.Column("query_frame", sa.Integer, nullable=False),
    sa.Column("subject_frame", sa.Integer, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("subject_identifier", FileText, nullable=False),
    sa.Column("number", Big, nullable=False),
    sa.Column("masked_evalue", sa.Double),
    sa.Column("n_hsps", Big),
    sa.Column("forward_bits", sa.Double),
    sa.Index("ix_hits_subject", "subject_identifier", info=HASHED),
)
"""One alignment; its key is the rank of its subject and its own rank among the alignments of the subject.

The identifier of the subject is stored, although it is a part of the header: it ends at white space of any kind,
which no expression finds in both databases. On SQLite, an index on an expression took as long to write and to
read, and 8 % less space. In PostgreSQL the index is a hash, because a key of a B-tree has at most 2.7 kB.
"""

SEARCHES: Final = sa.Table(
    "searches",
    METADATA,
    sa.Column("id", Big, primary_key=True),
    sa.Column("key", sa.String(32), nullable=False),
    sa.Column("owner", FileText, nullable=False),
    sa.Column("database_name", FileText, nullable=False),
    sa.Column("database_digest", sa.String(64), nullable=False),
    sa.Column("database_generation", Big, nullable=False),
    sa.Column("options", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("content", sa.String(64), nullable=False),
    sa.Column("asked_digest", sa.String(64), nullable=False),
    sa.Column("idempotency_key", FileText),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("reason", FileText),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("started_at", UtcTime),
    sa.Column("finished_at", UtcTime),
    sa.Column("expires_at", UtcTime),
    sa.Column("run_id", Big, sa.ForeignKey("runs.id", ondelete="CASCADE", name="fk_searches_run")),
    sa.Column("n_queries", Big, nullable=False),
    sa.Column("n_done", Big, nullable=False),
    sa.Column("n_failed", Big, nullable=False),
    sa.Column("cells", Big, nullable=False),
    sa.Column("cells_done", Big, nullable=False),
    sa.Column("n_hits", Big, nullable=False),
    sa.Column("served", Big, nullable=False),
    sa.UniqueConstraint("key", name="uq_searches_key"),
    sa.UniqueConstraint("owner", "idempotency_key", name="uq_searches_owner_idempotency_key"),
    sa.Index("ix_searches_state", "state", "owner"),
    sa.Index("ix_searches_content", "content", "state"),
    sa.Index("ix_searches_owner", "owner", "id"),
    sa.Index("ix_searches_run", "run_id"),
    sqlite_autoincrement=True,
)
"""One search: who submitted it, what is searched, how far it is, and the run with its results.

``n_hits`` is the number of stored alignments, so that the sum of an owner's is computed without reading runs.
"""

SEARCH_QUERIES: Final = sa.Table(
    "search_queries",
    METADATA,
    sa.Column(
        "search_id",
        Big,
        sa.ForeignKey("searches.id", ondelete="CASCADE", name="fk_search_queries_search"),
        primary_key=True,
    ),
    sa.Column("number", Big, primary_key=True),
    sa.Column("header", FileText, nullable=False),
    sa.Column("letters", FileText, nullable=False),
    sa.Column("cells", Big, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("lease_owner", sa.String(64)),
    sa.Column("lease_until", UtcTime),
    sa.Column("losses", sa.Integer, nullable=False),
    sa.Index("ix_search_queries_next", "search_id", "state", "losses", "number"),
    sa.Index("ix_search_queries_lease", "lease_owner"),
)
"""One query of an unfinished search: its letters, and the lease of the worker that searches it."""

OWNERS: Final = sa.Table(
    "owners",
    METADATA,
    sa.Column("owner", FileText, primary_key=True),
    sa.Column("served", Big, nullable=False),
)
"""The virtual counter of an owner: millions of cells that were searched for the owner, or forgone while idle."""

USAGE: Final = sa.Table(
    "usage",
    METADATA,
    sa.Column("owner", FileText, primary_key=True),
    sa.Column("day", sa.String(10), primary_key=True),
    sa.Column("n_searches", Big, nullable=False),
    sa.Column("n_queries", Big, nullable=False),
    sa.Column("cells", Big, nullable=False),
)
"""What an owner submitted on one day (UTC, ``YYYY-MM-DD``)."""

WORKERS: Final = sa.Table(
    "workers",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("process_began", sa.Text),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("cells_per_second", sa.Double, nullable=False),
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("seen_at", UtcTime, nullable=False),
)
"""A worker process, how fast it searches, and when it was last alive."""

TOKENS: Final = sa.Table(
    "tokens",
    METADATA,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("owner", FileText, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("revoked_at", UtcTime),
    sa.UniqueConstraint("digest", name="uq_tokens_digest"),
)
"""A token of an owner; the token itself is not stored, only its SHA-256."""

LINKS: Final = sa.Table(
    "links",
    METADATA,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column(
        "search_id", Big, sa.ForeignKey("searches.id", ondelete="CASCADE", name="fk_links_search"), nullable=False
    ),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.UniqueConstraint("digest", name="uq_links_digest"),
    sa.Index("ix_links_search", "search_id"),
)
"""A link that shows one search to everybody who has it; its key is not stored, only the key's SHA-256."""

_SIGNED: Final = frozenset({"query_frame", "subject_frame", "score"})


@cache
def reader_of(table: str, more: tuple[str, ...]) -> tuple[str, Callable[[Sequence[Any]], Any]]:
    """The columns of a table for a statement, and what makes a record of a row that has them and then ``more`` values.

    The function raises :class:`ValueError` if a value has another type than its column, or is a count or an index that
    is negative; the message names the column. SQLite accepts any value in any column, and a store may have been edited.
    The meaning of values is not checked.
    """
    columns = METADATA.tables[table].columns
    names = columns.keys()
    record = namedtuple(table, [*names, *more])  # type: ignore[misc]
    converted = {FileText: restored, sa.DateTime: _utc}
    kinds_of = [type(column.type) for column in columns]
    converters = [(place, converted[kind]) for place, kind in enumerate(kinds_of) if kind in converted]
    rules = [_rule(column) for column in columns]

    def read(row: Sequence[Any]) -> Any:
        values = list(row)
        for place, convert in converters:
            if values[place] is not None:
                values[place] = convert(values[place])
        for value, (kinds, lowest, highest), name in zip(values, rules, names, strict=False):
            if type(value) not in kinds or (type(value) is int and not lowest <= value <= highest):
                shown = repr(value)
                shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
                raise ValueError(f"table {table}, column {name}: {shown} has no place there")
        return record(*values)

    return ", ".join(names), read


def _rule(column: sa.Column[Any]) -> tuple[frozenset[type], float, float]:
    """The types of a column's values, and the range of integers."""
    kinds: set[type] = {datetime if isinstance(column.type, sa.DateTime) else str}
    lowest, highest = -inf, inf
    if isinstance(column.type, sa.Double):
        kinds = {int, float}
    elif isinstance(column.type, sa.Integer):
        kinds = {int}
        highest = 2**31 - 1 if type(column.type) is sa.Integer else inf
        lowest = -highest if column.name in _SIGNED else 0
    return frozenset(kinds | ({type(None)} if column.nullable else set())), lowest, highest


def _utc(value: Any) -> Any:
    """A time as a driver gives it; SQLite has no type for times, which are texts in UTC. Other values stay as they are,
    for the check of the record.
    """
    if not isinstance(value, str | datetime):
        return value
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)

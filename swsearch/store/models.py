"""The tables of a store: ``runs``, ``queries``, ``hits``, ``failures``, and ``swsearch_schema`` for their revision.

:data:`BLAST6_VIEW` is a view of them for other programs and for people who write SQL.

Those of the search service are in :mod:`swsearch.store.service_models`.

The rest of the program does not use rows: :mod:`swsearch.store.records` translates between rows and records. The SQL
is the same for SQLite and PostgreSQL. :data:`SCHEMA` names the Alembic revision that these tables describe, and a test
compares them with the result of the migrations.

Headers of sequence files may contain any byte. :class:`FileText` stores them as readable text and restores them
unchanged.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

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

SCHEMA: Final = "0.1.0"
"""The revision of these tables."""

RUNNING: Final = "running"
FINISHED: Final = "finished"
INTERRUPTED: Final = "interrupted"

_UNSTORABLE = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(\\|u[0-9a-f]{4})")


def storable(given: str) -> str:
    r"""Text as it is stored: NUL and surrogates as ``\u`` and four digits, a backslash as ``\\``, the rest unchanged.

    >>> print(storable("caf\u00e9 \udcff"))
    café \udcff
    """
    if not _UNSTORABLE.search(given):
        return given
    return _UNSTORABLE.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", given)


def _restored(stored: str) -> str:
    """The inverse of :func:`storable`."""
    if "\\" not in stored:
        return stored
    return _ESCAPE.sub(lambda found: "\\" if found[1] == "\\" else chr(int(found[1][1:], 16)), stored)


class FileText(TypeDecorator[str]):
    """A column type for text with NUL or bytes that are not UTF-8 (surrogate escapes), which databases refuse."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text as it is stored."""
        return None if value is None else storable(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """The original text."""
        return None if value is None else _restored(value)


class UtcTime(TypeDecorator[datetime]):
    """A column type for times in UTC, also for databases without time zones (SQLite)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The time in UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """The time, with UTC as its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)  # type: ignore[no-any-return]


Big = BigInteger().with_variant(Integer(), "sqlite")
"""A 64-bit integer; the INTEGER of SQLite also has 64 bits, and its row ids must have this type."""

METADATA: Final = MetaData()
"""The tables, with those of the service once :mod:`swsearch.store.service_models` is imported."""

HASHED: Final = {"postgresql_using": "hash"}
"""For ``info`` of an index that is a hash in PostgreSQL.

It becomes an option of the index where that is created (:mod:`swsearch.store.session`): SQLAlchemy imports the dialect
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
    Column("database_path", FileText, nullable=False),
    Column("database_digest", FileText, nullable=False),
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
"""One run: all values of :class:`~swsearch.hits.result.RunInfo`, its times, its process and its share."""

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
    Index("ix_hits_subject", "subject_identifier", info=HASHED),
)
"""One alignment; its key is the rank of its subject and its own rank among the alignments of the subject.

The identifier of the subject is stored, although it is a part of the header: it ends at white space of any kind,
which no expression finds in both databases. On SQLite, an index on an expression took as long to write and to
read, and 8 % less space. In PostgreSQL the index is a hash, because a key of a B-tree has at most 2.7 kB.
"""

BLAST6_VIEW: Final = """\
CREATE VIEW blast6 AS
SELECT
    q.identifier AS qaccver,
    h.subject_identifier AS saccver,
    CASE WHEN h.columns = 0 THEN 0 ELSE 100 * CAST(h.identities AS DOUBLE PRECISION) / h.columns END AS pident,
    h.columns AS length,
    h.columns - h.identities - h.gap_residues AS mismatch,
    h.gap_openings AS gapopen,
    CASE WHEN h.query_frame < 0 THEN h.query_end ELSE h.query_start + 1 END AS qstart,
    CASE WHEN h.query_frame < 0 THEN h.query_start + 1 ELSE h.query_end END AS qend,
    CASE WHEN h.subject_frame < 0 OR h.strand = 'minus' AND h.query_frame = 0
        THEN h.subject_end ELSE h.subject_start + 1 END AS sstart,
    CASE WHEN h.subject_frame < 0 OR h.strand = 'minus' AND h.query_frame = 0
        THEN h.subject_start + 1 ELSE h.subject_end END AS send,
    h.evalue AS evalue,
    h.bits AS bitscore,
    h.score AS score,
    length(q.letters) AS qlen,
    h.subject_length AS slen,
    h.subject_header AS stitle,
    q.run_id AS run_id,
    q.id AS query_id,
    q.number AS query_number,
    h.rank AS rank,
    h.hsp AS hsp
FROM hits AS h JOIN queries AS q ON q.id = h.query_id
"""
"""The hits as rows of BLAST's tables: the twelve columns of ``blast6``, others by BLAST's names, and the keys.

Coordinates are 1-based and inclusive, as in :mod:`swsearch.report.fields`; ``pident``, ``evalue`` and ``bitscore`` are
not rounded. Percent identity is computed and not stored: a condition on it took as long.
"""

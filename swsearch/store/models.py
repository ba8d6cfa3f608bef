"""The tables of a store: ``runs``, ``queries``, ``hits``, ``failures``, and ``swsearch_schema`` for their revision.

:data:`BLAST6_VIEW` is a view of them for other programs and for people who write SQL.

Those of the search service are in :mod:`swsearch.store.service_models`.

The rest of the program does not use rows: :mod:`swsearch.store.records` translates between rows and records. The SQL
is the same for SQLite and PostgreSQL. :data:`SCHEMA` names the Alembic revision that these classes describe, and a test
compares them with the result of the migrations.

Headers of sequence files may contain any byte. :class:`FileText` stores them as readable text and restores them
unchanged.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final, cast

from sqlalchemy import (
    BigInteger,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

SCHEMA: Final = "0.1.0_h"
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


class Base(DeclarativeBase):
    """Base of the tables."""


class SchemaRow(Base):
    """Alembic's version table, under a name that distinguishes a store from databases of other programs."""

    __tablename__ = "swsearch_schema"

    version_num: Mapped[str] = mapped_column(String(32), primary_key=True)


class RunRow(Base):
    """One run: all values of :class:`~swsearch.hits.result.RunInfo`, its times, its process and its share."""

    __tablename__ = "runs"
    __table_args__ = ({"sqlite_autoincrement": True},)  # the number of a deleted run is not reused

    id: Mapped[int] = mapped_column(Big, primary_key=True)
    state: Mapped[str] = mapped_column(String(16))
    started_at: Mapped[datetime] = mapped_column(UtcTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcTime)
    host: Mapped[str] = mapped_column(Text)
    process: Mapped[int] = mapped_column(Integer)
    command: Mapped[str] = mapped_column(FileText)
    parameters: Mapped[str] = mapped_column(Text)
    matrix: Mapped[str] = mapped_column(FileText)
    matrix_scores: Mapped[str] = mapped_column(FileText)
    gap_open: Mapped[int] = mapped_column(Integer)
    gap_extend: Mapped[int] = mapped_column(Integer)
    lam: Mapped[float | None] = mapped_column(Double)
    k: Mapped[float | None] = mapped_column(Double)
    statistics: Mapped[str] = mapped_column(FileText)
    search_space: Mapped[int] = mapped_column(Big)
    database_path: Mapped[str] = mapped_column(FileText)
    database_digest: Mapped[str] = mapped_column(FileText)
    database_generation: Mapped[int] = mapped_column(Big)
    database_alphabet: Mapped[str] = mapped_column(FileText)
    database_n_subjects: Mapped[int] = mapped_column(Big)
    database_n_residues: Mapped[int] = mapped_column(Big)
    program: Mapped[str] = mapped_column(FileText)
    engine: Mapped[str] = mapped_column(FileText)
    threads: Mapped[int] = mapped_column(Integer)
    process_began: Mapped[str | None] = mapped_column(Text)
    shard_index: Mapped[int | None] = mapped_column(Integer)
    shard_count: Mapped[int | None] = mapped_column(Integer)
    asked_n_queries: Mapped[int | None] = mapped_column(Big)
    asked_digest: Mapped[str | None] = mapped_column(String(64))
    remark: Mapped[str | None] = mapped_column(FileText)


class QueryRow(Base):
    """One query whose search is complete."""

    __tablename__ = "queries"
    __table_args__ = (
        UniqueConstraint("run_id", "number", name="uq_queries_run_number"),
        Index("ix_queries_run_digest", "run_id", "digest"),
        Index("ix_queries_identifier", "identifier", postgresql_using="hash"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Big, primary_key=True)
    run_id: Mapped[int] = mapped_column(Big, ForeignKey("runs.id", ondelete="CASCADE", name="fk_queries_run"))
    number: Mapped[int] = mapped_column(Big)
    digest: Mapped[str] = mapped_column(String(64))
    header: Mapped[str] = mapped_column(FileText)
    letters: Mapped[str] = mapped_column(FileText)
    n_hits: Mapped[int] = mapped_column(Big)
    n_passed: Mapped[int] = mapped_column(Big)
    cells: Mapped[int] = mapped_column(Big)
    score_seconds: Mapped[float] = mapped_column(Double)
    total_seconds: Mapped[float] = mapped_column(Double)
    n_rescored: Mapped[int] = mapped_column(Big)
    committed_at: Mapped[datetime] = mapped_column(UtcTime)
    n_rounds: Mapped[int] = mapped_column(Integer, server_default="1")
    converged: Mapped[int] = mapped_column(Integer, server_default="0")
    pssm: Mapped[str | None] = mapped_column(Text)
    identifier: Mapped[str] = mapped_column(FileText, server_default="")


class FailureRow(Base):
    """One query that cannot be searched, and the reason. A query in neither ``queries`` nor ``failures`` is missing."""

    __tablename__ = "failures"

    run_id: Mapped[int] = mapped_column(
        Big, ForeignKey("runs.id", ondelete="CASCADE", name="fk_failures_run"), primary_key=True
    )
    number: Mapped[int] = mapped_column(Big, primary_key=True)
    reason: Mapped[str] = mapped_column(FileText)


class HitRow(Base):
    """One alignment; its key is the rank of its subject and its own rank among the alignments of the subject.

    The identifier of the subject is stored, although it is a part of the header: it ends at white space of any kind,
    which no expression finds in both databases. On SQLite, an index on an expression took as long to write and to
    read, and 8 % less space. In PostgreSQL the index is a hash, because a key of a B-tree has at most 2.7 kB.
    """

    __tablename__ = "hits"
    __table_args__ = (Index("ix_hits_subject", "subject_identifier", postgresql_using="hash"),)

    query_id: Mapped[int] = mapped_column(
        Big, ForeignKey("queries.id", ondelete="CASCADE", name="fk_hits_query"), primary_key=True
    )
    rank: Mapped[int] = mapped_column(Big, primary_key=True)
    hsp: Mapped[int] = mapped_column(Big, primary_key=True)
    subject_index: Mapped[int] = mapped_column(Big)
    subject_header: Mapped[str] = mapped_column(FileText)
    subject_length: Mapped[int] = mapped_column(Big)
    score: Mapped[int] = mapped_column(Big)
    bits: Mapped[float | None] = mapped_column(Double)
    evalue: Mapped[float | None] = mapped_column(Double)
    strand: Mapped[str] = mapped_column(String(5))
    query_start: Mapped[int] = mapped_column(Big)
    query_end: Mapped[int] = mapped_column(Big)
    subject_start: Mapped[int] = mapped_column(Big)
    subject_end: Mapped[int] = mapped_column(Big)
    cigar: Mapped[str] = mapped_column(Text)
    identities: Mapped[int] = mapped_column(Big)
    positives: Mapped[int] = mapped_column(Big)
    columns: Mapped[int] = mapped_column(Big)
    gap_openings: Mapped[int] = mapped_column(Big)
    gap_residues: Mapped[int] = mapped_column(Big)
    subject_letters: Mapped[str] = mapped_column(FileText)
    query_letters: Mapped[str] = mapped_column(FileText)
    query_frame: Mapped[int] = mapped_column(Integer)
    subject_frame: Mapped[int] = mapped_column(Integer)
    round: Mapped[int] = mapped_column(Integer, server_default="0")
    subject_identifier: Mapped[str] = mapped_column(FileText, server_default="")


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

RUNS = cast(Table, RunRow.__table__)
QUERIES = cast(Table, QueryRow.__table__)
HITS = cast(Table, HitRow.__table__)
FAILURES = cast(Table, FailureRow.__table__)

"""The first schema: the tables of runs and of the search service, and the view ``blast6``.

Types are spelled out here rather than taken from the models, because this file must build the first schema for ever.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0"
down_revision = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)

VIEW = """\
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


def upgrade() -> None:
    """Build all tables; Alembic builds its own version table."""
    _create_runs()
    _create_searches()
    _create_accounts()
    op.execute(VIEW)


def _create_runs() -> None:
    """The tables of runs, their queries and hits."""
    op.create_table(
        "runs",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("finished_at", TIME),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("matrix", sa.Text, nullable=False),
        sa.Column("matrix_scores", sa.Text, nullable=False),
        sa.Column("gap_open", sa.Integer, nullable=False),
        sa.Column("gap_extend", sa.Integer, nullable=False),
        sa.Column("lam", sa.Double),
        sa.Column("k", sa.Double),
        sa.Column("statistics", sa.Text, nullable=False),
        sa.Column("search_space", BIG, nullable=False),
        sa.Column("database_paths", sa.Text, nullable=False),
        sa.Column("database_digests", sa.Text, nullable=False),
        sa.Column("database_generation", BIG, nullable=False),
        sa.Column("database_alphabet", sa.Text, nullable=False),
        sa.Column("database_n_subjects", BIG, nullable=False),
        sa.Column("database_n_residues", BIG, nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("threads", sa.Integer, nullable=False),
        sa.Column("process_began", sa.Text),
        sa.Column("shard_index", sa.Integer),
        sa.Column("shard_count", sa.Integer),
        sa.Column("asked_n_queries", BIG),
        sa.Column("asked_digest", sa.String(64)),
        sa.Column("remark", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "queries",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("run_id", BIG, sa.ForeignKey("runs.id", ondelete="CASCADE", name="fk_queries_run"), nullable=False),
        sa.Column("number", BIG, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("header", sa.Text, nullable=False),
        sa.Column("letters", sa.Text, nullable=False),
        sa.Column("n_hits", BIG, nullable=False),
        sa.Column("n_passed", BIG, nullable=False),
        sa.Column("cells", BIG, nullable=False),
        sa.Column("score_seconds", sa.Double, nullable=False),
        sa.Column("total_seconds", sa.Double, nullable=False),
        sa.Column("n_rescored", BIG, nullable=False),
        sa.Column("committed_at", TIME, nullable=False),
        sa.Column("n_rounds", sa.Integer, nullable=False),
        sa.Column("converged", sa.Integer, nullable=False),
        sa.Column("pssm", sa.Text),
        sa.Column("identifier", sa.Text, nullable=False),
        sa.UniqueConstraint("run_id", "number", name="uq_queries_run_number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_queries_run_digest", "queries", ["run_id", "digest"])
    op.create_index("ix_queries_identifier", "queries", ["identifier"], postgresql_using="hash")
    op.create_table(
        "failures",
        sa.Column(
            "run_id",
            BIG,
            sa.ForeignKey("runs.id", ondelete="CASCADE", name="fk_failures_run"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("number", BIG, primary_key=True, autoincrement=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "hits",
        sa.Column(
            "query_id",
            BIG,
            sa.ForeignKey("queries.id", ondelete="CASCADE", name="fk_hits_query"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("rank", BIG, primary_key=True, autoincrement=False),
        sa.Column("hsp", BIG, primary_key=True, autoincrement=False),
        sa.Column("subject_index", BIG, nullable=False),
        sa.Column("subject_header", sa.Text, nullable=False),
        sa.Column("subject_length", BIG, nullable=False),
        sa.Column("score", BIG, nullable=False),
        sa.Column("bits", sa.Double),
        sa.Column("evalue", sa.Double),
        sa.Column("strand", sa.String(5), nullable=False),
        sa.Column("query_start", BIG, nullable=False),
        sa.Column("query_end", BIG, nullable=False),
        sa.Column("subject_start", BIG, nullable=False),
        sa.Column("subject_end", BIG, nullable=False),
        sa.Column("cigar", sa.Text, nullable=False),
        sa.Column("identities", BIG, nullable=False),
        sa.Column("positives", BIG, nullable=False),
        sa.Column("columns", BIG, nullable=False),
        sa.Column("gap_openings", BIG, nullable=False),
        sa.Column("gap_residues", BIG, nullable=False),
        sa.Column("subject_letters", sa.Text, nullable=False),
        sa.Column("query_letters", sa.Text, nullable=False),
        sa.Column("query_frame", sa.Integer, nullable=False),
        sa.Column("subject_frame", sa.Integer, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("subject_identifier", sa.Text, nullable=False),
        sa.Column("number", BIG, nullable=False),
        sa.Column("masked_evalue", sa.Double),
        sa.Column("n_hsps", BIG),
        sa.Column("forward_bits", sa.Double),
    )
    op.create_index("ix_hits_subject", "hits", ["subject_identifier"], postgresql_using="hash")


def _create_searches() -> None:
    """The tables of submitted searches and of those who work on them."""
    op.create_table(
        "searches",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("database_digest", sa.String(64), nullable=False),
        sa.Column("database_generation", BIG, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("content", sa.String(64), nullable=False),
        sa.Column("asked_digest", sa.String(64), nullable=False),
        sa.Column("idempotency_key", sa.Text),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("finished_at", TIME),
        sa.Column("expires_at", TIME),
        sa.Column("run_id", BIG, sa.ForeignKey("runs.id", ondelete="CASCADE", name="fk_searches_run")),
        sa.Column("n_queries", BIG, nullable=False),
        sa.Column("n_done", BIG, nullable=False),
        sa.Column("n_failed", BIG, nullable=False),
        sa.Column("cells", BIG, nullable=False),
        sa.Column("cells_done", BIG, nullable=False),
        sa.Column("n_hits", BIG, nullable=False),
        sa.Column("served", BIG, nullable=False),
        sa.UniqueConstraint("key", name="uq_searches_key"),
        sa.UniqueConstraint("owner", "idempotency_key", name="uq_searches_owner_idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_searches_state", "searches", ["state", "owner"])
    op.create_index("ix_searches_content", "searches", ["content", "state"])
    op.create_index("ix_searches_owner", "searches", ["owner", "id"])
    op.create_index("ix_searches_run", "searches", ["run_id"])
    op.create_table(
        "search_queries",
        sa.Column(
            "search_id",
            BIG,
            sa.ForeignKey("searches.id", ondelete="CASCADE", name="fk_search_queries_search"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("number", BIG, primary_key=True, autoincrement=False),
        sa.Column("header", sa.Text, nullable=False),
        sa.Column("letters", sa.Text, nullable=False),
        sa.Column("cells", BIG, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("lease_owner", sa.String(64)),
        sa.Column("lease_until", TIME),
        sa.Column("losses", sa.Integer, nullable=False),
    )
    op.create_index("ix_search_queries_next", "search_queries", ["search_id", "state", "losses", "number"])
    op.create_index("ix_search_queries_lease", "search_queries", ["lease_owner"])
    op.create_table(
        "owners",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("served", BIG, nullable=False),
    )
    op.create_table(
        "usage",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("n_searches", BIG, nullable=False),
        sa.Column("n_queries", BIG, nullable=False),
        sa.Column("cells", BIG, nullable=False),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("process_began", sa.Text),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("cells_per_second", sa.Double, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
    )


def _create_accounts() -> None:
    """The tables of tokens and links."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
    op.create_table(
        "links",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column(
            "search_id", BIG, sa.ForeignKey("searches.id", ondelete="CASCADE", name="fk_links_search"), nullable=False
        ),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.UniqueConstraint("digest", name="uq_links_digest"),
    )
    op.create_index("ix_links_search", "links", ["search_id"])

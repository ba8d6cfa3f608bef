"""Runs, queries and hits: the first schema, so that a search can be shown again, resumed and reproduced.

Types are spelled out here rather than taken from the models, because this file must build the first schema for ever.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0_a"
down_revision = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Build the three tables; Alembic builds its own version table."""
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
        sa.Column("database_path", sa.Text, nullable=False),
        sa.Column("database_digest", sa.Text, nullable=False),
        sa.Column("database_generation", BIG, nullable=False),
        sa.Column("database_alphabet", sa.Text, nullable=False),
        sa.Column("database_n_subjects", BIG, nullable=False),
        sa.Column("database_n_residues", BIG, nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("threads", sa.Integer, nullable=False),
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
        sa.UniqueConstraint("run_id", "number", name="uq_queries_run_number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_queries_run_digest", "queries", ["run_id", "digest"])
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
    )

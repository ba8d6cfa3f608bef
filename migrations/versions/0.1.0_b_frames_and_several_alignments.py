"""Hits of translated sequences have frames and the query's residues, and a subject may have several alignments.

The number of the alignment becomes part of the key, so the table is built anew and its rows are copied. Stored hits
were not translated, and each was its subject's only alignment.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0_b"
down_revision = "0.1.0_a"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

OLD_COLUMNS = (
    "subject_index, subject_header, subject_length, score, bits, evalue, strand, query_start, query_end, "
    "subject_start, subject_end, cigar, identities, positives, columns, gap_openings, gap_residues, subject_letters"
)


def upgrade() -> None:
    """Copy the hits into a table with the new columns, which then takes the place of the old one."""
    op.create_table(
        "hits_with_frames",
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
    )
    op.execute(
        f"INSERT INTO hits_with_frames (query_id, rank, hsp, {OLD_COLUMNS}, query_letters, query_frame, subject_frame) "
        f"SELECT query_id, rank, 1, {OLD_COLUMNS}, '', 0, 0 FROM hits"
    )
    op.drop_table("hits")
    op.rename_table("hits_with_frames", "hits")

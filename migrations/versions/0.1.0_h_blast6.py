"""Hits for people who write SQL: identifiers as columns, the hits of a subject by an index, and the view ``blast6``.

The identifiers of stored queries and hits are computed from their headers. SQLite calls Python for them; PostgreSQL has
regular expressions, to which the white space of Python is given.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0.1.0_h"
down_revision = "0.1.0_g"

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

WORD = r"[^\t-\r\x1c- \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"


def upgrade() -> None:
    """A column at the end of the queries and one of the hits, each with an index, and the view."""
    for table, header, identifier, index in (
        ("queries", "header", "identifier", "ix_queries_identifier"),
        ("hits", "subject_header", "subject_identifier", "ix_hits_subject"),
    ):
        op.add_column(table, sa.Column(identifier, sa.Text, nullable=False, server_default=""))
        _fill(table, header, identifier)
        op.create_index(index, table, [identifier], postgresql_using="hash")
    op.execute(VIEW)


def _fill(table: str, header: str, identifier: str) -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.create_function("first_word", 1, lambda text: (text.split(None, 1) or ["unnamed"])[0])
        connection.exec_driver_sql(f"UPDATE {table} SET {identifier} = first_word({header})")
    else:
        first = sa.func.coalesce(sa.func.substring(sa.column(header), WORD), "unnamed")
        connection.execute(sa.update(sa.table(table, sa.column(identifier))).values({identifier: first}))

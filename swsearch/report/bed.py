"""``bed``: each alignment as an interval of its subject, for bedtools and genome browsers (BED of twelve columns).

Coordinates are 0-based and half-open. The name is that of the query, the score the bit score, rounded and at most
1,000, or 0 without statistics. The strand is that of the query on the subject: ``-`` if one of both was reversed.
"""

from __future__ import annotations

from typing import Final

from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.base import Report
from swsearch.sequences.record import identifier

_LARGEST_SCORE: Final = 1000


class BedReport(Report):
    """A line for each alignment, in the order of queries and ranks."""

    name = "bed"

    def write(self, query: QueryResult) -> None:
        """Write the lines of a query."""
        self.stream.writelines(_line(query, hit) for hit in self.run.listed(query))


def _line(query: QueryResult, hit: Hit) -> str:
    start, end = hit.alignment.subject_start, hit.alignment.subject_end
    score = 0 if hit.bits is None else max(0, min(_LARGEST_SCORE, round(hit.bits)))
    blocks = (1, f"{end - start},", "0,")
    columns = (
        identifier(hit.subject_header),
        start,
        end,
        identifier(query.header),
        score,
        hit.direction,
        start,
        end,
        0,
    )
    return "\t".join(map(str, (*columns, *blocks))) + "\n"

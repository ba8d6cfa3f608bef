"""``bed``: each alignment as an interval of its subject, for bedtools and genome browsers (BED of twelve columns).

Coordinates are 0-based and half-open. The name is that of the query, the score the bit score, rounded and at most
1,000, or 0 without statistics. The strand is that of the query on the subject: ``-`` if one of both was reversed. A
chain of alignments (``--max-intron``) is one line with a block for each exon (:mod:`swsearch.report.exons`).
"""

from __future__ import annotations

from typing import Final

from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report
from swsearch.report.exons import Exon, exons_of, reads_exons
from swsearch.sequences.record import identifier

_LARGEST_SCORE: Final = 1000


class BedReport(Report):
    """A line for each alignment, in the order of queries and ranks."""

    name = "bed"

    def needs_subjects(self, run: RunInfo) -> bool:  # noqa: D102
        return reads_exons(run)

    def write(self, query: QueryResult) -> None:
        """Write the lines of a query."""
        for chain in self.run.chains(query):
            self.stream.write(_line(query, chain, exons_of(self.context, query, chain)))


def _line(query: QueryResult, chain: list[Hit], exons: list[Exon]) -> str:
    hit = chain[0]
    blocks_of = _blocks([exon.hit for exon in exons])
    start, end = blocks_of[0][0], blocks_of[-1][1]
    score = 0 if hit.bits is None else max(0, min(_LARGEST_SCORE, round(sum(one.bits or 0.0 for one in chain))))
    sizes = "".join(f"{last - first}," for first, last in blocks_of)
    starts = "".join(f"{first - start}," for first, _ in blocks_of)
    blocks = (len(blocks_of), sizes, starts)
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


def _blocks(parts: list[Hit]) -> list[tuple[int, int]]:
    """The aligned parts of the subject in ascending order; parts that overlap are cut, as the format requires."""
    blocks: list[tuple[int, int]] = []
    for start, end in sorted((hit.alignment.subject_start, hit.alignment.subject_end) for hit in parts):
        first = max(start, blocks[-1][1]) if blocks else start
        if first < end:
            blocks.append((first, end))
    return blocks

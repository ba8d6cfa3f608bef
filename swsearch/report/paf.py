"""``paf``: each alignment as a line of minimap2's pairwise format, with its CIGAR.

Coordinates are 0-based, half-open and those of the forward sequences. The CIGAR, tag ``cg``, is in the direction of the
forward subject, as minimap2 writes it. In a translated search it is that of miniprot: in the direction of the frames,
and in residues, each of which is three bases of a translated side; matches and columns are then in bases.

Tags: ``AS`` raw score, ``NM`` mismatches and gap residues, ``ZB`` bit score, ``ZE`` E-value (both as in ``sam``). The
quality is 255, unknown.
"""

from __future__ import annotations

from typing import Final

from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.base import Report
from swsearch.sequences.record import identifier

UNKNOWN_QUALITY: Final = 255


class PafReport(Report):
    """A line for each alignment, in the order of queries and ranks."""

    name = "paf"

    def write(self, query: QueryResult) -> None:
        """Write the lines of a query."""
        self.stream.writelines(_line(query, hit) for hit in self.run.listed(query))


def _line(query: QueryResult, hit: Hit) -> str:
    alignment = hit.alignment
    bases = 3 if hit.query_frame or hit.subject_frame else 1
    columns = [
        identifier(query.header), query.length, alignment.query_start, alignment.query_end, hit.direction,
        identifier(hit.subject_header), hit.subject_length, alignment.subject_start, alignment.subject_end,
        alignment.identities * bases, alignment.columns * bases, UNKNOWN_QUALITY,
        f"AS:i:{hit.score}", f"NM:i:{alignment.mismatches + alignment.gap_residues}",
    ]  # fmt: skip
    if hit.bits is not None:
        columns.append(f"ZB:f:{hit.bits:.6g}")
    if hit.evalue is not None:
        columns.append(f"ZE:f:{hit.evalue:.6g}")
    columns.append(f"cg:Z:{alignment.cigar}")
    return "\t".join(map(str, columns)) + "\n"

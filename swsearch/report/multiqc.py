"""``multiqc``: the number of queries by the identity of their best hit, for MultiQC.

The file is custom content of MultiQC. If its name ends with ``_mqc.tsv``, MultiQC finds it, takes the rest of the name
for the sample, and draws a bar of the categories for each sample; the files of all samples become one plot.
"""

from __future__ import annotations

from typing import Final

from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report

LEAST_PERCENT: Final = (90, 70, 50, 30, 0)
"""Least identity of the categories of queries with hits, in percent of the alignment's columns."""
_LABELS: Final = (
    "90 to 100 % identical", "70 to 90 %", "50 to 70 %", "30 to 50 %", "below 30 %", "no hit",
)  # fmt: skip
_HEADER: Final = """\
# id: swsearch
# section_name: swsearch
# description: Queries by the identity of their best hit, in percent of its alignment (Smith-Waterman).
# file_format: tsv
# plot_type: bargraph
# pconfig:
#   id: swsearch_best_hits
#   title: 'swsearch: identity of best hits'
#   ylab: queries
"""


def _category(query: QueryResult) -> int:
    """The index of a query's category in :data:`_LABELS`."""
    if not query.hits:
        return len(LEAST_PERCENT)
    best = query.hits[0].alignment
    return next(place for place, least in enumerate(LEAST_PERCENT) if 100 * best.identities >= least * best.columns)


class MultiqcReport(Report):
    """A header for MultiQC, then a line for each category: its name, and the number of its queries.

    The report is written when the last query is known.
    """

    def begin(self, run: RunInfo) -> None:
        """Write nothing yet."""
        super().begin(run)
        self._counts = [0] * len(_LABELS)

    def write(self, query: QueryResult) -> None:
        """Count a query."""
        self._counts[_category(query)] += 1

    def end(self) -> None:
        """Write the header and the lines."""
        lines = [f"{label}\t{count}\n" for label, count in zip(_LABELS, self._counts, strict=True)]
        self.stream.write(_HEADER + "".join(lines))

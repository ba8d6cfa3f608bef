"""What the formats have in common whose columns can be selected: the fields, and what these need."""

from __future__ import annotations

from collections.abc import Sequence

from swsearch.hits.result import RunInfo
from swsearch.report.fields import select_fields
from swsearch.report.lca import DEFAULT_PERCENT
from swsearch.report.protocol import TaxonomyUse
from swsearch.report.taxa import greatest_use


class ColumnsReport:
    """The selected fields of a table.

    Parameters
    ----------
    fields : sequence of str, optional
        Names of fields; by default, those of the format.
    lca_percent : float
        For the fields of the query's taxon (:class:`swsearch.report.lca.CommonAncestors`).

    Attributes
    ----------
    asked : tuple of Field or None
        The fields that were selected; None for those of the format.
    """

    def __init__(self, fields: Sequence[str] | None = None, lca_percent: float = DEFAULT_PERCENT) -> None:
        self.asked = None if fields is None else select_fields(fields, lca_percent)
        self._lca_percent = lca_percent

    def needs_subjects(self, run: RunInfo) -> bool:
        """Whether a column is read from the database (:class:`swsearch.report.protocol.SubjectReport`)."""
        return any(field.needs_subjects for field in self.asked or ())

    def taxonomy_use(self) -> TaxonomyUse:
        """What the columns take from a taxonomy (:class:`swsearch.report.protocol.TaxonomyReport`)."""
        return greatest_use(field.use for field in self.asked or ())

    def lca_percent(self) -> float | None:
        """The percentage for the query's taxon (:class:`swsearch.report.protocol.AncestorReport`)."""
        return self._lca_percent if any(field.is_lca for field in self.asked or ()) else None

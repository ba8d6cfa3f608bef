"""What a report reads beside the results: whether it needs the database that was searched, and its context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swsearch.hits.result import TAXONOMY_DIGEST, RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.report.formats import Use

if TYPE_CHECKING:
    from swsearch.database.reader import PackedDatabase


def database_use(
    report: Report,
    run: RunInfo,
    taxonomy: str | None = None,
    taxid_map: str | None = None,
    *,
    is_named: bool = False,
) -> Use:
    """What the report of a stored run takes from the database of the run.

    Parameters
    ----------
    report : Report
    run : RunInfo
    taxonomy, taxid_map : str or None
        The options of these names.
    is_named : bool
        Whether the user names the database, which a report with organisms then reads.
    """
    if report.needs_subjects(run):
        return Use.NEEDED
    use = report.taxonomy_use
    if use is Use.NONE:
        return Use.NONE
    from swsearch.taxonomy.subject_taxa import has_variable

    has_tree = taxonomy is not None or has_variable()
    if is_named or taxid_map is not None or (use is Use.NEEDED and not has_tree):
        return Use.NEEDED
    return Use.IF_KNOWN if TAXONOMY_DIGEST in run.parameters else Use.NONE


def report_context(
    report: Report,
    run: RunInfo,
    database: PackedDatabase | None,
    taxonomy: str | None = None,
    taxid_map: str | None = None,
    called: str = "this report",
) -> ReportContext:
    """The context of a report.

    Parameters
    ----------
    report : Report
    run : RunInfo
    database : PackedDatabase or None
        The database that was searched, if it is open.
    taxonomy, taxid_map : str or None
        The options of these names.
    called : str
        The report in messages.

    Raises
    ------
    InputError
        The report needs names of taxa, and there are none; or a file cannot be read.
    """
    use = report.taxonomy_use
    if use is Use.NONE:
        return ReportContext(run, database)
    from swsearch.database.stored_taxonomy import taxonomy_of_subjects

    needed_by = called if use is Use.NEEDED else None
    return ReportContext(run, database, taxonomy_of_subjects(database, taxonomy, taxid_map, needed_by))

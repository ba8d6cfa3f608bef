"""The organisms of the subjects for reports, from the options of a command or from the database of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from swsearch.errors import DatabaseError, InputError
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.database.format import TaxonomyEntry
    from swsearch.database.reader import PackedDatabase
    from swsearch.hits.result import QueryResult, RunInfo
    from swsearch.report.protocol import ReportFormat
    from swsearch.run import WriteReport
    from swsearch.store.runs import StoredRun
    from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects


def taxonomy_line(taxonomy: TaxonomyEntry) -> str:
    """What a database has stored about the organisms of its sequences."""
    assigned = f"{taxonomy.n_assigned:,} of {counted(taxonomy.n_rows, 'sequence')}"
    return f"{counted(taxonomy.n_taxa, 'taxon', 'taxa')}; {assigned} with a taxonomy id"


def refuse_unused(report: ReportFormat | None, taxid: str | None, taxonomy: str | None, taxid_map: str | None) -> None:
    """Refuse ``--taxonomy`` and ``--taxid-map`` where neither a filter nor the report uses them.

    Those of the configuration are defaults for the commands that need them, and are not refused.

    Raises
    ------
    InputError
        One of them is given, and nothing uses it.
    """
    if (taxonomy is None and taxid_map is None) or taxid is not None:
        return
    from swsearch.cli.command import words_give

    if not words_give("taxonomy", "taxid_map"):
        return
    from swsearch.report.protocol import TaxonomyUse
    from swsearch.report.registry import taxonomy_use

    if report is None or taxonomy_use(report) is TaxonomyUse.NONE:
        here = "there is no report" if report is None else f"{_shown(report)} has none"
        raise InputError(f"--taxid-map and --taxonomy serve --taxid and reports with taxa; {here}, leave them out")


def report_taxonomy(
    report: ReportFormat, database: PackedDatabase | None, taxonomy: str | None, taxid_map: str | None
) -> TaxonomyOfSubjects | None:
    """The organisms of the subjects, if the report uses them (:func:`swsearch.organisms.known_taxonomy`)."""
    from swsearch.organisms import known_taxonomy
    from swsearch.report.registry import taxonomy_use

    return known_taxonomy(taxonomy_use(report), database, taxonomy, taxid_map, _shown(report))


def _shown(report: ReportFormat) -> str:
    from swsearch.report.registry import COLUMNS

    return f"format {report.name}" + (" with these columns" if report.name in COLUMNS else "")


def database_for_taxonomy(
    report: ReportFormat,
    stored: StoredRun,
    paths: Sequence[str] | None,
    taxonomy: str | None,
    taxid_map: str | None,
    stack: ExitStack,
) -> PackedDatabase | None:
    """The database of a stored run, if its report takes the organisms from it; open until ``stack`` is closed.

    If headers can take its place and it is not there any more, a warning is printed.

    Parameters
    ----------
    report : ReportFormat
    stored : StoredRun
    paths : sequence of str or None
        Path or URL of each database now, in the order of the search; by default, where they were searched.
    taxonomy, taxid_map : str or None
        The options of these names.
    stack : ExitStack

    Raises
    ------
    DatabaseError
        The report needs the database, and it is not there any more or has changed.
    """
    from swsearch.cli.output import say
    from swsearch.cli.sequences import open_run_database
    from swsearch.organisms import cannot_do_without, reads_database
    from swsearch.report.protocol import TaxonomyUse
    from swsearch.report.registry import taxonomy_use

    use = taxonomy_use(report)
    is_asked = bool(paths) and use is not TaxonomyUse.NONE
    if not is_asked and not reads_database(use, stored.info, taxonomy, taxid_map):
        return None
    try:
        return open_run_database(stored, paths, stack)
    except DatabaseError as error:
        if is_asked or cannot_do_without(use, taxonomy, taxid_map):
            raise
        there = "--database names the database if it has another path now"
        say(f"warning: {error.__cause__}; taxonomy ids are those that headers state; {there}")
        return None


def with_organisms(
    write: WriteReport,
    report: ReportFormat,
    taxonomy: TaxonomyOfSubjects | None,
    *,
    quiet: bool = False,
    cuts_lists: bool = True,
) -> WriteReport:
    """A function that writes a report with the organisms of the subjects.

    It says which ids are not current and, with ``cuts_lists``, which lists may be too short for the taxa of their
    queries.
    """
    if taxonomy is None:
        return write
    from swsearch.cli.output import say
    from swsearch.report.registry import lca_percent

    def write_with_organisms(run: RunInfo, results: Iterator[QueryResult]) -> None:
        from swsearch.hits.result import with_taxonomy
        from swsearch.report.taxa import CutLists

        percent = lca_percent(report) if cuts_lists else None
        cut = None if percent is None else CutLists(run, percent)
        write(run, with_taxonomy(results if cut is None else cut.counted(results), taxonomy))
        for message in [*taxonomy.messages(), *(() if cut is None else cut.messages())]:
            say(message, quiet=quiet)

    return write_with_organisms

"""The organisms of the subjects for the report of a run: whether it uses them, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from swsearch.hits.result import TAXONOMY_DIGEST, QueryResult, RunInfo, with_taxonomy
from swsearch.report.protocol import TaxonomyUse
from swsearch.taxonomy.subject_taxa import has_variable

if TYPE_CHECKING:
    from swsearch.database.reader import PackedDatabase
    from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects


def reads_database(use: TaxonomyUse, run: RunInfo, taxonomy: str | None, taxid_map: str | None) -> bool:
    """Whether the report of a stored run takes organisms from the database of the run.

    It does not where headers suffice: if the database had no taxonomy when it was searched, and the report needs none
    or is given one.

    Parameters
    ----------
    use : TaxonomyUse
    run : RunInfo
    taxonomy, taxid_map : str or None
        The options of these names.
    """
    return use is not TaxonomyUse.NONE and (
        TAXONOMY_DIGEST in run.parameters or cannot_do_without(use, taxonomy, taxid_map)
    )


def cannot_do_without(use: TaxonomyUse, taxonomy: str | None, taxid_map: str | None) -> bool:
    """Whether the report cannot be written if the database is not there any more; otherwise headers take its place."""
    has_tree = taxonomy is not None or has_variable()
    return use is not TaxonomyUse.NONE and (taxid_map is not None or (use is TaxonomyUse.NEEDED and not has_tree))


def known_taxonomy(
    use: TaxonomyUse,
    database: PackedDatabase | None,
    taxonomy: str | None,
    taxid_map: str | None,
    report: str = "this report",
) -> TaxonomyOfSubjects | None:
    """The organisms of the subjects, if the report uses them and they are known.

    Parameters
    ----------
    use : TaxonomyUse
    database : PackedDatabase or None
        The database that was searched, if it is open.
    taxonomy, taxid_map : str or None
        The options of these names.
    report : str
        The report in messages.

    Raises
    ------
    InputError
        The report needs names of taxa, and there are none; or a file cannot be read.
    """
    if use is TaxonomyUse.NONE:
        return None
    from swsearch.database.stored_taxonomy import taxonomy_of_subjects

    return taxonomy_of_subjects(database, taxonomy, taxid_map, report if use is TaxonomyUse.NEEDED else None)


def with_organisms(
    results: Iterable[QueryResult],
    use: TaxonomyUse,
    database: PackedDatabase | None,
    taxonomy: str | None,
    taxid_map: str | None,
) -> Iterator[QueryResult]:
    """The results with their :func:`known_taxonomy`, whose errors are raised by the call."""
    known = known_taxonomy(use, database, taxonomy, taxid_map)
    return iter(results) if known is None else with_taxonomy(results, known)

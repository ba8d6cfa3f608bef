"""Sequences beside the hits: subjects from the database for reports, and queries with and without hits as FASTA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from swsearch.errors import DatabaseError, InputError

if TYPE_CHECKING:
    from swsearch.database.reader import PackedDatabase
    from swsearch.hits.result import QueryResult, RunInfo
    from swsearch.hits.subjects import SubjectPart
    from swsearch.report.protocol import ReportFormat
    from swsearch.run import WriteReport
    from swsearch.search.planned_search import PlannedSearch
    from swsearch.search.queries import QueryFiles
    from swsearch.store.runs import StoredRun


def subject_part(aligned: bool, flank: int | None) -> SubjectPart | None:
    """The part of each subject that ``--aligned`` and ``--flank`` ask for; None if neither is given."""
    from swsearch.hits.subjects import SubjectPart

    return None if not aligned and flank is None else SubjectPart(aligned=True, flank=flank or 0)


def open_subjects(
    report: ReportFormat, stored: StoredRun, paths: Sequence[str] | None, stack: ExitStack
) -> PackedDatabase | None:
    """The database of a stored run, open until ``stack`` is closed; None if the report does not need it.

    Parameters
    ----------
    report : ReportFormat
    stored : StoredRun
    paths : sequence of str or None
        Path or URL of each database now, in the order of the search; by default, where they were searched.
    stack : ExitStack

    Raises
    ------
    DatabaseError
        The database is not there any more, or its content has changed.
    """
    from swsearch.report.registry import needs_subjects

    if needs_subjects(report, stored.info):
        return open_run_database(stored, paths, stack)
    return None


def open_run_database(stored: StoredRun, paths: Sequence[str] | None, stack: ExitStack) -> PackedDatabase:
    """The database of a stored run, open until ``stack`` is closed; ``paths`` as for :func:`open_subjects`.

    Raises
    ------
    DatabaseError
        The database is not there any more, or its content has changed.
    """
    from swsearch.cli.databases import open_databases
    from swsearch.database.object_store import is_url

    searched = stored.info.database
    places = paths or searched.paths
    try:
        for place in places:
            if not is_url(place) and not Path(place).exists():
                raise DatabaseError(f"{place} does not exist")
        return stack.enter_context(open_databases(places, searched=searched.digests))
    except DatabaseError as error:
        several = len(searched.digests) > 1
        which = "the databases of the run" if several else "the database of the run"
        advice = "name the database with --database if it has another path now"
        if several:
            advice = "name each database with --database, in this order, if they have other paths now"
        raise DatabaseError(f"run {stored.id}: this report needs {which}; {error.marked}; {advice}") from error


class QueryFastas:
    """``--unaligned`` and ``--aligned-queries``: the queries without and with hits, as they were given.

    The results of a run tell which queries have hits, including results of an earlier call. The letters come from the
    query files, which are read once more at the end, because results have the letters that were searched, masked ones
    for instance.

    Parameters
    ----------
    unaligned, aligned : Path or None
        Output files.
    stack : ExitStack
        The files are complete when it is closed.
    """

    def __init__(self, unaligned: Path | None, aligned: Path | None, stack: ExitStack) -> None:
        from swsearch.cli.output import result_stream

        self._streams: list[TextIO | None] = [None, None]
        """Of the queries without hits, and of those with hits."""
        for place, (path, option) in enumerate(((unaligned, "--unaligned"), (aligned, "--aligned-queries"))):
            if path is not None:
                self._streams[place] = stack.enter_context(result_stream(path, option=option))
        self._known = bytearray()
        """For each number of a query: 0 if it has no result, 1 if it has no hits, 2 if it has hits."""

    def observing(self, write: WriteReport | None) -> WriteReport:
        """A function that writes a report, if ``write`` is given, and notes which queries have hits."""

        def write_and_note(run: RunInfo, results: Iterator[QueryResult]) -> None:
            noted = self._noted(results)
            if write is not None:
                write(run, noted)
            for _ in noted:  # the results that the report did not consume
                pass

        return write_and_note

    def _noted(self, results: Iterator[QueryResult]) -> Iterator[QueryResult]:
        for result in results:
            missing = result.number + 1 - len(self._known)
            if missing > 0:
                self._known.extend(bytes(missing))
            self._known[result.number] = 2 if result.hits else 1
            yield result

    def write(self, queries: QueryFiles, searcher: PlannedSearch) -> None:
        """Write the queries; call it when all results were noted."""
        from swsearch.sequences.fasta_text import write_record
        from swsearch.sequences.record import SequenceRecord

        for number, record in enumerate(queries.records(searcher.scheme, searcher.needs)):
            known = self._known[number] if number < len(self._known) else 0
            stream = self._streams[known - 1] if known else None
            if stream is not None and isinstance(record, SequenceRecord):
                write_record(stream, record.header, record.letters)


def query_fastas(
    unaligned: Path | None, aligned: Path | None, queries: QueryFiles, stack: ExitStack
) -> QueryFastas | None:
    """The files of queries with and without hits; None if neither is asked for.

    Raises
    ------
    InputError
        The queries are profiles, or a file cannot be created.
    """
    if unaligned is None and aligned is None:
        return None
    if queries.hold_profiles:
        option = "--unaligned" if unaligned is not None else "--aligned-queries"
        raise InputError(f"{option} writes sequences, and these queries are profiles; leave it out")
    return QueryFastas(unaligned, aligned, stack)

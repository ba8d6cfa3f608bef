"""What the commands share whose queries are the sequences of a database: ``allpairs``, ``cluster`` and ``rbh``.

:func:`prepared` checks the options of such a command, and :func:`compared` opens what one of its searches needs;
:meth:`Comparison.execute` performs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swsearch.cli.options import Arguments
from swsearch.cli.searchers import gpu_processes, open_searcher, warm_up
from swsearch.errors import InputError

if TYPE_CHECKING:
    from swsearch.cli.command_run import CommandRun
    from swsearch.database.reader import PackedDatabase
    from swsearch.hits.shards import Shard
    from swsearch.report.base import Report
    from swsearch.run import RunOutcome, Step, Survey
    from swsearch.search.planned_search import PlannedSearch
    from swsearch.search.queries import QueriesByFile


@dataclass(frozen=True)
class Prepared:
    """The options of a command, checked and with the shard in the names of its outputs.

    Attributes
    ----------
    arguments : Arguments
        The options.
    shard : Shard
        The shard of the queries that is searched.
    must_store : bool
        Whether it is an error if the hits cannot be stored.
    report : Report or None
        The report, if there is one.
    """

    arguments: Arguments
    shard: Shard
    must_store: bool
    report: Report | None


def prepared(arguments: Arguments) -> Prepared:
    """Check the options of a command before its databases are opened.

    Raises
    ------
    InputError
        Options exclude each other, or an option is out of its range.
    """
    from swsearch.cli.command_run import asked_report, must_store, named_by_share, named_store
    from swsearch.hits.shards import asked_shard
    from swsearch.output_files import refuse_compressed

    shard = asked_shard(arguments.shard, os.environ)
    arguments = named_by_share(arguments, shard)
    if arguments.store == "none" and arguments.resume is not None:
        raise InputError("--resume goes on with a stored run; name its store with --store")
    arguments.refuse_options_of_clusters()
    refuse_compressed(arguments.events, "--events", "each event is appended as it happens, which no archive can take")
    needs_store = must_store(arguments)
    arguments = arguments.changed(store=named_store(arguments, must_store=needs_store))
    report = asked_report(arguments)
    _ = arguments.asked  # packing or fetching a database may take long, so wrong options are refused before
    return Prepared(arguments, shard, needs_store, report)


@dataclass
class Comparison:
    """A search in progress whose queries are sequences of a database.

    Attributes
    ----------
    searcher : PlannedSearch
    queries : QueriesByFile
    running : CommandRun
    """

    searcher: PlannedSearch
    queries: QueriesByFile
    running: CommandRun
    _found: Survey

    def execute(self, steps: Sequence[Step], *, resume_finished: bool = False) -> RunOutcome:
        """Search all queries, and give each result to the steps."""
        from swsearch.run import perform

        with self.running.searching(
            self.queries, self.searcher, self._found, search_repeated=True, resume_finished=resume_finished,
            stored_too=bool(steps),
        ) as run:  # fmt: skip
            perform(steps, run.info, run)
        return run.outcome


@contextmanager
def compared(
    asked: Prepared,
    subjects: PackedDatabase,
    query_residues: int,
    queries_of: Callable[[PlannedSearch], QueriesByFile],
) -> Iterator[Comparison]:
    """Open the engine for a search, and survey its queries.

    Parameters
    ----------
    asked : Prepared
    subjects : PackedDatabase
        The database that is searched.
    query_residues : int
        About the number of residues of all queries.
    queries_of : callable
        The queries of an open search.

    Raises
    ------
    InputError
        There are no E-values, and nothing else that chooses the hits.
    """
    arguments = asked.arguments
    with ExitStack() as stack:
        processes = stack.enter_context(gpu_processes(arguments, subjects.n_residues, query_residues, lambda _: True))
        warm_up(arguments, subjects, query_residues, processes)

        from swsearch.cli.command_run import command_run
        from swsearch.run import survey

        running = stack.enter_context(command_run(arguments, asked.shard, must_store=asked.must_store))
        searcher = running.stack.enter_context(open_searcher(arguments, subjects, query_residues, processes))
        _refuse_everything(searcher)
        queries = queries_of(searcher)
        found = survey(queries, searcher, asked.shard, force_alphabet=True, skip_refused=False)
        yield Comparison(searcher, queries, running, found)


def _refuse_everything(searcher: PlannedSearch) -> None:
    """Refuse a search that would report every pair, because there are no E-values by which to choose."""
    if searcher.run_info("").lam is None and searcher.options.min_score is None:
        reason = searcher.run_info("").statistics
        raise InputError(f"there are no E-values, so that every pair would be reported; cut by --min-score ({reason})")

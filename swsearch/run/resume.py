"""The selection of the run of the store to which a search writes: a new run, or an earlier run that it resumes.

A run is resumed only by the same search (matrix, costs, options, database), for the same shard of the same queries, and
while no other process works on it. Otherwise it is refused, with a message about the difference, before anything is
changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from swsearch.errors import RunTaken, StoreError
from swsearch.hits.result import RunInfo
from swsearch.hits.shards import AskedQueries, is_queued_again, query_digest
from swsearch.run.surveys import refusal
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.queries import Queries
from swsearch.sequences.record import SequenceRecord
from swsearch.words import quoted

if TYPE_CHECKING:  # the store imports SQLAlchemy, which takes longer than many searches
    from swsearch.store.runs import StoredRun
    from swsearch.store.store import Store


def open_run(
    store: Store,
    info: RunInfo,
    resume: str | None,
    asked: AskedQueries,
    queries: Queries,
    searcher: PlannedSearch,
    notify: Callable[[str], None],
    *,
    or_finished: bool = False,
) -> tuple[int, bool]:
    """The id of the run to write to, which is marked as in use by this process, and whether it existed before.

    With ``latest``, a shard that has a finished run continues this run, in which nothing is missing; with
    ``or_finished``, so does a search of all queries. A run of another machine is continued if a scheduler has queued
    this job again and the run has the same command line.

    A run of the same databases before compactions is of the same search, because these do not change hits. A run of
    other queries raises StoreError, before it is changed.
    """
    shard = asked.shard

    def obstacle(run: StoredRun) -> str | None:
        """The reason why this search cannot resume a run; None if it can."""
        found = run.info
        if searcher.database.has_content(found.database.digests):
            found = replace(found, database=info.database)
        difference = info.differences(found)
        if difference:
            return f"is of another search: {difference}; leave --resume out"
        if run.asked is not None and not shard.contains(run.asked.shard):
            return f"is shard {run.asked.shard}, which is not in --shard {shard}; give the shard that it began with"
        foreign = next((number for number in store.results.committed(run.id) if not shard.holds(number)), None)
        if foreign is not None:
            return f"has query {foreign}, which is not of --shard {shard}; give the shard that it began with"
        return None

    def was_left(run: StoredRun) -> bool:
        """Whether a run of another machine is that of an earlier attempt of this job, which the scheduler has ended."""
        return is_queued_again(os.environ) and not run.process.is_here and run.info.command == info.command

    def check(run: StoredRun) -> None:
        """Raise StoreError for a run of other queries."""
        known = None if run.asked is None else run.asked.digest
        if known != asked.digest:
            check_queries(queries, searcher, store, run.id)

    def resumed(run: StoredRun) -> tuple[int, bool]:
        store.runs.resume(run.id, run)
        if asked.digest is not None:
            store.runs.note_asked(run.id, asked)
        return run.id, True

    def has_these(run: StoredRun) -> bool:
        """Whether the queries of the run are those of this search."""
        try:
            check(run)
        except StoreError:
            return False
        return True

    if resume == "latest" and (shard.count > 1 or or_finished) and asked.digest is not None:
        # A job array that is submitted again, or a task that is queued again after its end, has nothing left to do.
        # Without this, it would store its shard a second time, and `runs merge` would refuse both.
        done = [
            run.id for run in store.runs.all() if run.state == "finished" and run.asked == asked and not obstacle(run)
        ]
        resume = str(done[-1]) if done else resume
    while resume == "latest":
        unfinished = [
            run
            for run in store.runs.all()
            if run.state != "finished" and _is_asked(run, asked) and obstacle(run) is None and has_these(run)
        ]
        left = [run for run in unfinished if run.state == "interrupted" or was_left(run)]
        if not left:
            if unfinished:
                notify(_at_work(unfinished[-1]))
            resume = None
            break
        with suppress(RunTaken):  # another process resumed the run in the meantime: search again
            return resumed(left[-1])
    if resume is None:
        return store.runs.start(info, asked), False
    run = store.runs.get(resume)
    problem = obstacle(run)
    if problem is not None:
        raise StoreError(f"run {run.id} of {store.name} {problem}")
    if run.state == "running":
        if run.process.is_here:
            raise StoreError(
                f"run {run.id} of {store.name} is being worked on by {run.process}; wait for it or stop it"
            )
        # Two processes that work on one run do not damage it: a query is stored once, and the second process that
        # stores it ends with an error.
        notify(f"run {run.id} was left to {run.process}, which cannot be seen from here; going on with it")
    check(run)
    return resumed(run)


def _is_asked(run: StoredRun, asked: AskedQueries) -> bool:
    """Whether a run has the same shard and is not known to have other queries."""
    if run.asked is None:
        return True
    digests = {run.asked.digest, asked.digest} - {None}
    return run.asked.shard == asked.shard and len(digests) < 2


def _at_work(run: StoredRun) -> str:
    """The message if a run of the same search is not resumed because another process works on it."""
    known = f"run {run.id} of the same search is being worked on by {run.process}; this is a new run"
    return known if run.process.is_here else f"{known}; if that process is gone, `--resume {run.id}` goes on with it"


def check_queries(files: Queries, searcher: PlannedSearch, store: Store, run_id: int) -> None:
    """Raise StoreError if the files do not contain the queries of a run; reads all files."""
    committed = store.results.committed(run_id)
    n_read = 0
    for number, record in enumerate(files.records(searcher)):
        n_read += 1
        if number in committed and isinstance(record, SequenceRecord) and refusal(searcher, number, record) is None:
            check_query(searcher, store.name, run_id, number, record, committed[number])
    check_number(store.name, run_id, committed, n_read)


def check_query(
    searcher: PlannedSearch, store: str, run_id: int, number: int, record: SequenceRecord, digest: str
) -> None:
    """Raise StoreError if a run of the store of this name has another query with this number."""
    if digest != query_digest(record.header, searcher.as_searched(record).letters):
        problem = f"query {number} of run {run_id} of {store} is not {quoted(record.identifier)}"
        raise StoreError(f"{problem}; give the files that the run began with")


def check_number(store: str, run_id: int, committed: Collection[int], n_read: int) -> None:
    """Raise StoreError if a run of the store of this name has more queries than the files."""
    last = max(committed, default=-1)
    if last >= n_read:
        problem = f"run {run_id} of {store} has its query {last}, but the files given hold {n_read}"
        raise StoreError(f"{problem}; give the files that the run began with")

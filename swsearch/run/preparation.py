"""What precedes the search of a run: the query files are read once, and the run of the store is selected.

:func:`survey` takes the query files and a searcher, and returns a :class:`Survey`: the number of cells for the progress
bar, the digest of the queries for the store, and a sample of them for the engine's forecast. Files that cannot be
searched raise their errors here, before any work could be lost. The functions for single queries count, check and
compare them wherever a run reads its files.

:func:`open_run` begins a new run in the store, or resumes an earlier one: that of the same search (matrix, costs,
options, database), for the same shard of the same queries, while no other process works on it. Any other is refused,
with a message about the difference, before anything is changed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from swsearch.errors import InputError, RunTaken, StoreError
from swsearch.hits.result import RunInfo
from swsearch.hits.shards import AskedQueries, RecordCount, Shard, is_queued_again, query_digest
from swsearch.query.profile import PositionSpecificQuery
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.queries import Queries, located_refusal
from swsearch.sequences.fasta import SAMPLE_RESIDUES
from swsearch.sequences.record import InvalidRecord, SequenceRecord
from swsearch.words import counted, quoted

if TYPE_CHECKING:  # the store imports SQLAlchemy, which takes longer than many searches
    from swsearch.store.runs import StoredRun
    from swsearch.store.store import Store

WHOLE: Final = Shard()
"""The shard that contains all queries."""
SAMPLE_QUERIES: Final = 256
"""Largest number of queries in the sample of a survey, for the engine's forecast."""


@dataclass(frozen=True)
class Survey:
    """The result of a survey.

    Attributes
    ----------
    cells : int
        Number of cells of the alignment matrices of the shard's queries with all subjects.
    asked : AskedQueries
        Description of the files' queries and the shard.
    sample : tuple of SequenceRecord
        The first queries of the shard, at most :data:`SAMPLE_QUERIES`.
    notes : tuple of str
        Messages for the user, about profiles whose scores are not on the scale of the search's matrix.
    """

    cells: int
    asked: AskedQueries
    sample: tuple[SequenceRecord, ...]
    notes: tuple[str, ...]


def survey(
    files: Queries,
    searcher: PlannedSearch,
    shard: Shard = WHOLE,
    *,
    force_alphabet: bool = False,
    skip_refused: bool = True,
) -> Survey:
    """Read the query files once, before anything is computed or stored.

    Parameters
    ----------
    files : Queries
    searcher : PlannedSearch
    shard : Shard
        The shard of the queries that is searched.
    force_alphabet : bool
        Whether a file that looks like DNA is accepted as protein.
    skip_refused : bool
        Whether a record that cannot be searched is skipped; otherwise it raises an error.

    Raises
    ------
    InputError
        A file cannot be read, contains profiles that this search does not accept, or contains no query; or a record
        cannot be searched and ``skip_refused`` is False.
    AlphabetMismatch
        Queries must be protein, and a file looks like DNA.
    """
    cells = 0
    count = RecordCount()
    first: list[SequenceRecord] = []
    notes: list[str] = []
    for path, form, records in files.by_file(searcher):
        letters: list[str] = []
        n_sampled = 0
        for record in records:
            if isinstance(record, InvalidRecord):
                if not skip_refused:
                    raise located_refusal(path, record, searcher.requirements)
            else:
                if isinstance(record, PositionSpecificQuery) or not skip_refused:
                    searcher.check(record)
                if isinstance(record, PositionSpecificQuery):
                    from swsearch.query.scale import scale_note

                    notes += filter(None, [scale_note(record, searcher.scheme.matrix)])
                if shard.holds(count.n_queries):
                    cells += searcher.cells(record)
                    if len(first) < SAMPLE_QUERIES:
                        first.append(record)
                if n_sampled < SAMPLE_RESIDUES:
                    letters.append(record.letters)
                    n_sampled += len(record)
            add_to_count(count, record)
        if not force_alphabet:
            searcher.requirements.refuse_dna(path, "".join(letters), profiles=form != "fasta")
    if len(notes) > 1:
        notes = [f"{notes[0]}; the same holds for {counted(len(notes) - 1, 'other profile')}"]
    return Survey(cells, count.asked(shard), tuple(first), tuple(notes))


# --- single queries ---


def add_to_count(count: RecordCount, record: SequenceRecord | InvalidRecord) -> None:
    """Count a query and add it to the digest; for an invalid record, only the identifier is added."""
    if isinstance(record, SequenceRecord):
        count.add(record.header, record.letters)
    else:
        count.add(record.identifier, "")


def count_queries(files: Queries, searcher: PlannedSearch) -> AskedQueries:
    """The description of the files' queries; reads all files."""
    count = RecordCount()
    for record in files.records(searcher):
        add_to_count(count, record)
    return count.asked(WHOLE)


def refusal(searcher: PlannedSearch, number: int, record: SequenceRecord) -> InvalidRecord | None:
    """A readable sequence as an invalid record with its reason; None if it can be searched."""
    try:
        searcher.check(record)
    except InputError as error:
        return InvalidRecord("queries", number + 1, record.identifier, error.marked)
    return None


def query_key(record: SequenceRecord, searcher: PlannedSearch) -> bytes:
    """A key that is equal for queries with equal hits; it depends on case only if case affects the scores."""
    letters = record.letters if searcher.preparer.is_case_sensitive else record.letters.upper()
    key = hashlib.blake2b(letters.encode(), digest_size=16)
    if isinstance(record, PositionSpecificQuery):
        key.update(record.content)
    return key.digest()


# --- the run of the store ---


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

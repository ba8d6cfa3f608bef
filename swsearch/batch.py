"""Batches: thousands of queries in one run that can be interrupted, resumed, sharded and merged.

A batch numbers the queries of its files from 0, searches each that its run lacks, and commits it as it ends. So a batch
that was killed goes on where it stopped, and shards of one batch, each the queries of its share, are put together into
one run (:mod:`swsearch.merge`); both end with the same bytes as a batch that ran through. A query whose letters were
searched before in the run is not searched again. A record that is no sequence fails alone; the batch goes on and says
so at its end. Queries may be profiles; their scores are part of what makes a run the same search.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, TextIO

from swsearch.engine.protocol import Progress
from swsearch.errors import InputError, RunTaken, StoreError
from swsearch.hits.result import QueryResult, RunInfo, SearchStats
from swsearch.hits.share import AskedQueries, FailedQuery, QueryCount, Shard
from swsearch.profiles.scale import scale_note
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.search.options import TRANSLATE_ADVICE
from swsearch.search.query_file import QueryFiles
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import refuse_dna
from swsearch.sequences.fasta import SAMPLE_RESIDUES, RefusedRecord
from swsearch.sequences.record import SequenceRecord
from swsearch.store.repository import HitStore, StoredRun, query_digest

WHOLE: Final = Shard()
"""The share that is all queries."""
WINDOW: Final = 256
"""Queries that are read ahead: enough to find pairs of like length, few enough to hold."""


@dataclass
class BatchReport:
    """What a batch did.

    Attributes
    ----------
    run_id : int
    resumed : bool
        Whether the run was there before.
    n_done : int
        Queries committed now.
    n_before : int
        Queries that the run had already.
    n_repeated : int
        Queries among ``n_done`` whose letters the run had searched before.
    failed : list of RefusedRecord
        Records that could not be searched, with the reason.
    """

    run_id: int
    resumed: bool
    n_done: int = 0
    n_before: int = 0
    n_repeated: int = 0
    failed: list[RefusedRecord] = field(default_factory=list)


class EventLog:
    """JSON lines for scripts, one an event, written through at once; without a stream it says nothing.

    Every line has ``event`` (``start``, ``query``, ``failed``, ``end``) and ``seconds`` since the start.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._began = time.monotonic()

    def write(self, event: str, **values: Any) -> None:
        """Write one event."""
        if self._stream is not None:
            seconds = round(time.monotonic() - self._began, 3)
            self._stream.write(json.dumps({"event": event, "seconds": seconds, **values}) + "\n")
            self._stream.flush()


@dataclass(frozen=True)
class Survey:
    """What a batch has before it.

    Attributes
    ----------
    cells : int
        Cells that it scores if it scores all its queries; 0 where that is not known.
    asked : AskedQueries or None
        The queries of its files; None where they can be read only once.
    """

    cells: int
    asked: AskedQueries | None


def survey(
    files: QueryFiles,
    searcher: Searcher,
    shard: Shard,
    *,
    as_asked: bool = False,
    notify: Callable[[str], None] | None = None,
) -> Survey:
    """Read the files of a batch once, before anything is stored.

    Standard input can be read only once; a batch with it among its files is not surveyed. ``notify`` takes what a
    person should hear of profiles that are not on the scale of the search's matrix.

    Raises
    ------
    InputError
        A file cannot be read, or it holds profiles that this search cannot take.
    AlphabetMismatch
        The database is of proteins and a file reads like DNA, unless ``as_asked`` says that it is protein.
    """
    if files.have_stdin:
        return Survey(0, None)
    cells = 0
    count = QueryCount()
    notes: list[str] = []
    for path, form in zip(files.paths, files.formats, strict=True):
        sample: list[str] = []
        n_sampled = 0
        for record in QueryFiles((path,), (form,)).records(searcher.scheme, searcher.query_alphabet):
            if isinstance(record, PositionSpecificQuery):
                searcher.check(record)
                notes += filter(None, [scale_note(record, searcher.scheme.matrix)])
            if isinstance(record, SequenceRecord):
                cells += searcher.cells(record) if shard.holds(count.n_queries) else 0
                if n_sampled < SAMPLE_RESIDUES:
                    sample.append(record.letters)
                    n_sampled += len(record)
            _count(count, record)
        if not as_asked and form == "fasta":
            refuse_dna(path, "".join(sample), searcher.query_alphabet, advice=TRANSLATE_ADVICE)
    if notes and notify is not None:
        notify(notes[0] + (f" (so it is with {len(notes):,} of the profiles)" if len(notes) > 1 else ""))
    return Survey(cells, count.asked(shard))


def run_batch(
    files: QueryFiles | Sequence[str | os.PathLike[str]],
    searcher: Searcher,
    store: HitStore,
    command: str,
    *,
    resume: str | None = None,
    shard: Shard = WHOLE,
    asked: AskedQueries | None = None,
    notify: Callable[[str], None] | None = None,
    events: TextIO | None = None,
    progress: Progress | None = None,
    told: Callable[[BatchReport], None] | None = None,
) -> BatchReport:
    """Search every query of the files that the run lacks, and commit each as it ends.

    Parameters
    ----------
    files : QueryFiles or sequence of paths
        Query files, in an order that stays the same when the batch is resumed or sharded. Of paths the format is found
        out.
    searcher : Searcher
    store : HitStore
    command : str
        How the batch was asked for.
    resume : str, optional
        A run's id, which must be of the same search; or ``latest``: the newest unfinished run of the same search, a new
        one where there is none.
    shard : Shard
        The share of the queries to search.
    asked : AskedQueries, optional
        What :func:`survey` found of these files; without it they are read once more.
    notify : callable, optional
        Takes a sentence that a person should hear before the batch begins: of another process at work on the run.
    events : text stream, optional
        Takes a line of JSON for each event.
    progress : callable, optional
        Called with cells done; cells of queries that need no search are told as well.
    told : callable, optional
        Called with the report so far after each query.

    Raises
    ------
    InputError
        A query file cannot be read, or changed since it was surveyed; what was committed stays.
    StoreError
        The store cannot be written, or the run to resume is of another search or of other queries.
    """
    if not isinstance(files, QueryFiles):
        files = QueryFiles.of(files, "auto")
    info = searcher.run_info(command)
    info = replace(info, parameters={**info.parameters, **files.parameters(searcher.scheme)})
    former_digests = searcher.database.catalogue.former_digests
    if asked is None:
        asked = AskedQueries(shard) if files.have_stdin else _counted(files, searcher, shard)

    def check(run: StoredRun) -> None:
        known = None if run.asked is None else run.asked.digest
        if not files.have_stdin and known != asked.digest:
            _check_queries(files, searcher, store, run.id)

    report = _open_run(store, info, resume, asked, former_digests, notify or (lambda _: None), check)
    log = EventLog(events)
    log.write("start", run=report.run_id, resumed=report.resumed, database=info.database.path)
    committed = store.committed(report.run_id)
    report.n_before = len(committed)
    try:
        for result in _results(files, searcher, store, asked, report, committed, progress, log):
            store.add_query(report.run_id, result)
            report.n_done += 1
            log.write("query", number=result.number, id=result.header.split(" ", 1)[0], hits=len(result.hits))
            if told is not None:
                told(report)
    except BaseException:
        # The error under way is the one to tell; without the mark, a run whose process is gone is interrupted too.
        with suppress(StoreError):
            is_whole = store.run(report.run_id).n_missing == 0
            (store.finish_run if is_whole else store.interrupt_run)(report.run_id)
        raise
    store.finish_run(report.run_id)
    log.write("end", run=report.run_id, done=report.n_done, before=report.n_before, failed=len(report.failed))
    return report


def _open_run(
    store: HitStore,
    info: RunInfo,
    resume: str | None,
    asked: AskedQueries,
    former_digests: Sequence[str],
    notify: Callable[[str], None],
    check: Callable[[StoredRun], None],
) -> BatchReport:
    """The run to add to, new or old, marked as worked on by this process.

    ``former_digests`` are those that the database had before compactions, which change no hit. ``check`` raises
    StoreError where a run has other queries than those of this batch, before anything of the run is changed.
    """
    shard = asked.shard

    def obstacle(run: StoredRun) -> str | None:
        """Why this batch cannot go on with a run."""
        found = run.info
        if found.database.digest in former_digests:
            found = replace(found, database=info.database)
        difference = info.differences(found)
        if difference:
            return f"is of another search: {difference}; leave --resume out"
        if run.asked is not None and not shard.contains(run.asked.shard):
            return f"is share {run.asked.shard}, which is not in --shard {shard}; give the share that it began with"
        foreign = next((number for number in store.committed(run.id) if not shard.holds(number)), None)
        if foreign is not None:
            return f"has query {foreign}, which is not of --shard {shard}; give the share that it began with"
        return None

    def has_these(run: StoredRun) -> bool:
        """Whether the queries that the run has are of this batch."""
        try:
            check(run)
        except StoreError:
            return False
        return True

    while resume == "latest":
        unfinished = [
            run
            for run in store.runs()
            if run.state != "finished" and _is_asked(run, asked) and obstacle(run) is None and has_these(run)
        ]
        left = [run for run in unfinished if run.state == "interrupted"]
        if not left:
            if unfinished:
                notify(_at_work(unfinished[-1]))
            resume = None
            break
        with suppress(RunTaken):  # by another process that was started with this one, say: look again
            store.resume_run(left[-1].id, left[-1])
            if asked.digest is not None:
                store.note_asked(left[-1].id, asked)
            return BatchReport(left[-1].id, resumed=True)
    if resume is None:
        return BatchReport(store.start_run(info, asked), resumed=False)
    run = store.run(resume)
    problem = obstacle(run)
    if problem is not None:
        raise StoreError(f"run {run.id} of {store.name} {problem}")
    if run.state == "running":
        if run.worker.is_here:
            raise StoreError(f"run {run.id} of {store.name} is being worked on by {run.worker}; wait for it or stop it")
        # Two at one run would do no harm: a query is stored once, and the second to store one ends with an error.
        notify(f"run {run.id} was left to {run.worker}, which cannot be seen from here; going on with it")
    check(run)
    store.resume_run(run.id, run)
    if asked.digest is not None:
        store.note_asked(run.id, asked)
    return BatchReport(run.id, resumed=True)


def _is_asked(run: StoredRun, asked: AskedQueries) -> bool:
    """Whether a run was asked for the very queries of this batch, as far as is known."""
    if run.asked is None:
        return True
    digests = {run.asked.digest, asked.digest} - {None}
    return run.asked.shard == asked.shard and len(digests) < 2


def _at_work(run: StoredRun) -> str:
    """What to say where a run of the same search is not taken up because a process is at work on it."""
    known = f"run {run.id} of the same search is being worked on by {run.worker}; this is a new run"
    return known if run.worker.is_here else f"{known}; if that process is gone, `--resume {run.id}` goes on with it"


def _results(
    files: QueryFiles,
    searcher: Searcher,
    store: HitStore,
    asked: AskedQueries,
    report: BatchReport,
    committed: dict[int, str],
    progress: Progress | None,
    log: EventLog,
) -> Iterator[QueryResult]:
    """Results of the queries that the run lacks; the caller commits each before it takes the next."""
    first_with: dict[bytes, int] = {}
    window: list[tuple[int, SequenceRecord]] = []
    count = QueryCount()
    for number, record in enumerate(files.records(searcher.scheme, searcher.query_alphabet)):
        _count(count, record)
        if not asked.shard.holds(number):
            continue
        refused = record if isinstance(record, RefusedRecord) else _refused(searcher, number, record)
        if refused is not None:
            report.failed.append(refused)
            store.add_failure(report.run_id, FailedQuery(number, str(refused)))
            log.write("failed", number=number, reason=str(refused))
            continue
        assert isinstance(record, SequenceRecord)
        if number in committed:
            _check_query(searcher, store, report.run_id, number, record, committed[number])
            first_with.setdefault(_query_key(record, searcher), number)
            if progress is not None:
                progress(searcher.cells(record))
            continue
        window.append((number, record))
        if len(window) == WINDOW:
            yield from _search_window(window, searcher, store, report, first_with, progress)
            window = []
    _check_number(store, report.run_id, committed, count.n_queries)
    read = count.asked(asked.shard)
    if asked.digest is None:
        store.note_asked(report.run_id, read)
    elif read != asked:
        raise InputError("the query files changed while they were read; run the batch again when they stay as they are")
    yield from _search_window(window, searcher, store, report, first_with, progress)


def _search_window(
    window: list[tuple[int, SequenceRecord]],
    searcher: Searcher,
    store: HitStore,
    report: BatchReport,
    first_with: dict[bytes, int],
    progress: Progress | None,
) -> Iterator[QueryResult]:
    """Results of some queries; those whose letters the run has are taken from the store, after the others."""
    new: list[tuple[int, SequenceRecord]] = []
    repeated: list[tuple[int, SequenceRecord]] = []
    for number, record in window:
        known = first_with.setdefault(_query_key(record, searcher), number)
        (new if known == number else repeated).append((number, record))
    results = searcher.search([record for _, record in new], progress)
    for (number, _), result in zip(new, results, strict=True):
        yield replace(result, number=number)
    for number, record in repeated:
        source = store.query(report.run_id, first_with[_query_key(record, searcher)])
        report.n_repeated += 1
        if progress is not None:
            progress(searcher.cells(record))
        stats = SearchStats(cells=0, score_seconds=0.0, total_seconds=0.0, n_rescored=0)
        letters = searcher.as_searched(record).letters
        yield replace(source, number=number, header=record.header, letters=letters, stats=stats)


def _count(count: QueryCount, record: SequenceRecord | RefusedRecord) -> None:
    if isinstance(record, SequenceRecord):
        count.add(record.header, record.letters)
    else:
        count.add(record.identifier, "")


def _counted(files: QueryFiles, searcher: Searcher, shard: Shard) -> AskedQueries:
    """The queries of the files, which are read for it."""
    count = QueryCount()
    for record in files.records(searcher.scheme, searcher.query_alphabet):
        _count(count, record)
    return count.asked(shard)


def _check_queries(files: QueryFiles, searcher: Searcher, store: HitStore, run_id: int) -> None:
    """Raise StoreError where the files do not hold what a run has; they are read for it."""
    committed = store.committed(run_id)
    n_read = 0
    for number, record in enumerate(files.records(searcher.scheme, searcher.query_alphabet)):
        n_read += 1
        if number in committed and isinstance(record, SequenceRecord) and _refused(searcher, number, record) is None:
            _check_query(searcher, store, run_id, number, record, committed[number])
    _check_number(store, run_id, committed, n_read)


def _check_query(
    searcher: Searcher, store: HitStore, run_id: int, number: int, record: SequenceRecord, digest: str
) -> None:
    """Raise StoreError where a run has another query of this number."""
    if digest != query_digest(record.header, searcher.as_searched(record).letters):
        problem = f"query {number} of run {run_id} of {store.name} is not {record.identifier!r}"
        raise StoreError(f"{problem}; give the files that the run began with")


def _check_number(store: HitStore, run_id: int, committed: Collection[int], n_read: int) -> None:
    """Raise StoreError where a run has more queries than the files."""
    last = max(committed, default=-1)
    if last >= n_read:
        problem = f"run {run_id} of {store.name} has its query {last}, but the files given hold {n_read}"
        raise StoreError(f"{problem}; give the files that the run began with")


def _refused(searcher: Searcher, number: int, record: SequenceRecord) -> RefusedRecord | None:
    """Why a readable sequence cannot be searched, if it cannot."""
    try:
        searcher.check(record)
    except InputError as error:
        return RefusedRecord("query", number, record.identifier, str(error))
    return None


def _query_key(record: SequenceRecord, searcher: Searcher) -> bytes:
    """The same for queries that have the same hits: where case does not score, it does not count."""
    key = hashlib.blake2b((record.letters if searcher.case_counts else record.letters.upper()).encode(), digest_size=16)
    if isinstance(record, PositionSpecificQuery):
        key.update(record.scores.tobytes())
    return key.digest()

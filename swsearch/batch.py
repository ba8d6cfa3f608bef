"""Batches: thousands of queries in one run that can be interrupted, resumed, sharded and merged.

A batch numbers the queries of its files from 0, searches each that its run lacks, and commits it as it ends. So a
batch that was killed goes on where it stopped, and shards of one batch, each the queries of its share, are put
together into one run; both end with the same bytes as a batch that ran through. A query whose letters were searched
before in the run is not searched again. A record that is no sequence fails alone; the batch goes on and says so at its
end. Queries may be profiles; their scores are part of what makes a run the same search.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, TextIO

from swsearch.engine.protocol import Progress
from swsearch.errors import InputError, StoreError
from swsearch.hits.result import QueryResult, RunInfo, SearchStats
from swsearch.profiles.scale import scale_note
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.search.query_file import QueryFiles, known_letters
from swsearch.search.searcher import Searcher
from swsearch.sequences.fasta import SAMPLE_RESIDUES, RefusedRecord
from swsearch.sequences.record import SequenceRecord
from swsearch.store.repository import HitStore, StoredRun, query_digest

MAX_SHARD_DIGITS: Final = 9
WINDOW: Final = 256
"""Queries that are read ahead: enough to find pairs of like length, few enough to hold."""


@dataclass(frozen=True)
class Shard:
    """The ``index``-th of ``count`` shares of a batch, from 1: every ``count``-th query.

    >>> Shard.parse("2/4").holds(5), Shard.parse("2/4").holds(6)
    (True, False)
    """

    index: int = 1
    count: int = 1

    @staticmethod
    def parse(text: str) -> Shard:
        """From ``i/n``.

        Raises
        ------
        InputError
            It is no ``i/n`` with 1 ≤ i ≤ n.
        """
        index, slash, count = text.partition("/")
        numbers = all(part.isascii() and part.isdecimal() and len(part) <= MAX_SHARD_DIGITS for part in (index, count))
        if slash and numbers and 1 <= int(index) <= int(count):
            return Shard(int(index), int(count))
        raise InputError(f"--shard {text[:40]!r}: give i/n with 1 <= i <= n, such as 2/8")

    def holds(self, number: int) -> bool:
        """Whether the query of this number belongs to the share."""
        return number % self.count == self.index - 1


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


def survey(
    files: QueryFiles,
    searcher: Searcher,
    shard: Shard,
    *,
    as_asked: bool = False,
    notify: Callable[[str], None] | None = None,
) -> int:
    """Cells that a batch scores if it scores all its queries; reads the files once, before anything is stored.

    Standard input can be read only once; a batch with it among its files is not surveyed, and 0 is returned. ``notify``
    takes what a person should hear of profiles that are not on the scale of the search's matrix.

    Raises
    ------
    InputError
        A file cannot be read, or it holds profiles that this search cannot take.
    AlphabetMismatch
        The database is of proteins and a file reads like DNA, unless ``as_asked`` says that it is protein.
    """
    if files.have_stdin:
        return 0
    cells = number = 0
    notes: list[str] = []
    for path, form in zip(files.paths, files.formats, strict=True):
        sample: list[str] = []
        n_sampled = 0
        for record in QueryFiles((path,), (form,)).records(searcher.scheme, searcher.needs):
            if isinstance(record, PositionSpecificQuery):
                searcher.check(record)
                notes += filter(None, [scale_note(record, searcher.scheme.matrix)])
            if isinstance(record, SequenceRecord):
                cells += searcher.cells(record) if shard.holds(number) else 0
                if n_sampled < SAMPLE_RESIDUES:
                    sample.append(record.letters if form == "fasta" else known_letters(record))
                    n_sampled += len(record)
            number += 1
        if not as_asked:
            searcher.needs.refuse_dna(path, "".join(sample), profiles=form != "fasta")
    if notes and notify is not None:
        notify(notes[0] + (f" (so it is with {len(notes):,} of the profiles)" if len(notes) > 1 else ""))
    return cells


def run_batch(
    files: QueryFiles | Sequence[str | os.PathLike[str]],
    searcher: Searcher,
    store: HitStore,
    command: str,
    *,
    resume: str | None = None,
    shard: Shard = Shard(),
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
        A query file cannot be read; what was committed stays.
    StoreError
        The store cannot be written, or the run to resume is of another search or of other queries.
    """
    if not isinstance(files, QueryFiles):
        files = QueryFiles.of(files, "auto")
    info = searcher.run_info(command)
    info = replace(info, parameters={**info.parameters, **files.parameters(searcher.scheme)})
    former_digests = searcher.database.catalogue.former_digests
    report = _open_run(store, info, resume, shard, former_digests, notify or (lambda _: None))
    log = EventLog(events)
    log.write("start", run=report.run_id, resumed=report.resumed, database=info.database.path)
    committed = store.committed(report.run_id)
    report.n_before = len(committed)
    try:
        for result in _results(files, searcher, store, shard, report, committed, progress, log):
            store.add_query(report.run_id, result)
            report.n_done += 1
            log.write("query", number=result.number, id=result.header.split(" ", 1)[0], hits=len(result.hits))
            if told is not None:
                told(report)
    except BaseException:
        # The error under way is the one to tell; without the mark, a run whose process is gone is interrupted too.
        with suppress(StoreError):
            store.interrupt_run(report.run_id)
        raise
    store.finish_run(report.run_id)
    log.write("end", run=report.run_id, done=report.n_done, before=report.n_before, failed=len(report.failed))
    return report


def merge_runs(targets: HitStore, sources: Sequence[tuple[HitStore, StoredRun]], command: str) -> int:
    """One new run with the queries of all ``sources``, in the order of their numbers; its id.

    It is finished if they all are, and interrupted otherwise.

    Raises
    ------
    StoreError
        The runs are of different searches, or two hold the same query.
    """
    if not sources:
        raise StoreError("there is nothing to merge; name the stores of the shards")
    first = sources[0][1].info
    numbers: set[int] = set()
    for store, run in sources:
        difference = _difference(first, run.info)
        if difference:
            raise StoreError(f"run {run.id} of {store.name} is of another search than the first: {difference}")
        here = set(store.committed(run.id))
        both = numbers & here
        if both:
            raise StoreError(f"query {min(both)} is in run {run.id} of {store.name} and in an earlier one")
        numbers |= here
    merged = targets.start_run(replace(first, command=command))
    try:
        for store, run in sources:
            for result in store.queries(run.id):
                targets.add_query(merged, result)
    except BaseException:
        targets.delete_run(merged)
        raise
    if all(run.state == "finished" for _, run in sources):
        targets.finish_run(merged)
    else:
        targets.interrupt_run(merged)
    return merged


def missing_numbers(store: HitStore, run_id: int) -> list[int]:
    """Numbers below the largest that a run lacks: queries that failed, or shards that were not merged."""
    numbers = store.committed(run_id)
    return [number for number in range(max(numbers, default=-1)) if number not in numbers]


def _open_run(
    store: HitStore,
    info: RunInfo,
    resume: str | None,
    shard: Shard,
    former_digests: Sequence[str],
    notify: Callable[[str], None],
) -> BatchReport:
    """The run to add to, new or old, marked as worked on by this process.

    ``former_digests`` are those that the database had before compactions, which change no hit.
    """

    def obstacle(run: StoredRun) -> str | None:
        """Why this batch cannot go on with a run."""
        found = run.info
        if found.database.digest in former_digests:
            found = replace(found, database=info.database)
        difference = _difference(info, found)
        if difference:
            return f"is of another search: {difference}; leave --resume out"
        foreign = next((number for number in store.committed(run.id) if not shard.holds(number)), None)
        if foreign is not None:
            share = f"--shard {shard.index}/{shard.count}"
            return f"has query {foreign}, which is not of {share}; give the share that it began with"
        return None

    if resume == "latest":
        unfinished = [run for run in store.runs() if run.state != "finished" and obstacle(run) is None]
        left = [run for run in unfinished if run.state == "interrupted"]
        if unfinished and not left:
            notify(_at_work(unfinished[-1]))
        resume = str(left[-1].id) if left else None
    if resume is None:
        return BatchReport(store.start_run(info), resumed=False)
    run = store.run(resume)
    problem = obstacle(run)
    if problem is not None:
        raise StoreError(f"run {run.id} of {store.name} {problem}")
    if run.state == "running":
        if run.worker.is_here:
            raise StoreError(f"run {run.id} of {store.name} is being worked on by {run.worker}; wait for it or stop it")
        # Two at one run would do no harm: a query is stored once, and the second to store one ends with an error.
        notify(f"run {run.id} was left to {run.worker}, which cannot be seen from here; going on with it")
    store.resume_run(run.id)
    return BatchReport(run.id, resumed=True)


def _at_work(run: StoredRun) -> str:
    """What to say where a run of the same search is not taken up because a process is at work on it."""
    known = f"run {run.id} of the same search is being worked on by {run.worker}; this is a new run"
    return known if run.worker.is_here else f"{known}; if that process is gone, `--resume {run.id}` goes on with it"


def _difference(wanted: RunInfo, found: RunInfo) -> str:
    """What makes two runs different searches; empty where nothing does."""
    pairs = {
        "database": (wanted.database.digest[:12], found.database.digest[:12]),
        "matrix": (wanted.matrix_scores, found.matrix_scores),
        "gap costs": ((wanted.gap_open, wanted.gap_extend), (found.gap_open, found.gap_extend)),
        "search space": (wanted.search_space, found.search_space),
        "program": (wanted.program, found.program),
        **{
            f"--{name.replace('_', '-')}": (wanted.parameters.get(name), found.parameters.get(name))
            for name in sorted({*wanted.parameters, *found.parameters})
        },
    }
    if "--chosen-digest" in pairs:
        pairs["the choice of subjects"] = pairs.pop("--chosen-digest")
        del pairs["--chosen-subjects"]
    if "--query-digest" in pairs:
        pairs["what the profiles score"] = pairs.pop("--query-digest")
    different = [name for name, (one, other) in pairs.items() if one != other]
    return ", ".join(f"{name} differs" for name in different)


def _results(
    files: QueryFiles,
    searcher: Searcher,
    store: HitStore,
    shard: Shard,
    report: BatchReport,
    committed: dict[int, str],
    progress: Progress | None,
    log: EventLog,
) -> Iterator[QueryResult]:
    """Results of the queries that the run lacks; the caller commits each before it takes the next."""
    first_with: dict[bytes, int] = {}
    window: list[tuple[int, SequenceRecord]] = []
    n_read = 0
    for number, record in enumerate(files.records(searcher.scheme, searcher.needs)):
        n_read = number + 1
        if not shard.holds(number):
            continue
        refused = record if isinstance(record, RefusedRecord) else _refused(searcher, number, record)
        if refused is not None:
            report.failed.append(refused)
            log.write("failed", number=number, reason=str(refused))
            continue
        assert isinstance(record, SequenceRecord)
        if number in committed:
            if committed[number] != query_digest(record.header, searcher.as_searched(record).letters):
                problem = f"query {number} of run {report.run_id} of {store.name} is not {record.identifier!r}"
                raise StoreError(f"{problem}; give the files that the run began with")
            first_with.setdefault(_query_key(record, searcher), number)
            if progress is not None:
                progress(searcher.cells(record))
            continue
        window.append((number, record))
        if len(window) == WINDOW:
            yield from _search_window(window, searcher, store, report, first_with, progress)
            window = []
    last = max(committed, default=-1)
    if last >= n_read:
        problem = f"run {report.run_id} of {store.name} has its query {last}, but the files given hold {n_read}"
        raise StoreError(f"{problem}; give the files that the run began with")
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

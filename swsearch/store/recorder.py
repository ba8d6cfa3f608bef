"""One run being written to a store: started when the block begins, finished or marked interrupted when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from swsearch.errors import StoreError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.hits.share import AskedQueries
from swsearch.store.repository import HitStore


@dataclass
class RunRecorder:
    """Where the results of a run go.

    Attributes
    ----------
    store : HitStore
    run_id : int
    n_added : int
        Queries committed so far.
    """

    store: HitStore
    run_id: int
    n_added: int = 0

    def add(self, result: QueryResult) -> None:
        """Commit one query with all its hits.

        Raises
        ------
        StoreError
            The store cannot be written.
        """
        self.store.add_query(self.run_id, result)
        self.n_added += 1

    def note(self, sentence: str) -> None:
        """Add a sentence to what the run says of its statistics.

        Raises
        ------
        StoreError
            The store cannot be written.
        """
        self.store.note_statistics(self.run_id, sentence)


@contextmanager
def recorded_run(store: HitStore, info: RunInfo, asked: AskedQueries | None = None) -> Iterator[RunRecorder]:
    """Record a run of the queries ``asked`` in ``store``.

    If the block raises, the added queries remain and the run is marked interrupted. If all queries of ``asked`` had
    been added, as when the reader of the results closes the pipe early, it is marked finished.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    recorder = RunRecorder(store, store.start_run(info, asked))
    try:
        yield recorder
    except BaseException:
        # The first error is the one to report; if the mark cannot be written, the run remains `running`.
        with suppress(StoreError):
            if asked is not None and recorder.n_added == asked.n_of_share:
                store.finish_run(recorder.run_id)
            else:
                store.interrupt_run(recorder.run_id)
        raise
    store.finish_run(recorder.run_id)

"""One run being written to a store: started when the block begins, finished or marked interrupted when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from swsearch.errors import StoreError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.store.repository import HitStore


@dataclass(frozen=True)
class RunRecorder:
    """Where the results of a run go.

    Attributes
    ----------
    store : HitStore
    run_id : int
    """

    store: HitStore
    run_id: int

    def add(self, result: QueryResult) -> None:
        """Commit one query with all its hits.

        Raises
        ------
        StoreError
            The store cannot be written.
        """
        self.store.add_query(self.run_id, result)

    def note(self, sentence: str) -> None:
        """Add a sentence to what the run says of its statistics.

        Raises
        ------
        StoreError
            The store cannot be written.
        """
        self.store.note_statistics(self.run_id, sentence)


@contextmanager
def recorded_run(store: HitStore, info: RunInfo) -> Iterator[RunRecorder]:
    """Record a run in ``store``; where the block raises, what was added stays and the run is marked interrupted.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    recorder = RunRecorder(store, store.start_run(info))
    try:
        yield recorder
    except BaseException:
        # The error under way is the one to tell; a store that cannot take the mark shows the run as running.
        with suppress(StoreError):
            store.interrupt_run(recorder.run_id)
        raise
    store.finish_run(recorder.run_id)

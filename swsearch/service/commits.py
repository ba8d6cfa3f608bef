"""Results are stored beside the search: :class:`Commits`, a thread of a worker.

A store has one writer at a time, and the web process writes too. A worker that waited for its turn after each result
would leave its engine idle. Results that come while the thread waits are stored in one transaction, which takes a third
of the time; if more are about to come, the thread waits for a moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from swsearch.hits.result import QueryResult
from swsearch.store.leases import Completed
from swsearch.store.search_records import ClaimedQuery

MAX_WAITING: Final = 32
"""Number of results that may wait; the search then waits for the store."""
GROUP: Final = 8
LINGER_SECONDS: Final = 0.025
"""Number of results, and the longest time, for which the thread waits if more are about to come."""


class Commits:
    """The results of one worker on their way to the store.

    Parameters
    ----------
    store : callable
        Stores results, or raises StoreError.
    on_stored : callable
        Called, by the thread, with the queries whose results were handled.
    """

    def __init__(
        self,
        store: Callable[[Sequence[Completed]], object],
        on_stored: Callable[[Sequence[ClaimedQuery]], None],
    ) -> None:
        self._store = store
        self._on_stored = on_stored
        self._changed = threading.Condition()
        self._waiting: list[Completed] = []
        self._is_storing = False
        self._more_soon = False
        self._is_closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, query: ClaimedQuery, run_id: int, result: QueryResult, *, more_soon: bool = False) -> None:
        """Let a result be stored; ``more_soon`` says that others of its batch will follow.

        Raises
        ------
        StoreError
            An earlier one could not be stored; those that waited were discarded.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or len(self._waiting) < MAX_WAITING)
            self._raise_error()
            self._waiting.append(Completed(query, run_id, result))
            self._more_soon = more_soon
            if not more_soon or len(self._waiting) in (1, GROUP):
                self._changed.notify_all()

    def flush(self) -> None:
        """Return when everything is stored.

        Raises
        ------
        StoreError
            As :meth:`put`.
        """
        with self._changed:
            self._more_soon = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting and not self._is_storing)
            self._raise_error()

    def close(self) -> None:
        """End the thread, after what it stores at the moment."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _is_group(self) -> bool:
        return not self._more_soon or len(self._waiting) >= GROUP or self._is_closed

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._more_soon:
                    self._changed.wait_for(self._is_group, LINGER_SECONDS)
                if self._is_closed:
                    return
                taken, self._waiting = self._waiting, []
                self._is_storing = True
                self._changed.notify_all()
            error: BaseException | None = None
            try:
                self._store(taken)
                self._on_stored([completed.query for completed in taken])
            except BaseException as raised:
                error = raised
            with self._changed:
                self._is_storing = False
                if error is not None:
                    self._error = error
                    self._waiting = []
                self._changed.notify_all()

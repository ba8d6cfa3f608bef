"""Searches that are submitted at the same time are stored in one transaction: :class:`Submissions`.

SQLite has one writer at a time. Without this, a hundred submissions a second would leave a worker little time to store
its results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from swsearch.closeable import Closeable
from swsearch.errors import Refused
from swsearch.store.search_records import NewSearch, StoredSearch

Stored = tuple[StoredSearch, bool]
"""A stored search, and whether it is new."""


class Submissions(Closeable):
    """A thread that stores searches; those that come while others are being stored are stored together.

    Parameters
    ----------
    store_all : callable
        Stores searches in one transaction; returns each of them, or why it was refused.

    Attributes
    ----------
    waiting : list
        The searches that the next transaction will store.
    """

    def __init__(self, store_all: Callable[[Sequence[NewSearch]], Sequence[Stored | Refused]]) -> None:
        self._store_all = store_all
        self._changed = threading.Condition()
        self.waiting: list[tuple[NewSearch, Future[Stored]]] = []
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def store(self, search: NewSearch) -> Future[Stored]:
        """Let a search be stored; the future raises Refused or StoreError. May be called from any thread.

        A search whose future is cancelled while it waits is not stored.
        """
        future: Future[Stored] = Future()
        with self._changed:
            self.waiting.append((search, future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """End the thread, after it has stored what was submitted."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.waiting or self._is_closed)
                taken, self.waiting = self.waiting, []
            if not taken:
                return
            accepted = [(search, future) for search, future in taken if future.set_running_or_notify_cancel()]
            if not accepted:
                continue
            try:
                answers = self._store_all([search for search, _ in accepted])
            except BaseException as error:
                for _, future in accepted:
                    future.set_exception(error)
                continue
            for (_, future), answer in zip(accepted, answers, strict=True):
                if isinstance(answer, Refused):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

"""Searches that are submitted at the same time are stored in one transaction: :class:`Submissions`.

SQLite has one writer at a time. Without this, a hundred submissions a second would leave a worker little time to store
its results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swsearch.errors import Refused
from swsearch.store.search_records import NewSearch, StoredSearch

Answer = tuple[StoredSearch, bool] | Refused
"""A stored search and whether it is new, or why it was refused."""


@dataclass(eq=False)
class _Waiting:
    search: NewSearch
    answer: Answer | BaseException | None = None


class Submissions:
    """Stores searches; whoever comes while others are being stored waits, and is stored with all who waited.

    Parameters
    ----------
    store_all : callable
        Stores searches in one transaction, and returns the answer to each.

    Attributes
    ----------
    waiting : list
        Those who wait.
    """

    def __init__(self, store_all: Callable[[Sequence[NewSearch]], Sequence[Answer]]) -> None:
        self._store_all = store_all
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self.waiting: list[_Waiting] = []

    def store(self, search: NewSearch) -> tuple[StoredSearch, bool]:
        """Store a search; may be called from any thread.

        Raises
        ------
        Refused
            A limit is exceeded.
        StoreError
            The store cannot be used.
        """
        mine = _Waiting(search)
        with self._lock:
            self.waiting.append(mine)
        with self._turn:
            if mine.answer is None:
                self._store_those_who_wait()
        if isinstance(mine.answer, BaseException):
            raise mine.answer
        assert mine.answer is not None
        return mine.answer

    def _store_those_who_wait(self) -> None:
        with self._lock:
            taken, self.waiting = self.waiting, []
        answers: Sequence[Answer | BaseException]
        try:
            answers = self._store_all([each.search for each in taken])
        except BaseException as error:
            answers = [error] * len(taken)
        for each, answer in zip(taken, answers, strict=True):
            each.answer = answer

"""The runs of a store that may be deleted, so that a store that is used every day does not grow for ever."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from swsearch.store.records import StoredRun
from swsearch.store.repository import HitStore
from swsearch.store.service_models import SEARCHES
from swsearch.store.session import reading


def old_runs(store: HitStore, *, keep: int = 0, before: datetime | None = None) -> list[StoredRun]:
    """The runs that are not among the newest ``keep`` and began before ``before``, oldest first.

    Runs that a process works on, or may work on where this cannot be seen, are not among them, nor are those of a
    service's searches, which have a time of expiry of their own.

    Parameters
    ----------
    store : HitStore
    keep : int
        Number of runs to keep, counted from the newest one; runs of every state count.
    before : datetime, optional
        By default, runs of every age are old.
    """
    with reading(store._engine) as connection:
        of_searches = set(connection.execute(select(SEARCHES.c.run_id)).scalars())
    runs = [run for run in store.runs() if run.id not in of_searches]
    return [
        run
        for run in runs[: max(0, len(runs) - keep)]
        if not run.is_at_work and (before is None or run.started < before)
    ]

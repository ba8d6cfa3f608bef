"""The searches of a ticket: submissions of one client under one name, found again by their idempotency keys."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import or_, select, update

from swsearch.store.result_views import ResultViews
from swsearch.store.search_records import StoredSearch, stored_search
from swsearch.store.searches import SearchStore
from swsearch.store.service_models import CANCELLED, FAILED, SEARCHES
from swsearch.store.session import reading


class TicketStore(SearchStore, ResultViews):
    """A store with searches by idempotency key; parameters and errors are those of ``HitStore``."""

    def searches_under(self, owner: str, keys: Sequence[str]) -> list[StoredSearch | None]:
        """The owner's searches with these idempotency keys, in their order; None where there is none."""
        with reading(self._engine) as connection:
            mine = (SEARCHES.c.owner == owner) & SEARCHES.c.idempotency_key.in_(keys)
            found = {
                row.idempotency_key: stored_search(row) for row in connection.execute(select(SEARCHES).where(mine))
            }
        return [found.get(key) for key in keys]

    def release_failed(self, owner: str, keys: Sequence[str]) -> None:
        """Take these idempotency keys from the owner's searches that failed, wholly or in part, or were cancelled.

        The searches remain; a new submission under such a key is then a new search.
        """
        with self._writing() as connection:
            mine = (SEARCHES.c.owner == owner) & SEARCHES.c.idempotency_key.in_(keys)
            failed = or_(SEARCHES.c.state.in_((FAILED, CANCELLED)), SEARCHES.c.n_failed > 0)
            rows = select(SEARCHES.c.id).where(mine & failed).order_by(SEARCHES.c.id).with_for_update()
            ids = connection.execute(rows).scalars().all()
            connection.execute(update(SEARCHES).where(SEARCHES.c.id.in_(ids)).values(idempotency_key=None))

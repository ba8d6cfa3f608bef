"""What people read of searches: the first query's header in lists, and all queries to search with them again.

The queries of an unfinished search are in ``search_queries``, those of a finished one in its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from swsearch.store.models import QUERIES, RUNS
from swsearch.store.records import StoredRun
from swsearch.store.result_views import ResultViews
from swsearch.store.search_records import StoredSearch
from swsearch.store.searches import SearchStore
from swsearch.store.service_models import SEARCH_QUERIES, SEARCHES
from swsearch.store.session import reading


class PageStore(SearchStore, ResultViews):
    """A store with what the pages of a service show; parameters and errors are those of ``HitStore``."""

    def titles(self, searches: Sequence[StoredSearch]) -> dict[int, str]:
        """The header of the first query that is known of each search, by the search's ``id``."""
        ids = [search.id for search in searches]
        runs = [search.run_id for search in searches if search.run_id is not None]
        with reading(self._engine) as connection:
            waiting = _first(connection, SEARCH_QUERIES.c.search_id, SEARCH_QUERIES, ids)
            searched = _first(connection, QUERIES.c.run_id, QUERIES, runs)
        titles = {}
        for search in searches:
            known = [found for found in (waiting.get(search.id), searched.get(search.run_id or 0)) if found is not None]
            titles[search.id] = min(known)[1] if known else ""
        return titles

    def runs_without_search(self, limit: int) -> list[StoredRun]:
        """The newest runs that commands made."""
        with reading(self._engine) as connection:
            of_search = select(SEARCHES.c.run_id).where(SEARCHES.c.run_id == RUNS.c.id).exists()
            found = select(RUNS.c.id).where(~of_search).order_by(RUNS.c.id.desc()).limit(limit)
            ids = list(connection.execute(found).scalars())
        return [self.run(run_id) for run_id in ids]

    def fasta(self, search: StoredSearch) -> str:
        """The queries of a search as FASTA, in their order; of a cancelled search, those that were searched."""
        with reading(self._engine) as connection:
            waiting = select(SEARCH_QUERIES.c.number, SEARCH_QUERIES.c.header, SEARCH_QUERIES.c.letters)
            found = dict(_texts(connection, waiting.where(SEARCH_QUERIES.c.search_id == search.id)))
            if search.run_id is not None:
                searched = select(QUERIES.c.number, QUERIES.c.header, QUERIES.c.letters)
                found.update(_texts(connection, searched.where(QUERIES.c.run_id == search.run_id)))
        return _fasta(found)

    def run_fasta(self, run_id: int) -> str:
        """The searched queries of a run as FASTA, in their order."""
        with reading(self._engine) as connection:
            searched = select(QUERIES.c.number, QUERIES.c.header, QUERIES.c.letters)
            return _fasta(dict(_texts(connection, searched.where(QUERIES.c.run_id == run_id))))


def _fasta(queries: dict[int, tuple[str, str]]) -> str:
    return "".join(f">{header}\n{letters}\n" for _, (header, letters) in sorted(queries.items()))


def _first(connection: Connection, group: Any, table: Any, ids: Sequence[int]) -> dict[int, tuple[int, str]]:
    """Number and header of the first row of each group."""
    first: dict[int, tuple[int, str]] = {}
    for number in ids:
        found = select(table.c.number, table.c.header).where(group == number).order_by(table.c.number).limit(1)
        row = connection.execute(found).first()
        if row is not None:
            first[number] = (row.number, row.header)
    return first


def _texts(connection: Connection, found: Any) -> list[tuple[int, tuple[str, str]]]:
    return [(row.number, (row.header, row.letters)) for row in connection.execute(found)]

"""Pages of the hits of one query, sorted and filtered by the database: a page of 100,000 hits takes a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Double, and_, cast, func, select

from swsearch.errors import InputError, StoreError
from swsearch.hits.result import QueryResult
from swsearch.store.models import HITS, QUERIES, storable
from swsearch.store.records import hit_of, query_result
from swsearch.store.repository import HitStore
from swsearch.store.session import reading

_IDENTITY: Final = 100.0 * cast(HITS.c.identities, Double) / HITS.c.columns
_QUERY_SPAN: Final = HITS.c.query_end - HITS.c.query_start

SORT_KEYS: Final[Mapping[str, Any]] = {
    "rank": HITS.c.rank,
    "evalue": HITS.c.evalue,
    "bits": HITS.c.bits,
    "score": HITS.c.score,
    "identity": _IDENTITY,
    "query_coverage": _QUERY_SPAN,
    "query_start": HITS.c.query_start,
    "subject_length": HITS.c.subject_length,
    "subject": HITS.c.subject_header,
    "columns": HITS.c.columns,
}
"""The keys by which hits can be sorted; hits that are equal in the key keep the order of their ranks."""


@dataclass(frozen=True)
class HitFilter:
    """Which hits are listed.

    Attributes
    ----------
    text : str
        Part of the subject's header, in upper or lower case; empty for all.
    max_evalue, min_bits, min_identity, min_query_coverage : float, optional
        Identity and coverage are percentages, 0 to 100.
    """

    text: str = ""
    max_evalue: float | None = None
    min_bits: float | None = None
    min_identity: float | None = None
    min_query_coverage: float | None = None

    def conditions(self, query_length: int) -> list[Any]:
        """The conditions in SQL."""
        found: list[Any] = []
        if self.text:
            found.append(func.lower(HITS.c.subject_header).contains(storable(self.text.lower()), autoescape=True))
        if self.max_evalue is not None:
            found.append(HITS.c.evalue <= self.max_evalue)
        if self.min_bits is not None:
            found.append(HITS.c.bits >= self.min_bits)
        if self.min_identity is not None:
            found.append(_IDENTITY >= self.min_identity)  # noqa: SIM300 - the constant is an expression of columns
        if self.min_query_coverage is not None:
            found.append(100.0 * cast(_QUERY_SPAN, Double) / max(1, query_length) >= self.min_query_coverage)
        return found


ALL_HITS: Final = HitFilter()


class HitPages(HitStore):
    """A store that gives the hits of a query in pages; parameters and errors are those of ``HitStore``."""

    def hit_page(
        self,
        run_id: int,
        number: int,
        *,
        offset: int = 0,
        limit: int = 100,
        sort: str = "rank",
        descending: bool = False,
        chosen: HitFilter = ALL_HITS,
    ) -> tuple[QueryResult, int]:
        """A query with one page of its hits, and the number of hits of all pages.

        Parameters
        ----------
        run_id, number : int
            The run, and the query's number in it.
        offset, limit : int
            Number of hits before the page, and largest number on it.
        sort : str
            One of :data:`SORT_KEYS`.
        descending : bool
        chosen : HitFilter

        Raises
        ------
        InputError
            There is no such key.
        StoreError
            The run has no query with this number.
        """
        if sort not in SORT_KEYS:
            raise InputError(f"hits cannot be sorted by {sort!r}; choose {', '.join(SORT_KEYS)}")
        key = SORT_KEYS[sort]
        with reading(self._engine) as connection:
            wanted = (QUERIES.c.run_id == run_id) & (QUERIES.c.number == number)
            row = connection.execute(select(QUERIES).where(wanted)).first()
            if row is None:
                raise StoreError(f"{self.name}: run {run_id} has no query {number}")
            conditions = and_(HITS.c.query_id == row.id, *chosen.conditions(len(row.letters)))
            n_hits = row.n_hits
            if chosen != ALL_HITS:
                n_hits = connection.execute(select(func.count()).select_from(HITS).where(conditions)).scalar_one()
            order = [(key.desc() if descending else key.asc()).nulls_last(), HITS.c.rank, HITS.c.hsp]
            # The sort moves keys alone; rows with their letters are read for the page.
            places = select(HITS.c.rank, HITS.c.hsp).where(conditions).order_by(*order).limit(limit).offset(offset)
            page = connection.execute(places).all()
            of_page = and_(HITS.c.query_id == row.id, HITS.c.rank.in_({place.rank for place in page}))
            by_place = {(hit.rank, hit.hsp): hit for hit in connection.execute(select(HITS).where(of_page))}
            hits = tuple(hit_of(by_place[place.rank, place.hsp], row.header) for place in page)
            return query_result(row, hits), n_hits

    def query_list(self, run_id: int, offset: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """The committed queries of a run without their hits, in order: number, header, length, n_hits, n_passed."""
        with reading(self._engine) as connection:
            columns = (
                QUERIES.c.number,
                QUERIES.c.header,
                func.length(QUERIES.c.letters).label("length"),
                QUERIES.c.n_hits,
                QUERIES.c.n_passed,
            )
            found = select(*columns).where(QUERIES.c.run_id == run_id).order_by(QUERIES.c.number)
            return [dict(row._mapping) for row in connection.execute(found.limit(limit).offset(offset))]

"""The results of a store's runs: queries with their hits, and the repository :class:`Results`.

A query and its hits are committed together, so every query in the store is complete, even after the process was killed.
:meth:`Results.committed` lists these queries, so that the run can be resumed. Every row is checked before it is
converted to a record.

A result may have 100,000 hits and more, of which a page shows some dozens. Sorting and filtering are therefore left to
the database, and only the rows of the page become records (:meth:`Results.view`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sqlalchemy import ColumnElement, Connection, Float, Row, Select, bindparam, cast, func, select, tuple_

from swsearch.errors import HitsNotFound, StoreError
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import Pssm, QueryResult, SearchStats
from swsearch.hits.shards import Failure, Shard
from swsearch.sequences.headers import names_of
from swsearch.sequences.record import split_header
from swsearch.store.driver import Rows
from swsearch.store.models import FAILURES, HITS, QUERIES, checked, records
from swsearch.store.rows import ALIGNMENT_FIELDS, HIT_FIELDS, restored
from swsearch.store.run_file import HitWriter
from swsearch.store.runs import find_run
from swsearch.typing import Floats, Places
from swsearch.words import quoted

if TYPE_CHECKING:
    from swsearch.store.store import Store


def _percentage(part: ColumnElement[Any], whole: Any) -> ColumnElement[float]:
    percentage: ColumnElement[float] = 100.0 * cast(part, Float) / whole
    return percentage


_ON_QUERY: Final = HITS.c.query_end - HITS.c.query_start
_SORTED_BY: Final[dict[str, ColumnElement[Any]]] = {
    "id": func.lower(HITS.c.subject_header),
    "length": HITS.c.subject_length,
    "score": HITS.c.score,
    "bits": HITS.c.bits,
    "forward_bits": HITS.c.forward_bits,
    "evalue": HITS.c.evalue,
    "identity": _percentage(HITS.c.identities, HITS.c.columns),
    "query_coverage": _ON_QUERY,  # the hits are those of one query
    "subject_coverage": _percentage(HITS.c.subject_end - HITS.c.subject_start, HITS.c.subject_length),
    "columns": HITS.c.columns,
    "query_start": HITS.c.query_start,
    "subject_start": HITS.c.subject_start,
}
SORTS: Final = ("rank", *_SORTED_BY)
"""Values by which hits can be sorted. Hits of equal value are in the order of their ranks."""


@dataclass(frozen=True)
class HitFilter:
    """The hits that a page shows; a hit must fulfil all conditions.

    Attributes
    ----------
    text : str
        Text that the subject's header contains, in upper or lower case; empty for every header.
    taxid : int or None
        The taxonomy id after ``OX=`` in the subject's header.
    subjects : frozenset of int or None
        Indices of subjects in the database; None for all.
    max_evalue : float or None
        Largest E-value. Hits without E-value do not fulfil it.
    min_bits : float or None
        Lowest bit score. Hits without bit score do not fulfil it.
    min_identity, min_query_coverage : float or None
        Lowest percentages, 0 to 100, of the alignment.
    ranks : frozenset of int or None
        Ranks of subjects; None for all.
    """

    text: str = ""
    taxid: int | None = None
    subjects: frozenset[int] | None = None
    max_evalue: float | None = None
    min_bits: float | None = None
    min_identity: float | None = None
    min_query_coverage: float | None = None
    ranks: frozenset[int] | None = None

    def __bool__(self) -> bool:
        """Whether there is a condition."""
        return self != HitFilter()


@dataclass(frozen=True)
class HitView:
    """The order, the filter and the part of the hits that a page shows.

    Attributes
    ----------
    sort : str
        One of :data:`SORTS`.
    orders_alignments : bool
        Whether the order by rank is that of the E-values of alignments (:meth:`RunInfo.listed`), not of subjects.
    descending : bool
        Hits without a value come last in both directions.
    keep : HitFilter
    offset, limit : int
        Number of hits before the page, and largest number on it.
    """

    sort: str = "rank"
    descending: bool = False
    orders_alignments: bool = False
    keep: HitFilter = field(default_factory=HitFilter)
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True)
class ResultPage:
    """A page of hits.

    Attributes
    ----------
    query : QueryResult
        The query; its ``hits`` are those of the page, in the order of the view.
    n_matching : int
        Number of hits that the filter lets through.
    n_hits : int
        Number of hits of the query, one for each alignment.
    n_subjects : int
        Number of subjects among all hits of the query.
    """

    query: QueryResult
    n_matching: int
    n_hits: int
    n_subjects: int


@dataclass(frozen=True)
class QuerySummary:
    """One query of a run without its letters and hits.

    Attributes
    ----------
    number : int
        Index of the query in the run, from 0.
    header : str
    length : int
        Number of letters.
    n_hits, n_passed : int
        Number of stored alignments, and of subjects that passed the filters before the list was cut.
    best_header : str or None
        Header of the first subject; None if there are no hits.
    best_evalue : float or None
        Its E-value.
    best_bits : float or None
        Its bit score.
    """

    number: int
    header: str
    length: int
    n_hits: int
    n_passed: int
    best_header: str | None
    best_evalue: float | None
    best_bits: float | None


_QUERY: Final = select(QUERIES).where(QUERIES.c.run_id == bindparam("run"), QUERIES.c.number == bindparam("query"))
_OF_QUERY = HITS.c.query_id == bindparam("of")
_LAST_RANK: Final = select(func.max(HITS.c.rank)).where(_OF_QUERY)
_own_values: Final = attrgetter(*HIT_FIELDS)
_alignment_values: Final = attrgetter(*ALIGNMENT_FIELDS)


class Results(HitWriter):
    """The queries and hits of a store's runs, and the queries that could not be searched.

    A method with the number of a query raises :class:`HitsNotFound` if the run has no such query.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._store = store

    # --- all queries of a run ---

    def queries(self, run: str | int = "latest") -> Iterator[QueryResult]:
        """Results of a run's committed queries, in order of their numbers, one at a time.

        The results are those in the store when the first one was read. Only one query with its hits is in memory at a
        time.

        Raises
        ------
        RunNotFound
            There is no such run.
        """
        with self._store.reading() as connection:
            run_id = find_run(connection, run, self._store.name)
            of_run = select(QUERIES.c.id).where(QUERIES.c.run_id == run_id).order_by(QUERIES.c.number)
            for query_id in connection.execute(of_run).scalars().all():
                row = connection.execute(select(QUERIES).where(QUERIES.c.id == query_id)).one()
                yield query_result(row, tuple(_hits_of(connection, row)))

    def find(self, run_id: int, identifiers: Collection[str]) -> list[int]:
        """Numbers of a run's committed queries that have one of these identifiers or accessions.

        The names of a query are those of a subject with its header (:func:`swsearch.filters.subject_filters.names_of`).

        Raises
        ------
        StoreError
            No query has one of the identifiers.
        """
        wanted = set(identifiers)
        with self._store.reading() as connection:
            headers = select(QUERIES.c.number, QUERIES.c.header).where(QUERIES.c.run_id == run_id)
            rows = connection.execute(headers.order_by(QUERIES.c.number)).all()
        names = {row.number: set(names_of(split_header(row.header)[0])) for row in rows}
        known = set[str]().union(*names.values())
        for name in sorted(wanted - known):
            near = get_close_matches(name, sorted(known), n=1)
            similar = f"; {quoted(near[0])} is similar" if near else ""
            raise StoreError(f"{self._store.name}: run {run_id} has no query {quoted(name)}{similar}")
        return [number for number, names_of_query in names.items() if names_of_query & wanted]

    def committed(self, run_id: int) -> dict[int, str]:
        """Numbers of a run's committed queries, each with its :func:`query_digest`."""
        with self._store.reading() as connection:
            found = select(QUERIES.c.number, QUERIES.c.digest).where(QUERIES.c.run_id == run_id)
            return {row.number: row.digest for row in connection.execute(found.order_by(QUERIES.c.number))}

    def failures(self, run_id: int) -> list[Failure]:
        """The queries of a run that could not be searched, in the order of their numbers."""
        with self._store.reading() as connection:
            found = select(FAILURES.c.number, FAILURES.c.reason).where(FAILURES.c.run_id == run_id)
            return [Failure(row.number, row.reason) for row in connection.execute(found.order_by(FAILURES.c.number))]

    def missing(self, run_id: int) -> list[int]:
        """Numbers of the queries that a run is to search and has neither searched nor refused.

        Where it is not known which queries a run is to search, the result is the absent numbers below the largest
        present one: it includes queries that failed, and does not include queries at the end.
        """
        asked = self._store.runs.get(run_id).asked
        there = {*self.committed(run_id), *(failed.number for failed in self.failures(run_id))}
        if asked is None or asked.n_queries is None:
            shard = Shard() if asked is None else asked.shard
            return [number for number in shard.numbers(max(there, default=-1)) if number not in there]
        return [number for number in asked.shard.numbers(asked.n_queries) if number not in there]

    def fasta(self, run_id: int) -> str:
        """The searched queries of a run as FASTA, in their order."""
        with self._store.reading_rows() as rows:
            return as_fasta(letters_of_run(rows, run_id))

    # --- the result of one query, or a part of it for readers of a few hits ---

    def query(self, run_id: int, number: int) -> QueryResult:
        """The result of one committed query, with all its hits."""
        with self._reading_query(run_id, number) as (connection, row):
            return query_result(row, tuple(_hits_of(connection, row)))

    def view(self, run_id: int, number: int, view: HitView) -> ResultPage:
        """A page of the sorted and filtered hits of a query."""
        if view == HitView(offset=view.offset, limit=view.limit):
            with self._store.reading_rows() as rows:
                return self._ranked_page(rows, run_id, number, view)
        with self._reading_query(run_id, number) as (connection, row):
            return _read_page(connection, row, view)

    def _ranked_page(self, rows: Rows, run_id: int, number: int, view: HitView) -> ResultPage:
        """A page of hits by rank, which most answers of a service have."""
        found = records(rows, QUERIES, "WHERE run_id = ? AND number = ?", run_id, number)
        if not found:
            raise HitsNotFound(self._store.name, run_id, number)
        (query,) = found
        page = "WHERE query_id = ? ORDER BY rank, hsp LIMIT ? OFFSET ?"
        listed = records(rows, HITS, page, query.id, view.limit, view.offset)
        hits = tuple(hit_of(row, query.header) for row in listed)
        if hits and view.offset + len(hits) == query.n_hits:
            n_subjects = hits[-1].rank
        else:
            last = "SELECT COALESCE(MAX(rank), 0) FROM hits WHERE query_id = ?"
            (n_subjects,) = rows.execute(last, query.id).fetchone()
        return ResultPage(query_result(query, hits), query.n_hits, query.n_hits, n_subjects)

    def subject(self, run_id: int, number: int, rank: int) -> QueryResult:
        """A query with the alignments of the subject of this rank; without hits if there is no such subject."""
        with self._reading_query(run_id, number) as (connection, query):
            return query_result(query, tuple(_hits_of(connection, query, HITS.c.rank == rank)))

    def hits(self, run_id: int, number: int, keep: HitFilter) -> Iterator[Hit]:
        """The hits of a query that the filter lets through, by rank, one at a time."""
        with self._reading_query(run_id, number) as (connection, query):
            yield from _hits_of(connection, query, *_conditions(keep, query))

    def summaries(self, run_id: int, offset: int, limit: int) -> list[QuerySummary]:
        """Some queries of a run in order of their numbers; an unknown run has none."""
        best = (HITS.c.query_id == QUERIES.c.id) & (HITS.c.rank == 1) & (HITS.c.hsp == 1)
        columns = (
            QUERIES.c.number, QUERIES.c.header, func.length(QUERIES.c.letters), QUERIES.c.n_hits, QUERIES.c.n_passed,
            HITS.c.subject_header, HITS.c.evalue, HITS.c.bits,
        )  # fmt: skip
        found = select(*columns).select_from(QUERIES.outerjoin(HITS, best)).where(QUERIES.c.run_id == run_id)
        with self._store.reading() as connection:
            rows = connection.execute(found.order_by(QUERIES.c.number).offset(offset).limit(limit))
            return [QuerySummary(*row) for row in rows]

    def list_lengths(self, run_id: int) -> list[tuple[int, int]]:
        """The numbers of subjects that are listed and that passed, of each query of a run."""
        found = select(func.coalesce(func.max(HITS.c.rank), 0), QUERIES.c.n_passed)
        found = found.select_from(QUERIES.outerjoin(HITS, HITS.c.query_id == QUERIES.c.id))
        found = found.where(QUERIES.c.run_id == run_id).group_by(QUERIES.c.id, QUERIES.c.n_passed)
        with self._store.reading() as connection:
            return [(n_subjects, n_passed) for n_subjects, n_passed in connection.execute(found)]

    def neighbours(self, run_id: int, number: int) -> tuple[int | None, int | None]:
        """The numbers of the committed queries before and after a query; None where there is none."""
        number_of = QUERIES.c.number
        of_run = QUERIES.c.run_id == run_id
        with self._store.reading() as connection:
            before = connection.execute(select(func.max(number_of)).where(of_run, number_of < number)).scalar()
            after = connection.execute(select(func.min(number_of)).where(of_run, number_of > number)).scalar()
            return before, after

    def query_places(self, run_id: int, number: int) -> tuple[Places, Places]:
        """Starts and ends of the hits on the query, 0-based and half-open; int64, shape (n_hits,), by rank."""
        starts, ends = self._columns(run_id, number, HITS.c.query_start, HITS.c.query_end)
        return np.array(starts, np.int64), np.array(ends, np.int64)

    def subject_scores(self, run_id: int, number: int) -> tuple[Floats, Floats]:
        """Bit scores and E-values of the subjects; float64, shape (n_subjects,), NaN where there is none, by rank."""
        bits, evalues = self._columns(run_id, number, HITS.c.bits, HITS.c.evalue, of_subjects=True)
        return np.array(bits, np.float64), np.array(evalues, np.float64)  # None becomes NaN

    def subjects(self, run_id: int, number: int) -> list[tuple[int, str]]:
        """The subjects of a query, by rank: index in the database, and header."""
        columns = self._columns(run_id, number, HITS.c.subject_index, HITS.c.subject_header, of_subjects=True)
        return list(zip(*columns, strict=True))

    def _columns(
        self, run_id: int, number: int, *columns: ColumnElement[Any], of_subjects: bool = False
    ) -> Sequence[Sequence[Any]]:
        """The values of columns of a query's hits, or of the first ones of subjects, by rank."""
        with self._reading_query(run_id, number) as (connection, query):
            found = select(*columns).where(HITS.c.query_id == query.id).order_by(HITS.c.rank, HITS.c.hsp)
            rows = connection.execute(found.where(HITS.c.hsp == 1) if of_subjects else found).all()
        return list(zip(*rows, strict=True)) or [()] * len(columns)

    @contextmanager
    def _reading_query(self, run_id: int, number: int) -> Iterator[tuple[Connection, Row[Any]]]:
        """A connection, and the row of a query of a run."""
        with self._store.reading() as connection:
            row = connection.execute(_QUERY, {"run": run_id, "query": number}).first()
            if row is None:
                raise HitsNotFound(self._store.name, run_id, number)
            yield connection, row


def _read_page(connection: Connection, query: Row[Any], view: HitView) -> ResultPage:
    """A page of the hits of ``query``, a row of the table of queries."""
    n_subjects = connection.execute(_LAST_RANK, {"of": query.id}).scalar() or 0
    of_query = HITS.c.query_id == query.id
    kept = (of_query, *_conditions(view.keep, query))
    n_matching = query.n_hits
    if view.keep:
        n_matching = connection.execute(select(func.count()).select_from(HITS).where(*kept)).scalar_one()
    keys = select(HITS.c.rank, HITS.c.hsp).where(*kept)
    found = connection.execute(_in_order(keys, view).offset(view.offset).limit(view.limit)).all()
    # Only keys and the sorted value pass through the sort; the rows, with their letters, are read afterwards.
    chosen = select(HITS).where(of_query, tuple_(HITS.c.rank, HITS.c.hsp).in_([tuple(key) for key in found]))
    rows = {(row.rank, row.hsp): row for row in connection.execute(chosen)}
    hits = tuple(hit_of(rows[rank, hsp], query.header) for rank, hsp in found)
    return ResultPage(query_result(query, hits), n_matching, query.n_hits, n_subjects)


def _conditions(keep: HitFilter, query: Row[Any]) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    header = HITS.c.subject_header
    if keep.text:
        conditions.append(header.icontains(keep.text, autoescape=True))
    if keep.taxid is not None:
        conditions.append((header + " ").contains(f" OX={keep.taxid} ", autoescape=True))
    for column, chosen in ((HITS.c.subject_index, keep.subjects), (HITS.c.rank, keep.ranks)):
        if chosen is not None:
            # As text, because a statement has a largest number of parameters.
            listed = bindparam(None, sorted(chosen), column.type, expanding=True, literal_execute=True)
            conditions.append(column.in_(listed))
    if keep.max_evalue is not None:
        conditions.append(HITS.c.evalue <= keep.max_evalue)
    coverage = _percentage(_ON_QUERY, max(1, len(query.letters)))
    lowest = {"bits": keep.min_bits, "identity": keep.min_identity, "query_coverage": keep.min_query_coverage}
    values = _SORTED_BY | {"query_coverage": coverage}
    return conditions + [values[name] >= least for name, least in lowest.items() if least is not None]


def _in_order(keys: Select[Any], view: HitView) -> Select[Any]:
    if view.sort == "rank":
        order: tuple[ColumnElement[Any], ...] = (HITS.c.rank, HITS.c.hsp)
        if view.orders_alignments:
            order = (HITS.c.evalue, -HITS.c.score, HITS.c.subject_index, HITS.c.hsp)
        return keys.order_by(*(value.desc() if view.descending else value for value in order))
    value = _SORTED_BY[view.sort]
    ordered = value.desc() if view.descending else value.asc()
    return keys.order_by(value.is_(None), ordered, HITS.c.rank, HITS.c.hsp)


def letters_of_run(rows: Rows, run_id: int) -> dict[int, tuple[str, str]]:
    """Header and letters of the searched queries of a run, by number."""
    searched = rows.execute("SELECT number, header, letters FROM queries WHERE run_id = ?", run_id)
    return {number: (restored(header), restored(letters)) for number, header, letters in searched}


def as_fasta(queries: Mapping[int, tuple[str, str]]) -> str:
    """Queries as FASTA, in the order of their numbers."""
    return "".join(f">{header}\n{letters}\n" for _, (header, letters) in sorted(queries.items()))


def _hits_of(connection: Connection, query: Row[Any], *conditions: ColumnElement[bool]) -> Iterator[Hit]:
    """The hits of a query that fulfil the conditions, in the order of the list."""
    found = select(HITS).where(HITS.c.query_id == query.id, *conditions).order_by(HITS.c.rank, HITS.c.hsp)
    return (hit_of(row, query.header) for row in connection.execute(found))


def query_result(row: Any, hits: tuple[Hit, ...]) -> QueryResult:
    """The result of a query, from its row and its hits.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    checked(row, QUERIES)
    stats = SearchStats(row.cells, row.score_seconds, row.total_seconds, row.n_rescored)
    try:
        pssm = None if row.pssm is None else Pssm.from_text(row.pssm, len(row.letters))
    except ValueError as error:
        raise ValueError(f"table queries, column pssm: {error}") from error
    return QueryResult(
        row.number, row.header, row.letters, hits, row.n_passed, stats, row.n_rounds, bool(row.converged), pssm
    )


def hit_of(row: Any, query_header: str) -> Hit:
    """The hit of a row; ``query_header`` is the header of its query.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    checked(row, HITS)
    own = dict(zip(HIT_FIELDS, _own_values(row), strict=True))
    return Hit(alignment=Alignment(*_alignment_values(row)), query_header=query_header, **own)

"""The results of a store's runs: queries with their hits, and the repository :class:`Results`.

A query and its hits are committed together, so every query in the store is complete, even after the process was killed.
:meth:`Results.committed` lists these queries, so that the run can be resumed. Every row is checked before it is
converted to a record.

A result may have 100,000 hits and more, of which a page shows some dozens. Sorting and filtering are therefore left to
the database, and only the rows of the page become records (:meth:`Results.view`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from swsearch.errors import HitsNotFound, RunNotFound, StoreError
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import Pssm, QueryResult, SearchStats
from swsearch.hits.shards import Failure, Shard
from swsearch.sequences.headers import names_of
from swsearch.sequences.record import split_header
from swsearch.store.driver import RowRefused, Rows, marks_of_pairs
from swsearch.store.rows import ALIGNMENT_FIELDS, HIT_COLUMNS, HIT_FIELDS, hit_values, query_values, restored, storable
from swsearch.store.runs import find_run
from swsearch.typing import Floats, Places
from swsearch.words import quoted

if TYPE_CHECKING:
    from swsearch.store.store import Store


def _percentage(part: str, whole: str) -> str:
    return f"100.0 * CAST({part} AS FLOAT) / {whole}"


_ON_QUERY: Final = "(query_end - query_start)"
_SORTED_BY: Final = {
    "id": "LOWER(subject_header)",
    "length": "subject_length",
    "score": "score",
    "bits": "bits",
    "forward_bits": "forward_bits",
    "evalue": "evalue",
    "identity": _percentage("identities", "columns"),
    "query_coverage": _ON_QUERY,  # the hits are those of one query
    "subject_coverage": _percentage("subject_end - subject_start", "subject_length"),
    "columns": "columns",
    "query_start": "query_start",
    "subject_start": "subject_start",
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


_BY_RANK: Final = "ORDER BY rank, hsp"
_own_values: Final = attrgetter(*HIT_FIELDS)
_alignment_values: Final = attrgetter(*ALIGNMENT_FIELDS)


class Results:
    """The queries and hits of a store's runs, and the queries that could not be searched.

    A query and its hits are committed together, so every query in the store is complete, even after the process was
    killed. A method that reads a query by its number raises :class:`HitsNotFound` if the run has no such query.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- written ---

    def add(self, run_id: int, result: QueryResult) -> None:
        """Commit one query with all its hits, or nothing.

        Raises
        ------
        StoreError
            The run already has a query with this number, there is no such run, or the store cannot be written.
        """
        try:
            with self._store.writing() as rows:
                insert_queries(rows, [(run_id, result)])
        except RowRefused as error:
            reason = self._reason(run_id, result.number)
            if reason is None:
                raise
            raise reason from error

    def add_failure(self, run_id: int, failed: Failure) -> None:
        """Store that a query of the run cannot be searched, with the reason, which replaces an earlier one.

        Raises
        ------
        StoreError
            There is no such run, or the store cannot be written.
        """
        try:
            with self._store.writing() as rows:
                insert_failure(rows, run_id, failed)
        except RowRefused as error:
            raise RunNotFound(str(run_id), self._store.name) from error

    def _reason(self, run_id: int, number: int) -> StoreError | None:
        """Which constraint of the tables a query violated, if that is known."""
        with suppress(StoreError), self._store.writing() as rows:
            if rows.execute("SELECT 1 FROM runs WHERE id = ?", run_id).fetchone() is None:
                return RunNotFound(str(run_id), self._store.name)
            if rows.execute("SELECT 1 FROM queries WHERE run_id = ? AND number = ?", run_id, number).fetchone():
                return StoreError(f"{self._store.name}: run {run_id} has its query {number} already")
        return None

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
        with self._store.reading() as rows:
            run_id = find_run(rows, run, self._store.name)
            of_run = rows.execute("SELECT id FROM queries WHERE run_id = ? ORDER BY number", run_id).fetchall()
            for (query_id,) in of_run:
                (query,) = rows.records("queries", "WHERE id = ?", query_id)
                yield query_result(query, tuple(_hits_of(rows, query)))

    def find(self, run_id: int, identifiers: Collection[str]) -> list[int]:
        """Numbers of a run's committed queries that have one of these identifiers or accessions.

        The names of a query are those of a subject with its header (:func:`swsearch.filters.subject_filters.names_of`).

        Raises
        ------
        StoreError
            No query has one of the identifiers.
        """
        from difflib import get_close_matches

        wanted = set(identifiers)
        with self._store.reading() as rows:
            headers = rows.execute("SELECT number, header FROM queries WHERE run_id = ? ORDER BY number", run_id)
            names = {number: set(names_of(split_header(restored(header))[0])) for number, header in headers}
        known = set[str]().union(*names.values())
        for name in sorted(wanted - known):
            near = get_close_matches(name, sorted(known), n=1)
            similar = f"; {quoted(near[0])} is similar" if near else ""
            raise StoreError(f"{self._store.name}: run {run_id} has no query {quoted(name)}{similar}")
        return [number for number, names_of_query in names.items() if names_of_query & wanted]

    def committed(self, run_id: int) -> dict[int, str]:
        """Numbers of a run's committed queries, each with its :func:`query_digest`."""
        with self._store.reading() as rows:
            return dict(rows.execute("SELECT number, digest FROM queries WHERE run_id = ? ORDER BY number", run_id))

    def failures(self, run_id: int) -> list[Failure]:
        """The queries of a run that could not be searched, in the order of their numbers."""
        with self._store.reading() as rows:
            failures = rows.execute("SELECT number, reason FROM failures WHERE run_id = ? ORDER BY number", run_id)
            return [Failure(number, restored(reason)) for number, reason in failures]

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
        with self._store.reading() as rows:
            return as_fasta(letters_of_run(rows, run_id))

    # --- the result of one query, or a part of it for readers of a few hits ---

    def query(self, run_id: int, number: int) -> QueryResult:
        """The result of one committed query, with all its hits."""
        with self._reading_query(run_id, number) as (rows, query):
            return query_result(query, tuple(_hits_of(rows, query)))

    def view(self, run_id: int, number: int, view: HitView) -> ResultPage:
        """A page of the sorted and filtered hits of a query."""
        with self._reading_query(run_id, number) as (rows, query):
            if view == HitView(offset=view.offset, limit=view.limit):
                return _ranked_page(rows, query, view)
            return _sorted_page(rows, query, view)

    def subject(self, run_id: int, number: int, rank: int) -> QueryResult:
        """A query with the alignments of the subject of this rank; without hits if there is no such subject."""
        with self._reading_query(run_id, number) as (rows, query):
            return query_result(query, tuple(_hits_of(rows, query, " AND rank = ?", rank)))

    def hits(self, run_id: int, number: int, keep: HitFilter) -> Iterator[Hit]:
        """The hits of a query that the filter lets through, by rank, one at a time."""
        with self._reading_query(run_id, number) as (rows, query):
            conditions, values = _conditions(keep, query)
            yield from _hits_of(rows, query, conditions, *values)

    def summaries(self, run_id: int, offset: int, limit: int) -> list[QuerySummary]:
        """Some queries of a run in order of their numbers; an unknown run has none."""
        found = """
            SELECT queries.number, header, LENGTH(letters), n_hits, n_passed, subject_header, evalue, bits
            FROM queries LEFT JOIN hits ON query_id = queries.id AND rank = 1 AND hsp = 1
            WHERE run_id = ? ORDER BY queries.number LIMIT ? OFFSET ?
        """
        with self._store.reading() as rows:
            return [
                QuerySummary(number, restored(header), length, n_hits, n_passed, best and restored(best), evalue, bits)
                for number, header, length, n_hits, n_passed, best, evalue, bits in rows.execute(
                    found, run_id, limit, offset
                )
            ]

    def list_lengths(self, run_id: int) -> list[tuple[int, int]]:
        """The numbers of subjects that are listed and that passed, of each query of a run."""
        found = """
            SELECT COALESCE(MAX(rank), 0), n_passed FROM queries LEFT JOIN hits ON query_id = queries.id
            WHERE run_id = ? GROUP BY queries.id, n_passed
        """
        with self._store.reading() as rows:
            return list(rows.execute(found, run_id))

    def neighbours(self, run_id: int, number: int) -> tuple[int | None, int | None]:
        """The numbers of the committed queries before and after a query; None where there is none."""
        with self._store.reading() as rows:
            before = "SELECT MAX(number) FROM queries WHERE run_id = ? AND number < ?"
            after = "SELECT MIN(number) FROM queries WHERE run_id = ? AND number > ?"
            first, second = (rows.execute(each, run_id, number).fetchone()[0] for each in (before, after))
            return first, second

    def query_places(self, run_id: int, number: int) -> tuple[Places, Places]:
        """Starts and ends of the hits on the query, 0-based and half-open; int64, shape (n_hits,), by rank."""
        starts, ends = self._columns(run_id, number, "query_start", "query_end")
        return np.array(starts, np.int64), np.array(ends, np.int64)

    def subject_scores(self, run_id: int, number: int) -> tuple[Floats, Floats]:
        """Bit scores and E-values of the subjects; float64, shape (n_subjects,), NaN where there is none, by rank."""
        bits, evalues = self._columns(run_id, number, "bits", "evalue", of_subjects=True)
        return np.array(bits, np.float64), np.array(evalues, np.float64)  # None becomes NaN

    def subjects(self, run_id: int, number: int) -> list[tuple[int, str]]:
        """The subjects of a query, by rank: index in the database, and header."""
        indices, headers = self._columns(run_id, number, "subject_index", "subject_header", of_subjects=True)
        return list(zip(indices, map(restored, headers), strict=True))

    def _columns(self, run_id: int, number: int, *columns: str, of_subjects: bool = False) -> Sequence[Sequence[Any]]:
        """The values of columns of a query's hits, or of the first ones of subjects, by rank."""
        first = " AND hsp = 1" if of_subjects else ""
        with self._reading_query(run_id, number) as (rows, query):
            found = f"SELECT {', '.join(columns)} FROM hits WHERE query_id = ?{first} {_BY_RANK}"
            return list(zip(*rows.execute(found, query.id), strict=True)) or [()] * len(columns)

    @contextmanager
    def _reading_query(self, run_id: int, number: int) -> Iterator[tuple[Rows, Any]]:
        """A transaction that reads, and the row of a query of a run."""
        with self._store.reading() as rows:
            query = next(rows.records("queries", "WHERE run_id = ? AND number = ?", run_id, number), None)
            if query is None:
                raise HitsNotFound(self._store.name, run_id, number)
            yield rows, query


def _ranked_page(rows: Rows, query: Any, view: HitView) -> ResultPage:
    """A page of the hits of a query by rank, which most answers of a service have."""
    page = f"WHERE query_id = ? {_BY_RANK} LIMIT ? OFFSET ?"
    listed = rows.records("hits", page, query.id, view.limit, view.offset)
    hits = tuple(hit_of(row, query.header) for row in listed)
    is_last = hits and view.offset + len(hits) == query.n_hits
    n_subjects = hits[-1].rank if is_last else _last_rank(rows, query)
    return ResultPage(query_result(query, hits), query.n_hits, query.n_hits, n_subjects)


def _sorted_page(rows: Rows, query: Any, view: HitView) -> ResultPage:
    """A page of the hits of a query, in any order and with any filter."""
    conditions, values = _conditions(view.keep, query)
    kept = f"FROM hits WHERE query_id = ?{conditions}"
    n_matching = query.n_hits
    if view.keep:
        (n_matching,) = rows.execute(f"SELECT COUNT(*) {kept}", query.id, *values).fetchone()
    # Only keys and the sorted value pass through the sort; the rows, with their letters, are read afterwards.
    keys = f"SELECT rank, hsp {kept} ORDER BY {_order(view)} LIMIT ? OFFSET ?"
    found = rows.execute(keys, query.id, *values, view.limit, view.offset).fetchall()
    hits: tuple[Hit, ...] = ()
    if found:
        chosen = f" AND (rank, hsp) IN {marks_of_pairs(len(found))}"
        by_key = {(hit.rank, hit.hsp): hit for hit in _hits_of(rows, query, chosen, *chain.from_iterable(found))}
        hits = tuple(by_key[rank, hsp] for rank, hsp in found)
    return ResultPage(query_result(query, hits), n_matching, query.n_hits, _last_rank(rows, query))


def _last_rank(rows: Rows, query: Any) -> int:
    """The number of subjects of a query."""
    last: int = rows.execute("SELECT COALESCE(MAX(rank), 0) FROM hits WHERE query_id = ?", query.id).fetchone()[0]
    return last


def _conditions(keep: HitFilter, query: Any) -> tuple[str, list[Any]]:
    """The conditions of a filter, which follow another one in a statement, and the values of their marks."""
    coverage = _percentage(_ON_QUERY, str(max(1, len(query.letters))))
    compared = {
        "LOWER(subject_header) LIKE LOWER(?) ESCAPE '/'": _containing(storable(keep.text)) if keep.text else None,
        "subject_header || ' ' LIKE ? ESCAPE '/'": None if keep.taxid is None else _containing(f" OX={keep.taxid} "),
        "evalue <= ?": keep.max_evalue,
        "bits >= ?": keep.min_bits,
        f"{_SORTED_BY['identity']} >= ?": keep.min_identity,
        f"{coverage} >= ?": keep.min_query_coverage,
    }
    values = {condition: value for condition, value in compared.items() if value is not None}
    # Numbers of subjects are a part of the statement, because a statement has a largest number of values.
    listed = [
        f"{column} IN ({', '.join(map(str, sorted(chosen))) or 'NULL'})"
        for column, chosen in (("subject_index", keep.subjects), ("rank", keep.ranks))
        if chosen is not None
    ]
    return "".join(f" AND {condition}" for condition in [*values, *listed]), list(values.values())


def _containing(text: str) -> str:
    """The pattern of texts that contain this one, with ``/`` before what has a meaning in patterns."""
    return f"%{re.sub('[/%_]', lambda special: '/' + special[0], text)}%"


def _order(view: HitView) -> str:
    """The order of a view in a statement."""
    direction = "DESC" if view.descending else "ASC"
    if view.sort == "rank":
        order = ("evalue", "-score", "subject_index", "hsp") if view.orders_alignments else ("rank", "hsp")
        return ", ".join(f"{value} {direction}" for value in order)
    value = _SORTED_BY[view.sort]
    return f"{value} IS NULL, {value} {direction}, rank, hsp"


def insert_queries(rows: Rows, results: Sequence[tuple[int, QueryResult]]) -> None:
    """Insert queries with all their hits, each with its run, in place of failures of these queries."""
    hits = []
    for run_id, result in results:
        _delete_failure(rows, run_id, result.number)
        query_id = rows.insert("queries", {"run_id": run_id, **query_values(result)})
        hits += [hit_values(query_id, hit) for hit in result.hits]
    if hits:
        rows.insert_all("hits", HIT_COLUMNS, hits)


def insert_failure(rows: Rows, run_id: int, failed: Failure) -> None:
    """Insert a query that cannot be searched, in place of an earlier failure of it."""
    _delete_failure(rows, run_id, failed.number)
    rows.insert_all("failures", ("run_id", "number", "reason"), [(run_id, failed.number, storable(failed.reason))])


def _delete_failure(rows: Rows, run_id: int, number: int) -> None:
    rows.execute("DELETE FROM failures WHERE run_id = ? AND number = ?", run_id, number)


def letters_of_run(rows: Rows, run_id: int) -> dict[int, tuple[str, str]]:
    """Header and letters of the searched queries of a run, by number."""
    searched = rows.execute("SELECT number, header, letters FROM queries WHERE run_id = ?", run_id)
    return {number: (restored(header), restored(letters)) for number, header, letters in searched}


def as_fasta(queries: Mapping[int, tuple[str, str]]) -> str:
    """Queries as FASTA, in the order of their numbers."""
    return "".join(f">{header}\n{letters}\n" for _, (header, letters) in sorted(queries.items()))


def _hits_of(rows: Rows, query: Any, conditions: str = "", *values: Any) -> Iterator[Hit]:
    """The hits of a query that fulfil further conditions, in the order of the list."""
    found = rows.records("hits", f"WHERE query_id = ?{conditions} {_BY_RANK}", query.id, *values)
    return (hit_of(row, query.header) for row in found)


def query_result(row: Any, hits: tuple[Hit, ...]) -> QueryResult:
    """The result of a query, from its row and its hits.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    stats = SearchStats(row.cells, row.score_seconds, row.total_seconds, row.n_rescored)
    try:
        pssm = None if row.pssm is None else Pssm.from_text(row.pssm, len(row.letters))
    except ValueError as error:
        raise ValueError(f"table queries, column pssm: {error}") from error
    return QueryResult(
        row.number, row.header, row.letters, hits, row.n_passed, stats, row.n_rounds, bool(row.converged), pssm
    )


def hit_of(row: Any, query_header: str) -> Hit:
    """The hit of a row; ``query_header`` is the header of its query."""
    own = dict(zip(HIT_FIELDS, _own_values(row), strict=True))
    return Hit(alignment=Alignment(*_alignment_values(row)), query_header=query_header, **own)

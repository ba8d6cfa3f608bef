"""Deep alignments: the hits of a query in several databases, which are searched in turn, as one alignment.

The first database is searched with the query, in several rounds if the options say so. Every further database, such as
one of environmental sequences, is searched once with the profile of the last round, as ColabFold's server does. The
hits of the databases follow each other. :func:`deep_alignments` gives the hits of all databases, :func:`joined` makes
one list of them, and :func:`distinct` leaves out those that repeat a row, such as a sequence that two databases have.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np

from swsearch.database.opening import Databases, opened
from swsearch.engine.registry import Machine, open_engine
from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.query.profile import PositionSpecificQuery, with_other_letters
from swsearch.report.anchored import aligned_letters
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import USUAL_RESIDUES, Searcher
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Progress

QUERIES_AT_ONCE: Final = 16
"""Queries whose hits in all databases are in memory together."""


def open_searchers(
    databases: Sequence[Databases],
    options: SearchOptions,
    stack: ExitStack,
    machine: Machine,
) -> list[Searcher]:
    """A searcher for each database, at least one, with one engine; ``stack`` closes what is opened here.

    A sequence of databases in place of one is searched as one.

    The databases after the first have the options of :func:`options_of_further`. Parameters and errors are those of
    :func:`swsearch.search.searcher.open_searcher`.

    Raises
    ------
    InputError
        A database has another alphabet than the first, or there are none.
    """
    if not databases:
        raise InputError("no database is named; give the path of at least one")
    all_subjects = [stack.enter_context(opened(database)) for database in databases]
    first = all_subjects[0]
    for other in all_subjects[1:]:
        if other.alphabet is not first.alphabet:
            problem = f"{other.name} is {other.alphabet.name}, {first.name} is {first.alphabet.name}"
            raise InputError(f"{problem}; an alignment is of one alphabet: leave one of them out")
    options.scheme(options.aligned_alphabet(first.alphabet))  # refuses wrong options before a GPU is started
    cells = sum(subjects.n_residues for subjects in all_subjects) * USUAL_RESIDUES
    scorer, why = open_engine(machine, cells)
    stack.enter_context(scorer)
    all_options = [options, *[options_of_further(options)] * (len(all_subjects) - 1)]
    return [
        Searcher(subjects, scorer, asked, machine=machine, engine_choice=why)
        for subjects, asked in zip(all_subjects, all_options, strict=True)
    ]


def options_of_further(options: SearchOptions) -> SearchOptions:
    """The options for the databases after the first, which are searched once.

    After several rounds, the query is a profile, which is neither masked nor corrected again.
    """
    if options.iterations == 1:
        return options
    plain = SearchOptions()
    names = ("iterations", "inclusion_evalue", "mask", "mask_mode", "composition")
    return replace(options, **{name: getattr(plain, name) for name in names})


def deep_alignments(
    queries: Iterable[SequenceRecord], searchers: Sequence[Searcher], progress: Progress | None = None
) -> Generator[tuple[QueryResult, ...], None, None]:
    """The results of each query in all databases, in the order of the queries.

    Parameters
    ----------
    queries : iterable of SequenceRecord
        Checked by the searchers' ``check``.
    searchers : sequence of Searcher
        Those of :func:`open_searchers`.
    progress : callable, optional
        Called with the number of cells completed since the last call.
    """
    first, *further = searchers
    remaining = iter(queries)
    while batch := list(islice(remaining, QUERIES_AT_ONCE)):
        found = [list(first.search(batch, progress))]
        profiles = [_profile(first, query, result) for query, result in zip(batch, found[0], strict=True)]
        found += [list(searcher.search(profiles, progress)) for searcher in further]
        yield from zip(*found, strict=True)


def joined(results: Sequence[QueryResult]) -> QueryResult:
    """The result of a query in the first database with the hits of all, in their order; ranks are counted through."""
    hits: list[Hit] = []
    n_before = 0
    for result in results:
        hits += [replace(hit, rank=hit.rank + n_before) for hit in result.hits] if n_before else result.hits
        n_before += result.n_subjects
    return replace(results[0], hits=tuple(hits), n_passed=sum(result.n_passed for result in results))


def distinct(query: QueryResult) -> QueryResult:
    """The query with the hits whose rows differ from the rows of all hits before them."""
    rows: dict[str, Hit] = {}
    for hit in query.hits:
        rows.setdefault(aligned_letters(query, hit), hit)
    return query if len(rows) == len(query.hits) else replace(query, hits=tuple(rows.values()))


def _profile(first: Searcher, query: SequenceRecord, result: QueryResult) -> SequenceRecord:
    """The query of the further databases: the profile of the last round, or the query itself if it had none."""
    if first.options.iterations == 1:
        return query
    searched = first.as_searched(query)
    if result.pssm is None:
        return searched
    codes = searched.codes & np.uint8(CODE_MASK)
    scores = with_other_letters(result.pssm.scores.astype(np.int64), codes, first.scheme.matrix)
    has_relatives = result.pssm.has_relatives
    return PositionSpecificQuery(query.header, searched.codes, query.alphabet, scores, has_relatives=has_relatives)

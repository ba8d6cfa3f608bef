"""The plan of a search, apart from the engine that computes it: queries, subjects and statistics.

:class:`PlannedSearch` has what all queries of a run share, whoever scores them: an open database, the search options,
the scoring scheme and its statistics. It checks queries, counts their cells, and describes the run. Its two kinds are
:class:`swsearch.search.searcher.Searcher`, which has an engine in this process, and
:class:`swsearch.cluster.cluster_searcher.ClusterSearcher`, whose engines are those of the workers of a cluster.
:mod:`swsearch.run` takes either.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from swsearch import __version__
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import Forecast
from swsearch.engine.registry import ONE_THREAD, Machine
from swsearch.errors import InputError
from swsearch.hits.result import CONTEXTS_DIGEST, TAXONOMY_DIGEST, DatabaseInfo, QueryResult, RunInfo
from swsearch.query.profile import PositionSpecificQuery
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import matrix_text
from swsearch.search.frames import Frame, Preparer
from swsearch.search.options import SearchOptions
from swsearch.search.queries import Requirements
from swsearch.search.search_subjects import SearchSubjects
from swsearch.search.significance import Significance, scheme_statistics
from swsearch.search.threshold import SearchThresholds
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Progress
from swsearch.words import option, shortened

P = ParamSpec("P")
T = TypeVar("T")
BatchObserver = Callable[[list[tuple[SequenceRecord, list[Frame]]]], None]
"""A function of queries and their frames."""


class PlannedSearch(ABC):
    """A search of one database, or of several as one, with one set of options. It must not be shared between threads.

    Its kinds set ``engine_name``, which is stored with the run, and ``works_in_background``: whether the engines do, as
    those of GPUs.

    Parameters
    ----------
    database : PackedDatabase
        An open database; the caller closes it.
    options : SearchOptions
    machine : Machine
        Its threads are those of this process, and its partitions are passed to the engine one at a time.
    translating : callable, optional
        Called with the number of bases translated since the last call. Subjects are translated before the first query.
    engine_choice : str
        A text that names the engine and the reason for its selection.
    is_scored_here : bool
        Whether the subjects are scored in this process; otherwise they are only counted.

    Attributes
    ----------
    requirements : Requirements
        The queries that this search accepts, and the messages about others.
    query_alphabet : Alphabet
        The required alphabet of the queries.
    limits : Limits
    scheme : ScoringScheme
    preparer : Preparer
    significance : Significance
    thresholds : SearchThresholds
    search_subjects : SearchSubjects
    observe_batch : callable or None
        If set, it is called with the queries of each batch after their results.

    Raises
    ------
    AlphabetMismatch
        The options do not fit the alphabet of the database.
    ScoringError
        The options do not fit the alphabet that is aligned.
    InputError
        No subject passes the filters, a file of a filter cannot be read, a filter or an iterated search needs
        statistics that the scoring scheme does not have, or a masker does not support this alphabet or is not
        installed.
    """

    engine_name: str
    works_in_background: bool
    observe_batch: BatchObserver | None = None

    def __init__(
        self,
        database: PackedDatabase,
        options: SearchOptions,
        *,
        machine: Machine = ONE_THREAD,
        translating: Progress | None = None,
        engine_choice: str = "",
        is_scored_here: bool = True,
    ) -> None:
        self.engine_choice = engine_choice
        self.database = database
        self.options = options
        self.limits = options.limits(database.alphabet)
        self.threads = machine.n_threads
        self.requirements = Requirements(database.name, database.alphabet, options.translate)
        self.requirements.check_database()
        self.query_alphabet = self.requirements.alphabet
        aligned = options.aligned_alphabet(database.alphabet)
        self.scheme = options.scheme(aligned)
        self.preparer = Preparer(options, self.scheme, self.threads)
        self.search_subjects = SearchSubjects(
            database, options, machine.partition_residues, translating, is_scored_here=is_scored_here
        )
        n_comparisons = self.preparer.n_frames * len(self.search_subjects.frames)
        statistics = scheme_statistics(self.scheme, self.threads)
        self.significance = Significance(statistics, self.search_subjects, options, n_comparisons)
        self.thresholds = SearchThresholds(options, self.limits, self.significance, self.search_subjects)

    # --- what its kinds compute ---

    @abstractmethod
    def forecast(self, n_cells: int, queries: Sequence[SequenceRecord] = ()) -> Forecast | None:
        """A forecast of the time to score ``n_cells`` cells, of ``queries`` if known; None if there is none."""

    @abstractmethod
    def explain(self, queries: Sequence[SequenceRecord]) -> list[str]:
        """The plan by which these queries will be scored, in lines of text."""

    @abstractmethod
    def search(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[QueryResult, None, None]:
        """The results of the queries, in the order of the queries; the scoring has started when this returns.

        If ``queries`` is a sequence, all queries are checked before the first is searched. The queries of any other
        iterable must have been checked by the caller; they are read as they are needed. Closing the generator ends the
        search.
        """

    @abstractmethod
    def search_once(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[QueryResult, None, None]:
        """The results of one round of :meth:`search`; in an iterated search, they also list all subjects to include.

        The caller has checked the queries.
        """

    # --- queries and the run ---

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user before the search, such as listed identifiers that no subject has."""
        return self.search_subjects.notes

    def as_searched(self, query: SequenceRecord) -> SequenceRecord:
        """The query as it is reported: masked, if the options require it."""
        return self.preparer.as_searched(query)

    def check(self, query: SequenceRecord) -> None:
        """Refuse a query that this search does not accept.

        Raises
        ------
        AlphabetMismatch
            The alphabet of the query is not :attr:`query_alphabet`.
        InputError
            The query is empty, shorter than a codon although it is to be translated, or longer than 16,777,216
            residues; or it has position-specific scores, which cannot be masked or corrected.
        TypeError
            The query is not a :class:`SequenceRecord`.
        """
        if not isinstance(query, SequenceRecord):
            advice = "swsearch.sequence makes a record of letters, swsearch.search_database takes other kinds too"
            raise TypeError(f"a query is of type {type(query).__name__}; {advice}")
        self.requirements.check_query(query)
        if not isinstance(query, PositionSpecificQuery):
            return
        if self.options.mask != "none" or self.options.composition == "bias":
            name = f"query {shortened(query.identifier)}" if query.identifier else "the query"
            unusable = f"{option('mask')} and {option('composition', 'bias')}"
            raise InputError(f"{name} has position-specific scores; leave out {unusable}")

    def cells(self, query: SequenceRecord) -> int:
        """Number of cells of the alignment matrices of the query with the subjects that it is compared with.

        They are those of all strands or frames, and of all rounds if no search converges early.
        """
        return self.options.iterations * self.cells_of_round(query)

    def cells_of_round(self, query: SequenceRecord) -> int:
        """Number of cells of one round of an iterated search; those of :meth:`cells` if the search is not iterated."""
        n_rows = sum(self.preparer.frame_lengths(len(query)))
        return n_rows * self.search_subjects.n_compared_residues(query)

    def run_info(self, command: str) -> RunInfo:
        """The record of this run; ``command`` is the command line or call that started it."""
        statistics = self.significance.statistics
        known = statistics if isinstance(statistics, Statistics) else None
        return RunInfo(
            command=command,
            parameters={**self.options.as_parameters(), **self.search_subjects.parameters, **self._digests},
            matrix=self.scheme.matrix.name,
            matrix_scores=matrix_text(self.scheme.matrix),
            gap_open=self.scheme.gap.open,
            gap_extend=self.scheme.gap.extend,
            lam=None if known is None else known.lam,
            k=None if known is None else known.k,
            statistics=statistics.source if isinstance(statistics, Statistics) else statistics.reason,
            search_space=self.significance.search_space * self.significance.n_comparisons,
            database=DatabaseInfo(
                paths=self.database.locations,
                digests=self.database.digests,
                generation=self.database.catalogue.generation,
                alphabet=self.database.alphabet.name,
                n_subjects=self.database.n_subjects,
                n_residues=self.database.n_residues,
            ),
            program=f"swsearch {__version__}",
            engine=self.engine_name,
            threads=self.threads,
        )

    @property
    def _digests(self) -> dict[str, str]:
        """Parameters that identify the taxonomy of the database, and the library of contexts of a file."""
        library = self.preparer.contexts
        found = {
            TAXONOMY_DIGEST: self.database.taxonomy_digest,
            CONTEXTS_DIGEST: None if library is None else library.digest,
        }
        return {name: digest for name, digest in found.items() if digest is not None}


def started(function: Callable[P, Generator[T | None, None, None]]) -> Callable[P, Generator[T, None, None]]:
    """Decorates a generator function that first yields None: its generators work before their results are read.

    Closing one then runs its ``finally``, which a generator that has not begun would not do.
    """

    @wraps(function)
    def begun(*args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        results = function(*args, **kwargs)
        next(results)
        return cast(Generator[T, None, None], results)

    return begun

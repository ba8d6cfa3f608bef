"""Functions of the Python interface: :func:`sequence` makes a query, :func:`open_searcher` opens a search.

:func:`open_searcher` opens a database and an engine, and yields a :class:`swsearch.search.searcher.Searcher` for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final

from swsearch.arguments import choice, function, of_type, text, whole_number
from swsearch.database.opening import Databases, opened
from swsearch.engine.protocol import BackgroundEngine, Progress
from swsearch.engine.registry import KERNELS, Machine, open_engine
from swsearch.errors import InputError
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import ALPHABETS, Alphabet
from swsearch.sequences.record import SequenceRecord
from swsearch.words import option


def sequence(letters: str, alphabet: str, header: str = "") -> SequenceRecord:
    """A sequence from its letters.

    Parameters
    ----------
    letters : str
    alphabet : str
        ``protein`` or ``dna``.
    header : str
        Identifier and description, separated by a blank.

    Raises
    ------
    InputError
        A letter is not in the alphabet, or the alphabet is unknown.
    WrongType
        ``letters`` or ``header`` is not a string.
    """
    choice("alphabet", alphabet, tuple(ALPHABETS))
    for name, given in (("letters", letters), ("header", header)):
        text(name, given)
    return named_sequence("letters", letters, ALPHABETS[alphabet], header)


def named_sequence(name: str, letters: str, alphabet: Alphabet, header: str = "") -> SequenceRecord:
    """A sequence from the letters that are the argument ``name``, for the message about a wrong one."""
    try:
        return SequenceRecord(header, alphabet.encode(letters), alphabet)
    except InputError as error:
        raise InputError(f"{name}, {error.marked}") from error


USUAL_RESIDUES: Final = 100_000
"""Residues of all queries of a search, where their number is not known: some hundred proteins."""


def open_searcher(
    database: Databases,
    options: SearchOptions | None = None,
    *,
    engine: str = "auto",
    threads: int | None = None,
    devices: Sequence[int] | None = None,
    kernel: str = KERNELS[0],
    bound: bool = True,
    partition_residues: int | None = None,
    query_residues: int = USUAL_RESIDUES,
    translating: Progress | None = None,
) -> AbstractContextManager[Searcher]:
    """A searcher with its database and engine open, as a context manager that closes both on exit.

    ``database`` is a path, as for :func:`swsearch.database.opening.open_database`, or an open database, which stays
    open; or a sequence of several, which are searched as one.

    ``query_residues`` is about the number of residues of all queries, from which ``auto`` predicts the time of the
    search on each engine. Without ``bound``, no engine excludes subjects by an upper bound of their scores.

    If subjects are translated, they are translated on entry; ``translating`` is called repeatedly with the number of
    bases translated since the last call.

    Yields
    ------
    searcher : Searcher
        Its ``engine_choice`` states which engine was selected, and why.

    Raises
    ------
    DatabaseError
        The database cannot be opened.
    EngineUnavailable
        The requested engine cannot be used on this machine.
    InputError
        An option is out of range or does not fit the database.
    """
    chosen = SearchOptions() if options is None else of_type("options", options, SearchOptions, "a SearchOptions")
    function("translating", translating)
    if whole_number("query_residues", query_residues) < 0:
        raise InputError(f"{option('query_residues', query_residues)}: choose a number of residues, at least 0")
    machine = Machine(engine, threads, devices, kernel, bound, partition_residues)
    return searcher_on(machine, database, chosen, query_residues, translating)


@contextmanager
def searcher_on(
    machine: Machine,
    database: Databases,
    options: SearchOptions,
    query_residues: int = USUAL_RESIDUES,
    translating: Progress | None = None,
) -> Iterator[Searcher]:
    """A searcher that uses ``machine``; see :func:`open_searcher`, whose ``options`` are checked."""
    with opened(database) as subjects, ExitStack() as stack:
        options.scheme(options.aligned_alphabet(subjects.alphabet))  # loads its modules and data while GPUs start
        scorer, why = open_engine(machine, subjects.n_residues * query_residues)
        stack.enter_context(scorer)
        searcher = Searcher(subjects, scorer, options, machine=machine, translating=translating, engine_choice=why)
        if isinstance(scorer, BackgroundEngine):
            for partition in searcher.search_subjects.partitions[:1]:
                scorer.preload(partition)
        yield searcher

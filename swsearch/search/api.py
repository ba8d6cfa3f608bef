"""Functions of the Python interface: :func:`sequence` makes a query, :func:`open_searcher` opens a search.

:func:`open_searcher` opens a database and an engine, and yields a :class:`swsearch.search.searcher.Searcher` for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from swsearch.cores import threads_to_use
from swsearch.database.opening import Databases, opened
from swsearch.engine.protocol import BackgroundEngine, Progress
from swsearch.engine.registry import KERNELS, open_engine
from swsearch.errors import InputError
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.sequences.record import SequenceRecord
from swsearch.words import a_kind, option


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
    TypeError
        ``letters`` or ``header`` is not a string.
    """
    if alphabet not in ALPHABETS:
        raise InputError(f"alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")
    for name, text in (("letters", letters), ("header", header)):
        if not isinstance(text, str):
            raise TypeError(f"{name} is {a_kind(text)}; a string is needed")
    return SequenceRecord(header, ALPHABETS[alphabet].encode(letters), ALPHABETS[alphabet])


USUAL_RESIDUES: Final = 100_000
"""Residues of all queries of a search, where their number is not known: some hundred proteins."""


@contextmanager
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
) -> Iterator[Searcher]:
    """A searcher with its database and engine open, as a context manager that closes both on exit.

    ``database`` is a path, as for :meth:`PackedDatabase.open`, or an open database, which stays open; or a sequence of
    several, which are searched as one (:mod:`swsearch.database.joined`).

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
    if partition_residues is not None and partition_residues < 1:
        raise InputError(f"{option('partition_residues', partition_residues)}: at least 1 residue is needed")
    options = SearchOptions() if options is None else options
    if not isinstance(options, SearchOptions):
        raise TypeError(f"options is {a_kind(options)}; a SearchOptions is needed")
    with opened(database) as subjects, ExitStack() as stack:
        options.scheme(options.aligned_alphabet(subjects.alphabet))  # loads its modules and data while GPUs start
        scorer, why = open_engine(engine, threads, devices, subjects.n_residues * query_residues, kernel, bound=bound)
        stack.enter_context(scorer)
        searcher = Searcher(
            subjects,
            scorer,
            options,
            threads=threads_to_use(threads),
            partition_residues=partition_residues,
            translating=translating,
            engine_choice=why,
        )
        if isinstance(scorer, BackgroundEngine):
            for partition in searcher.search_subjects.partitions[:1]:
                scorer.preload(partition)
        yield searcher

r"""Searching from Python: the calls that the command line itself is made of.

>>> import swsearch, tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "proteins.fasta").write_text(">first a protein\nMKVLAAGIVGLLLAQWERTY\n>second\nMKWVTFISLLFLFSSAYS\n")
>>> _ = swsearch.build_database([folder / "proteins.fasta"], folder / "proteins.db")
>>> with swsearch.open_searcher(folder / "proteins.db", swsearch.SearchOptions(top=1)) as (searcher, why):
...     for result in searcher.search([swsearch.sequence("MKVLAAGIVGLQWERTY", "protein", header="mine")]):
...         for hit in result.hits:
...             print(hit.rank, hit.subject_header, hit.score, hit.alignment.cigar)
1 first a protein 74 11=3D6=
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import cast

from swsearch.cores import threads_to_use
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import Progress
from swsearch.engine.registry import KERNELS, open_engine
from swsearch.errors import FastaFormatError, InputError
from swsearch.hits.result import QueryResult
from swsearch.search.given_queries import GivenQuery, Query, a_kind, given_queries
from swsearch.search.needs import QueryNeeds
from swsearch.search.options import TRANSLATE_ADVICE, SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import ALPHABETS, Alphabet, refuse_dna
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord


def sequence(letters: str, alphabet: str, header: str = "") -> SequenceRecord:
    """A sequence from its letters.

    Parameters
    ----------
    letters : str
    alphabet : str
        ``protein`` or ``dna``.
    header : str
        Identifier, blank, description.

    Raises
    ------
    InputError
        A letter is not in the alphabet, or there is no such alphabet.
    TypeError
        Letters or header are no string.
    """
    if alphabet not in ALPHABETS:
        raise InputError(f"alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")
    for name, text in (("letters", letters), ("header", header)):
        if not isinstance(text, str):
            raise TypeError(f"{name} is {a_kind(text)}; a string is needed")
    return SequenceRecord(header, ALPHABETS[alphabet].encode(letters), ALPHABETS[alphabet])


def read_queries(
    path: str | os.PathLike[str], alphabet: Alphabet, *, force_alphabet: bool = False, needs: QueryNeeds | None = None
) -> list[SequenceRecord]:
    """All sequences of a FASTA or FASTQ file (``-`` is stdin), which must be of ``alphabet``.

    The letters of DNA are letters of proteins too. A file of 30 residues or more that reads like DNA is not taken for
    protein unless ``force_alphabet`` says that it is. ``needs`` of the search lets messages say what would
    work.

    Raises
    ------
    FastaFormatError
        The file cannot be read; the message names record, line and column.
    AlphabetMismatch
        Protein is needed, and the file reads like DNA.
    """
    try:
        records = list(read_sequences([path], alphabet))
    except FastaFormatError as error:
        raise error if needs is None else error.with_problem(needs.of_this_search(error.problem)) from error
    if force_alphabet:
        return records
    letters = "".join(record.letters for record in records)
    if needs is None:
        refuse_dna(path, letters, alphabet, advice=TRANSLATE_ADVICE)
    else:
        needs.refuse_dna(path, letters)
    return records


@contextmanager
def open_searcher(
    database: str | os.PathLike[str],
    options: SearchOptions | None = None,
    *,
    engine: str = "auto",
    threads: int | None = None,
    devices: Sequence[int] | None = None,
    kernel: str = KERNELS[0],
    partition_residues: int | None = None,
    translating: Progress | None = None,
) -> Iterator[tuple[Searcher, str]]:
    """Open a database and an engine; both are closed with the context.

    Where subjects are translated, that is done here; ``translating`` is called now and then with the bases translated
    since the last call.

    Yields
    ------
    searcher : Searcher
    why : str
        Which engine was taken, and why.

    Raises
    ------
    DatabaseError
        The database cannot be opened.
    EngineUnavailable
        The engine that was named cannot be used here.
    InputError
        An option is out of range or does not fit the database.
    """
    if partition_residues is not None and partition_residues < 1:
        raise InputError(f"--partition-residues {partition_residues}: at least 1 residue is needed")
    options = SearchOptions() if options is None else options
    if not isinstance(options, SearchOptions):
        raise TypeError(f"options is {a_kind(options)}; a SearchOptions is needed")
    with PackedDatabase.open(database) as opened, ExitStack() as stack:
        options.scheme(options.aligned_alphabet(opened.alphabet))  # loads what it needs while GPUs start
        scorer, why = open_engine(engine, threads, devices, opened.n_subjects, kernel)
        stack.enter_context(scorer)
        searcher = Searcher(
            opened,
            scorer,
            options,
            threads=threads_to_use(threads),
            partition_residues=partition_residues,
            translating=translating,
        )
        yield searcher, why


def search_database(
    queries: str | os.PathLike[str] | Query | Iterable[Query],
    database: str | os.PathLike[str],
    options: SearchOptions | None = None,
    *,
    engine: str = "auto",
    threads: int | None = None,
) -> Generator[QueryResult, None, None]:
    r"""Search a database with the sequences of a file, or with sequences in memory; results come one by one, in order.

    What is wrong with the arguments is raised by the call; the database stays open until the results end or are closed.

    Parameters
    ----------
    queries : path, query, or iterable of queries
        A path (a string alone is one) names a FASTA or FASTQ file. A query is a :class:`SequenceRecord`; Biopython's
        ``SeqRecord`` or ``Seq``; a string of letters; or a header and letters, as a pair.
    database : path
    options : SearchOptions, optional
    engine, threads
        As for :func:`open_searcher`.

    Raises
    ------
    TypeError
        A query is nothing of that kind; the message names its place and type.
    InputError
        A query has letters that it cannot have, with its place; or what :func:`read_queries` and
        :func:`open_searcher` raise.

    Examples
    --------
    >>> import swsearch, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "proteins.fasta").write_text(">first a protein\nMKVLAAGIVGLLLAQWERTY\n")
    >>> _ = swsearch.build_database([folder / "proteins.fasta"], folder / "proteins.db")
    >>> from Bio.Seq import Seq
    >>> from Bio.SeqRecord import SeqRecord
    >>> letters = "MKVLAAGIVGLQWERTY"
    >>> ours = swsearch.sequence(letters, "protein", header="ours")
    >>> kinds = [letters, ("mine", letters), SeqRecord(Seq(letters), id="theirs"), ours]
    >>> for result in swsearch.search_database(kinds, folder / "proteins.db"):
    ...     print(repr(result.header), [hit.score for hit in result.hits])
    '' [74]
    'mine' [74]
    'theirs' [74]
    'ours' [74]
    >>> swsearch.search_database([letters, 7], folder / "proteins.db")
    Traceback (most recent call last):
    TypeError: queries[1] is an int, no query; give a SequenceRecord, a SeqRecord, letters, or a header and letters
    """
    path = os.fspath(queries) if isinstance(queries, (str, os.PathLike)) else None
    given = [] if isinstance(queries, (str, os.PathLike)) else given_queries(queries)
    results = _search_opened(path, given, open_searcher(database, options, engine=engine, threads=threads))
    next(results)  # everything is checked, and the first queries are begun
    return cast(Generator[QueryResult, None, None], results)


def _search_opened(
    path: str | None, given: Sequence[GivenQuery], opening: AbstractContextManager[tuple[Searcher, str]]
) -> Generator[QueryResult | None, None, None]:
    """None when the search has begun, then the results."""
    with opening as (searcher, _):
        if path is not None:
            records = read_queries(path, searcher.query_alphabet, needs=searcher.needs)
        else:
            records = [query.record(searcher.needs) for query in given]
        with closing(searcher.search(records)) as results:
            yield None
            yield from results

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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from swsearch.cores import threads_to_use
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import Progress
from swsearch.engine.registry import KERNELS, open_engine
from swsearch.errors import InputError
from swsearch.hits.result import QueryResult
from swsearch.search.options import TRANSLATE_ADVICE, SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import ALPHABETS, Alphabet, refuse_dna
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from swsearch.sequences.source import shown_name


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
    """
    if alphabet not in ALPHABETS:
        raise InputError(f"alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")
    return SequenceRecord(header, ALPHABETS[alphabet].encode(letters), ALPHABETS[alphabet])


def read_queries(path: str | os.PathLike[str], alphabet: Alphabet, *, as_asked: bool = False) -> list[SequenceRecord]:
    """All sequences of a FASTA or FASTQ file (``-`` is stdin), which must be of ``alphabet``.

    The letters of DNA are letters of proteins too. A file of 30 residues or more that reads like DNA is not taken for
    protein unless ``as_asked`` says that it is.

    Raises
    ------
    FastaFormatError
        The file cannot be read; the message names record, line and column.
    AlphabetMismatch
        Protein is needed, and the file reads like DNA.
    """
    records = list(read_sequences([path], alphabet))
    if not as_asked:
        refuse_dna(shown_name(path), "".join(record.letters for record in records), alphabet, advice=TRANSLATE_ADVICE)
    return records


@contextmanager
def open_searcher(
    database: str | os.PathLike[str],
    options: SearchOptions | None = None,
    *,
    engine: str = "auto",
    threads: int | None = None,
    devices: Sequence[int] = (0,),
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
    options = options or SearchOptions()
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
    queries: str | os.PathLike[str] | Sequence[SequenceRecord],
    database: str | os.PathLike[str],
    options: SearchOptions | None = None,
    *,
    engine: str = "auto",
    threads: int | None = None,
) -> Iterator[QueryResult]:
    """Search a database with the sequences of a file, or with records; results come one by one, in order.

    For the errors see :func:`read_queries` and :func:`open_searcher`.
    """
    with open_searcher(database, options, engine=engine, threads=threads) as (searcher, _):
        records = read_queries(queries, searcher.query_alphabet) if isinstance(queries, (str, os.PathLike)) else queries
        yield from searcher.search(records)

r"""The functions that a Python script calls: open a database, search it, align two sequences, write a report.

===================  ======================================================  ==================================
function             takes                                                   returns
===================  ======================================================  ==================================
``open_database``    the path of a database or of a sequence file            :class:`PackedDatabase`
``search_database``  a query file or sequences, the path of a database       :class:`SearchResults`, which keeps
                     or of several, search options, optionally a store       each :class:`QueryResult`
``all_pairs``        the path of a database, search options              the same, with each pair of sequences once
``align_families``   the same queries, the paths of several databases        :class:`SearchResults`, of all databases
``find_domains``     a database of proteins, files of models             :class:`AnnotatedProtein` of each protein
``align``            two sequences, mode and scoring                         :class:`PairAlignment`
``write_report``     results, format, output path                            nothing; it writes the file
===================  ======================================================  ==================================

``import swsearch`` offers these functions, and ``build_database`` of :mod:`swsearch.database.builder`. They use the
same modules as the command line, so both give the same hits.

>>> import swsearch, tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "proteins.fasta").write_text(">first a protein\nMKVLAAGIVGLLLAQWERTY\n>second\nMKWVTFISLLFLFSSAYS\n")
>>> _ = swsearch.build_database(folder / "proteins.fasta", folder / "proteins.db")
>>> for result in swsearch.search_database([("mine", "MKVLAAGIVGLQWERTY")], folder / "proteins.db"):
...     for hit in result.hits[:1]:
...         print(hit.query_id, hit.subject_id, hit.score, hit.qstart, hit.qend, hit.alignment.cigar)
mine first 74 1 17 11=3D6=
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from swsearch import arguments
from swsearch.database import opening
from swsearch.database.opening import Databases
from swsearch.database.reader import PackedDatabase
from swsearch.domains.annotation import AnnotatedProtein, DomainLimits, open_annotation
from swsearch.engine.cpu.pairs import CpuPairs
from swsearch.engine.registry import Machine
from swsearch.errors import InputError, WrongType
from swsearch.file_registry import is_store_url, registered, registry
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.options import EVERY_SUBJECT, FAMILY_EVALUE, FAMILY_ITERATIONS, FAMILY_TOP, PAIR_EVALUE, SEARCH_OPTIONS
from swsearch.output_files import refuse_compressed, text_file
from swsearch.pairs.pair_alignment import MODES, PairAlignment, PairScoring, align_pair, mode_scoring, scheme_scoring
from swsearch.pairs.sequence import PairSequence, from_record
from swsearch.report.anchored import with_kept_rows
from swsearch.report.formats import Use, new_report
from swsearch.report.row_filter import EVERY_ROW, RowFilter
from swsearch.report_context import database_use, report_context
from swsearch.run import Run, survey
from swsearch.run.deep_alignments import deep_alignments, distinct, joined, open_searchers
from swsearch.search.options import SearchOptions
from swsearch.search.queries import Queries, QueriesInMemory, Query, QueryFiles, SubjectQueries, query_records
from swsearch.search.searcher import open_searcher
from swsearch.search_results import SearchResults
from swsearch.sequences.alphabet import detect_alphabet
from swsearch.sequences.fasta_text import SubjectPart
from swsearch.sequences.record import SequenceRecord, named_sequence
from swsearch.words import a_kind, option

if TYPE_CHECKING:
    from swsearch.store.store import Store

SEARCH_NAMES: Final = tuple(field.name for field in fields(SearchOptions))
PAIR_NAMES: Final = tuple(row.name for row in SEARCH_OPTIONS.values() if "align" in row.commands)
"""The fields of :class:`SearchOptions` that :func:`align` uses."""
PAIR_OPTIONS: Final = SearchOptions(top=EVERY_SUBJECT, evalue=PAIR_EVALUE)
"""The options of :func:`all_pairs`."""
FAMILY_OPTIONS: Final = SearchOptions(top=FAMILY_TOP, evalue=FAMILY_EVALUE, iterations=FAMILY_ITERATIONS)
"""The options of :func:`align_families`."""
DOMAIN_LIMITS: Final = DomainLimits()
"""The limits of :func:`find_domains`."""


def open_database(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> PackedDatabase:
    r"""A packed database, open for reading; a context manager.

    ``path`` is a folder; its URL in an object store, such as ``s3://bucket/proteins.db``; or a file of FASTA or FASTQ,
    which is packed into the cache of this node, where the next call finds it. A sequence of paths opens several
    databases as one, in which the subjects of each follow those of the one before it.

    Raises
    ------
    DatabaseError
        There is no database at ``path``, it is damaged, or it cannot be fetched or packed.
    InputError
        A sequence file cannot be read; or databases have different alphabets, or one is named twice.

    >>> import swsearch, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "one.fasta").write_text(">first\nMKVLAAGIVGLLLAQWERTY\n")
    >>> _ = swsearch.build_database(folder / "one.fasta", folder / "one.db")
    >>> with swsearch.open_database(folder / "one.db") as database:
    ...     database.n_subjects, database.n_residues, database.header(0)
    (1, 20, 'first')
    """
    return opening.open_database(arguments.paths("path", path))


@registered()
def search_database(
    queries: str | os.PathLike[str] | Query | Iterable[Query],
    database: Databases,
    options: SearchOptions | None = None,
    *,
    engine: str = "auto",
    threads: int | None = None,
    devices: Sequence[int] | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    progress: Callable[[int], None] | bool | None = None,
    **more: Any,
) -> SearchResults:
    r"""Search a database with the sequences of a file, or with sequences in memory.

    Errors in the arguments are raised by the call. The database remains open until the results end or are closed.

    Parameters
    ----------
    queries : path, query, or iterable of queries
        A path refers to a file of FASTA, FASTQ or profiles; a single string is a path. A query is a ``SequenceRecord``,
        Biopython's ``SeqRecord`` or ``Seq``, a string of letters in an iterable, or a pair of a header and letters.
    database : path, PackedDatabase, or sequence of these
        A path as for :func:`open_database`, or an open database, which stays open. Several databases are searched as
        one: hits, their order and E-values are those of a database of all their sequences.
    options : SearchOptions, optional
    engine : str
        ``auto``, ``cuda``, ``cpu`` or ``reference``.
    threads : int, optional
        Number of CPU threads; by default, one per usable core.
    devices : sequence of int, optional
        CUDA device numbers of the GPUs; by default, the first GPU.
    store : path or Store, optional
        The store for the run, which is created if there is none; each query is committed before its result is yielded.
        An open store stays open.
    progress : callable or bool, optional
        Called with the number of cells completed since the last call; True shows a bar of tqdm, which is required.
    **more
        Fields of :class:`SearchOptions`, such as ``top=5``, in place of those of ``options``.

    Raises
    ------
    WrongType
        An argument is of an unsupported type; the message names it, and states the position and the type of a query.
    InputError
        A query has invalid letters, a file cannot be read, or an option is out of range.
    DatabaseError
        The database cannot be opened.
    EngineUnavailable
        The requested engine cannot be used on this machine.

    Examples
    --------
    >>> import swsearch, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "proteins.fasta").write_text(">first a protein\nMKVLAAGIVGLLLAQWERTY\n")
    >>> _ = swsearch.build_database(folder / "proteins.fasta", folder / "proteins.db")
    >>> from Bio.Seq import Seq
    >>> from Bio.SeqRecord import SeqRecord
    >>> letters = "MKVLAAGIVGLQWERTY"
    >>> kinds = [letters, ("mine", letters), SeqRecord(Seq(letters), id="theirs")]
    >>> for result in swsearch.search_database(kinds, folder / "proteins.db"):
    ...     print(repr(result.header), [(hit.subject_id, hit.score) for hit in result.hits])
    '' [('first', 74)]
    'mine' [('first', 74)]
    'theirs' [('first', 74)]
    >>> swsearch.search_database(("mine", letters), folder / "proteins.db").to_arrow(["sseqid", "pident"]).to_pylist()
    [{'sseqid': 'first', 'pident': 85.0}]
    >>> swsearch.search_database([letters, 7], folder / "proteins.db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    swsearch.errors.WrongType: queries[1] is an int, not a query; give a SequenceRecord, a SeqRecord, letters, ...
    """
    (file,) = arguments.paths("queries", queries) if arguments.is_path(queries) else (None,)
    with ExitStack() as stack:
        progress = _progress(progress, stack)
        options = _with_options(options, more)
        kept = _store(store, stack)
        searcher = stack.enter_context(
            open_searcher(database, options, engine=engine, threads=threads, devices=devices)
        )
        chosen: Queries
        if file is not None:
            files = QueryFiles.of([file], "auto")
            n_queries = survey(files, searcher, skip_refused=False).asked.n_queries or 0
            chosen = files
        else:
            records = query_records(queries, searcher)
            chosen, n_queries = QueriesInMemory(records), len(records)
        run = Run(chosen, searcher, store=kept, skip_refused=False, progress=progress)
        return _started(run, searcher.database, n_queries, stack)


@registered()
def all_pairs(
    database: str | os.PathLike[str],
    options: SearchOptions = PAIR_OPTIONS,
    *,
    engine: str = "auto",
    threads: int | None = None,
    devices: Sequence[int] | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    progress: Callable[[int], None] | bool | None = None,
    **more: Any,
) -> SearchResults:
    r"""Compare all sequences of a database with each other, each pair once; ``swsearch allpairs``.

    Every sequence is a query, the longest first. Its hits are those subjects that are shorter, or equally long and
    before it in the database. Filters on subjects choose the sequences on both sides.

    Parameters
    ----------
    database : path
    options : SearchOptions
        By default, E-values of up to 0.001 and lists that are not cut. ``top`` cuts the list of each query.
    engine, threads, devices, store, progress, **more
        As for :func:`search_database`.

    Raises
    ------
    InputError, DatabaseError, EngineUnavailable
        As for :func:`search_database`; or the options translate or iterate.

    Examples
    --------
    >>> import swsearch, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "three.fasta").write_text(">a\nMKVLAAGIVGLLLAQW\n>b\nPPGPPGPPG\n>c\nMKVLAAGIVGLQWERTY\n")
    >>> _ = swsearch.build_database(folder / "three.fasta", folder / "three.db")
    >>> for result in swsearch.all_pairs(folder / "three.db"):
    ...     for hit in result.hits:
    ...         print(hit.query_id, hit.subject_id, hit.score)
    c a 52
    """
    with ExitStack() as stack:
        progress = _progress(progress, stack)
        options = _with_options(options, more)
        kept = _store(store, stack)
        searcher = stack.enter_context(
            open_searcher(database, options, engine=engine, threads=threads, devices=devices)
        )
        queries = SubjectQueries.of(searcher)
        run = Run(queries, searcher, store=kept, skip_refused=False, search_repeated=True, progress=progress)
        return _started(run, searcher.database, len(queries.order[0]), stack)


@registered()
def align_families(
    queries: str | os.PathLike[str] | Query | Iterable[Query],
    databases: Databases | Sequence[Databases],
    options: SearchOptions = FAMILY_OPTIONS,
    *,
    rows: RowFilter = EVERY_ROW,
    engine: str = "auto",
    threads: int | None = None,
    devices: Sequence[int] | None = None,
    **more: Any,
) -> SearchResults:
    r"""The hits of each query in several databases, as one deep multiple alignment; ``swsearch msa``.

    The first database is searched with the options. Each further one is searched once, with the profile of the first
    one's last round. The hits of a result are those whose rows differ from all rows before and pass the conditions;
    :func:`write_report` writes them in the format ``a3m``.

    Parameters
    ----------
    queries : path, query, or iterable of queries
        As for :func:`search_database`, but no profiles.
    databases : sequence of paths
        At least one; a single path is one database. A sequence of paths in place of one is searched as one database.
    options : SearchOptions
        By default those of ``swsearch msa``: three rounds, E-values of up to 0.1 and 10,000 subjects of each database.
    rows : RowFilter
        By default, no row is left out because it is similar to another one.
    engine, threads, devices, **more
        As for :func:`search_database`.

    Raises
    ------
    InputError, DatabaseError, EngineUnavailable
        As for :func:`search_database`; or the databases have different alphabets, or there are none.

    Examples
    --------
    >>> import swsearch, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "one.fasta").write_text(">first\nMKVLAAGIVGLLLAQWERTY\n")
    >>> _ = (folder / "two.fasta").write_text(">again\nMKVLAAGIVGLLLAQWERTY\n>other\nMKVLAAGWVGLLQWERTY\n")
    >>> for name in ("one", "two"):
    ...     _ = swsearch.build_database(folder / f"{name}.fasta", folder / f"{name}.db")
    >>> found = swsearch.align_families([("mine", "MKVLAAGIVGLQWERTY")], [folder / "one.db", folder / "two.db"])
    >>> swsearch.write_report(found, folder / "mine.a3m", "a3m")
    >>> [line.split("\t")[0] for line in (folder / "mine.a3m").read_text().splitlines()]
    ['>mine', 'MKVLAAGIVGLQWERTY', '>first', 'MKVLAAGIVGLllaQWERTY', '>other', 'MKVLAAGWVGlLQWERTY']
    """
    options = _with_options(options, more)
    arguments.of_type("rows", rows, RowFilter, "a RowFilter")
    is_single = isinstance(databases, (str, os.PathLike, PackedDatabase))
    if not is_single and (not isinstance(databases, Iterable) or isinstance(databases, (bytes, bytearray))):
        raise WrongType(f"{option('databases', databases)}: a path, or a list of paths, is needed")
    in_turn = cast("Sequence[Databases]", [databases] if is_single else list(cast("Iterable[Databases]", databases)))
    with ExitStack() as stack:
        searchers = open_searchers(in_turn, options, stack, Machine(engine, threads, devices))
        first = searchers[0]
        if arguments.is_path(queries):
            files = QueryFiles.of_sequences(arguments.paths("queries", queries))
            for searcher in searchers:
                survey(files, searcher, skip_refused=False)
            read = files.records(first)
            records = [record for record in read if isinstance(record, SequenceRecord)]
        else:
            records = query_records(queries, first)
        alphabet = first.options.aligned_alphabet(first.database.alphabet)
        alignments = stack.enter_context(closing(deep_alignments(records, searchers)))
        results = (with_kept_rows(distinct(joined(found)), rows, alphabet) for found in alignments)
        run = first.run_info("python").having_read(registry().sources)
        return SearchResults(run, None, results, stack.pop_all(), len(records))


def _store(store: Store | str | os.PathLike[str] | None, opened: ExitStack) -> Callable[[], Store] | None:
    """A function that opens the store of a run, if there is one; a path is closed after what ``opened`` gets later."""
    if store is None:
        return None
    from swsearch.store.store import Store, open_store

    if not arguments.is_path(store):
        if isinstance(store, Store):
            return lambda: store
        raise WrongType(f"{option('store', store)}: a path, or an open Store, is needed")
    place = arguments.path("store", store)
    if is_store_url(place):
        from swsearch.store.connections import check_url

        check_url(place)
    closed_last = opened.enter_context(ExitStack())

    def opened_store() -> Store:
        return closed_last.enter_context(open_store(place, create=True))

    return opened_store


def _started(run: Run, database: PackedDatabase, n_queries: int, opened: ExitStack) -> SearchResults:
    """The results of a run, which has checked its arguments and begun with the first queries; they close ``opened``."""
    opened.enter_context(run)
    return SearchResults(run.info, run.outcome.run_id, iter(run), opened.pop_all(), n_queries, database)


def _with_options(
    options: SearchOptions | None, more: dict[str, Any], known: Sequence[str] = SEARCH_NAMES
) -> SearchOptions:
    """The options with the fields that are given by name; WrongType names one that is not among the known ones."""
    chosen = (
        SearchOptions() if options is None else arguments.of_type("options", options, SearchOptions, "a SearchOptions")
    )
    unknown = next((name for name in more if name not in known), None)
    if unknown is not None:
        similar = get_close_matches(unknown, known, n=1)
        listed = f"choose {', '.join(known)}" if known == PAIR_NAMES else "help(swsearch.SearchOptions) lists them"
        meant = f"did you mean {similar[0]}?" if similar else listed
        raise WrongType(f"there is no option {unknown!r}; {meant}")
    return replace(chosen, **more)


def _progress(asked: Callable[[int], None] | bool | None, opened: ExitStack) -> Callable[[int], None] | None:
    """The function that is told of progress: the one that was given, or a bar that ``opened`` closes."""
    if asked is None or asked is False:
        return None
    if asked is not True:
        arguments.function("progress", asked)
        return asked
    tqdm = arguments.needed_module("tqdm", "progress=True").tqdm
    bar = opened.enter_context(tqdm(desc="searching", unit=" cells", unit_scale=True))

    def advance(cells: int) -> None:
        bar.update(cells)

    return advance


@registered()
def write_report(
    results: SearchResults | tuple[RunInfo, Iterable[QueryResult]],
    path: str | os.PathLike[str],
    format: str = "table",
    fields: Sequence[str] | None = None,
    rows: RowFilter | None = None,
    part: SubjectPart | None = None,
    database: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    taxonomy: str | os.PathLike[str] | None = None,
    taxid_map: str | os.PathLike[str] | None = None,
    lca_top: float | None = None,
) -> None:
    r"""Write all results in a format of ``swsearch query``; the file appears only when it is complete.

    Parameters
    ----------
    results : SearchResults, or a pair of RunInfo and results
        For a stored run, the pair is ``(store.runs.get(id).info, store.results.queries(id))``.
    path : path
        Output file, which is compressed if its name ends with .gz, .bz2, .xz or .zst.
    format : str
        ``table``, ``pairwise``, ``blast6``, ``blast7``, ``tsv``, ``csv``, ``json``, ``jsonl``, ``sam``, ``gff3``,
        ``bed``, ``paf``, ``a3m``, ``sto``, ``afasta``, ``xml``, ``xml2``, ``json2``, ``parquet``, ``html``, ``fasta``,
        ``lca``, ``kraken``, ``taxa-html`` or ``multiqc``.
    fields : sequence of str, optional
        Columns, for the formats in which they can be selected.
    rows : RowFilter, optional
        Conditions on the rows of a multiple alignment, for ``a3m``, ``sto`` and ``afasta``.
    part : SubjectPart, optional
        The part of each subject that ``fasta`` writes; by default, the whole sequence.
    database : path or sequence of paths, optional
        The database of a stored run, or all of several in their order, if they have other paths now. It is read for
        ``fasta``, the column ``full_sseq`` and the organisms of subjects.
    taxonomy, taxid_map : path, optional
        The taxonomy for the report of a stored run, in place of that of its database; as in :class:`SearchOptions`.
    lca_top : float, optional
        For ``lca``, ``kraken``, ``taxa-html`` and the fields of the query's taxon: the percentage of the best bit score
        within which hits count; by default 10.

    Raises
    ------
    InputError
        The format or a field is unknown; the file cannot be created, was read by the search, is a store, or lies in a
        packed database; whole subjects are asked for of results of several databases; or the report needs a taxonomy
        and there is none.
    DatabaseError
        The report of a stored run needs the database, which has changed or is not there any more.

    >>> import swsearch, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "one.fasta").write_text(">first\nMKVLAAGIVGLLLAQWERTY\n")
    >>> _ = swsearch.build_database(folder / "one.fasta", folder / "one.db")
    >>> found = swsearch.search_database(folder / "one.fasta", folder / "one.db")
    >>> swsearch.write_report(found, folder / "hits.tsv", "blast6", ["qseqid", "sseqid", "pident", "evalue"])
    >>> (folder / "hits.tsv").read_text()
    'first\tfirst\t100.000\t5.39e-14\n'
    """
    for name, file in (("path", path), ("taxonomy", taxonomy), ("taxid_map", taxid_map)):
        if file is not None or name == "path":
            arguments.path(name, file)
    arguments.text("format", format)
    columns = None if fields is None else arguments.names("fields", fields)
    arguments.optional("rows", rows, RowFilter, "a RowFilter")
    arguments.optional("part", part, SubjectPart, "a SubjectPart")
    places = None if database is None else arguments.paths("database", database)
    percent = None if lca_top is None else arguments.number("lca_top", lca_top)
    report = new_report(format, columns, rows, part, lca_top=percent)
    target = Path(path)
    if report.binary:
        refuse_compressed(target, "path", f"format {format} is compressed by itself")
    queries: Iterable[QueryResult]
    pair = results if isinstance(results, tuple) and len(results) == 2 else (None, None)
    is_stored = isinstance(pair[0], RunInfo) and isinstance(pair[1], Iterable)
    if not isinstance(results, SearchResults) and not is_stored:
        needed = "give the results of a search, or the record of a stored run and its queries"
        raise WrongType(f"results is {a_kind(results)}; {needed}")
    run, queries = (results.run, results) if isinstance(results, SearchResults) else results
    registry().read_sources(run.sources)
    registry().write("path", target)
    report.check_fits(run)
    places = list(run.database.paths) if places is None else places
    shown = ", ".join(map(os.fspath, places))
    with ExitStack() as stack:
        if isinstance(results, SearchResults):
            if database is not None:
                raise InputError(f"database {shown}: a search has its own; only stored runs need one")
            if taxonomy is not None or taxid_map is not None:
                given = option("taxonomy", taxonomy) if taxid_map is None else option("taxid_map", taxid_map)
                raise InputError(f"{given}: a search has the taxonomy of its options; only stored runs need one")
            context = results.context_of(report)
        else:
            tree, taxids = (None if path is None else os.fspath(path) for path in (taxonomy, taxid_map))
            use, opened = database_use(report, run, tree, taxids, is_named=database is not None), None
            if use is not Use.NONE:
                opened = stack.enter_context(opening.open_database(places, searched=run.database.digests))
            elif database is not None:
                raise InputError(f"database {shown}: this report is written from the records alone")
            context = report_context(report, run, opened, tree, taxids)
        report.write_all(context, queries, stack.enter_context(text_file(target, "path")))


def find_domains(
    database: Databases,
    models: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    limits: DomainLimits = DOMAIN_LIMITS,
    *,
    engine: str = "auto",
    threads: int | None = None,
    devices: Sequence[int] | None = None,
    progress: Callable[[int], None] | bool | None = None,
) -> list[AnnotatedProtein]:
    r"""The domains of proteins with a library of families; ``swsearch domains``.

    Parameters
    ----------
    database : path, PackedDatabase, or sequence of these
        The proteins, as for :func:`search_database`.
    models : path or sequence of paths
        Files of HMMER's models.
    limits : DomainLimits
        Which families and domains are reported.
    engine, threads, devices, progress
        As for :func:`search_database`.

    Returns
    -------
    list of AnnotatedProtein
        One for each protein, in the order of the database, also for those without a domain.

    Raises
    ------
    InputError, DatabaseError, EngineUnavailable
        As for :func:`search_database`; or the sequences are not proteins, or a model is damaged or has no statistics.

    Examples
    --------
    >>> import swsearch, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> letters = "MKVLAAGIVGLLLAQWERTYMKVLAAGIVGLLLAQWERTY"
    >>> _ = (folder / "one.fasta").write_text(f">unrelated\n{letters}\n")
    >>> [protein.families for protein in swsearch.find_domains(folder / "one.fasta", "data/families.hmm.gz")]
    [()]
    """
    arguments.of_type("limits", limits, DomainLimits, "a DomainLimits")
    files = arguments.paths("models", models)
    with ExitStack() as stack:
        advance = _progress(progress, stack)
        machine = Machine(engine, threads, devices)
        annotation = stack.enter_context(open_annotation(database, files, limits, machine))
        return list(annotation.proteins(advance))


def align(
    query: str | SequenceRecord,
    subject: str | SequenceRecord,
    mode: str = "local",
    options: SearchOptions | None = None,
    *,
    free_ends: str | None = None,
    path: bool = True,
    threads: int = 1,
    **more: Any,
) -> PairAlignment:
    """The best alignment of two sequences over all their cells.

    Parameters
    ----------
    query, subject : str or SequenceRecord
        ``edit`` and ``lcs`` compare the letters of any text; the other modes score residues.
    mode : str
        ``local``, ``global``, ``semiglobal``, ``edit`` or ``lcs``.
    options : SearchOptions, optional
        Only its scoring is used: matrix, match and mismatch, gap costs; by default, those of the alphabet.
    free_ends : str, optional
        For ``semiglobal`` and ``edit``: the ends at which letters outside the alignment cost nothing, as one or several
        of ``both``, ``query``, ``subject``, ``query-start``, ``query-end``, ``subject-start`` and ``subject-end``,
        joined by commas, or as a mode of edlib (``HW``, ``SHW``, ``NW``). By default ``both`` for ``semiglobal``, and
        none for ``edit``.
    path : bool
        Whether the alignment is computed; otherwise, only score and ends are computed.
    threads : int
    **more
        ``matrix``, ``match``, ``mismatch``, ``gap_open`` or ``gap_extend``, in place of those of ``options``.

    Raises
    ------
    WrongType
        An argument is of an unsupported type, or there is no option of that name.
    InputError
        A letter is not in the alphabet, or the parameters are inconsistent.

    >>> import swsearch
    >>> swsearch.align("RISOTTO", "PRESTO", "edit").score
    4
    >>> found = swsearch.align("ACGTTGCA", "ACGTGCA", "global")
    >>> found.score, found.cigar
    (7, '3=1I4=')
    >>> swsearch.align("MKVLAAGIVG", "MKVLAGIVG", matrix="PAM30").score
    55
    """
    for name, side in (("query", query), ("subject", subject)):
        if not isinstance(side, (str, SequenceRecord)):
            raise WrongType(f"{option(name, side)}: letters or a SequenceRecord are needed")
    arguments.choice("mode", mode, MODES)
    chosen = _with_options(options, more, PAIR_NAMES)
    arguments.optional("free_ends", free_ends, str, "a string")
    arguments.flag("path", path)
    scoring: PairScoring | None = None
    if mode in ("edit", "lcs"):
        for name, value in more.items():
            raise InputError(f"{option(name, value)}: {option('mode', mode)} has costs of its own; leave it out")
        sides = [PairSequence("", side if isinstance(side, str) else side.letters) for side in (query, subject)]
    else:
        records = _records(query=query, subject=subject)
        sides = [from_record(record) for record in records]
        scoring = scheme_scoring(chosen.scheme(records[0].alphabet, local=mode == "local"))
    mode_scoring(mode, scoring)
    backend = CpuPairs(threads)
    return align_pair(sides[0], sides[1], mode, scoring, free_ends=free_ends, path=path, backend=backend)


def _records(**sides: str | SequenceRecord) -> list[SequenceRecord]:
    """The sides as records of one alphabet, which is detected from the letters of both if they are strings."""
    known = [side.alphabet for side in sides.values() if isinstance(side, SequenceRecord)]
    letters = "".join(side for side in sides.values() if isinstance(side, str))
    alphabet = known[0] if known else detect_alphabet(letters.encode("utf-8", "replace"))
    return [
        side if isinstance(side, SequenceRecord) else named_sequence(name, side, alphabet)
        for name, side in sides.items()
    ]

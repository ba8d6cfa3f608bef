"""``swsearch query``: search a database with the sequences of a file, print the hits and store them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import options

if TYPE_CHECKING:
    from swsearch.hits.result import QueryResult


def query(
    query_file: Annotated[str, typer.Argument(metavar="QUERY.fasta", help="Queries as FASTA or FASTQ; - is stdin.")],
    database_path: Annotated[str, typer.Argument(metavar="DB", help="A database made by `swsearch index`.")],
    alphabet: options.Alphabet = None,
    top: options.Top = 25,
    evalue: options.Evalue = 10.0,
    ties: options.Ties = "cut",
    strand: options.Strand = "both",
    matrix: options.Matrix = None,
    match: options.Match = None,
    mismatch: options.Mismatch = None,
    gap_open: options.GapOpen = None,
    gap_extend: options.GapExtend = None,
    dbsize: options.DbSize = None,
    engine: options.Engine = "auto",
    threads: options.Threads = None,
    devices: options.Devices = "0",
    partition_residues: options.PartitionResidues = None,
    format_name: options.Format = "table",
    fields: options.Fields = None,
    out: options.Out = None,
    store: options.Store = options.DEFAULT_STORE,
    quiet: options.Quiet = False,
) -> None:
    """Search a database with every sequence of a file; print ranked hits and store them.

    Each query is aligned with every subject, so no hit is lost. Results go to stdout, talk to stderr.

    Example: swsearch query queries.fasta proteins.db --top 10
    """
    from swsearch.cli.output import result_stream, say
    from swsearch.cli.progress import ProgressReport
    from swsearch.report.registry import get_format
    from swsearch.search.api import open_searcher, read_queries
    from swsearch.search.options import SearchOptions

    chosen = SearchOptions(top, evalue, ties, strand, matrix, match, mismatch, gap_open, gap_extend, dbsize)
    report = get_format(format_name, options.field_list(fields))
    with ExitStack() as stack:
        searcher, why = stack.enter_context(
            open_searcher(
                database_path,
                chosen,
                engine=engine,
                threads=threads,
                devices=options.device_list(devices),
                partition_residues=partition_residues,
            )
        )
        expected = searcher.database.alphabet
        options.check_alphabet(alphabet, expected.name, database_path)
        queries = read_queries(query_file, expected, as_asked=alphabet is not None)
        for record in queries:
            searcher.check(record)
        run = searcher.run_info(shlex.join(["swsearch", *sys.argv[1:]]))
        if not quiet:
            say(why)
            if run.lam is None:
                say(f"no E-values: {run.statistics}")
        stream = stack.enter_context(result_stream(out, binary=report.binary))
        recorder = None
        if store != "none":
            from swsearch.store.recorder import recorded_run
            from swsearch.store.repository import HitStore

            opened = stack.enter_context(HitStore(store, create=True))
            recorder = stack.enter_context(recorded_run(opened, run))
        total = sum(searcher.cells(record) for record in queries)
        progress = stack.enter_context(ProgressReport("searching", total, "GCUPS", 1e9, quiet))

        def results() -> Iterator[QueryResult]:
            for result in searcher.search(queries, progress.advance):
                if recorder is not None:
                    recorder.add(result)
                progress.note(f"{result.number + 1} of {len(queries)} queries done")
                yield result

        report.write(run, results(), stream)
    if recorder is not None and not quiet:
        say(f"stored as run {recorder.run_id} in {store}")

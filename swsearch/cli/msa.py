"""``swsearch msa``: deep multiple alignments for structure prediction, from one or several databases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from swsearch.cli import options
from swsearch.cli.output import ProgressReport, inform, result_stream
from swsearch.cli.query import is_database
from swsearch.errors import InputError, UsageError
from swsearch.file_registry import registry
from swsearch.output_files import text_file
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.hits.result import QueryResult
    from swsearch.report.base import Report
    from swsearch.report.row_filter import RowFilter
    from swsearch.search.searcher import Searcher
    from swsearch.sequences.record import SequenceRecord

PAIRINGS: Final = ("none", "complete", "greedy")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._+-]+")
_LONGEST_NAME: Final = 100


def msa(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY… DB…",
            click_type=options.INPUT_NAME,
            help="Query files (- is stdin), then one or more databases as for `swsearch query`.",
        ),
    ],
    *,
    context: typer.Context,
) -> None:
    """Make a deep multiple alignment of each query, for structure prediction and families.

    The first database is searched in up to three rounds, each with a profile of the previous hits. The last profile
    searches the other databases, and their hits follow; or all are searched as one. No row is repeated. Alignments of
    many rows are reduced to diverse ones, as on ColabFold's server. Nothing is stored.

    Example: swsearch msa query.fasta uniref.db environmental.db --out query.a3m

    Example: swsearch msa query.fasta swissprot.db trembl.db --together --out query.a3m

    Example: swsearch msa queries.fasta uniref.db --out alignments/

    Example: swsearch msa chains.fasta uniref.db --pair complete --out complex.a3m
    """
    arguments: options.Arguments = context.obj
    paths, databases = _split(files)
    out, pair = arguments.out, arguments.pair
    if arguments.together and len(databases) == 1:
        raise InputError(f"--together: {databases[0]} is the only database; name further ones, or leave it out")
    from swsearch.cli.report import CutMessage

    folder = None if out is None or not (out.endswith("/") or Path(out).is_dir()) else Path(out)
    file = out if folder is None else None
    format_name = arguments.format_by_name(file)
    report = _report(format_name, pair)
    if folder is not None and pair != PAIRINGS[0]:
        raise InputError(f"--out {out}: a complex has one alignment; name a file")
    from swsearch.report.base import ReportContext
    from swsearch.report.pairing import write_complex
    from swsearch.run.deep_alignments import deep_alignments, joined

    with ExitStack() as stack:
        searchers, queries = _opened(paths, databases, arguments, stack)
        files_of_queries = _files_of_queries(queries, folder, format_name)
        for path in files_of_queries:
            registry().write("--out", path)
        for line in (searchers[0].engine_choice, *searchers[0].notes):
            inform(line)
        cells = sum(searcher.cells(query) for searcher in searchers for query in queries)
        progress = stack.enter_context(ProgressReport("searching", cells, "GCUPS", 1e9))
        names = [searcher.run_info("").database.name for searcher in searchers]
        run = searchers[0].run_info("")
        cut = CutMessage(is_search=True)
        cut.begin(run)

        def finish(results: Sequence[QueryResult]) -> QueryResult:
            for result in results:
                cut.write(result)
            return _finished(results, searchers[0], names, arguments.rows)

        found = deep_alignments(queries, searchers, progress.advance)
        beside = ReportContext(run)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            for results, path in zip(found, files_of_queries, strict=True):
                with text_file(path, "--out") as stream:
                    report.write_all(beside, [finish(results)], stream)
        else:
            with result_stream(None if out is None else Path(out)) as stream:
                if pair == PAIRINGS[0]:
                    report.write_all(beside, map(finish, found), stream)
                else:
                    chains = list(found)
                    rows_of_each = list(map(finish, chains))
                    write_complex(list(map(joined, chains)), rows_of_each, stream, complete=pair == "complete")
        cut.end()


def _finished(
    results: Sequence[QueryResult], searcher: Searcher, names: Sequence[str], rows: RowFilter | None
) -> QueryResult:
    """A query with the hits in all databases that have a row; a line about its alignment is said."""
    from swsearch.report.anchored import alignment_codes, n_kinds, name_of, with_kept_rows
    from swsearch.report.row_filter import EVERY_ROW, effective_number, mean_kinds
    from swsearch.run.deep_alignments import distinct, joined

    alphabet = searcher.options.aligned_alphabet(searcher.database.alphabet)
    kept = with_kept_rows(distinct(joined(results)), rows or EVERY_ROW, alphabet)
    codes, kinds = alignment_codes(kept, alphabet), n_kinds(alphabet)
    of_each = zip(names, results, strict=True)
    sources = ", ".join(f"{counted(one.n_subjects, 'subject')} in {name}" for name, one in of_each)
    neff = effective_number(codes, kinds, searcher.threads)
    rounds = f"{counted(kept.n_rounds, 'round')}{', converged' if kept.converged else ''}"
    diversity = f"Neff {neff:.2f}, {mean_kinds(codes, kinds):.2f} different residues a column"
    inform(f"{name_of(kept.header)}: {counted(len(codes), 'row')} ({sources}; {rounds}), {diversity}")
    return kept


def _split(files: list[str]) -> tuple[list[str], list[str]]:
    """The query files, and the databases: the arguments from the first one that is a database on, or else the last."""
    known = [place for place, path in enumerate(files) if is_database(path)]
    first = known[0] if known else len(files) - 1
    if first < 1:
        raise UsageError("give at least one query file and then the databases")
    return files[:first], files[first:]


def _report(format_name: str, pair: str) -> Report:
    from swsearch.report.formats import new_report

    if pair not in PAIRINGS:
        raise InputError(f"--pair {pair!r}: choose {', '.join(PAIRINGS)}")
    if pair != PAIRINGS[0] and format_name != "a3m":
        raise InputError(f"--format {format_name}: a complex is written as a3m; leave --pair or --format out")
    return new_report(format_name)


def _opened(
    paths: list[str], databases: list[str], arguments: options.Arguments, stack: ExitStack
) -> tuple[list[Searcher], list[SequenceRecord]]:
    """The searchers of the databases, or of all together, and the queries, checked."""
    from swsearch.cli.databases import open_databases
    from swsearch.cli.report import refuse_unused
    from swsearch.run import survey
    from swsearch.run.deep_alignments import open_searchers
    from swsearch.search.queries import QueryFiles
    from swsearch.sequences.record import SequenceRecord

    files = QueryFiles.of_sequences(paths)
    groups = [databases] if arguments.together else [[path] for path in databases]
    subjects = [stack.enter_context(open_databases(paths, threads=arguments.threads)) for paths in groups]
    refuse_unused(None, arguments)
    searchers = open_searchers(subjects, arguments.asked, stack, arguments.machine)
    for searcher in searchers:
        survey(files, searcher, skip_refused=False)
    records = files.records(searchers[0])
    return searchers, [record for record in records if isinstance(record, SequenceRecord)]


def _files_of_queries(queries: Sequence[SequenceRecord], folder: Path | None, format_name: str) -> list[Path]:
    """A file for each query, named by its identifier."""
    if folder is None:
        return []
    from swsearch.report.formats import FORMATS

    names: dict[str, str] = {}
    for query in queries:
        first = name = _UNSAFE.sub("_", query.identifier).strip("._")[:_LONGEST_NAME] or "unnamed"
        number = 2
        while name.lower() in names:  # some file systems ignore case
            name, number = f"{first}~{number}", number + 1
        names[name.lower()] = name
    return [folder / f"{name}{FORMATS[format_name].file_ending}" for name in names.values()]

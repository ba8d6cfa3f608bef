"""``swsearch report``: output of a stored run in any format, without any computation; the steps that write outputs.

The steps are those of a run that the options of a command ask for: the report, and files of profiles or queries beside
it. Searches use them, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from swsearch.cli import options
from swsearch.cli.output import inform, result_stream, say, table_width
from swsearch.errors import DatabaseError, InputError
from swsearch.file_registry import is_url
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.options import EVERY_SUBJECT, offered
from swsearch.report.base import Report, Step, perform
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.cli.command_run import CommandRun
    from swsearch.database.reader import PackedDatabase
    from swsearch.report.taxa import CommonAncestors
    from swsearch.search.queries import QueryFiles
    from swsearch.store.runs import StoredRun
    from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects

# --- the report ---


def asked_report(arguments: options.Arguments) -> Report:
    """The report of a command, in the format that is asked for or that the name of the output file says.

    Raises
    ------
    InputError
        There is no such format, or it does not take an option of the report.
    """
    from swsearch.report.formats import new_report

    name = arguments.format_by_name(arguments.out)
    arguments = arguments.changed(format=name)
    return new_report(
        name,
        arguments.fields,
        arguments.rows,
        arguments.part,
        table_width(name, arguments.out, arguments.width),
        arguments.lca_top,
    )


def refuse_unused(report: Report | None, arguments: options.Arguments) -> None:
    """Refuse ``--taxonomy`` and ``--taxid-map`` where neither a filter nor the report uses them.

    Those of the configuration are defaults for the commands that need them, and are not refused.

    Raises
    ------
    InputError
        One of them is given, and nothing uses it.
    """
    if arguments.taxid is not None or not arguments.gives("taxonomy", "taxid_map"):
        return
    from swsearch.report.formats import Use

    if report is None or report.taxonomy_use is Use.NONE:
        here = "there is no report" if report is None else f"{report_called(report)} has none"
        raise InputError(f"--taxid-map and --taxonomy serve --taxid and reports with taxa; {here}, leave them out")


def report_called(report: Report) -> str:
    """The report in messages."""
    from swsearch.report.formats import COLUMNS

    return f"format {report.name}" + (" with these columns" if report.name in COLUMNS else "")


def steps_of_report(
    report: Report, arguments: options.Arguments, run: RunInfo, database: PackedDatabase | None, stack: ExitStack
) -> list[Step]:
    """The steps that write the report of a run to ``--out``, whose file is complete when ``stack`` is closed.

    If the report has organisms, the steps say which ids are not current and, where ``--top`` may have cut them, which
    lists may be too short for the taxa of their queries.

    Raises
    ------
    InputError
        The format cannot represent the run, needs a taxonomy and there is none, or the output cannot be created.
    """
    from swsearch.report_context import report_context

    report.check_fits(run)
    taxonomy, taxid_map = arguments.taxonomy, arguments.taxid_map
    context = report_context(report, run, database, taxonomy, taxid_map, report_called(report))
    report.write_to(stack.enter_context(result_stream(arguments.out, binary=report.binary)), context)
    if context.taxonomy is None:
        return [report]
    cuts_lists = any(row.name == "top" for row in offered(arguments.command))  # where a larger --top would go on
    return [report, TaxonMessages(context.taxonomy, report.ancestors if cuts_lists else None)]


class TaxonMessages(Step):
    """Says what is to be known about the taxa of a report.

    Parameters
    ----------
    taxonomy : TaxonomyOfSubjects
        That of the report, which tells what ids are not current.
    ancestors : CommonAncestors or None
        That of the report, if lists may be too short for the taxa of queries.
    """

    def __init__(self, taxonomy: TaxonomyOfSubjects, ancestors: CommonAncestors | None) -> None:
        self._taxonomy = taxonomy
        self._ancestors = ancestors

    def begin(self, run: RunInfo) -> None:
        """Count the lists of the run."""
        self._run = run
        self._n_cut = 0

    def write(self, result: QueryResult) -> None:
        """Count the list of a query, if it is too short."""
        self._n_cut += self._ancestors is not None and self._ancestors.is_cut(self._run, result)

    def end(self) -> None:
        """Say the messages."""
        from swsearch.report.taxa import cut_lists

        for message in self._taxonomy.messages():
            inform(message)
        if self._ancestors is not None and (cut := cut_lists(self._run, self._ancestors.percent, self._n_cut)):
            inform(f"warning: {cut}")


# --- the ends of lists ---


class CutMessage(Step):
    """Says once for a run which lists end at ``--top``, and how many subjects have alignments that are not listed.

    Parameters
    ----------
    is_search : bool
        Whether the run is a search of this command, which could list more.
    holds_all : bool
        Whether a stored run has all subjects, so that a longer report lists them.
    """

    def __init__(self, *, is_search: bool, holds_all: bool = False) -> None:
        self._is_search = is_search
        self._holds_all = holds_all

    def begin(self, run: RunInfo) -> None:
        """Count the lists of the run."""
        from swsearch.report.summary import ListEnds

        self._lists = ListEnds(run)
        self._counts = run.counts_alignments
        self._n_subjects = self._n_alignments = 0

    def write(self, result: QueryResult) -> None:
        """Count the list of a query."""
        self._lists.count(result.n_subjects, result.n_passed)
        if self._counts:
            for hits in result.by_subject:
                n_further = (hits[0].n_hsps or 0) - len(hits)
                self._n_subjects += n_further > 0
                self._n_alignments += max(0, n_further)

    def end(self) -> None:
        """Say the message."""
        message = self._lists.message("--top all" if self._is_search or self._holds_all else "a search with --top all")
        if message is not None:
            inform(message)
        if self._n_subjects:
            have = "subject has" if self._n_subjects == 1 else "subjects have"
            further = counted(self._n_alignments, "further alignment")
            how = "" if self._is_search else "a search with a larger "
            inform(f"{self._n_subjects:,} listed {have} {further} (n_hsps); {how}--max-hsps lists more of them")


# --- --save-pssm ---


class SavedProfiles(Step):
    """``--save-pssm``: the profiles of the last rounds, written as PSI-BLAST's checkpoints.

    A query that was searched without a profile has the scores of the matrix in its checkpoint.

    Parameters
    ----------
    path : Path
        A file, or ``-`` for stdout.
    run : RunInfo
        The run whose profiles are saved.
    stack : ExitStack
        The file is complete when it is closed.

    Raises
    ------
    InputError
        The queries are not proteins, or the scoring scheme has no statistics, which a checkpoint contains.
    """

    def __init__(self, path: Path, run: RunInfo, stack: ExitStack) -> None:
        from swsearch.query.asn1 import write_checkpoint
        from swsearch.scoring.matrix import parse_matrix_text
        from swsearch.scoring.scheme import GapPenalty
        from swsearch.sequences.alphabet import PROTEIN

        if run.query_alphabet != "protein":
            raise InputError("--save-pssm saves profiles of proteins, and these queries are DNA; leave it out")
        if run.lam is None or run.k is None:
            raise InputError(f"--save-pssm: a checkpoint contains λ and K, and there are none: {run.statistics}")
        self._matrix = parse_matrix_text(run.matrix_scores, run.matrix, PROTEIN)
        gap = GapPenalty(run.gap_open, run.gap_extend)
        stream = stack.enter_context(result_stream(path, option="--save-pssm"))
        self._write = partial(write_checkpoint, stream, gap=gap, matrix=run.matrix, lam=run.lam, k=run.k)

    def write(self, result: QueryResult) -> None:
        """Write the profile of a query."""
        import numpy as np

        from swsearch.sequences.alphabet import CODE_MASK, PROTEIN

        codes = PROTEIN.encode(result.letters) & np.uint8(CODE_MASK)
        scores = self._matrix.scores[codes, :20] if result.pssm is None else result.pssm.scores
        self._write(result.header, codes, scores)


def refuse_shared_stdout(arguments: options.Arguments) -> None:
    """Refuse to write sequences or profiles to stdout beside something else, such as the report.

    Raises
    ------
    InputError
        Two would be written to stdout.
    """
    has_report = arguments.format != "none" or arguments.out is not None
    outputs = {
        "the report": (arguments.out or "-") if has_report else None,
        "--save-pssm": arguments.save_pssm,
        "--unaligned": arguments.unaligned,
        "--aligned-queries": arguments.aligned_queries,
        "--events": arguments.events,
    }
    on_stdout = [output for output, path in outputs.items() if str(path) == "-"]
    if on_stdout[:2] == ["the report", "--save-pssm"]:
        raise InputError("--save-pssm -: the report is written to stdout, too; give --out FILE, or another --save-pssm")
    for option in ("--unaligned", "--aligned-queries"):
        if option in on_stdout and len(on_stdout) > 1:
            other = next(output for output in on_stdout if output != option)
            raise InputError(f"{option} -: {other} is written to stdout, too; name a file for one of them")


# --- --unaligned and --aligned-queries ---


class FastaOutputs(Step):
    """``--unaligned`` and ``--aligned-queries``: the queries without and with hits, as they were given.

    The results of a run tell which queries have hits, including results of an earlier call. The letters come from the
    query files, which are read once more at the end, because results have the letters that were searched, masked ones
    for instance.

    Parameters
    ----------
    running : CommandRun
        The search, which is open; the files are complete when it is closed.
    queries : QueryFiles

    Raises
    ------
    InputError
        The queries are profiles, or a file cannot be created.
    """

    def __init__(self, running: CommandRun, queries: QueryFiles) -> None:
        outputs = {"--unaligned": running.arguments.unaligned, "--aligned-queries": running.arguments.aligned_queries}
        if queries.hold_profiles:
            option = next(option for option, path in outputs.items() if path is not None)
            raise InputError(f"{option} writes sequences, and these queries are profiles; leave it out")
        self._queries = queries
        self._searcher = running.searcher
        self._streams: list[TextIO | None] = [
            None if path is None else running.stack.enter_context(result_stream(path, option=option))
            for option, path in outputs.items()
        ]
        """Of the queries without hits, and of those with hits."""
        self._known = bytearray()
        """For each number of a query: 0 if it has no result, 1 if it has no hits, 2 if it has hits."""

    def write(self, result: QueryResult) -> None:
        """Note whether a query has hits."""
        missing = result.number + 1 - len(self._known)
        if missing > 0:
            self._known.extend(bytes(missing))
        self._known[result.number] = 2 if result.hits else 1

    def end(self) -> None:
        """Write the queries."""
        from swsearch.sequences.fasta_text import write_pieces
        from swsearch.sequences.record import SequenceRecord

        for number, record in enumerate(self._queries.records(self._searcher)):
            known = self._known[number] if number < len(self._known) else 0
            stream = self._streams[known - 1] if known else None
            if stream is not None and isinstance(record, SequenceRecord):
                write_pieces(stream, record.header, [record.letters])


def report(
    run: options.StoredRun,
    *,
    context: typer.Context,
) -> None:
    """Print the stored hits of a run, exactly as the search printed them, or fewer of them.

    --top, --evalue and the filters narrow the stored lists; wider limits need another search. Whole sequences of
    subjects (--format fasta, the column full_sseq) come from the database of the run, and so do their organisms if it
    has a taxonomy.

    Example: swsearch report latest --format blast6

    Example: swsearch report latest --evalue 1e-10 --top 5 --query Q600K7

    Example: swsearch report latest --format fasta --flank 50
    """
    from swsearch.cli.stored_runs import find_run, what_is_missing
    from swsearch.store.store import Store

    given: options.Arguments = context.obj
    refuse_shared_stdout(given)
    chosen = asked_report(given)
    narrowing = given.narrowing
    refuse_unused(chosen, given)
    with Store(given.store, only_read=True) as opened:
        stored = find_run(opened, run)
        if stored.state != "finished":
            so_far = f"this is the report of the {counted(stored.n_queries, 'query', 'queries')} that it has so far"
            missing = what_is_missing(stored)
            say(f"warning: run {stored.id} is {stored.state}; {so_far}{missing and ', '}{missing}")
        info = narrowing.of_run(stored.info)
        results: Iterable[QueryResult] = opened.results.queries(stored.id)
        if given.query:
            results = (
                opened.results.query(stored.id, number) for number in opened.results.find(stored.id, given.query)
            )
        with ExitStack() as stack:
            searched = _database(chosen, stored, given, stack)
            steps = steps_of_report(chosen, given, info, searched, stack)
            if given.save_pssm is not None:
                steps.insert(0, SavedProfiles(given.save_pssm, stored.info, stack))
            holds_all = stored.info.parameters.get("top") == EVERY_SUBJECT
            steps.append(CutMessage(is_search=False, holds_all=holds_all))
            perform(steps, info, narrowing.results(stored.info, results))
    if narrowing.n_incomplete:
        lists = counted(narrowing.n_incomplete, "list was", "lists were")
        cut = f"{lists} cut at --top {stored.info.parameters['top']} by the search"
        say(f"warning: {cut}, so further subjects may pass the filters; search with these filters to find all")


def _database(
    report: Report, stored: StoredRun, arguments: options.Arguments, stack: ExitStack
) -> PackedDatabase | None:
    """The database of a stored run, if its report reads it; open until ``stack`` is closed.

    If headers can take its place and it is not there any more, a warning is printed.
    """
    from swsearch.report.formats import Use
    from swsearch.report_context import database_use

    searched, paths = stored.info.database, arguments.database
    use = database_use(report, stored.info, arguments.taxonomy, arguments.taxid_map, is_named=bool(paths))
    if use is Use.NONE:
        if paths:
            raise InputError(f"--database {paths[0]}: this report is written from the store alone; leave it out")
        return None
    from swsearch.cli.databases import open_databases

    try:
        for place in paths or searched.paths:
            if not is_url(place) and not Path(place).exists():
                raise DatabaseError(f"{place} does not exist")
        return stack.enter_context(open_databases(paths or searched.paths, searched=searched.digests))
    except DatabaseError as error:
        if use is not Use.NEEDED:
            there = "--database names the database if it has another path now"
            say(f"warning: {error}; taxonomy ids are those that headers state; {there}")
            return None
        which = "the database of the run"
        advice = "name the database with --database if it has another path now"
        if len(searched.digests) > 1:
            which = "the databases of the run"
            advice = "name each database with --database, in this order, if they have other paths now"
        raise DatabaseError(f"run {stored.id}: this report needs {which}; {error.marked}; {advice}") from error

"""``swsearch allpairs``: all sequences of a database against all others, each pair once."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli.search_arguments import PairRunArguments, PairSearchArguments, takes_arguments
from swsearch.errors import InputError
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.search.planned_search import PlannedSearch


@takes_arguments
def allpairs(
    database: Annotated[
        str,
        typer.Argument(
            metavar="DB",
            help="A database made by `swsearch index`, its URL in an object store, or a sequence file.",
        ),
    ],
    *,
    search: PairSearchArguments,
    run: PairRunArguments,
) -> None:
    """Compare all sequences of a database with each other, and report each pair once.

    The longer sequence of a pair is its query, the shorter one its subject; of two equally long ones, the later one in
    the database is the query. Scores, E-values and alignments are those of this query in `swsearch query`. No sequence
    is compared with itself, and no pair is left out that has the E-value. Filters on subjects choose the sequences on
    both sides. Each query is stored as it ends: --resume latest computes only what is missing.

    Example: swsearch allpairs proteins.db --evalue 1e-5 --out pairs.tsv

    Example: swsearch allpairs proteins.db --min-identity 30 --format blast6 --fields "qseqid sseqid evalue"

    Example: swsearch allpairs proteins.db --store 'pairs-{shard}.sqlite' --shard 3/8 --format none
    """
    from swsearch.cli.command_run import command_run, must_store, named_by_share, named_store, report_format
    from swsearch.cli.databases import opened
    from swsearch.cli.output import say
    from swsearch.hits.job_arrays import asked_shard

    shard = asked_shard(run.shard, os.environ)
    search, run = named_by_share(search, shard), named_by_share(run, shard)
    _refuse_contradictions(database, search, run)
    needs_store = must_store(search, run)
    search = replace(search, store=named_store(search, must_store=needs_store))
    report = report_format(run)
    _ = search.asked  # packing or fetching a database may take long, so wrong options are refused before
    with opened(database, threads=search.threads, quiet=search.quiet) as subjects:
        query_residues = subjects.n_residues // 2  # a query is compared with half of the subjects
        if run.place is None:
            search.warm_up_gpus(subjects, query_residues)

        from swsearch.run import survey
        from swsearch.search.subject_queries import SubjectQueries

        with command_run(search, run, shard, must_store=needs_store) as running:
            searcher = running.stack.enter_context(run.open_searcher(search, subjects, query_residues))
            _refuse_everything(searcher)
            queries = SubjectQueries.of(searcher)
            found = survey(queries, searcher, shard, force_alphabet=True, skip_refused=False)
            outcome = running.execute(queries, searcher, found, running.report(searcher, report), search_repeated=True)
    if outcome.run_id is not None and not search.quiet:
        before = f", {outcome.n_before:,} of them before" if outcome.resumed else ""
        n_done = counted(outcome.n_done + outcome.n_before, "sequence")
        say(f"run {outcome.run_id} in {outcome.store}: {n_done} compared{before}")


def _refuse_contradictions(database: str, search: PairSearchArguments, run: PairRunArguments) -> None:
    """Refuse options that exclude each other, and outputs that must not be written."""
    from swsearch.cli.collisions import refuse_collisions
    from swsearch.output_files import refuse_compressed

    if search.store == "none" and run.resume is not None:
        raise InputError("--resume goes on with a stored run; name its store with --store")
    run.refuse_options_of_clusters()
    printed = run.format_name != "none" or run.out is not None
    outputs = {"--out": (run.out or "-") if printed else None, "--events": run.events}
    refuse_collisions(outputs, inputs=search.files, databases=[database], store=search.store)
    refuse_compressed(run.events, "--events", "each event is appended as it happens, which no archive can take")


def _refuse_everything(searcher: PlannedSearch) -> None:
    """Refuse a search that would report every pair, because there are no E-values by which to choose."""
    if searcher.run_info("").lam is None and searcher.options.min_score is None:
        reason = searcher.run_info("").statistics
        raise InputError(f"there are no E-values, so that every pair would be reported; cut by --min-score ({reason})")

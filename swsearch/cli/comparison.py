"""``swsearch allpairs``, ``cluster`` and ``rbh``: the commands whose queries are the sequences of a database.

:func:`compared` opens what one of their searches needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import options
from swsearch.cli.command_run import CommandRun
from swsearch.cli.output import inform, result_stream
from swsearch.errors import InputError
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.database.reader import PackedDatabase
    from swsearch.run import RunOutcome
    from swsearch.run.comparisons import Cluster
    from swsearch.search.planned_search import PlannedSearch
    from swsearch.search.queries import Queries


def allpairs(
    database: options.AnyDatabase,
    *,
    context: typer.Context,
) -> None:
    """Compare all sequences of a database with each other, and report each pair once.

    The longer sequence of a pair is its query, the shorter one its subject; of two equally long ones, the later one in
    the database is the query. Scores, E-values and alignments are those of this query in `swsearch query`. No sequence
    is compared with itself. Filters on subjects choose the sequences on both sides. Each query is stored when it is
    finished: --resume latest computes only what is missing.

    Example: swsearch allpairs proteins.db --evalue 1e-5 --out pairs.tsv

    Example: swsearch allpairs proteins.db --min-identity 30 --format blast6 --fields "qseqid sseqid evalue"

    Example: swsearch allpairs proteins.db --store 'pairs-{shard}.sqlite' --shard 3/8 --format none
    """
    arguments: options.Arguments = context.obj
    from swsearch.cli.databases import open_databases
    from swsearch.search.queries import SubjectQueries

    running = CommandRun(arguments)
    running.check()
    with (
        open_databases(database, threads=arguments.threads) as subjects,
        # A query is compared with half of the subjects.
        compared(running, subjects, subjects.n_residues // 2, SubjectQueries.of) as execute,
    ):
        outcome = execute(running.report_steps())
    if outcome.run_id is not None:
        before = f", {outcome.n_before:,} of them before" if outcome.resumed else ""
        n_done = counted(outcome.n_done + outcome.n_before, "sequence")
        inform(f"run {outcome.run_id} in {outcome.store}: {n_done} compared{before}")


def cluster(
    database: options.AnyDatabase,
    *,
    context: typer.Context,
) -> None:
    """Divide the sequences of a database into clusters by the pairs that `swsearch allpairs` finds.

    Two sequences are partners if their pair passes --evalue, --min-identity, --min-query-coverage (of the longer
    sequence) and --min-subject-coverage (of the shorter one). With cover and length, every member is a partner of its
    representative. The pairs are stored; with --resume latest, another mode needs no second search.

    Example: swsearch cluster proteins.db --min-identity 50 --min-query-coverage 80 --min-subject-coverage 80

    Example: swsearch cluster proteins.db --mode length --min-identity 90 --representatives nr90.fasta --out nr90.tsv

    Example: swsearch cluster proteins.db --mode components --evalue 1e-20 --store pairs.sqlite --resume latest
    """
    arguments: options.Arguments = context.obj
    from swsearch.cli.databases import open_databases
    from swsearch.run.comparisons import PairGraph
    from swsearch.search.queries import SubjectQueries
    from swsearch.sequences.fasta_text import write_pieces

    output_format = arguments.format_by_name(arguments.out)
    running = CommandRun(arguments.changed(format="none", out=None))  # the clusters are no report of the search
    running.check()
    with (
        open_databases(database, threads=arguments.threads) as subjects,
        compared(running, subjects, subjects.n_residues // 2, SubjectQueries.of) as execute,
    ):
        graph = PairGraph(*SubjectQueries.of(running.searcher).order)
        outcome = execute([graph])
        clusters = graph.clusters(arguments.mode)
        with result_stream(arguments.out) as stream:
            stream.writelines(_text(one, subjects, output_format) for one in clusters)
        if arguments.representatives is not None:
            with result_stream(arguments.representatives, option="--representatives") as stream:
                for index, *_ in clusters:
                    write_pieces(stream, subjects.header(index), [subjects.letters(index)])
    n_single = sum(len(one) == 1 for one in clusters)
    have = "has" if n_single == 1 else "have"
    inform(
        f"{counted(len(clusters), 'cluster')} of {counted(sum(len(one) for one in clusters), 'sequence')} "
        f"from {counted(graph.n_pairs, 'pair')}; the largest has {len(clusters[0]):,}, {n_single:,} {have} one",
    )
    if outcome.run_id is not None:
        inform(f"the pairs are run {outcome.run_id} in {outcome.store}")


def _text(one: Cluster, subjects: PackedDatabase, output_format: str) -> str:
    """A cluster as one object, or as a line for each member with the representative before it."""
    from swsearch.sequences.record import split_header

    members = [split_header(subjects.header(index))[0] for index in one]
    representative = members[0]
    if output_format == "tsv":
        return "".join(f"{representative}\t{member}\n" for member in members)
    described = {"representative": representative, "size": len(members), "members": members}
    return json.dumps(described, ensure_ascii=False) + "\n"


def rbh(
    first: Annotated[str, typer.Argument(metavar="A", click_type=options.INPUT_NAME, help=options.DATABASE_HELP)],
    second: Annotated[
        str,
        typer.Argument(
            metavar="B", click_type=options.INPUT_NAME, help="The second set, of the same kind and alphabet as A."
        ),
    ],
    *,
    context: typer.Context,
) -> None:
    """Report the reciprocal best hits of two sets of sequences, such as the proteins of two species.

    A sequence of A and one of B are reciprocal best hits if each is the best hit of the other: the first one by
    E-value, score and order in the file. A line is that of the sequence of A in a search of B. All sequences are
    compared with all, so no best hit is missed. Both searches are stored; --resume latest computes what is missing.

    Example: swsearch rbh human.fasta mouse.fasta --out orthologues.tsv

    Example: swsearch rbh a.db b.db --evalue 1e-5 --min-query-coverage 50 --fields "qseqid sseqid pident evalue"
    """
    arguments: options.Arguments = context.obj
    from swsearch.cli.databases import open_databases
    from swsearch.run.comparisons import BestHits
    from swsearch.search.queries import DatabaseQueries

    if arguments.resume not in (None, "latest"):
        raise InputError(
            f"--resume {arguments.resume}: the best hits of A and those of B are two runs; say --resume latest"
        )
    running = CommandRun(arguments)
    running.check()
    with (
        open_databases(first, threads=arguments.threads) as a,
        open_databases(second, threads=arguments.threads) as b,
    ):
        if a.alphabet is not b.alphabet:
            raise InputError(f"{first} is {a.alphabet.name} and {second} is {b.alphabet.name}; give two of the same")
        best = BestHits()
        with compared(running, a, b.n_residues, lambda _: DatabaseQueries(b)) as execute:
            backward = execute([best])
        with compared(running, b, a.n_residues, lambda _: DatabaseQueries(a)) as execute:
            forward = execute(running.report_steps(), best.reciprocal)
        sets = f"{counted(a.n_subjects, 'sequence')} and {b.n_subjects:,}"
        inform(f"{counted(best.n_pairs, 'pair')} of reciprocal best hits among {sets}")
    if forward.run_id is not None:
        inform(f"run {forward.run_id} has the best hits of {first}, run {backward.run_id} those of {second}")


@contextmanager
def compared(
    running: CommandRun,
    subjects: PackedDatabase,
    query_residues: int,
    queries_of: Callable[[PlannedSearch], Queries],
) -> Iterator[Callable[..., RunOutcome]]:
    """A search whose queries are sequences of a database, open, as the function that executes it.

    The arguments of the function are the first ones of :meth:`swsearch.run.Run.execute`.

    Parameters
    ----------
    running : CommandRun
    subjects : PackedDatabase
        The database that is searched.
    query_residues : int
        About the number of residues of all queries.
    queries_of : callable
        The queries of an open search.

    Raises
    ------
    InputError
        There are no E-values, and nothing else that chooses the hits.
    """
    with (
        running.gpus_started(subjects.n_residues * query_residues, lambda _: True),
        running.opened(subjects, query_residues),
    ):
        from swsearch.run import survey

        _refuse_everything(running.searcher)
        queries = queries_of(running.searcher)
        found = survey(queries, running.searcher, running.shard, force_alphabet=True, skip_refused=False)

        yield partial(running.execute, queries, found)


def _refuse_everything(searcher: PlannedSearch) -> None:
    """Refuse a search that would report every pair, because there are no E-values by which to choose."""
    if searcher.run_info("").lam is None and searcher.options.min_score is None:
        reason = searcher.run_info("").statistics
        raise InputError(f"there are no E-values, so that every pair would be reported; cut by --min-score ({reason})")

"""``swsearch cluster``: clusters of the sequences of a database, from exact alignments of all against all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from swsearch.cli import options
from swsearch.errors import InputError
from swsearch.options import OUTPUT
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.database.reader import PackedDatabase
    from swsearch.run.clusters import Cluster

_FORMATS: Final = ("tsv", "jsonl")


def cluster(
    database: Annotated[
        str,
        typer.Argument(
            metavar="DB",
            click_type=options.INPUT_NAME,
            help="A database made by `swsearch index`, its URL in an object store, or a sequence file.",
        ),
    ],
    *,
    mode: Annotated[
        str,
        typer.Option(
            metavar="[cover|length|components]",
            help="How representatives are chosen. cover: sequences with the most partners first; length: the longest "
            "sequences first; components: clusters are all sequences that are connected.",
        ),
    ] = "cover",
    output_format: Annotated[
        str,
        typer.Option(
            *options.FORMAT,
            metavar="[tsv|jsonl]",
            help="tsv: a representative and a member on each line; jsonl: a cluster on each line.",
            rich_help_panel=OUTPUT,
        ),
    ] = "tsv",
    representatives: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            click_type=options.OUTPUT_FILE,
            help="Write the representatives to this FASTA file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
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
    arguments = options.Arguments.of(context)
    if output_format not in _FORMATS:
        raise InputError(f"--format {output_format}: choose {' or '.join(_FORMATS)}")
    from swsearch.cli.comparison import compared, prepared
    from swsearch.cli.databases import open_databases
    from swsearch.cli.output import result_stream, say, say_if_named_otherwise
    from swsearch.run.clusters import CLUSTER_MODES, PairGraph
    from swsearch.search.queries import SubjectQueries
    from swsearch.sequences.fasta_text import write_record

    if mode not in CLUSTER_MODES:
        raise InputError(f"--mode {mode}: choose {', '.join(CLUSTER_MODES)}")
    asked = prepared(arguments)
    say_if_named_otherwise(output_format, "tsv", arguments.out, quiet=arguments.quiet, formats=_FORMATS)
    with (
        open_databases(database, threads=arguments.threads, quiet=arguments.quiet) as subjects,
        compared(asked, subjects, subjects.n_residues // 2, SubjectQueries.of) as comparison,
    ):
        graph = PairGraph(*SubjectQueries.of(comparison.searcher).order)
        outcome = comparison.execute([graph], resume_finished=True)
        clusters = graph.clusters(mode)
        with result_stream(arguments.out) as stream:
            (_write_lines if output_format == "tsv" else _write_json)(clusters, subjects, stream)
        if representatives is not None:
            with result_stream(representatives, option="--representatives") as stream:
                for one in clusters:
                    index = one.representative
                    write_record(stream, subjects.header(index), subjects.letters(index))
    n_single = sum(len(one.members) == 1 for one in clusters)
    have = "has" if n_single == 1 else "have"
    say(
        f"{counted(len(clusters), 'cluster')} of {counted(sum(len(one.members) for one in clusters), 'sequence')} "
        f"from {counted(graph.n_pairs, 'pair')}; the largest has {len(clusters[0].members):,}, {n_single:,} {have} one",
        quiet=arguments.quiet,
    )
    if outcome.run_id is not None:
        say(f"the pairs are run {outcome.run_id} in {outcome.store}", quiet=arguments.quiet)


def _identifiers(one: Cluster, subjects: PackedDatabase) -> list[str]:
    from swsearch.sequences.record import split_header

    return [split_header(subjects.header(index))[0] for index in one.members]


def _write_lines(clusters: Sequence[Cluster], subjects: PackedDatabase, stream: TextIO) -> None:
    """One line for each member, with the representative before it; that of the representative itself comes first."""
    for one in clusters:
        representative, *others = _identifiers(one, subjects)
        stream.writelines(f"{representative}\t{member}\n" for member in (representative, *others))


def _write_json(clusters: Sequence[Cluster], subjects: PackedDatabase, stream: TextIO) -> None:
    """One object for each cluster."""
    for one in clusters:
        members = _identifiers(one, subjects)
        described = {"representative": members[0], "size": len(members), "members": members}
        stream.write(json.dumps(described, ensure_ascii=False) + "\n")

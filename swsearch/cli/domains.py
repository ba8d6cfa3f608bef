"""``swsearch domains``: the domains of proteins, by a library of families."""

from __future__ import annotations

from typing import Annotated

import typer

from swsearch.cli import options
from swsearch.cli.output import ProgressReport, inform, result_stream
from swsearch.words import counted


def domains(
    proteins: Annotated[
        str,
        typer.Argument(
            metavar="PROTEINS",
            click_type=options.INPUT_NAME,
            help="A database or a FASTA file, as for `swsearch query`.",
        ),
    ],
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODELS…", click_type=options.INPUT_NAME, help="Files of HMMER's models, such as Pfam-A.hmm.gz."
        ),
    ],
    *,
    context: typer.Context,
) -> None:
    """Find the domains of proteins: which families of a library each of them has, and where.

    Scores and E-values are those of hmmscan, whose E-value counts the models. Every protein is scored with every model,
    so domains are found that the filters of hmmscan lose. Where a model has gathering thresholds, as those of Pfam
    have, they decide.

    Example: swsearch domains proteins.fasta Pfam-A.hmm.gz

    Example: swsearch domains proteome.db Pfam-A.hmm.gz --format domtblout --out domains.txt

    Example: swsearch domains proteins.fasta families.hmm --thresholds none --evalue 1e-5 --out domains.html
    """
    arguments: options.Arguments = context.obj
    from swsearch.cli.databases import open_databases
    from swsearch.domains.annotation import DomainLimits, open_annotation
    from swsearch.domains.domain_report import FORMATS

    name = arguments.format_by_name(arguments.out)
    limits = DomainLimits(arguments.evalue, arguments.thresholds, arguments.overlaps)
    with (
        open_databases(proteins, threads=arguments.threads) as database,
        open_annotation(database, models, limits, arguments.machine) as annotation,
        result_stream(arguments.out) as stream,
    ):
        inform(annotation.searcher.engine_choice)
        with ProgressReport("searching", annotation.cells, "GCUPS", 1e9) as progress:
            found = list(annotation.proteins(progress.advance))
        FORMATS[name](found, annotation.facts, stream)
    with_domains = [protein for protein in found if protein.families]
    n_domains = sum(len(family.domains) for protein in with_domains for family in protein.families)
    inform(f"{counted(n_domains, 'domain')} in {len(with_domains):,} of {counted(len(found), 'protein')}")

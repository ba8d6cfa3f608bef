"""``swsearch align``: two sequences, or two files pair by pair, against each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import options

if TYPE_CHECKING:
    from swsearch.pairs.align import PairAlignment


def align(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="FASTA or FASTQ file; any text for edit and lcs.")],
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="As QUERY, with as many records; - is stdin.")],
    mode: Annotated[str, typer.Option(help="local, global, semiglobal, edit or lcs.")] = "local",
    free_ends: Annotated[
        str,
        typer.Option(help="semiglobal: whose end gaps are free: both, subject (the query is aligned whole) or query."),
    ] = "both",
    text: Annotated[
        bool, typer.Option("--text", help="QUERY and SUBJECT are the texts themselves; for edit and lcs.")
    ] = False,
    alphabet: Annotated[str | None, typer.Option(help="protein or dna. [detected]")] = None,
    matrix: options.Matrix = None,
    match: options.Match = None,
    mismatch: options.Mismatch = None,
    gap_open: options.GapOpen = None,
    gap_extend: options.GapExtend = None,
    costs: Annotated[
        str | None, typer.Option(help="A cost set by name: nw2009 (indel 3, substitution 1, match 0).")
    ] = None,
    cigar: Annotated[
        bool | None,
        typer.Option("--cigar/--score-only", help="Find the path, or not. [up to 25 million cells]"),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="auto, cuda or cpu; auto takes a GPU for 10 billion cells or more.")
    ] = "auto",
    threads: options.Threads = None,
    format_name: Annotated[str, typer.Option("--format", help="table, tsv, json, jsonl or pairwise.")] = "table",
    out: options.Out = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a dot-plot of the pair into this .png, .svg or .pdf.")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Align two sequences, or the records of two files pair by pair, over all their cells.

    edit and lcs compare letters as they are written, in any text; the other modes score residues.

    Example: swsearch align query.fasta subject.fasta --mode global --format pairwise
    """
    from swsearch.cli.output import result_stream, say
    from swsearch.cli.progress import ProgressReport
    from swsearch.cores import usable_cores
    from swsearch.errors import InputError
    from swsearch.pairs import report
    from swsearch.pairs.align import CIGAR_CELLS, align_pair, mode_scoring
    from swsearch.pairs.dotplot import check_plot, write_plot
    from swsearch.pairs.gpu import GPU_CELLS, open_gpu_pairs
    from swsearch.pairs.scoring import PairScoring, cost_set, scheme_scoring
    from swsearch.pairs.sequence import PairSequence, read_pairs, read_text_pairs
    from swsearch.search.options import SearchOptions
    from swsearch.sequences.alphabet import ALPHABETS

    report.check_format(format_name)
    if plot is not None:
        check_plot(plot)
    scheme_given = any(value is not None for value in (matrix, match, mismatch, gap_open, gap_extend))
    if costs is not None and scheme_given:
        raise InputError("--costs names a whole cost set; leave the other scoring options out")
    if alphabet is not None and alphabet not in ALPHABETS:
        raise InputError(f"--alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")

    compares_letters = mode in ("edit", "lcs")
    if text and not compares_letters:
        raise InputError(f"--text is for --mode edit and lcs; --mode {mode} scores residues of files")
    scoring: PairScoring | None = None if costs is None else cost_set(costs)
    if compares_letters:
        if alphabet is not None or scheme_given:
            raise InputError(f"--mode {mode} compares letters as written; leave --alphabet and the scoring options out")
        if text:
            pairs = [(PairSequence("query", query), PairSequence("subject", subject))]
        else:
            pairs = read_text_pairs(query, subject)
    else:
        pairs = read_pairs(query, subject, None if alphabet is None else ALPHABETS[alphabet])
        record = pairs[0][0].record
        if scoring is None and record is not None:
            chosen = SearchOptions(
                matrix=matrix, match=match, mismatch=mismatch, gap_open=gap_open, gap_extend=gap_extend
            )
            scoring = scheme_scoring(chosen.scheme(record.alphabet))
    mode_scoring(mode, scoring)
    if plot is not None and len(pairs) != 1:
        raise InputError(f"--plot draws one pair, {query} has {len(pairs)}; give files of one record")

    total = sum(len(first) * len(second) for first, second in pairs)
    largest = max((len(first) * len(second) for first, second in pairs), default=0)
    gpu, why = open_gpu_pairs(engine, largest)
    if not quiet and (engine != "auto" or largest >= GPU_CELLS):
        say(why)
    with (
        gpu or nullcontext(),
        result_stream(out) as stream,
        ProgressReport("aligning", total, "GCUPS", 1e9, quiet) as progress,
    ):

        def results() -> Iterator[PairAlignment]:
            for first, second in pairs:
                path = len(first) * len(second) <= CIGAR_CELLS if cigar is None else cigar
                found = align_pair(
                    first,
                    second,
                    mode,
                    scoring,
                    free_ends=free_ends,
                    path=path,
                    n_threads=usable_cores() if threads is None else threads,
                    progress=progress.advance,
                    gpu=gpu if engine == "cuda" or len(first) * len(second) >= GPU_CELLS else None,
                )
                if plot is not None:
                    write_plot(found, plot)
                yield found

        report.write(format_name, results(), stream)

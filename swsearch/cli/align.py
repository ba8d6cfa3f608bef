"""``swsearch align``: alignment of two sequences, or of the records of two files pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import options
from swsearch.options import MACHINE, OUTPUT

if TYPE_CHECKING:
    from swsearch.pairs.pair_alignment import PairAlignment


def align(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="FASTA or FASTQ file; any text for edit and lcs.")],
    subject: Annotated[
        str | None, typer.Argument(metavar="[SUBJECT]", help="A file with as many records as QUERY; - is stdin.")
    ] = None,
    pairs_of_one: Annotated[
        bool,
        typer.Option(
            "--pairs", help="Take the pairs from QUERY: its first and second record, third and fourth, and so on."
        ),
    ] = False,
    mode: Annotated[
        str,
        options.one_of("local", "global", "semiglobal", "edit", "lcs", help="Kind of alignment."),
    ] = "local",
    free_ends: Annotated[
        str | None,
        typer.Option(
            help="Ends whose gaps are free, for semiglobal and edit: both, query, subject (the whole query is aligned),"
            " query-start, subject-end, …, or edlib's HW or SHW. [both for semiglobal]"
        ),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Take QUERY and SUBJECT as the texts themselves, for edit and lcs.")
    ] = False,
    alphabet: Annotated[
        str | None, options.one_of("protein", "dna", help="Alphabet of the sequences. [detected]")
    ] = None,
    matrix: options.Matrix = None,
    match: options.Match = None,
    mismatch: options.Mismatch = None,
    gap_open: options.GapOpen = None,
    gap_extend: options.GapExtend = None,
    costs: Annotated[
        str | None,
        typer.Option(
            help="A set of costs: nw2009 (indel 3, substitution 1, match 0) or sw2023 (match 1, others -1, gap -2)."
        ),
    ] = None,
    cigar: Annotated[
        bool | None,
        typer.Option(
            "--cigar/--score-only",
            help="Compute the path of the alignment, or only its score. [path up to 25 million cells; always for "
            "pairwise]",
        ),
    ] = None,
    engine: Annotated[
        str,
        options.one_of(
            "auto",
            "cuda",
            "cpu",
            "reference",
            group=MACHINE,
            help="Engine that computes the alignment. reference keeps complete matrices; auto uses a GPU for "
            "billions of cells.",
        ),
    ] = "auto",
    kernel: Annotated[
        str,
        options.one_of(
            "diamond",
            "wavefront",
            group=MACHINE,
            help="Kernel of the GPU; wavefront computes scores of global alignments with linear gaps.",
        ),
    ] = "diamond",
    serial: Annotated[
        bool, typer.Option("--serial", help="Use the reference implementation, as --engine reference does.")
    ] = False,
    matrix_out: Annotated[
        Path | None,
        typer.Option(
            click_type=options.OUTPUT_FILE, help="Write the matrix of one small pair to this file, separated by tabs."
        ),
    ] = None,
    threads: options.Threads = None,
    format_name: Annotated[
        str,
        options.one_of(
            *("table", "tsv", "json", "jsonl", "pairwise"),
            names=options.FORMAT,
            group=OUTPUT,
            help="Format of the results.",
        ),
    ] = "table",
    out: options.Out = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            click_type=options.OUTPUT_FILE, help="Write a dot plot of the pair to this .png, .svg or .pdf file."
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Align two sequences, or the records of two files pair by pair, over all their cells.

    edit and lcs compare letters as they are written, in any text; the other modes score residues.

    Example: swsearch align query.fasta subject.fasta --mode global --format pairwise
    """
    if not text and "" in (query, subject):
        options.refuse_empty()
    from swsearch.cli.output import ProgressReport, result_stream, say
    from swsearch.errors import InputError
    from swsearch.output_files import check_plot
    from swsearch.pairs import pair_report
    from swsearch.pairs.aligner import PairAligner
    from swsearch.pairs.pair_alignment import CIGAR_CELLS, PairScoring, cost_set, mode_scoring, scheme_scoring
    from swsearch.pairs.pair_matrices import check_matrix_size, score_matrix, write_matrix, write_plot
    from swsearch.pairs.sequence import PairSequence, read_pairs, read_text_pairs
    from swsearch.search.options import SearchOptions
    from swsearch.sequences.alphabet import ALPHABETS
    from swsearch.threads import threads_to_use

    pair_report.check_format(format_name)
    if format_name == "pairwise":
        if cigar is False:
            raise InputError("--format pairwise shows alignments, --score-only finds none; leave one of them out")
        if kernel == "wavefront":
            raise InputError("--format pairwise shows alignments, --kernel wavefront finds none; leave one of them out")
        cigar = True
    scheme_given = any(value is not None for value in (matrix, match, mismatch, gap_open, gap_extend))
    if costs is not None and scheme_given:
        raise InputError("--costs names a whole cost set; leave the other scoring options out")
    if alphabet is not None and alphabet not in ALPHABETS:
        raise InputError(f"--alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")

    compares_letters = mode in ("edit", "lcs")
    if serial and engine not in ("auto", "reference"):
        raise InputError(f"--serial means --engine reference; leave --engine {engine} out")
    if threads is not None and (serial or engine == "reference" or kernel == "wavefront"):
        alone = "--kernel wavefront" if kernel == "wavefront" else "the reference implementation"
        raise InputError(f"--threads {threads}: {alone} has one thread; leave --threads out")
    if pairs_of_one == (subject is not None):
        raise InputError("give QUERY and SUBJECT, or with --pairs one file that holds the records of both in turns")
    if text and pairs_of_one:
        raise InputError("--text gives one query and one subject; leave --pairs out")
    if text and not compares_letters:
        raise InputError(f"--text is for --mode edit and lcs; --mode {mode} scores residues of files")
    scoring: PairScoring | None = None if costs is None else cost_set(costs)
    if compares_letters:
        if alphabet is not None or scheme_given:
            raise InputError(f"--mode {mode} compares letters as written; leave --alphabet and the scoring options out")
        if text:
            for side, words in (("QUERY", query), ("SUBJECT", subject or "")):
                if not words.isascii() and any("\ud800" <= letter <= "\udfff" for letter in words):
                    raise InputError(f"--text: {side} is no UTF-8; give it in UTF-8")
            pairs = [(PairSequence("query", query), PairSequence("subject", subject or ""))]
        else:
            pairs = read_text_pairs(query, subject)
    else:
        pairs = read_pairs(query, subject, None if alphabet is None else ALPHABETS[alphabet])
        record = pairs[0][0].record
        if scoring is None and record is not None:
            chosen = SearchOptions(
                matrix=matrix, match=match, mismatch=mismatch, gap_open=gap_open, gap_extend=gap_extend
            )
            scoring = scheme_scoring(chosen.scheme(record.alphabet, local=mode == "local"))
    if plot is not None:
        check_plot(plot)
    mode_scoring(mode, scoring)
    for option, path in (("--plot", plot), ("--matrix-out", matrix_out)):
        if path is not None and len(pairs) != 1:
            raise InputError(f"{option} draws one pair, {query} has {len(pairs)}; give files of one record")
    if matrix_out is not None:
        check_matrix_size(pairs[0])

    sizes = [len(first) * len(second) for first, second in pairs]
    total = sum(sizes)
    n_large = sum(size > CIGAR_CELLS for size in sizes)
    aligner = PairAligner(
        mode,
        scoring,
        free_ends=free_ends,
        path=cigar,
        engine="reference" if serial else engine,
        kernel=kernel,
        n_threads=threads_to_use(threads),
    )
    if n_large and cigar is None and aligner.leaves_large_pairs:
        which = "the pair has" if len(pairs) == 1 else f"{n_large:,} of {len(pairs):,} pairs have"
        advice = "so score and end alone are found; --cigar finds the alignment"
        say(f"{which} more than {CIGAR_CELLS:,} cells, {advice}", quiet=quiet)
    with (
        aligner,
        result_stream(out) as stream,
        ProgressReport("aligning", total, "GCUPS", 1e9, quiet) as progress,
    ):
        if matrix_out is not None:
            matrix_out = Path("/dev/stdout") if str(matrix_out) == "-" else matrix_out
            write_matrix(matrix_out, pairs[0], score_matrix(pairs[0], mode, scoring, free_ends))

        def results() -> Iterator[PairAlignment]:
            for found in aligner.align(pairs, progress.advance):
                if plot is not None:
                    write_plot(found, plot)
                yield found

        pair_report.write(format_name, results(), stream)

"""``swsearch align``: alignment of two sequences, or of the records of two files pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from swsearch.cli.options import Arguments, refuse_empty
from swsearch.cli.output import ProgressReport, inform, result_stream
from swsearch.errors import InputError, UsageError
from swsearch.output_files import check_plot

if TYPE_CHECKING:
    from swsearch.pairs.pair_alignment import Pair, PairAlignment, PairScoring


_SCHEME: Final = ("matrix", "match", "mismatch", "gap_open", "gap_extend")
"""The options of the scoring scheme."""


def align(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="FASTA or FASTQ file; any text for edit and lcs.")],
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUBJECT]",
            help="A file with as many records as QUERY, unless one of them has one record; - is stdin.",
        ),
    ] = None,
    *,
    context: typer.Context,
) -> None:
    """Align two sequences, one sequence with each record of a file, or two files record by record.

    edit and lcs compare letters as they are written, in any text; the other modes score residues.

    Example: swsearch align query.fasta subject.fasta --mode global --format pairwise
    """
    given: Arguments = context.obj
    if not given.text and "" in (query, subject):
        refuse_empty()
    from swsearch.engine.registry import Machine
    from swsearch.pairs import pair_report
    from swsearch.pairs.aligner import PairAligner
    from swsearch.pairs.pair_alignment import CIGAR_CELLS, cost_set, mode_scoring
    from swsearch.pairs.pair_matrices import check_matrix_size, score_matrix, write_matrix, write_plot

    _refuse_contradictions(given, has_subject=subject is not None)
    costs = None if given.costs is None else cost_set(given.costs)
    pairs = _pairs(query, subject, given)
    scoring = costs or _scoring(pairs, given)
    if given.plot is not None:
        check_plot(given.plot)
    mode_scoring(given.mode, scoring)
    _check_drawings(pairs, given)
    if given.matrix_out is not None:
        check_matrix_size(pairs[0])
    cigar = True if given.format == "pairwise" else given.cigar
    aligner = PairAligner(
        given.mode,
        scoring,
        free_ends=given.free_ends,
        path=cigar,
        machine=Machine("reference" if given.serial else given.engine, given.threads),
        kernel=given.kernel,
    )
    sizes = [len(first) * len(second) for first, second in pairs]
    n_large = sum(size > CIGAR_CELLS for size in sizes)
    if n_large and cigar is None and aligner.leaves_large_pairs:
        which = "the pair has" if len(pairs) == 1 else f"{n_large:,} of {len(pairs):,} pairs have"
        advice = "so score and end alone are found; --cigar finds the alignment"
        inform(f"{which} more than {CIGAR_CELLS:,} cells, {advice}")
    with (
        aligner,
        result_stream(given.out) as stream,
        ProgressReport("aligning", sum(sizes), "GCUPS", 1e9) as progress,
    ):
        if given.matrix_out is not None:
            path = Path("/dev/stdout") if str(given.matrix_out) == "-" else given.matrix_out
            write_matrix(path, pairs[0], score_matrix(pairs[0], given.mode, scoring, given.free_ends))

        def results() -> Iterator[PairAlignment]:
            for found in aligner.align(pairs, progress.advance):
                if given.plot is not None:
                    write_plot(found, given.plot)
                yield found

        pair_report.write(given.format, results(), stream)


def _has_scheme(given: Arguments) -> bool:
    """Whether an option of the scoring scheme is given."""
    return any(getattr(given, name) is not None for name in _SCHEME)


def _compares_letters(given: Arguments) -> bool:
    """Whether letters are compared as they are written."""
    return given.mode in ("edit", "lcs")


def _refuse_contradictions(given: Arguments, *, has_subject: bool) -> None:
    """Refuse options that exclude each other."""
    if given.format == "pairwise":
        if given.cigar is False:
            raise InputError("--format pairwise shows alignments, --score-only finds none; leave one of them out")
        if given.kernel == "wavefront":
            raise InputError("--format pairwise shows alignments, --kernel wavefront finds none; leave one of them out")
    if given.costs is not None and _has_scheme(given):
        raise InputError("--costs names a whole cost set; leave the other scoring options out")
    if given.serial and given.engine not in ("auto", "reference"):
        raise InputError(f"--serial means --engine reference; leave --engine {given.engine} out")
    if given.threads is not None and (given.serial or given.engine == "reference" or given.kernel == "wavefront"):
        alone = "--kernel wavefront" if given.kernel == "wavefront" else "the reference implementation"
        raise InputError(f"--threads {given.threads}: {alone} has one thread; leave --threads out")
    if given.pairs == has_subject:
        raise UsageError("give QUERY and SUBJECT, or with --pairs one file that holds the records of both in turns")
    if given.text and given.pairs:
        raise InputError("--text gives one query and one subject; leave --pairs out")
    if given.text and not _compares_letters(given):
        raise InputError(f"--text is for --mode edit and lcs; --mode {given.mode} scores residues of files")


def _pairs(query: str, subject: str | None, given: Arguments) -> list[Pair]:
    """The pairs of sequences."""
    from swsearch.pairs.sequence import PairSequence, read_pairs, read_text_pairs
    from swsearch.sequences.alphabet import ALPHABETS

    if not _compares_letters(given):
        return read_pairs(query, subject, ALPHABETS.get(given.alphabet))
    if given.alphabet is not None or _has_scheme(given):
        raise InputError(
            f"--mode {given.mode} compares letters as written; leave --alphabet and the scoring options out"
        )
    if not given.text:
        return read_text_pairs(query, subject)
    for side, words in (("QUERY", query), ("SUBJECT", subject or "")):
        if not words.isascii() and any("\ud800" <= letter <= "\udfff" for letter in words):
            raise InputError(f"--text: {side} is not UTF-8; give it in UTF-8")
    return [(PairSequence("query", query), PairSequence("subject", subject or ""))]


def _scoring(pairs: list[Pair], given: Arguments) -> PairScoring | None:
    """The scores of the options, or those of the alphabet; None if letters are compared."""
    from swsearch.pairs.pair_alignment import scheme_scoring
    from swsearch.search.options import SearchOptions

    record = pairs[0][0].record
    if record is None or _compares_letters(given):
        return None
    chosen = SearchOptions(**{name: getattr(given, name) for name in _SCHEME})
    return scheme_scoring(chosen.scheme(record.alphabet, local=given.mode == "local"))


def _check_drawings(pairs: list[Pair], given: Arguments) -> None:
    """Refuse to draw several pairs."""
    for option, path in (("--plot", given.plot), ("--matrix-out", given.matrix_out)):
        if path is not None and len(pairs) != 1:
            raise InputError(f"{option} draws one pair, there are {len(pairs)}; give files of one record")

"""``--save-pssm``: the profiles of the last rounds, written as PSI-BLAST's checkpoints beside a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from swsearch.errors import InputError

if TYPE_CHECKING:
    from swsearch.hits.result import QueryResult, RunInfo
    from swsearch.run import WriteReport


def with_checkpoints(write: WriteReport | None, path: Path, stack: ExitStack) -> WriteReport:
    """A function that writes a report, if ``write`` is given, and the profile of each query to a file, or to stdout.

    The file is complete when ``stack`` is closed. A query that was searched without a profile has the scores of the
    matrix in it.
    """
    from swsearch.cli.output import result_stream

    stream = stack.enter_context(result_stream(path, option="--save-pssm"))

    def write_both(run: RunInfo, results: Iterable[QueryResult]) -> None:
        saved = _saved(run, results, stream)
        if write is not None:
            write(run, saved)
        for _ in saved:  # the results that the report did not consume
            pass

    return write_both


def refuse_shared_stdout(path: Path | None, out: Path | None, *, printed: bool = True) -> None:
    """Refuse to write profiles and a report to stdout; ``printed`` tells whether there is a report.

    Raises
    ------
    InputError
        Both would be written to stdout.
    """
    if printed and str(path) == "-" and (out is None or str(out) == "-"):
        raise InputError("--save-pssm -: the report is written to stdout, too; give --out FILE, or another --save-pssm")


def refuse_run_without_checkpoints(run: RunInfo) -> None:
    """Refuse to save the profiles of a search that has none.

    Raises
    ------
    InputError
        The queries are not proteins, or the scoring scheme has no statistics, which a checkpoint contains.
    """
    if run.query_alphabet != "protein":
        raise InputError("--save-pssm saves profiles of proteins, and these queries are DNA; leave it out")
    if run.lam is None or run.k is None:
        raise InputError(f"--save-pssm: a checkpoint contains λ and K, and there are none: {run.statistics}")


def _saved(run: RunInfo, results: Iterable[QueryResult], stream: TextIO) -> Iterator[QueryResult]:
    """The results; the profile of each is written before it is passed on."""
    import numpy as np

    from swsearch.query.asn1 import write_checkpoint
    from swsearch.scoring.matrix import parse_matrix_text
    from swsearch.sequences.alphabet import CODE_MASK, PROTEIN

    assert run.lam is not None
    assert run.k is not None
    matrix = parse_matrix_text(run.matrix_scores, run.matrix, PROTEIN)
    for result in results:
        codes = PROTEIN.encode(result.letters) & np.uint8(CODE_MASK)
        scores = matrix.scores[codes, :20] if result.pssm is None else result.pssm.scores
        write_checkpoint(
            stream, result.header, codes, scores, lam=run.lam, k=run.k, gap_open=run.gap_open,
            gap_extend=run.gap_extend, matrix=run.matrix,
        )  # fmt: skip
        yield result

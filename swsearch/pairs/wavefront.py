"""One pair through the GPU's block wavefront: the score of a global problem with linear gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swsearch.engine.cuda.wavefront import wavefront_score
from swsearch.errors import InputError
from swsearch.pairs.align import PairAlignment, mode_scoring, outcome
from swsearch.pairs.batch import batch_arrays
from swsearch.pairs.scoring import PairScoring
from swsearch.pairs.sequence import PairSequence

if TYPE_CHECKING:
    from swsearch.engine.cuda.device import Device


def align_wavefront(
    device: Device, query: PairSequence, subject: PairSequence, mode: str = "global", scoring: PairScoring | None = None
) -> PairAlignment:
    """The score of two sequences by :func:`swsearch.engine.cuda.wavefront.wavefront_score`.

    Raises
    ------
    InputError
        Letters score by a table, which the kernel does not read.
    EngineError
        A side is empty, scores may leave 30 bits, or the device fails.
    """
    chosen = mode_scoring(mode, scoring)
    scores, (queries, subjects), _ = batch_arrays([(query, subject)], mode, chosen)
    if scores.table is not None:
        raise InputError(
            f"--kernel wavefront compares letters, and {chosen.name} scores each pair of them; give --costs"
        )
    score, _ = wavefront_score(
        device, queries.letters, subjects.letters,
        match=scores.match, mismatch=scores.mismatch, indel=scores.gap_extend,
    )  # fmt: skip
    return outcome(mode, query, subject, chosen, (score, len(query), len(subject), 0, 0), None)

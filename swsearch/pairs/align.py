"""One pair through the native kernels or a GPU: score and ends in linear memory, and the alignment where it is wanted.

All cells are computed, over all threads. Which of several optimal alignments is given never depends on engine, threads,
memory or instruction set (docs/design/diamond.md). Coordinates are 0-based and half-open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from swsearch import _native
from swsearch.engine.cuda.diamond_plan import PairProblem
from swsearch.engine.registry import check_threads
from swsearch.errors import InputError
from swsearch.hits.cigar import CigarCounts, count
from swsearch.pairs.scoring import EDIT, LCS, PairScoring
from swsearch.pairs.sequence import Letters, PairSequence, number_letters
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import CODE_MASK

if TYPE_CHECKING:
    from swsearch.pairs.gpu import GpuPairs

MODES: Final = ("local", "global", "semiglobal", "edit", "lcs")
FREE_ENDS: Final = ("both", "query", "subject")
CIGAR_CELLS: Final = 25_000_000
"""Cells of the largest pair whose alignment is found without being asked for: 5,000 by 5,000."""
MEMORY_BYTES: Final = 256 << 20
"""Bytes of rows kept on the way to an alignment, beyond what grows with the lengths; it is the same for all."""


@dataclass(frozen=True, eq=False)
class PairAlignment:
    """The outcome of one pair.

    Attributes
    ----------
    mode : str
        One of :data:`MODES`.
    score : int
        Raw score; the distance for ``edit``, the length of the common subsequence for ``lcs``.
    query_end, subject_end : int
        Letters before the end of the alignment.
    query_start, subject_start : int or None
        Letters before its start; None where only the score was asked for and the mode leaves the start open.
    cigar : str or None
        None where only the score was asked for; empty where nothing aligns.
    """

    mode: str
    query: PairSequence
    subject: PairSequence
    scoring: PairScoring
    score: int
    query_end: int
    subject_end: int
    query_start: int | None
    subject_start: int | None
    cigar: str | None

    @property
    def counts(self) -> CigarCounts | None:
        """Columns by kind; None without a CIGAR."""
        return None if self.cigar is None else count(self.cigar)

    @property
    def aligned(self) -> tuple[str, str]:
        """The aligned letters of both sides, without gaps; only with a CIGAR."""
        return (
            self.query.letters[self.query_start : self.query_end],
            self.subject.letters[self.subject_start : self.subject_end],
        )


def mode_scoring(mode: str, scoring: PairScoring | None) -> PairScoring:
    """The scoring that a mode has of its own, or the one given.

    Raises
    ------
    InputError
        The mode is unknown, or lacks a scoring or has one too many.
    """
    if mode not in MODES:
        raise InputError(f"--mode {mode!r} is unknown; choose {', '.join(MODES)}")
    if mode in ("edit", "lcs"):
        if scoring is not None:
            raise InputError(f"--mode {mode} compares letters and has costs of its own; leave the scoring options out")
        return EDIT if mode == "edit" else LCS
    if scoring is None:
        raise InputError(f"--mode {mode} needs a scoring")
    if mode == "local" and scoring.matrix is None and scoring.match <= 0:
        raise InputError(
            f"{scoring.name}: no pair of letters scores above 0, so nothing aligns locally; choose --mode global"
        )
    return scoring


def align_pair(
    query: PairSequence,
    subject: PairSequence,
    mode: str = "local",
    scoring: PairScoring | None = None,
    *,
    free_ends: str = "both",
    path: bool = True,
    n_threads: int = 1,
    memory_bytes: int = MEMORY_BYTES,
    progress: Callable[[int], None] | None = None,
    gpu: GpuPairs | None = None,
) -> PairAlignment:
    """The best alignment of two sequences.

    Parameters
    ----------
    mode : str
        ``local``, ``global``, ``semiglobal``, ``edit`` or ``lcs``.
    scoring : PairScoring, optional
        Needed for the first three modes; the other two have their own.
    free_ends : str
        For ``semiglobal``: whose end gaps cost nothing. ``both``; ``subject``: the query is aligned whole, the subject
        may hang over at either end; ``query``: the reverse.
    path : bool
        Whether the alignment is wanted; else score and end alone.
    progress : callable, optional
        Called from this thread with the cells done since the last call, in pairs of more than 50 million cells.
    gpu : GpuPairs, optional
        Where the matrix is swept, in place of the CPU.

    Raises
    ------
    InputError
        Parameters that do not fit, or sequences too long for 30-bit scores.
    KeyboardInterrupt
        After all threads have ended.

    >>> align_pair(PairSequence("", "RISOTTO"), PairSequence("", "PRESTO"), "edit").score
    4
    """
    chosen = mode_scoring(mode, scoring)
    ends = ends_of_mode(mode, free_ends)
    check_threads(n_threads)
    check_sides(query, subject, chosen)
    compared = number_letters(query, subject)
    letters, table, match, mismatch = _kernel_scoring(query, subject, compared, chosen)
    costs = (chosen.gap_open, chosen.gap_extend)
    progress = up_to(len(query) * len(subject), progress)
    try:
        if gpu is not None and len(query) > 0 and len(subject) > 0:
            problem = PairProblem(*ends, *costs, match, mismatch, table)
            found = _by_gpu(gpu, letters, problem, memory_bytes if path else None, progress)
        else:
            found = _native.align_pair(
                *letters, table, match, mismatch, *costs, *ends, path, n_threads, memory_bytes, progress
            )
    except InputError as error:
        raise InputError(f"{query.identifier} and {subject.identifier}: {error}") from error
    except ValueError as error:
        raise InputError(f"{query.identifier} and {subject.identifier}: {error}") from error
    score, query_end, subject_end, query_start, subject_start, runs = found
    cigar = None if runs is None else _cigar(*compared, query_start, subject_start, runs)
    return outcome(mode, query, subject, chosen, (score, query_end, subject_end, query_start, subject_start), cigar)


def ends_of_mode(mode: str, free_ends: str) -> tuple[bool, bool, bool]:
    """Whether a path is local, and whether end gaps that consume the query, and the subject, cost nothing.

    Raises
    ------
    InputError
        ``free_ends`` is none of :data:`FREE_ENDS`, or given for a mode that it changes nothing in.
    """
    if free_ends not in FREE_ENDS:
        raise InputError(f"--free-ends {free_ends!r} is unknown; choose {', '.join(FREE_ENDS)}")
    if free_ends != "both" and mode != "semiglobal":
        raise InputError(f"--free-ends {free_ends} is for --mode semiglobal; leave it out of --mode {mode}")
    local = mode == "local"
    query_free = local or (mode == "semiglobal" and free_ends in ("both", "query"))
    return local, query_free, local or (mode == "semiglobal" and free_ends in ("both", "subject"))


def check_sides(query: PairSequence, subject: PairSequence, scoring: PairScoring) -> None:
    """Refuse texts where residues are scored.

    Raises
    ------
    InputError
        ``scoring`` has a matrix and a side is a text.
    """
    if scoring.matrix is not None and (query.record is None or subject.record is None):
        raise InputError(f"{scoring.name} scores residues, but a text is given; choose --mode edit or lcs")


def outcome(
    mode: str,
    query: PairSequence,
    subject: PairSequence,
    scoring: PairScoring,
    found: Sequence[int],
    cigar: str | None,
) -> PairAlignment:
    """What a kernel found, as it is reported; ``found``: score, query end, subject end, query start, subject start."""
    score, query_end, subject_end, query_start, subject_start = found
    known_start = cigar is not None or mode not in ("local", "semiglobal")
    return PairAlignment(
        mode,
        query,
        subject,
        scoring,
        -score if mode == "edit" else score,
        query_end,
        subject_end,
        query_start if known_start else None,
        subject_start if known_start else None,
        cigar,
    )


def _by_gpu(
    gpu: GpuPairs,
    letters: tuple[Letters, Letters],
    problem: PairProblem,
    memory_bytes: int | None,
    progress: Callable[[int], None] | None,
) -> tuple[int, int, int, int, int, list[tuple[str, int]] | None]:
    """What a GPU finds, as ``_native.align_pair`` returns it; score and end alone where ``memory_bytes`` is None."""
    if memory_bytes is None:
        end = gpu.end(*letters, problem, progress)
        return end.score, end.query_end, end.subject_end, 0, 0, None
    end, path = gpu.end_and_path(*letters, problem, memory_bytes, progress)
    return end.score, end.query_end, end.subject_end, path.query_start, path.subject_start, path.runs


def up_to(cells: int, progress: Callable[[int], None] | None) -> Callable[[int], None] | None:
    """Progress that ends at ``cells``: the kernels also count fill, and cells that a path has them compute again."""
    if progress is None:
        return None
    left = cells

    def advance(more: int) -> None:
        nonlocal left
        counted = min(more, left)
        left -= counted
        progress(counted)

    return advance


def _kernel_scoring(
    query: PairSequence, subject: PairSequence, compared: tuple[Letters, Letters], scoring: PairScoring
) -> tuple[tuple[Letters, Letters], np.ndarray | None, int, int]:
    """Letters, table, match and mismatch for the kernels: comparing is faster than looking up, and often the same."""
    if scoring.matrix is None:
        return compared, None, scoring.match, scoring.mismatch
    assert query.record is not None
    assert subject.record is not None
    codes = [(side.record.codes & CODE_MASK).astype(np.uint16) for side in (query, subject) if side.record is not None]
    plain = plain_scores(scoring.matrix, codes[0], codes[1])
    if plain is not None:
        return compared, None, *plain
    return (codes[0], codes[1]), scoring.matrix.scores, 0, 0


def plain_scores(matrix: SubstitutionMatrix, query: Letters, subject: Letters) -> tuple[int, int] | None:
    """The one score of equal and the one of different letters that the matrix has for these codes, or None."""
    rows, columns = np.unique(query), np.unique(subject)
    used = matrix.scores[np.ix_(rows, columns)].astype(int)
    identity = matrix.alphabet.identity_table
    equal = identity[rows][:, None] == identity[columns][None, :]
    same, different = used[equal], used[~equal]
    if np.unique(same).size > 1 or np.unique(different).size > 1:
        return None
    match = int(same[0]) if same.size else int(used.max(initial=0))
    return match, int(different[0]) if different.size else match


def _cigar(query: Letters, subject: Letters, row: int, column: int, runs: list[tuple[str, int]]) -> str:
    """The CIGAR of runs of ``M``, ``D`` and ``I``; ``M`` becomes ``=`` and ``X``."""
    parts: list[str] = []
    for operation, length in runs:
        if operation == "M":
            equal = query[row : row + length] == subject[column : column + length]
            borders = np.flatnonzero(np.diff(equal)) + 1
            starts = [0, *borders.tolist()]
            for start, stop in zip(starts, [*starts[1:], length], strict=True):
                parts.append(f"{stop - start}{'=' if equal[start] else 'X'}")
        else:
            parts.append(f"{length}{operation}")
        row += length if operation != "D" else 0
        column += length if operation != "I" else 0
    return "".join(parts)

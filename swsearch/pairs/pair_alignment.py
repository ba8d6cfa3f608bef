"""The best alignments of pairs: :func:`align_pairs` takes pairs and a mode, and returns a :class:`PairAlignment` each.

The module converts modes and pairs to the arrays of a backend, and its results to records. All cells are computed. The
choice among several optimal alignments does not depend on the backend, threads, memory or instruction set
(docs/design/diamond.md). Coordinates are 0-based and half-open.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from swsearch.arrays import distinct
from swsearch.engine.cpu.pairs import CpuPairs, cigars
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, PairBackend, SequencePairs, Sequences
from swsearch.errors import InputError
from swsearch.hits.cigar import CigarCounts, count
from swsearch.pairs.sequence import PairSequence, number_texts
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.scoring.scheme import ScoringScheme
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.typing import Letters, Progress
from swsearch.words import option, shortened

# --- scores of letters and costs of gaps ---


@dataclass(frozen=True)
class PairScoring:
    """Scores of letters and costs of gaps; a gap of k letters costs ``gap_open + k * gap_extend``.

    Costs are from 0 to 16,383. ``match`` and ``mismatch`` are used if there is no matrix; letters are then compared.
    """

    name: str
    match: int
    mismatch: int
    gap_open: int
    gap_extend: int
    matrix: SubstitutionMatrix | None = None

    @property
    def max_score(self) -> int:
        """Largest score of two letters."""
        return max(self.match, self.mismatch) if self.matrix is None else self.matrix.max_score


def scheme_scoring(scheme: ScoringScheme) -> PairScoring:
    """The pair scoring of a search's scheme."""
    return PairScoring(str(scheme), 0, 0, scheme.gap.open, scheme.gap.extend, scheme.matrix)


EDIT: Final = PairScoring("edit distance: insertion, deletion and substitution cost 1", 0, -1, 0, 1)
LCS: Final = PairScoring("longest common subsequence: equal letters count 1", 1, -1, 0, 0)
"""Gaps cost nothing, so the alignment of two different letters (-1) always scores less than two gaps."""

COST_SETS: Final[Mapping[str, PairScoring]] = MappingProxyType(
    {
        "nw2009": PairScoring("costs: indel 3, substitution 1, match 0", 0, -1, 0, 3),
        "sw2023": PairScoring("match 1, substitution -1, gap -2", 1, -1, 0, 2),
    }
)
"""Cost sets by name. A cost is a score with the opposite sign."""


def cost_set(name: str) -> PairScoring:
    """A cost set by name.

    >>> cost_set("nw2009").gap_extend
    3
    """
    if name not in COST_SETS:
        raise InputError(f"--costs {name!r} is unknown; choose {', '.join(COST_SETS)}")
    return COST_SETS[name]


# --- alignments ---


MODES: Final = ("local", "global", "semiglobal", "edit", "lcs")
FREE_ENDS: Final[Mapping[str, FreeEnds]] = MappingProxyType(
    {
        "both": FreeEnds.ALL,
        "query": FreeEnds.QUERY,
        "subject": FreeEnds.SUBJECT,
        "query-start": FreeEnds.QUERY_START,
        "query-end": FreeEnds.QUERY_END,
        "subject-start": FreeEnds.SUBJECT_START,
        "subject-end": FreeEnds.SUBJECT_END,
    }
)
"""Words for free ends."""
EDLIB_MODES: Final[Mapping[str, FreeEnds]] = MappingProxyType(
    {"NW": FreeEnds.NONE, "SHW": FreeEnds.SUBJECT_END, "HW": FreeEnds.SUBJECT}
)
"""The modes of edlib: its target is the subject."""
CIGAR_CELLS: Final = 25_000_000
"""Number of cells of the largest pair whose alignment is computed by default: 5,000 by 5,000."""

Pair = tuple[PairSequence, PairSequence]
"""Query and subject."""


@dataclass(frozen=True, eq=False)
class PairAlignment:
    """The best alignment of a pair.

    Attributes
    ----------
    mode : str
        One of :data:`MODES`.
    free_ends : FreeEnds
        Ends at which the letters outside the alignment cost nothing; all of them for ``local``.
    score : int
        Raw score; the distance for ``edit``, the length of the common subsequence for ``lcs``.
    query_end, subject_end : int
        Number of letters before the end of the alignment.
    query_start, subject_start : int or None
        Number of letters before its start; None if only the score was requested and the mode does not determine the
        start.
    cigar : str or None
        The alignment as a CIGAR; None if only the score was requested, and empty if nothing aligns.
    """

    mode: str
    free_ends: FreeEnds
    query: PairSequence
    subject: PairSequence
    scoring: PairScoring
    score: int
    query_end: int
    subject_end: int
    query_start: int | None
    subject_start: int | None
    cigar: str | None

    def __str__(self) -> str:
        """The alignment as ``swsearch align`` prints it."""
        from swsearch.pairs.pair_report import write

        stream = io.StringIO()
        write("pairwise", [self], stream)
        return stream.getvalue().rstrip("\n")

    @property
    def counts(self) -> CigarCounts | None:
        """Numbers of columns by kind; None without a CIGAR."""
        return None if self.cigar is None else count(self.cigar)

    @property
    def aligned(self) -> tuple[str, str]:
        """The aligned letters of query and subject, without gaps; defined only with a CIGAR."""
        return (
            self.query.letters[self.query_start : self.query_end],
            self.subject.letters[self.subject_start : self.subject_end],
        )


def mode_scoring(mode: str, scoring: PairScoring | None) -> PairScoring:
    """The scoring of a mode: the fixed one for ``edit`` and ``lcs``, otherwise the argument.

    Raises :class:`InputError` for an unknown mode, and if the scoring is missing or the mode has a fixed one.
    """
    if mode not in MODES:
        raise InputError(f"{option('mode', mode)} is unknown; choose {', '.join(MODES)}")
    if mode in ("edit", "lcs"):
        if scoring is not None:
            own = "compares letters and has costs of its own"
            raise InputError(f"{option('mode', mode)} {own}; leave the scoring options out")
        return EDIT if mode == "edit" else LCS
    if scoring is None:
        raise InputError(f"{option('mode', mode)} needs a scoring")
    if mode == "local" and scoring.max_score <= 0:
        raise InputError(
            f"{scoring.name}: no pair of letters scores above 0, so nothing aligns locally; "
            f"choose {option('mode', 'global')}"
        )
    return scoring


def align_pair(
    query: PairSequence,
    subject: PairSequence,
    mode: str = "local",
    scoring: PairScoring | None = None,
    *,
    free_ends: str | None = None,
    path: bool = True,
    backend: PairBackend | None = None,
    progress: Progress | None = None,
) -> PairAlignment:
    """The best alignment of two sequences; see :func:`align_pairs`.

    >>> align_pair(PairSequence("", "RISOTTO"), PairSequence("", "PRESTO"), "edit").score
    4
    """
    (found,) = align_pairs(
        [(query, subject)], mode, scoring, free_ends=free_ends, path=path, backend=backend, progress=progress
    )
    return found


def align_pairs(
    pairs: Sequence[Pair],
    mode: str = "local",
    scoring: PairScoring | None = None,
    *,
    free_ends: str | None = None,
    path: bool = True,
    backend: PairBackend | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> list[PairAlignment]:
    """The best alignment of each pair, in the order of the pairs.

    Parameters
    ----------
    pairs : sequence of (query, subject)
        All sequences are residues of one alphabet, or all are texts.
    mode : str
        ``local``, ``global``, ``semiglobal``, ``edit`` or ``lcs``.
    scoring : PairScoring, optional
        Required for the first three modes; the other two have a fixed scoring.
    free_ends : str, optional
        For ``semiglobal`` and ``edit``: the ends at which letters outside the alignment cost nothing, as one or
        several of :data:`FREE_ENDS` joined by commas, or as a mode of edlib (``HW``, ``SHW``, ``NW``). With
        ``subject``, the complete query is aligned, and the subject may extend beyond it at both ends; ``query`` is the
        reverse. By default ``both`` for ``semiglobal``, and none for ``edit``.
    path : bool
        Whether alignments are computed; if not, only scores and ends are computed.
    backend : PairBackend, optional
        Computes the alignments; by default the CPU on ``n_threads`` threads.
    n_threads : int
        Number of threads of the default backend, and for writing CIGARs; at least 1.
    progress : callable, optional
        Called from this thread with the number of cells completed since the last call.

    Raises
    ------
    InputError
        The parameters do not fit, or the sequences are too long for 30-bit scores.
    EngineError
        The device of the backend fails.
    KeyboardInterrupt
        The program was interrupted; raised after all threads have ended.

    >>> risotto = PairSequence("", "RISOTTO"), PairSequence("", "PRESTO")
    >>> [found.score for found in align_pairs([risotto, risotto[::-1]], "edit")]
    [4, 4]
    """
    chosen = mode_scoring(mode, scoring)
    backend = CpuPairs(n_threads) if backend is None else backend
    if not pairs:
        return []
    problem, scored, compared = pair_arrays(pairs, mode, chosen, free_ends)
    try:
        paths = backend.align(scored, problem, path=path, progress=progress)
    except InputError as error:
        query, subject = (shortened(sequence.identifier) for sequence in pairs[0])
        raise InputError(
            f"{query} and {subject if len(pairs) == 1 else 'the pairs after it'}: {error.marked}"
        ) from error
    written = cigars(paths, compared, n_threads) if path else [None] * len(pairs)
    return [
        _alignment(mode, problem.free_ends, pair, chosen, ends, cigar)
        for pair, ends, cigar in zip(pairs, paths.ends.tolist(), written, strict=True)
    ]


def free_ends_of_mode(mode: str, free_ends: str | None = None) -> FreeEnds:
    """The ends at which letters outside an alignment of a mode cost nothing; words as for :func:`align_pairs`.

    Raises :class:`InputError` for unknown words, and for a mode to which they do not apply.

    >>> free_ends_of_mode("edit", "HW") is free_ends_of_mode("semiglobal", "subject-start,subject-end")
    True
    """
    if free_ends is None:
        return FreeEnds.ALL if mode in ("local", "semiglobal") else FreeEnds.NONE
    given = option("free_ends", free_ends)
    words = free_ends.split(",")
    unknown = next((word for word in words if word not in FREE_ENDS), None)
    if unknown is None:
        ends = FreeEnds.NONE
        for word in words:
            ends |= FREE_ENDS[word]
    elif free_ends.upper() in EDLIB_MODES:
        ends = EDLIB_MODES[free_ends.upper()]
    else:
        raise InputError(
            f"{option('free_ends', unknown)} is unknown; "
            f"choose from {', '.join(FREE_ENDS)}, joined by commas, or a mode of "
            f"edlib: {', '.join(EDLIB_MODES)}"
        )
    if mode not in ("semiglobal", "edit"):
        modes = f"{option('mode', 'semiglobal')} and edit"
        raise InputError(f"{given} is for {modes}; leave it out of {option('mode', mode)}")
    if mode == "semiglobal" and not ends:
        raise InputError(f"{given}: no end is free; choose {option('mode', 'global')}")
    if mode == "edit" and _has_empty_alignments(ends):
        raise InputError(f"{given}: an alignment without letters has distance 0; choose query or subject, for example")
    return ends


def _has_empty_alignments(ends: FreeEnds) -> bool:
    """Whether all letters of both sequences may lie outside the alignment: one sequence before it, the other after."""
    return FreeEnds.QUERY_START | FreeEnds.SUBJECT_END in ends or FreeEnds.SUBJECT_START | FreeEnds.QUERY_END in ends


def pair_arrays(
    pairs: Sequence[Pair], mode: str, scoring: PairScoring, free_ends: str | None = None
) -> tuple[AlignmentProblem, SequencePairs, SequencePairs]:
    """Pairs as the arrays that backends require: the problem, the letters that it scores, and the letters to compare.

    A comparison of letters is faster than a lookup of their score. Therefore letters are compared if the matrix has one
    score for all equal and one for all different letters of the pairs, as for unambiguous DNA. In the second arrays,
    letters that are reported as equal have equal numbers. Raises :class:`InputError` if the sequences do not fit the
    scoring, or the texts have too many distinct letters.
    """
    if scoring.matrix is not None and any(side.record is None for pair in pairs for side in pair):
        advice = f"choose {option('mode', 'edit')} or lcs"
        raise InputError(f"{scoring.name} scores residues, but a text is given; {advice}")
    sides = [[pair[0] for pair in pairs], [pair[1] for pair in pairs]]
    records = [[side.record for side in column if side.record is not None] for column in sides]
    if len(records[0]) < len(pairs) or len(records[1]) < len(pairs):
        texts = number_texts([side.letters for column in sides for side in column])
        codes = compared = SequencePairs(Sequences.of(texts[: len(pairs)]), Sequences.of(texts[len(pairs) :]))
    else:
        plain = [[(record.codes & CODE_MASK).astype(np.uint16) for record in column] for column in records]
        codes = SequencePairs(*map(Sequences.of, plain))
        identity = records[0][0].alphabet.identity_table.astype(np.uint16)
        numbered = (Sequences(identity[side.letters], side.ends) for side in (codes.queries, codes.subjects))
        compared = SequencePairs(*numbered)
    costs = mode == "local", free_ends_of_mode(mode, free_ends), scoring.gap_open, scoring.gap_extend
    if scoring.matrix is None:
        return AlignmentProblem(*costs, scoring.match, scoring.mismatch), compared, compared
    two_scores = match_mismatch_of(scoring.matrix, codes.queries.letters, codes.subjects.letters)
    if two_scores is not None:
        return AlignmentProblem(*costs, *two_scores), compared, compared
    return AlignmentProblem(*costs, table=scoring.matrix.scores), codes, compared


def match_mismatch_of(matrix: SubstitutionMatrix, query: Letters, subject: Letters) -> tuple[int, int] | None:
    """The one score of all equal letters and that of all different letters among these codes; None if not unique."""
    rows, columns = distinct(query), distinct(subject)
    used = matrix.scores[np.ix_(rows, columns)].astype(int)
    identity = matrix.alphabet.identity_table
    equal = identity[rows][:, None] == identity[columns][None, :]
    same, different = used[equal], used[~equal]
    if distinct(same).size > 1 or distinct(different).size > 1:
        return None
    match = int(same[0]) if same.size else int(used.max(initial=0))
    return match, int(different[0]) if different.size else match


def _alignment(
    mode: str, free_ends: FreeEnds, pair: Pair, scoring: PairScoring, ends: list[int], cigar: str | None
) -> PairAlignment:
    """The record of a pair; ``ends``: score, query end, subject end, query start, subject start."""
    score, query_end, subject_end, query_start, subject_start = ends
    known_start = cigar is not None or not free_ends & FreeEnds.STARTS
    return PairAlignment(
        mode,
        free_ends,
        *pair,
        scoring,
        -score if mode == "edit" else score,
        query_end,
        subject_end,
        query_start if known_start else None,
        subject_start if known_start else None,
        cigar,
    )

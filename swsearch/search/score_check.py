"""Checks of E-values: scores of a search are compared with the distribution that its statistics predict.

The scores of different queries and subjects are made comparable by the *reduced score* ``x = -ln(E within this one
subject)``. If the statistics are right, reduced scores of unrelated sequences follow the standard extreme-value
distribution, ``P(x >= t) = 1 - exp(-exp(-t))``. An integer score represents an interval of reduced scores; it is
counted at the middle of this interval. An extreme-value distribution is fitted to the upper half of the scores, without
those above :data:`TOP`, because homologs of the query outnumber chance scores there.

:class:`ScoreCheck` counts the reduced scores of every query with every subject (``--plot``). If the fit predicts more
than twice, or less than half, as many hits at the E-value cut as the statistics do, the E-values are wrong by that
factor. The usual reasons are a query of unusual composition, repeats, and a database with many homologs of the query.
:func:`write_score_plot` draws the histogram.

:class:`SampleCheck` compares each query with a sample of up to :data:`LARGEST_SAMPLE` subjects. For queries of repeats
or of few different residues (coiled coils, poly-Q, collagen) the scores decrease more slowly, so there are many more
high scores by chance than E-values tell. It warns if the decay rate λ of the fit is materially smaller than that of the
statistics (:attr:`Misfit.scale`). Relatives of the query hardly affect it, because they are few in a sample. A search
computes only the scores that can be reported, so the sample is scored in addition, always by the CPU engine. This may
cost :data:`SHARE` of the time of the search: queries that would cost more are not checked. The cost is counted in
cells, so that every search checks the same queries. The subjects are at equal distances in stored order, so that their
lengths are those of the database, and every search of a database has the same sample. ``docs/design/statistics.md`` has
the measurements from which the limits were chosen.

A sample is taken of proteins among at least :data:`SMALLEST_SAMPLE` proteins; not of translated searches, iterated
ones, profiles, and schemes without statistics. A rate that is too large, as that of short peptides, causes no warning:
their E-values are too large, and no chance hit looks significant.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.deterministic import exp, log
from swsearch.engine.protocol import ScoreRequest
from swsearch.errors import InputError
from swsearch.hits.limits import RankedCandidates
from swsearch.hits.score_block import ScoreBlock
from swsearch.output_files import save_figure
from swsearch.query.profile import PositionSpecificQuery, SubjectRecord
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.search.frames import Frame
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.ranking import merge_frames
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Floats
from swsearch.words import first_word

if TYPE_CHECKING:
    from swsearch.scoring.extreme_value import ExtremeValueFit

EDGES: Final = np.linspace(-5.0, 40.0, 451)
"""The edges of the histogram cells of reduced scores, ascending."""
TOP: Final = float(log(1000.0))
"""Largest reduced score that is fitted; a thousandth of the chance scores exceed it."""

MIN_SCORES: Final = 1000
MIN_CELLS: Final = 10
"""Smallest number of scores, and of non-empty histogram cells, for a fit."""

TOLERANCE: Final = 2.0
"""A ratio of expected hits above this value, or below its reciprocal, causes a warning."""

_LARGEST_EVALUE: Final = 10.0
_LARGEST_SHARE: Final = 0.01


@dataclass(frozen=True, eq=False)
class CheckedScores:
    """The counted scores of a run and the distribution fitted to them.

    ``counts``, of shape (len(EDGES) + 1,), are the numbers of scores below the first of :data:`EDGES`, between
    neighbouring edges, and at or above the last. Fit and statistics are compared at ``evalue``, the run's limit, but at
    most 10 and a hundredth of the number of subjects; ``cut`` is the reduced score of this E-value for a subject of
    average length.
    """

    counts: NDArray[np.int64]
    fit: ExtremeValueFit | None
    cut: float
    evalue: float

    @property
    def n_scores(self) -> int:
        """Number of scores that were counted."""
        return int(self.counts.sum(dtype=np.int64))

    @property
    def ratio(self) -> float | None:
        """Hits that the fit predicts at the cut, divided by hits that the statistics predict; None without a fit."""
        if self.fit is None:
            return None
        return float(exp(self.fit.log_k - self.fit.lam * self.cut + self.cut))

    @property
    def warning(self) -> str | None:
        """A warning, in one sentence, if the ratio exceeds :data:`TOLERANCE` in either direction, else None."""
        ratio = self.ratio
        if ratio is None or 1 / TOLERANCE <= ratio <= TOLERANCE:
            return None
        return (
            f"the scores of this run do not follow its statistics: at E = {self.evalue:.2g} the fit to them expects "
            f"{ratio * self.evalue:.2g} hits by chance; multiply its E-values by {ratio:.2g}"
        )


class ScoreCheck:
    """Counts the scores of a searcher's queries, if :attr:`Searcher.observe` is set to :meth:`add`.

    Its memory does not depend on the number of scores. Raises :class:`InputError` if the scoring scheme has no
    statistics.
    """

    def __init__(self, searcher: Searcher) -> None:
        significance = searcher.significance
        statistics = significance.statistics
        if not isinstance(statistics, Statistics):
            raise InputError(f"--plot compares scores with their statistics, and there are none: {statistics.reason}")
        self._searcher = searcher
        self._evalue = min(searcher.options.evalue, _LARGEST_EVALUE, _LARGEST_SHARE * searcher.database.n_subjects)
        self._scale = significance.search_space / searcher.search_subjects.residues(searcher.database.n_residues)
        self._counts = np.zeros(len(EDGES) + 1, dtype=np.int64)

    def add(self, query_length: int, candidates: RankedCandidates) -> None:
        """Count the scores of one query with every subject."""
        self._counts += reduced_counts(self._searcher, query_length, candidates)

    def result(self) -> CheckedScores:
        """The scores counted so far, and the fit to them."""
        cut = float(log(self._searcher.database.n_subjects * self._scale / self._evalue))
        return CheckedScores(self._counts.copy(), fitted(self._counts), cut, self._evalue)


def reduced_counts(searcher: PlannedSearch, query_length: int, candidates: RankedCandidates) -> NDArray[np.int64]:
    """The numbers of reduced scores of one query as :class:`CheckedScores` has them, int64.

    ``candidates`` are subjects with their scores, whatever these are.
    """
    significance = searcher.significance
    statistics = significance.statistics
    assert isinstance(statistics, Statistics)
    lengths = significance.lengths(candidates.subject_index)
    n_residues = significance.query_residues(query_length)
    # For a search space of one residue, E times the subject's length is E within the subject.
    evalues = statistics.evalue(candidates.score, n_residues, lengths, 1, significance.n_comparisons) * lengths
    reduced = -log(evalues) + statistics.lam * statistics.score_step / 2
    return np.bincount(np.searchsorted(EDGES, reduced, side="right"), minlength=len(EDGES) + 1)


def fitted(counts: NDArray[np.int64], min_scores: int = MIN_SCORES) -> ExtremeValueFit | None:
    """The distribution fitted to the scores from their median to :data:`TOP`; None if there are too few scores."""
    last = int(np.searchsorted(EDGES, TOP))
    below = np.cumsum(counts[: last + 1])
    first = min(int(np.searchsorted(below, below[-1] / 2)), last - 3)
    cells = np.concatenate(([below[first]], counts[first + 1 : last + 1], [counts[last + 1 :].sum(dtype=np.int64)]))
    if counts.sum(dtype=np.int64) < min_scores or np.count_nonzero(cells[:-1]) < MIN_CELLS:
        return None
    from swsearch.scoring.extreme_value import fit_extreme_value

    return fit_extreme_value(EDGES[first : last + 1], cells, top_unknown=True)


SMALLEST_SAMPLE: Final = 400
LARGEST_SAMPLE: Final = 1000
SAMPLED_SHARE: Final = 200
"""Number of subjects of the database per subject of the sample, whose size has these limits."""

LOWEST_SCALE: Final = 0.75
"""Smallest λ of a query, divided by that of the statistics, without a warning; its standard error is added before."""

CLEAR_SCALE: Final = 0.85
"""A rough estimate above this value needs no fit."""

SHARE: Final = 0.005
"""Largest share of the time of a search that the checks may take, in cells that a thread of the CPU searches."""
BACKGROUND_RATE: Final = 270
"""Cells that an engine in the background, a GPU, computes while a thread of the CPU computes one."""
SAMPLE_COST: Final = 2.6
"""Time of a cell of a sample divided by that of a cell of a search, most of which bounds decide."""
THREAD_CELLS: Final = 3 * 10**7
"""Cells that a thread of the CPU searches while the counts of one query are made and judged."""
MOST_NAMED: Final = 3
"""Number of queries that one warning names."""
FREE_CELLS: Final = 25 * 10**7
"""Cells of each thread that any search may spend: 1 % of the 0.7 s in which a command starts and ends."""


@dataclass(frozen=True)
class Misfit:
    """A query whose scores do not follow the statistics.

    ``scale`` is λ of its scores with ``n_scores`` subjects, divided by that of the statistics.
    """

    name: str
    scale: float
    n_scores: int

    def __str__(self) -> str:
        return f"{self.name}: its scores with {self.n_scores:,} subjects fit {self.scale:.2f} of the assumed λ"


class SampleCheck:
    """Checks the queries of a searcher, if its ``observe_batch`` is set to :meth:`add`.

    :meth:`applies` holds for the searcher, which has the subjects in this process. ``misfits`` are in the order of the
    queries.
    """

    def __init__(self, searcher: PlannedSearch) -> None:
        from swsearch.engine.cpu.engine import CpuEngine

        self._searcher = searcher
        subjects = searcher.search_subjects
        size = min(max(subjects.n_subjects // SAMPLED_SHARE, SMALLEST_SAMPLE), LARGEST_SAMPLE)
        self._samples = _samples(subjects.partitions, size)
        self._n_residues = sum(sample.n_residues for sample in self._samples)
        self._engine = CpuEngine(searcher.threads)
        self._threads = searcher.threads
        self._share = SHARE * searcher.threads / BACKGROUND_RATE if searcher.works_in_background else SHARE
        self._budget = float(FREE_CELLS * searcher.threads)
        self.n_queries = 0
        self.n_checked = 0
        self.misfits: list[Misfit] = []

    @staticmethod
    def applies(searcher: PlannedSearch) -> bool:
        """Whether queries of a searcher can be checked."""
        return (
            isinstance(searcher.significance.statistics, Statistics)
            and searcher.scheme.alphabet is PROTEIN
            and searcher.options.query_frames == searcher.search_subjects.frames == (0,)
            and searcher.search_subjects.n_subjects >= SMALLEST_SAMPLE
            and searcher.options.iterations == 1
            and not searcher.options.sensitive
        )

    @property
    def warning(self) -> str | None:
        """A warning of all misfits, in one sentence; None if there are none."""
        if not self.misfits:
            return None
        if len(self.misfits) == 1:
            return f"E-values are probably too small for {self.misfits[0]} ({LOWEST_SCALE} or more is usual)"
        named = ", ".join(misfit.name for misfit in self.misfits[:MOST_NAMED])
        more = ", …" if len(self.misfits) > MOST_NAMED else ""
        which = f"{len(self.misfits):,} of the {self.n_checked:,} queries that were checked ({named}{more})"
        return (
            f"E-values are probably too small for {which}: their scores fit less than {LOWEST_SCALE} of the assumed λ"
        )

    def add(self, queries: list[tuple[SequenceRecord, list[Frame]]]) -> None:
        """Check queries that were searched, as far as the budget permits."""
        chosen = [(query, frames) for query, frames in queries if self._is_affordable(query, frames)]
        if not chosen:
            return
        requests = [ScoreRequest(frame.masked_profile or frame.profile) for _, frames in chosen for frame in frames]
        parts = [self._engine.score(requests, sample) for sample in self._samples]
        blocks = iter([ScoreBlock.concatenate(list(of_profile)) for of_profile in zip(*parts, strict=True)])
        for query, frames in chosen:
            candidates = merge_frames([next(blocks) for _ in frames])
            counts = reduced_counts(self._searcher, len(query), candidates)
            if _rough_scale(counts) > CLEAR_SCALE:
                self.n_checked += 1
                continue
            fit = fitted(counts, SMALLEST_SAMPLE)
            self.n_checked += fit is not None
            if fit is not None and fit.lam * (1.0 + fit.lam_error) < LOWEST_SCALE:
                self.misfits.append(Misfit(first_word(query.header), fit.lam, len(candidates)))

    def _is_affordable(self, query: SequenceRecord, frames: list[Frame]) -> bool:
        self.n_queries += 1
        n_rows = sum(frame.profile.length for frame in frames)
        self._budget += self._share * n_rows * self._searcher.search_subjects.n_residues
        cost = SAMPLE_COST * n_rows * self._n_residues + THREAD_CELLS * self._threads
        if cost > self._budget or isinstance(query, PositionSpecificQuery | SubjectRecord):
            return False
        self._budget -= cost
        return True


def _rough_scale(counts: NDArray[np.int64]) -> float:
    """λ by two quantiles, the median and 96 %: the fit takes twenty times as long, and most queries do not need it."""
    n_scores = counts.sum(dtype=np.int64)
    below = np.cumsum(counts[:-1])
    low, high = np.searchsorted(below, [n_scores * 0.5, n_scores * 0.96])
    if low == high or high == len(EDGES) or not 0 < below[low] < below[high] < n_scores:
        return 0.0
    first, last = -log(-log(below[[low, high]] / n_scores))
    return float((last - first) / (EDGES[high] - EDGES[low]))


def _samples(partitions: list[Partition], size: int) -> list[Partition]:
    """Rows of all partitions at equal distances: ``size`` of them, or all if there are fewer; one partition a segment.

    >>> whole = Partition.pack([np.zeros(length, np.uint8) for length in range(1, 11)])
    >>> [part.lengths.tolist() for part in _samples([whole[:4], whole[4:]], 5)]
    [[2, 4, 6, 8, 10]]
    """
    n_rows = sum(map(len, partitions))
    rows = ((2 * np.arange(min(size, n_rows), dtype=np.int64) + 1) * n_rows // (2 * min(size, n_rows))).astype(np.intp)
    samples: list[Partition] = []
    first = 0
    for partition in partitions:
        part = partition[rows[(rows >= first) & (rows < first + len(partition))] - first]
        first += len(partition)
        if samples and samples[-1].residues is part.residues:  # each partition is a call of the engine
            before = samples.pop()
            part = Partition(
                part.residues,
                np.concatenate((before.starts, part.starts)),
                np.concatenate((before.lengths, part.lengths)),
                np.concatenate((before.subject_index, part.subject_index)),
            )
        samples.append(part)
    return [part for part in samples if len(part)]


def expected_counts(checked: CheckedScores, lam: float = 1.0, log_k: float = 0.0) -> Floats:
    """Number of scores that an extreme-value distribution predicts in each cell between two edges; float64.

    By default, its parameters are those that the run's statistics predict for reduced scores.
    """
    below = np.exp(-np.exp(np.minimum(log_k - lam * EDGES, 500.0)))
    counts: Floats = checked.n_scores * np.diff(below)
    return counts


def write_score_plot(checked: CheckedScores, title: str, path: Path) -> None:
    """Draw the histogram into a file, which appears only when it is complete.

    :func:`swsearch.output_files.check_plot` has accepted the path. Raises :class:`InputError` if matplotlib is not
    installed, or the file cannot be written.
    """
    from matplotlib.figure import Figure

    inner = checked.counts[1:-1]
    used = EDGES[:-1][inner > 0]
    leftmost, rightmost = (used[0], used[-1]) if len(used) else (0.0, checked.cut)
    middle = (EDGES[:-1] + EDGES[1:]) / 2
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.add_subplot()
    axes.stairs(inner, EDGES, fill=True, color="0.8", label=f"observed: {checked.n_scores:,} scores")
    axes.plot(
        middle,
        expected_counts(checked),
        color="tab:blue",
        label="expected by chance, by the statistics of the E-values",
    )
    if checked.fit is not None:
        curve = expected_counts(checked, checked.fit.lam, checked.fit.log_k)
        axes.plot(
            middle,
            curve,
            color="tab:red",
            linestyle="--",
            label=f"distribution that fits the scores up to {TOP:.1f}:\n{checked.ratio:.2g} times as many chance hits",
        )
    axes.axvline(
        checked.cut,
        color="0.4",
        linewidth=0.8,
        label=f"E-value {checked.evalue:.2g} of a subject of average length",
    )
    axes.set_yscale("log")
    axes.set_ylim(0.5, 3.0 * max(inner.max(), 1))
    axes.set_xlim(leftmost - 0.5, max(rightmost, checked.cut) + 1.0)
    axes.set_xlabel("score, as -ln of the E-value within one subject (to the right: stronger)")
    axes.set_ylabel("number of subjects with this score")
    shown = title.encode("utf-8", "replace").decode()  # headers and names of files may have bytes of no text
    axes.set_title(shown.replace("$", r"\$"), loc="left", fontsize="small")
    axes.legend(fontsize="small")
    save_figure(figure, path)

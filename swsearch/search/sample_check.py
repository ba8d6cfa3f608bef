"""A check of the E-values of each query: its scores with a sample of the subjects are compared with the statistics.

The scores of a query with unrelated subjects follow an extreme-value distribution whose decay rate λ is a parameter of
the statistics. For queries of repeats or of few different residues (coiled coils, poly-Q, collagen) the scores decrease
more slowly, so there are many more high scores by chance than E-values tell. :class:`SampleCheck` fits the distribution
to the reduced scores (:mod:`swsearch.search.score_check`) of a query with up to :data:`LARGEST_SAMPLE` subjects, and
warns if the rate is materially smaller than that of the statistics (:attr:`Misfit.scale`). Relatives of the query
hardly affect it, because they are few in a sample, and the highest scores are not fitted.

A search computes only the scores that can be reported, so the sample is scored in addition, always by the CPU engine.
This may cost :data:`SHARE` of the time of the search: queries that would cost more are not checked. The cost is counted
in cells, so that every search checks the same queries. The subjects are at equal distances in stored order, so that
their lengths are those of the database, and every search of a database has the same sample.
``docs/design/statistics.md`` has the measurements from which the limits were chosen.

Checked are proteins among at least :data:`SMALLEST_SAMPLE` proteins; not translated searches, iterated ones, profiles,
and schemes without statistics. A rate that is too large, as that of short peptides, causes no warning: their E-values
are too large, and no chance hit looks significant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.deterministic import log
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import PositionSpecificQuery, SubjectQuery
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.query_frames import QueryFrame
from swsearch.search.ranking import merge_frames
from swsearch.search.score_check import fitted, histogram_edges, reduced_counts
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Floats
from swsearch.words import first_word

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

    :meth:`applies` holds for the searcher, which has the subjects in this process. With ``in_background``, its engine
    works in the background, as a GPU's. ``misfits`` are in the order of the queries.
    """

    def __init__(self, searcher: PlannedSearch, *, in_background: bool = False) -> None:
        from swsearch.engine.cpu.engine import CpuEngine

        self._significance = searcher.significance
        self._subjects = searcher.search_subjects
        n_subjects = self._subjects.n_subjects
        self._samples = _samples(
            self._subjects.partitions, min(max(n_subjects // SAMPLED_SHARE, SMALLEST_SAMPLE), LARGEST_SAMPLE)
        )
        self._n_residues = sum(sample.n_residues for sample in self._samples)
        self._engine = CpuEngine(searcher.threads)
        self._edges = histogram_edges()
        self._threads = searcher.threads
        self._share = SHARE * searcher.threads / BACKGROUND_RATE if in_background else SHARE
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

    def add(self, queries: list[tuple[SequenceRecord, list[QueryFrame]]]) -> None:
        """Check queries that were searched, as far as the budget permits."""
        chosen = [(query, frames) for query, frames in queries if self._is_affordable(query, frames)]
        if not chosen:
            return
        profiles = [frame.masked_profile or frame.profile for _, frames in chosen for frame in frames]
        parts = [self._engine.score(profiles, sample) for sample in self._samples]
        blocks = iter([ScoreBlock.concatenate(list(of_profile)) for of_profile in zip(*parts, strict=True)])
        for query, frames in chosen:
            candidates = merge_frames([next(blocks) for _ in frames])
            counts = reduced_counts(self._edges, self._significance, self._subjects, len(query), candidates)
            if _rough_scale(self._edges, counts) > CLEAR_SCALE:
                self.n_checked += 1
                continue
            fit = fitted(self._edges, counts, SMALLEST_SAMPLE)
            self.n_checked += fit is not None
            if fit is not None and fit.lam * (1.0 + fit.lam_error) < LOWEST_SCALE:
                self.misfits.append(Misfit(first_word(query.header), fit.lam, len(candidates)))

    def _is_affordable(self, query: SequenceRecord, frames: list[QueryFrame]) -> bool:
        self.n_queries += 1
        n_rows = sum(frame.profile.length for frame in frames)
        self._budget += self._share * n_rows * self._subjects.n_residues
        cost = SAMPLE_COST * n_rows * self._n_residues + THREAD_CELLS * self._threads
        if cost > self._budget or isinstance(query, PositionSpecificQuery | SubjectQuery):
            return False
        self._budget -= cost
        return True


def _rough_scale(edges: Floats, counts: NDArray[np.int64]) -> float:
    """λ by two quantiles, the median and 96 %: the fit takes twenty times as long, and most queries do not need it."""
    n_scores = counts.sum(dtype=np.int64)
    below = np.cumsum(counts[:-1])
    low, high = np.searchsorted(below, [n_scores * 0.5, n_scores * 0.96])
    if low == high or high == len(edges) or not 0 < below[low] < below[high] < n_scores:
        return 0.0
    first, last = -log(-log(below[[low, high]] / n_scores))
    return float((last - first) / (edges[high] - edges[low]))


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

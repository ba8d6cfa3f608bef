"""The plan of an engine call: which kernel scores which subjects against which query, and why.

A :class:`swsearch.engine.cuda.search.planner.Planner` makes a list of :class:`BatchPlan`; compilation, the packing of
profiles, the launches and ``swsearch query --explain`` read it. Three things are decided later, because they depend on
results: whether a bound takes the place of scores, the type of scores beyond 16 bits, and that of long subjects whose
scores exceed 11 bits.

A batch is one query, or two that share words. Subjects are ordered by length, and a batch divides them into three
ranges, each with its route:

====================  ==============================================================  ======================
route                 subjects                                                        from index
====================  ==============================================================  ======================
``inter_task``        most subjects: a group of lanes computes each                   0
``intra_task``        those that would end last: a warp, or several, computes each,   ``n_short``
                      or each window of the longest (``windows``)
diamond tiles         the longest, if alignments may span them, or the query has      ``n_direct``
                      very many rows
====================  ==============================================================  ======================

Subjects of the first range whose score exceeds the narrow type are listed on the device and scored again in a wider
type. If there are floors, the inter-task kernel may compute an upper bound (:class:`BoundPlan`), and the subjects
that may reach their floor are listed and scored exactly.

:class:`PlanOptions` has the options of plans. The expected time of a search
(:class:`swsearch.engine.protocol.Forecast`) is the number of cells divided by the sum of the devices' rates in cells
per second (:func:`expected_rate`). A device's rate is the product of its multiprocessors, its clock and a number of
cells per clock that depends on the architecture. This number is measured where the kernels were tuned; elsewhere it is
two thirds, the measured proportion, of what the instructions of the inner loop allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import (
    COLLECT_KERNEL,
    OPEN_COUNTERS_KERNEL,
    Arithmetic,
    BoundaryMode,
    Gap,
    KernelSpec,
    Pairing,
    Tile,
)
from swsearch.engine.cuda.search.slots import ProfileStrips, profile_strips
from swsearch.engine.cuda.search.tiles import TunedTile, shape_kernel
from swsearch.engine.protocol import ScoreRequest
from swsearch.query.profile import QueryProfile

Item = TypeVar("Item")

BITS: Final = {Arithmetic.FAST: "11 bits", Arithmetic.SHORT: "16 bits", Arithmetic.WIDE: "32 bits"}
"""The number types, as the plan names them for the user."""


@dataclass(frozen=True)
class PlanOptions:
    """The options of an engine, and the measured sizes at which it changes its method (``docs/design/cuda-engine.md``).
    No score depends on them.

    With ``pairs``, two queries of similar length share words. ``band_rows`` are the rows of a band of the bound; 0 for
    no bound; None for the engine's choice, by the query's length and a sample.

    Only subjects of more than ``long_residues`` have warps of their own; beyond ``window_residues`` they are cut into
    windows for the intra-task kernel; and a query of more than ``diamond_rows`` rows is scored by diamonds against
    subjects of more than ``diamond_residues``. The windows of a partition with fewer than ``gathered_residues`` are
    never gathered for the inter-task kernel, which must save ``gather_picoseconds`` per residue, the time of copying
    and uploading them. A bound replaces scores for at least ``bound_subjects`` subjects of the inter-task kernel.
    ``downloaded`` selected subjects are downloaded with their number.
    """

    pairs: bool = True
    band_rows: int | None = None
    long_residues: int = 1500
    window_residues: int = 2048
    diamond_rows: int = 16_384
    diamond_residues: int = 4096
    gathered_residues: int = 1 << 24
    gather_picoseconds: float = 2_000.0
    bound_subjects: int = 1 << 15
    downloaded: int = 1 << 14


CELLS_PER_CLOCK: Final = {75: 6.0, 80: 12.0, 90: 24.0, 110: 12.0, 120: 16.0}
"""Cells per clock and multiprocessor, by the oldest architecture to which the figure applies. The figure for 9.0 is
measured (``cuda/README.md``); the others follow from the instructions: there are no three-input maxima before 9.0, and
no half-precision maxima before 8.0. 11.0 has the instructions of 8.0: its half-precision maxima take the unit of the
sums. 12.0 has integer maxima, which take another unit, but of two inputs only."""
BOUND_SPEEDUP: Final = 1.4
"""Effective cells per computed cell where a bound takes the place of most scores (``docs/design/cuda-engine.md``)."""


def expected_rate(facts: DeviceFacts, *, bounded: bool) -> float:
    """Cells per second that a device is expected to score; ``bounded`` if the search has floors and a bound is used."""
    cells = max((known, cells) for known, cells in CELLS_PER_CLOCK.items() if known <= max(facts.architecture, 75))[1]
    return facts.multiprocessors * facts.clock_hz * cells * (BOUND_SPEEDUP if bounded else 1.0)


def _runs(items: Iterable[Item]) -> list[tuple[Item, int]]:
    """Each run of equal items, and its length."""
    return [(item, len(list(same))) for item, same in groupby(items)]


@dataclass(frozen=True)
class InterTaskPlan:
    """The inter-task launches of a batch: strips of the exact kernel or of the bound, in the fast type.

    ``strips`` are the tiles from the first row down, one for each launch, of which only the last may have fewer rows
    left. Row blocks below the strips of two queries are of the longer query, which is the last one of its batch.
    ``gap`` are the gap costs that the kernels have as constants, and ``band`` is the number of rows of a band of the
    bound, or 0. With ``listed``, the subjects are those of a list.
    """

    strips: tuple[TunedTile, ...]
    gap: Gap = None
    band: int = 0
    listed: bool = False

    @cached_property
    def kernels(self) -> tuple[KernelSpec, ...]:
        """The kernel of each strip."""
        edges = [BoundaryMode.NONE if len(self.strips) == 1 else BoundaryMode.OWN]
        for above, strip in pairwise(self.strips):
            is_like_above = strip.tile.pairing is above.tile.pairing
            edges.append(BoundaryMode.OWN if is_like_above else BoundaryMode.READS_PAIR)
        return tuple(
            shape_kernel(strip, self.gap, mode, band=self.band, listed=self.listed)
            for strip, mode in zip(self.strips, edges, strict=True)
        )

    @cached_property
    def cost(self) -> float:
        """The time in picoseconds per subject residue; a single strip has no boundary."""
        return self.strips[0].alone if len(self.strips) == 1 else sum(strip.edges for strip in self.strips)

    def line(self) -> str:
        """A description for the user."""
        kind = f"bound, bands of {self.band} rows" if self.band else "exact"
        runs = _runs(f"{strip.tile.group} x {strip.tile.words}" for strip in self.strips)
        tiles = ", ".join(shape if n == 1 else f"{n} times {shape}" for shape, n in runs)
        return f"{BITS[Arithmetic.FAST]}, {kind}, strips of lanes x words: {tiles}"

    def packed(self, profiles: Sequence[QueryProfile]) -> list[ProfileStrips]:
        """The strips of the batch's profiles as they are packed: consecutive strips of one tile together."""
        found, first_row = [], 0
        for tile, n_strips in _runs(strip.tile for strip in self.strips):
            chosen = profiles if tile.pairing is Pairing.TWO_QUERIES else profiles[-1:]
            found.append(ProfileStrips(chosen, tile, Arithmetic.FAST, first_row, n_strips))
            first_row += n_strips * tile.rows
        return found


@dataclass(frozen=True)
class ListedRoute:
    """The launch of a kernel for listed subjects: its number type, tile and kernel."""

    arithmetic: Arithmetic
    tile: Tile
    kernel: KernelSpec

    def __hash__(self) -> int:
        return hash(self.kernel)  # which is computed once

    def packed(self, profile: QueryProfile) -> list[ProfileStrips]:
        """The strips of a query's profile as they are packed."""
        return [profile_strips([profile], self.tile, self.arithmetic)]


@dataclass(frozen=True, eq=False)
class BoundPlan:
    """A bound that takes the place of the inter-task kernels of a batch if few subjects of a sample pass it.

    ``rows`` is the sample, ascending indices of subjects (intp). ``most_passing`` is the largest number of them,
    counted once for each query, with which the bound is used.
    """

    inter_task: InterTaskPlan
    rows: NDArray[np.intp]
    most_passing: int


@dataclass(frozen=True)
class FloorRange:
    """Consecutive subjects, ``first`` to ``stop - 1``, with the same floor.

    ``limit`` is the lowest result of a bound with which a subject may reach the floor; None if any may.
    """

    first: int
    stop: int
    floor: int
    limit: int | None


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """The routes of one query of a batch; ``index`` is that of its request in the caller's list.

    ``ranges`` has all subjects by their floors; it is empty if all scores are needed. ``long`` is the route of the
    subjects from ``n_short`` to ``n_direct``, and ``again`` that of subjects that are scored again; None if no score
    can exceed the type. ``listed`` is the route of many subjects that pass a bound; None without a bound.
    """

    index: int
    request: ScoreRequest
    ranges: tuple[FloorRange, ...]
    long: ListedRoute | None
    listed: InterTaskPlan | None
    again: ListedRoute | None

    @property
    def largest_exact(self) -> int:
        """Largest score that is certainly exact before subjects are scored in the widest type."""
        arithmetic = Arithmetic.FAST if self.again is None else self.again.arithmetic
        return arithmetic.largest_exact(self.profile.max_score)

    @property
    def profile(self) -> QueryProfile:
        """The query's profile."""
        return self.request.profile


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """One query, or two that share words, the shorter first, against the subjects of a partition.

    ``n_short``, ``n_direct`` and ``n_subjects`` are the ends of the ranges of the routes. Subjects of the second one
    with more than ``window_columns`` residues are cut into windows of about this number. If the device lists more than
    ``most_again`` subjects, it scores none of them again.
    """

    queries: tuple[QueryPlan, ...]
    inter_task: InterTaskPlan
    bound: BoundPlan | None
    n_short: int
    n_direct: int
    n_subjects: int
    window_columns: int
    most_again: int

    @property
    def indices(self) -> tuple[int, ...]:
        """Indices of the requests in the caller's list."""
        return tuple(query.index for query in self.queries)

    @property
    def profiles(self) -> list[QueryProfile]:
        """The profiles of the queries."""
        return [query.profile for query in self.queries]

    @property
    def kernels(self) -> list[KernelSpec]:
        """The kernels of the first launches, in the order of their use."""
        bound = [] if self.bound is None else [*self.bound.inter_task.kernels]
        kernels = [*bound, *self.inter_task.kernels] if self.n_short else []
        collects = False
        for query in self.queries:
            kernels += [*query.listed.kernels, OPEN_COUNTERS_KERNEL] if query.listed is not None else []
            kernels += [route.kernel for route in (query.long, query.again) if route is not None]
            collects |= query.again is not None or query.request.floor is not None
        if collects and self.n_short:
            kernels.append(COLLECT_KERNEL)
        return kernels

    def lines(self) -> list[str]:
        """A description for the user, one line per route."""
        lengths = " and ".join(f"{query.profile.length:,}" for query in self.queries)
        shared = " that share words" if len(self.queries) == 2 else ""
        plan = self.inter_task
        found = [f"{'queries' if shared else 'query'} of {lengths} residues{shared}"]
        if self.n_short:
            of_subjects = f"  inter-task: {self.n_short:,} subjects, "
            found.append(of_subjects + plan.line())
            if self.bound is not None:
                n_sampled = len(self.bound.rows) * len(self.queries)
                found[-1] = of_subjects + self.bound.inter_task.line()
                found.append(f"    if at most {self.bound.most_passing:,} of {n_sampled:,} in a sample pass the bound")
                found.append(f"    otherwise {plan.line()}")
        for query in self.queries:
            of_query = f"query of {query.profile.length:,}: " if shared else ""
            if query.long is not None:
                found.append(
                    f"  intra-task: {of_query}{self.n_direct - self.n_short:,} subjects would end last, "
                    f"in windows of about {self.window_columns:,} residues if they are longer"
                )
            if self.n_direct < self.n_subjects:
                found.append(f"  diamond tiles: {of_query}{self.n_subjects - self.n_direct:,} long subjects")
            if query.again is not None:
                if query.listed is None:
                    why = f"score more than {Arithmetic.FAST.largest_exact(query.profile.max_score):,}"
                else:
                    floors = sorted({part.floor for part in query.ranges})
                    lengths = f" to {floors[-1]:,}, by their length" if len(floors) > 1 else ""
                    why = f"may reach a score of {floors[0]:,}{lengths}"
                found.append(f"  scored again in {BITS[query.again.arithmetic]}: {of_query}subjects that {why}")
        return found


def distinct_kernels(plans: Sequence[BatchPlan]) -> list[KernelSpec]:
    """The kernels of all batches, each once; the inter-task kernels, which take longest to compile, come first."""
    distinct = dict.fromkeys(kernel for batch in plans for kernel in batch.kernels)
    return sorted(distinct, key=lambda kernel: kernel.entry != "inter_task")

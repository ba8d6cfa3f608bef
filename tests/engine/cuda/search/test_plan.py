"""The plan of a search: its routes, and that the engine compiles and launches the kernels that the plan names.

The expected kernels are written by hand from the engine's documentation, or are those that the emulated device records.
"""

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.pairs.diamond_plan import SweepShape
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, SequencePairs
from swsearch.engine.protocol import ScoreRequest, score_requests
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import PROTEIN
from swsearch.typing import Lengths, Scores
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.support import random_codes


def codes_of(specs: list[KernelSpec]) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return the entry and constants of kernels, which determine their code; the number of threads does not."""
    return {(spec.entry, spec.constants) for spec in specs}


class BestThree:
    """Request the three best scores of a query; see :class:`swsearch.engine.protocol.TopKBound`."""

    top = 3

    def lowest(self, scores: Scores, lengths: Lengths) -> int:
        return int(np.sort(scores)[-self.top]) if len(scores) >= self.top else 1


def related_case(
    lengths: tuple[int, ...], scheme: ScoringScheme, letters: int = 20
) -> tuple[list[QueryProfile], Partition]:
    """Return queries, and for each a copy among eight random subjects."""
    rng = np.random.default_rng(11)
    queries = [random_codes(rng, length, letters) for length in lengths]
    subjects = [random_codes(rng, length, letters) for length in (5, 16, 30, 31, 33, 40, 50, 64)]
    return [sequence_profile(query, scheme) for query in queries], Partition.pack([*subjects, *queries])


@pytest.mark.parametrize(
    ("lengths", "floors", "ruled", "entries"),
    [
        ((61,), 60, False, {"inter_task", "collect"}),
        ((61,), None, False, {"inter_task"}),
        ((61,), 5, True, {"inter_task", "collect"}),
        ((64, 61, 250), 60, False, {"inter_task", "intra_task", "collect"}),
    ],
    ids=["floor", "all scores", "best three", "pair and strips"],
)
def test_a_search_begins_the_kernels_that_it_launches(
    emulated: MakeDevice, lengths: tuple[int, ...], floors: int | None, ruled: bool, entries: set[str]
) -> None:
    """By hand: the kernels that the engine's documentation names for each kind of search."""
    profiles, partition = related_case(lengths, default_scheme(PROTEIN))
    device = emulated()
    with CudaEngine(device) as engine:
        requests = [ScoreRequest(profile, floors, BestThree() if ruled else None) for profile in profiles]
        assert len(engine.score(requests, partition)) == len(profiles)
    assert codes_of(device.launched) == codes_of(device.prepared)
    assert {spec.entry for spec in device.launched} == entries
    assert len(device.prepared) == len(set(device.prepared))


def test_scores_that_may_leave_the_type_have_their_kernel_begun(emulated: MakeDevice) -> None:
    """By hand: with 127 per match, 270 letters may score 34,290, beyond 2,047 and beyond 16 bits."""
    profiles, partition = related_case((270,), ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10)), 4)
    device = emulated()
    with CudaEngine(device) as engine:
        engine.score(score_requests(profiles), partition)
    late = codes_of(device.launched) - codes_of(device.prepared)
    assert {dict(constants)["ARITHMETIC"] for _, constants in late} == {"Wide"}
    assert codes_of(device.prepared) < codes_of(device.launched)


def test_long_subjects_have_their_kernel_begun(emulated: MakeDevice) -> None:
    """One subject of 2,000 residues among short ones is scored by its own warp."""
    rng = np.random.default_rng(12)
    partition = Partition.pack([random_codes(rng, length) for length in (20, 30, 2000)])
    device = emulated()
    with CudaEngine(device) as engine:
        engine.score(score_requests([sequence_profile(random_codes(rng, 8), default_scheme(PROTEIN))]), partition)
    assert {spec.entry for spec in device.launched} == {"inter_task", "intra_task"}
    assert codes_of(device.launched) == codes_of(device.prepared)


@pytest.mark.parametrize("local", [True, False])
def test_a_sweep_begins_all_its_kernels(emulated: MakeDevice, local: bool) -> None:
    rng = np.random.default_rng(13)
    query, subject = (random_codes(rng, 90, 4).astype(np.uint16) for _ in range(2))
    device = emulated()
    problem = AlignmentProblem(local, FreeEnds.NONE, 5, 2, match=2, mismatch=-3)
    DiamondSweep(device, shape=SweepShape(True, 2)).ends([(query, subject)], problem)
    assert device.launched == device.prepared
    assert [spec.entry for spec in device.launched] == ["sweep_pairs", "locate_best"][: 1 + local]
    device = emulated()
    DiamondSweep(device, shape=SweepShape(True, 2)).align(SequencePairs.of([(query, subject)]), problem)
    assert device.launched == device.prepared
    assert device.launched[-1].entry == "trace_pairs"

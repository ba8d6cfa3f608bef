"""The files of ``cuda/tuning/``: which architectures they serve, and that the times of one file can be compared.

Expected values: instruction counts of the compiled loops (docs/design/cuda-engine.md), and the limits of the devices.
"""

import json
from typing import Any

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import Pairing
from swsearch.engine.cuda.search.plan import PlanOptions, expected_rate
from swsearch.engine.cuda.search.planner import Planner
from swsearch.engine.cuda.search.tiles import available_bands, tiles, tuned_for
from swsearch.engine.protocol import ScoreRequest
from swsearch.folders import resource_folder
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN
from tests.support import random_codes

FILES: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted((resource_folder("cuda") / "tuning").glob("*.json"))
}
ARCHITECTURES = sorted({89, 103, 121, *(each for tuning in FILES.values() for each in tuning["architectures"])})
CALCULATED = [name for name, tuning in FILES.items() if tuning["measured"].startswith("nowhere")]
RESERVED_BYTES = 1024
"""Shared memory of every block that the driver uses, from 8.0 on."""


def facts_of(architecture: int) -> DeviceFacts:
    return DeviceFacts("device", "", architecture, 40, 64 << 10, 1 << 34, 1.5e9, "")


def test_an_unknown_architecture_gets_the_nearest_older_tiles() -> None:
    assert tuned_for(89) is tuned_for(87) is tuned_for(86) is tuned_for(80)
    assert tuned_for(103) is tuned_for(100) is tuned_for(90)
    assert tuned_for(121) is tuned_for(120) is tuned_for(110)
    assert tuned_for(61) is tuned_for(75)
    assert len({id(tuned_for(architecture)) for architecture in ARCHITECTURES}) == len(FILES) == 4


@pytest.mark.parametrize(
    ("architecture", "loops", "bounds"),
    [
        (75, ((20, 1271), (20, 1218)), ((24, 734), (24, 679))),
        (86, ((28, 1195), (28, 1131)), ((40, 749), (40, 690))),
        (120, ((28, 1186), (28, 1095)), ((40, 742), (40, 684))),
    ],
)
def test_counted_times_have_the_measured_scale_and_the_counted_ratios(
    architecture: int, loops: tuple[tuple[int, int], ...], bounds: tuple[tuple[int, int], ...]
) -> None:
    """Instructions of the loops by nvcc 13.0, for 12.0 by 13.5: words and count for row blocks, then for two queries.

    Those of the exact kernel, and of the bound with bands of 8. The tiles of the bound lie between those that were
    counted for the file, the smallest and the largest.
    """
    pairings = (Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES)
    measured = min(shape.alone / shape.tile.rows for shape in tiles(90, Pairing.TWO_BLOCKS))
    one, two = (
        {shape.tile.words: shape for shape in tiles(architecture, pairing) if shape.tile.group == 4}[words].alone
        for pairing, (words, _) in zip(pairings, loops, strict=True)
    )
    (words, loop), (_, loop_of_two) = loops
    assert one / (2 * 4 * words) == pytest.approx(measured, rel=1e-2)
    assert two / one == pytest.approx(loop_of_two / loop, rel=1e-2)
    for pairing, (n_words, of_bound) in zip(pairings, bounds, strict=True):
        shapes = {(shape.tile.group, shape.tile.words): shape for shape in tiles(architecture, pairing, 8)}
        assert shapes[4, n_words].alone / one == pytest.approx(of_bound / loop, rel=1e-2)


@pytest.mark.parametrize("name", CALCULATED)
def test_strips_with_boundaries_take_more_instructions_than_those_without(name: str) -> None:
    """By a quarter at most in tiles of 20 words and more: a boundary is read and written once per column."""
    architecture = FILES[name]["architectures"][0]
    for band in (0, *available_bands(architecture)):
        for pairing in (Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES):
            for shape in tiles(architecture, pairing, band):
                assert shape.alone < shape.edges
                assert shape.edges < 1.25 * shape.alone or shape.tile.words < 20, shape


def test_a_series_has_the_tiles_and_times_of_its_line() -> None:
    """By hand, from the first series of ``ampere.json``: 3 to 10 words, then even numbers, 1.7528 + 1.1748 * words."""
    shapes = [shape for shape in tiles(86, Pairing.TWO_BLOCKS) if shape.tile.group == 4]
    assert [shape.tile.words for shape in shapes] == [*range(3, 11), *range(12, 29, 2)]
    assert [shapes[0].alone, shapes[-1].alone] == [5.28, 34.65]
    assert {shape.tile.words for shape in tiles(86, Pairing.TWO_QUERIES, 5)} == set(range(5, 41, 5))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_proteins_take_the_bound_on_every_architecture(architecture: int) -> None:
    """Its loops have fewer instructions than those of the exact kernel everywhere, by a third and more.

    40,000 subjects are more than the least number that has a bound.
    """
    lengths = np.full(40_000, 300, np.uint32)
    indices = np.arange(len(lengths), dtype=np.uint32)
    partition = Partition(
        np.zeros(int(lengths.sum()) + 64, np.uint8), indices.astype(np.uint64) * 300, lengths, indices
    )
    rng = np.random.default_rng(1)
    for of_queries in ((100,), (144,), (222,), (375,), (567,), (1000,), (2000,), (100, 105), (370, 375), (1900, 2000)):
        profiles = [sequence_profile(random_codes(rng, length), default_scheme(PROTEIN)) for length in of_queries]
        requests = [ScoreRequest(profile, 70) for profile in profiles]
        for batch in Planner(facts_of(architecture), PlanOptions()).plan(requests, partition):
            assert batch.bound is not None, of_queries
            assert batch.bound.inter_task.cost < 0.9 * batch.inter_task.cost


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_as_many_blocks_as_a_tile_asks_for_fit_a_multiprocessor(architecture: int) -> None:
    """Shared memory of a multiprocessor, in KB: 64 on 7.5, and at least 100 on the others."""
    available = 64 << 10 if architecture < 80 else 100 << 10
    reserved = 0 if architecture < 80 else RESERVED_BYTES
    for band in (0, *available_bands(architecture)):
        for pairing in (Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES):
            for shape in tiles(architecture, pairing, band):
                assert shape.blocks * (shape.tile.shared_bytes() + reserved) <= available, shape


def test_a_forecast_depends_on_the_units_of_sums_and_maxima() -> None:
    """By hand: 11.0 computes maxima as 8.x does, 12.0 on another unit, and 9.0 and 10.0 three inputs at a time."""
    rate = {each: expected_rate(facts_of(each), bounded=False) for each in ARCHITECTURES}
    assert rate[75] < rate[80] == rate[86] == rate[89] == rate[110] < rate[120] == rate[121] < rate[90] == rate[103]

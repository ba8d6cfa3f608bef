"""The upper bound that replaces scores where a floor is given: its kernel and the searches that use it.

Expected values: the definition in NumPy (``bound_reference.py``), and the scores of the reference engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Device, Stream
from swsearch.engine.cuda.runtime.kernels import OPEN_COUNTERS_KERNEL, Arithmetic, Pairing, Tile
from swsearch.engine.cuda.runtime.parameters import INTER_TASK, OPEN_COUNTERS, packed
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.plan import InterTaskPlan, PlanOptions
from swsearch.engine.cuda.search.planner import plan_inter_task, plan_inter_task_bound
from swsearch.engine.cuda.search.slots import pack_strips
from swsearch.engine.cuda.search.subjects import SubjectStore, device_bytes
from swsearch.engine.cuda.search.tiles import TunedTile, available_bands, tiles
from swsearch.engine.protocol import ScoreRequest, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.errors import EngineError
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import PAD_SCORE, match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import CODE_MASK, DNA, N_CODES, PAD_CODE, PROTEIN, reverse_complement
from swsearch.typing import Codes
from tests.engine.bound_reference import COLUMNS_PER_LOOK, Pairs, bounds
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.engine.cuda.search.test_emulated_engine import assert_same, profiles_of, protein_case
from tests.support import random_codes, random_profile

BANDS = (5, 6, 8)
PADDING = 4
UNTOUCHED = -7


# --- The kernel ---


def plan_of(shapes: Sequence[Tile], gap: GapPenalty, band: int) -> InterTaskPlan:
    """Return a plan with a strip of each of these tiles, from the first row down."""
    strips = tuple(TunedTile(tile, 64, 1) for tile in shapes)
    return InterTaskPlan(strips, Arithmetic.FAST.compiled_gap(gap.open, gap.extend), band)


def kernel_results(
    device: Device, profiles: Sequence[QueryProfile], partition: Partition, plan: InterTaskPlan, *, closed: bool = False
) -> list[NDArray[np.int32]]:
    """Launch the kernels of a plan as the engine does, and return the result of each query and subject.

    With ``closed``, the work counters are those of launches whose condition does not hold.
    """
    subjects = next(SubjectStore(device, 1 << 24).pieces(partition))
    words = pack_strips(plan.packed(profiles))
    on_device = device.allocate(words.nbytes)
    device.upload(on_device, words, Stream.COMPUTE)
    scores = [device.allocate(len(partition) * 4) for _ in profiles]
    boundaries = [device.allocate(subjects.residue_bytes * 8) for _ in range(2)]
    counters = device.allocate(4 * len(plan.strips))
    values = [strip.tile.closed_counter if closed else 0 for strip in plan.strips]
    device.upload(counters, np.array(values, np.uint32), Stream.COMPUTE)
    for buffer in scores:
        device.upload(buffer, np.full(len(partition), UNTOUCHED, np.int32), Stream.COMPUTE)
    first_unit = 0
    for number, (strip, kernel) in enumerate(zip(plan.strips, plan.kernels, strict=True)):
        tile = strip.tile
        of_strip = scores if tile.pairing is Pairing.TWO_QUERIES else scores[-1:]
        parameters = packed(
            INTER_TASK,
            profile=on_device.texture(),
            query=(
                first_unit, number > 0, number + 1 < len(plan.strips),
                boundaries[number % 2].address, boundaries[1 - number % 2].address,
            ),
            subjects=(
                subjects.residues.address, subjects.starts.address, subjects.lengths.address, len(partition), 0, 0
            ),
            gap=(profiles[0].gap.open, profiles[0].gap.extend),
            scores_low=of_strip[0].address,
            scores_high=of_strip[-1].address,
            work_counter=counters.address + 4 * number,
        )  # fmt: skip
        device.launch(kernel, 2, tile.shared_bytes(), parameters, Stream.COMPUTE)
        first_unit += tile.strip_units
    found = []
    for buffer in scores:
        values = np.empty(len(partition), np.int32)
        device.download(values, buffer, Stream.COMPUTE)
        found.append(values)
    return found


def expected_results(
    profile: QueryProfile, partition: Partition, plan: InterTaskPlan, *, is_last: bool
) -> NDArray[np.int32]:
    """Return the bound of each subject in plain NumPy, for the strips that the query has in the plan."""
    tiles_of_query = [strip.tile for strip in plan.strips if is_last or strip.tile.pairing is Pairing.TWO_QUERIES]
    lanes = np.concatenate([
        np.repeat(np.arange(tile.group), tile.rows // tile.group // plan.band) for tile in tiles_of_query
    ])  # fmt: skip
    table = np.vstack([profile.table, np.full((1, N_CODES), PAD_SCORE)]).astype(np.int32)
    rows = np.full(len(lanes) * plan.band, len(profile.table))
    rows[: min(profile.length, len(rows))] = profile.rows[: len(rows)]
    # One array holds all subjects, padded on the right: a column depends only on those to its left.
    lengths = [int(length) + PADDING for length in partition.lengths]
    codes = np.full((max(lengths), len(lengths)), PAD_CODE, np.uint8)
    for subject, (start, length) in enumerate(zip(partition.starts.tolist(), partition.lengths.tolist(), strict=True)):
        codes[:length, subject] = partition.residues[start : start + length] & CODE_MASK
    gap = [np.full(len(lengths), cost, np.int32) for cost in (profile.gap.open, profile.gap.extend)]
    e = bounds(Pairs(table[rows][:, codes], *gap), plan.band).e
    # A lane computes a column one step later than the lane above, and looks at E after every fourth step.
    columns = np.arange(e.shape[1])
    seen = (columns[None, :] + lanes[:, None]) % COLUMNS_PER_LOOK == COLUMNS_PER_LOOK - 1
    inside = columns[:, None] < np.array(lengths)
    return np.where(seen[:, :, None] & inside, e, 0).max(axis=(0, 1))


@pytest.mark.parametrize(("number", "is_open"), [(4, False), (5, True), (9, True), (10, False)])
def test_a_counted_number_opens_launches(emulated: MakeDevice, number: int, is_open: bool) -> None:
    """From 5 to 9, both included; only the two counters of the launch change."""
    device = emulated(any_tile=True)
    buffer, closed = device.allocate(16), Tile(Pairing.TWO_BLOCKS, 4, 3).closed_counter
    device.upload(buffer, np.array([number, closed, closed, 7], np.uint32), Stream.COMPUTE)
    parameters = packed(
        OPEN_COUNTERS, number=buffer.address, least=5, most=9, counters=buffer.address + 4, n_counters=2
    )
    device.launch(OPEN_COUNTERS_KERNEL, 1, 0, parameters, Stream.COMPUTE)
    found = np.empty(4, np.uint32)
    device.download(found, buffer, Stream.COMPUTE)
    assert found.tolist() == [number, *([0, 0] if is_open else [closed, closed]), 7]


@pytest.mark.parametrize("group", [4, 8, 16, 32])
def test_with_a_closed_counter_no_subject_is_scored(emulated: MakeDevice, group: int) -> None:
    """The numbers of subjects that are taken stay below 2**32 in all launches: each warp takes at most once."""
    tile = one(group, 2)
    assert 2**31 <= tile.closed_counter * (32 // group) < 2**32 - 2**20
    (query,), partition = protein_case(5, (12,))
    plan = InterTaskPlan((TunedTile(tile, 64, 1),))
    (found,) = kernel_results(
        emulated(any_tile=True), [sequence_profile(query, default_scheme(PROTEIN))], partition, plan, closed=True
    )
    assert (found == UNTOUCHED).all()


def related_subjects(rng: np.random.Generator, queries: Sequence[Codes], letters: int) -> Partition:
    """Return random subjects, and copies of the queries with deleted, inserted and alternating runs."""
    subjects = [random_codes(rng, int(length), letters) for length in (1, 2, 3, 4, 5, 16, 17, 31, 64, 90)]
    for query in queries:
        for least, most in ((1, 3), (4, 9), (2, 14)):
            parts, place = [], 0
            while place < len(query):
                taken = int(rng.integers(2, 14))
                parts.append(query[place : place + taken])
                place += taken + int(rng.integers(least, most) if rng.random() < 0.5 else 0)
                if rng.random() < 0.5:
                    parts.append(random_codes(rng, int(rng.integers(least, most)), letters))
            subjects.append(np.concatenate(parts))
        subjects.append(query)
    return Partition.pack(subjects)


def one(group: int, words: int) -> Tile:
    return Tile(Pairing.TWO_BLOCKS, group, words)


def two(group: int, words: int) -> Tile:
    return Tile(Pairing.TWO_QUERIES, group, words)


@pytest.mark.parametrize(
    ("architecture", "band", "gap", "shapes", "lengths"),
    [
        (90, 4, GapPenalty(11, 1), [one(4, 8)], (61,)),
        (90, 5, GapPenalty(11, 1), [one(4, 10)], (80,)),
        (90, 6, GapPenalty(5, 2), [one(8, 6)], (93,)),
        (90, 8, GapPenalty(14, 2), [one(4, 16)], (128,)),
        (90, 4, GapPenalty(3, 1), [one(4, 12), one(4, 4), one(8, 8)], (230,)),
        (86, 5, GapPenalty(9, 2), [one(8, 5), one(8, 10)], (200,)),
        (75, 5, GapPenalty(9, 2), [one(4, 10)], (75,)),
        (75, 8, GapPenalty(11, 1), [two(4, 8)], (20, 31)),
        (75, 6, GapPenalty(3, 1), [two(4, 6)], (20, 22)),
        (86, 4, GapPenalty(7, 0), [one(4, 8)], (64,)),
        (90, 5, GapPenalty(0, 2), [one(4, 5)], (33,)),
        (90, 4, GapPenalty(11, 1), [two(4, 8)], (9, 32)),
        (90, 5, GapPenalty(4, 1), [two(4, 10), two(8, 5)], (71, 80)),
        (90, 6, GapPenalty(11, 1), [two(4, 12), one(4, 6), one(4, 6)], (40, 130)),
        (90, 8, GapPenalty(11, 1), [two(8, 8), two(8, 8), one(8, 8)], (128, 200)),
        (86, 6, GapPenalty(11, 1), [two(8, 6), one(8, 6)], (45, 140)),
    ],
    ids=str,
)  # fmt: skip
def test_the_kernel_computes_the_bound(
    emulated: MakeDevice, architecture: int, band: int, gap: GapPenalty, shapes: list[Tile], lengths: tuple[int, ...]
) -> None:
    """Bit for bit, for related subjects, few letters and random tables; one strip or several, one query or two."""
    device = emulated(architecture=architecture, any_tile=True)
    for seed, letters in enumerate((20, 2)):
        rng = np.random.default_rng(seed)
        queries = [random_codes(rng, length, letters) for length in lengths]
        profiles = [sequence_profile(query, ScoringScheme(named_matrix("BLOSUM62"), gap)) for query in queries]
        if letters == 2:
            profiles[-1] = random_profile(rng, lengths[-1], 9, gap, -14, 7)
        partition = related_subjects(rng, queries, letters)
        plan = plan_of(shapes, gap, band)
        found = kernel_results(device, profiles, partition, plan)
        for query, profile in enumerate(profiles):
            expected = expected_results(profile, partition, plan, is_last=query + 1 == len(profiles))
            assert expected.max() < 2048
            np.testing.assert_array_equal(found[query], expected)


@pytest.mark.parametrize("pairing", [Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES])
@pytest.mark.parametrize("architecture", [75, 86, 90])
def test_rounded_values_remain_bounds(emulated: MakeDevice, architecture: int, pairing: Pairing) -> None:
    """Scores of up to 127 x 64 exceed the type: every result is at least what the largest exact score would give."""
    rng = np.random.default_rng(3)
    gap = GapPenalty(200, 50)
    scheme = ScoringScheme(match_mismatch(127, -100), gap)
    query = random_codes(rng, 64, 4)
    profiles = [sequence_profile(query, scheme)] * (2 if pairing is Pairing.TWO_QUERIES else 1)
    subjects = [query[:n] for n in range(10, 64, 3)] + [np.concatenate([query[:30], query[34:]]), query[::-1].copy()]
    partition = Partition.pack(subjects)
    tile = Tile(pairing, 4, 16 if pairing is Pairing.TWO_QUERIES else 8)
    plan = plan_of([tile], gap, 4)
    (block,) = ReferenceEngine().score(score_requests(profiles[:1]), partition)
    exact = np.empty(len(partition), np.int64)
    exact[np.argsort(partition.subject_index)] = block.score[np.argsort(block.subject_index)]
    certain = np.minimum(exact, 2047 - 127)
    for found in kernel_results(emulated(architecture=architecture, any_tile=True), profiles, partition, plan):
        assert (found >= certain - gap.open - 4 * gap.extend).all()
    assert (exact > 2047).sum() > 10


# --- Searches ---


@dataclass(frozen=True)
class Scored:
    """Queries with the reference engine's scores of all subjects."""

    profiles: Sequence[QueryProfile]
    partition: Partition
    scores: Sequence[ScoreBlock]

    @classmethod
    def of(cls, profiles: Sequence[QueryProfile], partition: Partition) -> Scored:
        return cls(profiles, partition, ReferenceEngine().score(score_requests(profiles), partition))

    def at_least(self, floor: int) -> list[ScoreBlock]:
        """Return the scores from a floor on."""
        return [block.at_least(floor) for block in self.scores]


@pytest.fixture(scope="module")
def scored_proteins() -> Scored:
    """A short query, one of a strip, and two of several."""
    queries, partition = protein_case(5, (7, 62, 300, 310))
    return Scored.of(profiles_of(queries, default_scheme(PROTEIN)), partition)


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize(("architecture", "pairs"), [(90, True), (90, False), (86, False), (75, False)])
def test_hits_with_a_bound_are_those_of_the_reference(
    emulated: MakeDevice, scored_proteins: Scored, band: int, architecture: int, pairs: bool
) -> None:
    """Floors from few subjects to all."""
    profiles, partition = scored_proteins.profiles, scored_proteins.partition
    best = int(scored_proteins.scores[2].score.max())
    device = emulated(architecture=architecture, any_tile=True)
    with CudaEngine(device, options=PlanOptions(pairs=pairs, band_rows=band)) as engine:
        for floor in (16, 40, best, best + 1, 5000):
            requests = score_requests(profiles, [floor] * len(profiles))
            assert_same(engine.score(requests, partition), scored_proteins.at_least(floor))
    inter_task = [dict(spec.constants) for spec in device.launched if spec.entry == "inter_task"]
    assert {constants["BAND"] for constants in inter_task} == {"0", str(band)}


@pytest.mark.parametrize("band", BANDS)
def test_both_strands_of_dna_share_words_of_a_bound(emulated: MakeDevice, band: int) -> None:
    """2/-3 with gaps of 5/2: bands of 4 and more rows would cost more than a gap of one residue."""
    rng = np.random.default_rng(3)
    query = random_codes(rng, 90, 4)
    query[::20] = DNA.code("N")
    subjects = [random_codes(rng, length, 16) for length in (3, 40, 64, 65, 200)]
    subjects += [np.concatenate([random_codes(rng, 30, 4), reverse_complement(query)[10:70]]), query, query[20:50]]
    partition = Partition.pack(subjects)
    scored = Scored.of(profiles_of([query, reverse_complement(query)], default_scheme(DNA)), partition)
    with CudaEngine(emulated(), options=PlanOptions(band_rows=band)) as engine:
        for floor in (24, 50):
            assert_same(engine.score(score_requests(scored.profiles, [floor] * 2), partition), scored.at_least(floor))


def test_scores_beyond_the_type_are_found_by_a_bound(emulated: MakeDevice) -> None:
    """Match 127: 20 matches exceed the fast type, 270 exceed 16 bits, and floors lie below and above both."""
    rng = np.random.default_rng(4)
    query = random_codes(rng, 270, 4)
    partition = Partition.pack([query[:14], query[:17], query[100:140], query, random_codes(rng, 50, 4)])
    scored = Scored.of(profiles_of([query], ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10))), partition)
    with CudaEngine(emulated(), options=PlanOptions(band_rows=5)) as engine:
        for floor in (1000, 1900, 2047, 2048, 2100, 32_000):
            assert_same(engine.score(score_requests(scored.profiles, [floor]), partition), scored.at_least(floor))


def test_a_bound_of_position_specific_scores(emulated: MakeDevice) -> None:
    rng = np.random.default_rng(8)
    (query,), partition = protein_case(6, (90,))
    profiles = [random_profile(rng, 90, 90, GapPenalty(11, 1), -9, 7)]
    profiles += profiles_of([query], default_scheme(PROTEIN))
    scored = Scored.of(profiles, partition)
    with CudaEngine(emulated(), options=PlanOptions(band_rows=5)) as engine:
        for floor in (20, 40):
            assert_same(engine.score(score_requests(profiles, [floor] * 2), partition), scored.at_least(floor))


@pytest.mark.parametrize("n_queries", [1, 2])
@pytest.mark.parametrize("shuffle", [None, 3])
def test_a_sample_decides_whether_the_bound_is_used(emulated: MakeDevice, n_queries: int, shuffle: int | None) -> None:
    """A floor that few of 300 random subjects reach, and one that most reach; every subject is in the sample."""
    rng = np.random.default_rng(11)
    queries = [random_codes(rng, 60 + number) for number in range(n_queries)]
    partition = Partition.pack([random_codes(rng, int(length)) for length in rng.integers(30, 90, 300)])
    scored = Scored.of(profiles_of(queries, default_scheme(PROTEIN)), partition)
    with CudaEngine(emulated(shuffle=shuffle), options=PlanOptions(bound_subjects=1)) as engine:
        for floor, is_bounded in ((45, True), (27, False), (45, True)):
            found = engine.score(score_requests(scored.profiles, [floor] * n_queries), partition)
            assert_same(found, scored.at_least(floor))
            assert [block.n_bounded > 250 for block in found] == [is_bounded] * n_queries
            assert [block.n_bounded > 0 for block in found] == [is_bounded] * n_queries


def test_a_sample_of_long_subjects_alone(emulated: MakeDevice) -> None:
    """No subject is as short as those of other samples."""
    rng = np.random.default_rng(13)
    partition = Partition.pack([random_codes(rng, int(length)) for length in rng.integers(400, 450, 30)])
    profiles = profiles_of([random_codes(rng, 70)], default_scheme(PROTEIN))
    with CudaEngine(emulated(), options=PlanOptions(bound_subjects=1)) as engine:
        (found,) = engine.score(score_requests(profiles, [50]), partition)
        assert_same([found], ReferenceEngine().score(score_requests(profiles, [50]), partition))
        assert found.n_bounded > 20


def test_long_subjects_alone_need_no_bound(emulated: MakeDevice) -> None:
    """Each subject would end last, so none is scored by the inter-task kernel, whose bound has nothing to decide."""
    rng = np.random.default_rng(15)
    query = random_codes(rng, 40)
    partition = Partition.pack([random_codes(rng, 1600), np.concatenate([random_codes(rng, 1700), query])])
    profiles = profiles_of([query], default_scheme(PROTEIN))
    with CudaEngine(emulated(), options=PlanOptions(band_rows=5)) as engine:
        (found,) = engine.score(score_requests(profiles, [50]), partition)
        assert engine.planner.plan([ScoreRequest(profiles[0], 50)], partition)[0].n_short == 0
    assert_same([found], ReferenceEngine().score(score_requests(profiles, [50]), partition))
    assert (len(found), found.n_bounded) == (1, 0)


def test_a_sample_of_a_streamed_database_is_taken_from_each_piece(emulated: MakeDevice) -> None:
    rng = np.random.default_rng(12)
    partition = Partition.pack([random_codes(rng, int(length)) for length in rng.integers(30, 90, 300)])
    queries = [random_codes(rng, length) for length in (70, 75)]
    scored = Scored.of(profiles_of(queries, default_scheme(PROTEIN)), partition)
    with CudaEngine(emulated(), device_bytes(partition) // 3, options=PlanOptions(bound_subjects=1)) as engine:
        for floor in (30, 45):
            found = engine.score(score_requests(scored.profiles, [floor] * 2), partition)
            assert_same(found, scored.at_least(floor))
        assert all(250 < block.n_bounded <= len(partition) for block in found)


# --- Plans ---


def test_a_band_without_tiles_is_refused() -> None:
    profile = sequence_profile(random_codes(np.random.default_rng(0), 100), default_scheme(PROTEIN))
    assert plan_inter_task([profile], 90, band=8).band == 8
    with pytest.raises(EngineError, match=r"no tile has bands of 7 rows; choose one of \[5, 6, 8\]"):
        plan_inter_task([profile], 90, band=7)


@pytest.mark.parametrize("architecture", [75, 80, 86, 90, 120])
@pytest.mark.parametrize("band", BANDS)
def test_every_band_has_tiles_that_fit_the_device(architecture: int, band: int) -> None:
    """The same limits of shared memory as for other tiles; a band lies within a lane."""
    assert band in available_bands(architecture)
    for pairing in (Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES):
        for shape in tiles(architecture, pairing, band):
            assert shape.tile.words % band == 0
            assert shape.tile.shared_bytes() <= (64 if architecture == 75 else 99) * 1024
            assert min(shape.alone, shape.edges) > 0


def test_a_query_takes_the_bands_that_are_the_fastest_with_what_passes() -> None:
    """144 rows suit words of 6; with limits of 37, those of a sensitive search, too many subjects pass wide bands."""

    def band(limit: float, *lengths: int) -> int:
        profiles = profiles_of([random_codes(np.random.default_rng(0), n) for n in lengths], default_scheme(PROTEIN))
        return plan_inter_task_bound(profiles, [limit] * len(profiles), plan_inter_task(profiles, 90), 90).band

    assert [band(52, n) for n in (144, 189, 567, 1500)] == [6, 8, 6, 5]
    assert [band(80, n) for n in (144, 189, 375, 1500)] == [6, 8, 8, 8]
    assert [band(37, n) for n in (189, 464, 1500)] == [8, 5, 5]
    assert [band(52, n, n) for n in (144, 189, 350, 1000)] == [6, 8, 5, 5]


def test_the_plan_names_the_bound(emulated: MakeDevice) -> None:
    queries, partition = protein_case(5, (62,))
    requests = [ScoreRequest(profile, 40) for profile in profiles_of(queries, default_scheme(PROTEIN))]
    for band, kind in ((5, "bound, bands of 5 rows"), (0, "11 bits, exact"), (None, "11 bits, exact")):
        with CudaEngine(emulated(), options=PlanOptions(band_rows=band)) as engine:
            lines = engine.explain(requests, partition)
        assert any(kind in line for line in lines)

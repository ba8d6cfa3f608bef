"""The complete CUDA engine, with its kernels, on the emulated device. Expected scores: the reference engine's."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import OutOfDeviceMemory
from swsearch.engine.cuda.search.engine import IN_FLIGHT, CudaEngine
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.cuda.search.subjects import SubjectStore, device_bytes
from swsearch.engine.protocol import ScoreEngine, ScoreRequest, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.errors import EngineError
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, N_CODES, PAD_CODE, PROTEIN, SOFT_MASK_BIT, reverse_complement
from swsearch.typing import Codes, Lengths, Scores
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice, MakeDevice
from tests.support import random_codes


def assert_same(found: Sequence[ScoreBlock], wanted: Sequence[ScoreBlock]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.subject_index, other.subject_index)
        np.testing.assert_array_equal(one.score, other.score)


def assert_exact(
    engine: ScoreEngine, profiles: Sequence[QueryProfile], partition: Partition, floors: Sequence[int] | None = None
) -> None:
    """The engine returns what the reference engine returns."""
    requests = score_requests(profiles, floors)
    assert_same(engine.score(requests, partition), ReferenceEngine().score(requests, partition))


def profiles_of(queries: Sequence[Codes], scheme: ScoringScheme) -> list[QueryProfile]:
    return [sequence_profile(query, scheme) for query in queries]


def protein_case(seed: int, lengths: Sequence[int]) -> tuple[list[Codes], Partition]:
    """Queries of the given lengths, and subjects that are random, short, related, soft-masked or have rare letters."""
    rng = np.random.default_rng(seed)
    queries = [random_codes(rng, length) for length in lengths]
    subjects = [random_codes(rng, length, 27) for length in [1, 2, 3, 4, 15, 16, 17, 33, *rng.integers(5, 70, 9)]]
    for query in queries:
        related = query.copy()
        related[::7] = 3
        subjects += [query[5:60], np.concatenate([related[:40], related[60:90]]) | SOFT_MASK_BIT]
    return queries, Partition.pack(subjects)


@pytest.mark.parametrize("architecture", [75, 86, 90])
def test_scores_are_those_of_the_reference(emulated: MakeDevice, architecture: int) -> None:
    """Ampere's half-precision maxima and Hopper's integer maxima; one strip or several; two queries per word or one."""
    queries, partition = protein_case(1, (1, 61, 64, 250))
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    wanted = ReferenceEngine().score(score_requests(profiles), partition)
    for pairs in (True, False) if architecture == 90 else (False,):
        with CudaEngine(emulated(architecture=architecture), options=PlanOptions(pairs=pairs)) as engine:
            assert isinstance(engine, ScoreEngine)
            assert_same(engine.score(score_requests(profiles), partition), wanted)


@pytest.mark.parametrize("gap", [GapPenalty(0, 2), GapPenalty(13, 2), GapPenalty(2100, 5)], ids=str)
def test_gap_costs_are_exact(emulated: MakeDevice, gap: GapPenalty) -> None:
    """Linear, affine, and costs beyond exact addition in the fast type (then 16 bits from the start)."""
    queries, partition = protein_case(2, (70,))
    profiles = profiles_of(queries, ScoringScheme(named_matrix("BLOSUM50"), gap))
    with CudaEngine(emulated()) as engine:
        assert_exact(engine, profiles, partition)


def test_position_specific_scores_are_those_of_the_reference(emulated: MakeDevice) -> None:
    """A table row for each of 90 positions, as in a PSSM, beside a plain query; every other subject is selected."""
    rng = np.random.default_rng(8)
    (query,), partition = protein_case(6, (90,))
    table = rng.integers(-9, 8, size=(90, N_CODES)).astype(np.int8)
    table[:, PAD_CODE] = -128
    gap = GapPenalty(11, 1)
    profiles = [QueryProfile(rng.permutation(90).astype(np.int32), table, gap)]
    profiles += profiles_of([query], ScoringScheme(named_matrix("BLOSUM62"), gap))
    partition = partition[np.arange(0, len(partition), 2)]
    with CudaEngine(emulated()) as engine:
        assert_exact(engine, profiles, partition)


def test_both_strands_of_dna_share_words(emulated: MakeDevice) -> None:
    rng = np.random.default_rng(3)
    query = random_codes(rng, 90, 4)
    query[::20] = DNA.code("N")
    subjects = [random_codes(rng, length, 16) for length in (3, 40, 64, 65)]
    subjects += [np.concatenate([random_codes(rng, 30, 4), reverse_complement(query)[10:70]]), query]
    partition = Partition.pack(subjects)
    profiles = profiles_of([query, reverse_complement(query)], default_scheme(DNA))
    device = emulated()
    with CudaEngine(device) as engine:
        assert_exact(engine, profiles, partition)
    assert sum(entry == "inter_task" for entry, _ in device.launches) <= 2  # strips of one batch, not of two


def test_scores_beyond_each_type_are_scored_again_exactly(emulated: MakeDevice) -> None:
    """Match 127: 20 matches exceed the fast type, 270 exceed 16 bits. Self-scores are 127 per residue."""
    rng = np.random.default_rng(4)
    query = random_codes(rng, 270, 4)
    partition = Partition.pack([query[:16], query[:17], query[100:140], query, random_codes(rng, 50, 4)])
    profiles = profiles_of([query], ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10)))
    with CudaEngine(emulated()) as engine:
        (block,) = engine.score(score_requests(profiles), partition)
        (above,) = engine.score(score_requests(profiles, [2100]), partition)
    assert_same([block], ReferenceEngine().score(score_requests(profiles), partition))
    assert block.score[-1] == 270 * 127
    assert block.n_rescored == int((block.score > 2047).sum()) >= 3
    assert_same([above], ReferenceEngine().score(score_requests(profiles, [2100]), partition))


def test_floors_return_the_subjects_that_reach_them_and_no_other(emulated: MakeDevice) -> None:
    """From all subjects to none."""
    queries, partition = protein_case(5, (62, 300))
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    scores = [block.score for block in ReferenceEngine().score(score_requests(profiles), partition)]
    with CudaEngine(emulated()) as engine:
        for floor in (1, 16, 40, int(scores[1].max()), int(scores[1].max()) + 1, 5000):
            floors = [floor, floor]
            assert_exact(engine, profiles, partition, floors)


@pytest.mark.parametrize("n_downloaded", [1 << 14, 5], ids=["all downloaded", "few downloaded"])
@pytest.mark.parametrize(("top", "bound"), [(3, 30), (3, 10_000), (3, 1), (30, 1)])
def test_a_rule_brings_back_the_best_and_counts_the_others(
    emulated: MakeDevice, top: int, bound: int, n_downloaded: int
) -> None:
    """The rule receives at least ``top`` of the best scores with their lengths, and its bound is applied.

    Expected: the reference engine's scores of at least the bound, and the number of others that reach the floor.
    """
    queries, partition = protein_case(12, (62,))
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    (wanted,) = ReferenceEngine().score(score_requests(profiles), partition)
    length_of = dict(zip(partition.subject_index.tolist(), partition.lengths.tolist(), strict=True))
    shown: list[tuple[int, int]] = []

    class Rule:
        def __init__(self) -> None:
            self.top = top

        def lowest(self, scores: Scores, lengths: Lengths) -> int:
            shown.extend(zip(scores.tolist(), lengths.tolist(), strict=True))
            return bound

    with CudaEngine(emulated(), options=PlanOptions(downloaded=n_downloaded)) as engine:
        (block,) = engine.score([ScoreRequest(profiles[0], 2, Rule())], partition)
    n_reaching = int((wanted.score >= 2).sum())
    if n_reaching <= top:
        bound = 2
        assert not shown
    else:
        nth = sorted(wanted.score.tolist())[-top]
        rows = wanted.at_least(nth)
        lengths = [length_of[index] for index in rows.subject_index.tolist()]
        assert sorted(shown) == sorted(zip(rows.score.tolist(), lengths, strict=True))
    passing = wanted.at_least(max(bound, 2))
    assert_same([block], [passing])
    assert block.n_left_out == n_reaching - len(passing)


def test_long_subjects_get_a_warp_and_all_strips_of_a_long_query(emulated: MakeDevice) -> None:
    rng = np.random.default_rng(6)
    query = random_codes(rng, 530)
    subjects = [random_codes(rng, 1501), np.concatenate([random_codes(rng, 1400), query]), random_codes(rng, 30), query]
    partition = Partition.pack(subjects)
    profiles = profiles_of([query], default_scheme(PROTEIN))
    device = emulated()
    with CudaEngine(device) as engine:
        assert_exact(engine, profiles, partition)
        assert "intra_task" in [entry for entry, _ in device.launches]
        assert_exact(engine, profiles, partition, [100])


def test_the_warps_of_a_block_keep_their_order(emulated: MakeDevice) -> None:
    """A subject's strips are scored concurrently: one warp per strip, or two warps for three strips, in both orders.

    With match 127 every related subject exceeds the fast type and is scored by a block; 600 rows are three strips, of
    which two fit into 40 KB of shared memory.
    """
    rng = np.random.default_rng(12)
    scheme = ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10))
    query = random_codes(rng, 600, 4)
    changed = query.copy()
    changed[::41] = (changed[::41] + 1) % 4
    partition = Partition.pack([query[40:], np.concatenate([changed[:300], changed[309:]]), changed[:60]])
    profiles = profiles_of([query], scheme)
    wanted = ReferenceEngine().score(score_requests(profiles), partition)
    for shared_bytes, reversed_order in itertools.product((227 * 1024, 40 * 1024), (False, True)):
        with CudaEngine(emulated(shared_bytes=shared_bytes, reversed_order=reversed_order)) as engine:
            assert_same(engine.score(score_requests(profiles), partition), wanted)


def test_the_order_of_threads_changes_nothing(emulated: MakeDevice) -> None:
    queries, partition = protein_case(7, (61, 250))
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    wanted = ReferenceEngine().score(score_requests(profiles), partition)
    with CudaEngine(emulated(reversed_order=True, multiprocessors=3), options=PlanOptions(pairs=False)) as engine:
        assert_same(engine.score(score_requests(profiles), partition), wanted)


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_completion_gives_the_same_blocks(emulated: MakeDevice, seed: int) -> None:
    """More batches than are in flight, with and without floors, in the order in which the device happens to end them.

    The longest subjects are cut into windows, those that pass the bound are listed, and few scores are downloaded
    with their number.
    """
    queries, partition = protein_case(13, (20, 90, 33, 64, 61, 40, 250, 35))
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    floors = [30 + 5 * number for number in range(len(profiles))]
    options = PlanOptions(long_residues=60, window_residues=60, downloaded=3, bound_subjects=1)
    device = emulated(shuffle=seed)
    assert len(profiles) // 2 > IN_FLIGHT
    with CudaEngine(device, options=options) as engine:
        assert_exact(engine, profiles, partition, floors)
        assert_exact(engine, profiles, partition)
    assert {"inter_task", "intra_task"} <= {entry for entry, _ in device.launches}


def test_partitions_are_kept_while_they_fit(emulated: MakeDevice) -> None:
    queries, partition = protein_case(8, (61,))
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    device = emulated()
    with CudaEngine(device, memory_limit=1 << 20) as engine:
        engine.score(score_requests(profiles), partition)
        used = device.used_bytes
        assert_exact(engine, profiles, partition)
        assert device.used_bytes == used
    assert device.used_bytes == 0


def kept_in_pieces(emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch, piece_bytes: int) -> CudaEngine:
    """An engine that keeps small databases, in pieces of this size."""
    monkeypatch.setattr("swsearch.engine.cuda.search.subjects.SMALLEST_PIECE", 100)
    device = emulated()
    monkeypatch.setattr("swsearch.engine.cuda.search.engine.PIECE_SHARE", piece_bytes / device.free_bytes())
    return CudaEngine(device, options=PlanOptions(pairs=False))


@pytest.mark.parametrize("staged", [False, True])
def test_a_database_that_is_kept_in_pieces_gives_the_same_blocks(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch, staged: bool
) -> None:
    """The complete partition, then its first subjects, which are those of some of its pieces, then another one."""
    if staged:
        for name, n_bytes in (("LEAST_STAGED", 1), ("STAGED_BYTES", 64), ("COPIED_BYTES", 16)):
            monkeypatch.setattr(f"swsearch.engine.cuda.search.subjects.{name}", n_bytes)
    rng = np.random.default_rng(9)
    queries = [random_codes(rng, length) for length in (35, 30)]
    subjects = [random_codes(rng, int(length)) for length in rng.integers(1, 30, 40)]
    partition = Partition.pack([*subjects, *(query[:28] for query in queries)])
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    with kept_in_pieces(emulated, monkeypatch, 300) as engine:
        device = engine.device
        assert isinstance(device, EmulatedDevice)
        assert engine.store.n_pieces(partition, 65) == 1  # it is not streamed
        for floors in (None, [20, 40]):
            assert_exact(engine, profiles, partition, floors)
        used, n_launches = device.used_bytes, len(device.launches)
        assert engine.store.kept_bytes == device_bytes(partition)
        for few in (partition[:5], partition[:23], partition):
            assert_exact(engine, profiles, few, [20, 40])
        assert (device.used_bytes, engine.store.kept_bytes) == (used, device_bytes(partition))
        assert len(device.launches) > n_launches + 6  # several pieces
        other = Partition.pack(subjects[::-1])
        assert_exact(engine, profiles, other)
        assert engine.store.kept_bytes == device_bytes(partition) + device_bytes(other)
    assert device.used_bytes == 0


@pytest.mark.parametrize(("piece_bytes", "n_pinned"), [(1 << 20, 2), (400, 0)])
def test_small_pieces_of_a_large_database_are_uploaded_by_the_driver(
    monkeypatch: pytest.MonkeyPatch, piece_bytes: int, n_pinned: int
) -> None:
    """All residues together are as many as those of an array that threads copy to two parts of pinned memory."""
    pinned: list[int] = []

    class Noting(EmulatedDevice):
        def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
            pinned.append(n_bytes)
            return super().pinned(n_bytes)

    _, partition = protein_case(8, (61,))
    first, last = partition.residue_span
    for name, n_bytes in (("LEAST_STAGED", last - first), ("STAGED_BYTES", 64), ("SMALLEST_PIECE", 1)):
        monkeypatch.setattr(f"swsearch.engine.cuda.search.subjects.{name}", n_bytes)
    store = SubjectStore(Noting(), 1 << 20, piece_bytes)
    store.preload(partition)
    assert pinned == [64] * n_pinned


def test_selections_of_as_many_subjects_are_kept_side_by_side(emulated: MakeDevice) -> None:
    """All but one subject, which is another one each time; first and last subject are the same."""
    queries, partition = protein_case(8, (61,))
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    rows = np.arange(len(partition))
    selections = [partition[np.delete(rows, left_out)] for left_out in (3, 5, 3)]
    with CudaEngine(emulated()) as engine:
        for selection in [*selections, *selections]:
            assert_exact(engine, profiles, selection)


def test_of_two_partitions_that_begin_alike_the_longer_one_is_used(emulated: MakeDevice) -> None:
    """The shorter one was uploaded first, and makes room first. Indices that are computed again are the same."""
    _, whole = protein_case(8, (61,))
    _, other = protein_case(9, (61,))
    few = whole[:3]
    store = SubjectStore(emulated(), device_bytes(whole) + max(device_bytes(few), device_bytes(other)))
    again = replace(few, subject_index=few.subject_index.copy())
    for partition in (few, whole, again):
        store.preload(partition)
    assert store.kept_bytes == device_bytes(whole) + device_bytes(few)
    store.preload(other)
    assert store.kept_bytes == device_bytes(whole) + device_bytes(other)


@pytest.mark.parametrize("n_slots", [1, 2])
def test_a_streamed_database_gives_the_same_blocks(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch, n_slots: int
) -> None:
    """The smallest piece is reduced from a megabyte, so that a small database has many; with and without floors."""
    monkeypatch.setattr("swsearch.engine.cuda.search.subjects.SMALLEST_PIECE", 400)
    monkeypatch.setattr("swsearch.engine.cuda.search.subjects.ONE_SLOT_RESIDUES", 0 if n_slots == 1 else 1000)
    rng = np.random.default_rng(9)
    queries = [random_codes(rng, length) for length in (35, 30)]
    subjects = [random_codes(rng, int(length)) for length in rng.integers(1, 30, 40)]
    partition = Partition.pack([*subjects, *(query[:28] for query in queries)])
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    cells: list[int] = []
    device = emulated()
    with CudaEngine(device, memory_limit=480 * n_slots, options=PlanOptions(pairs=False)) as engine:
        n_pieces = engine.store.n_pieces(partition, 65)
        assert n_pieces >= 4
        found = engine.score(score_requests(profiles), partition, cells.append)
        assert_same(found, ReferenceEngine().score(score_requests(profiles), partition))
        assert len(cells) == n_pieces * 2
        assert_exact(engine, profiles, partition, [20, 40])
        few = partition[:5]  # fits, so the slots are freed
        assert_exact(engine, profiles[:1], few)
    assert sum(cells) == partition.n_residues * sum(profile.length for profile in profiles)
    assert device.used_bytes == 0


def test_a_full_device_gets_smaller_pieces(emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsearch.engine.cuda.search.subjects.SMALLEST_PIECE", 256)
    queries, partition = protein_case(10, (250,))
    profiles = profiles_of(queries, default_scheme(PROTEIN))
    roomy = emulated()
    with CudaEngine(roomy) as engine:
        wanted = engine.score(score_requests(profiles), partition)
    device = emulated(memory_bytes=roomy.peak_bytes - 40_000)
    with CudaEngine(device, memory_limit=device_bytes(partition)) as engine:
        assert_same(engine.score(score_requests(profiles), partition), wanted)
    assert len(device.launches) > len(roomy.launches)
    with CudaEngine(emulated(memory_bytes=3000)) as engine, pytest.raises(OutOfDeviceMemory, match="out of memory"):
        engine.score(score_requests(profiles), partition)


def test_an_empty_partition_gives_empty_blocks(emulated: MakeDevice) -> None:
    profiles = profiles_of([random_codes(np.random.default_rng(0), 10)], default_scheme(PROTEIN))
    with CudaEngine(emulated()) as engine:
        (block,) = engine.score(score_requests(profiles), Partition.pack([]))
    assert len(block) == 0


def test_a_byte_that_is_no_residue_stays_inside_shared_memory(emulated: MakeDevice) -> None:
    """Codes 27 to 30 are not letters, but a damaged database may contain them. Their scores are arbitrary."""
    rng = np.random.default_rng(11)
    damaged = Partition.pack([np.full(40, code, dtype=np.uint8) for code in (27, 28, 29, 30)])
    profiles = profiles_of([random_codes(rng, 61)], default_scheme(PROTEIN))
    with CudaEngine(emulated()) as engine:
        assert len(engine.score(score_requests(profiles), damaged)[0]) == 4


def test_shared_memory_beyond_the_device_is_refused(emulated: MakeDevice) -> None:
    """The emulation makes the same check as a GPU; without it, a tile that is too large would not be detected."""
    device = emulated()
    from swsearch.engine.cuda.runtime.device import Stream
    from swsearch.engine.cuda.runtime.kernels import COLLECT_KERNEL
    from swsearch.engine.cuda.runtime.parameters import COLLECT

    with pytest.raises(EngineError, match="shared memory"):
        device.launch(COLLECT_KERNEL, 1, 1 << 20, np.zeros((), COLLECT)[()], Stream.COMPUTE)

"""Windows of long subjects that prove themselves where they meet, on the emulated device.

The expected scores are the reference engine's; which joints cannot be proven follows from what was put across them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from emulated_device import EmulatedDevice
from sequences import partition_of, random_codes

from swsearch.database.partition import Partition
from swsearch.engine.cuda.device import OutOfDeviceMemory
from swsearch.engine.cuda.engine import CudaEngine
from swsearch.engine.cuda.joined_windows import JoinedWindows, Size, cut_in_windows
from swsearch.engine.reference import ReferenceEngine
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.matrix import match_mismatch
from swsearch.scoring.scheme import ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.typing import Codes

MakeDevice = Callable[..., EmulatedDevice]
OVERLAP = 128
STRIDE = 256
SLOTS = 24
"""Windows that the emulated device works on at a time, a block each: so many that strides are the least."""
BLOSUM62 = default_scheme(PROTEIN)


def joined_windows(engine: CudaEngine, overlap: int = OVERLAP, stride: int = STRIDE) -> JoinedWindows:
    return JoinedWindows(engine._device, engine._store, engine._scratch, engine._lists, engine.timing, overlap, stride)


def assert_as_reference(joined: JoinedWindows, profile: QueryProfile, partition: Partition, first: int = 0) -> None:
    block = joined.score(profile, partition, first)
    (wanted,) = ReferenceEngine().score([profile], partition[first:])
    np.testing.assert_array_equal(block.subject_index, wanted.subject_index)
    np.testing.assert_array_equal(block.score, wanted.score)


def with_inserted(subject: Codes, place: int, piece: Codes) -> Codes:
    return np.concatenate([subject[:place], piece, subject[place + len(piece) :]])


def test_windows_of_two_subjects() -> None:
    """By hand: 600 columns in strides of 256 are windows of 256, 128 + 256 and 128 + 88; 256 columns are one."""
    starts, lengths = np.array([32, 1_600], np.uint64), np.array([600, 256], np.uint32)
    windows = cut_in_windows(starts, lengths, Size(OVERLAP, STRIDE))
    assert windows.starts.tolist() == [32, 32 + 128, 32 + 384, 1_600]
    assert windows.lengths.tolist() == [256, 384, 216, 256]
    assert windows.entries.tolist() == [0, 128, 128, 0]
    assert windows.exits.tolist() == [256, 384, 0, 0]
    assert windows.first.tolist() == [0, 3]


@pytest.mark.parametrize("length", [3, 120, 700])
def test_unrelated_sequences_are_proven_at_once(emulated: MakeDevice, length: int) -> None:
    """Strips of two, and several, words; one of the subjects shorter than a stride, one a multiple of it."""
    rng = np.random.default_rng(length)
    partition = partition_of([random_codes(rng, n) for n in (100, 1_024, 1_500)])
    device = emulated(multiprocessors=SLOTS)
    with CudaEngine(device) as engine:
        joined = joined_windows(engine, 384, 512)
        profile = sequence_profile(random_codes(rng, length), BLOSUM62)
        assert joined._sizes(profile, partition[1:])[0] == Size(384, 512)
        assert_as_reference(joined, profile, partition, 1)
        assert joined.n_again == 0
    assert [entry for entry, _ in device.launches] == ["score_windows", "compare_joints"]


def test_an_alignment_that_reaches_across_joints_is_found(emulated: MakeDevice) -> None:
    """The query lies across a joint, and no window of the first size holds it whole: longer ones are taken."""
    rng = np.random.default_rng(2)
    query = random_codes(rng, 340)
    related = with_inserted(random_codes(rng, 1_600), 600, query)
    profile = sequence_profile(query, BLOSUM62)
    windows = cut_in_windows(np.array([0], np.uint64), np.array([len(related)], np.uint32), Size(OVERLAP, STRIDE))
    parts = [related[start : start + n] for start, n in zip(windows.starts, windows.lengths.tolist(), strict=True)]
    in_parts, whole = (ReferenceEngine().score([profile], partition_of(p))[0].score.max() for p in (parts, [related]))
    assert in_parts < whole
    device = emulated(multiprocessors=SLOTS)
    with CudaEngine(device) as engine:
        joined = joined_windows(engine)
        assert_as_reference(joined, profile, partition_of([related]))
        assert joined.n_again == 1
    assert [entry for entry, _ in device.launches].count("compare_joints") == 2


def test_what_no_window_proves_is_scored_whole(emulated: MakeDevice) -> None:
    """One letter over and over: scores grow for 300 columns, more than windows overlap by even the second time."""
    query = np.full(300, 5, dtype=np.uint8)
    partition = partition_of([np.full(1_500, 5, dtype=np.uint8)])
    device = emulated(multiprocessors=SLOTS)
    with CudaEngine(device) as engine:
        joined = joined_windows(engine, 32, 64)
        assert_as_reference(joined, sequence_profile(query, BLOSUM62), partition)
        assert joined.n_again == 2
    assert [entry for entry, _ in device.launches][-1] == "score_list"


def test_scores_leave_the_types_one_after_another(emulated: MakeDevice) -> None:
    """Match 127: 17 matches leave the fast type, 259 leave 16 bits; lying across a joint or within a window."""
    rng = np.random.default_rng(4)
    query = random_codes(rng, 270, 4)
    subjects = [with_inserted(random_codes(rng, 1_500, 4), 600, query[:n]) for n in (10, 40, 100, 200, 270)]
    profile = sequence_profile(query, ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10)))
    partition = partition_of([*subjects, with_inserted(random_codes(rng, 1_500, 4), 300, query[:150])])
    with CudaEngine(emulated(multiprocessors=SLOTS)) as engine:
        joined = joined_windows(engine)
        assert_as_reference(joined, profile, partition)
        block = joined.score(profile, partition, 0)
    assert block.n_rescored == int((block.score > 2047).sum()) > 0
    assert block.score.max() > 32_767


@pytest.mark.parametrize("reversed_order", [False, True])
def test_two_letters_give_joints_of_every_kind(emulated: MakeDevice, reversed_order: bool) -> None:
    """Of two letters alignments are long: some joints are proven and some are not, and every score is right."""
    rng = np.random.default_rng(5)
    scheme = ScoringScheme(match_mismatch(2, -3), GapPenalty(5, 2))
    n_again = []
    with CudaEngine(emulated(multiprocessors=SLOTS, reversed_order=reversed_order)) as engine:
        for _ in range(6):
            joined = joined_windows(engine, 48, 64)
            partition = partition_of([random_codes(rng, int(n), 2) for n in rng.integers(1, 900, 8)])
            assert_as_reference(joined, sequence_profile(random_codes(rng, 90, 2), scheme), partition)
            n_again.append(joined.n_again)
    assert sum(n_again) > 0
    assert min(n_again) < 8


@pytest.mark.parametrize("gap", [GapPenalty(5, 0), GapPenalty(0, 3), GapPenalty(2_100, 5)], ids=str)
def test_gap_costs_are_exact(emulated: MakeDevice, gap: GapPenalty) -> None:
    """Free to extend, so that an alignment may span anything; linear; and more than the fast type adds exactly."""
    rng = np.random.default_rng(6)
    query = random_codes(rng, 150, 4)
    spread = with_inserted(with_inserted(random_codes(rng, 1_800, 4), 200, query[:75]), 1_500, query[75:])
    profile = sequence_profile(query, ScoringScheme(match_mismatch(2, -3), gap))
    with CudaEngine(emulated(multiprocessors=SLOTS)) as engine:
        assert_as_reference(joined_windows(engine), profile, partition_of([random_codes(rng, 900, 4), spread]))


def test_no_more_windows_than_are_worked_on_at_a_time(emulated: MakeDevice) -> None:
    """By hand: a warp each, three a block, are 30 at a time; of these three subjects take 27 for strides of 370."""
    profile = sequence_profile(random_codes(np.random.default_rng(9), 100), BLOSUM62)
    partition = partition_of([np.zeros(n, np.uint8) for n in (3_000, 3_300, 3_700)])
    with CudaEngine(emulated(multiprocessors=10)) as engine:
        size = joined_windows(engine)._sizes(profile, partition)[0]
        assert size == Size(OVERLAP, 384)
        assert len(cut_in_windows(partition.starts, partition.lengths, size)) <= 30


def test_little_memory_takes_the_subjects_in_pieces(emulated: MakeDevice) -> None:
    """Half of the database fits, then not even that; the smallest device says so."""
    rng = np.random.default_rng(7)
    profile = sequence_profile(random_codes(rng, 100, 4), default_scheme(DNA))
    partition = partition_of([random_codes(rng, n, 4) for n in (700, 900, 1_100, 1_300)])
    with CudaEngine(emulated(multiprocessors=SLOTS), memory_limit=2_600) as engine:
        assert_as_reference(joined_windows(engine), profile, partition, 1)
    large = partition_of([np.tile(random_codes(rng, 4_000, 4), 400)])
    with CudaEngine(emulated(multiprocessors=SLOTS, memory_bytes=1 << 20)) as engine, pytest.raises(OutOfDeviceMemory):
        joined_windows(engine).score(profile, large, 0)

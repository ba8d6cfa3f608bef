"""Verified windows of long subjects, on the emulated device.

The expected scores are the reference engine's. Segments of the query across a checkpoint make it unprovable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Device, OutOfDeviceMemory
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.plan import ListedRoute, Thresholds
from swsearch.engine.cuda.search.windows import EXTENSION, Size, Windows, cut_in_windows
from swsearch.engine.protocol import ScoreRequest
from swsearch.engine.reference import ReferenceEngine
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.typing import Codes, Lengths, Scores
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice
from tests.full_matrix import local_end
from tests.support import random_codes

MakeDevice = Callable[..., EmulatedDevice]

OVERLAP = 128
STRIDE = 256
SLOTS = 24
"""Windows that the emulated device scores at a time, one per block: enough to make strides minimal."""
BLOSUM62 = default_scheme(PROTEIN)


def windowed(
    device: Device, overlap: int = OVERLAP, stride: int = STRIDE, min_length: int = 0, **options: Any
) -> CudaEngine:
    """Return an engine that scores subjects of more than ``min_length`` residues in windows of this size."""
    thresholds = Thresholds(window_overlap=overlap, window_stride=stride, windowed_residues=min_length, located_cells=0)
    return CudaEngine(device, thresholds=thresholds, **options)


def assert_as_reference(engine: CudaEngine, profile: QueryProfile, partition: Partition) -> ScoreBlock:
    """Compare a search with that of the reference engine, and return its scores."""
    (block,) = engine.score([profile], partition)
    (wanted,) = ReferenceEngine().score([profile], partition)
    np.testing.assert_array_equal(block.subject_index, wanted.subject_index)
    np.testing.assert_array_equal(block.score, wanted.score)
    for index, score in zip(block.subject_index.tolist(), block.score.tolist(), strict=True):
        if score and index in block.within:
            codes = partition.codes(int(np.flatnonzero(partition.subject_index == index)[0]))
            begin, n_columns = block.within[index]
            assert begin % 16 == 0
            in_range = codes[begin : begin + n_columns]
            assert len(in_range) == n_columns
            assert begin + first_end(profile, in_range, score) == first_end(profile, codes, score)
    return block


def first_end(profile: QueryProfile, codes: Codes, score: int) -> int:
    """The first column that ends an alignment of this score, which is the best one."""
    best, _, column = local_end(profile, codes)
    assert best == score
    return column


class BestThree:
    """Request the three best scores of a query and all that equal the third."""

    top = 3

    def lowest(self, scores: Scores, lengths: Lengths) -> int:
        return int(np.sort(scores)[-3])


def windows_route(engine: CudaEngine, profile: QueryProfile, partition: Partition) -> ListedRoute:
    (batch,) = engine.plan([ScoreRequest(profile)], partition).batches
    route = batch.queries[0].windows
    assert route is not None
    return route


def window_launches(device: EmulatedDevice) -> list[str]:
    return [entry for entry, _ in device.launches if entry in {"score_windows", "compare_checkpoints"}]


def with_inserted(subject: Codes, place: int, piece: Codes) -> Codes:
    return np.concatenate([subject[:place], piece, subject[place + len(piece) :]])


def test_windows_of_two_subjects() -> None:
    """By hand: 600 columns are 128 + 256 columns from 0 and the rest from 256; 256 columns are one window."""
    windows = cut_in_windows(np.array([600, 256], np.uint32), Size(OVERLAP, STRIDE))
    assert windows.subject.tolist() == [0, 0, 1]
    assert windows.checkpoint.tolist() == [0, 384, 0]
    assert windows.begin.tolist() == [0, 256, 0]
    assert windows.end.tolist() == [384, 600, 256]
    assert windows.warmup_columns.tolist() == [0, 128, 0]
    assert windows.n_columns(64).tolist() == [384, 416, 320]
    assert windows.n_columns(0).tolist() == [384, 352, 256]
    assert cut_in_windows(np.array([450], np.uint32), Size(OVERLAP, STRIDE)).n_columns(0).tolist() == [
        384,
        128 + EXTENSION,
    ]
    assert windows.first.tolist() == [0, 2]


def test_unproven_windows_begin_earlier() -> None:
    """By hand: windows start up to 512 columns before their checkpoints; too much work gives a subject no windows."""
    lengths = np.array([2_000, 2_000], np.uint32)
    windows = cut_in_windows(lengths, Size(OVERLAP, STRIDE))
    assert windows.first.tolist() == [0, 8]
    again = np.zeros(16, dtype=bool)
    again[[1, 4]] = True
    assert not windows.begin_earlier(again, np.array([512, 512]), lengths).any()
    assert windows.begin[[1, 4]].tolist() == [0, 640]
    assert windows.warmup_columns[[1, 4, 5]].tolist() == [0, 512, OVERLAP]
    assert windows.n_columns(64)[[1, 4]].tolist() == [640, 768]
    again[:] = False
    again[9:12] = True  # 640, 768 and 768 columns
    assert windows.begin_earlier(again, np.array([512, 512]), lengths).tolist() == [False, True]
    assert not windows.warmup_columns[8:].any()
    assert windows.warmup_columns[4] == 512


def test_windows_behind_an_unproven_checkpoint() -> None:
    """By hand: checkpoints lie 256 columns apart, so 600 columns behind the unproven one hold two more."""
    windows = cut_in_windows(np.array([2_000, 2_000], np.uint32), Size(OVERLAP, STRIDE))
    unproven = np.zeros(16, dtype=bool)
    unproven[[2, 14]] = True
    assert np.flatnonzero(windows.after(unproven, np.array([600, 600]))).tolist() == [2, 3, 4, 14, 15]
    assert np.flatnonzero(windows.after(unproven, np.array([0, 255]))).tolist() == [2, 14]


@pytest.mark.parametrize("length", [3, 120, 700, 1_100])
def test_unrelated_sequences_are_proven_at_once(emulated: MakeDevice, length: int) -> None:
    """Strips of two and of more words, and several strips; subject lengths that are multiples of a stride and others.

    With 1,300 columns the last checkpoint lies beyond the subject's end, which the last strip has not reached yet.
    """
    rng = np.random.default_rng(length)
    partition = Partition.pack([random_codes(rng, n) for n in (100, 1_024, 1_300, 1_500)])
    device = emulated(multiprocessors=SLOTS)
    with windowed(device, 384, 512, 100) as engine:
        profile = sequence_profile(random_codes(rng, length), BLOSUM62)
        (batch,) = engine.plan([ScoreRequest(profile)], partition).batches
        assert batch.n_direct == 1
        size = engine.windows.size(profile, windows_route(engine, profile, partition), partition[1:])
        assert (size.overlap, size.stride) == (384, 512)
        assert_as_reference(engine, profile, partition)
        assert engine.windows.n_again == 0
    assert window_launches(device) == ["score_windows"]
    assert device.launches[0][0] == "score_windows"  # before the inter-task kernel, whose blocks stay resident
    assert device.launches[1][0] == "inter_task"


@pytest.mark.parametrize(("length", "reversed_order"), [(300, False), (300, True), (1_100, False), (1_100, True)])
def test_windows_are_extended_until_they_agree(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch, length: int, reversed_order: bool
) -> None:
    """After 48 columns few windows agree with the previous one, after 240 columns nearly all do."""
    rng = np.random.default_rng(21)
    profile = sequence_profile(random_codes(rng, length), BLOSUM62)
    partition = Partition.pack([random_codes(rng, n) for n in (900, 2_000)])
    agreements = []

    def recorded(windows: Windows, agreed: NDArray[np.uint32], strips: int) -> NDArray[np.bool_]:
        agreements.append(agreed.view(np.uint8).reshape(-1, 4) == strips)
        return unproven(windows, agreed, strips)

    unproven = Windows.unproven
    monkeypatch.setattr(Windows, "unproven", recorded)
    with windowed(emulated(multiprocessors=SLOTS, reversed_order=reversed_order), 48, EXTENSION) as engine:
        assert_as_reference(engine, profile, partition)
        assert engine.windows.n_again <= 2
    at_checkpoint = agreements[0].sum(axis=0)
    assert at_checkpoint[1:].sum() > 3


def test_a_proven_subject_stays_proven(emulated: MakeDevice) -> None:
    """One subject has an alignment across checkpoints and is rescored; the windows of the other one agree late."""
    rng = np.random.default_rng(22)
    query = random_codes(rng, 340)
    related, unrelated = with_inserted(random_codes(rng, 9_000), 750, query[:150]), random_codes(rng, 6_000)
    profile = sequence_profile(query, BLOSUM62)
    n_again = []
    for subjects in ([related], [related, unrelated]):
        with windowed(emulated(multiprocessors=SLOTS), 64, 256) as engine:
            assert_as_reference(engine, profile, Partition.pack(subjects))
            n_again.append(engine.windows.n_again)
    assert n_again[1] == n_again[0] > 0


def test_windows_that_no_checkpoint_proves() -> None:
    """By hand: of two strips, both must agree at the same checkpoint."""
    windows = cut_in_windows(np.array([1_200, 600], np.uint32), Size(OVERLAP, STRIDE))
    assert windows.first.tolist() == [0, 5]
    by_checkpoint = np.array(
        [[2, 0, 0, 0], [0, 1, 2, 2], [1, 1, 1, 1], [1, 1, 0, 2], [0, 0, 0, 0], [1, 0, 0, 1], [0] * 4]
    )
    agreed = by_checkpoint.astype(np.uint8).view(np.uint32).ravel()
    assert np.flatnonzero(windows.unproven(agreed, 2)).tolist() == [3, 6]


@pytest.mark.parametrize("multiprocessors", [1, 3])
def test_teams_of_a_block_share_staged_strips(emulated: MakeDevice, multiprocessors: int) -> None:
    """Two strips allow up to eight teams per block: one block scores eight of nine subjects and then the last."""
    rng = np.random.default_rng(11)
    profile = sequence_profile(random_codes(rng, 1_100), BLOSUM62)
    partition = Partition.pack([random_codes(rng, n) for n in (90, 95, 96, 97, 300, 420, 421, 560, 700)])
    device = emulated(multiprocessors=multiprocessors)
    with windowed(device, 256, 512, 50) as engine:
        assert_as_reference(engine, profile, partition)
    entry, grid = device.launches[0]
    assert entry == "score_windows"
    assert grid <= multiprocessors


def test_an_alignment_that_reaches_across_checkpoints_is_found(emulated: MakeDevice) -> None:
    """The query lies across a checkpoint; no window of the first size contains it completely, but a longer one does."""
    rng = np.random.default_rng(2)
    query = random_codes(rng, 340)
    related = with_inserted(random_codes(rng, 1_600), 600, query)
    profile = sequence_profile(query, BLOSUM62)
    windows = cut_in_windows(np.array([len(related)], np.uint32), Size(OVERLAP, STRIDE))
    parts = [related[begin:end] for begin, end in zip(windows.begin, windows.end, strict=True)]
    in_parts, whole = (ReferenceEngine().score([profile], Partition.pack(p))[0].score.max() for p in (parts, [related]))
    assert in_parts < whole
    device = emulated(multiprocessors=SLOTS)
    with windowed(device) as engine:
        assert_as_reference(engine, profile, Partition.pack([related]))
        assert engine.windows.n_again + engine.windows.n_whole >= 1


@pytest.mark.parametrize("suits_diamonds", [True, False])
def test_what_no_window_proves_is_scored_whole(emulated: MakeDevice, suits_diamonds: bool) -> None:
    """One repeated letter: scores grow for 300 columns, and windows that start 300 columns earlier are too much work.

    A position-specific profile with many rows is not suitable for diamonds.
    """
    profile = sequence_profile(np.full(300, 5, dtype=np.uint8), BLOSUM62)
    if not suits_diamonds:
        profile = QueryProfile(np.arange(300, dtype=np.int32), profile.table[profile.rows], profile.gap)
    rng = np.random.default_rng(3)
    partition = Partition.pack([np.full(1_500, 5, dtype=np.uint8), random_codes(rng, 1_700)])
    device = emulated(multiprocessors=SLOTS)
    with windowed(device, 64, 128) as engine:
        assert_as_reference(engine, profile, partition)
        assert engine.windows.n_whole == 1
    assert ("sweep_pairs" in {entry for entry, _ in device.launches}) == suits_diamonds


def test_a_subject_that_is_scored_whole_has_a_launch_of_its_own(emulated: MakeDevice) -> None:
    """Each block of a launch has memory for the boundary of the longest window.

    The first launch proves neither the subject of one letter nor the windows around the run of this letter in the
    other subject; the second scores these windows again, and the third the subject of one letter.
    """
    table = sequence_profile(np.full(300, 5, dtype=np.uint8), BLOSUM62).table
    profile = QueryProfile(np.arange(300, dtype=np.int32), np.repeat(table, 300, axis=0), BLOSUM62.gap)
    with_run = with_inserted(random_codes(np.random.default_rng(3), 4_000), 1_990, np.full(32, 5, dtype=np.uint8))
    launches = []
    for subjects in ([with_run], [with_run, np.full(1_500, 5, dtype=np.uint8)]):
        device = emulated(multiprocessors=SLOTS)
        with windowed(device, 64, 128) as engine:
            assert_as_reference(engine, profile, Partition.pack(subjects))
            assert engine.windows.n_whole == len(subjects) - 1
        launches.append(window_launches(device).count("score_windows"))
    assert launches == [2, 3]


def test_a_high_score_reaches_as_far_as_gaps_carry_it(emulated: MakeDevice) -> None:
    """Behind a complete copy of the query, gaps alone keep H above 0 for 800 columns, in many windows at once."""
    rng = np.random.default_rng(13)
    query = random_codes(rng, 150)
    profile = sequence_profile(query, BLOSUM62)
    partition = Partition.pack([with_inserted(random_codes(rng, 20_000), 700, query)])
    device = emulated(multiprocessors=SLOTS)
    with windowed(device, 256, 256) as engine:
        assert_as_reference(engine, profile, partition)
        assert engine.windows.n_again > 2
        assert engine.windows.n_whole == 0
    assert len(window_launches(device)) <= 6


def test_scores_leave_the_types_one_after_another(emulated: MakeDevice) -> None:
    """Match 127: 17 matches exceed the fast type, 259 exceed 16 bits; across a checkpoint or within a window."""
    rng = np.random.default_rng(4)
    query = random_codes(rng, 270, 4)
    subjects = [with_inserted(random_codes(rng, 1_500, 4), 600, query[:n]) for n in (10, 40, 100, 200, 270)]
    profile = sequence_profile(query, ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10)))
    short = random_codes(rng, 90, 4)
    short[:40] = query[:40]
    partition = Partition.pack([short, *subjects, with_inserted(random_codes(rng, 1_500, 4), 300, query[:150])])
    with windowed(emulated(multiprocessors=SLOTS), min_length=100) as engine:
        block = assert_as_reference(engine, profile, partition)
    assert block.n_rescored == int((block.score > 2047).sum()) > 1
    assert block.score.max() > 32_767


@pytest.mark.parametrize("reversed_order", [False, True])
def test_two_letters_give_checkpoints_of_every_kind(emulated: MakeDevice, reversed_order: bool) -> None:
    """Alignments of two letters are long: some checkpoints are proven, others are not, and every score is exact."""
    rng = np.random.default_rng(5)
    scheme = ScoringScheme(match_mismatch(2, -3), GapPenalty(5, 2))
    n_checkpoints = 0
    with windowed(emulated(multiprocessors=SLOTS, reversed_order=reversed_order), 48, 64) as engine:
        for _ in range(6):
            partition = Partition.pack([random_codes(rng, int(n), 2) for n in rng.integers(1, 900, 8)])
            assert_as_reference(engine, sequence_profile(random_codes(rng, 90, 2), scheme), partition)
            n_checkpoints += len(cut_in_windows(partition.lengths, Size(48, 64))) - len(partition)
        assert 0 < engine.windows.n_again < n_checkpoints


@pytest.mark.parametrize("gap", [GapPenalty(5, 0), GapPenalty(0, 3), GapPenalty(2_100, 5)], ids=str)
def test_gap_costs_are_exact(emulated: MakeDevice, gap: GapPenalty) -> None:
    """Gaps without extension cost, so that alignments have any length; linear gaps; costs beyond the fast type."""
    rng = np.random.default_rng(6)
    query = random_codes(rng, 150, 4)
    spread = with_inserted(with_inserted(random_codes(rng, 1_800, 4), 200, query[:75]), 1_500, query[75:])
    profile = sequence_profile(query, ScoringScheme(match_mismatch(2, -3), gap))
    with windowed(emulated(multiprocessors=SLOTS)) as engine:
        assert_as_reference(engine, profile, Partition.pack([random_codes(rng, 900, 4), spread]))


@pytest.mark.parametrize("pairs", [False, True])
def test_the_best_hits_are_those_of_all_subjects(emulated: MakeDevice, pairs: bool) -> None:
    """Floors and the rule for the best subjects, with windows. Source: the reference engine."""
    rng = np.random.default_rng(12)
    queries = [random_codes(rng, n) for n in (60, 64)]
    subjects = [random_codes(rng, int(n)) for n in rng.integers(30, 90, 40)]
    for number, subject in enumerate(subjects[:12]):
        subject[: 3 * number] = queries[number % 2][: 3 * number][: len(subject)]
    subjects += [with_inserted(random_codes(rng, 900), 250, queries[0]), random_codes(rng, 700)]
    partition = Partition.pack(subjects)
    profiles = [sequence_profile(query, BLOSUM62) for query in queries]
    floors = [45, 60]
    device = emulated(multiprocessors=SLOTS)
    with windowed(device, 64, 128, 100, pairs=pairs) as engine:
        found = engine.score(profiles, partition, floors)
    with windowed(device, 64, 128, 100, pairs=pairs) as engine:
        requests = [ScoreRequest(*pair, BestThree()) for pair in zip(profiles, floors, strict=True)]
        ruled = dict(engine.score_each(requests, partition))
    wanted = ReferenceEngine().score(profiles, partition, floors)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.subject_index, other.subject_index)
        np.testing.assert_array_equal(one.score, other.score)
    for number, other in enumerate(wanted):
        best = other.score >= np.sort(other.score)[-3]
        np.testing.assert_array_equal(ruled[number].subject_index, other.subject_index[best])
        np.testing.assert_array_equal(ruled[number].score, other.score[best])
        assert ruled[number].n_left_out == int((~best).sum()) > 0
    assert "score_windows" in window_launches(device)


def test_there_are_no_more_windows_than_the_device_scores_at_a_time(emulated: MakeDevice) -> None:
    """By hand: sixteen warps per block score 112 windows at a time; a stride of 352 gives 114, one of 368 gives 109."""
    profile = sequence_profile(random_codes(np.random.default_rng(9), 100), BLOSUM62)
    partition = Partition.pack([np.zeros(n, np.uint8) for n in (12_000, 13_200, 14_800)])
    with windowed(emulated(multiprocessors=7)) as engine:
        size = engine.windows.size(profile, windows_route(engine, profile, partition), partition)
        assert (size.overlap, size.stride) == (OVERLAP, 368)
        assert len(cut_in_windows(partition.lengths, size)) == 109


def test_little_memory_takes_the_subjects_in_pieces(emulated: MakeDevice) -> None:
    """Half of the database fits, then less than half; the smallest device raises an error."""
    rng = np.random.default_rng(7)
    profile = sequence_profile(random_codes(rng, 100, 4), default_scheme(DNA))
    partition = Partition.pack([random_codes(rng, n, 4) for n in (700, 900, 1_100, 1_300)])
    with windowed(emulated(multiprocessors=SLOTS), min_length=800, memory_limit=2_600) as engine:
        assert_as_reference(engine, profile, partition)
    large = Partition.pack([np.tile(random_codes(rng, 4_000, 4), 400)])
    smallest = emulated(multiprocessors=SLOTS, memory_bytes=1 << 20)
    with windowed(smallest) as engine, pytest.raises(OutOfDeviceMemory):
        engine.score([profile], large)

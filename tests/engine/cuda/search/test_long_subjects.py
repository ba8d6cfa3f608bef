"""Long subjects in a search, whole or in windows, or by diamonds, on the emulated device.

The expected scores are the reference engine's.
"""

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Device
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.cuda.search.planner import chain_limit
from swsearch.engine.cuda.search.subjects import device_bytes
from swsearch.engine.cuda.search.windows import most_columns, windows_in_place
from swsearch.engine.protocol import ScoreRequest, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.typing import Codes
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.engine.cuda.search.test_emulated_engine import assert_same
from tests.full_matrix import local_end
from tests.support import random_codes

LONG = 256
BLOSUM62 = default_scheme(PROTEIN)


def genome(seed: int, query: Codes) -> Partition:
    """Return short subjects, and two long ones that contain the query, intact and in segments far apart."""
    rng = np.random.default_rng(seed)
    long = random_codes(rng, 2_500, 4)
    half = len(query) // 2
    long[1_000 : 1_000 + half] = query[:half]
    long[1_000 + half + 15 : 1_015 + len(query)] = query[half:]
    other = random_codes(rng, 1_500, 4)
    other[-len(query) :] = query
    return Partition.pack([random_codes(rng, length, 4) for length in (5, 60, 200)] + [other, long])


def engine_for(device: Device, long: int = LONG, window: int = 2 * LONG, rows: int = 400) -> CudaEngine:
    """Return an engine for which few hundred residues are long."""
    options = PlanOptions(
        long_residues=long, window_residues=window, diamond_rows=rows, diamond_residues=2 * LONG
    )  # fmt: skip
    return CudaEngine(device, options=options)


def assert_as_reference(engine: CudaEngine, profiles: list[QueryProfile], partition: Partition) -> list[ScoreBlock]:
    """Compare searches with and without floors with the reference engine's, and return the blocks without floors.

    The first best alignment of a subject must lie in the columns that a block gives.
    """
    for floors in ([25] * len(profiles), None):
        found, wanted = (e.score(score_requests(profiles, floors), partition) for e in (engine, ReferenceEngine()))
        assert_same(found, wanted)
        for profile, one in zip(profiles, found, strict=True):
            for index, score in zip(one.subject_index.tolist(), one.score.tolist(), strict=True):
                if score and index in one.within:
                    codes = partition.codes(int(np.flatnonzero(partition.subject_index == index)[0]))
                    begin, n_columns = one.within[index]
                    assert begin % 16 == 0
                    in_range = codes[begin : begin + n_columns]
                    assert len(in_range) == n_columns < len(codes)
                    assert begin + first_end(profile, in_range, score) == first_end(profile, codes, score)
    return found


def first_end(profile: QueryProfile, codes: Codes, score: int) -> int:
    """The first column that ends an alignment of this score, which is the best one."""
    best, _, column = local_end(profile, codes)
    assert best == score
    return column


def with_inserted(subject: Codes, place: int, piece: Codes) -> Codes:
    return np.concatenate([subject[:place], piece, subject[place + len(piece) :]])


def test_all_ways_score_as_the_reference(emulated: MakeDevice) -> None:
    """Some queries cut long subjects and others take diamonds in one call; progress counts each cell once."""
    rng = np.random.default_rng(1)
    queries = [random_codes(rng, length, 4) for length in (40, 300, 500)]
    partition = genome(2, queries[0])
    profiles = [sequence_profile(query, default_scheme(DNA)) for query in queries]
    device = emulated(multiprocessors=16)
    reported: list[int] = []
    with engine_for(device) as engine:
        blocks = assert_as_reference(engine, profiles, partition)
        assert set(blocks[0].within) == {3, 4}
        assert {entry for entry, _ in device.launches} >= {"inter_task", "intra_task", "sweep_pairs"}
        engine.score(score_requests(profiles), partition, reported.append)
    assert sum(reported) == partition.n_residues * sum(map(len, queries))


@pytest.mark.parametrize("length", [3, 120, 300])
@pytest.mark.parametrize("multiprocessors", [1, 3, 24])
def test_windows_of_queries_of_one_strip_and_several(emulated: MakeDevice, length: int, multiprocessors: int) -> None:
    """Strips of two and of four words, alone and in teams of two; subjects of whole strides and others.

    The list of long subjects is launched before the inter-task kernel, whose blocks stay resident.
    """
    rng = np.random.default_rng(length)
    query = random_codes(rng, length)
    subjects = [random_codes(rng, n) for n in (100, 1_024, 1_300, 1_500, 6_000)]
    for number, subject in enumerate(subjects[2:]):
        subject[500 * number + 1_000 :][:length] = query[: len(subject) - 500 * number - 1_000]
    device = emulated(multiprocessors=multiprocessors, shuffle=length)
    with engine_for(device, long=100, window=512) as engine:
        assert_as_reference(engine, [sequence_profile(query, BLOSUM62)], Partition.pack(subjects))
    assert [entry for entry, _ in device.launches][:2] == ["intra_task", "inter_task"]


@pytest.mark.parametrize("shift", range(0, 160, 23))
def test_an_alignment_across_the_border_of_windows_is_found(emulated: MakeDevice, shift: int) -> None:
    """The halves of the query lie as far apart as a gap that still pays allows, at each place of a window in turn."""
    rng = np.random.default_rng(2)
    query = random_codes(rng, 60, 4)
    profile = sequence_profile(query, default_scheme(DNA))
    gap = (60 - 5 - 1) // 2
    related = random_codes(rng, 4_000, 4)
    place = 1_500 + shift
    related[place : place + 30], related[place + 30 + gap : place + 60 + gap] = query[:30], query[30:]
    partition = Partition.pack([related])
    with engine_for(emulated(multiprocessors=40), window=160) as engine:
        (block,) = assert_as_reference(engine, [profile], partition)
    spanned = most_columns([ScoreRequest(profile)], partition.lengths)
    assert len(windows_in_place(partition.lengths, spanned, 160, 1_000)) > 15
    assert block.score[0] >= 120 - 5 - 2 * gap


def test_queries_of_one_length_have_windows_for_the_alignments_of_each(emulated: MakeDevice) -> None:
    """By hand: with a floor of 25, 60 A span 60 + 60 * 4 - 11 - 25 columns at most; windows begin every 272 columns.

    60 W span more than twice as many. A gap of 300 columns, which W pays for, lies across the end of a window for A.
    """
    letters = {letter: np.full(60, PROTEIN.letters.index(letter), np.uint8) for letter in "AW"}
    related = np.full(4_000, PROTEIN.letters.index("P"), np.uint8)
    place = 5 * 272 + 250
    related[place : place + 30] = related[place + 330 : place + 360] = letters["W"][0]
    partition = Partition.pack([related])
    with engine_for(emulated(multiprocessors=40), window=160) as engine:
        for letter in "AW":
            profile = sequence_profile(letters[letter], BLOSUM62)
            assert most_columns([ScoreRequest(profile, 25)], partition.lengths) == {"A": 272, "W": 688}[letter]
            (block,) = assert_as_reference(engine, [profile], partition)
    assert block.score.tolist() == [60 * 11 - 11 - 300]


def test_windows_where_they_lie() -> None:
    """By hand: 400 residues are cut in windows of 240 that begin every 160; two of 300 if the device scores four."""
    lengths = np.array([200, 400], np.uint32)
    cut = windows_in_place(lengths, 80, 240, 100)
    assert cut.subject.tolist() == [0, 1, 1]
    assert cut.begin.tolist() == [0, 0, 160]
    assert cut.length.tolist() == [200, 240, 240]
    assert cut.best(np.array([3, 5, 5], np.int32)).tolist() == [0, 1]
    assert windows_in_place(lengths, 80, 240, 4).begin.tolist() == [0, 0, 304]
    assert len(windows_in_place(lengths, None, 240, 100)) == 2
    assert windows_in_place(lengths, 48, 128, 100).begin.tolist() == [0, 80, 0, 80, 160, 240, 320]


def test_scores_leave_the_types_one_after_another(emulated: MakeDevice) -> None:
    """Match 127: 17 matches exceed the fast type, 259 exceed 16 bits; in long subjects and in a short one."""
    rng = np.random.default_rng(4)
    query = random_codes(rng, 270, 4)
    subjects = [with_inserted(random_codes(rng, 3_500, 4), 600, query[:n]) for n in (10, 40, 100, 200, 270)]
    profile = sequence_profile(query, ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 100)))
    short = random_codes(rng, 90, 4)
    short[:40] = query[:40]
    device = emulated(multiprocessors=24)
    with engine_for(device) as engine:
        (block,) = assert_as_reference(engine, [profile], Partition.pack([short, *subjects]))
    assert block.n_rescored == 6
    assert set(block.within) == {1, 2, 3, 4, 5}
    arithmetics = {dict(spec.constants)["ARITHMETIC"] for spec in device.launched if spec.entry == "intra_task"}
    assert arithmetics == {"FastPair", "ShortPair", "Wide"}


def test_long_subjects_of_two_queries_that_share_words(emulated: MakeDevice) -> None:
    """Each query has a list of its own, in a stream of its own, and scores that exceed the type in one of them."""
    rng = np.random.default_rng(5)
    queries = [random_codes(rng, length) for length in (270, 268)]
    profiles = [sequence_profile(query, BLOSUM62) for query in queries]
    subjects = [random_codes(rng, 80) for _ in range(6)] + [
        with_inserted(random_codes(rng, 2_800), 1_200, np.tile(queries[0], 3)), random_codes(rng, 2_900)
    ]  # fmt: skip
    partition = Partition.pack(subjects)
    device = emulated(multiprocessors=24)
    with engine_for(device) as engine:
        (batch,) = engine.planner.plan([ScoreRequest(each) for each in profiles], partition)
        assert len(batch.queries) == 2
        assert_as_reference(engine, profiles, partition)
    assert [entry for entry, _ in device.launches].count("intra_task") >= 4


@pytest.mark.parametrize(("less_bytes", "makes_room"), [(35_000, False), (115_000, True)])
def test_diamonds_find_room_where_the_database_takes_it(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch, less_bytes: int, makes_room: bool
) -> None:
    """If memory is insufficient, the long subjects are swept one by one, and then the cached database is freed."""
    kept: list[int] = []
    make_room = CudaEngine.make_room

    def watched(engine: CudaEngine) -> None:
        kept.append(device.used_bytes)
        make_room(engine)
        assert device.used_bytes == 0

    monkeypatch.setattr(CudaEngine, "make_room", watched)
    rng = np.random.default_rng(3)
    short, long = (sequence_profile(random_codes(rng, n, 4), default_scheme(DNA)) for n in (30, 500))
    partition = genome(5, random_codes(rng, 40, 4))
    n_sweeps, peak_bytes = [], 2**30
    for less in (0, less_bytes):
        device = emulated(memory_bytes=peak_bytes - less)
        with engine_for(device) as engine:
            for profile in (short, long):
                assert_as_reference(engine, [profile], partition)
        n_sweeps.append([entry for entry, _ in device.launches].count("sweep_pairs"))
        peak_bytes = device.peak_bytes
    assert n_sweeps[0] == 2  # a call with floors and one without
    assert n_sweeps[1] > 2
    assert bool(kept) == makes_room
    assert all(kept)


def test_all_subjects_may_be_long(emulated: MakeDevice) -> None:
    """A genome and its plasmid are the only subjects, in windows or by diamonds."""
    partition = genome(6, random_codes(np.random.default_rng(6), 500, 4))[3:]
    profiles = [sequence_profile(random_codes(np.random.default_rng(7), n, 4), default_scheme(DNA)) for n in (450, 440)]
    for rows, n_direct, entries in ((400, 0, {"sweep_pairs", "locate_best"}), (1_000, 2, {"intra_task"})):
        device = emulated(multiprocessors=16)
        with engine_for(device, rows=rows) as engine:
            batches = engine.planner.plan([ScoreRequest(each) for each in profiles], partition)
            assert {(batch.n_short, batch.n_direct) for batch in batches} == {(0, n_direct)}
            assert_as_reference(engine, profiles, partition)
        assert {entry for entry, _ in device.launches} == entries


def test_queries_of_many_rows_share_words_where_no_subject_is_long(emulated: MakeDevice) -> None:
    profiles = [sequence_profile(random_codes(np.random.default_rng(8), 450, 4), default_scheme(DNA))] * 2
    short = Partition.pack([random_codes(np.random.default_rng(9), 50, 4)] * 3)
    with engine_for(emulated()) as engine:
        batches = engine.planner.plan([ScoreRequest(each) for each in profiles], short)
        assert [batch.indices for batch in batches] == [(0, 1)]


def test_alignments_of_unbounded_length_are_scored_by_diamonds_or_whole(emulated: MakeDevice) -> None:
    """Gaps that cost nothing to extend may span a subject. A profile with too many rows does not suit diamonds."""
    query = random_codes(np.random.default_rng(4), 300, 4)
    plain = sequence_profile(query, ScoringScheme(default_scheme(DNA).matrix, GapPenalty(4, 0)))
    of_positions = QueryProfile(np.arange(300, dtype=np.int32), plain.table[plain.rows], plain.gap)
    for profile, suits_diamonds in ((plain, True), (of_positions, False)):
        device = emulated(multiprocessors=16)
        with engine_for(device) as engine:
            (block,) = assert_as_reference(engine, [profile], genome(3, query[:40]))
        assert not block.within
        assert ("sweep_pairs" in {entry for entry, _ in device.launches}) == suits_diamonds


@pytest.mark.parametrize("n_long", [0, 3])
def test_subjects_that_end_in_time_stay_with_the_others(emulated: MakeDevice, n_long: int) -> None:
    """Many subjects of similar length are all scored by the inter-task kernels."""
    rng = np.random.default_rng(7)
    partition = Partition.pack([random_codes(rng, 400 + 100 * (number < n_long), 4) for number in range(400)])
    device = emulated(multiprocessors=1)
    with engine_for(device) as engine:
        engine.score(score_requests([sequence_profile(random_codes(rng, 30, 4), default_scheme(DNA))]), partition)
    assert not {entry for entry, _ in device.launches} & {"intra_task", "sweep_pairs"}


def test_a_profile_with_a_row_for_each_position_is_not_given_to_diamonds(emulated: MakeDevice) -> None:
    """500 rows exceed the row limit of the diamond kernel; windows have no such limit."""
    rng = np.random.default_rng(8)
    query = random_codes(rng, 500, 4)
    plain = sequence_profile(query, default_scheme(DNA))
    profile = QueryProfile(np.arange(500, dtype=np.int32), plain.table[plain.rows], plain.gap)
    device = emulated(multiprocessors=16)
    with engine_for(device) as engine:
        assert_as_reference(engine, [profile], genome(9, query[:40]))
    entries = {entry for entry, _ in device.launches}
    assert "intra_task" in entries
    assert "sweep_pairs" not in entries


def test_a_subject_is_long_if_its_chain_takes_longer_than_the_launch() -> None:
    """By hand: N residues and 256 rows take 256 N / (26 x 132) cycles, a column 200, or 3,200 with several strips."""
    launch = 180_000_000 * 256 / (26 * 132)
    assert chain_limit(180_000_000, [256], 132) == int(launch / 200)
    assert chain_limit(180_000_000, [128, 128], 132) == int(launch / 200)
    assert chain_limit(180_000_000, [2_560], 132) == int(10 * launch / 3200)


def test_a_database_with_long_subjects_is_uploaded_once(emulated: MakeDevice) -> None:
    """The shorter subjects are a prefix of the uploaded partition, so no limit between them needs a second copy."""
    rng = np.random.default_rng(11)
    profiles = [sequence_profile(random_codes(rng, length, 4), default_scheme(DNA)) for length in (300, 390)]
    partition = genome(12, profiles[0].rows.astype(np.uint8)[:40])
    with engine_for(emulated(multiprocessors=16)) as engine:
        assert_as_reference(engine, profiles, partition)
        assert engine.store.kept_bytes == device_bytes(partition)

"""Genomes whose subjects are cut into windows, on the emulated device. Expected blocks: the reference engine's."""

from collections.abc import Sequence

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.cuda.search.planner import Planner
from swsearch.engine.cuda.search.windows import SubjectCutter, most_columns, windows_of
from swsearch.engine.protocol import ScoreRequest, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA
from swsearch.typing import Codes
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.engine.cuda.search.test_emulated_engine import assert_same
from tests.support import random_codes

CONTIGS = (0, 7, 300, 9_000, 9_100, 30_000)
ROOM = 1 << 30
SMALL = PlanOptions(gathered_residues=0, gather_picoseconds=0)
EMULATED = DeviceFacts("emulated", "", 90, 2, 232_448, 1 << 32, 1e9, "")
H200 = DeviceFacts("NVIDIA H200", "", 90, 132, 232_448, 1 << 37, 1.98e9, "")


def mutated(rng: np.random.Generator, codes: Codes, share: float) -> Codes:
    changed = rng.random(len(codes)) < share
    return np.where(changed, random_codes(rng, len(codes), 4), codes)


def genome(seed: int, queries: Sequence[Codes] = (), copies: int = 3) -> Partition:
    """Contigs of which the three longest have each query: once complete, once with a gap, once mutated."""
    rng = np.random.default_rng(seed)
    contigs = [random_codes(rng, length, 4) for length in CONTIGS]
    for query in queries:
        half = len(query) // 2
        gapped = np.concatenate([query[:half], random_codes(rng, half // 2, 4), query[half:]])
        for planted in (query, gapped, mutated(rng, query, 0.1))[:copies]:
            for contig in contigs[3:]:
                place = int(rng.integers(0, len(contig) - len(planted)))
                contig[place : place + len(planted)] = planted
    return Partition.pack(contigs)


def dna_queries(seed: int, *lengths: int) -> list[Codes]:
    rng = np.random.default_rng(seed)
    return [random_codes(rng, length, 4) for length in lengths]


def profiles_of(queries: Sequence[Codes], scheme: ScoringScheme | None = None) -> list[QueryProfile]:
    return [sequence_profile(query, scheme or default_scheme(DNA)) for query in queries]


def is_cut(engine: CudaEngine, requests: Sequence[ScoreRequest], partition: Partition) -> bool:
    return "windows" in engine.explain(requests, partition)[0]


@pytest.mark.parametrize("floor", [None, 20, 60])
def test_a_genome_in_windows_has_the_scores_of_its_subjects(emulated: MakeDevice, floor: int | None) -> None:
    queries = dna_queries(1, 24, 40, 40, 61)
    profiles, partition = profiles_of(queries), genome(2, queries)
    floors = None if floor is None else [floor] * len(profiles)
    counted: list[int] = []
    with CudaEngine(emulated(shuffle=3), options=SMALL) as engine:
        requests = score_requests(profiles, floors)
        assert is_cut(engine, requests, partition)
        found = engine.score(requests, partition, counted.append)
        assert engine.timing.cells == sum(counted) == partition.n_residues * sum(map(len, queries))
    assert_same(found, ReferenceEngine().score(score_requests(profiles, floors), partition))


def test_an_alignment_of_the_widest_span_is_found_wherever_it_lies(emulated: MakeDevice) -> None:
    """The two halves of a query with the largest gap between them that still pays lie across each border in turn.

    Each subject has them at another place.
    """
    (query,) = dna_queries(4, 40)
    profiles = profiles_of([query])
    gap = (40 - 5 - 1) // 2  # the second half scores 40, the gap costs 5 + 2 a base
    subjects = []
    for place in range(1_000, 2_400, 23):
        subjects.append(random_codes(np.random.default_rng(5), 3_200, 4))
        subjects[-1][place : place + 20] = query[:20]
        subjects[-1][place + 20 + gap : place + 40 + gap] = query[20:]
    partition = Partition.pack(subjects)
    with CudaEngine(emulated(multiprocessors=7), options=SMALL) as engine:
        assert is_cut(engine, score_requests(profiles, None), partition)
        (block,) = engine.score(score_requests(profiles), partition)
    assert min(block.score) >= 80 - 5 - 2 * gap


def test_a_bound_decides_for_whole_subjects(emulated: MakeDevice) -> None:
    """Nothing is planted, so that no contig reaches the floor; with the queries planted, the three longest do."""
    queries = dna_queries(6, 48, 50)
    profiles, floors = profiles_of(queries), [40, 40]
    with CudaEngine(
        emulated(), options=PlanOptions(gathered_residues=0, gather_picoseconds=0, bound_subjects=1)
    ) as engine:
        for partition, n_found in ((genome(7), 0), (genome(7, queries, 1), 3)):
            found = engine.score(score_requests(profiles, floors), partition)
            assert [len(block) for block in found] == [n_found] * 2
            assert [block.n_bounded for block in found] == [len(CONTIGS) - n_found] * 2
            assert_same(found, ReferenceEngine().score(score_requests(profiles, floors), partition))


def test_windows_for_all_scores_hold_the_widest_alignments() -> None:
    """By hand: 300 matches give 600, and each column of a gap costs 2; so many more have room than with a floor."""
    requests = score_requests(profiles_of(dna_queries(8, 300)) * 3, [0, 1, 100])
    of_all, of_any, narrow = (most_columns([request], np.array([9_000])) for request in requests)
    assert of_all == of_any == narrow + 48


def test_a_cut_serves_shorter_queries_until_its_overlap_is_twice_what_they_need() -> None:
    cutter = SubjectCutter(Planner(EMULATED, SMALL))
    partition = genome(8)
    cuts = {
        length: cutter.cut(score_requests(profiles_of(dna_queries(9, length)), None), partition, ROOM)
        for length in (60, 40, 25, 61)
    }
    assert None not in cuts.values()
    assert cuts[40] is cuts[60]
    assert cuts[25] is not cuts[60]
    assert cuts[61] is not cuts[25]


@pytest.mark.parametrize(
    ("case", "length", "gap", "most_rows", "limit_bytes"),
    [
        ("free extension", 40, GapPenalty(5, 0), 16_384, ROOM),
        ("a query whose alignments span more than a window", 400, GapPenalty(5, 2), 16_384, ROOM),
        ("a query that takes diamonds", 40, GapPenalty(5, 2), 39, ROOM),
        ("too little memory", 40, GapPenalty(5, 2), 16_384, 50_000),
    ],
)
def test_some_searches_are_not_cut(case: str, length: int, gap: GapPenalty, most_rows: int, limit_bytes: int) -> None:
    scheme = ScoringScheme(match_mismatch(2, -3), gap)
    requests = score_requests(profiles_of(dna_queries(10, length), scheme), None)
    options = PlanOptions(gathered_residues=0, gather_picoseconds=0, diamond_rows=most_rows)
    cutter = SubjectCutter(Planner(EMULATED, options))
    assert cutter.cut(requests, genome(11), limit_bytes) is None, case
    usual = score_requests(profiles_of(dna_queries(10, 40)), None)
    assert SubjectCutter(Planner(EMULATED, SMALL)).cut(usual, genome(11), ROOM) is not None


def test_the_windows_of_a_genome_stay_where_they_lie_if_that_is_faster() -> None:
    """On a real device: queries of 1,000 bases, whose windows overlap by as much, and a genome of a few megabases."""
    lengths = np.full(20, 5_000_000, np.uint32)
    contigs = Partition(np.zeros(0, np.uint8), np.arange(20, dtype=np.uint64), lengths, np.arange(20, dtype=np.uint32))
    long = score_requests(profiles_of(dna_queries(14, 1_000)), None)
    short = score_requests(profiles_of(dna_queries(14, 200)), None)
    cutter = SubjectCutter(Planner(H200, PlanOptions()))
    assert cutter.stride(long, contigs, 1 << 33) == (None, 0.0)
    assert cutter.cut(short, contigs[:1], 1 << 33) is None
    stride, saved = cutter.stride(short, contigs, 1 << 33)
    assert stride is not None
    assert 2_000 < stride < 10_000
    assert 0 < saved < 200  # picoseconds per residue: windows in place take about 65 of one query of 200 bases


def test_a_genome_is_cut_when_its_queries_make_up_for_the_copy() -> None:
    """Calls are added up, those that are only explained are not; another genome begins anew."""
    requests = score_requests(profiles_of(dna_queries(15, 40)), None)
    partition = genome(16)
    _, saved = SubjectCutter(Planner(EMULATED, SMALL)).stride(requests, partition, ROOM)
    options = PlanOptions(gathered_residues=0, gather_picoseconds=2.5 * saved)
    cutter = SubjectCutter(Planner(EMULATED, options))
    for other in (genome(17), partition):
        assert [cutter.cut(requests, other, ROOM, scores=scores) is None for scores in (True, False, True)] == [
            True
        ] * 3
    assert cutter.cut(requests, partition, ROOM) is not None


def test_windows_are_kept_until_the_device_no_longer_has_them() -> None:
    """The subjects themselves make room for their windows."""
    cutter, partition = SubjectCutter(Planner(EMULATED, SMALL)), genome(18)
    requests = score_requests(profiles_of(dna_queries(19, 40)), None)
    cut = cutter.cut(requests, partition, ROOM)
    assert cut is not None
    cutter.forget(partition)
    assert cutter.cut(requests, partition, ROOM) is cut
    cutter.forget(cut.partition)
    assert cutter.cut(requests, partition, ROOM) is not cut


def test_few_long_subjects_among_many_are_not_cut() -> None:
    rng = np.random.default_rng(12)
    partition = Partition.pack([random_codes(rng, 100, 4) for _ in range(400)] + [random_codes(rng, 20_000, 4)])
    requests = score_requests(profiles_of(dna_queries(13, 40)), None)
    assert SubjectCutter(Planner(EMULATED, SMALL)).cut(requests, partition, ROOM) is None


def test_windows_hold_every_alignment_whole() -> None:
    """For each column, some window contains all columns that an alignment ending there can span."""
    lengths = np.array([0, 1, 5_000, 20_000, 100_003], dtype=np.uint32)
    columns = np.array([30, 30, 900, 5_000, 611])
    for min_stride in (16, 4_096):
        found = windows_of(lengths, columns, min_stride)
        assert found.subject.tolist()[:2] == [1, 2]
        for index, (length, spanned) in enumerate(zip(lengths.tolist(), columns.tolist(), strict=True)):
            mine = found.subject == index
            begin, stop = found.begin[mine], found.begin[mine] + found.length[mine]
            assert (stop <= length).all()
            assert (found.length[mine] <= spanned + max(spanned, min_stride)).all()
            for end in range(1, length + 1, 7):
                assert ((begin <= max(end - spanned, 0)) & (stop >= end)).any()

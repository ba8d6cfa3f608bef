"""The kernels of CUDASW++ 2.0 on the emulated device. Expected scores: the reference engine's or the CPU engine's."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.history.cudasw2 import (
    CLASSIC_KERNELS,
    LARGEST_NARROW,
    THREADS,
    Cudasw2Engine,
    partition_vectors,
    plan_partitioned,
    sequential_texels,
    striped_texels,
)
from swsearch.engine.cuda.runtime.device import Stream
from swsearch.engine.cuda.runtime.parameters import PARTITIONED, packed
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.protocol import ScoreEngine, score_requests
from swsearch.errors import EngineError
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN, SOFT_MASK_BIT
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import Codes
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.engine.cuda.search.test_emulated_engine import assert_exact, assert_same
from tests.support import random_codes


def related(rng: np.random.Generator, query: Codes, keep: float = 0.8) -> Codes:
    """Return a query with deletions and insertions, so that its alignment has gaps of all lengths."""
    pieces = []
    position = 0
    while position < len(query):
        step = int(rng.integers(5, 60))
        pieces.append(query[position : position + step] if rng.random() < keep else random_codes(rng, step // 2))
        position += step
    return np.concatenate(pieces)


def case(seed: int, lengths: Sequence[int], letters: int = 20) -> tuple[list[Codes], Partition]:
    rng = np.random.default_rng(seed)
    queries = [random_codes(rng, length, letters) for length in lengths]
    subjects = [random_codes(rng, length, letters) for length in (1, 2, 3, 4, 5, 31, 32, 33, 64, 65, 97)]
    subjects += [related(rng, query) for query in queries]
    subjects += [related(rng, query)[:70] | SOFT_MASK_BIT for query in queries]
    return queries, Partition.pack(subjects)


def test_all_kernels_agree_on_real_proteins(emulated: MakeDevice) -> None:
    """A query against the proteins that it hits best and some others; expected: the CPU engine's scores."""
    data = Path(__file__).parents[4] / "data"
    query = next(record for record in read_sequences([data / "queries.fasta"], PROTEIN) if len(record) == 134)
    profile = sequence_profile(query.codes, default_scheme(PROTEIN))
    subjects = [record.codes for record in read_sequences([data / "proteins.fasta.gz"], PROTEIN)]
    with CpuEngine() as cpu:
        (of_all,) = cpu.score(score_requests([profile]), Partition.pack(subjects))
        best = of_all.subject_index[np.argsort(of_all.score)[-5:]]
        partition = Partition.pack([subjects[index] for index in [*best.tolist(), *range(0, len(subjects), 150)]])
        (wanted,) = cpu.score(score_requests([profile]), partition)
    assert wanted.score.max() > 200
    assert wanted.score.min() < 50
    engines: list[ScoreEngine] = [Cudasw2Engine(kernel, emulated()) for kernel in CLASSIC_KERNELS]
    for engine in [*engines, CudaEngine(emulated())]:
        with engine:
            assert_same(engine.score(score_requests([profile]), partition), [wanted])


@pytest.mark.parametrize("kernel", CLASSIC_KERNELS)
@pytest.mark.parametrize("gap", [GapPenalty(11, 1), GapPenalty(0, 2)], ids=str)
def test_scores_are_those_of_the_reference(emulated: MakeDevice, kernel: str, gap: GapPenalty) -> None:
    """Queries of one row, of about a vector, and of several stripes; gaps long enough to cross stripes."""
    queries, partition = case(1, (1, 33, 130))
    profiles = [sequence_profile(query, ScoringScheme(named_matrix("BLOSUM62"), gap)) for query in queries]
    with Cudasw2Engine(kernel, emulated()) as engine:
        assert isinstance(engine, ScoreEngine)
        assert_exact(engine, profiles, partition)
        assert engine.timing.cells == sum(profile.length for profile in profiles) * partition.n_residues


@pytest.mark.parametrize("kernel", CLASSIC_KERNELS)
def test_dna_and_floors(emulated: MakeDevice, kernel: str) -> None:
    queries, partition = case(2, (90,), 16)
    profiles = [sequence_profile(query, default_scheme(DNA)) for query in queries]
    reported: list[int] = []
    with Cudasw2Engine(kernel, emulated()) as engine:
        assert_exact(engine, profiles, partition, [20] * len(profiles))
        engine.score(score_requests(profiles), partition, reported.append)
    assert sum(reported) == 90 * partition.n_residues


def test_kernels_that_share_nothing_agree(emulated: MakeDevice) -> None:
    """The default engine and these three kernels give the same scores on the same emulated device."""
    queries, partition = case(3, (140,))
    profiles = [sequence_profile(query, default_scheme(PROTEIN)) for query in queries]
    with CudaEngine(emulated()) as engine:
        (wanted,) = engine.score(score_requests(profiles), partition)
    for kernel in CLASSIC_KERNELS:
        with Cudasw2Engine(kernel, emulated(reversed_order=kernel == "striped")) as engine:
            (found,) = engine.score(score_requests(profiles), partition)
        np.testing.assert_array_equal(found.score, wanted.score)


@pytest.mark.parametrize(
    ("kernel", "length", "largest"), [("simt", 517, LARGEST_NARROW), ("striped", 100, 100 * 127 - 1)]
)
def test_scores_beyond_16_bits_are_exact(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch, kernel: str, length: int, largest: int
) -> None:
    """Match 127: 517 matches exceed 16 bits; the slower kernel gets a lower limit. A self-score is 127 per residue."""
    monkeypatch.setattr("swsearch.engine.cuda.history.cudasw2.LARGEST_NARROW", largest)
    query = random_codes(np.random.default_rng(4), length, 4)
    partition = Partition.pack([query, query[:40]])
    profiles = [sequence_profile(query, ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10)))]
    with Cudasw2Engine(kernel, emulated()) as engine:
        (block,) = engine.score(score_requests(profiles), partition)
    assert block.score.tolist() == [40 * 127, length * 127]
    assert length * 127 > largest >= 40 * 127
    assert block.n_rescored == 1


def plain_f_below(profile: QueryProfile, subject: Codes, rows: int) -> tuple[list[int], list[int]]:
    """Return H of row ``rows`` - 1 and the F that row ``rows`` uses, by column, cell by cell after Gotoh (1982)."""
    first, extend = profile.gap.first, profile.gap.extend
    h_above, f = [0] * (len(subject) + 1), [0] * (len(subject) + 1)
    for row in range(rows):
        h = [0] * (len(subject) + 1)
        e = 0
        for j, residue in enumerate(subject, start=1):
            h[j] = max(h_above[j - 1] + int(profile.table[profile.rows[row], residue]), e, f[j], 0)
            e = max(e - extend, h[j] - first, 0)
            f[j] = max(f[j] - extend, h[j] - first, 0)
        h_above = h
    return h_above[1:], f[1:]


@pytest.mark.parametrize("gap", [GapPenalty(2, 1), GapPenalty(0, 2)], ids=str)
def test_the_first_row_of_a_partition_gets_the_right_f(emulated: MakeDevice, gap: GapPenalty) -> None:
    """H and F between two partitions equal those of the plain matrix, although the lazy-F loop stops early."""
    rng = np.random.default_rng(5)
    query = random_codes(rng, 129, 6)
    subject = np.concatenate([related(rng, query[:128], 0.6), query[:40], query[90:129]])
    profile = sequence_profile(query, ScoringScheme(named_matrix("BLOSUM62"), gap))
    device = emulated()
    plan = plan_partitioned(profile, 4)  # partitions of 128 rows
    assert plan.turns == 2
    partition = Partition.pack([subject])
    sources = [plan.texels, partition.residues, partition.starts, partition.lengths]
    buffers = [device.allocate(array.nbytes) for array in sources]
    for buffer, array in zip(buffers, sources, strict=True):
        device.upload(buffer, array, Stream.COMPUTE)
    boundary, scores, counter = map(device.allocate, (plan.column_bytes * len(subject), 4, 4))
    device.clear(counter, 4, Stream.COMPUTE)
    texels, *subjects = (buffer.address for buffer in buffers)
    parameters = packed(
        PARTITIONED, texture=texels, turns=2, subjects=(*subjects, 0, 1), boundary=boundary.address,
        boundary_stride=len(subject), scores=scores.address, counter=counter.address,
    )  # fmt: skip
    device.launch(plan.spec, 1, 0, parameters, Stream.COMPUTE)
    handed_on = np.empty((THREADS // 32, len(subject), 2), dtype=np.int32)
    device.download(handed_on, boundary, Stream.COMPUTE)
    h, f = plain_f_below(profile, subject, 128)
    found = [block for block in handed_on if block[:, 0].tolist() == h]
    assert len(found) == 1  # one warp scored the subject
    assert found[0][:, 1].tolist() == f
    assert max(f) > 20


def test_profiles_hold_every_row_once() -> None:
    """Expected values: the profile's own table; rows beyond the query score -128."""
    query = np.arange(70, dtype=np.uint8) % 20
    profile = sequence_profile(query, default_scheme(PROTEIN))
    sequential, striped = sequential_texels(profile), striped_texels(profile, 4)
    assert sequential.shape == (5, 32, 16)
    assert striped.shape == (1, 32, 1, 32, 16)
    for row in range(80):
        for column in (0, 1, 20):
            known = row < 70 and column > 0
            score = profile.table[profile.rows[row], column - 1] if known else -128
            assert sequential[row // 16, column, row % 16] == score
            assert striped[0, column, 0, row // 4, row % 4] == score
    assert (striped[0, :, 0, :, 4:] == -128).all()
    assert [partition_vectors(length) for length in (1, 128, 129, 512, 513, 1024)] == [4, 4, 8, 16, 12, 16]


def test_pieces_and_empty_partitions(emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsearch.engine.cuda.search.subjects.SMALLEST_PIECE", 200)
    queries, partition = case(6, (40,))
    profiles = [sequence_profile(query, default_scheme(PROTEIN)) for query in queries]
    device = emulated()
    with Cudasw2Engine("simt", device, memory_limit=400) as engine:
        assert_exact(engine, profiles, partition)
        assert len(engine.score(score_requests(profiles), Partition.pack([]))[0]) == 0
    assert len(device.launches) > 1
    assert device.used_bytes == 0


def test_there_is_no_other_kernel(emulated: MakeDevice) -> None:
    with pytest.raises(EngineError, match="choose simt, striped, partitioned"):
        Cudasw2Engine("strip", emulated())

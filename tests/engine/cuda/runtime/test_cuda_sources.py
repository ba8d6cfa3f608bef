"""The other CUDA kernels on a GPU: CUDASW++ 2.0's, the block wavefront, and the one for short pairs.

Expected values: the CPU's engine and pair aligner, on generated sequences and on real ones. The same kernels run
without a GPU in ``tests/engine/cuda``.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from swsearch.bench.workloads import generated_proteins, generated_query
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cpu.pairs import CpuPairs
from swsearch.engine.cuda.history.cudasw2 import CLASSIC_KERNELS, Cudasw2Engine
from swsearch.engine.cuda.history.wavefront import wavefront_score
from swsearch.engine.cuda.pairs.short_pairs import ShortPairs
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, SequencePairs, Sequences
from swsearch.engine.protocol import ScoreEngine, score_requests
from swsearch.pairs.pair_alignment import align_pair, cost_set
from swsearch.pairs.sequence import PairSequence
from swsearch.query.profile import sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from tests.engine.cuda.search.test_emulated_engine import assert_same

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("kernel", CLASSIC_KERNELS)
@pytest.mark.parametrize("gap", [GapPenalty(11, 1), GapPenalty(0, 3), GapPenalty(4, 0)], ids=str)
def test_classic_kernels_give_the_cpus_scores(kernel: str, gap: GapPenalty) -> None:
    """Queries of 1 to 2,000 residues, subjects of up to 34,350; the subjects include parts of the longest query."""
    rng = np.random.default_rng(1)
    scheme = ScoringScheme(named_matrix("BLOSUM62"), gap)
    queries = [rng.integers(0, 20, length).astype(np.uint8) for length in (1, 31, 375, 513, 2000)]
    proteins = generated_proteins(600_000).partition
    subjects = [*(proteins.codes(index) for index in range(len(proteins))), generated_query(PROTEIN, 34_350)]
    subjects += [queries[-1][start:stop] for start, stop in rng.integers(0, 2000, (40, 2)) if start < stop]
    partition = Partition.pack(subjects)
    profiles = [sequence_profile(query, scheme) for query in queries]
    with CpuEngine() as engine:
        wanted = engine.score(score_requests(profiles), partition)
    with Cudasw2Engine(kernel) as engine:
        for found, want in zip(engine.score(score_requests(profiles), partition), wanted, strict=True):
            np.testing.assert_array_equal(found.score, want.score)


def test_all_kernels_agree_on_real_proteins() -> None:
    """1,500 proteins and seven queries; kernels of different designs are compared with the CPU engine."""
    data = Path(__file__).parents[4] / "data"
    scheme = default_scheme(PROTEIN)
    profiles = [sequence_profile(r.codes, scheme) for r in read_sequences([data / "queries.fasta"], PROTEIN)]
    partition = Partition.pack([record.codes for record in read_sequences([data / "proteins.fasta.gz"], PROTEIN)])
    with CpuEngine() as cpu:
        wanted = cpu.score(score_requests(profiles), partition)
    assert max(int(block.score.max()) for block in wanted) > 2047  # scores beyond the fast type
    makers: list[Callable[[], ScoreEngine]] = [*(partial(Cudasw2Engine, name) for name in CLASSIC_KERNELS), CudaEngine]
    for make in makers:
        with make() as engine:
            assert_same(engine.score(score_requests(profiles), partition), wanted)


@pytest.mark.parametrize("kernel", CLASSIC_KERNELS)
def test_classic_kernels_are_exact_beyond_16_bits(kernel: str) -> None:
    """A self-score is 127 per residue."""
    query = np.random.default_rng(2).integers(0, 4, 900).astype(np.uint8)
    profile = sequence_profile(query, ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10)))
    with Cudasw2Engine(kernel) as engine:
        (block,) = engine.score(score_requests([profile]), Partition.pack([query, query[:40], query[:600]]))
    assert sorted(block.score.tolist()) == [40 * 127, 600 * 127, 900 * 127]


def random_sequences(rng: np.random.Generator, lengths: np.ndarray, letters: int) -> Sequences:
    return Sequences(rng.integers(0, letters, int(lengths.sum())).astype(np.uint16), np.cumsum(lengths))


@pytest.mark.parametrize("path", [True, False])
@pytest.mark.parametrize("longest", [60, 700, 2048])
def test_short_pairs_get_the_cpus_alignments(longest: int, path: bool) -> None:
    """Related and unrelated pairs, all modes, linear and affine gaps, compared letters and a table."""
    rng = np.random.default_rng(longest)
    lengths = rng.integers(1, longest + 1, 200)
    queries = random_sequences(rng, lengths, 4)
    related = queries.letters.copy()
    related[rng.random(len(related)) < 0.1] = 3
    both = [
        SequencePairs(queries, random_sequences(rng, rng.integers(1, longest + 1, 200), 4)),
        SequencePairs(queries, Sequences(related, queries.ends)),
    ]
    table = named_matrix("BLOSUM62").scores
    with closing(PyCudaDevice()) as device, ShortPairs(device) as engine:
        for pairs in both:
            for ends in ((True, FreeEnds.ALL), *((False, FreeEnds(flags)) for flags in (0, 15, 12, 1, 8))):
                for problem in (
                    AlignmentProblem(*ends, 0, 2, 1, -1),
                    AlignmentProblem(*ends, 5, 2, 2, -3),
                    AlignmentProblem(*ends, 11, 1, table=table),
                ):
                    found = engine.align(pairs, problem, path=path)
                    wanted = CpuPairs(4).align(pairs, problem, path=path)
                    np.testing.assert_array_equal(found.ends, wanted.ends)
                    np.testing.assert_array_equal(found.run_ends, wanted.run_ends)
                    np.testing.assert_array_equal(found.runs, wanted.runs)


@pytest.mark.parametrize(("m", "n"), [(48, 48), (1, 3000), (2999, 4001), (9024, 9024)])
def test_the_wavefront_gives_the_cpus_score(m: int, n: int) -> None:
    rng = np.random.default_rng(m)
    sides = [rng.integers(0, 4, length).astype(np.uint16) for length in (m, n)]
    texts = [PairSequence("", "".join("ACGT"[letter] for letter in side)) for side in sides]
    wanted = align_pair(texts[0], texts[1], "global", cost_set("nw2009"), path=False).score
    device = PyCudaDevice()
    try:
        assert wavefront_score(device, sides[0], sides[1], match=0, mismatch=-1, indel=3) == wanted
    finally:
        device.close()

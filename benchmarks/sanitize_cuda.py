"""Runs small cases of the CUDA engine and compares its results with the CPU engine's: a workload for compute-sanitizer.

    compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 1 python benchmarks/sanitize_cuda.py
    compute-sanitizer --tool racecheck --error-exitcode 1 python benchmarks/sanitize_cuda.py

(cuda-bindings looks up functions that an older driver lacks; without ``--report-api-errors no``, memcheck reports each
of them as an error.)

Input: none; the sequences are random, with a fixed seed. Scores and end positions: proteins and DNA, queries of one and
of several strips, one and two queries per 32-bit word, with and without floors, with bounds and lists of subjects that
pass them, long subjects in windows, and scores that exceed each score type. Paths: pairs aligned by the
diamond kernels with 16-bit and 32-bit scores. Forward scores: queries of one and of two strips. The kernels ``simt``,
``striped``, ``partitioned``, ``short_pairs``, ``wavefront`` and ``count_scores`` are not run; the emulated device runs
them under the host's sanitizers (``tests/engine/cuda/runtime/test_sanitizers.py``).

Output: one line with the numbers of scores, ends, paths and Forward scores that were compared, and of those that
differ. The exit status is 1 if one differs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from provenance import compiler_of

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cpu.pairs import CpuPairs
from swsearch.engine.cuda.pairs.diamond_plan import SweepShape
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.forward import ForwardScorer
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, SequencePairs
from swsearch.engine.protocol import score_requests
from swsearch.query.columns import column_model
from swsearch.query.profile import ProfileModel, QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.typing import Codes

FLOOR = 60
LOW_FLOOR = 29
"""About an eighth of the subjects of :func:`many_case` pass the bound, more than four per multiprocessor."""


def case(
    rng: np.random.Generator, letters: int, lengths: Sequence[int], n_subjects: int
) -> tuple[list[Codes], Partition]:
    queries = [rng.integers(0, letters, length).astype(np.uint8) for length in lengths]
    subjects = [rng.integers(0, letters, int(n)).astype(np.uint8) for n in rng.integers(1, 150, n_subjects)]
    subjects += [rng.integers(0, letters, n).astype(np.uint8) for n in (1501, 1700)]
    for query in queries:
        changed = query.copy()
        changed[::9] = rng.integers(0, letters, len(changed[::9]))
        subjects += [query, changed, np.concatenate([subjects[-1], changed])]
    return queries, Partition.pack(subjects)


def different_ends(engine: CudaEngine, profile: QueryProfile, partition: Partition) -> int:
    """Number of end rows and end columns that differ from those of the CPU's alignments."""
    native = _native.align_local(
        np.zeros(profile.length, np.uint8), profile.rows, profile.table, profile.gap.open, profile.gap.extend,
        np.arange(32, dtype=np.uint8), partition.residues, partition.starts, partition.lengths,
    )  # fmt: skip
    scores, rows, columns = np.array([(best[0][0], best[0][2], best[0][4]) if best else (0, 0, 0) for best in native]).T
    found = engine.ends(profile, partition, scores.astype(np.int32))
    if found is None:
        return len(partition)
    return int(((found.query_end != rows) | (found.subject_end != columns)).sum())


def different_paths(device: PyCudaDevice, rng: np.random.Generator) -> tuple[int, int]:
    """Number of aligned pairs, and of those whose score, end or path differs from that of the CPU's kernels."""
    query = rng.integers(0, 4, 700).astype(np.uint16)
    subject = np.concatenate([query[:300], rng.integers(0, 4, 300).astype(np.uint16), query[310:]])
    compared = different = 0
    for local in (True, False):
        for gap in ((5, 2), (0, 2)):
            problem = AlignmentProblem(local, FreeEnds.NONE, *gap, 2, -3)
            pair = SequencePairs.of([(query, subject)])
            wanted = CpuPairs().align(pair, problem)
            for shape in (SweepShape(True, 2), SweepShape(True, 8), SweepShape(False, 2)):
                found = DiamondSweep(device, memory_bytes=1 << 20, shape=shape).align(pair, problem)
                compared += 1
                different += not (np.array_equal(found.ends, wanted.ends) and np.array_equal(found.runs, wanted.runs))
    return compared, different


def different_forward_scores(rng: np.random.Generator) -> tuple[int, int]:
    """Number of Forward scores, of queries of one and of two strips, and of those that differ from the CPU's."""
    scorer, model = ForwardScorer(PyCudaDevice), column_model()
    compared = different = 0
    for length in (70, 530):
        query = ProfileModel.of_columns(rng.dirichlet(np.full(20, 0.3), length))
        subjects = Partition.pack([rng.integers(0, 27, int(n)).astype(np.uint8) for n in rng.integers(1, 300, 30)])
        found = scorer.scores(query, [subjects], model)
        odds = model.odds(subjects.residues, subjects.starts, subjects.lengths)
        compared += len(subjects)
        different += int((found != odds.forward(query)).sum())
    scorer.close()
    return compared, different


def long_case(rng: np.random.Generator, letters: int, lengths: Sequence[int]) -> tuple[list[Codes], Partition]:
    """Long subjects; one of them contains the last query, across a border of windows."""
    queries = [rng.integers(0, letters, length).astype(np.uint8) for length in lengths]
    subjects = [rng.integers(0, letters, n).astype(np.uint8) for n in (200, 5_000, 6_001)]
    subjects[-1][900 : 900 + lengths[-1]] = queries[-1]
    return queries, Partition.pack(subjects)


def many_case(rng: np.random.Generator) -> tuple[list[Codes], Partition]:
    """Many short subjects."""
    queries = [rng.integers(0, 20, length).astype(np.uint8) for length in (60, 67)]
    return queries, Partition.pack([rng.integers(0, 20, int(n)).astype(np.uint8) for n in rng.integers(20, 60, 5_000)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    proteins, dna = case(rng, 20, (60, 67, 500), options.subjects), case(rng, 4, (300, 310), options.subjects)
    large = ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10))
    compared = different = 0
    device = PyCudaDevice()
    print(device.facts.name, device.facts.driver, compiler_of(device).name, compiler_of(device).version)
    with CudaEngine(device, options=PlanOptions(bound_subjects=1)) as cuda, CpuEngine(1) as cpu:
        for (queries, partition), scheme, floor in (
            (proteins, default_scheme(PROTEIN), FLOOR),
            (dna, default_scheme(DNA), FLOOR),
            (dna, large, FLOOR),
            (long_case(rng, 20, (300, 1_100)), default_scheme(PROTEIN), FLOOR),
            (long_case(rng, 4, (200, 700)), default_scheme(DNA), FLOOR),
            (many_case(rng), default_scheme(PROTEIN), LOW_FLOOR),
        ):
            profiles = [sequence_profile(query, scheme) for query in queries]
            for chosen in (profiles, profiles[-1:]):
                for floors in (None, [floor] * len(chosen)):
                    found, wanted = (engine.score(score_requests(chosen, floors), partition) for engine in (cuda, cpu))
                    for one, other in zip(found, wanted, strict=True):
                        compared += len(other)
                        same = np.array_equal(one.subject_index, other.subject_index)
                        different += int((one.score != other.score).sum()) if same else len(other)
            for profile in profiles:
                compared += len(partition)
                different += different_ends(cuda, profile, partition)
        n_paths, n_different = different_paths(device, rng)
    n_forward, n_others = different_forward_scores(rng)
    different += n_different + n_others
    print(f"{compared} scores and ends, {n_paths} paths and {n_forward} Forward scores compared, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

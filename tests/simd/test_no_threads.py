"""A system that starts fewer threads than requested, or none: the existing threads do the work.

This happens where memory or the number of processes is limited; in the test, a preloaded library refuses threads.
The expected values are the results with all threads.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REFUSING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
static int given;
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    static __typeof__(pthread_create) *real;
    if (!real) real = (__typeof__(pthread_create) *)dlsym(RTLD_NEXT, "pthread_create");
    const char *most = getenv("MOST_THREADS");
    if (most && given++ >= atoi(most)) return EAGAIN;
    return real(thread, attributes, start, argument);
}
"""

WORK = """
import os
import numpy as np
from swsearch.hits.traceback import LocalAligner
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cpu.pairs import CpuPairs
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, SequencePairs, Sequences
from swsearch.engine.protocol import ScoreRequest
from swsearch.query.profile import sequence_profile
from swsearch.search.frames import Frame
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN
from tests.support import random_protein

rng = np.random.default_rng(1)
query = random_protein(rng, 90)
partition = Partition.pack([random_protein(rng, n) for n in range(40, 400)])
profile = sequence_profile(query, default_scheme(PROTEIN))
(block,) = CpuEngine(3).score([ScoreRequest(profile)], partition)
found = LocalAligner(PROTEIN, n_threads=3).paths(Frame("plus", 0, query, profile), partition)
long = rng.integers(0, 4, 8000).astype(np.uint16)
problem = AlignmentProblem(True, FreeEnds.ALL, 5, 2, 2, -3)
pair = CpuPairs(3).align(SequencePairs.of([(long, long[90:])]), problem)
side = Sequences(long, np.arange(100, 8001, 100))
batch = CpuPairs(3).align(SequencePairs(side, side), problem)
cigars = sum(len(path.cigar) for several in found for path in several)
print(block.score.sum(), cigars, pair.ends.sum(), pair.runs.sum(), batch.ends.sum(), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("most", [0, 1, 2])
def test_work_is_done_by_the_threads_there_are(tmp_path: Path, most: int) -> None:
    """Expected values: the results with all threads."""
    source, library = tmp_path / "refusing.c", tmp_path / "refusing.so"
    source.write_text(REFUSING)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    plain = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    refused = {**plain, "LD_PRELOAD": str(library), "MOST_THREADS": str(most)}
    root = Path(__file__).parents[2]
    done = [
        subprocess.run(
            [sys.executable, "-c", WORK], cwd=root, env=variables, capture_output=True, text=True, check=False
        )
        for variables in (plain, refused)
    ]
    assert [one.returncode for one in done] == [0, 0], done[1].stderr
    assert done[1].stdout == done[0].stdout

"""The CUDA engine with profiles of more rows than letters, as composition correction makes them.

The expected scores are the reference engine's.
"""

import numpy as np

from swsearch.database.partition import Partition
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.query.composition import corrected_profile
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.scheme import GapPenalty
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice
from tests.engine.cuda.search.test_emulated_engine import assert_exact
from tests.support import random_codes


def test_corrected_scores_are_those_of_the_reference(emulated: type[EmulatedDevice]) -> None:
    """Source: the reference engine; every second query residue is one of two letters, so corrections are frequent."""
    rng = np.random.default_rng(21)
    queries = [random_codes(rng, length) for length in (90, 120)]
    for query in queries:
        query[::2] = 6 + 5 * (np.arange(len(query[::2])) % 2)
    subjects = [random_codes(rng, int(length)) for length in rng.integers(5, 90, 12)]
    subjects += [np.concatenate((subjects[0], query[10:70], subjects[1])) for query in queries]
    profiles = [corrected_profile(query, named_matrix("BLOSUM62"), GapPenalty(11, 1), 0.3176, 1.0) for query in queries]
    assert min(len(profile.table) for profile in profiles) > 32
    partition = Partition.pack(subjects)
    with CudaEngine(emulated(architecture=90)) as engine:
        assert_exact(engine, profiles, partition)

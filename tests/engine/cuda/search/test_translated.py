"""The CUDA engine on translated subjects, on the emulated device. The expected scores are the reference engine's."""

from pathlib import Path

import numpy as np

from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.database.translated_subjects import TranslatedSubjects
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.protocol import score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.genetic_code import genetic_code
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.engine.cuda.search.test_emulated_engine import assert_same
from tests.support import random_codes


def test_translated_subjects_are_scored_like_any(emulated: MakeDevice, tmp_path: Path) -> None:
    """Six frames of a mapped file, all resident on one device, are scored twice."""
    rng = np.random.default_rng(8)
    sequences = ["".join(rng.choice(list("ACGT"), size=size)) for size in (2, 9, 100, 301, 400)]
    (tmp_path / "dna.fasta").write_text("".join(f">s{n}\n{letters}\n" for n, letters in enumerate(sequences)))
    build_database([tmp_path / "dna.fasta"], tmp_path / "dna.db", alphabet=DNA)
    profile = sequence_profile(random_codes(rng, 60), default_scheme(PROTEIN))
    with open_database(tmp_path / "dna.db") as database, CudaEngine(emulated()) as engine:
        subjects = TranslatedSubjects(database, genetic_code(11))
        (partition,) = subjects.partitions()
        for _ in range(2):
            (found,) = engine.score(score_requests([profile]), partition)
            (expected,) = ReferenceEngine().score(score_requests([profile]), partition)
            assert_same([found], [expected])
            assert expected.score.max() > 0

"""Floors for ranges of subject lengths: large partitions are divided, and no hit depends on it.

Expected values: the same searches without the division, and the definition of the floor by E-values.
"""

from pathlib import Path

import numpy as np
import pytest

import swsearch
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.search import score_batches
from swsearch.search.score_batches import requests_by_length
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import LengthRange
from tests.support import random_protein
from tests.translated_data import index_both, planted, real_proteins


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(21)
    proteins = real_proteins(40, longest=200)
    queries = {"proteins": proteins[:6], "genes": planted(rng, proteins[:4])}
    subjects = {"proteins": proteins, "genes": [*planted(rng, proteins[:20], flank=9), ("codon", "ATG"), ("two", "AC")]}
    index_both(tmp_path, queries, subjects)
    return tmp_path


@pytest.mark.parametrize(
    ("query", "subject", "translate"),
    [
        ("proteins", "proteins", None),
        ("genes", "genes", None),
        ("proteins", "genes", "subject"),
        ("genes", "genes", "both"),
    ],
)
def test_divided_partitions_give_the_same_results(folder, monkeypatch, query, subject, translate):
    """All columns of all hits, with E-value cuts at which some subjects of each length are just reported."""

    def results(evalue: float) -> list[object]:
        options = swsearch.SearchOptions(translate=translate, evalue=evalue, top=1000)
        with swsearch.open_searcher(folder / f"{subject}.db", options, engine="cpu", threads=1) as searcher:
            queries = list(read_sequences(folder / f"{query}.queries.fasta", searcher.query_alphabet))
            return [(result.hits, result.n_passed) for result in searcher.search(queries)]

    evalues = (1e-10, 10.0, 1000.0)
    whole = [results(evalue) for evalue in evalues]
    for steps in ((64, 128, 256), tuple(range(1, 220, 20))):
        monkeypatch.setattr(score_batches, "LENGTH_STEPS", steps)
        assert [results(evalue) for evalue in evalues] == whole
    assert any(hits for hits, _ in whole[1])  # type: ignore[misc]


@pytest.mark.parametrize("engine", [CpuEngine(1), CpuEngine(2, band_rows=4, scores_per_call=100)])
def test_each_part_is_scored_with_the_floor_of_its_lengths(engine):
    """Expected values: all scores, each compared with the floor of its subject's range."""
    rng = np.random.default_rng(22)
    profiles = [sequence_profile(random_protein(rng, n), default_scheme(PROTEIN)) for n in (40, 90)]
    partition = Partition.pack([random_protein(rng, int(n)) for n in rng.integers(1, 400, 120)])
    asked: list[LengthRange] = []

    def min_scores(lengths: LengthRange | None = None) -> list[int]:
        if lengths is None:
            return [20, 25]
        asked.append(lengths)
        return [20 + lengths[0] // 32, 25]

    blocks = engine.score(requests_by_length(profiles, partition, min_scores), partition)
    lengths = partition.lengths
    groups = [lengths[lengths < 64], lengths[(lengths >= 64) & (lengths < 128)]]
    groups += [lengths[(lengths >= 128) & (lengths < 256)], lengths[lengths >= 256]]
    assert asked == [(group.min(), group.max()) for group in groups]
    needed = np.concatenate([np.full(len(group), 20 + group.min() // 32) for group in groups])
    for block, floor, every in zip(
        blocks, (needed, 25), ReferenceEngine().score(score_requests(profiles), partition), strict=True
    ):
        np.testing.assert_array_equal(block.subject_index, every.subject_index[every.score >= floor])
        np.testing.assert_array_equal(block.score, every.score[every.score >= floor])

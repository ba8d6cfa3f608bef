"""The calls of an engine: how queries are divided among them, and the floors for ranges of subject lengths."""

from collections.abc import Sequence

import numpy as np
import pytest

from swsearch.database.opening import open_database
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import ScoreRequest, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.search.options import SearchOptions
from swsearch.search.score_batches import requests_by_length
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import sequence
from swsearch.typing import LengthRange, Progress
from tests.support import indexed, random_protein

PROTEINS = [("a", "MKVLAAGIVGLLLAQWERTYHHWW"), ("b", "MKWVTFISLLFLFSSAYSPEPTIDE"), ("c", "WWHHKKLLMMNNPPQQRRSSTTVVWW")]


class WatchedEngine(ReferenceEngine):
    """The reference engine with its own limits; it records the number of positions of each call's profiles.

    ``n_pairs`` is the number of pairs that it has scored.
    """

    def __init__(self, profiles_per_call: int, rows_per_call: int) -> None:
        super().__init__()
        self.profiles_per_call = profiles_per_call
        self.rows_per_call = rows_per_call
        self.calls: list[list[int]] = []
        self.n_pairs = 0

    def score(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> list[ScoreBlock]:
        self.calls.append([request.profile.length for request in requests])
        self.n_pairs += len(requests) * len(partition)
        return super().score(requests, partition, progress)


@pytest.mark.parametrize(
    ("profiles_per_call", "rows_per_call", "calls"),
    [
        (1, 1000, [[5], [9], [30], [4], [4], [3]]),
        (3, 1000, [[5, 9, 30], [4, 4, 3]]),
        (16, 14, [[5, 9], [30], [4, 4, 3]]),
        (16, 7, [[5], [9], [30], [4], [4, 3]]),
        (16, 1000, [[5, 9, 30, 4, 4, 3]]),
    ],
)
def test_queries_are_scored_together_within_the_engines_limits(tmp_path, profiles_per_call, rows_per_call, calls):
    """The expected calls are written by hand; the hits are those of queries that are searched one by one."""
    path = indexed(tmp_path / "proteins.db", PROTEINS)
    letters = ["MKVLA", "WVTFISLLF", "MKVLAAGIVGLLLAQWERTYHHWWKKLLMM", "PEPT", "WWHH", "LLF"]
    queries = [sequence(text, "protein", header=str(i)) for i, text in enumerate(letters)]
    with open_database(path) as database:
        options = SearchOptions(evalue=1e6)
        engine = WatchedEngine(profiles_per_call, rows_per_call)
        found = list(Searcher(database, engine, options).search(queries))
        assert engine.calls == calls
        alone = [next(Searcher(database, ReferenceEngine(), options).search([query])) for query in queries]
    assert [result.number for result in found] == list(range(6))
    assert [result.hits for result in found] == [result.hits for result in alone]
    assert any(result.hits for result in found)


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

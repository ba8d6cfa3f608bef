"""The division of queries among calls of an engine: within the engine's limits, and with the same hits.

The expected calls are written by hand; the expected hits are those of single queries.
"""

from collections.abc import Sequence

import pytest

from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.database.partition import Partition
from swsearch.engine.protocol import ScoreRequest
from swsearch.engine.reference import ReferenceEngine
from swsearch.hits.score_block import ScoreBlock
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.record import sequence
from swsearch.typing import Progress

PROTEINS = ">a\nMKVLAAGIVGLLLAQWERTYHHWW\n>b\nMKWVTFISLLFLFSSAYSPEPTIDE\n>c\nWWHHKKLLMMNNPPQQRRSSTTVVWW\n"


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
    (tmp_path / "proteins.fasta").write_text(PROTEINS)
    build_database([tmp_path / "proteins.fasta"], tmp_path / "proteins.db")
    letters = ["MKVLA", "WVTFISLLF", "MKVLAAGIVGLLLAQWERTYHHWWKKLLMM", "PEPT", "WWHH", "LLF"]
    queries = [sequence(text, "protein", header=str(i)) for i, text in enumerate(letters)]
    with open_database(tmp_path / "proteins.db") as database:
        options = SearchOptions(evalue=1e6)
        engine = WatchedEngine(profiles_per_call, rows_per_call)
        found = list(Searcher(database, engine, options).search(queries))
        assert engine.calls == calls
        alone = [next(Searcher(database, ReferenceEngine(), options).search([query])) for query in queries]
    assert [result.number for result in found] == list(range(6))
    assert [result.hits for result in found] == [result.hits for result in alone]
    assert any(result.hits for result in found)

"""The initial threshold of searches without an E-value limit: it changes no result, and engines are given floors.

Expected values: the same searches without the initial threshold, and the scores of the reference engine.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from swsearch.database.opening import open_database
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.search import search_subjects, threshold
from swsearch.search.search_subjects import SearchSubjects
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import DNA, PAD_CODE, PROTEIN
from swsearch.sequences.fasta import read_sequences
from tests.support import random_codes, random_protein
from tests.translated_data import index_both, planted, real_proteins

N_SUBJECTS = 260
NEVER = 10**9
"""Subjects per expected hit that no database here has."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databases of proteins and of DNA, most of them unrelated to the queries; some score 0, which no cut passes."""
    rng = np.random.default_rng(31)
    path = tmp_path_factory.mktemp("provisional")
    proteins = real_proteins(20, longest=120)
    others = [
        (f"other_{n}", PROTEIN.decode(random_protein(rng, int(length))))
        for n, length in enumerate(rng.integers(1, 200, N_SUBJECTS))
    ]
    genes = planted(rng, proteins[:12])
    bases = [
        (f"dna_{n}", DNA.decode(random_codes(rng, int(length), 4)))
        for n, length in enumerate(rng.integers(1, 300, N_SUBJECTS))
    ]
    queries = {"proteins": [*proteins[:4], ("short", "WWCW")], "genes": genes[:4]}
    subjects = {"proteins": [*proteins, *others, ("unknown", "X" * 4)], "genes": [*genes, *bases, ("unknown", "N" * 3)]}
    index_both(path, queries, subjects)
    return path


class Recorder(CpuEngine):
    """Records the lowest floor of each profile of each call."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.floors: list[int] = []

    def score(self, requests: Any, partition: Any, progress: Any = None) -> Any:
        for request in requests:
            self.floors.append(min([request.floor, *(floor for _, floor in request.floors_by_length)]))
        return super().score(requests, partition, progress)


def search(folder: Path, query: str, subject: str, **options: Any) -> tuple[list[object], list[int]]:
    """All columns of all hits with the number of subjects that passed, and the floors that the engine was given."""
    chosen = swsearch.SearchOptions(evalue=math.inf, **options)
    with Recorder(1) as engine, open_database(folder / f"{subject}.db") as database:
        searcher = Searcher(database, engine, chosen)
        queries = list(read_sequences(folder / f"{query}.queries.fasta", searcher.query_alphabet))
        results = [(result.hits, result.n_passed) for result in searcher.search(queries)]
    return results, engine.floors


Found = tuple[list[object], list[int]]


def without_and_with_cut(
    folder: Path, monkeypatch: pytest.MonkeyPatch, query: str, subject: str, **options: Any
) -> tuple[Found, Found]:
    """The results and floors of a search that may not have an initial threshold, and of one that may."""
    monkeypatch.setattr(threshold, "SMALLEST_SHARE", NEVER)
    without = search(folder, query, subject, **options)
    monkeypatch.setattr(threshold, "SMALLEST_SHARE", 1)
    return without, search(folder, query, subject, **options)


@pytest.mark.parametrize(
    ("query", "subject", "options"),
    [
        ("proteins", "proteins", {}),
        ("proteins", "proteins", {"max_hsps": 3}),
        ("genes", "genes", {}),
        ("genes", "proteins", {"translate": "query"}),
        ("proteins", "genes", {"translate": "subject"}),
        ("genes", "genes", {"translate": "both"}),
    ],
    ids=["protein", "several alignments", "both strands", "six frames", "translated subjects", "both translated"],
)
def test_results_are_those_of_a_search_of_all_scores(folder, monkeypatch, query, subject, options):
    """The short query finds too few subjects. The lists themselves are tested by ``test_complete_lists.py``."""
    options = {**options, "top": 7, "composition": "none"}
    (expected, lowest), (found, floors) = without_and_with_cut(folder, monkeypatch, query, subject, **options)
    assert set(lowest) == {1}
    assert found == expected
    assert floors.count(1) <= 1


def test_a_query_that_finds_too_few_is_scored_again(folder, monkeypatch):
    """A cut that few subjects pass, and none of some queries: those have two floors, one of them 1."""
    monkeypatch.setattr(threshold, "SMALLEST_SHARE", NEVER)
    expected, _ = search(folder, "proteins", "proteins", top=12)
    monkeypatch.setattr(threshold, "SMALLEST_SHARE", 1)
    monkeypatch.setattr(threshold, "expected_hits", lambda _: 1e-3)
    found, floors = search(folder, "proteins", "proteins", top=12)
    assert found == expected
    assert floors.count(1) == len(found)  # no query has 12 related subjects
    assert len(floors) == 2 * len(found)


@pytest.mark.parametrize("options", [{"dbsize": 10**10}, {"dbsize": 10_000}, {"id_pattern": "other_.*[1-7]$"}], ids=str)
def test_e_values_of_another_search_space_change_no_floor(folder, monkeypatch, options):
    """The number of subjects that pass depends on the residues that are searched; few queries are scored again."""
    (expected, _), (found, floors) = without_and_with_cut(folder, monkeypatch, "proteins", "proteins", top=9, **options)
    assert found == expected
    assert floors.count(1) <= 1  # the short query


def test_the_lowest_score_that_is_listed_is_the_floor_of_the_engine(folder, monkeypatch):
    """There is no initial threshold beside it: without all scores, the number of subjects that pass is not known."""
    without, with_cut = without_and_with_cut(folder, monkeypatch, "proteins", "proteins", top=3, min_score=20)
    assert with_cut == without
    assert set(without[1]) == {20}


def counting(folder: Path, partitions: list[Partition]) -> SearchSubjects:
    """The subjects of a search whose partitions are these."""
    with open_database(folder / "proteins.db") as database:
        subjects = SearchSubjects(database, swsearch.SearchOptions())
    subjects.partitions = partitions
    return subjects


def test_subjects_that_score_are_counted(folder):
    """Expected values: the reference engine's scores. Subjects of few letters, some with the only match far inside."""
    rng = np.random.default_rng(32)
    letters = [rng.choice(23, size=rng.integers(1, 4), replace=False) for _ in range(300)]
    subjects = [rng.choice(few, size=rng.integers(1, 60)).astype(np.uint8) for few in letters]
    for subject in subjects[::3]:
        subject[: rng.integers(0, len(subject) + 1)] = PAD_CODE - 1
    partition = Partition.pack(subjects)
    counter = counting(folder, [partition[:100], partition[100:]])
    scheme = default_scheme(PROTEIN)
    for _ in range(30):
        profiles = [sequence_profile(rng.integers(0, 22, length).astype(np.uint8), scheme) for length in (1, 2)]
        scores = [ReferenceEngine().score(score_requests([profile]), partition)[0].score for profile in profiles]
        assert counter.n_positive(profiles) == int((np.maximum(*scores) >= 1).sum())
        assert counter.n_positive(profiles[:1]) == int((scores[0] >= 1).sum())


def test_queries_with_the_same_letters_are_counted_once(folder, monkeypatch):
    counted: list[int] = []
    really = search_subjects._containing
    monkeypatch.setattr(search_subjects, "_containing", lambda *given: counted.append(1) or really(*given))
    counter = counting(folder, [Partition.pack([np.array([0, 1], np.uint8)])])
    scheme = default_scheme(PROTEIN)
    profiles: list[QueryProfile] = [sequence_profile(np.array(codes, np.uint8), scheme) for codes in ([0], [0, 0], [4])]
    assert [counter.n_positive([profile]) for profile in profiles] == [1, 1, 0]
    assert len(counted) == 2


def test_a_small_database_has_no_initial_threshold(folder):
    """By hand: 8 times (4 * 2 + 20) is 224 subjects, and 8 times (4 * 4 + 20) is 288; there are 281."""
    assert 1 not in search(folder, "proteins", "proteins", top=2)[1][:4]
    assert set(search(folder, "proteins", "proteins", top=4)[1]) == {1}

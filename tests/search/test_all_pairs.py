"""All sequences of a database against all others: each pair once, with the result of the longer one's search.

Expected values: searches of the same databases with their sequences as ordinary queries, and Biopython's aligner.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from Bio import Align
from Bio.Align import substitution_matrices

import swsearch
from swsearch.database.partition import Partition
from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.options import EVERY_SUBJECT
from swsearch.query.profile import SubjectRecord
from swsearch.search.options import SearchOptions
from swsearch.search.queries import SubjectQueries
from swsearch.search.search_subjects import STEPS, SearchSubjects
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import PROTEIN
from tests.search.test_searcher import WatchedEngine
from tests.sliced_databases import sliced_databases
from tests.support import indexed, random_codes

Pairs = list[tuple[str, Hit]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databases of several segments or slices, with removed subjects and equal sequences."""
    return sliced_databases(tmp_path_factory.mktemp("databases"))


def all_pairs(database: Path, options: SearchOptions, **machine: Any) -> Pairs:
    """The pairs in the order in which they are reported, without the rank of a subject in the list of its query."""
    with swsearch.all_pairs(database, options, **machine) as results:
        return [(result.header, replace(hit, rank=1)) for result in results for hit in result.hits]


def of_the_longer(database: Path, options: SearchOptions, chosen: Callable[[str], bool] = lambda _: True) -> Pairs:
    """The hits of searches with all sequences as queries, without those of the sequence itself and of longer ones."""
    found = []
    with swsearch.open_database(database) as opened:
        places = {index: (opened.length(index), index) for index in range(len(opened))}
        queries = [(index, opened.record(index)) for index in range(len(opened)) if chosen(opened.header(index))]
    queries.sort(key=lambda query: places[query[0]], reverse=True)
    results = swsearch.search_database([record for _, record in queries], database, options)
    for (index, _), result in zip(queries, results, strict=True):
        hits = (replace(hit, rank=1) for hit in result.hits)
        found += [(result.header, hit) for hit in hits if places[hit.subject_index] < places[index]]
    return found


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("proteins", {"max_length": 150}),
        ("dealt_proteins", {"max_length": 130, "composition": "bias", "min_identity": 25}),
        ("dealt_proteins", {"max_length": 120, "mask": "tantan", "evalue": 100, "max_hsps": 2}),
        pytest.param("dealt_bases", {"evalue": 1e-6, "min_score": 20}, marks=pytest.mark.thorough),
    ],
)
def test_pairs_are_the_hits_of_the_longer_sequence(folder, name, options):
    """Source: searches with the same sequences; among the pairs are copies in other segments, and equal lengths."""
    asked = SearchOptions(**{"top": EVERY_SUBJECT, "evalue": 0.001, **options})
    with swsearch.open_database(folder / f"{name}.db") as opened:
        short = {opened.header(i) for i in range(len(opened)) if opened.length(i) <= options.get("max_length", 1e9)}
    expected = of_the_longer(folder / f"{name}.db", asked, short.__contains__)
    assert len(expected) > 10
    assert "max_length" in options or any(header.endswith(hit.subject_header) for header, hit in expected)
    for machine in ({"threads": 1}, {"threads": 3}):
        assert all_pairs(folder / f"{name}.db", asked, engine="cpu", **machine) == expected


def test_the_reference_engine_finds_the_same_pairs(folder):
    """Source: the CPU engine."""
    options = SearchOptions(top=EVERY_SUBJECT, evalue=0.1, max_length=120)
    found = all_pairs(folder / "dealt_proteins.db", options, engine="reference")
    assert found == all_pairs(folder / "dealt_proteins.db", options, engine="cpu")
    assert len(found) > 3


def test_every_pair_has_the_score_of_an_independent_aligner(tmp_path):
    """Source: Biopython's PairwiseAligner; without an E-value cut, every pair with a score above 0 is reported."""
    rng = np.random.default_rng(11)
    letters = [PROTEIN.decode(random_codes(rng, int(length))) for length in (12, 30, 30, 30, 5, 44, 30, 1, 44)]
    indexed(tmp_path / "some.db", numbered(letters))
    aligner = Align.PairwiseAligner(mode="local", substitution_matrix=substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -12, -1
    expected = {
        (str(max(i, j, key=lambda k: (len(letters[k]), k))), str(min(i, j, key=lambda k: (len(letters[k]), k)))): score
        for i, j in itertools.combinations(range(len(letters)), 2)
        if (score := aligner.score(letters[i], letters[j])) > 0
    }
    found = all_pairs(tmp_path / "some.db", SearchOptions(top=EVERY_SUBJECT, evalue=float("inf"), composition="none"))
    assert {(header, hit.subject_id): hit.score for header, hit in found} == expected
    assert len(found) == len(expected) > 25


def test_equally_long_sequences_are_compared_once_and_none_with_itself(tmp_path):
    """Source: the rule that the later sequence is the query."""
    database = indexed(tmp_path / "some.db", numbered(["MKVLAAGIVGLLLAQWERTY"] * 5))
    found = all_pairs(database, SearchOptions(top=EVERY_SUBJECT, evalue=1.0))
    assert [(header, hit.subject_id) for header, hit in found] == [
        (str(query), str(subject)) for query in (4, 3, 2, 1, 0) for subject in range(query)
    ]


def test_filters_choose_the_sequences_on_both_sides(folder, tmp_path):
    """Source: a database of the chosen sequences alone, with the size of the whole one."""
    with swsearch.open_database(folder / "proteins.db") as opened:
        chosen = [record for record in opened if record.identifier.startswith("tr") and 100 <= len(record) <= 180]
        size = opened.n_residues
    indexed(tmp_path / "chosen.db", [(one.header, one.letters) for one in chosen])
    options = SearchOptions(top=EVERY_SUBJECT, evalue=1.0, dbsize=size)
    filtered = replace(options, id_pattern="^tr", min_length=100, max_length=180)
    found = all_pairs(folder / "proteins.db", filtered)
    expected = all_pairs(tmp_path / "chosen.db", options)
    assert [(header, replace(hit, subject_index=0)) for header, hit in found] == [
        (header, replace(hit, subject_index=0)) for header, hit in expected
    ]
    assert len(found) > 20


def test_hardly_any_pair_is_scored_twice(tmp_path):
    """Source: n (n - 1) / 2 pairs; a batch of three queries and a cut to 128 lengths add three subjects a query.

    The progress and the cost of the results are those of the pairs alone.
    """
    rng = np.random.default_rng(3)
    lengths = [int(length) for length in rng.integers(3, 9, STEPS)]
    indexed(tmp_path / "some.db", numbered(PROTEIN.decode(random_codes(rng, length)) for length in lengths))
    done: list[int] = []
    with swsearch.open_database(tmp_path / "some.db") as database, WatchedEngine(3, 2**20) as engine:
        searcher = Searcher(database, engine, SearchOptions(top=EVERY_SUBJECT))
        queries = SubjectQueries.of(searcher)
        results = list(searcher.search(queries.records(searcher), done.append))
        n_pairs = STEPS * (STEPS - 1) // 2
        assert n_pairs <= engine.n_pairs <= n_pairs + 3 * STEPS
    n_cells = (sum(lengths) ** 2 - sum(length**2 for length in lengths)) // 2
    assert sum(done) == sum(result.stats.cells for result in results) == n_cells


def test_partitions_have_the_subjects_before_a_query_and_few_others(folder):
    """Source: the definition of the order. Equal cuts are the same objects, by which engines recognise them."""
    rng = np.random.default_rng(8)
    partition = Partition.pack([random_codes(rng, int(length)) for length in rng.integers(1, 40, 700)])
    with swsearch.open_database(folder / "proteins.db") as database:
        subjects = SearchSubjects(database, SearchOptions())
    subjects.distinct = [partition[:0], partition]
    cuts = set()
    for row in range(len(partition)):
        query = SubjectRecord("", partition.codes(row), PROTEIN, int(partition.subject_index[row]))
        found = subjects.before([query])
        n_rows = len(found[0]) if found else 0
        assert row <= n_rows < row + 700 / STEPS + 1
        cuts.update(map(id, found))
    assert len(cuts) <= STEPS


@pytest.mark.parametrize("options", [{"translate": "both"}, {"iterations": 2}, {"sensitive": True}])
def test_searches_that_treat_both_sides_differently_are_refused(folder, options):
    (refused,) = options
    name = "bases" if refused == "translate" else "proteins"
    with pytest.raises(InputError, match=f"{refused}=.*: all against all"):
        swsearch.all_pairs(folder / f"{name}.db", SearchOptions(**options))


def numbered(letters: Iterable[str]) -> list[tuple[str, str]]:
    """Sequences that are named by their numbers."""
    return [(str(number), one) for number, one in enumerate(letters)]

"""Sensitive searches: candidates by context columns, and E-values by Forward scores.

Expected values: the formulas of docs/design/sensitivity.md with the kernels of the columns, which have tests of their
own; and invented relatives. That engines, slices and several databases give the same bytes is tested with the other
options (``test_slices.py``, ``test_joined_databases.py``).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from swsearch.errors import InputError, ScoringError
from swsearch.hits.result import QueryResult
from swsearch.query.columns import column_model
from swsearch.query.profile import PositionSpecificQuery
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import open_searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from tests.sliced_databases import DATA, records_of
from tests.support import random_protein

QUERIES = [(header.split()[0], letters[:250]) for header, letters in records_of(DATA / "queries.fasta")][:3]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some natural proteins, and repeats of a few residues, which are in a query and in subjects."""
    folder = tmp_path_factory.mktemp("sensitive")
    rng = np.random.default_rng(8)
    records = list(records_of(DATA / "proteins.fasta.gz"))[:150]
    flanks = [PROTEIN.decode(random_protein(rng, 60)) for _ in range(6)]
    records += [(f"repeat{number}", flank + "EKKEEAKKA" * 12 + flank[::-1]) for number, flank in enumerate(flanks)]
    (folder / "s.fasta").write_text("".join(f">{header}\n{letters}\n" for header, letters in records))
    swsearch.build_database(folder / "s.fasta", folder / "s.db")
    return folder / "s.db"


def found(database: Path, queries: list[tuple[str, str]], threads: int = 1, **chosen: Any) -> list[QueryResult]:
    options = SearchOptions(sensitive=True, **chosen)
    with open_searcher(database, options, engine="cpu", threads=threads) as searcher:
        return list(searcher.search([swsearch.sequence(letters, "protein", header=name) for name, letters in queries]))


def expected_evalues(letters: str, database: swsearch.PackedDatabase, space: float) -> list[float]:
    """The E-value of every subject, by the formula."""
    model = column_model()
    columns = model.query_columns(PROTEIN.encode(letters))

    def excess(turned: np.ndarray, codes: np.ndarray) -> float:
        place = np.zeros(1, np.uint64), np.array([len(codes)], np.uint32)
        return float(model.forward(turned, codes, *place)[0]) - math.log(len(codes))

    decoys = np.split(model.decoys, model.decoy_ends[:-1])
    usual = sorted(excess(columns, codes) for codes in decoys)[128] + math.log(math.log(2)) / 0.9
    evalues = []
    for record in database:
        forward, turned = excess(columns, record.codes), excess(columns[::-1], record.codes)
        evalues.append(space / 350 * math.exp(-0.9 * min(forward - usual, forward - turned + 2)))
    return evalues


@pytest.mark.parametrize("dbsize", [None, 10**8])
def test_evalues_are_those_of_forward_scores(database: Path, dbsize: int | None) -> None:
    """All subjects are candidates in so small a database, so each with a small E-value is listed, in this order."""
    with swsearch.open_database(database) as subjects:
        for (_, letters), result in zip(QUERIES, found(database, QUERIES, dbsize=dbsize), strict=True):
            expected = expected_evalues(letters, subjects, dbsize or subjects.n_residues)
            listed = {hit.subject_index: hit.evalue for hit in result.hits}
            assert result.n_passed == len(listed) == sum(evalue <= 10 for evalue in expected) > 1
            for subject, evalue in listed.items():
                assert evalue == pytest.approx(expected[subject], rel=1e-9)
            assert list(listed.values()) == sorted(listed.values())


def test_threads_and_lists_do_not_change_what_is_found(database: Path) -> None:
    whole = found(database, QUERIES)
    assert [one.hits for one in found(database, QUERIES, threads=3)] == [one.hits for one in whole]
    assert [one.hits for one in found(database, QUERIES, top=2)] == [one.hits[:2] for one in whole]
    small = found(database, QUERIES, evalue=1e-4)
    assert [one.hits for one in small] == [tuple(hit for hit in one.hits if hit.evalue <= 1e-4) for one in whole]


def test_scores_are_those_of_the_columns_as_a_profile(database: Path) -> None:
    """Expected value: a search with the scores of the query's columns, without ``sensitive``."""
    codes = PROTEIN.encode(QUERIES[1][1])
    with open_searcher(database, SearchOptions(evalue=1000), engine="cpu", threads=1) as searcher:
        profile = column_model().query(QUERIES[1][0], codes, searcher.scheme.matrix)
        assert isinstance(profile, PositionSpecificQuery)
        (plain,) = searcher.search([profile])
    (result,) = found(database, [QUERIES[1]])
    of_profile = {hit.subject_index: (hit.score, hit.bits, hit.alignment) for hit in plain.hits}
    assert len(result.hits) > 1
    assert all(of_profile[hit.subject_index] == (hit.score, hit.bits, hit.alignment) for hit in result.hits)
    assert result.pssm is not None
    assert plain.pssm is not None
    assert np.array_equal(result.pssm.scores, plain.pssm.scores)


def test_repeats_in_common_are_no_relation(database: Path) -> None:
    """The same repeat in unrelated proteins has a score that only a relative would have, and Forward's is larger."""
    rng = np.random.default_rng(9)
    query = ("repeats", PROTEIN.decode(random_protein(rng, 80)) + "EKKEEAKKA" * 12)
    (plain,) = swsearch.search_database(
        [swsearch.sequence(query[1], "protein")], database, SearchOptions(composition="none"), engine="cpu"
    )
    assert sum("repeat" in hit.subject_id and hit.evalue < 1e-20 for hit in plain.hits) == 6
    (result,) = found(database, [query], evalue=1000)
    of_repeats = [hit.evalue for hit in result.hits if "repeat" in hit.subject_id]
    assert min(of_repeats, default=1000) > 0.001


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"iterations": 2}, "iterations=2 and sensitive=True exclude each other"),
        ({"translate": "query"}, "translate='query' and sensitive=True exclude each other"),
        ({"mask": "tantan"}, "mask='tantan' and sensitive=True exclude each other"),
        ({"composition": "bias"}, "composition='bias' and sensitive=True exclude each other"),
        ({"max_hsps": 2}, "max_hsps=2: sensitive=True lists one alignment of a subject"),
    ],
)
def test_what_has_no_meaning_together_is_refused(chosen: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        SearchOptions(sensitive=True, **chosen)


def test_queries_with_scores_dna_and_matrices_without_a_scale_are_refused(database: Path, tmp_path: Path) -> None:
    codes = PROTEIN.encode(QUERIES[0][1])
    with open_searcher(database, SearchOptions(sensitive=True), engine="cpu", threads=1) as searcher:
        profile = column_model().query("profile", codes, searcher.scheme.matrix)
        with pytest.raises(InputError, match="profile has position-specific scores; leave out sensitive"):
            list(searcher.search([profile]))
        (plain,) = searcher.search([SequenceRecord("plain", codes, PROTEIN)])
        assert plain.hits
    (tmp_path / "dna.fasta").write_text(">d\nACGTTGCAACGTGGTACCAT\n")
    swsearch.build_database(tmp_path / "dna.fasta", tmp_path / "dna.db")
    with pytest.raises(InputError, match="sensitive=True is for proteins, not for dna"):
        found(tmp_path / "dna.db", QUERIES)
    letters = "ARNDCQEGHILKMFPSTWYV"
    rows = [" ".join(["", *letters]), *(f"{one} " + " ".join(["1"] * 20) for one in letters)]
    (tmp_path / "flat.txt").write_text("\n".join(rows) + "\n")
    with pytest.raises((InputError, ScoringError), match="sensitive=True: "):
        found(database, QUERIES, matrix=str(tmp_path / "flat.txt"))

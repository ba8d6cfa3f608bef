"""Sensitive searches: candidates by context columns, and E-values by Forward scores.

Expected values: the formulas of docs/design/sensitivity.md with the kernels of the columns, which have tests of their
own; and invented relatives. That engines, slices and several databases give the same bytes is tested with the other
options (``test_slices.py``, ``test_joined_databases.py``).
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from swsearch.database.reader import PackedDatabase
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.errors import InputError, ScoringError
from swsearch.hits.result import QueryResult
from swsearch.query.columns import implied_model
from swsearch.query.composition import ProfileAdjustment
from swsearch.query.contexts import program_contexts
from swsearch.query.estimation import estimated_query
from swsearch.query.multiple_alignment import anchored_rows
from swsearch.query.profile import PositionSpecificQuery
from swsearch.query.profile_files import read_profiles
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.published_parameters import find_statistics
from swsearch.scoring.scheme import default_scheme
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher, open_searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from tests.search.complete_lists import forward_evalues
from tests.sliced_databases import DATA, records_of
from tests.support import coded, indexed, random_protein

BLOSUM62 = named_matrix("BLOSUM62")
QUERIES = [(header.split()[0], letters[:250]) for header, letters in records_of(DATA / "queries.fasta")][:3]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some natural proteins, and repeats of a few residues, which are in a query and in subjects."""
    folder = tmp_path_factory.mktemp("sensitive")
    rng = np.random.default_rng(8)
    records = list(records_of(DATA / "proteins.fasta.gz"))[:150]
    flanks = [PROTEIN.decode(random_protein(rng, 60)) for _ in range(6)]
    records += [(f"repeat{number}", flank + "EKKEEAKKA" * 12 + flank[::-1]) for number, flank in enumerate(flanks)]
    return indexed(folder / "s.db", records)


def found(database: Path, queries: list[tuple[str, str]], threads: int = 1, **chosen: Any) -> list[QueryResult]:
    options = SearchOptions(sensitive=True, **chosen)
    with open_searcher(database, options, engine="cpu", threads=threads) as searcher:
        return list(searcher.search([swsearch.sequence(letters, "protein", header=name) for name, letters in queries]))


def by_context(letters: str, options: SearchOptions | None = None) -> PositionSpecificQuery:
    """A query with the scores that its context implies."""
    record = SequenceRecord("profile", PROTEIN.encode(letters), PROTEIN)
    library = program_contexts() if options is None else options.context_library()
    return estimated_query(record, np.empty((0, len(letters)), np.uint8), BLOSUM62, contexts=library)


def unadjusted(query: PositionSpecificQuery, database: PackedDatabase, space: int) -> tuple[list[float], list[float]]:
    """The E-value of every subject before its adjustment for composition, by the formula; and its Forward bits.

    E-values of scores are those of a search without ``sensitive``, which has tests of its own.
    """
    options = SearchOptions(evalue=math.inf, top=len(database), dbsize=space)
    with CpuEngine(1) as engine:
        (plain,) = Searcher(database, engine, options).search([query])
    of_scores = {hit.subject_index: hit.evalue or 0.0 for hit in plain.hits}
    given = [of_scores[subject] for subject in range(len(database))]
    subjects = [record.codes for record in database]
    evalues, forward_bits = forward_evalues(query, default_scheme(PROTEIN), subjects, given, space)
    return evalues.tolist(), forward_bits.tolist()


@pytest.mark.parametrize("dbsize", [None, 10**8])
def test_evalues_are_those_of_forward_scores(database, dbsize):
    """All subjects are candidates in so small a database, so each with a small E-value is listed, in this order."""
    with swsearch.open_database(database) as subjects:
        farther = found(database, QUERIES, dbsize=dbsize, evalue=1e9, top=1000)
        results = found(database, QUERIES, dbsize=dbsize)
        for (_, letters), result, all_hits in zip(QUERIES, results, farther, strict=True):
            query = by_context(letters)
            evalues, forward_bits = unadjusted(query, subjects, dbsize or subjects.n_residues)
            expected = adjusted(query, all_hits, evalues)
            assert len(all_hits.hits) > 100
            assert all(hit.forward_bits == forward_bits[hit.subject_index] for hit in all_hits.hits)
            listed = {hit.subject_index: hit.evalue for hit in result.hits}
            assert listed.keys() == {subject for subject, evalue in expected.items() if evalue <= 10}
            assert len(listed) > 1
            for subject, evalue in listed.items():
                assert evalue == pytest.approx(expected[subject], rel=1e-9)
            assert list(listed.values()) == sorted(listed.values())


def adjusted(query: PositionSpecificQuery, result: QueryResult, evalues: list[float]) -> dict[int, float]:
    """The E-values of subjects, adjusted for the composition of their alignments (tests/query)."""
    adjustment = ProfileAdjustment.of(query, BLOSUM62, find_statistics(default_scheme(PROTEIN)))
    assert adjustment is not None
    parts = coded(hit.alignment.subject_letters for hit in result.hits)
    before = np.array([evalues[hit.subject_index] for hit in result.hits])
    scores = np.array([hit.score for hit in result.hits], dtype=np.int32)
    changed = adjustment.adjusted(before, scores, parts, parts)
    if not query.has_relatives:
        changed = np.sqrt(before * changed)
    return {hit.subject_index: evalue for hit, evalue in zip(result.hits, changed.tolist(), strict=True)}


def test_threads_and_lists_do_not_change_what_is_found(database):
    whole = found(database, QUERIES)
    assert [one.hits for one in found(database, QUERIES, threads=3)] == [one.hits for one in whole]
    assert [one.hits for one in found(database, QUERIES, top=2)] == [one.hits[:2] for one in whole]
    small = found(database, QUERIES, evalue=1e-4)
    assert [one.hits for one in small] == [tuple(hit for hit in one.hits if hit.evalue <= 1e-4) for one in whole]


@pytest.mark.parametrize("chosen", [{}, {"contexts": DATA / "contexts.lib"}])
def test_scores_are_those_of_the_columns_as_a_profile(database, chosen):
    """Expected value: a search with the scores of the query's columns, without ``sensitive``."""
    query = by_context(QUERIES[1][1], SearchOptions(sensitive=True, **chosen))
    with open_searcher(database, SearchOptions(evalue=1e9, top=1000), engine="cpu", threads=1) as searcher:
        (plain,) = searcher.search([query])
    (result,) = found(database, [QUERIES[1]], evalue=100, **chosen)
    assert (query.pssm == by_context(QUERIES[1][1]).pssm) == (not chosen)
    of_profile = {hit.subject_index: (hit.score, hit.bits, hit.alignment) for hit in plain.hits}
    assert len(result.hits) > 1
    assert all(of_profile[hit.subject_index] == (hit.score, hit.bits, hit.alignment) for hit in result.hits)
    assert result.pssm is not None
    assert plain.pssm is not None
    assert np.array_equal(result.pssm.scores, plain.pssm.scores)


def test_repeats_in_common_are_no_relation(database):
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
        ({"translate": "query"}, "translate='query' and sensitive=True exclude each other"),
        ({"mask": "tantan"}, "mask='tantan' and sensitive=True exclude each other"),
        ({"composition": "bias"}, "composition='bias' and sensitive=True exclude each other"),
        ({"composition": "none"}, "composition='none' and sensitive=True exclude each other"),
        ({"contexts": "x.lib", "sensitive": False}, "contexts='x.lib' is for sensitive=True; give both"),
        ({"max_hsps": 2}, "max_hsps=2: sensitive=True lists one alignment of a subject"),
    ],
)
def test_what_has_no_meaning_together_is_refused(chosen, problem):
    with pytest.raises(InputError, match=problem):
        SearchOptions(**{"sensitive": True, **chosen})


def test_an_alignment_of_one_sequence_finds_the_same_as_the_sequence(database, tmp_path):
    name, letters = QUERIES[0]
    (tmp_path / "one.sto").write_text(f"# STOCKHOLM 1.0\n#=GF ID {name}\n{name} {letters}\n//\n")
    options = SearchOptions(sensitive=True)
    (of_alignment,) = swsearch.search_database(tmp_path / "one.sto", database, options)
    (of_sequence,) = found(database, QUERIES[:1])
    assert len(of_sequence.hits) > 1
    assert [replace(hit, query_header=of_sequence.header) for hit in of_alignment.hits] == list(of_sequence.hits)


@pytest.mark.parametrize("is_model", [False, True])
def test_contexts_decide_about_the_profile_of_an_alignment(database, is_model):
    """Its scores are those of the alignment's rows by contexts, and its subjects are judged by Forward scores."""
    (query,) = read_profiles(DATA / "obg.sto", "stockholm", BLOSUM62, contexts=program_contexts())
    (by_matrix,) = read_profiles(DATA / "obg.sto", "stockholm", BLOSUM62)
    if is_model:
        query = replace(query, model=implied_model(query, BLOSUM62))
    with open_searcher(database, SearchOptions(sensitive=True), engine="cpu", threads=1) as searcher:
        (result,) = searcher.search([query])
    assert result.pssm == query.pssm != by_matrix.pssm
    with swsearch.open_database(database) as subjects:
        evalues, forward_bits = unadjusted(query, subjects, subjects.n_residues)
    expected = adjusted(query, result, evalues)
    assert len(expected) > 1
    for hit in result.hits:
        assert hit.forward_bits == forward_bits[hit.subject_index]
        assert hit.evalue == pytest.approx(expected[hit.subject_index], rel=1e-9)


@pytest.mark.parametrize("rounds", [2, 3])
def test_rounds_search_with_the_context_of_what_they_included(database, rounds):
    """Source: single searches, whose hits are made into the next profile by hand."""
    given = swsearch.sequence(QUERIES[1][1], "protein", header=QUERIES[1][0])
    (iterated,) = found(database, QUERIES[1:2], iterations=rounds, top=1000)
    query: SequenceRecord = given
    with open_searcher(database, SearchOptions(sensitive=True, top=1000), engine="cpu", threads=1) as searcher:
        for number in range(1, iterated.n_rounds + 1):
            (result,) = searcher.search([query])
            included = [hit for hit in result.hits if hit.evalue is not None and hit.evalue <= 0.01]
            query = estimated_query(given, anchored_rows(len(given), included), BLOSUM62, contexts=program_contexts())
            assert len(included) > 1, number
    assert iterated.n_rounds > 1
    assert [replace(hit, round=0) for hit in iterated.hits] == list(result.hits)
    assert iterated.pssm == result.pssm
    (single,) = found(database, QUERIES[1:2])
    assert iterated.pssm != single.pssm


def test_dna_and_matrices_without_a_scale_are_refused(database, tmp_path):
    indexed(tmp_path / "dna.db", [("d", "ACGTTGCAACGTGGTACCAT")])
    with pytest.raises(InputError, match="sensitive=True is for proteins, not for dna"):
        found(tmp_path / "dna.db", QUERIES)
    letters = "ARNDCQEGHILKMFPSTWYV"
    rows = [" ".join(["", *letters]), *(f"{one} " + " ".join(["1"] * 20) for one in letters)]
    (tmp_path / "flat.txt").write_text("\n".join(rows) + "\n")
    with pytest.raises((InputError, ScoringError), match="sensitive=True: "):
        found(database, QUERIES, matrix=str(tmp_path / "flat.txt"))

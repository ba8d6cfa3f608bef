"""Every list is the complete list, cut afterwards: low complexity, repeats, rounds and masks.

Expected values: ``complete_lists.py``, which has every alignment of every subject and cuts the list in plain Python.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.hits.result import QueryResult
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.record import SequenceRecord
from tests.search.complete_lists import CompleteLists, expected_list
from tests.search.list_cases import differences
from tests.support import indexed, random_protein
from tests.translated_data import mutated

EVERYTHING = 10**6


def search(path: Path, query: SequenceRecord, engine: Any = None, **options: Any) -> QueryResult:
    with open_database(path) as database, engine or CpuEngine(1) as opened:
        (result,) = Searcher(database, opened, SearchOptions(**options)).search([query])
    return result


Biased = tuple[Path, list[SequenceRecord], CompleteLists]


@pytest.fixture(scope="module")
def biased(tmp_path_factory: pytest.TempPathFactory) -> Biased:
    """Subjects with a poly-Q part and a domain, with one of them, with repeats of both, with X, and some equal ones."""
    rng = np.random.default_rng(36)
    domain = PROTEIN.decode(random_protein(rng, 40))
    records = []
    for number in range(40):
        parts = ["Q" * int(rng.integers(10, 30)), "QQPQQQAQ" * int(rng.integers(1, 4)), mutated(rng, domain, 0.35)]
        parts += [PROTEIN.decode(random_protein(rng, int(rng.integers(1, 30)))), "SSESSGSS" * 2, "X" * 4, domain[:15]]
        chosen = rng.choice(len(parts), size=int(rng.integers(1, 5)))
        records.append((f"s{number}", "".join(parts[part] for part in chosen)))
    records += [(f"equal{number}", "Q" * 20 + "GGAGG" + domain[:25]) for number in range(4)]
    records += [(f"other{number}", PROTEIN.decode(random_protein(rng, 60))) for number in range(40)]
    queries = ["Q" * 22 + domain, "QQPQQQAQQQ" * 3, "SSESSGSSE" + domain[5:30] + "QQQQQQQQQQ"]
    path = indexed(tmp_path_factory.mktemp("biased") / "s.db", records)
    made = [SequenceRecord(f"q{n}", PROTEIN.encode(one), PROTEIN) for n, one in enumerate(queries)]
    return path, made, CompleteLists(records, PROTEIN, {})


def wrong(lists: CompleteLists, result: QueryResult, query: SequenceRecord, **options: Any) -> list[str]:
    """How a list differs from the complete list, cut afterwards."""
    wanted = expected_list(lists, (query.header, 0), query, SearchOptions(**options))
    return differences(result, wanted, is_search=True)


CUTS: list[dict[str, Any]] = [
    {"evalue": math.inf, "top": EVERYTHING},
    {"evalue": 10.0},
    {"evalue": 1e-3, "max_hsps": 3},
    {"evalue": math.inf, "top": 3, "ties": "all"},
    {"evalue": math.inf, "top": 2, "max_hsps": 5},
    {"evalue": 1.0, "max_hsps": 40},
    {"evalue": 50.0, "min_score": 45},
    {"evalue": math.inf, "min_bits": 22.0, "max_hsps": 4, "top": 6},
    {"evalue": 100.0, "min_identity": 60.0, "max_hsps": 3},
    {"evalue": math.inf, "min_alignment_length": 20, "top": 4},
    {"evalue": 5.0, "min_query_coverage": 40.0, "min_score": 40, "max_hsps": 2, "top": 5, "ties": "all"},
]


@pytest.mark.parametrize("number", range(3))
def test_lists_of_biased_proteins_are_the_complete_list_cut_afterwards(biased, monkeypatch, number):
    path, queries, lists = biased
    query = queries[number]
    complete, plain = (
        [one for several in lists.complete((query.header, 0), query, options).alignments for one in several]
        for options in (SearchOptions(), SearchOptions(composition="none"))
    )
    evalues = {id(one[-1]): one[0] for one in plain}
    assert sum(one[0] > evalues[id(one[-1])] for one in complete) > 100
    for share in (1, 10**9):  # with an initial threshold and without
        monkeypatch.setattr("swsearch.search.threshold.SMALLEST_SHARE", share)
        for options in CUTS:
            assert wrong(lists, search(path, query, **options), query, **options) == [], options


def test_a_domain_beside_low_complexity_gives_the_subject_its_evalue(biased, tmp_path):
    """By hand: both have the same residues of poly-Q and the same domain, in another order; so it is one alignment that
    has the best score, poly-Q, and another that has the best E-value."""
    rng = np.random.default_rng(5)
    domain = PROTEIN.decode(random_protein(rng, 30))
    subject = domain + PROTEIN.decode(random_protein(rng, 150)) + "Q" * 38
    others = [(f"o{n}", PROTEIN.decode(random_protein(rng, 100))) for n in range(20)]
    path = indexed(tmp_path / "s.db", [("both", subject), *others])
    query = SequenceRecord("q", PROTEIN.encode("Q" * 50 + domain), PROTEIN)
    (plain,) = search(path, query, composition="none", evalue=1e-6).hits
    assert plain.alignment.subject_start > 100
    for options in ({}, {"evalue": 1e-9}, {"evalue": math.inf, "top": 1}, {"max_hsps": 2, "evalue": 1e-9}):
        found = search(path, query, **options).hits[0]
        assert (found.subject_header, found.alignment.subject_start, found.alignment.cigar) == ("both", 0, "30=")
        assert found.score < plain.score
        assert found.evalue is not None
        assert found.evalue < 1e-9


@pytest.mark.parametrize("changed", [{"top": 1}, {"top": 1, "dbsize": 1}, {"top": 3, "dbsize": 10**9}], ids=str)
@pytest.mark.parametrize("inclusion", [{}, {"inclusion_evalue": 100.0, "composition": "none"}], ids=str)
def test_what_rounds_include_does_not_depend_on_the_list(tmp_path, changed, inclusion):
    """Source: the same search with a list of all subjects; more subjects are included than are listed."""
    rng = np.random.default_rng(9)
    base = random_protein(rng, 60)
    family = [(f"f{n}", mutated(rng, PROTEIN.decode(base), 0.3 + n / 40)) for n in range(16)]
    others = [(f"o{n}", PROTEIN.decode(random_protein(rng, 60))) for n in range(260)]
    path = indexed(tmp_path / "s.db", family + others)
    query = SequenceRecord("q", base, PROTEIN)
    options = {"evalue": math.inf, "iterations": 3, **inclusion, **changed}
    whole = search(path, query, **{**options, "top": EVERYTHING})
    part = search(path, query, **options)
    assert whole.pssm is not None
    assert sum(hit.round > 0 for hit in whole.hits) > 5
    assert (part.pssm, part.n_rounds, part.hits) == (whole.pssm, whole.n_rounds, whole.hits[: options["top"]])


@pytest.mark.parametrize("limit", [{"min_score": 60}, {"min_bits": 25.0}], ids=str)
def test_a_masked_query_is_not_limited_by_its_masked_score(biased, limit):
    """Expected: the list without this limit, cut afterwards."""
    path, queries, _ = biased
    letters = queries[0].letters
    query = SequenceRecord("q", PROTEIN.encode(letters[:30].lower() + letters[30:]), PROTEIN)
    whole = search(path, query, mask="lower", evalue=50.0, top=EVERYTHING)
    found = search(path, query, mask="lower", evalue=50.0, top=EVERYTHING, **limit)
    scores = [
        hit.score
        for hit in whole.hits
        if hit.score >= limit.get("min_score", 1) and hit.bits is not None and hit.bits >= limit.get("min_bits", 0)
    ]
    assert 0 < len(scores) < len(whole.hits)
    assert [hit.score for hit in found.hits] == scores


def test_a_mask_is_that_of_the_subject_and_not_of_a_strand(tmp_path):
    """The plus strand of a subject has the masked part and the minus strand the other one: the subject is found by the
    second, and reported with the first, as without the mask."""
    rng = np.random.default_rng(4)
    masked, other = ("".join(rng.choice(list("ACGT"), size=size)) for size in (60, 30))
    turned = other[::-1].translate(str.maketrans("ACGT", "TGCA"))
    path = indexed(tmp_path / "s.db", [("both", masked + "ACCA" + turned), ("masked", "GT" + masked)], DNA)
    query = SequenceRecord("q", DNA.encode(masked.lower() + "GG" + other), DNA)
    plain = search(path, query, evalue=1e-3).hits
    (found,) = search(path, query, evalue=1e-3, mask="lower").hits
    (of_both,) = (hit for hit in plain if hit.subject_header == "both")
    assert [hit.strand for hit in plain] == ["plus", "plus"]
    assert (found.subject_header, found.strand, found.score, found.evalue) == (
        "both", "plus", of_both.score, of_both.evalue
    )  # fmt: skip
    assert found.masked_evalue is not None
    assert found.evalue is not None
    assert found.evalue < found.masked_evalue < 1e-3

"""What decides a list, in examples made by hand: low complexity, rounds and masks (all others: complete lists)."""

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
from tests.support import indexed, random_protein
from tests.translated_data import mutated

EVERYTHING = 10**6


def search(path: Path, query: SequenceRecord, **options: Any) -> QueryResult:
    with open_database(path) as database, CpuEngine(1) as engine:
        (result,) = Searcher(database, engine, SearchOptions(**options)).search([query])
    return result


def test_a_domain_beside_low_complexity_gives_the_subject_its_evalue(tmp_path):
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

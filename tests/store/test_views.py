"""Pages of hits that the database sorts and filters. Source: Python's sort and filter of the same records."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from swsearch.errors import StoreError
from swsearch.store.results import SORTS, HitFilter, HitView
from swsearch.store.store import Store
from tests.store.conftest import DIALECTS, RUN, make_hit, make_query

N_HITS = 60


def made_hits():
    """Hits whose orders differ by every value, with ties; two of one subject, and some without statistics."""
    rng = np.random.default_rng(5)
    hits = []
    for rank in range(1, N_HITS + 1):
        start = int(rng.integers(0, 20))
        alignment = replace(
            make_hit(1).alignment, query_start=start, query_end=start + int(rng.integers(1, 50)),
            subject_start=int(rng.integers(0, 9)), subject_end=int(rng.integers(30, 60)),
            identities=int(rng.integers(20, 50)), columns=int(rng.integers(50, 60)),
        )  # fmt: skip
        header = f"{'aBc'[rank % 3]}{rank % 7}% protein_{rank} OS=Org OX={9000 + rank % 4}" + (
            " GN=x" if rank % 2 else ""
        )
        known = rank % 9 != 0
        hits.append(
            make_hit(
                rank, subject_header=header, subject_length=int(rng.integers(60, 70)), score=int(rng.integers(30, 40)),
                bits=float(rng.integers(30, 40)) if known else None,
                forward_bits=float(rng.integers(20, 30)) if known else None,
                evalue=10.0 ** -int(rng.integers(1, 9)) if known else None, alignment=alignment,
            )
        )  # fmt: skip
    hits.insert(10, replace(hits[9], hsp=2, score=29))
    return tuple(hits)


HITS = made_hits()
QUERY = replace(make_query(3), hits=HITS)
LENGTH = QUERY.length
VALUES = {
    "rank": lambda hit: hit.rank,
    "id": lambda hit: hit.subject_header.lower(),
    "length": lambda hit: hit.subject_length,
    "score": lambda hit: hit.score,
    "bits": lambda hit: hit.bits,
    "forward_bits": lambda hit: hit.forward_bits,
    "evalue": lambda hit: hit.evalue,
    "identity": lambda hit: hit.alignment.identities / hit.alignment.columns,
    "query_coverage": lambda hit: hit.alignment.query_end - hit.alignment.query_start,
    "subject_coverage": lambda hit: (hit.alignment.subject_end - hit.alignment.subject_start) / hit.subject_length,
    "columns": lambda hit: hit.alignment.columns,
    "query_start": lambda hit: hit.alignment.query_start,
    "subject_start": lambda hit: hit.alignment.subject_start,
}
FILTERS = {
    "text": (HitFilter(text="PROTEIN_1"), lambda hit: "protein_1" in hit.subject_header),
    "signs": (HitFilter(text="4% p"), lambda hit: "4% p" in hit.subject_header),
    "taxid": (HitFilter(taxid=9002), lambda hit: hit.rank % 4 == 2),
    "subjects": (HitFilter(subjects=frozenset(range(0, 10**6, 3))), lambda hit: hit.subject_index % 3 == 0),
    "ranks": (HitFilter(ranks=frozenset((2, 3, 5, 10**6))), lambda hit: hit.rank in (2, 3, 5)),
    "evalue": (HitFilter(max_evalue=1e-4), lambda hit: hit.evalue is not None and hit.evalue <= 1e-4),
    "bits": (HitFilter(min_bits=35.0), lambda hit: hit.bits is not None and hit.bits >= 35),
    "identity": (HitFilter(min_identity=60.0), lambda hit: hit.pident >= 60),
    "coverage": (
        HitFilter(min_query_coverage=40.0),
        lambda hit: 100 * (hit.alignment.query_end - hit.alignment.query_start) / LENGTH >= 40,
    ),
}


@pytest.fixture(scope="module", params=DIALECTS)
def views(request, tmp_path_factory):
    """A store with a run of three queries, for each kind of database; the tests only read it."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            target = str(tmp_path_factory.mktemp("views") / "hits.sqlite")
        else:
            target = request.getfixturevalue("postgres").url("views")
        store = stack.enter_context(Store(target, create=True))
        run = store.runs.start(RUN)
        for query in (make_query(0), QUERY, make_query(7, 0)):
            store.results.add(run, query)
        yield store.results


def expected_order(sort, descending):
    value = VALUES[sort]
    known = [hit for hit in HITS if value(hit) is not None]
    key = (lambda hit: (value(hit), hit.hsp)) if sort == "rank" else value
    ordered = sorted(known, key=key, reverse=descending)
    if descending and sort != "rank":  # ties keep their order
        ordered = [
            hit for group in sorted({value(hit) for hit in known}, reverse=True) for hit in known if value(hit) == group
        ]
    return [*ordered, *(hit for hit in HITS if value(hit) is None)]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", SORTS)
def test_pages_are_those_of_a_sorted_list(views, sort, descending):
    listed = []
    for offset in range(0, N_HITS + 20, 17):
        page = views.view(1, 3, HitView(sort, descending, offset=offset, limit=17))
        assert (page.n_matching, page.n_hits, page.n_subjects) == (N_HITS + 1, N_HITS + 1, N_HITS)
        listed += page.query.hits
    assert listed == expected_order(sort, descending)


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_keeps_what_fulfils_it(views, name):
    keep, fulfils = FILTERS[name]
    page = views.view(1, 3, HitView(keep=keep, limit=1000))
    expected = [hit for hit in HITS if fulfils(hit)]
    assert list(page.query.hits) == expected
    assert page.n_matching == len(expected) not in (0, len(HITS))
    assert list(views.hits(1, 3, keep)) == expected


def test_without_subjects_no_hit_is_kept(views):
    page = views.view(1, 3, HitView(keep=HitFilter(subjects=frozenset())))
    assert (page.query.hits, page.n_matching) == ((), 0)


def test_conditions_add_up(views):
    keep = HitFilter(text="protein_", taxid=9001, min_identity=50.0)
    page = views.view(1, 3, HitView(keep=keep, sort="score", limit=5))
    assert {hit.rank % 4 for hit in page.query.hits} == {1}
    assert all(hit.pident >= 50 for hit in page.query.hits)
    assert len(page.query.hits) == 5 <= page.n_matching


def test_a_page_beyond_the_end_is_empty(views):
    page = views.view(1, 3, HitView(offset=10**6))
    assert (page.query.hits, page.n_matching, page.query.letters) == ((), N_HITS + 1, QUERY.letters)


def test_columns_of_all_hits(views):
    starts, ends = views.query_places(1, 3)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [
        (hit.alignment.query_start, hit.alignment.query_end) for hit in HITS
    ]
    best = [hit for hit in HITS if hit.hsp == 1]
    bits, evalues = views.subject_scores(1, 3)
    assert [None if np.isnan(value) else value for value in bits.tolist()] == [hit.bits for hit in best]
    assert [None if np.isnan(value) else value for value in evalues.tolist()] == [hit.evalue for hit in best]
    assert views.subjects(1, 3) == [(hit.subject_index, hit.subject_header) for hit in best]
    assert views.query_places(1, 7)[0].shape == (0,)
    assert views.subject_scores(1, 7)[1].shape == (0,)


def test_one_subject_with_its_alignments(views):
    assert views.subject(1, 3, 10).hits == HITS[9:11]
    assert views.subject(1, 3, 10**9).hits == ()


def test_queries_without_their_hits(views):
    found = views.summaries(1, 0, 10)
    assert [(one.number, one.length, one.n_hits) for one in found] == [(0, 72, 3), (3, 72, N_HITS + 1), (7, 72, 0)]
    assert (found[1].best_header, found[1].best_bits) == (HITS[0].subject_header, HITS[0].bits)
    assert found[2].best_header is None
    assert [one.number for one in views.summaries(1, 1, 1)] == [3]
    assert views.summaries(99, 0, 10) == []
    assert [views.neighbours(1, number) for number in (0, 3, 7)] == [(None, 3), (0, 7), (3, None)]


def test_a_missing_query_is_an_error(views):
    for number in (1, 10**12):
        with pytest.raises(StoreError, match=f"run 1 has no query {number}"):
            views.view(1, number, HitView())

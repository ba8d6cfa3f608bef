"""Runs, queries and hits are read back as they were stored, in each kind of database.

The expected values are the stored records.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.errors import RunNotFound, StoreError
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import QueryResult, SearchStats
from swsearch.hits.shards import query_digest
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_hit, make_query


def test_a_run_comes_back_as_it_was_put_in(target):
    """Source: the stored records."""
    queries = [make_query(number, n_hits) for number, n_hits in enumerate((3, 0, 500))]
    before = datetime.now(UTC)
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        for query in queries:
            store.results.add(run_id, query)
        assert store.runs.get(run_id).state == "running"
        assert store.runs.get(run_id).finished is None
        store.runs.finish(run_id)
    with Store(target) as store:
        stored = store.runs.get("latest")
        assert stored == store.runs.all()[0] == store.runs.get(run_id) == store.runs.get(str(run_id))
        assert stored.info == RUN
        assert (stored.id, stored.state, stored.n_queries, stored.n_hits) == (run_id, "finished", 3, 503)
        assert stored.finished is not None
        assert before <= stored.started <= stored.finished <= before + timedelta(minutes=5)
        assert stored.started.utcoffset() == timedelta(0)
        assert list(store.results.queries(run_id)) == queries


def test_values_that_are_not_known_stay_so(target):
    """Source: the stored records."""
    run = replace(RUN, lam=None, k=None, statistics="no table has it", parameters={})
    query = replace(make_query(0), hits=(make_hit(1, bits=None, evalue=None, strand="minus"),))
    with Store(target, create=True) as store:
        run_id = store.runs.start(run)
        store.results.add(run_id, query)
        assert store.runs.get(run_id).info == run
        assert list(store.results.queries(run_id)) == [query]


def test_frames_and_several_alignments_come_back_in_their_order(target):
    """Source: the stored records: alignments of a subject in the order of their numbers, with frames and residues."""
    framed = replace(make_hit(1).alignment, query_letters="MKV*XL")
    hits = (
        make_hit(1, strand="minus", query_frame=-3, subject_frame=2, alignment=framed),
        make_hit(1, hsp=2, query_frame=1, subject_frame=-1, alignment=framed),
        *(make_hit(1, hsp=number) for number in range(3, 12)),
        make_hit(2),
    )
    query = replace(make_query(0), hits=hits)
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        store.results.add(run_id, query)
        assert list(store.results.queries(run_id)) == [query]
        assert store.results.query(run_id, 0) == query
        assert store.runs.get(run_id).n_hits == 12


counts = st.integers(0, 2**63 - 1)
seconds = st.floats(0, allow_infinity=False)
bytes_as_text = st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
texts = st.text(max_size=40) | bytes_as_text | st.sampled_from(["\\", "\\u0041", "\0", "\\\\u0000\0", "\\udcff\udcff"])
alignments = st.builds(
    Alignment, *[counts] * 4, st.from_regex(r"([1-9][0-9]{0,3}[=XID]){0,9}", fullmatch=True), *[counts] * 5, texts
)
hits = st.builds(
    Hit,
    rank=st.just(1), subject_index=counts, subject_header=texts, subject_length=counts,
    score=st.integers(0, 2**62), bits=st.none() | st.floats(allow_nan=False),
    evalue=st.none() | st.floats(0), forward_bits=st.none() | st.floats(allow_nan=False),
    strand=st.sampled_from(["plus", "minus"]), alignment=alignments,
)  # fmt: skip
results = st.builds(
    QueryResult,
    number=counts, header=texts, letters=texts,
    hits=st.lists(hits, max_size=4).map(lambda found: tuple(replace(h, rank=i) for i, h in enumerate(found, 1))),
    n_passed=counts, stats=st.builds(SearchStats, counts, seconds, seconds, counts),
)  # fmt: skip


def test_any_query_comes_back_as_it_was_put_in(target):
    """Source: the drawn records. Headers may contain any byte, so they are also drawn as bytes.

    One open store is used for all examples: a new one would compile its SQL statements again, which took a quarter
    of the time.
    """
    with Store(target, create=True) as store:

        @settings(max_examples=60)
        @given(result=results, command=texts)
        def comes_back(result, command):
            run_id = store.runs.start(replace(RUN, command=command, statistics=command, parameters={"out": command}))
            store.runs.note_remark(run_id, command)
            store.results.add(run_id, result)
            assert list(store.results.queries(run_id)) == [result]
            run = store.runs.get(run_id)
            assert run.info.command == run.info.statistics == run.info.parameters["out"] == run.remark == command
            store.runs.delete(run_id, force=True)

        comes_back()


def test_queries_come_in_order_of_their_numbers(target):
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        for number in (5, 0, 12, 3):
            store.results.add(run_id, make_query(number))
        assert [query.number for query in store.results.queries(run_id)] == [0, 3, 5, 12]


def test_a_stream_shows_the_store_as_it_was_when_it_began(target):
    """The run is deleted while it is read; the reader still gets the complete run."""
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        for number in range(3):
            store.results.add(run_id, make_query(number))
        stream = store.results.queries(run_id)
        first = next(stream)
        store.runs.delete(run_id, force=True)
        assert [first, *stream] == [make_query(number) for number in range(3)]
        with pytest.raises(RunNotFound):
            next(store.results.queries(run_id))


def test_deleting_a_run_leaves_the_others_and_its_number_unused(target):
    with Store(target, create=True) as store:
        first, second = store.runs.start(RUN), store.runs.start(RUN)
        for run_id in (first, second):
            store.results.add(run_id, make_query(0))
        store.runs.interrupt(second)
        assert store.runs.delete("latest") == [second]
        assert store.runs.get("latest").id == first
        assert list(store.results.queries(first)) == [make_query(0)]
        assert store.runs.start(RUN) > second


@pytest.mark.parametrize("name", ["7", "newest", "-1", "", "1.0", "٣", "9" * 30])
def test_a_run_that_is_not_there_is_named(target, name):
    with Store(target, create=True) as store:
        store.runs.start(RUN)
        for use in (store.runs.get, store.runs.delete, lambda run: next(store.results.queries(run))):
            with pytest.raises(RunNotFound, match=f"has no run '{name}'"):
                use(name)


def test_latest_of_an_empty_store_is_not_found(target):
    with Store(target, create=True) as store:
        assert store.runs.all() == []
        with pytest.raises(RunNotFound):
            store.runs.get("latest")


def test_a_query_is_stored_once(target):
    """The second attempt does not change the first."""
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        store.results.add(run_id, make_query(4))
        with pytest.raises(StoreError, match=f"run {run_id} has its query 4 already"):
            store.results.add(run_id, make_query(4, n_hits=1))
        assert list(store.results.queries(run_id)) == [make_query(4)]


def test_a_query_of_a_run_that_is_gone_is_refused(target):
    with Store(target, create=True) as store:
        with pytest.raises(RunNotFound):
            store.results.add(99, make_query(0))
        for use in (store.runs.finish, store.runs.interrupt, store.runs.resume):
            with pytest.raises(RunNotFound):
                use(99)


def test_a_query_whose_hits_cannot_be_stored_is_not_stored_at_all(target):
    """Two hits with the same rank violate the table's key after the row of the query was inserted."""
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        with pytest.raises(StoreError):
            store.results.add(run_id, replace(make_query(0), hits=(make_hit(1), make_hit(1))))
        assert store.results.committed(run_id) == {}
        assert list(store.results.queries(run_id)) == []


def test_committed_queries_are_known_by_number_and_digest(target):
    """Source: SHA-256 of "h\\nACD" by sha256sum."""
    assert query_digest("h", "ACD") == "52dfd1aecf7382faa439020c27de519bf6be0216e27636f43a3ac1b05c6d5cb4"
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        for number in (7, 2):
            store.results.add(run_id, make_query(number))
        assert store.results.committed(run_id) == {
            number: query_digest(make_query(number).header, make_query(number).letters) for number in (2, 7)
        }


def test_an_interrupted_run_can_go_on(target):
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        store.results.add(run_id, make_query(0))
        store.runs.interrupt(run_id)
        assert store.runs.get(run_id).state == "interrupted"
        store.runs.resume(run_id)
        assert store.runs.get(run_id).state == "running"
        store.results.add(run_id, make_query(1))
        store.runs.finish(run_id)
        assert (store.runs.get(run_id).state, store.runs.get(run_id).n_queries) == ("finished", 2)


def test_a_note_joins_what_the_run_says_of_its_statistics(target):
    """Unusual text is read back unchanged; the other run is unaffected."""
    with Store(target, create=True) as store:
        first, second = store.runs.start(RUN), store.runs.start(RUN)
        store.runs.note_statistics(first, "scores do not follow: \\ \udcff")
        assert store.runs.get(first).info.statistics == f"{RUN.statistics}; scores do not follow: \\ \udcff"
        assert store.runs.get(second).info.statistics == RUN.statistics
        with pytest.raises(RunNotFound):
            store.runs.note_statistics(99, "nothing")

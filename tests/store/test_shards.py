"""Shards of a run: its requested, failed and missing queries, and the deletion and resumption of runs.

The expected values are written by hand, or come from the stored runs that are merged.
"""

from dataclasses import replace

import pytest

from swsearch.errors import RunNotFound, RunTaken, StoreError
from swsearch.hits.shards import AskedQueries, Failure, Shard, all_of
from swsearch.merge import Source, choose_runs, copy_run, plan_merge
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_query

DIGEST = "5e" * 32


def asked(shard: str, n_queries: int | None = 7) -> AskedQueries:
    return AskedQueries(Shard.parse(shard), n_queries, None if n_queries is None else DIGEST)


def test_what_a_run_lacks_is_known_to_the_last_query(target):
    """By hand: shard 2/3 of 7 queries has 1 and 4; failed queries count, both at the end and in the middle."""
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN, asked("2/3"))
        assert (store.runs.get(run_id).n_missing, store.results.missing(run_id)) == (2, [1, 4])
        store.results.add_failure(run_id, Failure(4, "q.fa, record 5: \udcff has no residues"))
        store.results.add_failure(run_id, Failure(4, "another reason"))
        assert (store.runs.get(run_id).n_missing, store.results.missing(run_id)) == (1, [1])
        assert store.results.failures(run_id) == [Failure(4, "another reason")]
        store.results.add(run_id, make_query(1))
        assert (store.runs.get(run_id).n_missing, store.results.missing(run_id)) == (0, [])
        store.results.add(run_id, make_query(4))
        assert store.results.failures(run_id) == []
        assert store.runs.get(run_id).asked == asked("2/3")
        with pytest.raises(RunNotFound):
            store.results.add_failure(99, Failure(0, ""))


def test_of_a_run_that_was_asked_nothing_only_gaps_are_known(target):
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        store.results.add(run_id, make_query(2))
        assert (store.runs.get(run_id).n_missing, store.runs.get(run_id).asked) == (None, None)
        assert store.results.missing(run_id) == [0, 1]
        store.runs.note_asked(run_id, asked("1/1", 4))
        assert store.results.missing(run_id) == [0, 1, 3]


def test_a_run_is_taken_up_once(target):
    """Two readers saw the interrupted run: the second to claim it gets an error. Earlier failures are deleted."""
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN, asked("1/1"))
        store.results.add_failure(run_id, Failure(1, "bad"))
        store.runs.interrupt(run_id)
        seen = store.runs.get(run_id)
        store.runs.resume(run_id, seen)
        assert store.results.failures(run_id) == []
        with pytest.raises(RunTaken, match=f"run {run_id} of .* has just been taken up by process"):
            store.runs.resume(run_id, seen)


def test_a_run_at_work_is_deleted_by_force_alone(target):
    """The process of the test works on the run."""
    with Store(target, create=True) as store:
        run_id = store.runs.start(RUN)
        store.results.add(run_id, make_query(0))
        with pytest.raises(StoreError, match=r"process \d+ on .* is at work on it; stop that process first"):
            store.runs.delete(run_id)
        assert store.runs.delete("latest", force=True) == [run_id]
        assert store.runs.all() == []


def test_shares_merge_in_any_kind_of_store(target, tmp_path):
    """Both shards and the merged run are in one store; a copy of the merged run is made in another."""
    with Store(target, create=True) as store:
        for index in (1, 2):
            run_id = store.runs.start(RUN, asked(f"{index}/2"))
            for number in range(index - 1, 6, 2):
                store.results.add(run_id, make_query(number))
            if index == 1:
                store.results.add_failure(run_id, Failure(6, "bad"))
            store.runs.finish(run_id)
        sources = choose_runs([store], pytest.fail)
        plan = plan_merge(sources)
        merged = plan.carry_out(store, "merge")
        assert (plan.n_queries, len(plan.failures), plan.missing) == (6, 1, [])
        run = store.runs.get("latest")
        assert (run.id, run.state, run.n_missing, run.asked) == (merged, "finished", 0, asked("1/1"))
        with Store(tmp_path / "copy.sqlite", create=True) as other:
            copied = other.runs.get(copy_run(other, Source(store, run)))
            assert (copied.state, copied.n_failed, copied.n_missing) == ("finished", 1, 0)
            assert list(other.results.queries(copied.id)) == [make_query(number) for number in range(6)]


def test_runs_that_do_not_say_what_they_were_asked_merge(tmp_path):
    """Each store has a run with every other query, of which it is not known which queries it was to search."""
    stores = []
    for index in (0, 1):
        store = Store(tmp_path / f"{index}.sqlite", create=True)
        run_id = store.runs.start(RUN)
        for number in (index, index + 2):
            store.results.add(run_id, make_query(number))
        store.runs.finish(run_id)
        stores.append(store)
    plan = plan_merge(choose_runs(stores, pytest.fail))
    with Store(tmp_path / "m.sqlite", create=True) as merged:
        run_id = plan.carry_out(merged, "merge")
        assert (plan.n_queries, plan.missing, plan.asked) == (4, [], None)
        assert [query.number for query in merged.results.queries(run_id)] == [0, 1, 2, 3]
        assert merged.runs.get(run_id).state == "finished"
    one = plan_merge(choose_runs(stores[1:], pytest.fail))
    assert (one.missing, one.asked) == ([0, 2], None)
    with pytest.raises(StoreError, match=r"query 0 is in run 1 of .* and in run 1 of "):
        plan_merge(choose_runs([stores[0], stores[0]], pytest.fail))
    for store in stores:
        store.close()


def test_a_password_is_kept_nowhere(tmp_path):
    """A store may be given to others; the command that made its runs may have named a database server."""
    path = tmp_path / "hits.sqlite"
    command = "swsearch batch q.fa x.db --store postgresql://me:se:cr@t@host:5432/hits --out a@b:c"
    with Store(path, create=True) as store:
        run_id = store.runs.start(replace(RUN, command=command))
        stored = "swsearch batch q.fa x.db --store postgresql://me:***@host:5432/hits --out a@b:c"
        assert store.runs.get(run_id).info.command == stored
    assert b"cr@t" not in path.read_bytes()


def test_the_digest_of_queries_tells_their_order_and_letters():
    queries = [("a one", "MKV"), ("b", "MKW")]
    assert all_of(queries) == all_of(iter(queries))
    several = queries, queries[::-1], queries[:1], [("a one", "MKv"), queries[1]]
    assert len({all_of(some).digest for some in several}) == 4


@pytest.mark.parametrize("text", ["1/1000000000", "9" * 5000 + "/" + "9" * 5000, "¹/2", "٣/٤"])
def test_shares_beyond_all_sense_are_refused(text):
    with pytest.raises(ValueError, match="give i/n with 1 <= i <= n"):
        Shard.parse(text)

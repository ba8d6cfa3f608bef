"""Searches of a service in the store: submitted, claimed, committed once, shared out fairly, recovered.

Each test runs on a SQLite file and on a PostgreSQL server. Expected values: the rules of docs/design/service.md, and
the records that were stored.
"""

import dataclasses
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from swsearch.errors import Refused, SearchNotFound
from swsearch.hits.shards import query_digest
from swsearch.store.search_records import MEGACELL, Completed, NewQuery, NewSearch, SearchedDatabase
from swsearch.store.searches import OwnerLimits
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_query, submit

DATABASE = SearchedDatabase("proteins.db", "0af3", 2)
NEXT = SearchedDatabase("proteins.db", "1b44", 3)
HOUR = timedelta(hours=1)
NEVER = {DATABASE.name: 10**15}


def new_search(owner="ann", n_queries=1, cells=MEGACELL, **changes):
    queries = tuple(NewQuery(f"q{number} of {owner}", "MKV", cells) for number in range(n_queries))
    values = {
        "owner": owner,
        "database": DATABASE,
        "options": {"top": 25, "matrix": None},
        "fingerprint": "f" * 64,
        "content": query_digest(owner, f"{n_queries} {changes}"),
        "asked_digest": f"{owner}{n_queries}",
        "queries": queries,
    }
    return NewSearch(**{**values, **changes})


@pytest.fixture
def store(target):
    with Store(target, create=True) as opened:
        yield opened


@pytest.fixture
def searches(store):
    return store.searches


@pytest.fixture
def work(searches, target):
    """The queue, as another process opens it."""
    with Store(target) as opened:
        yield opened.queue


def complete(work, worker, query, run_id, result, keep):
    """Commit one query; return whether it was stored."""
    return query.search_id in work.complete(worker, [Completed(query, run_id, result)], keep)


def claim(work, worker="w1", budget=NEVER, lease=HOUR, databases=(DATABASE,)):
    return work.claim(worker, databases, budget, lease)


def search_all(work, batch, worker="w1", keep=None):
    """Begin the searches of a batch and commit all its queries; return whether each was stored."""
    runs = work.begin([query.search_id for query in batch.queries], RUN)
    return [
        complete(work, worker, query, runs[query.search_id][0], make_query(query.number), keep)
        for query in batch.queries
        if query.search_id in runs
    ]


def owners_of(batch):
    """The owners of a batch's queries, in order, by the headers that `new_search` writes."""
    return [query.header.split()[-1] for query in batch.queries]


def test_a_search_is_a_run(searches, work, target):
    """Source: the results that were committed."""
    stored, is_new = submit(searches, new_search(n_queries=3))
    assert (stored.state, stored.run_id, is_new) == ("queued", None, True)
    assert len(stored.key) >= 22
    batch = claim(work)
    assert (batch.database, batch.options["top"]) == (DATABASE, 25)
    assert [query.number for query in batch.queries] == [0, 1, 2]
    assert claim(work) is None
    assert search_all(work, batch) == [True] * 3
    done = searches.get(stored.key)
    assert (done.state, done.n_done, done.cells_done) == ("done", 3, done.cells)
    with Store(target) as store:
        run = store.runs.get("latest")
        assert (run.id, run.state, run.n_queries, run.n_missing) == (done.run_id, "finished", 3, 0)
        assert list(store.results.queries(run.id)) == [make_query(number) for number in range(3)]
        store.runs.delete(run.id)
    with pytest.raises(SearchNotFound):  # a search without its results would be of no use
        searches.get(stored.key)


def test_a_lease_that_ended_goes_back_and_its_result_is_stored_once(store, searches, work):
    stored, _ = submit(searches, new_search())
    first = claim(work, "w1", lease=timedelta(0))
    assert work.recover(None) == 1
    second = claim(work, "w2")
    assert second.queries[0].losses == 1
    runs = work.begin([second.queries[0].search_id], RUN)
    run_id = runs[second.queries[0].search_id][0]
    assert complete(work, "w1", first.queries[0], run_id, make_query(0), None) is False
    assert searches.get(stored.key).n_done == 0
    assert complete(work, "w2", second.queries[0], run_id, make_query(0), None) is True
    assert complete(work, "w2", second.queries[0], run_id, make_query(0), None) is False
    assert searches.get(stored.key).state == "done"
    assert list(store.results.queries(run_id)) == [make_query(0)]


def test_a_result_that_another_command_stored_is_counted(store, searches, work):
    """`swsearch batch --resume` may go on with the run of a search whose worker died."""
    stored, _ = submit(searches, new_search(n_queries=2))
    batch = claim(work)
    run_id = work.begin([stored.id], RUN)[stored.id][0]
    store.results.add(run_id, make_query(0))
    assert search_all(work, batch) == [True, True]
    assert searches.get(stored.key).state == "done"
    assert list(store.results.queries(run_id)) == [make_query(0), make_query(1)]
    assert complete(work, "w1", batch.queries[0], run_id, make_query(0), None) is False


def test_results_are_stored_together_except_those_without_a_lease(store, searches, work):
    """One of three searches was cancelled; another one has a query that another command has stored."""
    first, lost, other = (submit(searches, new_search(owner, n_queries=2))[0] for owner in ("ann", "bob", "cyd"))
    batch = claim(work)
    runs = {search_id: run_id for search_id, (run_id, _) in work.begin([first.id, lost.id, other.id], RUN).items()}
    searches.cancel(lost.key)
    completed = [Completed(query, runs[query.search_id], make_query(query.number)) for query in batch.queries]
    of_others = [completed for completed in completed if completed.query.search_id != other.id]
    assert work.complete("w1", of_others[:1], None) == {first.id: False}
    assert work.complete("w1", of_others[1:], None) == {first.id: True}
    store.results.add(runs[other.id], make_query(0))
    assert work.complete("w1", completed, None) == {other.id: True}
    assert [searches.get(key).state for key in (first.key, lost.key, other.key)] == ["done", "cancelled", "done"]
    for search in (first, other):
        assert list(store.results.queries(runs[search.id])) == [make_query(0), make_query(1)]
    assert list(store.results.queries(runs[lost.id])) == []


def test_searches_are_stored_together_except_refused_ones(searches):
    """The second one is too much for its owner's queue, and the fourth is the third once more."""
    submitted = [new_search("ann"), new_search("ann", n_queries=9), new_search("bob", idempotency_key="k")]
    found = searches.submit([*submitted, submitted[2]], OwnerLimits(queued_cells=5 * MEGACELL))
    assert isinstance(found[1], Refused)
    assert [each[1] for each in found if not isinstance(each, Refused)] == [True, True, False]
    assert [search.key for search in searches.of_owner("ann")] == [found[0][0].key]
    assert found[2][0] == found[3][0]
    assert searches.usage("ann")[0].n_queries == 1


def test_a_heartbeat_extends_leases_and_names_what_is_still_held(searches, work):
    stored, _ = submit(searches, new_search(n_queries=2))
    other, _ = submit(searches, new_search("bob"))
    work.enter("w1", "cpu")
    batch = claim(work, lease=timedelta(0))
    held = work.heartbeat("w1", 1e9, HOUR)
    assert held == {(query.search_id, query.number) for query in batch.queries}
    assert work.recover(None) == 0
    searches.cancel(other.key)
    assert work.heartbeat("w1", 1e9, HOUR) == {(stored.id, 0), (stored.id, 1)}
    assert searches.speeds(HOUR) == [1e9]


def test_the_leases_of_a_dead_process_are_taken_at_once(searches, work, target):
    """A real worker process is killed with queries under an hour's lease."""
    submit(searches, new_search(n_queries=2))
    code = """
import sys
from datetime import timedelta
from swsearch.hits.shards import query_digest
from swsearch.store.store import Store
from swsearch.store.search_records import SearchedDatabase
queue = Store(sys.argv[1]).queue
queue.enter("doomed", "cpu")
batch = queue.claim("doomed", [SearchedDatabase("proteins.db", "0af3", 2)], {"proteins.db": 10**15}, timedelta(hours=1))
print(len(batch.queries), flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "2\n"
        assert work.recover(None) == 0
        assert claim(work) is None
        process.kill()
    assert work.recover(None) == 2
    assert [len(claim(work).queries) for _ in range(2)] == [1, 1]


def test_a_query_that_kills_its_worker_three_times_fails_alone(store, searches, work):
    """Query 1 of three ends each worker that holds it: first in a batch with the others, then twice alone."""
    stored, _ = submit(searches, new_search(n_queries=3))
    work.begin([stored.id], RUN)
    n_deaths = 0
    while (batch := claim(work, lease=timedelta(0))) is not None:
        if any(query.number == 1 for query in batch.queries):
            n_deaths += 1
            work.recover(None)
        else:
            assert len(batch.queries) == 1
            search_all(work, batch)
    assert n_deaths == 3
    done = searches.get(stored.key)
    assert (done.state, done.n_done, done.n_failed) == ("done", 2, 1)
    (failed,) = store.results.failures(done.run_id)
    assert failed.number == 1
    assert "3 workers died" in failed.reason
    assert store.runs.get(done.run_id).state == "finished"


def test_a_worker_with_a_batch_in_hand_leaves_a_query_that_was_lost(searches, work):
    """Both would be lost with it. The query comes when the worker has nothing else."""
    submit(searches, new_search(n_queries=2))
    claim(work, "one that dies", lease=timedelta(0))
    assert work.recover(None) == 2
    assert work.claim("w1", [DATABASE], NEVER, HOUR, with_lost=False) is None
    submit(searches, new_search("ann", cells=1, content="another"))
    beside = work.claim("w1", [DATABASE], NEVER, HOUR, with_lost=False)
    assert beside is not None
    assert [query.losses for query in beside.queries] == [0], "that of the smallest search"
    alone = claim(work, "w1")
    assert [query.losses for query in alone.queries] == [1]


def test_a_failed_query_is_in_the_runs_failures(searches, work):
    stored, _ = submit(searches, new_search())
    (query,) = claim(work).queries
    work.begin([stored.id], RUN)
    assert work.fail("w1", query, "too long", None) is True
    assert work.fail("w1", query, "too long", None) is False
    failed = searches.get(stored.key)
    assert (failed.state, failed.reason, failed.n_failed) == ("failed", "too long", 1)
    other, _ = submit(searches, new_search("bob"))
    claim(work)
    work.fail_search(other.id, "no subject passes the filters", None)
    assert searches.get(other.key).state == "failed"


def test_cancelling_takes_the_queries_from_their_workers(store, searches, work):
    stored, _ = submit(searches, new_search(n_queries=3))
    batch = claim(work, budget={DATABASE.name: 2 * MEGACELL})
    assert len(batch.queries) == 2
    run_id = work.begin([stored.id], RUN)[stored.id][0]
    assert complete(work, "w1", batch.queries[0], run_id, make_query(0), None) is True
    with pytest.raises(SearchNotFound):
        searches.cancel(stored.key, "bob")
    assert searches.cancel(stored.key, "ann").state == "cancelled"
    assert complete(work, "w1", batch.queries[1], run_id, make_query(1), None) is False
    assert claim(work) is None
    assert store.runs.get(run_id).state == "interrupted"
    assert list(store.results.queries(run_id)) == [make_query(0)]
    assert searches.cancel(stored.key).state == "cancelled"
    assert work.begin([stored.id], RUN) == {}


def test_owners_are_served_in_turn_however_much_one_submits(searches, work):
    """Source: the virtual counter; ten cells for ann's queries, one for bob's and cem's."""
    submit(searches, new_search("ann", n_queries=50, cells=10 * MEGACELL))
    ten = {DATABASE.name: 10 * MEGACELL}
    assert owners_of(claim(work, budget=ten)) == ["ann"]
    assert owners_of(claim(work, budget=ten)) == ["ann"]
    # Whoever comes later continues where the others are: neither behind them nor with a credit for idle time.
    submit(searches, new_search("bob", n_queries=25))
    submit(searches, new_search("cem", n_queries=25))
    served = {"ann": 0, "bob": 0, "cem": 0}
    batches = [owners_of(claim(work, budget=ten)) for _ in range(6)]
    for batch in batches:
        assert len(batch) >= 1
        for owner in batch:
            served[owner] += 10 if owner == "ann" else 1
    assert max(served.values()) - min(served.values()) <= 10, batches


def test_a_small_search_passes_a_large_one_of_the_same_owner(searches, work):
    two = {DATABASE.name: 2 * MEGACELL}
    large, _ = submit(searches, new_search(n_queries=100))
    for _ in range(3):
        claim(work, budget=two)
    small, _ = submit(searches, new_search(n_queries=2))
    batches = [claim(work, budget=two) for _ in range(2)]
    n_small = sum(query.search_id == small.id for batch in batches for query in batch.queries)
    assert n_small == 2
    assert any(query.search_id == large.id for batch in batches for query in batch.queries)


def test_a_batch_has_one_fingerprint_and_fills_up_with_other_owners(searches, work):
    submit(searches, new_search("ann", n_queries=2))
    submit(searches, new_search("bob", n_queries=2, fingerprint="e" * 64))
    submit(searches, new_search("cem", n_queries=2))
    batches = [sorted(owners_of(claim(work))) for _ in range(2)]
    assert sorted(batches) == [["ann", "ann", "cem", "cem"], ["bob", "bob"]]


def test_a_query_beyond_the_budget_is_searched_alone(searches, work):
    submit(searches, new_search(n_queries=2, cells=100 * MEGACELL))
    assert len(claim(work, budget={DATABASE.name: 1}).queries) == 1


def test_a_worker_that_stops_gives_its_queries_back_unharmed(searches, work):
    submit(searches, new_search(n_queries=3))
    work.enter("w1", "cpu")
    claim(work)
    work.leave("w1")
    assert searches.speeds(HOUR) == []
    assert [query.losses for query in claim(work, "w2").queries] == [0, 0, 0]


def test_a_new_generation_begins_unfinished_searches_anew(store, searches, work):
    stored, _ = submit(searches, new_search(n_queries=2))
    batch = claim(work, budget={DATABASE.name: MEGACELL})
    assert search_all(work, batch) == [True]
    assert claim(work, databases=[NEXT]) is None
    (old,) = work.outdated(NEXT)
    work.begin_again(old.id, NEXT, "9" * 64)
    again = searches.get(stored.key)
    assert (again.state, again.n_done, again.run_id, again.database) == ("queued", 0, None, NEXT)
    assert work.outdated(NEXT) == []
    assert work.outdated(DATABASE) == []  # an earlier generation on another host changes nothing
    assert search_all(work, claim(work, databases=[NEXT])) == [True, True]
    assert [run.state for run in store.runs.all()] == ["finished"]


def test_the_same_submission_is_one_search(searches):
    stored, _ = submit(searches, new_search(idempotency_key="k1"))
    assert submit(searches, new_search(idempotency_key="k1")) == (stored, False)
    assert submit(searches, new_search("bob", idempotency_key="k1"))[1] is True
    with pytest.raises(Refused, match="belongs to another search") as caught:
        submit(searches, new_search(n_queries=2, idempotency_key="k1"))
    assert caught.value.code == "idempotency_conflict"


def test_the_same_submissions_of_a_group_are_one_search(searches):
    """Expected: what the same submissions give one after another."""
    first, _ = submit(searches, new_search(idempotency_key=r"k\1"))
    keys = [r"k\1", "k2", "k2", None, None]
    found = searches.submit([*(new_search(idempotency_key=key) for key in keys), new_search(n_queries=2)])
    assert found[0] == (first, False)
    assert found[1][1] is True
    assert found[2] == (found[1][0], False)
    assert [is_new for _, is_new in found[3:]] == [True] * 3
    conflicts = searches.submit([new_search(n_queries=3, idempotency_key=key) for key in ("k2", "k3", "k3")])
    assert conflicts[0].code == "idempotency_conflict"
    assert conflicts[2] == (conflicts[1][0], False)
    (other, refused) = searches.submit([new_search(n_queries=n, idempotency_key="k4") for n in (1, 2)])
    assert other[1] is True
    assert refused.code == "idempotency_conflict"
    stored = [found[index][0] for index in (1, 3, 4, 5)]
    assert searches.of_owner("ann") == [other[0], conflicts[1][0], *reversed(stored), first]
    for search, _ in (*found, conflicts[1], other):
        assert searches.get(search.key, "ann") == search
    assert [day.n_queries for day in searches.usage("ann")] == [1 + 3 + 2 + 3 + 1]


def test_an_identical_search_is_answered_from_the_store(store, searches, work):
    stored, _ = submit(searches, new_search(content="same"))
    again, _ = submit(searches, new_search("bob", content="same"))
    assert again.state == "queued"  # nothing is known yet
    search_all(work, claim(work))
    third, _ = submit(searches, new_search("cem", content="same"), keep=timedelta(days=-1))
    assert third.state == "done"
    assert third.run_id in {searches.get(stored.key).run_id, searches.get(again.key).run_id}
    assert searches.usage("cem") == []
    assert searches.delete_expired() == 1  # the run belongs to another search, too
    assert len(store.runs.all()) == 2
    assert searches.get(stored.key).state == "done"


def test_limits_are_named(searches, work):
    submit(searches, new_search(n_queries=2))
    with pytest.raises(Refused, match="your unfinished searches have 2,000,000 cells") as caught:
        submit(searches, new_search(n_queries=3), OwnerLimits(queued_cells=4 * MEGACELL))
    assert caught.value.code == "queue_full"
    with pytest.raises(Refused, match="you have submitted 2,000,000 cells today") as caught:
        submit(searches, new_search(n_queries=3), OwnerLimits(daily_cells=4 * MEGACELL))
    assert caught.value.code == "daily_limit"
    submit(searches, new_search("bob", n_queries=3), OwnerLimits(queued_cells=4 * MEGACELL, daily_cells=4 * MEGACELL))
    (today,) = searches.usage("bob")
    assert (today.n_searches, today.n_queries, today.cells) == (1, 3, 3 * MEGACELL)
    assert [stored.n_queries for stored in searches.of_owner("bob")] == [3]
    assert [n_left for _, n_left in searches.waiting().values()] == [2 * MEGACELL, 3 * MEGACELL]
    assert searches.counts() == {"queued": 2}


def test_web_processes_do_not_pass_a_limit_together(searches, target):
    """Each submission alone is within the limit, and the first of them uses all of it."""
    n_stores = 4
    begin = threading.Barrier(n_stores)
    answers = []

    def submit(number):
        with Store(target) as mine:
            begin.wait()
            for turn in range(5):
                search = new_search(n_queries=2, content=f"{number}-{turn}")
                (found,) = mine.searches.submit([search], OwnerLimits(queued_cells=3 * MEGACELL))
                answers.append(found.code if isinstance(found, Refused) else "accepted")

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(n_stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["accepted"] + ["queue_full"] * (5 * n_stores - 1)
    assert len(searches.of_owner("ann")) == 1


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_expired_searches_leave_with_their_runs(store, searches, work, is_cancelled):
    stored, _ = submit(searches, new_search())
    batch = claim(work)
    if is_cancelled:
        work.begin([stored.id], RUN)
        searches.cancel(stored.key, keep=timedelta(days=-1))
    else:
        search_all(work, batch, keep=timedelta(days=-1))
    assert searches.delete_expired() == 1
    assert (store.runs.all(), searches.delete_expired()) == ([], 0)
    with pytest.raises(SearchNotFound):
        searches.get(stored.key)


def test_many_workers_store_every_query_once(store, searches, target):
    """Four threads with stores of their own; some drop what they hold, as if they had died."""
    stored = [submit(searches, new_search(f"owner{number}", n_queries=40))[0] for number in range(3)]
    problems = []

    def run(name):
        try:
            with Store(target) as opened:
                work = opened.queue
                for round_ in range(1000):
                    batch = work.claim(name, [DATABASE], {DATABASE.name: 7 * MEGACELL}, HOUR)
                    if batch is None:
                        if all(searches.get(search.key).is_finished for search in stored):
                            return
                        continue
                    if round_ % 3 == 1:
                        work.give_back(name)
                        continue
                    search_all(work, batch, name)
        except BaseException as error:
            problems.append(error)
            raise

    threads = [threading.Thread(target=run, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    for search in stored:
        done = searches.get(search.key)
        assert (done.state, done.n_done) == ("done", 40)
        found = [result.number for result in store.results.queries(done.run_id)]
        assert found == list(range(40))


def test_what_no_program_wrote_is_named(store, searches, work):
    from swsearch.errors import StoreError

    stored, _ = submit(searches, new_search())
    with store.writing() as rows:
        rows.execute("UPDATE searches SET options = ?", "[]")
    with pytest.raises(StoreError, match="table searches, column options"):
        searches.get(stored.key)
    assert dataclasses.replace(stored, state="done").is_finished


# --- how much an owner may have, and how much a batch ---


def test_stored_and_predicted_alignments_of_an_owner_are_limited(store, searches, work):
    """Each query of these searches may have ten alignments, and has three in the end."""

    def hits_of_query(database, options):
        return 10 if (database, options["top"]) == ("proteins.db", 25) else 10**9

    limit = OwnerLimits(hits=100, hits_of_query=hits_of_query)

    def submit_of(n_queries, owner="eve", **changes):
        return submit(searches, new_search(owner, n_queries, **changes), limit)[0]

    problem = "have or may get 0 alignments, and this one 110, together more than the 100"
    with pytest.raises(Refused, match=problem) as refusal:
        submit_of(11)
    assert refusal.value.code == "too_many_hits"
    first = submit_of(6)
    with pytest.raises(Refused, match="may get 60 alignments, and this one 50"):
        submit_of(5)
    submit_of(5, "ann")
    together = [new_search("eve", n_queries) for n_queries in (3, 2)]
    assert [isinstance(found, Refused) for found in searches.submit(together, limit)] == [False, True]
    while (batch := claim(work)) is not None:
        search_all(work, batch)
    assert searches.get(first.key).state == "done"
    again, _ = submit(searches, new_search("eve", 6, content=first.content), limit)
    assert again.run_id == searches.get(first.key).run_id  # its alignments are counted once
    with pytest.raises(Refused, match="may get 27 alignments, and this one 80"):  # nine queries have three each
        submit_of(8)
    store.runs.delete(searches.get(first.key).run_id)
    submit_of(8)  # nine are left


def test_what_a_query_costs_besides_its_cells_bounds_a_batch(searches, work):
    submit(searches, new_search(n_queries=20, cells=5))
    asked = []

    def overhead(database, options):
        asked.append((database, options["top"]))
        return 95

    batch = work.claim("w1", [DATABASE], {DATABASE.name: 1000}, HOUR, overhead=overhead)
    assert len(batch.queries) == 10
    assert asked == [(DATABASE, 25)]
    assert len(work.claim("w1", [DATABASE], {DATABASE.name: 30}, HOUR).queries) == 6


def test_a_search_that_waits_although_it_is_its_turn_has_a_reason(searches, work):
    waiting, _ = submit(searches, new_search(n_queries=2))
    running, _ = submit(searches, new_search(n_queries=1, content="other", fingerprint="e" * 64))
    (first, second) = (claim(work), claim(work))
    batch = first if first.queries[0].search_id == waiting.id else second
    work.put_off("w1", {waiting.id}, "the disk does not answer")
    held = searches.get(waiting.key)
    assert (held.state, held.reason) == ("queued", "the disk does not answer")
    assert searches.get(running.key).reason is None
    again = claim(work, "w2")
    assert [query.number for query in again.queries] == [query.number for query in batch.queries] == [0, 1]
    assert [query.losses for query in again.queries] == [0, 0]
    work.begin([waiting.id], RUN)
    assert searches.get(waiting.key).reason is None


def test_the_databases_of_an_owner(searches, work):
    submit(searches, new_search("eve"))
    search_all(work, claim(work))
    assert searches.databases_of("eve") == {DATABASE.name: False}
    submit(searches, new_search("eve", 2))
    submit(searches, new_search("eve", 3, database=dataclasses.replace(DATABASE, name="other.db")))
    assert searches.databases_of("eve") == {DATABASE.name: True, "other.db": True}
    assert searches.databases_of("ann") == {}


def test_a_store_is_used_again_after_its_server_was_restarted(postgres_url):
    """A restart ends all connections; here an administrator ends them."""
    import psycopg

    with Store(postgres_url, create=True) as store:
        submit(store.searches, new_search())
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert len(store.searches.waiting()) == 1
        assert submit(store.searches, new_search(n_queries=2))[1]

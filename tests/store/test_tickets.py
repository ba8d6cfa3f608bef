"""The searches of a ticket by their idempotency keys, in a SQLite file and on a PostgreSQL server."""

from swsearch.store.store import Store
from tests.store.conftest import submit
from tests.store.test_searches import new_search


def test_searches_are_found_by_their_keys(target):
    """Expected by hand: in the order of the keys, those of the owner alone, as they were written."""
    with Store(target, create=True) as store:
        first, _ = submit(store.searches, new_search(idempotency_key="ticket Ab 0"))
        second, _ = submit(store.searches, new_search(n_queries=2, idempotency_key="ticket Ab 1"))
        submit(store.searches, new_search(idempotency_key="ticket ab 0", content="c" * 64))
        submit(store.searches, new_search(owner="ben", idempotency_key="ticket Ab 2"))
        found = store.searches.under("ann", ["ticket Ab 1", "ticket Ab 2", "ticket Ab 0"])
        assert [search and search.key for search in found] == [second.key, None, first.key]
        assert store.searches.under("ben", ["ticket Ab 0", "ticket ab 0"]) == [None, None]


def test_the_keys_of_failed_searches_can_be_used_again(target):
    """Expected by hand: what waits keeps its key; what was cancelled remains, and a new search has its key."""
    keys = ["ticket Ab 0", "ticket Ab 1"]
    with Store(target, create=True) as store:
        waiting, cancelled = (submit(store.searches, new_search(n_queries=n, idempotency_key=key))[0]
                              for n, key in enumerate(keys, 1))  # fmt: skip
        store.searches.cancel(cancelled.key)
        store.searches.release_failed("ben", keys)
        assert None not in store.searches.under("ann", keys)
        store.searches.release_failed("ann", keys)
        found = store.searches.under("ann", keys)
        assert [search and search.key for search in found] == [waiting.key, None]
        again, is_new = submit(store.searches, new_search(n_queries=2, idempotency_key=keys[1]))
        assert is_new
        assert again.key != cancelled.key
        assert store.searches.get(cancelled.key).state == "cancelled"

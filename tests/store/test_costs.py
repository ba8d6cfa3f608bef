"""What searches of a service cost a store in which many are done."""

import sqlite3
from contextlib import closing

from swsearch.store.results import HitView
from swsearch.store.searches import OwnerLimits
from swsearch.store.store import Store
from tests.store.conftest import submit
from tests.store.test_searches import claim, new_search, search_all


def test_the_cost_of_a_search_does_not_grow_with_those_that_are_done(tmp_path, monkeypatch):
    """The steps of SQLite's virtual machine from the submission to the first page of hits, by one owner."""
    monkeypatch.setattr("swsearch.store.searches._REMEMBERED", 1e9)  # the owner's alignments are counted once
    path = tmp_path / "hits.sqlite"
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    def search(store: Store, content: str) -> None:
        stored, _ = submit(store.searches, new_search(content=content), OwnerLimits(10**18, 10**18, 10**18))
        assert store.queue.has_work()
        search_all(store.queue, claim(store.queue))
        assert store.searches.with_keys([stored.key], finished=True)[stored.key].n_done == 1
        assert store.results.view(store.searches.get(stored.key).run_id, 0, HitView(limit=25)).query
        assert len(store.searches.waiting()) == 0
        assert len(store.searches.of_owner("ann", 2)) == 2

    def cost(of: str) -> int:
        """The steps of the second search of a process."""
        nonlocal steps
        with Store(path, create=True) as store:
            with store._connections.borrowed() as driver:  # the connection of all transactions that follow
                driver.set_progress_handler(count, 1)
            search(store, f"first {of}")
            steps = 0
            search(store, f"second {of}")
        return steps

    with Store(path, create=True) as store:
        submit(store.searches, new_search())
        search_all(store.queue, claim(store.queue))
    few = cost("of few")
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(searches)")]
        copied = ", ".join(name for name in columns if name not in ("id", "key", "content"))
        made = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        source = f"SELECT 'k' || i, 'c' || i, {copied} FROM n, searches WHERE id = 1"
        connection.execute(f"INSERT INTO searches (key, content, {copied}) {made} {source}")
    assert 0 < cost("of many") < 1.2 * few

"""Links to searches in the store, on SQLite and PostgreSQL. Source: the module's description."""

from datetime import timedelta

import pytest

from swsearch.errors import Refused, SearchNotFound
from swsearch.store.accounts import MAX_LINKS, is_link_key
from swsearch.store.rows import utc_now
from swsearch.store.store import Store
from tests.store.conftest import submit
from tests.store.test_searches import new_search


def n_links(store):
    """Number of links of all searches."""
    with store.reading() as rows:
        return rows.execute("SELECT COUNT(*) FROM links").fetchone()[0]


@pytest.fixture
def store(target):
    with Store(target, create=True) as opened:
        yield opened


def test_a_link_finds_its_search_until_it_is_withdrawn(store):
    first, second = (submit(store.searches, new_search("ann", n))[0] for n in (1, 2))
    links = [store.accounts.add_link(search.key, "ann") for search in (first, first, second)]
    assert [store.accounts.linked_search(key).id for _, key in links] == [first.id, first.id, second.id]
    assert store.accounts.links(first.key, "ann") == [link for link, _ in links[:2]]
    assert all(is_link_key(key) and not is_link_key(first.key) for _, key in links)
    store.accounts.delete_links(first.key, "ann", links[0][0].id)
    with pytest.raises(SearchNotFound):
        store.accounts.linked_search(links[0][1])
    with pytest.raises(Refused, match="this search has no link"):
        store.accounts.delete_links(second.key, "ann", links[1][0].id)
    store.accounts.delete_links(first.key, "ann")
    assert (store.accounts.links(first.key, "ann"), n_links(store)) == ([], 1)
    assert store.accounts.linked_search(links[2][1]).id == second.id


def test_links_are_the_owners(store):
    search = submit(store.searches, new_search("ann"))[0]
    link, key = store.accounts.add_link(search.key, "ann")
    for call in (
        lambda: store.accounts.add_link(search.key, "bob"),
        lambda: store.accounts.links(search.key, "bob"),
        lambda: store.accounts.delete_links(search.key, "bob"),
        lambda: store.accounts.delete_links(search.key, "bob", link.id),
        lambda: store.accounts.add_link(key, "ann"),
    ):
        with pytest.raises(SearchNotFound):
            call()
    assert store.accounts.links(search.key, "ann") == [link]


def test_links_leave_with_their_search(store):
    search = submit(store.searches, new_search("ann"))[0]
    _, key = store.accounts.add_link(search.key, "ann")
    with store.writing() as rows:
        rows.change("searches", search.id, {"expires_at": utc_now() - timedelta(seconds=1)})
    assert store.searches.delete_expired() == 1
    assert n_links(store) == 0
    with pytest.raises(SearchNotFound):
        store.accounts.linked_search(key)


def test_a_search_has_so_many_links(store):
    search = submit(store.searches, new_search("ann"))[0]
    for _ in range(MAX_LINKS):
        store.accounts.add_link(search.key, "ann")
    with pytest.raises(Refused, match="this search has 100 links; withdraw one of them"):
        store.accounts.add_link(search.key, "ann")

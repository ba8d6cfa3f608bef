"""Links to searches in the store, on SQLite and PostgreSQL. Source: the module's description."""

from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from swsearch.errors import Refused, SearchNotFound
from swsearch.store.links import MAX_LINKS, LinkStore, is_link_key
from swsearch.store.records import utc_now
from swsearch.store.searches import SearchStore
from swsearch.store.service_models import LINKS, SEARCHES
from swsearch.store.session import reading
from tests.store.test_searches import new_search


class Store(SearchStore, LinkStore):
    """A store of both."""

    def n_links(self):
        """Number of links of all searches."""
        with reading(self._engine) as connection:
            return connection.execute(select(func.count()).select_from(LINKS)).scalar_one()


@pytest.fixture
def store(target):
    with Store(target, create=True) as opened:
        yield opened


def test_a_link_finds_its_search_until_it_is_withdrawn(store):
    first, second = (store.submit(new_search("ann", n))[0] for n in (1, 2))
    links = [store.add_link(search.key, "ann") for search in (first, first, second)]
    assert [store.linked_search(key).id for _, key in links] == [first.id, first.id, second.id]
    assert store.links(first.key, "ann") == [link for link, _ in links[:2]]
    assert all(is_link_key(key) and not is_link_key(first.key) for _, key in links)
    store.delete_links(first.key, "ann", links[0][0].id)
    with pytest.raises(SearchNotFound):
        store.linked_search(links[0][1])
    with pytest.raises(Refused, match="this search has no link"):
        store.delete_links(second.key, "ann", links[1][0].id)
    store.delete_links(first.key, "ann")
    assert (store.links(first.key, "ann"), store.n_links()) == ([], 1)
    assert store.linked_search(links[2][1]).id == second.id


def test_links_are_the_owners(store):
    search = store.submit(new_search("ann"))[0]
    link, key = store.add_link(search.key, "ann")
    for call in (
        lambda: store.add_link(search.key, "bob"),
        lambda: store.links(search.key, "bob"),
        lambda: store.delete_links(search.key, "bob"),
        lambda: store.delete_links(search.key, "bob", link.id),
        lambda: store.add_link(key, "ann"),
    ):
        with pytest.raises(SearchNotFound):
            call()
    assert store.links(search.key, "ann") == [link]


def test_links_leave_with_their_search(store):
    search = store.submit(new_search("ann"))[0]
    _, key = store.add_link(search.key, "ann")
    with store._writing() as connection:
        ended = {"expires_at": utc_now() - timedelta(seconds=1)}
        connection.execute(update(SEARCHES).where(SEARCHES.c.id == search.id).values(**ended))
    assert store.delete_expired() == 1
    assert store.n_links() == 0
    with pytest.raises(SearchNotFound):
        store.linked_search(key)


def test_a_search_has_so_many_links(store):
    search = store.submit(new_search("ann"))[0]
    for _ in range(MAX_LINKS):
        store.add_link(search.key, "ann")
    with pytest.raises(Refused, match="this search has 100 links; withdraw one of them"):
        store.add_link(search.key, "ann")

"""Links that show one search to everybody who has them: made by its owner, shown once, withdrawn by deletion.

The key of a link has 256 random bits, so its plain SHA-256, which alone is stored, cannot be inverted and can be looked
up in an index. A link ends with its search.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, delete, func, insert, select

from swsearch.errors import Refused, SearchNotFound
from swsearch.store.records import utc_now
from swsearch.store.repository import HitStore
from swsearch.store.search_records import StoredSearch, stored_search
from swsearch.store.service_models import LINKS, SEARCHES
from swsearch.store.session import reading
from swsearch.store.tokens import token_digest

MAX_LINKS: Final = 100
"""Largest number of links of a search."""
_PREFIX: Final = "share-"
_KEY: Final = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True)
class StoredLink:
    """A link without its key: its id, and when it was made."""

    id: str
    created: datetime


def is_link_key(text: str) -> bool:
    """Whether a text has the form of a link's key; the key of a search never has it.

    >>> is_link_key("share-" + "x" * 43), is_link_key("k3fJ0aYbTq1mVxWzQe7LhA")
    (True, False)
    """
    return _KEY.fullmatch(text) is not None


class LinkStore(HitStore):
    """A store with the links to searches; parameters and errors are those of ``HitStore``."""

    def add_link(self, key: str, owner: str) -> tuple[StoredLink, str]:
        """Make a link to a search of an owner; returns its record, and its key, which is not stored.

        Raises
        ------
        SearchNotFound
            The owner has no such search.
        Refused
            The search has :data:`MAX_LINKS` links.
        """
        link_key = _PREFIX + secrets.token_urlsafe(32)
        stored = StoredLink(secrets.token_hex(4), utc_now())
        with self._writing() as connection:
            search_id = _search_id(connection, key, owner, locked=True)
            n_links = connection.execute(select(func.count()).where(LINKS.c.search_id == search_id)).scalar_one()
            if n_links >= MAX_LINKS:
                raise Refused("too_many_shares", f"this search has {n_links} links; withdraw one of them")
            values = {"id": stored.id, "digest": token_digest(link_key), "created_at": stored.created}
            connection.execute(insert(LINKS), {**values, "search_id": search_id})
        return stored, link_key

    def links(self, key: str, owner: str) -> list[StoredLink]:
        """The links to a search of an owner, oldest first.

        Raises
        ------
        SearchNotFound
            The owner has no such search.
        """
        with reading(self._engine) as connection:
            of_search = LINKS.c.search_id == _search_id(connection, key, owner)
            rows = connection.execute(select(LINKS).where(of_search).order_by(LINKS.c.created_at, LINKS.c.id))
            return [StoredLink(row.id, row.created_at) for row in rows]

    def delete_links(self, key: str, owner: str, link_id: str | None = None) -> None:
        """Withdraw a link to a search of an owner by the link's id, or all of them.

        Raises
        ------
        SearchNotFound
            The owner has no such search.
        Refused
            The search has no such link.
        """
        with self._writing() as connection:
            chosen = LINKS.c.search_id == _search_id(connection, key, owner, locked=True)
            if link_id is not None:
                chosen &= LINKS.c.id == link_id
            n_deleted = connection.execute(delete(LINKS).where(chosen)).rowcount
            if link_id is not None and n_deleted == 0:
                raise Refused("unknown_share", f"this search has no link {link_id!r}")

    def linked_search(self, link_key: str) -> StoredSearch:
        """The search that a link shows, with the key of the search.

        Raises
        ------
        SearchNotFound
            There is no such link, or it was withdrawn.
        """
        with reading(self._engine) as connection:
            joined = select(SEARCHES).join(LINKS, LINKS.c.search_id == SEARCHES.c.id)
            row = connection.execute(joined.where(LINKS.c.digest == token_digest(link_key))).first()
            if row is None:
                raise SearchNotFound(link_key)
            return stored_search(row)


def _search_id(connection: Connection, key: str, owner: str, *, locked: bool = False) -> int:
    found = select(SEARCHES.c.id).where(SEARCHES.c.key == key, SEARCHES.c.owner == owner)
    row: Any = connection.execute(found.with_for_update() if locked else found).scalar()
    if row is None:
        raise SearchNotFound(key)
    return int(row)

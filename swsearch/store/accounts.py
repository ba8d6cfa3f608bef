"""Who may see what: the tokens of a service's owners, and links that show one search to everybody who has them.

A token or link is made once and shown once. It has 256 random bits, so its plain SHA-256, which alone is stored, cannot
be inverted and can be looked up in an index. A link ends with its search, or is withdrawn by deletion.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from swsearch.errors import InputError, Refused, SearchNotFound
from swsearch.store.rows import storable, utc_now
from swsearch.store.search_records import StoredSearch, searches_where
from swsearch.store.searches import search_with

if TYPE_CHECKING:
    from swsearch.store.store import Store

LOCAL_OWNER: Final = "local"
"""The owner of all searches of a server without tokens, and of nothing else."""
PREFIX: Final = "sws_"
"""Begins every token, so that scanners for leaked secrets can know them."""
_MAX_OWNER: Final = 100
MAX_LINKS: Final = 100
"""Largest number of links of a search."""
_LINK_PREFIX: Final = "share-"
_LINK_KEY: Final = re.compile(rf"{_LINK_PREFIX}[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True)
class StoredToken:
    """A token without itself: its id, its owner, and when it was made and revoked."""

    id: str
    owner: str
    created: datetime
    revoked: datetime | None


@dataclass(frozen=True)
class StoredLink:
    """A link without its key: its id, and when it was made."""

    id: str
    created: datetime


def token_digest(token: str) -> str:
    """SHA-256 of a token, in hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_owner_name(text: str) -> bool:
    """Whether a text can be the name of an owner with a token, or of one whom a proxy names.

    >>> [is_owner_name(text) for text in ("ann@example.org", " ", chr(10), LOCAL_OWNER)]
    [True, False, False, False]
    """
    return bool(text.strip()) and len(text) <= _MAX_OWNER and text.isprintable() and text != LOCAL_OWNER


def is_link_key(text: str) -> bool:
    """Whether a text has the form of a link's key; the key of a search never has it.

    >>> is_link_key("share-" + "x" * 43), is_link_key("k3fJ0aYbTq1mVxWzQe7LhA")
    (True, False)
    """
    return _LINK_KEY.fullmatch(text) is not None


class Accounts:
    """The tokens of a service's owners, and the links to searches."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- tokens ---

    def add_token(self, owner: str) -> tuple[StoredToken, str]:
        """Make a token for an owner; returns its record, and the token, which is not stored.

        Raises
        ------
        InputError
            The name of the owner is empty, too long, has characters that cannot be printed, or is reserved.
        """
        if owner == LOCAL_OWNER:
            raise InputError(f"the owner {owner!r} is that of searches without a token; choose another name")
        if not is_owner_name(owner):
            raise InputError(f"the name of an owner has 1 to {_MAX_OWNER} printable characters")
        token = PREFIX + secrets.token_urlsafe(32)
        stored = StoredToken(secrets.token_hex(4), owner, utc_now(), None)
        values = (stored.id, storable(owner), token_digest(token), stored.created)
        with self._store.writing() as rows:
            rows.execute("INSERT INTO tokens (id, owner, digest, created_at) VALUES (?, ?, ?, ?)", *values)
        return stored, token

    def tokens(self) -> list[StoredToken]:
        """All tokens, oldest first, revoked ones included."""
        with self._store.reading() as rows:
            tokens = rows.records("tokens", "ORDER BY created_at, id")
            return [StoredToken(token.id, token.owner, token.created_at, token.revoked_at) for token in tokens]

    def has_tokens(self) -> bool:
        """Whether there is a token that is not revoked."""
        return any(token.revoked is None for token in self.tokens())

    def revoke_token(self, token_id: str) -> StoredToken:
        """Revoke a token by its id; the next request with it is refused.

        Raises
        ------
        InputError
            There is no such token.
        """
        with self._store.writing() as rows:
            revoke = "UPDATE tokens SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?"
            if not rows.execute(revoke, utc_now(), token_id).rowcount:
                raise InputError(f"there is no token {token_id!r}; `swsearch tokens list` lists them")
        return next(token for token in self.tokens() if token.id == token_id)

    def owner_of(self, token: str) -> str | None:
        """The owner of a token; None if there is no such token, or it was revoked."""
        with self._store.reading() as rows:
            valid = rows.records("tokens", "WHERE digest = ? AND revoked_at IS NULL", token_digest(token))
            return next((found.owner for found in valid), None)

    # --- links ---

    def add_link(self, key: str, owner: str) -> tuple[StoredLink, str]:
        """Make a link to a search of an owner; returns its record, and its key, which is not stored.

        Raises
        ------
        SearchNotFound
            The owner has no such search.
        Refused
            The search has :data:`MAX_LINKS` links.
        """
        link_key = _LINK_PREFIX + secrets.token_urlsafe(32)
        stored = StoredLink(secrets.token_hex(4), utc_now())
        with self._store.writing() as rows:
            search_id = search_with(rows, key, owner, locked=True).id
            (n_links,) = rows.execute("SELECT COUNT(*) FROM links WHERE search_id = ?", search_id).fetchone()
            if n_links >= MAX_LINKS:
                raise Refused("too_many_links", f"this search has {n_links} links; withdraw one of them")
            values = (stored.id, search_id, token_digest(link_key), stored.created)
            rows.execute("INSERT INTO links (id, search_id, digest, created_at) VALUES (?, ?, ?, ?)", *values)
        return stored, link_key

    def links(self, key: str, owner: str) -> list[StoredLink]:
        """The links to a search of an owner, oldest first.

        Raises
        ------
        SearchNotFound
            The owner has no such search.
        """
        with self._store.reading() as rows:
            search_id = search_with(rows, key, owner).id
            links = rows.records("links", "WHERE search_id = ? ORDER BY created_at, id", search_id)
            return [StoredLink(link.id, link.created_at) for link in links]

    def delete_links(self, key: str, owner: str, link_id: str | None = None) -> None:
        """Withdraw a link to a search of an owner by the link's id, or all of them.

        Raises
        ------
        SearchNotFound
            The owner has no such search.
        Refused
            The search has no such link.
        """
        with self._store.writing() as rows:
            search_id = search_with(rows, key, owner, locked=True).id
            one, ids = ("", []) if link_id is None else (" AND id = ?", [link_id])
            n_deleted = rows.execute(f"DELETE FROM links WHERE search_id = ?{one}", search_id, *ids).rowcount
            if link_id is not None and n_deleted == 0:
                raise Refused("unknown_link", f"this search has no link {link_id!r}")

    def linked_search(self, link_key: str) -> StoredSearch:
        """The search that a link shows, with the key of the search.

        Raises
        ------
        SearchNotFound
            There is no such link, or it was withdrawn.
        """
        with self._store.reading() as rows:
            linked = "id = (SELECT search_id FROM links WHERE digest = ?)"
            for search in searches_where(rows, linked, token_digest(link_key)):
                return search
        raise SearchNotFound(link_key)

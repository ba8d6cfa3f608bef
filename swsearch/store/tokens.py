"""The tokens of a service's owners: made once, shown once, and stored as their SHA-256 alone.

A token has 256 random bits, so its plain hash cannot be inverted, and the hash can be looked up in an index.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import insert, select, update

from swsearch.errors import InputError
from swsearch.store.records import utc_now
from swsearch.store.repository import HitStore
from swsearch.store.service_models import TOKENS
from swsearch.store.session import reading

PREFIX: Final = "sws_"
"""Begins every token, so that scanners for leaked secrets can know them."""
_MAX_OWNER: Final = 100


@dataclass(frozen=True)
class StoredToken:
    """A token without itself: its id, its owner, and when it was made and revoked."""

    id: str
    owner: str
    created: datetime
    revoked: datetime | None


def token_digest(token: str) -> str:
    """SHA-256 of a token, in hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_owner_name(text: str) -> bool:
    """Whether a text can be the name of an owner.

    >>> is_owner_name("ann@example.org"), is_owner_name(" "), is_owner_name(chr(10))
    (True, False, False)
    """
    return bool(text.strip()) and len(text) <= _MAX_OWNER and text.isprintable()


class TokenStore(HitStore):
    """A store with the tokens of a service; parameters and errors are those of ``HitStore``."""

    def add_token(self, owner: str) -> tuple[StoredToken, str]:
        """Make a token for an owner; returns its record, and the token, which is not stored.

        Raises
        ------
        InputError
            The name of the owner is empty, too long, or has characters that cannot be printed.
        """
        if not is_owner_name(owner):
            raise InputError(f"the name of an owner has 1 to {_MAX_OWNER} printable characters")
        token = PREFIX + secrets.token_urlsafe(32)
        stored = StoredToken(secrets.token_hex(4), owner, utc_now(), None)
        with self._writing() as connection:
            values = {"id": stored.id, "owner": owner, "digest": token_digest(token), "created_at": stored.created}
            connection.execute(insert(TOKENS), {**values, "revoked_at": None})
        return stored, token

    def tokens(self) -> list[StoredToken]:
        """All tokens, oldest first, revoked ones included."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(TOKENS).order_by(TOKENS.c.created_at, TOKENS.c.id))
            return [StoredToken(row.id, row.owner, row.created_at, row.revoked_at) for row in rows]

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
        with self._writing() as connection:
            of_id = TOKENS.c.id == token_id
            if connection.execute(select(TOKENS.c.id).where(of_id)).first() is None:
                raise InputError(f"there is no token {token_id!r}; `swsearch tokens list` lists them")
            connection.execute(update(TOKENS).where(of_id, TOKENS.c.revoked_at.is_(None)).values(revoked_at=utc_now()))
        return next(token for token in self.tokens() if token.id == token_id)

    def owner_of(self, token: str) -> str | None:
        """The owner of a token; None if there is no such token, or it was revoked."""
        with reading(self._engine) as connection:
            valid = (TOKENS.c.digest == token_digest(token)) & TOKENS.c.revoked_at.is_(None)
            owner: str | None = connection.execute(select(TOKENS.c.owner).where(valid)).scalar()
            return owner

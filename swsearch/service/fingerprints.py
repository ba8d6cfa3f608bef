"""What makes two searches compatible, and what makes them equal."""

from __future__ import annotations

import hashlib
import json

from swsearch import __version__
from swsearch.store.search_records import Parameters, SearchedDatabase


def fingerprint(database: SearchedDatabase, options: Parameters) -> str:
    """SHA-256 of a database, the options and the program; one engine call may score what shares it.

    The generation counts, because filters and reports use the stored taxonomy, which is no part of the content.
    """
    known = [database.digest, database.generation, sorted(options.items()), __version__]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def content(fingerprint: str, asked_digest: str) -> str:
    """SHA-256 of a fingerprint and the digest of the queries: equal searches have equal results."""
    return hashlib.sha256(f"{fingerprint} {asked_digest}".encode()).hexdigest()

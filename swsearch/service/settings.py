"""The settings of a server: databases, store, address and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

LOCAL_OWNER: Final = "local"
"""The owner of all searches of a server without tokens."""


@dataclass(frozen=True)
class Limits:
    """The limits of a server; each refusal names the limit that it is for.

    Attributes
    ----------
    request_bytes : int
        Largest body of a request, and largest content of a compressed one after its decompression.
    query_residues : int
        Longest query, in residues.
    search_queries : int
        Largest number of queries of one search.
    queued_cells : int
        Largest number of cells that an owner may have in unfinished searches.
    daily_cells : int
        Largest number of cells that an owner may submit on one day (UTC).
    top : int
        Largest ``top`` of a search, which bounds the bytes of a result.
    downloads : int
        Largest number of reports that are written at a time.
    """

    request_bytes: int = 64 << 20
    query_residues: int = 100_000
    search_queries: int = 10_000
    queued_cells: int = 10**16
    daily_cells: int = 10**17
    top: int = 100_000
    downloads: int = 8


@dataclass(frozen=True)
class Settings:
    """What a server is started with.

    Attributes
    ----------
    databases : mapping of str to Path
        Databases by the name under which they are offered.
    store : str
        A file or URL (:mod:`swsearch.store.session`).
    tokens_required : bool
        Whether every request needs a token. If not, there is one owner, :data:`LOCAL_OWNER`, and the server answers
        only requests to a loopback address.
    worker_command : tuple of str
        The command that starts the worker process of this server; empty if workers are started separately.
    expiry_days : float
        Days after which a finished search and its results are deleted; 0 keeps them.
    limits : Limits
    protocols : tuple of str
        Protocols of other services that the server speaks (:mod:`swsearch.service.web.protocols`).
    """

    databases: Mapping[str, Path]
    store: str
    tokens_required: bool = False
    worker_command: tuple[str, ...] = ()
    expiry_days: float = 30.0
    limits: Limits = field(default_factory=Limits)
    protocols: tuple[str, ...] = ()

"""The settings of a server: databases, store, address and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

NOBODY: Final = ""
"""Whoever has a link to a search and no token; no owner has this name."""


@dataclass(frozen=True)
class ServerLimits:
    """The limits of a server; each refusal names the limit that it is for.

    Attributes
    ----------
    request_bytes : int
        Largest body of a request, and largest content of a compressed one after its decompression.
    owner_bytes_in_flight : int
        Largest number of bytes of the bodies of an owner's requests that are in memory at a time, decompressed; the
        first 64 kB of each do not count.
    bytes_in_flight : int
        The same for all owners together.
    query_residues : int
        Longest query, in residues.
    search_queries : int
        Largest number of queries of one search.
    queued_cells : int
        Largest number of cells that an owner may have in unfinished searches.
    daily_cells : int
        Largest number of cells that an owner may submit on one day (UTC).
    subject_residues : int
        Largest number of residues of the subjects that are sent with a search.
    subject_sets : int
        Number of sets of such subjects that are kept for an owner at a time.
    stored_hits : int
        Largest number of alignments that an owner's searches may have, stored and predicted ones.
    top : int
        Largest ``top`` of a search, which bounds the bytes of a result.
    downloads : int
        Largest number of reports that are written at a time.
    requests_per_minute : int
        Requests of an owner in a minute; those without an owner, who see shared searches, are counted by address. A
        server without tokens does not count.
    failures_per_minute : int
        Tokens that are not valid, by address in a minute.
    worker_silence_seconds : int
        Time in seconds without progress after which the server ends its worker; its queries count as lost.
    """

    request_bytes: int = 64 << 20
    owner_bytes_in_flight: int = 64 << 20
    bytes_in_flight: int = 192 << 20
    query_residues: int = 100_000
    search_queries: int = 10_000
    queued_cells: int = 10**16
    daily_cells: int = 10**17
    subject_residues: int = 50_000_000
    subject_sets: int = 100
    stored_hits: int = 10_000_000
    top: int = 100_000
    downloads: int = 8
    requests_per_minute: int = 6000
    failures_per_minute: int = 20
    worker_silence_seconds: int = 300


@dataclass(frozen=True)
class Settings:
    """What a server is started with.

    Attributes
    ----------
    databases : mapping of str to Path
        Databases by the name under which they are offered.
    store : str
        A file or URL (:mod:`swsearch.store.connections`).
    tokens_required : bool
        Whether every request needs a token, or a proxy that names its owner. If not, there is one owner,
        :data:`~swsearch.store.accounts.LOCAL_OWNER`, and the server answers only requests to a loopback address.
    worker_commands : tuple of tuple of str
        The commands that start the worker processes of this server; empty if workers are started separately.
    expiry_days : float
        Days after which a finished search and its results are deleted; 0 keeps them.
    limits : ServerLimits
    protocols : tuple of str
        Protocols of other services that the server speaks (:mod:`swsearch.service.protocols`).
    trusted_proxies : tuple of str
        Addresses and networks of reverse proxies whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` hold.
    sso_header : str
        Header in which a trusted proxy names the owner of a request; empty if there is none.
    folder : Path or None
        A folder whose databases are offered too, as long as they are in it.
    subject_sets : Path or None
        The folder of the databases that are made of subjects sent with searches; None if such searches are refused.
    families : tuple of str
        Files of models; pages show the domains of queries that are proteins. Empty if they do not.
    root_path : str
        The path below which a proxy offers the server, such as ``/swsearch``; empty for all paths of a host.
    """

    databases: Mapping[str, Path]
    store: str
    tokens_required: bool = False
    worker_commands: tuple[tuple[str, ...], ...] = ()
    expiry_days: float = 30.0
    limits: ServerLimits = field(default_factory=ServerLimits)
    protocols: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    sso_header: str = ""
    folder: Path | None = None
    subject_sets: Path | None = None
    families: tuple[str, ...] = ()
    root_path: str = ""

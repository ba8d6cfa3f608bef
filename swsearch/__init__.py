"""Exhaustive Smith-Waterman search of protein and DNA databases.

The public names are those in ``__all__``; :mod:`swsearch.api` has an example of each. A table in ``CONTRIBUTING.md``
describes the flow of data through the folders of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swsearch.api import align, all_pairs, find_domains, open_database, search_database, write_report
    from swsearch.database.builder import build_database
    from swsearch.domains.annotation import DomainLimits
    from swsearch.errors import SwSearchError
    from swsearch.folders import user_store
    from swsearch.hits.hit import Hit
    from swsearch.hits.result import QueryResult
    from swsearch.search.options import SearchOptions
    from swsearch.search.searcher import open_searcher
    from swsearch.sequences.fasta_text import SubjectPart
    from swsearch.sequences.record import sequence
    from swsearch.service.client import Client
    from swsearch.store.store import Store

__version__ = "0.1.0"

__all__ = [
    "Client",
    "DomainLimits",
    "Hit",
    "QueryResult",
    "RowFilter",
    "SearchOptions",
    "Store",
    "SubjectPart",
    "SwSearchError",
    "align",
    "align_families",
    "all_pairs",
    "build_database",
    "find_domains",
    "open_database",
    "open_searcher",
    "search_database",
    "sequence",
    "user_store",
    "write_report",
]

_HOMES = {
    "Client": ("swsearch.service.client", "Client"),
    "DomainLimits": ("swsearch.domains.annotation", "DomainLimits"),
    "Hit": ("swsearch.hits.hit", "Hit"),
    "QueryResult": ("swsearch.hits.result", "QueryResult"),
    "RowFilter": ("swsearch.report.row_filter", "RowFilter"),
    "SearchOptions": ("swsearch.search.options", "SearchOptions"),
    "Store": ("swsearch.store.store", "Store"),
    "SubjectPart": ("swsearch.sequences.fasta_text", "SubjectPart"),
    "SwSearchError": ("swsearch.errors", "SwSearchError"),
    "align": ("swsearch.api", "align"),
    "align_families": ("swsearch.api", "align_families"),
    "all_pairs": ("swsearch.api", "all_pairs"),
    "build_database": ("swsearch.database.builder", "build_database"),
    "find_domains": ("swsearch.api", "find_domains"),
    "open_database": ("swsearch.api", "open_database"),
    "open_searcher": ("swsearch.search.searcher", "open_searcher"),
    "search_database": ("swsearch.api", "search_database"),
    "sequence": ("swsearch.sequences.record", "sequence"),
    "user_store": ("swsearch.folders", "user_store"),
    "write_report": ("swsearch.api", "write_report"),
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that ``import swsearch`` takes almost no time."""
    if name not in _HOMES:
        raise AttributeError(f"module 'swsearch' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, including those that are not imported yet."""
    return sorted(["__version__", *__all__])

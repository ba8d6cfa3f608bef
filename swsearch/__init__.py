"""Exhaustive Smith-Waterman search of protein and DNA databases.

The public names are those in ``__all__``; :mod:`swsearch.api` has an example of each. A table in ``CONTRIBUTING.md``
describes the flow of data through the folders of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swsearch.api import (
        align,
        align_families,
        all_pairs,
        find_domains,
        open_database,
        search_database,
        write_report,
    )
    from swsearch.database.builder import build_database
    from swsearch.domains.annotation import DomainLimits
    from swsearch.errors import SwSearchError
    from swsearch.folders import user_store
    from swsearch.hits.hit import Hit
    from swsearch.hits.result import QueryResult
    from swsearch.report.row_filter import RowFilter
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
    "Client": "swsearch.service.client",
    "DomainLimits": "swsearch.domains.annotation",
    "Hit": "swsearch.hits.hit",
    "QueryResult": "swsearch.hits.result",
    "RowFilter": "swsearch.report.row_filter",
    "SearchOptions": "swsearch.search.options",
    "Store": "swsearch.store.store",
    "SubjectPart": "swsearch.sequences.fasta_text",
    "SwSearchError": "swsearch.errors",
    "align": "swsearch.api",
    "align_families": "swsearch.api",
    "all_pairs": "swsearch.api",
    "build_database": "swsearch.database.builder",
    "find_domains": "swsearch.api",
    "open_database": "swsearch.api",
    "open_searcher": "swsearch.search.searcher",
    "search_database": "swsearch.api",
    "sequence": "swsearch.sequences.record",
    "user_store": "swsearch.folders",
    "write_report": "swsearch.api",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that ``import swsearch`` takes almost no time."""
    if name not in _HOMES:
        raise AttributeError(f"module 'swsearch' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, including those that are not imported yet."""
    return sorted(["__version__", *__all__])

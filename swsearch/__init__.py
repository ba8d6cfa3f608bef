"""Exhaustive Smith-Waterman search of protein and DNA databases.

The steps of a search, and the package of each:

===============  ===============================================================================
FASTA            ``sequences``  alphabets, records, reading
scoring          ``scoring``    substitution matrices, gap costs
packed database  ``database``   the format, building, memory-mapped reading, partitions
query profile    ``query``      scores of every query position against every letter
engine           ``engine``     scores of every subject: ``reference``, ``cpu``, ``cuda``
top hits         ``hits``       the records: score columns, hits, alignments, results
profile queries  ``pssm``       PSSMs, and scores estimated from multiple alignments
traceback        ``alignment``  coordinates and CIGAR of reported hits, and the check that rescores them
statistics       ``statistics`` bit scores and E-values
pairs            ``pairs``      two sequences over all their cells: local to edit distance
composition      ``search``     the steps above in order, the exact top N
store            ``store``      runs and hits in SQLite or PostgreSQL
report           ``report``     one file a format
shell            ``cli``        the ``swsearch`` command
===============  ===============================================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swsearch.database.builder import build_database
    from swsearch.database.changes import add_to_database, compact_database, remove_from_database
    from swsearch.database.reader import PackedDatabase
    from swsearch.errors import SwSearchError
    from swsearch.hits.hit import Alignment, Hit
    from swsearch.hits.result import QueryResult
    from swsearch.search.api import open_searcher, read_queries, search_database, sequence
    from swsearch.search.options import SearchOptions
    from swsearch.search.query_file import read_queries_as
    from swsearch.sequences.record import SequenceRecord

__version__ = "0.1.0"

__all__ = [
    "Alignment",
    "Hit",
    "PackedDatabase",
    "QueryResult",
    "SearchOptions",
    "SequenceRecord",
    "SwSearchError",
    "__version__",
    "add_to_database",
    "build_database",
    "compact_database",
    "open_searcher",
    "read_queries",
    "read_queries_as",
    "remove_from_database",
    "search_database",
    "sequence",
]

_HOMES = {
    "Alignment": "swsearch.hits.hit",
    "Hit": "swsearch.hits.hit",
    "PackedDatabase": "swsearch.database.reader",
    "QueryResult": "swsearch.hits.result",
    "SearchOptions": "swsearch.search.options",
    "SequenceRecord": "swsearch.sequences.record",
    "SwSearchError": "swsearch.errors",
    "add_to_database": "swsearch.database.changes",
    "build_database": "swsearch.database.builder",
    "compact_database": "swsearch.database.changes",
    "open_searcher": "swsearch.search.api",
    "read_queries": "swsearch.search.api",
    "read_queries_as": "swsearch.search.query_file",
    "remove_from_database": "swsearch.database.changes",
    "search_database": "swsearch.search.api",
    "sequence": "swsearch.search.api",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that ``import swsearch`` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'swsearch' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value

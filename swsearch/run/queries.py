"""The queries of a run: their number, their digest, the queries that cannot be searched, and equal queries."""

from __future__ import annotations

import hashlib

from swsearch.errors import InputError
from swsearch.hits.shards import AskedQueries, QueryCount, Shard
from swsearch.query.profile import PositionSpecificQuery
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.queries import Queries
from swsearch.sequences.record import InvalidRecord, SequenceRecord


def add_to_count(count: QueryCount, record: SequenceRecord | InvalidRecord) -> None:
    """Count a query and add it to the digest; for a invalid record, only the identifier is added."""
    if isinstance(record, SequenceRecord):
        count.add(record.header, record.letters)
    else:
        count.add(record.identifier, "")


def count_queries(files: Queries, searcher: PlannedSearch, shard: Shard) -> AskedQueries:
    """The description of the files' queries; reads all files."""
    count = QueryCount()
    for record in files.records(searcher.scheme, searcher.needs):
        add_to_count(count, record)
    return count.asked(shard)


def refusal(searcher: PlannedSearch, number: int, record: SequenceRecord) -> InvalidRecord | None:
    """A readable sequence as a invalid record with its reason; None if it can be searched."""
    try:
        searcher.check(record)
    except InputError as error:
        return InvalidRecord("query", number, record.identifier, error.marked)
    return None


def query_key(record: SequenceRecord, searcher: PlannedSearch) -> bytes:
    """A key that is equal for queries with equal hits; it depends on case only if case affects the scores."""
    key = hashlib.blake2b((record.letters if searcher.case_counts else record.letters.upper()).encode(), digest_size=16)
    if isinstance(record, PositionSpecificQuery):
        key.update(record.scores.tobytes())
    return key.digest()

"""Which queries a run was asked to search: a share of those of some files.

A run keeps this beside its queries, so that what it lacks can be told exactly, and runs that are shares of one batch
can be told from others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from swsearch.errors import InputError

MOST_SHARES: Final = 999_999_999
"""More shares than any array of jobs has, and few enough for every database's integers."""


@dataclass(frozen=True)
class Shard:
    """The ``index``-th of ``count`` shares of a batch, from 1: every ``count``-th query.

    >>> Shard.parse("2/4").holds(5), Shard.parse("2/4").holds(6)
    (True, False)
    """

    index: int = 1
    count: int = 1

    @staticmethod
    def parse(text: str) -> Shard:
        """From ``i/n``.

        Raises
        ------
        InputError
            It is no ``i/n`` with 1 ≤ i ≤ n.
        """
        index, slash, count = text.partition("/")
        if slash and _is_number(index) and _is_number(count) and 1 <= int(index) <= int(count):
            return Shard(int(index), int(count))
        raise InputError(f"--shard {text[:40]!r}: give i/n with 1 <= i <= n <= {MOST_SHARES:,}, such as 2/8")

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def holds(self, number: int) -> bool:
        """Whether the query of this number belongs to the share."""
        return number % self.count == self.index - 1

    def contains(self, other: Shard) -> bool:
        """Whether every query of ``other`` belongs to this share too, whatever number of queries there are.

        >>> Shard(1, 2).contains(Shard(3, 4)), Shard(1, 2).contains(Shard(2, 4)), Shard(1, 1).contains(Shard(2, 4))
        (True, False, True)
        """
        return other.count % self.count == 0 and self.holds(other.index - 1)

    def numbers(self, n_queries: int) -> range:
        """The numbers of its queries where the files hold ``n_queries``."""
        return range(self.index - 1, n_queries, self.count)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_SHARES))


@dataclass(frozen=True)
class AskedQueries:
    """The queries that a run was asked to search.

    Attributes
    ----------
    shard : Shard
        The share of the files' queries.
    n_queries : int or None
        Queries of the files, all shares together, records that cannot be searched among them; None until they were
        counted.
    digest : str or None
        SHA-256 of all of them in their order, in hexadecimal: the same for the same queries, however many files they
        are in and wherever these lie. None until they were read.
    """

    shard: Shard = Shard()
    n_queries: int | None = None
    digest: str | None = None

    @property
    def n_of_share(self) -> int | None:
        """Queries of the share."""
        return None if self.n_queries is None else len(self.shard.numbers(self.n_queries))


@dataclass(frozen=True)
class FailedQuery:
    """A query that could not be searched.

    Attributes
    ----------
    number : int
        Its place in the run, from 0.
    reason : str
        What is wrong with it, where, and what to do.
    """

    number: int
    reason: str


class QueryCount:
    """Counts queries as they are read, and tells whether two readings gave the same."""

    def __init__(self) -> None:
        self.n_queries = 0
        self._digest = hashlib.sha256()

    def add(self, header: str, letters: str) -> None:
        """Count one; of a record that is no sequence, its first word and no letters."""
        self.n_queries += 1
        self._digest.update(f"{header}\n{letters}\n".encode("utf-8", "surrogatepass"))

    def asked(self, shard: Shard) -> AskedQueries:
        """What was counted, as the queries of which ``shard`` is searched."""
        return AskedQueries(shard, self.n_queries, self._digest.hexdigest())


def all_of(queries: Iterable[tuple[str, str]]) -> AskedQueries:
    """The queries with these headers and letters, all of which are searched."""
    count = QueryCount()
    for header, letters in queries:
        count.add(header, letters)
    return count.asked(Shard())

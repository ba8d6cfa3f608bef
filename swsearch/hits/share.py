"""The description of the queries that a run searches: a share of the queries of some files.

A run stores this description with its results. The description determines the missing queries of a run, and
distinguishes the shares of one batch from other runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from swsearch.errors import InputError

MAX_SHARES: Final = 999_999_999
"""Largest number of shares. It is larger than any job array, and within the integer range of every SQL database."""
PLACEHOLDER: Final = "{shard}"
"""The text in a file's name that stands for the share."""


@dataclass(frozen=True)
class Shard:
    """Share ``index`` of ``count`` shares of a batch, from 1; a share is every ``count``-th query.

    >>> Shard.parse("2/4").holds(5), Shard.parse("2/4").holds(6)
    (True, False)
    """

    index: int = 1
    count: int = 1

    @staticmethod
    def parse(text: str) -> Shard:
        """The share that a text of the form ``i/n`` denotes.

        Raises
        ------
        InputError
            The text is not of the form ``i/n`` with 1 ≤ i ≤ n.
        """
        index, slash, count = text.partition("/")
        if slash and _is_number(index) and _is_number(count) and 1 <= int(index) <= int(count):
            return Shard(int(index), int(count))
        forms = f"give i/n with 1 <= i <= n <= {MAX_SHARES:,}, such as 2/8, or auto in a job array"
        raise InputError(f"--shard {text[:40]!r}: {forms}")

    @property
    def label(self) -> str:
        """The share as part of a file's name, with leading zeros so that names sort by share.

        >>> Shard(3, 8).label, Shard(3, 10).label
        ('3-of-8', '03-of-10')
        """
        return f"{self.index:0{len(str(self.count))}}-of-{self.count}"

    def named(self, name: str) -> str:
        """A name of a file with :attr:`label` in place of :data:`PLACEHOLDER`.

        >>> Shard(3, 8).named("hits-{shard}.sqlite")
        'hits-3-of-8.sqlite'
        """
        return name.replace(PLACEHOLDER, self.label)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def holds(self, number: int) -> bool:
        """Whether the query with this number belongs to the share."""
        return number % self.count == self.index - 1

    def contains(self, other: Shard) -> bool:
        """Whether every query of ``other`` also belongs to this share, for any number of queries.

        >>> Shard(1, 2).contains(Shard(3, 4)), Shard(1, 2).contains(Shard(2, 4)), Shard(1, 1).contains(Shard(2, 4))
        (True, False, True)
        """
        return other.count % self.count == 0 and self.holds(other.index - 1)

    def numbers(self, n_queries: int) -> range:
        """The numbers of the share's queries if the files contain ``n_queries`` queries."""
        return range(self.index - 1, n_queries, self.count)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_SHARES))


@dataclass(frozen=True)
class AskedQueries:
    """The queries that a run is to search.

    Attributes
    ----------
    shard : Shard
        The share of the files' queries.
    n_queries : int or None
        Number of queries of the files, over all shares and including records that cannot be searched; None until they
        are counted.
    digest : str or None
        SHA-256 of all these queries in their order, in hexadecimal; it depends neither on their distribution over files
        nor on the paths of the files. None until they are read.
    """

    shard: Shard = Shard()
    n_queries: int | None = None
    digest: str | None = None

    @property
    def n_of_share(self) -> int | None:
        """Number of queries of the share; None until it is known."""
        return None if self.n_queries is None else len(self.shard.numbers(self.n_queries))


@dataclass(frozen=True)
class FailedQuery:
    """A query that could not be searched.

    Attributes
    ----------
    number : int
        Index of the query in the run, from 0.
    reason : str
        The problem, its location, and what to do.
    """

    number: int
    reason: str


def query_digest(header: str, letters: str) -> str:
    """SHA-256 of a query as it was written, in hexadecimal: the same text gives the same digest on every machine."""
    return hashlib.sha256(f"{header}\n{letters}".encode("utf-8", "surrogatepass")).hexdigest()


class QueryCount:
    """Counts queries while they are read, and computes the digest that identifies them."""

    def __init__(self) -> None:
        self.n_queries = 0
        self._digest = hashlib.sha256()

    def add(self, header: str, letters: str) -> None:
        """Count one query; for a record that is not a sequence, ``header`` is its first word and ``letters`` empty."""
        self.n_queries += 1
        self._digest.update(f"{header}\n{letters}\n".encode("utf-8", "surrogatepass"))

    def asked(self, shard: Shard) -> AskedQueries:
        """The description of the counted queries, of which the share ``shard`` is searched."""
        return AskedQueries(shard, self.n_queries, self._digest.hexdigest())


def all_of(queries: Iterable[tuple[str, str]]) -> AskedQueries:
    """The description of queries with these headers and letters, if all of them are searched."""
    count = QueryCount()
    for header, letters in queries:
        count.add(header, letters)
    return count.asked(Shard())

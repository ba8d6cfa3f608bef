"""ServerLimits on requests per minute: :class:`Buckets`, token buckets in a table.

A bucket holds at most as many tokens as there may be requests in a minute, and fills evenly; a request takes one. So a
burst of a minute's requests passes at once, and the rate after it is the limit. A bucket that is full again is the same
as none, and is forgotten.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

Bucket = tuple[float, float]
"""The level of a bucket, and the time of that level in seconds."""


class Table(Protocol):
    """Where buckets are kept."""

    def turn(self) -> AbstractContextManager[None]:
        """A context in which nobody else uses the table."""

    def get(self, name: str) -> Bucket | None:
        """A bucket; None if it was never put, or is forgotten."""

    def put(self, name: str, bucket: Bucket, is_full: Callable[[Bucket], bool]) -> None:
        """Keep a bucket; those that are full may be forgotten, and the one that was put longest ago if none is."""


class Buckets:
    """Token buckets by name, for one event loop.

    Parameters
    ----------
    per_minute : int
        Capacity of each bucket, and tokens that it gets in a minute.
    table : Table
    clock : callable, optional
        Seconds of a clock that never goes back, and is the same for all who use the table.
    """

    def __init__(self, per_minute: int, table: Table, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._per_second = per_minute / 60
        self._table = table
        self._clock = clock

    def seconds(self, name: str) -> float:
        """Time until the bucket has a token; 0 if it has one."""
        with self._table.turn():
            return max(0.0, (1.0 - self._level(name, self._clock())) / self._per_second)

    def take(self, name: str) -> float:
        """Take a token and return 0; or take none, and return the time until there is one, in seconds."""
        with self._table.turn():
            now = self._clock()
            level = self._level(name, now)
            if level < 1.0:
                return (1.0 - level) / self._per_second
            self._put(name, level - 1.0, now)
            return 0.0

    def charge(self, name: str) -> None:
        """Take a token even if there is none, down to a bucket that must fill twice: failures at once count whole."""
        with self._table.turn():
            now = self._clock()
            self._put(name, max(-self._capacity, self._level(name, now) - 1.0), now)

    def _put(self, name: str, level: float, now: float) -> None:
        self._table.put(name, (level, now), lambda bucket: self._filled(bucket, now) >= self._capacity)

    def _level(self, name: str, now: float) -> float:
        return self._filled(self._table.get(name) or (self._capacity, now), now)

    def _filled(self, bucket: Bucket, now: float) -> float:
        """The level of a bucket now."""
        level, seen = bucket
        return min(self._capacity, level + (now - seen) * self._per_second)


def network_of(address: str) -> str:
    """What counts as one address: an IPv4 address, or the /64 of an IPv6 address, which one subscriber has.

    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3::4"), network_of("::ffff:192.0.2.7"), network_of("?")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7', '?')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), 64), strict=False))

"""Rows as a store may give them back: SQLite keeps any value in any column, and a store may have been changed by hand.

:mod:`swsearch.store.repository` asks here before it makes records of rows, so that what follows meets the types that it
was written for. What a value means is not checked.
"""

from __future__ import annotations

import math
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import BigInteger, DateTime, Double, Integer, Row, Table

_SIGNED: Final = frozenset({"query_frame", "subject_frame", "score"})


def checked(row: Row[Any], table: Table) -> Row[Any]:
    """The row, whose first columns are those of the table, if each holds what its column is for.

    Counts, places and numbers are not negative, real numbers finite.

    Raises
    ------
    ValueError
        A value is of another type or out of range; the message names its column.
    """
    if _kinds_fit(tuple(map(type, row[: len(table.columns)])), table):
        counts, floats = _getters(table)
        if (
            min(value for value in counts(row) if value is not None) >= 0
            and (floats is None or all(map(_is_finite, floats(row))))
            and _small(row, table)
        ):
            return row
    raise ValueError(f"table {table.name}, {_flaw(row, table)}")


def _is_finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)


def _small(row: Row[Any], table: Table) -> bool:
    return all(row[place] is None or abs(row[place]) < 2**31 for place in _narrow(table))


@cache
def _narrow(table: Table) -> tuple[int, ...]:
    """Places of whole numbers of 32 bits."""
    return tuple(n for n, column in enumerate(table.columns) if type(column.type) is Integer)


@cache
def _getters(table: Table) -> tuple[Any, Any]:
    """What gives the counts, at least two, and the real numbers of a row."""
    numbered = list(enumerate(table.columns))
    counts = [n for n, column in numbered if isinstance(column.type, Integer) and column.name not in _SIGNED]
    floats = [n for n, column in numbered if isinstance(column.type, Double)]
    return itemgetter(*counts), (itemgetter(*floats) if len(floats) > 1 else None)


@cache
def _kinds_fit(kinds: tuple[type, ...], table: Table) -> bool:
    return all(_fits(kind, column) for kind, column in zip(kinds, table.columns, strict=True))


def _fits(kind: type, column: Any) -> bool:
    if kind is type(None):
        return bool(column.nullable)
    if isinstance(column.type, (Integer, BigInteger)):
        return kind is int
    if isinstance(column.type, Double):
        return kind in (int, float)
    is_time = isinstance(getattr(column.type, "impl", column.type), DateTime)
    return kind is (datetime if is_time else str)


def _flaw(row: Row[Any], table: Table) -> str:
    """Which column is wrong, and what it holds."""
    for value, column in zip(row, table.columns, strict=False):
        negative = isinstance(column.type, Integer) and column.name not in _SIGNED and type(value) is int and value < 0
        wide = type(column.type) is Integer and type(value) is int and abs(value) >= 2**31
        infinite = isinstance(value, float) and not math.isfinite(value)
        if negative or wide or infinite or not _fits(type(value), column):
            shown = repr(value)
            return f"column {column.name}: {shown if len(shown) <= 40 else shown[:37] + '...'} has no place there"
    return "a value is out of range"

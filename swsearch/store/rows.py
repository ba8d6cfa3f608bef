"""Type checks of the rows that are read: SQLite accepts any value in any column, and a store may have been edited.

Each row is passed through :func:`checked` before it is converted to a record, so that the rest of the program receives
the types that it expects. The meaning of values is not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import BigInteger, DateTime, Double, Integer, Row, Table

_SIGNED: Final = frozenset({"query_frame", "subject_frame", "score"})


def checked(row: Row[Any], table: Table) -> Row[Any]:
    """The row itself, if every value has the type of its column and no count or index is negative.

    The first columns of the row are those of the table.

    Raises
    ------
    ValueError
        A value has another type or is out of range; the message names its column.
    """
    n_columns, counts, narrow = _rules(table)
    fits = (
        _kinds_fit(tuple(map(type, row[:n_columns])), table)
        and min((value for value in counts(row) if value is not None), default=0) >= 0
        and max((abs(value) for value in narrow(row) if value is not None), default=0) < 2**31
    )
    if not fits:
        raise ValueError(f"table {table.name}, {_flaw(row, table)}")
    return row


@cache
def _rules(
    table: Table,
) -> tuple[int, Callable[[Row[Any]], tuple[int | None, ...]], Callable[[Row[Any]], tuple[int | None, ...]]]:
    """The number of columns, and functions that return the counts and the 32-bit integers of a row."""
    columns = list(enumerate(table.columns))
    counts = [n for n, column in columns if isinstance(column.type, Integer) and column.name not in _SIGNED]
    narrow = [n for n, column in columns if type(column.type) is Integer]
    return len(columns), itemgetter(*counts), (itemgetter(*narrow) if len(narrow) > 1 else lambda _: ())


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
    """A text with the first column that has an invalid value, and the value."""
    for value, column in zip(row, table.columns, strict=False):
        negative = isinstance(column.type, Integer) and column.name not in _SIGNED and type(value) is int and value < 0
        wide = type(column.type) is Integer and type(value) is int and abs(value) >= 2**31
        if negative or wide or not _fits(type(value), column):
            shown = repr(value)
            return f"column {column.name}: {shown if len(shown) <= 40 else shown[:37] + '...'} has no place there"
    return "a value is out of range"

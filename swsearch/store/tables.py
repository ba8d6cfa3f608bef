"""The tables of a store: the statements that create them, and how a row that was read becomes a record.

Runs have ``runs``, ``queries``, ``hits`` and ``failures``; ``blast6`` is a view of them for other programs and for
people who write SQL. The search service has ``searches``, ``search_queries``, ``owners``, ``usage``, ``workers``,
``tokens`` and ``links``: a search is what somebody submitted, and its results are a run like any other.
``swsearch_schema`` has the revision of all of them.

``schema.sql`` is the only description of these tables, with a type of :data:`_TYPES` for each column. The rest of the
program does not use rows: the repositories (:mod:`swsearch.store`) translate between rows and records.
:data:`~swsearch.store.rows.SCHEMA` names the Alembic revision that the tables have, and a test compares them with the
result of the migrations.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, Final

from swsearch.store.rows import restored

_SIGNED: Final = frozenset({"query_frame", "subject_frame", "score"})


def _utc(value: Any) -> Any:
    """A time as a driver gives it; SQLite has no type for times, which are texts in UTC. Other values stay as they are,
    for the check of the record.
    """
    if not isinstance(value, str | datetime):
        return value
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


@dataclass(frozen=True)
class _Type:
    """A type of columns: its names in SQLite and PostgreSQL, and the types and the largest number of its values.

    ``read`` makes a value of what a driver gives; None if the driver gives the value.
    """

    sqlite: str
    postgresql: str
    kinds: frozenset[type]
    highest: float = inf
    read: Callable[[Any], Any] | None = None


_TYPES: Final = {
    "SERIAL": _Type("INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "BIGSERIAL PRIMARY KEY", frozenset({int})),
    "BIGINT": _Type("INTEGER", "BIGINT", frozenset({int})),
    "INT": _Type("INTEGER", "INTEGER", frozenset({int}), 2**31 - 1),
    "DOUBLE": _Type("DOUBLE", "DOUBLE PRECISION", frozenset({int, float})),
    "TEXT": _Type("TEXT", "TEXT", frozenset({str})),
    "ESCAPED": _Type("TEXT", "TEXT", frozenset({str}), read=restored),
    "TIME": _Type("DATETIME", "TIMESTAMP WITH TIME ZONE", frozenset({datetime}), read=_utc),
}
"""The types of ``schema.sql`` beside ``VARCHAR``: SERIAL is a number that is never used again, ESCAPED is text as
:func:`~swsearch.store.rows.storable` makes it, and TIME is in UTC.
"""
_COLUMN: Final = rf'(?m)^(    "?(\w+)"? )({"|".join(_TYPES)}|VARCHAR\(\d+\))(?=[ ,\n])( NOT NULL)?'
"""The line of a column in ``schema.sql``."""
_HASH: Final = " USING HASH"
"""PostgreSQL's index of long texts: a key of a B-tree has at most 2.7 kB."""


@cache
def statements(*, in_sqlite: bool) -> list[str]:
    """The statements that create the tables, the indexes and the view."""

    def translated(column: re.Match[str]) -> str:
        kind = _TYPES.get(column[3])
        name = column[3] if kind is None else kind.sqlite if in_sqlite else kind.postgresql
        return f"{column[1]}{name}{column[4] or ''}"

    text = re.sub(_COLUMN, translated, _schema())
    return (text.replace(_HASH, "") if in_sqlite else text).removesuffix(";\n").split(";\n")


@cache
def _schema() -> str:
    """The statements of ``schema.sql`` without its remarks."""
    return re.sub(r"^--.*\n", "", Path(__file__).with_name("schema.sql").read_text("utf-8"), flags=re.MULTILINE)


@cache
def reader_of(table: str, more: tuple[str, ...]) -> tuple[str, Callable[[Sequence[Any]], Any]]:
    """The columns of a table for a statement, and what makes a record of a row that has them and then ``more`` values.

    The function raises :class:`ValueError` if a value has another type than its column, or is a count or an index that
    is negative; the message names the column. SQLite accepts any value in any column, and a store may have been edited.
    The meaning of values is not checked.
    """
    definition = _schema().partition(f"CREATE TABLE {table} (")[2].partition(");")[0]
    columns = [
        (column[2], _TYPES.get(column[3], _TYPES["TEXT"]), column[4]) for column in re.finditer(_COLUMN, definition)
    ]
    names = [name for name, _, _ in columns]
    record = namedtuple(table, [*names, *more])  # type: ignore[misc]
    readers = [(place, kind.read) for place, (_, kind, _) in enumerate(columns) if kind.read is not None]
    rules = [
        (
            name,
            kind.kinds if is_required or name == "id" else kind.kinds | {type(None)},
            0 if kind.kinds == {int} and name not in _SIGNED else -kind.highest,
            kind.highest,
        )
        for name, kind, is_required in columns
    ]

    def read(row: Sequence[Any]) -> Any:
        values = list(row)
        for place, reader in readers:
            if values[place] is not None:
                values[place] = reader(values[place])
        for value, (name, kinds, lowest, highest) in zip(values, rules, strict=False):
            if type(value) not in kinds or (type(value) is int and not lowest <= value <= highest):
                shown = repr(value)
                shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
                raise ValueError(f"table {table}, column {name}: {shown} has no place there")
        return record(*values)

    return ", ".join(names), read

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
from datetime import UTC, datetime
from functools import cache
from math import inf
from pathlib import Path
from types import NoneType
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


_TYPES: Final = {
    "SERIAL": ("INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "BIGSERIAL PRIMARY KEY"),
    "BIGINT": ("INTEGER", "BIGINT"),
    "INT": ("INTEGER", "INTEGER"),
    "DOUBLE": ("DOUBLE", "DOUBLE PRECISION"),
    "TEXT": ("TEXT", "TEXT"),
    "ESCAPED": ("TEXT", "TEXT"),
    "TIME": ("DATETIME", "TIMESTAMP WITH TIME ZONE"),
}
"""The types of ``schema.sql`` beside ``VARCHAR``, as SQLite and PostgreSQL name them: SERIAL is a number that is never
used again, ESCAPED is text as :func:`~swsearch.store.rows.storable` makes it, and TIME is in UTC.
"""
_KINDS: Final[dict[str, set[type]]] = {
    "SERIAL": {int}, "BIGINT": {int}, "INT": {int}, "DOUBLE": {int, float}, "TIME": {datetime},
}  # fmt: skip
"""The types of the values in a record; those of the other columns are texts."""
_HIGHEST: Final = {"INT": 2**31 - 1}
_READERS: Final = {"ESCAPED": restored, "TIME": _utc}
"""What makes a value of what a driver gives."""
_COLUMN: Final = rf'(?m)^(    "?(\w+)"? )({"|".join(_TYPES)}|VARCHAR\(\d+\))(?=[ ,\n])( NOT NULL)?'
"""The line of a column in ``schema.sql``."""
_HASH: Final = " USING HASH"
"""PostgreSQL's index of long texts: a key of a B-tree has at most 2.7 kB."""


@cache
def statements(*, in_sqlite: bool) -> list[str]:
    """The statements that create the tables, the indexes and the view."""

    def translated(column: re.Match[str]) -> str:
        sqlite, postgresql = _TYPES.get(column[3], (column[3], column[3]))
        return f"{column[1]}{sqlite if in_sqlite else postgresql}{column[4] or ''}"

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
    columns = [(column[2], column[3], column[4]) for column in re.finditer(_COLUMN, definition)]
    names = [name for name, _, _ in columns]
    record = namedtuple(table, [*names, *more])  # type: ignore[misc]
    readers = [(place, _READERS[kind]) for place, (_, kind, _) in enumerate(columns) if kind in _READERS]
    rules = [_rule(*column) for column in columns]

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


def _rule(name: str, kind: str, required: str | None) -> tuple[str, set[type], float, float]:
    """The name of a column, the types of its values, and the range of integers."""
    kinds, highest = _KINDS.get(kind, {str}), _HIGHEST.get(kind, inf)
    is_count = kinds == {int} and name not in _SIGNED
    return name, kinds if required or kind == "SERIAL" else kinds | {NoneType}, 0 if is_count else -highest, highest

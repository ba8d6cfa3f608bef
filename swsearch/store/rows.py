"""The tables of a store, and the values of their rows: those of the records of a run, and the words of states.

Runs have ``runs``, ``queries``, ``hits`` and ``failures``; ``blast6`` is a view of them for other programs and for
people who write SQL. The search service has ``searches``, ``search_queries``, ``owners``, ``usage``, ``workers``,
``tokens`` and ``links``: a search is what somebody submitted, and its results are a run like any other.
``swsearch_schema`` has the revision of all of them.

``schema.sql`` is the only description of these tables, with a type of :data:`_TYPES` for each column. The rest of the
program does not use rows: the repositories (:mod:`swsearch.store`) translate between rows and records.

Headers of sequence files may contain any byte. :func:`storable` makes readable text of them, :func:`restored` the
header of the text. This module needs no SQLAlchemy, so that a search can be stored without it
(:mod:`swsearch.store.connections`).
"""

from __future__ import annotations

import json
import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from math import inf
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import Any, Final

from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.hits.shards import AskedQueries, query_digest
from swsearch.sequences.record import identifier
from swsearch.words import without_secrets

SCHEMA: Final = "0.1.0"
"""The Alembic revision of the tables; a test compares them with the result of the migrations."""

RUNNING: Final = "running"
"""A run or a search at work."""
FINISHED: Final = "finished"
INTERRUPTED: Final = "interrupted"

QUEUED: Final = "queued"
DONE: Final = "done"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
STATES: Final = (QUEUED, RUNNING, DONE, FAILED, CANCELLED)
"""The states of a search; a query of a search may also be :data:`LEASED`."""
UNFINISHED: Final = (QUEUED, RUNNING)
LEASED: Final = "leased"

RUN_FIELDS: Final = tuple(field.name for field in fields(RunInfo) if field.name not in ("parameters", "database"))
"""The fields of a run that have a column of their own name."""
HIT_FIELDS: Final = tuple(
    field.name for field in fields(Hit) if field.name not in ("alignment", "query_header", "source")
)
ALIGNMENT_FIELDS: Final = tuple(field.name for field in fields(Alignment))
"""The fields of a hit, and of its alignment, that have a column of their own name."""
_HIT_TEXTS: Final = ("subject_header", "subject_letters", "query_letters")
_HIT_PLAIN: Final = tuple(name for name in HIT_FIELDS + ALIGNMENT_FIELDS if name not in _HIT_TEXTS)
HIT_COLUMNS: Final = ("query_id", "subject_identifier", *_HIT_TEXTS, *_HIT_PLAIN)
"""The columns of :func:`hit_values`."""
_plain_values: Final = attrgetter(*(f"alignment.{name}" if name in ALIGNMENT_FIELDS else name for name in _HIT_PLAIN))

_UNSTORABLE = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(\\|u[0-9a-f]{4})")


def storable(given: str) -> str:
    r"""Text as it is stored: NUL and surrogates as ``\u`` and four digits, a backslash as ``\\``, the rest unchanged.

    >>> print(storable("caf\u00e9 \udcff"))
    café \udcff
    """
    if not _UNSTORABLE.search(given):
        return given
    return _UNSTORABLE.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", given)


def restored(stored: str) -> str:
    """The inverse of :func:`storable`."""
    if "\\" not in stored:
        return stored
    return _ESCAPE.sub(lambda found: "\\" if found[1] == "\\" else chr(int(found[1][1:], 16)), stored)


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


# --- the values of records ---


def run_values(info: RunInfo) -> dict[str, Any]:
    """The columns of a run that its :class:`~swsearch.hits.result.RunInfo` determines."""
    database = info.database
    values = {name: getattr(info, name) for name in RUN_FIELDS} | {"command": without_secrets(info.command)}
    return {
        **{name: storable(value) if isinstance(value, str) else value for name, value in values.items()},
        "parameters": json.dumps(info.parameters),
        "database_paths": json.dumps(database.paths),
        "database_digests": json.dumps(database.digests),
        "database_generation": database.generation,
        "database_alphabet": storable(database.alphabet),
        "database_n_subjects": database.n_subjects,
        "database_n_residues": database.n_residues,
    }


def asked_values(asked: AskedQueries | None) -> dict[str, Any]:
    """The columns that define which queries a run is to search."""
    if asked is None:
        return {}
    return {
        "shard_index": asked.shard.index,
        "shard_count": asked.shard.count,
        "asked_n_queries": asked.n_queries,
        "asked_digest": asked.digest,
    }


def query_values(result: QueryResult) -> dict[str, Any]:
    """The columns of a query, without the id of its run."""
    return {
        "number": result.number,
        "digest": query_digest(result.header, result.letters),
        "header": storable(result.header),
        "letters": storable(result.letters),
        "n_hits": len(result.hits),
        "n_passed": result.n_passed,
        "cells": result.stats.cells,
        "score_seconds": result.stats.score_seconds,
        "total_seconds": result.stats.total_seconds,
        "n_rescored": result.stats.n_rescored,
        "committed_at": utc_now(),
        "n_rounds": result.n_rounds,
        "converged": int(result.converged),
        "pssm": None if result.pssm is None else result.pssm.as_text(),
        "identifier": storable(identifier(result.header)),
    }


def hit_values(query_id: int, hit: Hit) -> tuple[Any, ...]:
    """A hit's row, in the order of :data:`HIT_COLUMNS`."""
    header = storable(hit.subject_header)
    name = identifier(hit.subject_header)
    return (
        query_id,
        name if header is hit.subject_header else storable(name),
        header,
        storable(hit.alignment.subject_letters),
        storable(hit.alignment.query_letters),
        *_plain_values(hit),
    )


# --- tables, and the records of their rows ---


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
used again, ESCAPED is text as :func:`storable` makes it, and TIME is in UTC.
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
                try:
                    values[place] = reader(values[place])
                except (TypeError, ValueError) as error:
                    raise refused(names[place], values[place]) from error
        for value, (name, kinds, lowest, highest) in zip(values, rules, strict=False):
            if type(value) not in kinds or (type(value) is int and not lowest <= value <= highest):
                raise refused(name, value)
        return record(*values)

    def refused(column: str, value: Any) -> ValueError:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
        return ValueError(f"table {table}, column {column}: {shown} has no place there")

    return ", ".join(names), read


def _rule(name: str, kind: str, required: str | None) -> tuple[str, set[type], float, float]:
    """The name of a column, the types of its values, and the range of integers."""
    kinds, highest = _KINDS.get(kind, {str}), _HIGHEST.get(kind, inf)
    is_count = kinds == {int} and name not in _SIGNED
    return name, kinds if required or kind == "SERIAL" else kinds | {NoneType}, 0 if is_count else -highest, highest

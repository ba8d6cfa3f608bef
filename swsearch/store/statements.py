"""SQL for SQLite that is compiled once in a process, because a process may open many stores.

All engines for SQLite have the same settings (:mod:`swsearch.store.session`), so what was compiled for one of them
holds for the others. That takes 5 ms less for each report, and 9 ms less for each store that is created.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from sqlalchemy import create_mock_engine
from sqlalchemy.util import LRUCache

from swsearch.store.models import BLAST6_VIEW, METADATA

N_STATEMENTS: Final = 500
"""Number of statements that are kept, as many as SQLAlchemy keeps for an engine."""


class CompiledStatements:
    """The compiled statements of all engines for SQLite, in place of a cache for each engine; threads may share it.

    SQLAlchemy begins its keys with the engine's dialect, because a cache may belong to databases that need different
    SQL. Here the dialects of all engines are equal, but not the same object, and are left out.
    """

    def __init__(self) -> None:
        self._compiled: LRUCache[tuple[Any, ...], Any] = LRUCache(N_STATEMENTS)

    def get(self, key: tuple[Any, ...]) -> Any:
        """What a statement was compiled to, or None."""
        return self._compiled.get(key[1:])

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        self._compiled[key[1:]] = compiled


SQLITE_STATEMENTS: Final = CompiledStatements()


@cache
def sqlite_schema() -> tuple[str, ...]:
    """The statements that create the tables, indexes and views of a store."""
    # Only here, because their definition takes time, and most commands open a store that there is.
    from swsearch.store import service_models  # noqa: F401 - its tables belong to every store

    elements: list[Any] = []
    mock = create_mock_engine("sqlite://", lambda element, *_: elements.append(element))
    METADATA.create_all(mock, checkfirst=False)
    return (*(str(element.compile(dialect=mock.dialect)) for element in elements), BLAST6_VIEW)

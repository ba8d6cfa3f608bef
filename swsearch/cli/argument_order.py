"""The order of query files and database on the command line; a message says which order is meant."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from swsearch.errors import UsageError


def is_packed(path: str) -> bool:
    """Whether a path is a packed database of this machine."""
    from swsearch.database.format import CATALOGUE

    try:
        return (Path(path) / CATALOGUE).is_file()
    except (OSError, ValueError):
        return False


def refuse_lonely(files: Sequence[str], command: str) -> None:
    """Refuse a search to which queries or database are missing.

    Raises
    ------
    UsageError
        There are fewer than two files.
    """
    if len(files) > 1:
        return
    if files and is_packed(files[0]):
        raise UsageError(
            f"{files[0]} is a database; give query files before it: {_line(command, ['QUERY…'], files[0])}"
        )
    known = list(files) or ["QUERY…"]
    raise UsageError(f"give query files and then the database: {_line(command, known, 'DB')}")


def refuse_wrong_order(paths: Sequence[str], database: str, command: str) -> None:
    """Refuse databases among the query files.

    Parameters
    ----------
    paths : sequence of str
        Query files.
    database : str
    command : str
        ``query`` or ``batch``.

    Raises
    ------
    UsageError
        One of ``paths`` is a packed database.
    """
    packed = [path for path in paths if is_packed(path)]
    if not packed:
        return
    others = [path for path in (*paths, database) if path not in packed and not is_packed(path)]
    if others:
        raise UsageError(
            f"{packed[0]} is a database, which stands behind the query files: {_line(command, others, packed[0])}"
        )
    raise UsageError(f"{packed[0]} is a database, and there is no query file: {_line(command, ['QUERY…'], database)}")


def _line(command: str, queries: Sequence[str], database: str) -> str:
    quoted = [word if word in ("QUERY…", "DB") else shlex.quote(word) for word in (*queries, database)]
    return " ".join(["swsearch", command, *quoted])

"""Query files and databases among the arguments of a search; a message says which order is meant.

The packed databases and the URLs that stand last are the databases, and so are those of ``--db``, which follow them.
Without either, those of ``db`` in the configuration file are; if there is none, the last argument is the database: a
sequence file. All other arguments are query files.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from swsearch.errors import UsageError


def is_packed(path: str) -> bool:
    """Whether a path is a packed database of this machine."""
    from swsearch.database.format import CATALOGUE

    try:
        return (Path(path) / CATALOGUE).is_file()
    except (OSError, ValueError):
        return False


def is_database(path: str) -> bool:
    """Whether an argument can only be a database: a packed one of this machine, or a URL."""
    from swsearch.database.object_store import is_url

    return is_url(path) or is_packed(path)


def queries_and_databases(
    files: Sequence[str],
    further: Sequence[str],
    command: str,
    *,
    has_queries: bool = False,
    are_defaults: bool = False,
) -> tuple[list[str], list[str]]:
    """The query files and the databases of a search, by the rule above.

    Parameters
    ----------
    files : sequence of str
        The arguments.
    further : sequence of str
        The databases of ``--db``.
    command : str
        ``query`` or ``batch``.
    has_queries : bool
        Whether the search has queries that are no arguments.
    are_defaults : bool
        Whether ``further`` are those of the configuration file, which databases among the arguments replace.

    Raises
    ------
    UsageError
        There is no query file or no database, or a database stands before a query file.
    """
    n_last = _n_databases(files)
    if are_defaults and any(map(is_database, files)):
        further = ()
    if not n_last and not further and files and (has_queries or len(files) > 1):
        # A name that does not exist is more probably that of a database than of a sequence file behind databases.
        n_last = 1 if files[-1] == "-" or os.path.exists(files[-1]) else 1 + _n_databases(files[:-1])
    n_queries = len(files) - n_last
    queries, databases = list(files[:n_queries]), [*files[n_queries:], *further]
    if not databases:
        known = queries or ["QUERY…"]
        raise UsageError(f"give query files and then the database: {_line(command, known, ['DB'])}")
    if early := [path for path in queries if is_packed(path)]:
        _refuse_early(early, queries, databases, command)
    if not queries and not has_queries:
        line = _line(command, ["QUERY…"], list(dict.fromkeys(databases)))
        if len(databases) == 1:
            raise UsageError(f"{databases[0]} is a database; give query files before it: {line}")
        raise UsageError(f"{databases[0]} is a database, and there is no query file: {line}")
    return queries, databases


def _n_databases(files: Sequence[str]) -> int:
    """Number of arguments at the end that can only be databases."""
    return len(list(takewhile(is_database, reversed(files))))


def _refuse_early(early: Sequence[str], queries: Sequence[str], databases: Sequence[str], command: str) -> None:
    """Refuse databases that stand before query files; a sequence file at the end may be meant as either."""
    others = [path for path in queries if path not in early]
    files = [path for path in databases if not is_database(path)]
    packed = list(dict.fromkeys([*early, *filter(is_database, databases)]))
    line = _line(command, [*others, *files] or ["QUERY…"], packed)
    if others and files:
        also = [word for path in files for word in ("--db", path)]
        line += f"; with {files[0]} as a database: {_line(command, others, [*packed, *also])}"
    raise UsageError(f"{early[0]} is a database, which stands behind the query files: {line}")


def _line(command: str, queries: Sequence[str], databases: Sequence[str]) -> str:
    quoted = [word if word in ("QUERY…", "DB") else shlex.quote(word) for word in (*queries, *databases)]
    return " ".join(["swsearch", command, *quoted])

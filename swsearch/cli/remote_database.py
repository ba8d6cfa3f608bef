"""The progress of fetching a database from an object store, before a command opens it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from swsearch.database.object_store import is_url


@contextmanager
def fetched(database: str, *, quiet: bool = False) -> Iterator[None]:
    """Keep a database of an object store in the cache of this node during a ``with`` statement.

    It is fetched if the cache lacks it, with a progress report. Nothing happens for a database of this machine.

    Raises
    ------
    DatabaseError
        The database cannot be fetched.
    """
    if not is_url(database):
        yield
        return
    from swsearch.cli.output import say
    from swsearch.cli.progress import ProgressReport
    from swsearch.database.remote import fetch
    from swsearch.words import counted

    with ExitStack() as stack:
        reports: list[ProgressReport] = []

        def begin(n_bytes: int) -> None:
            if not quiet:
                say(f"fetching {database}, {counted(n_bytes, 'byte')}")
            reports.append(stack.enter_context(ProgressReport("fetching", n_bytes, "MB/s", 1e6, quiet)))

        def advance(n_bytes: int) -> None:
            reports[0].advance(n_bytes)

        with fetch(database, begin=begin, advance=advance):
            stack.close()
            yield

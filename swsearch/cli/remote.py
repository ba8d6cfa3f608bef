"""``swsearch query --server``: the search is made by a server, and prints what a search on this machine prints.

What a server cannot do is refused with ``--server URL``. With ``--server auto`` it is searched on this machine, and so
is whatever would have another report on a server.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from swsearch.cli import options
from swsearch.cli.output import ProgressReport, inform, result_stream, say
from swsearch.errors import InputError, SwSearchError, UsageError
from swsearch.options import MACHINE, SEARCH_FILES, offered

if TYPE_CHECKING:
    from swsearch.report.base import Report
    from swsearch.search.queries import QueryFiles
    from swsearch.sequences.alphabet import Alphabet
    from swsearch.service.client import Client


def execute_on_server(url: str, files: list[str], arguments: options.Arguments) -> None:
    """Search with the queries of all files but the last, or ``--db``, which is the name of a database of the server.

    The last may also be a file with subjects, if the server has no database of this name. Ctrl-C cancels the search.
    """
    further = arguments.db or []
    *paths, database = [*files, *further] or [""]
    if not paths:
        raise UsageError("give at least one query file and the name of a database of the server")
    if len(further) > 1 or any(map(os.path.isdir, paths)):
        raise UsageError("a server searches one database at a time; give one, or search with `swsearch query` here")
    from swsearch.service.client import Client

    request = _Request.of(paths, arguments)
    client = Client(url, notify=inform)
    with tempfile.TemporaryFile() as file:
        submitted = request.submit(client, _searched(client, database), inform)
        found = request.answer(client, submitted, file)
        request.print(client, submitted, found, file)
    if found["failed"]:
        raise typer.Exit(1)


def execute_on_running_server(files: list[str], arguments: options.Arguments) -> bool:
    """Search on a running server of this user that gives the report of this machine; returns whether there is one.

    There is none if no server has the same database, if those that have it refuse the search or cannot complete it, for
    queries from a pipe, and for wrong arguments. Nothing is printed then.
    """
    from swsearch.service.client import running_servers

    local = [row for row in offered(arguments.command) if row.is_local]
    if arguments.gives("store", *(row.name for row in local)):
        return False
    # Of the configured defaults, those of the machine have no effect on what is found and printed.
    defaults = {row.name: row.default_in(arguments.command) for row in local if row.panel == MACHINE}
    try:
        paths, database, content = _on_this_machine(files, arguments)
        request = _Request.of(paths, arguments.changed(**defaults))
    except SwSearchError:  # the search on this machine tells it
        return False
    if request.queries.hold_profiles:
        return False
    for url in running_servers():
        searched = _offered_by(url, database, content)
        if searched is not None and _is_answered(request, url, searched, content):
            return True
    return False


@dataclass(frozen=True)
class _Searched:
    """What a server searches: a database by its name there, or subjects, with the name that the user gave."""

    given: str
    name: str
    alphabet: Alphabet
    subjects: str | None = None


@dataclass(frozen=True)
class _Request:
    """The queries, the options and the report of a search by a server."""

    queries: QueryFiles
    arguments: options.Arguments
    report: Report | None

    @classmethod
    def of(cls, paths: list[str], arguments: options.Arguments) -> _Request:
        """The request of a command line, which is refused if an option has no meaning on a server."""
        from swsearch.cli.command_run import requested_report
        from swsearch.search.queries import QueryFiles

        _refuse_options_of_this_machine(arguments)
        report = requested_report(arguments)
        return cls(QueryFiles.of(paths, arguments.query_format), arguments, report)

    def submit(self, client: Client, searched: _Searched, tell: Callable[[str], None]) -> dict[str, Any]:
        """Submit the search; returns it as the server describes it.

        ``top`` is always sent, so that a server with shorter lists refuses the search and does not cut them.
        """
        from swsearch.cli.query import translating

        arguments = translating(self.arguments, self.queries, searched.given, searched.alphabet, tell)
        asked = arguments.asked.as_parameters()
        given = {name: value for name, value in asked.items() if value is not None and name not in SEARCH_FILES}
        text = _text(self.queries, searched, arguments)
        return client.submit(text, searched.name, given, subjects=searched.subjects, alphabet=arguments.alphabet)

    def answer(self, client: Client, submitted: Mapping[str, Any], file: BinaryIO) -> dict[str, Any]:
        """Wait for a search and write its report to a file; returns the queries that failed and the ends of its lists.

        Nothing is printed yet, so that a server that ends meanwhile leaves no half report.

        Raises
        ------
        ServerError
            The search was cancelled or failed, which is then the ``code``, or the server ends.
        """
        from swsearch.service.client import ServerError

        done = _finished(client, submitted)
        if (state := done["state"]) != "done":
            reason = f": {done['reason']}" if done["reason"] else ""
            raise ServerError(200, state, f"{client.url}: the search is {state}{reason}")
        if self.report is not None:
            of_report = self.arguments.changed(format=self.report.name)
            names, part, rows = of_report.fields, of_report.part, of_report.rows or None
            client.save_report(done["id"], file, self.report.name, names, part, rows, of_report.lca_top)
        return client.queries(done["id"], limit=1)

    def print(self, client: Client, submitted: Mapping[str, Any], found: Mapping[str, Any], file: BinaryIO) -> None:
        """Print the report, and say what :meth:`answer` has returned."""
        if self.report is not None:
            file.seek(0)
            with result_stream(self.arguments.out, binary=self.report.binary) as stream:
                stream.flush()
                shutil.copyfileobj(file, stream.buffer)
        for query in found["failed"]:
            say(f"failed: query {query['number'] + 1}: {query['reason']}")
        if found["list_ends"] is not None:
            inform(found["list_ends"])
        inform(f"stored as search {submitted['id']} at {client.url}")


# --- the queries and the options ---


def _refuse_options_of_this_machine(arguments: options.Arguments) -> None:
    for row in offered(arguments.command):
        if row.is_local and getattr(arguments, row.name) != row.default_in(arguments.command):
            raise InputError(f"{row.flags[0]} has no meaning with --server, whose machine searches; leave it out")
    if arguments.gives("store") and arguments.store != "none":
        raise InputError("--store has no meaning with --server, which stores the search itself; leave it out")
    if arguments.matrix is not None and Path(arguments.matrix).exists():
        raise InputError(f"--matrix {arguments.matrix} is a file, which no server reads; give the name of a matrix")


def _text(files: QueryFiles, searched: _Searched, arguments: options.Arguments) -> str:
    """All queries as FASTA text; they are read here, so that messages name file and line."""
    from swsearch.search.queries import Requirements, read_queries

    requirements = Requirements(searched.given, searched.alphabet, arguments.translate)
    requirements.check_database()
    options.check_alphabet(arguments.alphabet, requirements)
    if files.hold_profiles:
        raise InputError("profiles are searched on this machine alone; leave --server out, or give sequences")
    parts = []
    for path in files.paths:
        for record in read_queries(path, requirements, force_alphabet=arguments.alphabet is not None):
            requirements.check_query(record)
            parts.append(f">{record.header}\n{record.letters}\n")
    return "".join(parts)


# --- the server ---


def _searched(client: Client, name: str) -> _Searched:
    """A database of the server; or a file with subjects on this machine."""
    from swsearch.sequences.alphabet import ALPHABETS
    from swsearch.sequences.fasta import read_sequences

    offered = {found["name"]: found for found in client.databases()}
    if name in offered:
        return _Searched(name, name, ALPHABETS[offered[name]["alphabet"]])
    if not Path(name).is_file():
        raise InputError(f"{client.url} has no database {name!r}; choose {', '.join(offered) or 'another server'}")
    records = list(read_sequences([name]))
    subjects = "".join(f">{record.header}\n{record.letters}\n" for record in records)
    return _Searched(name, "", records[0].alphabet, subjects)


def _finished(client: Client, submitted: Mapping[str, Any]) -> dict[str, Any]:
    """A search that is not waiting or running any more; it is cancelled if this command ends before."""
    try:
        with ProgressReport("searching", submitted["cells"], "GCUPS", 1e9) as progress:
            n_done = 0

            def advance(found: dict[str, Any]) -> None:
                nonlocal n_done
                progress.advance(found["cells_done"] - n_done)
                n_done = found["cells_done"]
                if found["state"] == "queued" and found["position"] is not None:
                    progress.note(f"place {found['position']} in the queue")

            done = client.wait(submitted["id"], advance)
            advance(done)
            return done
    except BaseException:
        with suppress(Exception):
            client.cancel(submitted["id"])
        raise


# --- a running server, or this machine ---


def _on_this_machine(files: list[str], arguments: options.Arguments) -> tuple[list[str], str, dict[str, Any]]:
    """The query files and the database of a search, and that of which reports depend on the database.

    Raises
    ------
    SwSearchError
        The arguments are wrong; or it is not a search of a packed database of this machine with query files.
    """
    from swsearch.cli.query import queries_and_databases
    from swsearch.database.opening import load_catalogue

    are_defaults = not arguments.gives("db")
    paths, databases = queries_and_databases(files, arguments.db or (), arguments.command, are_defaults=are_defaults)
    if len(databases) > 1 or not all(map(os.path.isfile, paths)):
        raise InputError("a running server searches one database, with the queries of files")
    (database,) = databases
    catalogue = load_catalogue(Path(database))
    content = {
        "digest": catalogue.digest,
        "generation": catalogue.generation,
        "taxonomy_digest": catalogue.taxonomy_digest,
        "name_in_reports": os.path.basename(os.path.realpath(database)),
    }
    return paths, database, content


def _offered_by(url: str, database: str, content: Mapping[str, Any]) -> _Searched | None:
    """The database of a server that has the content of one of this machine; None if it has none, or does not answer."""
    from swsearch.sequences.alphabet import ALPHABETS
    from swsearch.service.client import Client

    with suppress(SwSearchError):
        for offered in Client(url, patience=0).databases():
            if content.items() <= offered.items():
                return _Searched(database, offered["name"], ALPHABETS[offered["alphabet"]])
    return None


def _is_answered(request: _Request, url: str, searched: _Searched, content: Mapping[str, Any]) -> bool:
    """Whether a server has made the whole search, in a database that is still the same; its report is then printed."""
    from swsearch.service.client import Client, ServerError

    client = Client(url, notify=inform)
    told: list[str] = []
    with tempfile.TemporaryFile() as file:
        try:
            submitted = request.submit(Client(url, patience=0), searched, told.append)
            found = request.answer(client, submitted, file)
        except ServerError as error:
            if error.code == "cancelled":
                raise
            inform(f"searched on this machine: {error.marked if url in error.marked else f'{url}: {error.marked}'}")
            return False
        if found["failed"] or _offered_by(url, searched.given, content) is None:
            what = "queries have failed" if found["failed"] else "the database has changed"
            inform(f"searched on this machine: {url}: {what}")
            return False
        for message in told:
            inform(message)
        request.print(client, submitted, found, file)
    return True

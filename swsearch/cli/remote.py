"""``swsearch query --server``: the search is made by a server, and prints what a search on this machine prints.

What a server cannot do is refused with ``--server URL``. With ``--server auto`` it is searched on this machine, and so
is whatever would have another report on a server.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from swsearch.cli import options
from swsearch.cli.output import ProgressReport, inform, result_stream, say
from swsearch.errors import InputError, SwSearchError, UsageError
from swsearch.options import MACHINE, SEARCH_FILES, offered

if TYPE_CHECKING:
    from swsearch.search.queries import QueryFiles
    from swsearch.sequences.alphabet import Alphabet
    from swsearch.sequences.record import SequenceRecord
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
    from swsearch.sequences.alphabet import ALPHABETS
    from swsearch.sequences.fasta import read_sequences
    from swsearch.service.client import Client

    queries, arguments = _checked(paths, arguments)
    client = Client(url, notify=inform)
    alphabets = {found["name"]: ALPHABETS[found["alphabet"]] for found in client.databases()}
    if database in alphabets:
        searched = {"database": database}
        alphabet = alphabets[database]
    elif Path(database).is_file():
        subjects = list(read_sequences([database]))
        searched = {"subjects": _fasta(subjects)}
        alphabet = subjects[0].alphabet
    else:
        which = ", ".join(alphabets) or "another server"
        raise InputError(f"{client.url} has no database {database!r}; choose {which}")
    submission = _submission(queries, arguments, database, alphabet, inform)
    if not _search(client, client.submit(**submission, **searched), arguments):
        raise typer.Exit(1)


def execute_on_running_server(files: list[str], arguments: options.Arguments) -> bool:
    """Search on a running server of this user that gives the report of this machine; returns whether there is one.

    There is none if no server has the same database, if those that have it refuse the search or cannot complete it, for
    queries from a pipe, and for wrong arguments. Nothing is printed then.
    """
    from swsearch.cli.query import queries_and_databases
    from swsearch.database.opening import load_catalogue
    from swsearch.service.client import running_servers

    local = [row for row in offered(arguments.command) if row.is_local]
    if arguments.gives("store", *(row.name for row in local)):
        return False
    # Of the configured defaults, those of the machine have no effect on what is found and printed.
    defaults = {row.name: row.default_in(arguments.command) for row in local if row.panel == MACHINE}
    try:
        paths, (database, *others) = queries_and_databases(files, arguments)
        if others or not all(map(os.path.isfile, paths)):
            return False
        catalogue = load_catalogue(Path(database))
        queries, arguments = _checked(paths, arguments.changed(**defaults))
    except SwSearchError:  # the search on this machine tells it
        return False
    if queries.hold_profiles:
        return False
    # What reports depend on.
    content = {
        "alphabet": catalogue.alphabet,
        "digest": catalogue.digest,
        "generation": catalogue.generation,
        "taxonomy_digest": catalogue.taxonomy_digest,
        "name_in_reports": os.path.basename(os.path.realpath(database)),
    }
    return any(_is_answered(url, queries, arguments, database, content) for url in running_servers())


# --- the search ---


def _checked(paths: list[str], arguments: options.Arguments) -> tuple[QueryFiles, options.Arguments]:
    """The queries of a command line and its options, of which ``format`` is that of the report, or ``none``.

    Raises
    ------
    InputError
        An option has no meaning on a server, or none for the report.
    """
    from swsearch.cli.command_run import requested_report
    from swsearch.search.queries import QueryFiles

    for row in offered(arguments.command):
        if row.is_local and getattr(arguments, row.name) != row.default_in(arguments.command):
            raise InputError(f"{row.flags[0]} has no meaning with --server, whose machine searches; leave it out")
    if arguments.gives("store") and arguments.store != "none":
        raise InputError("--store has no meaning with --server, which stores the search itself; leave it out")
    if arguments.matrix is not None and Path(arguments.matrix).exists():
        raise InputError(f"--matrix {arguments.matrix} is a file, which no server reads; give the name of a matrix")
    report = requested_report(arguments)
    queries = QueryFiles.of(paths, arguments.query_format)
    return queries, arguments.changed(format="none" if report is None else report.name)


def _submission(
    files: QueryFiles,
    arguments: options.Arguments,
    database: str,
    alphabet: Alphabet,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """What is submitted to search a database of an alphabet, as arguments of :meth:`Client.submit`.

    The queries are read here, so that messages name file and line. ``top`` is always sent, so that a server with
    shorter lists refuses the search and does not cut them.
    """
    from swsearch.cli.query import translating
    from swsearch.search.queries import Requirements, read_queries

    arguments = translating(arguments, files, database, alphabet, tell)
    asked = arguments.asked.as_parameters()
    requirements = Requirements(database, alphabet, arguments.translate)
    requirements.check_database()
    options.check_alphabet(arguments.alphabet, requirements)
    if files.hold_profiles:
        raise InputError("profiles are searched on this machine alone; leave --server out, or give sequences")
    records = []
    for path in files.paths:
        for record in read_queries(path, requirements, force_alphabet=arguments.alphabet is not None):
            requirements.check_query(record)
            records.append(record)
    return {
        "queries": _fasta(records),
        "options": {name: value for name, value in asked.items() if value is not None and name not in SEARCH_FILES},
        "alphabet": arguments.alphabet,
    }


def _fasta(records: Iterable[SequenceRecord]) -> str:
    return "".join(f">{record.header}\n{record.letters}\n" for record in records)


def _search(
    client: Client,
    submitted: Mapping[str, Any],
    arguments: options.Arguments,
    check: Callable[[dict[str, Any]], None] = lambda _: None,
) -> bool:
    """Wait for a search and print its report; returns whether no query has failed.

    Nothing is printed before the report is complete, so that a server that ends meanwhile leaves no half report, and
    before ``check`` was called with the queries that failed.

    Raises
    ------
    ServerError
        The search was cancelled or failed, which is then the ``code``, or the server ends.
    """
    from swsearch.report.formats import FORMATS
    from swsearch.service.client import ServerError

    done = _finished(client, submitted)
    if (state := done["state"]) != "done":
        reason = f": {done['reason']}" if done["reason"] else ""
        raise ServerError(200, state, f"{client.url}: the search is {state}{reason}")
    chosen = FORMATS.get(arguments.format)
    with tempfile.TemporaryFile() as report:
        if chosen is not None:
            names, part, rows = arguments.fields, arguments.part, arguments.rows
            client.save_report(done["id"], report, chosen.name, names, part, rows, arguments.lca_top)
        found = client.queries(done["id"], limit=1)
        check(found)
        if chosen is not None:
            report.seek(0)
            with result_stream(arguments.out, binary=chosen.binary) as stream:
                stream.flush()
                shutil.copyfileobj(report, stream.buffer)
    for query in found["failed"]:
        say(f"failed: query {query['number'] + 1}: {query['reason']}")
    if found["list_ends"] is not None:
        inform(found["list_ends"])
    inform(f"stored as search {done['id']} at {client.url}")
    return not found["failed"]


def _finished(client: Client, submitted: Mapping[str, Any]) -> dict[str, Any]:
    """A search that is not waiting or running any more; it is cancelled if this command ends before."""
    try:
        with ProgressReport("searching", submitted["cells"], "GCUPS", 1e9) as progress:

            def show(found: dict[str, Any]) -> None:
                progress.reach(found["cells_done"])
                if found["state"] == "queued" and found["position"] is not None:
                    progress.note(f"place {found['position']} in the queue")

            done = client.wait(submitted["id"], show)
            show(done)
            return done
    except BaseException:
        with suppress(Exception):
            client.cancel(submitted["id"])
        raise


# --- a running server, or this machine ---


def _name_of(client: Client, content: Mapping[str, Any]) -> str | None:
    """The name of a server's database of this content; None if it has none, or does not answer."""
    with suppress(SwSearchError):
        for offered in client.databases():
            if content.items() <= offered.items():
                return str(offered["name"])
    return None


def _is_answered(
    url: str, queries: QueryFiles, arguments: options.Arguments, database: str, content: Mapping[str, Any]
) -> bool:
    """Whether a server has made the whole search, in a database that is still the same; its report is then printed."""
    from swsearch.sequences.alphabet import ALPHABETS
    from swsearch.service.client import Client, ServerError

    hasty = Client(url, patience=0)
    name = _name_of(hasty, content)
    if name is None:
        return False
    told: list[str] = []
    submission = _submission(queries, arguments, database, ALPHABETS[content["alphabet"]], told.append)

    def check(found: dict[str, Any]) -> None:
        if found["failed"]:
            raise ServerError(200, "failed", f"{url}: queries have failed")
        if _name_of(hasty, content) is None:
            raise ServerError(200, "changed", f"{url}: the database has changed")
        for message in told:
            inform(message)

    try:
        submitted = hasty.submit(**submission, database=name)
        return _search(Client(url, notify=inform), submitted, arguments, check)
    except ServerError as error:
        if error.code == "cancelled":
            raise
        inform(f"searched on this machine: {error.marked if url in error.marked else f'{url}: {error.marked}'}")
        return False

"""``swsearch query --server``: the search is made by a server, and prints what a search on this machine prints."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from swsearch.cli import options
from swsearch.cli.output import ProgressReport, inform, result_stream, say
from swsearch.errors import InputError, SwSearchError, UsageError
from swsearch.options import MACHINE, SEARCH_FILES, offered
from swsearch.search.options import SearchOptions

if TYPE_CHECKING:
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
    _refuse_options_of_this_machine(arguments)
    from swsearch.cli.query import translating
    from swsearch.cli.report import asked_report
    from swsearch.search.queries import QueryFiles
    from swsearch.service.client import Client

    report = asked_report(arguments, "table" if arguments.format == "none" else arguments.format)
    client = Client(url, notify=inform)
    holds, subjects = _subjects(client, database)
    queries = QueryFiles.of(paths, arguments.query_format)
    arguments = translating(arguments, queries, database, holds)
    text = _queries(queries, database, holds, arguments)
    name = database if subjects is None else ""
    submitted = client.submit(text, name, _options(arguments), subjects=subjects, alphabet=arguments.alphabet)
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
    except BaseException:
        with suppress(Exception):
            client.cancel(submitted["id"])
        raise
    if done["state"] != "done":
        raise InputError(
            f"{client.url}: the search is {done['state']}{': ' + done['reason'] if done['reason'] else ''}"
        )
    if arguments.format != "none" or arguments.out is not None:
        # Fetched whole before anything is printed, so that a server that ends meanwhile leaves no half report.
        with tempfile.TemporaryFile() as file:
            of_report = arguments.changed(format=report.name)
            names, part, rows = of_report.fields, of_report.part, of_report.rows or None
            client.save_report(done["id"], file, report.name, names, part, rows, of_report.lca_top)
            file.seek(0)
            with result_stream(arguments.out, binary=report.binary) as stream:
                stream.flush()
                shutil.copyfileobj(file, stream.buffer)
    found = client.queries(done["id"], limit=1)
    failed = found["failed"]
    for query in failed:
        say(f"failed: query {query['number'] + 1}: {query['reason']}")
    if found["list_ends"] is not None:
        inform(found["list_ends"])
    inform(f"stored as search {done['id']} at {client.url}")
    if failed:
        raise typer.Exit(1)


def on_running_server(
    files: list[str], arguments: options.Arguments
) -> tuple[str, list[str], options.Arguments] | None:
    """The address of a running server of this user with the database of a search, and how to search there.

    None if there is none, if a server would refuse the search, for queries from a pipe, and for wrong arguments.
    """
    from swsearch.cli.query import queries_and_databases
    from swsearch.database.opening import load_catalogue
    from swsearch.search.queries import QueryFiles
    from swsearch.service.client import Client, running_servers

    local = [row for row in offered(arguments.command) if row.is_local]
    if arguments.gives("store", *(row.name for row in local)):
        return None
    # Of the configured defaults, those of the machine have no effect on what is found and printed.
    defaults = {row.name: row.default_in(arguments.command) for row in local if row.panel == MACHINE}
    further, arguments = arguments.db or (), arguments.changed(**defaults, db=None)
    with suppress(SwSearchError):
        _refuse_options_of_this_machine(arguments)
        are_defaults = not arguments.gives("db")
        paths, databases = queries_and_databases(files, further, arguments.command, are_defaults=are_defaults)
        digests = [load_catalogue(Path(database)).digest for database in databases]
        if all(map(os.path.isfile, paths)) and not QueryFiles.of(paths, arguments.query_format).hold_profiles:
            for url in running_servers():
                with suppress(SwSearchError):
                    for one in Client(url, patience=0).databases():
                        if [one["digest"]] == digests:
                            return url, [*paths, one["name"]], arguments
    return None


def _refuse_options_of_this_machine(arguments: options.Arguments) -> None:
    for row in offered(arguments.command):
        if row.is_local and getattr(arguments, row.name) != row.default_in(arguments.command):
            raise InputError(f"{row.flags[0]} has no meaning with --server, whose machine searches; leave it out")
    if arguments.gives("store") and arguments.store != "none":
        raise InputError("--store has no meaning with --server, which stores the search itself; leave it out")
    if arguments.matrix is not None and Path(arguments.matrix).exists():
        raise InputError(f"--matrix {arguments.matrix} is a file, which no server reads; give the name of a matrix")


def _options(arguments: options.Arguments) -> dict[str, Any]:
    """The options that determine the hits and name no file; those without a value are left out."""
    asked = arguments.asked.as_parameters()
    if asked["top"] == SearchOptions.top:  # a server may have a limit below the default
        del asked["top"]
    return {name: value for name, value in asked.items() if value is not None and name not in SEARCH_FILES}


def _subjects(client: Client, name: str) -> tuple[Alphabet, str | None]:
    """The alphabet of a database of the server; or that of a file on this machine, and its text, which is sent."""
    from swsearch.sequences.alphabet import ALPHABETS
    from swsearch.sequences.fasta import read_sequences

    offered = {found["name"]: found for found in client.databases()}
    if name in offered:
        return ALPHABETS[offered[name]["alphabet"]], None
    if not Path(name).is_file():
        raise InputError(f"{client.url} has no database {name!r}; choose {', '.join(offered) or 'another server'}")
    records = list(read_sequences([name]))
    return records[0].alphabet, "".join(f">{record.header}\n{record.letters}\n" for record in records)


def _queries(files: QueryFiles, database: str, holds: Alphabet, arguments: options.Arguments) -> str:
    """All queries as FASTA text; they are read here, so that messages name file and line."""
    from swsearch.search.queries import Requirements, read_queries

    requirements = Requirements(database, holds, arguments.translate)
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

"""The same search from a shell, from Python and on the command line, as text that can be copied."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def request_body(queries: str, database: str, options: Mapping[str, Any]) -> str:
    """The body of the request to the API that submits the search, as JSON."""
    return json.dumps({"queries": queries, "database": database, "options": dict(options)}, indent=1)


def curl_lines(server: str, reference: str, *, needs_token: bool = False) -> str:
    """Commands that submit the search with ``curl``, wait for its end, and print its hits.

    A token is that of the environment variable ``SWSEARCH_TOKEN``, which the client of the package uses too.
    """
    api = f"{server}/api/v1/searches"
    curl = 'curl -s -H "Authorization: Bearer $SWSEARCH_TOKEN"' if needs_token else "curl -s"
    return (
        f"{curl} -o search.json {server}/results/{reference}/request.json\n"
        f"id=$({curl} -H 'Content-Type: application/json' --data-binary @search.json {api} |\n"
        '  sed \'s/.*"id": *"\\([^"]*\\)".*/\\1/\')\n'
        f'{curl} "{api}/$id?wait=50"\n'
        f'{curl} "{api}/$id/report?format=blast6"'
    )


def python_lines(server: str, database: str, options: Mapping[str, Any]) -> str:
    """A script that does the same with the client of the package."""
    arguments = f", {dict(options)!r}" if options else ""
    return (
        "from pathlib import Path\n\nimport swsearch\n\n"
        f"client = swsearch.Client({server!r})\n"
        'queries = Path("queries.fasta").read_text()\n'
        f"search = client.submit(queries, {database!r}{arguments})\n"
        'client.wait(search["id"])\n'
        'print(client.report(search["id"], "blast6").decode())'
    )


def query_line(database: str, options: Mapping[str, Any]) -> str:
    """The command line of a local search with the same options."""
    given = "".join(f" --{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in options.items())
    return f"swsearch query queries.fasta {shlex.quote(database)}{given}"

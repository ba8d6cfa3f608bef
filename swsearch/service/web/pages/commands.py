"""The same search from a shell and from Python, as text that can be copied."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping


def curl_lines(server: str, database: str, options: Mapping[str, object]) -> str:
    """Commands that submit the search with ``curl``, and get its hits when it has ended."""
    form = "".join(f" \\\n  -F {shlex.quote(f'{name}={value}')}" for name, value in options.items())
    return (
        f"curl -s -F queries=@queries.fasta -F {shlex.quote(f'database={database}')}{form} \\\n"
        f"  {server}/api/v1/searches\n"
        f"# the answer has the id of the search\n"
        f"curl -s '{server}/api/v1/searches/ID?wait=60'\n"
        f"curl -s '{server}/api/v1/searches/ID/report?format=blast6'"
    )


def python_lines(server: str, database: str, options: Mapping[str, object]) -> str:
    """A script that does the same with the client of the package."""
    arguments = "".join(f", {name}={value!r}" for name, value in options.items())
    return (
        "from pathlib import Path\n\nimport swsearch\n\n"
        f"client = swsearch.Client({json.dumps(server)})\n"
        f'search = client.search(Path("queries.fasta"), {json.dumps(database)}{arguments})\n'
        "for query in search.results():\n"
        "    for hit in query.hits:\n"
        "        print(query.header, hit.subject_id, hit.evalue)"
    )


def query_line(database: str, options: Mapping[str, object]) -> str:
    """The command line of a local search with the same options."""
    given = "".join(f" --{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in options.items())
    return f"swsearch query queries.fasta {shlex.quote(database)}{given}"

"""``swsearch report``: print a stored run in any format, without computing anything."""

from __future__ import annotations

from typing import Annotated

import typer

from swsearch.cli import options


def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Number of a run, or latest.")],
    format_name: options.Format = "table",
    fields: options.Fields = None,
    out: options.Out = None,
    store: options.Store = options.DEFAULT_STORE,
) -> None:
    """Print the stored hits of a run, exactly as the search printed them.

    Example: swsearch report latest --format blast6
    """
    from swsearch.cli.output import result_stream
    from swsearch.report.registry import get_format
    from swsearch.store.repository import HitStore

    chosen = get_format(format_name, options.field_list(fields))
    with HitStore(store) as opened:
        stored = opened.run(run)
        with result_stream(out, binary=chosen.binary) as stream:
            chosen.write(stored.info, opened.queries(stored.id), stream)

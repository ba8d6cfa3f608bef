"""``swsearch runs``: list, show and delete stored runs, and bring an old store up to date."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from swsearch.cli import options
from swsearch.errors import StoreError
from swsearch.words import counted

app = typer.Typer(
    help="""List, show, copy, merge and delete stored runs.

    Example: swsearch runs list --store hits.sqlite
    """,
    short_help="List, show, copy, merge and delete stored runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Run = Annotated[str, typer.Argument(metavar="RUN", help="Number of a run, or latest.")]


@app.command("list")
def list_runs(store: options.Store = options.DEFAULT_STORE) -> None:
    """List the runs of a store, oldest first.

    Example: swsearch runs list --store hits.sqlite
    """
    from swsearch.store.repository import HitStore

    with HitStore(store) as opened:
        stored = opened.runs()
    print(f"{'run':>5}  {'started (UTC)':<19}  {'state':<11}  {'queries':>8}  {'hits':>10}  database")
    for run in stored:
        started = run.started.strftime("%Y-%m-%d %H:%M:%S")
        print(
            f"{run.id:>5}  {started}  {run.state:<11}  {run.n_queries:>8,}  {run.n_hits:>10,}  {run.info.database.path}"
        )


@app.command(short_help="Show what decided a run's hits.")
def show(run: Run, store: options.Store = options.DEFAULT_STORE) -> None:
    """Show everything that decided a run's hits: command, options, scoring, database, versions.

    Example: swsearch runs show latest
    """
    from swsearch.store.repository import HitStore

    with HitStore(store) as opened:
        stored = opened.run(run)
    info = stored.info
    seconds = "" if stored.finished is None else f", {(stored.finished - stored.started).total_seconds():.1f} s"
    rows = [
        ("run", str(stored.id)),
        ("state", f"{stored.state}{seconds}"),
        ("started", f"{stored.started.isoformat(timespec='seconds')}"),
        ("command", info.command),
        ("program", info.program),
        ("engine", f"{info.engine}, {counted(info.threads, 'thread')}"),
        ("scoring", f"{info.matrix}, gap of k costs {info.gap_open} + {info.gap_extend}k"),
        ("statistics", info.statistics),
        ("E-values for", counted(info.search_space, "residue")),
        (
            "database",
            f"{info.database.path}: {counted(info.database.n_subjects, f'{info.database.alphabet} sequence')}",
        ),
        ("digest", f"{info.database.digest} (generation {info.database.generation})"),
        ("queries", f"{stored.n_queries:,} with {counted(stored.n_hits, 'hit')}"),
    ]
    for name, value in info.parameters.items():
        if value is not None:
            words = name.split("_")
            rows.append((" ".join(words) if words[0] == "chosen" else f"--{'-'.join(words)}", str(value)))
    for name, text in rows:
        print(f"{name:<14} {text}" if len(name) > 13 else f"{name:<14}{text}")


@app.command(short_help="Put shards of one batch together into one run.")
def merge(
    shards: Annotated[list[str], typer.Argument(metavar="STORE…", help="Stores whose latest runs are the shards.")],
    store: options.Store = options.DEFAULT_STORE,
) -> None:
    """Put the latest runs of several stores, the shards of one batch, together into one run.

    Example: swsearch runs merge shard1.sqlite shard2.sqlite --store hits.sqlite
    """
    from swsearch.batch import merge_runs, missing_numbers
    from swsearch.cli.collisions import refuse_collisions
    from swsearch.cli.output import say
    from swsearch.store.repository import HitStore

    refuse_collisions({}, store=store, stores=shards)
    with ExitStack() as stack:
        sources = []
        for name in shards:
            source = stack.enter_context(HitStore(name))
            sources.append((source, source.run("latest")))
            if sources[-1][1].state != "finished":
                raise StoreError(
                    f"the latest run of {name} is {sources[-1][1].state}; finish it with batch --resume latest"
                )
        target = stack.enter_context(HitStore(store, create=True))
        merged = merge_runs(target, sources, shlex.join(["swsearch", *sys.argv[1:]]))
        missing = missing_numbers(target, merged)
        n_queries = target.run(merged).n_queries
    if missing:
        say(f"warning: {counted(len(missing), 'query is', 'queries are')} in no shard, number {missing[0]} for one")
    print(f"run {merged} in {store}: {counted(n_queries, 'query', 'queries')} of {counted(len(shards), 'shard')}")


@app.command(short_help="Copy one run into a store of its own.")
def export(
    run: Run,
    out: Annotated[str, typer.Option("--out", help="Store to write the run to.")],
    store: options.Store = options.DEFAULT_STORE,
) -> None:
    """Copy one run into a store of its own, to hand on or to archive.

    Example: swsearch runs export latest --out run7.sqlite
    """
    from swsearch.batch import merge_runs
    from swsearch.cli.collisions import refuse_collisions
    from swsearch.store.repository import HitStore

    refuse_collisions({}, store=out, store_option="--out", stores=[store])
    with HitStore(store) as source:
        stored = source.run(run)
        with HitStore(out, create=True) as target:
            copied = merge_runs(target, [(source, stored)], stored.info.command)
    print(f"run {stored.id} of {store} is run {copied} of {out}")


@app.command()
def delete(run: Run, store: options.Store = options.DEFAULT_STORE) -> None:
    """Delete a run with its queries and hits.

    Example: swsearch runs delete 3
    """
    from swsearch.store.repository import HitStore

    with HitStore(store) as opened:
        run_id = opened.delete_run(run)
    print(f"run {run_id} deleted")


@app.command(short_help="Bring the store of an older version up to date.")
def upgrade(store: options.Store = options.DEFAULT_STORE) -> None:
    """Bring a store written by an older version of the program up to date.

    Example: swsearch runs upgrade --store hits.sqlite
    """
    from swsearch.store.session import upgrade as upgrade_store

    upgrade_store(store)
    print(f"{store} is up to date")

"""``swsearch runs``: commands that list, show, copy, merge, delete and prune stored runs, and upgrade an old store."""

from __future__ import annotations

import re
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from swsearch.cli import completion, options
from swsearch.cli.command import CommandGroup
from swsearch.cli.command_line import command_line
from swsearch.cli.output import say
from swsearch.errors import InputError, RunNotFound, StoreError
from swsearch.file_registry import store_identities
from swsearch.folders import is_user_store
from swsearch.hits.shards import PLACEHOLDER
from swsearch.options import DEFAULT_STORE, EVERY_SUBJECT
from swsearch.words import counted, one_line, quoted, size_in_bytes

if TYPE_CHECKING:
    from swsearch.hits.result import DatabaseInfo
    from swsearch.store.runs import StoredRun
    from swsearch.store.store import Store

app = CommandGroup(
    help="""List, show, copy, merge, delete and prune stored runs.

    Example: swsearch runs list
    """,
    no_args_is_help=True,
)

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN…",
        autocompletion=completion.runs,
        help="Numbers of runs, or latest for the newest finished run, or the newest run if none is finished.",
    ),
]


def find_run(store: Store, run: str) -> StoredRun:
    """The run that ``run`` denotes; prints a message if ``latest`` may be another one than the user expects.

    This is so if the newest run is not finished, and in the user's store, whose runs begin in every folder.
    """
    found = store.runs.get(run)
    if run == "latest":
        newest = store.runs.newest()
        if newest.id != found.id:
            say(f"latest is run {found.id}, the newest that is finished; run {newest.id} is newer and {newest.state}")
        if is_user_store(store.name):
            say(f"latest is run {found.id}: {described(found)}")
    return found


def described(run: StoredRun) -> str:
    """What distinguishes a run from the others of its store, in a few words."""
    queries = counted(run.n_queries, "query", "queries")
    return f"{queries} in {run.info.database.name}, begun {run.started:%Y-%m-%d %H:%M} UTC"


def _database_rows(database: DatabaseInfo) -> list[tuple[str, str]]:
    """The lines about the database of a run, or about several that it searched as one."""
    n_subjects = counted(database.n_subjects, f"{database.alphabet} sequence")
    if len(database.digests) == 1:
        digest = f"{database.digest} (generation {database.generation})"
        return [("database", f"{database.path}: {n_subjects}"), ("digest", digest)]
    rows = []
    for path, digest in zip(database.paths, database.digests, strict=False):
        rows += [("database", path), ("digest", digest)]
    return [*rows, ("together", n_subjects)]


def what_is_missing(run: StoredRun) -> str:
    """A text about the missing queries of a run; empty if none are missing."""
    if not run.n_missing or run.asked is None or run.asked.n_of_shard is None:
        return ""
    verb = "is" if run.n_missing == 1 else "are"
    return f"{run.n_missing:,} of the {run.asked.n_of_shard:,} that it was asked for {verb} missing"


@app.command("list")
def list_runs(store: options.KeptStore = DEFAULT_STORE, format_name: options.TableFormat = "table") -> None:
    """List the runs of a store, oldest first; its size is printed to stderr.

    Example: swsearch runs list

    Example: swsearch runs list --store hits.sqlite

    Example: swsearch runs list --format json
    """
    from swsearch.store.store import Store

    with Store(store, only_read=True) as opened:
        stored = opened.runs.all()
        size = _size_of(opened, len(stored))
        if format_name == "json":
            from swsearch.cli.documents import describe_stored_run, write_document

            n_bytes, n_free = opened.size()
            runs = [describe_stored_run(run) for run in stored]
            write_document({"store": opened.name, "n_bytes": n_bytes, "n_free_bytes": n_free, "runs": runs})
            return
    longest = max([len("database"), *(len(run.info.database.name) for run in stored)])
    print(f"  run  started (UTC)        state         queries        hits  {'database':<{longest}}  command")
    for run in stored:
        counts = f"{run.n_queries:>8,}  {run.n_hits:>10,}"
        of = f"{run.info.database.name:<{longest}}  {one_line(run.info.command)}"
        print(f"{run.id:>5}  {run.started:%Y-%m-%d %H:%M:%S}  {run.state:<11}  {counts}  {of}")
    say(size)


def _size_of(store: Store, n_runs: int) -> str:
    n_bytes, n_free = store.size()
    free = f", {size_in_bytes(n_free)} of them free for later runs" if 10 * n_free > n_bytes else ""
    return f"{counted(n_runs, 'run')} in {store.name}: {size_in_bytes(n_bytes)}{free}"


@app.command(short_help="Show what decided a run's hits.")
def show(
    run: options.StoredRun, store: options.KeptStore = DEFAULT_STORE, format_name: options.TableFormat = "table"
) -> None:
    """Show everything that decided a run's hits: command, options, scoring, database, versions.

    Example: swsearch runs show latest

    Example: swsearch runs show 3 --format json
    """
    from swsearch.hits.result import ALL_AGAINST_ALL, CONTEXTS_DIGEST, FILES_READ
    from swsearch.store.store import Store

    with Store(store, only_read=True) as opened:
        stored = find_run(opened, run)
        failures = opened.results.failures(stored.id)
        if format_name == "json":
            from swsearch.cli.documents import describe_stored_run, write_document

            failed = [{"number": one.number, "reason": one.reason} for one in failures]
            write_document({"store": opened.name, "run": {**describe_stored_run(stored), "failures": failed}})
            return
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
        *_database_rows(info.database),
        ("queries", f"{stored.n_queries:,} with {counted(stored.n_hits, 'hit')}"),
        ("missing", what_is_missing(stored)),
        ("remark", stored.remark or ""),
        *(("failed", failed.reason) for failed in failures),
    ]
    if stored.asked is not None and stored.asked.shard.count > 1:
        rows.insert(2, ("shard", str(stored.asked.shard)))
    if stored.is_at_work:
        rows.insert(2, ("worker", str(stored.process)))
    for name, value in info.parameters.items():
        if value is not None:
            words = name.split("_")
            is_option = words[0] != "chosen" and name not in (ALL_AGAINST_ALL, CONTEXTS_DIGEST, FILES_READ)
            shown = "all" if (name, value) == ("top", EVERY_SUBJECT) else str(value)
            rows.append((f"--{'-'.join(words)}" if is_option else " ".join(words), shown))
    for name, text in rows:
        if text:
            print(f"{name:<14} {text}" if len(name) > 13 else f"{name:<14}{text}")


@app.command(short_help="Put shards of one batch together into one run.")
def merge(
    shards: Annotated[
        list[str],
        typer.Argument(
            metavar="STORE…",
            help="Stores with the shards, or one with all. {shard} in a name stands for all shards; STORE#3 is run 3.",
        ),
    ],
    store: options.CreatedStore = DEFAULT_STORE,
    partial: Annotated[
        bool, typer.Option("--partial", help="Merge what is available, even if shards or queries are missing.")
    ] = False,
    stage_store: options.StageStore = "auto",
) -> None:
    """Put the shards of one batch together into one run.

    The batch is that of the newest shard in the first store; all its shards are taken from all stores. It is refused
    where a shard is missing, unfinished, there twice or of another batch. With --partial, what is there becomes an
    unfinished run, which batch --resume can complete.

    Example: swsearch runs merge shard1.sqlite shard2.sqlite --store hits.sqlite

    Example: swsearch runs merge 'hits-{shard}.sqlite' --store hits.sqlite

    Example: swsearch runs merge hits.sqlite --store hits.sqlite
    """
    from swsearch.merge import Source, choose_runs, plan_merge, shards_named
    from swsearch.store.store import Store, open_store

    with ExitStack() as stack:
        given: list[Store | Source] = []
        for name, runs in (named_runs(name) for pattern in shards for name in stores_of(pattern)):
            opened = stack.enter_context(Store(name, only_read=True))
            given += [opened] if runs is None else [Source(opened, opened.runs.get(runs))]
        sources = choose_runs(given, say)
        plan = plan_merge(sources, partial=partial)
        target = stack.enter_context(open_store(store, create=True, stage=stage_store, notify=say))
        run_id = plan.carry_out(target, command_line())
    if plan.missing:
        which = f"; {shards_named(plan.missing_shards)} not there" if plan.missing_shards else ""
        at_least = "at least " if plan.asked is None else ""
        number = f"number {plan.missing[0]} for one"
        say(f"warning: {at_least}{counted(len(plan.missing), 'query is', 'queries are')} missing, {number}{which}")
    counts = f"{counted(plan.n_queries, 'query', 'queries')} of {counted(len(sources), 'shard')}"
    failed = f", {len(plan.failures):,} failed" if plan.failures else ""
    missing = f", {len(plan.missing):,} missing" if plan.missing else ""
    print(f"run {run_id} in {target.name}: {counts}{failed}{missing}")


@app.command(short_help="Copy one run into a store of its own.")
def export(
    run: options.StoredRun,
    out: Annotated[
        str,
        options.declared(
            "out", "query", click_type=options.CREATED_STORE, help="Store to write the run to.", rich_help_panel=None
        ),
    ],
    store: options.KeptStore = DEFAULT_STORE,
    stage_store: options.StageStore = "auto",
) -> None:
    """Copy one run into a store of its own, to hand on or to archive.

    Example: swsearch runs export latest --out run7.sqlite
    """
    from swsearch.merge import Source, copy_run
    from swsearch.store.store import Store, open_store

    if out.strip().lower() in ("", "none"):
        raise InputError(f"--out {out!r} keeps nothing; name a store for the copy")
    if out == store or store_identities(out) & store_identities(store):
        raise InputError(f"--out {out}: this is the store that is read; choose another for the copy")
    with Store(store, only_read=True) as source:
        stored = find_run(source, run)
        with open_store(out, create=True, stage=stage_store, notify=say) as target:
            copied = copy_run(target, Source(source, stored))
    print(f"run {stored.id} of {source.name} is run {copied} of {target.name}")


@app.command()
def delete(
    runs: Runs,
    store: options.KeptStore = DEFAULT_STORE,
    force: Annotated[
        bool, typer.Option("--force", help="Delete a run even if a process is working on it; that process then ends.")
    ] = False,
    stage_store: options.StageStore = "auto",
) -> None:
    """Delete runs with their queries and hits: all that are named, or none if one of them cannot be deleted.

    A run that a process works on, or may work on where it cannot be seen from here, is kept unless --force is given.

    Example: swsearch runs delete 3

    Example: swsearch runs delete 3 5 8
    """
    from swsearch.store.store import open_store

    with open_store(store, stage=stage_store, notify=say) as opened:
        for run in runs:
            find_run(opened, run)
        for run_id in opened.runs.delete(*runs, force=force):
            print(f"run {run_id} deleted")


@app.command(short_help="Delete old runs, and return their space.")
def prune(
    keep: Annotated[int, typer.Option(min=0, help="Keep this many of the newest runs.")] = 0,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="Delete only runs that began longer ago than this: 12h, 30d or 8w (hours, days, weeks)."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print which runs would be deleted, and delete nothing.")
    ] = False,
    store: options.KeptStore = DEFAULT_STORE,
    stage_store: options.StageStore = "auto",
) -> None:
    """Delete old runs with their queries and hits, and return their space to the file system.

    With both options, a run is deleted if it is older and not among the newest. Runs that a process works on are kept,
    and so are those of a service's searches, which expire by themselves.

    Example: swsearch runs prune --older-than 30d

    Example: swsearch runs prune --keep 100 --dry-run
    """
    from swsearch.store.store import open_store

    if not keep and older_than is None:
        raise InputError("say which runs to delete: --older-than 30d, --keep 100, or both")
    before = None if older_than is None else datetime.now(UTC) - _age(older_than)
    with open_store(store, stage=stage_store, notify=say) as opened:
        old = opened.runs.old(keep=keep, before=before)
        for run in old:
            if not dry_run:
                with suppress(RunNotFound):  # another process has just deleted it
                    opened.runs.delete(run.id)
            print(f"run {run.id} {'would be deleted' if dry_run else 'deleted'}: {described(run)}")
        if old and not dry_run:
            try:
                opened.compact()
            except StoreError as error:
                say(f"warning: the space is free for later runs, but not returned: {error.marked}")
        say(_size_of(opened, len(opened.runs.all())))


def _age(text: str) -> timedelta:
    """The time that an age such as ``30d`` denotes."""
    found = re.fullmatch(r"(\d{1,5})([hdw])", text)
    if found is None:
        raise InputError(f"--older-than {quoted(text)}: give a number of hours, days or weeks, such as 12h, 30d or 8w")
    return timedelta(hours=int(found[1]) * {"h": 1, "d": 24, "w": 168}[found[2]])


@app.command(short_help="Bring the store of an older version up to date.")
def upgrade(store: options.KeptStore = DEFAULT_STORE, stage_store: options.StageStore = "auto") -> None:
    """Bring a store written by an older version of the program up to date.

    Example: swsearch runs upgrade --store hits.sqlite
    """
    from swsearch.store.connections import Address
    from swsearch.store.staged_store import upgrade_store

    upgrade_store(store, stage=stage_store, notify=say)
    print(f"{Address.of(store).name} is up to date")


_LABEL: Final = r"(\d+)-of-(\d+)"
_RUN: Final = re.compile(r"(.+)#(\d{1,18}|latest)", re.DOTALL)


def stores_of(pattern: str) -> list[str]:
    """The existing stores that a name with ``{shard}`` stands for, in the order of their shards.

    A name without ``{shard}`` stands for itself, whether it exists or not.

    Raises
    ------
    InputError
        There is no such store, or there are stores of different numbers of shards.
    """
    if PLACEHOLDER not in pattern:
        return [pattern]
    path = Path(pattern)
    if PLACEHOLDER in str(path.parent):
        raise InputError(f"{pattern}: {PLACEHOLDER} stands for shards in the name of a file, not of its folder")
    before, *between = (re.escape(part) for part in path.name.split(PLACEHOLDER))
    # Further occurrences in the name stand for the same shard.
    form = re.compile(before + f"(?P<label>{_LABEL})" + "(?P=label)".join(between), re.DOTALL)
    names = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
    found = {name: match for name in names if (match := form.fullmatch(name))}
    if not found:
        raise InputError(f"{pattern}: there is no such store of any shard; name the stores of the shards")
    counts = sorted({int(match[3]) for match in found.values()})
    if len(counts) > 1:
        one = pattern.replace(PLACEHOLDER, f"*-of-{counts[-1]}")
        several = " and ".join(str(count) for count in counts)
        raise InputError(f"{pattern}: there are stores of {several} shards; name those of one batch, such as {one}")
    in_order = sorted(found, key=lambda name: int(found[name][2]))
    return [str(path.with_name(name)) for name in in_order]


def named_runs(name: str) -> tuple[str, str | None]:
    """A store, and its run that ``STORE#RUN`` names; a file whose own name has this form is a store.

    >>> named_runs("hits.sqlite#3"), named_runs("hits.sqlite")
    (('hits.sqlite', '3'), ('hits.sqlite', None))
    """
    match = _RUN.fullmatch(name)
    if match is None or Path(name).exists():
        return name, None
    return match[1], match[2]

"""``swsearch serve``, ``swsearch worker`` and ``swsearch tokens``: the search service."""

from __future__ import annotations

import os
import re
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swsearch.cli import options
from swsearch.cli.command import CommandGroup
from swsearch.cli.output import say
from swsearch.command_log import LOG_VARIABLE, log_path
from swsearch.errors import InputError, UsageError
from swsearch.file_registry import unregistered
from swsearch.options import DEFAULT_STORE
from swsearch.threads import threads_to_use

if TYPE_CHECKING:
    from swsearch.service.databases import Databases
    from swsearch.service.settings import ServerLimits

DatabasePaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DB…", click_type=options.INPUT_NAME, help="Databases to offer, each under the last part of its path."
    ),
]
_NICENESS = 5
"""Of a worker that computes on the cores of its server, so that short answers do not wait for long searches."""


def serve(paths: DatabasePaths = None, *, context: typer.Context) -> None:
    """Serve searches of databases to browsers, to scripts (/api/v1), and to `swsearch query --server`.

    Searches are kept in the store: they go on after a restart, and `swsearch runs` lists them. The log is JSON lines on
    stderr; stdout gets the address when the server is ready. With --log, the lines of all its processes are in that
    file, too.

    Example: swsearch serve proteins.db genome.db --store hits.sqlite

    Example: swsearch serve --databases /srv/databases

    Example: swsearch tokens add ann --store hits.sqlite && swsearch serve proteins.db --host 0.0.0.0
    """
    _require_service()
    from swsearch.service import server
    from swsearch.service.client import announced
    from swsearch.service.domain_finder import check_families
    from swsearch.service.protocols import check_protocols
    from swsearch.service.proxies import check_proxies, check_root_path
    from swsearch.service.settings import ServerLimits, Settings
    from swsearch.service.worker_processes import worker_command
    from swsearch.store.connections import Address

    given: options.Arguments = context.obj
    _warn_of_network(given.store)
    offered = _offered(paths or [], given)
    protocols = check_protocols(given.protocol or [])
    root_path = check_root_path(given.root_path)
    proxies = check_proxies(given.trusted_proxy or [])
    has_names = _is_sso(given.sso_header, proxies)
    needs_tokens = not server.is_loopback(given.host) and not has_names
    has_tokens = _has_tokens(given.store, create=not needs_tokens)
    if needs_tokens and not has_tokens:
        advice = f"`swsearch tokens add NAME --store {Address.of(given.store).name}` makes one"
        raise InputError(f"--host {given.host}: a server that others can reach needs tokens; {advice}")
    settings = Settings(
        databases=offered.always,
        folder=offered.folder,
        subject_sets=offered.sets,
        store=given.store,
        tokens_required=has_tokens or has_names,
        worker_commands=tuple(worker_command(paths or [], words) for words in _options_of_workers(given)),
        expiry_days=given.expiry_days,
        limits=_limits(ServerLimits(), given.limit or []),
        protocols=protocols,
        trusted_proxies=proxies,
        sso_header=given.sso_header,
        families=check_families(given.families or []),
        root_path=root_path,
    )
    # Workers inherit the log and the store; it may have a password, which a command line would show.
    with (
        _environment({options.STORE_VARIABLE: given.store, LOG_VARIABLE: str(log_path() or "")}),
        unregistered(),
        ExitStack() as stack,
    ):

        def announce(url: str) -> None:
            stack.enter_context(announced(url))
            with suppress(InputError, OSError):  # a server needs no stdout; its log has the address, too
                print(url, flush=True)

        server.serve(settings, given.host, given.port, announce)


def _has_tokens(store: str, *, create: bool) -> bool:
    """Whether a store has tokens; a file that does not exist has none, and is made with ``create``."""
    from swsearch.store.connections import Address
    from swsearch.store.store import Store

    file = Address.of(store).file
    if not create and file is not None and not file.exists():
        return False
    with Store(store, create=True) as opened:
        return opened.accounts.has_tokens()


def _options_of_workers(given: options.Arguments) -> list[list[str]]:
    """The options of each worker of a server."""
    if not given.worker:
        return []
    same = ["--engine", given.engine]
    same += ["--expiry-days", str(given.expiry_days), "--give-up-after", str(given.give_up_after)]
    same += [] if given.databases is None else ["--databases", given.databases]
    same += [] if given.subject_sets is None else ["--subject-sets", given.subject_sets]
    return [[*same, *its_share] for its_share in _shares(given.devices, given.threads)]


def _shares(devices: list[int] | None, threads: int | None) -> list[list[str]]:
    """The options of each worker of a server: one worker for each GPU, with its share of the threads."""
    if devices is not None and len(devices) > 1:
        threads = max(1, threads_to_use(threads) // len(devices))
    shares = [["--devices", str(device)] for device in devices or ()] or [[]]
    return [share + ([] if threads is None else ["--threads", str(threads)]) for share in shares]


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables during a ``with`` statement."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def worker(paths: DatabasePaths = None, *, context: typer.Context) -> None:
    """Search for a service: take queries from its store, and commit their hits, until SIGTERM.

    `swsearch serve` starts one worker. More of them, also on other hosts, share a store in PostgreSQL; each is given
    the databases that it can search. A worker that is killed loses nothing: others take its queries.

    Example: swsearch worker proteins.db --store postgresql://me@host/hits --devices 1
    """
    _require_service()
    from swsearch.engine.registry import Machine
    from swsearch.service.searcher_cache import SearcherCache
    from swsearch.service.worker import SearchWorker
    from swsearch.store.store import Store

    given: options.Arguments = context.obj
    hints = given.hints
    if not hints:  # a server has told its own
        _warn_of_network(given.store)
    chosen = _offered(paths or [], given)
    keep = timedelta(days=given.expiry_days) if given.expiry_days else None
    machine = Machine(given.engine, given.threads, given.devices)
    with (
        unregistered(),
        Store(given.store, create=True) as opened,
        SearcherCache(chosen, machine) as searchers,
    ):
        if hints and searchers.engine.name == "cpu":
            os.nice(_NICENESS)
        working = SearchWorker(opened.queue, searchers, keep=keep, max_losses=given.give_up_after, hints=hints)

        stop = handler_of(working.stop)
        signal.signal(signal.SIGTERM, stop)
        # Ctrl-C reaches both processes of a server; the server then ends the pipe.
        signal.signal(signal.SIGINT, signal.SIG_IGN if hints else stop)
        working.run()


def handler_of(stop: Callable[[], None]) -> Callable[..., None]:
    """A handler of signals for which a thread calls ``stop``.

    A handler runs within the code that it interrupts, and would wait forever for a lock that this code holds, such as
    that of a ``threading.Event`` that both use.
    """
    reading, writing = os.pipe()

    def listen() -> None:
        while os.read(reading, 1):
            stop()

    def handle(*_: Any) -> None:
        os.write(writing, b"\0")

    threading.Thread(target=listen, daemon=True).start()
    return handle


def _sets_folder(given: str | None, store: str) -> Path | None:
    """The folder of the subjects that are sent with searches; None if they are refused."""
    from swsearch.store.connections import Address

    if given is not None:
        return None if given.lower() == "none" else Path(given).absolute()
    database = Address.of(store).database
    return None if database is None else Path(f"{database}.subjects").absolute()


def _warn_of_network(store: str) -> None:
    """Log a warning if the store is on a network file system; a service's store is never staged."""
    from swsearch.service.logs import log
    from swsearch.store.connections import Address

    address = Address.of(store)
    if address.is_on_network:
        advice = "name one on a disk of this machine, or in PostgreSQL"
        problem = "the processes of other machines must not use this store, and its file system may lose data"
        log("store on a network file system", "warning", store=address.name, message=f"{problem}; {advice}")


def _offered(paths: list[str], given: options.Arguments) -> Databases:
    """The databases of a command."""
    from swsearch.service.databases import Databases, database_folder, named_databases

    sets = _sets_folder(given.subject_sets, given.store)
    if not paths and given.databases is None:
        raise UsageError("there is nothing to search; give databases, or a folder of them with --databases")
    folder = None if given.databases is None else database_folder(given.databases)
    return Databases(named_databases(paths), folder, sets)


def _is_sso(header: str, proxies: tuple[str, ...]) -> bool:
    """Whether a proxy names the owners of requests."""
    if not header:
        return False
    if not re.fullmatch("[A-Za-z0-9-]+", header) or header.lower() in ("authorization", "cookie", "host", "x-api-key"):
        raise InputError(f"--sso-header {header}: give the name of a header, such as X-Forwarded-User")
    if not proxies:
        raise InputError(f"--sso-header {header} needs --trusted-proxy with the address of the proxy that sends it")
    return True


def _limits(limits: ServerLimits, given: list[str]) -> ServerLimits:
    names = [field.name for field in fields(limits)]
    for text in given:
        name, _, value = text.partition("=")
        if name not in names or not value.isdecimal() or int(value) < 1:
            raise InputError(f"--limit {text}: give NAME=N with N above 0, and one of {', '.join(names)}")
        limits = replace(limits, **{name: int(value)})
    return limits


def _require_service() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("fastapi", "uvicorn", "sse_starlette", "prometheus_client") if find_spec(name) is None]
    if missing:
        raise InputError(f"{', '.join(missing)} not installed; `pip install 'swsearch[service]'` adds what is needed")


# --- tokens ---

tokens = CommandGroup(
    help="Add, list and revoke the tokens of a service. A server with a token answers no request without one.",
    no_args_is_help=True,
)


@tokens.command("add")
def add_token(
    owner: Annotated[
        str, typer.Argument(metavar="NAME", help="Owner of the token. Owners see only their own searches.")
    ],
    store: options.CreatedStore = DEFAULT_STORE,
) -> None:
    """Make a token and print it. It is shown this once; the store keeps its SHA-256.

    Example: swsearch tokens add ann --store hits.sqlite
    """
    from swsearch.store.store import Store

    with Store(store, create=True) as opened:
        stored, token = opened.accounts.add_token(owner)
        print(token)
        say(f"token {stored.id} of {owner}; a server that runs without tokens asks for them after a restart")


@tokens.command("list")
def list_tokens(store: options.KeptStore = DEFAULT_STORE) -> None:
    """List the tokens: id, owner, when they were made and revoked.

    Example: swsearch tokens list --store hits.sqlite
    """
    from swsearch.store.store import Store

    with Store(store) as opened:
        stored = opened.accounts.tokens()
        if not stored:
            say(f"no token in {opened.name}; `swsearch tokens add NAME --store {shlex.quote(opened.name)}` makes one")
        for token in stored:
            state = "valid" if token.revoked is None else f"revoked {token.revoked:%Y-%m-%d %H:%M}"
            print(f"{token.id}  {token.created:%Y-%m-%d %H:%M}  {state}  {token.owner}")


@tokens.command("revoke")
def revoke_tokens(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID…", help="Ids of the tokens, as `swsearch tokens list` prints them.")
    ],
    store: options.KeptStore = DEFAULT_STORE,
) -> None:
    """Revoke tokens: within seconds, a running server refuses them.

    Example: swsearch tokens revoke 1f0c22aa --store hits.sqlite
    """
    from swsearch.store.store import Store

    with Store(store) as opened:
        for token_id in ids:
            token = opened.accounts.revoke_token(token_id)
            say(f"token {token.id} of {token.owner} is revoked")

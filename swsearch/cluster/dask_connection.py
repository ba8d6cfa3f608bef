"""The connection to a Dask cluster: its workers, requests to one of them, and their answers as they come.

A text says where a cluster is: ``tcp://host:port`` (or ``tls://…``) is the address of a scheduler, and anything else is
a file that ``dask scheduler --scheduler-file`` writes. If the scheduler ends, Dask cancels all tasks and ends the
workers (dask/distributed, issue 1072): the connection is then lost, and :meth:`DaskConnection.reconnect` waits for a
scheduler at the same place.

The last part of this module is called by the workers of the cluster.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import queue
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from swsearch.cluster.connection import SEARCH, Answered, WorkerInfo, taken
from swsearch.cluster.residents import Residents, performed
from swsearch.cluster.tasks import PROGRAM, Failed, packed
from swsearch.engine.registry import Machine
from swsearch.errors import InputError
from swsearch.file_registry import registry
from swsearch.typing import Closeable

CONNECT_SECONDS: Final = 10.0
"""Longest time of one attempt to connect to a scheduler."""
RETRY_SECONDS: Final = 0.2
FIRST_SECONDS: Final = 60.0
"""Time for which a scheduler is waited for at the start; it may have been submitted together with the driver."""


@dataclass(eq=False)
class _Task:
    """A task at a worker: Dask's future and, when it has ended, the fetching of what it returned."""

    future: Any
    fetched: Future[bytes] | None = None


class DaskConnection(Closeable):
    """A connection to the cluster at a place; see :class:`swsearch.cluster.connection.Connection`.

    ``notify`` is called with a message when the waiting for a scheduler begins. Raises :class:`InputError` if there is
    no scheduler at this place, if the text is neither an address nor a file, or if Dask is not installed.
    """

    def __init__(self, where: str, notify: Callable[[str], None] = lambda _: None) -> None:
        _require_dask()
        self.where = where
        self.title = f"cluster {where}"
        self._notify = notify
        self._client: Any = None
        self._tasks: dict[int, _Task] = {}
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._tickets = itertools.count()
        try:
            self._client = self._connected(FIRST_SECONDS)
        except BaseException:
            self.close()
            raise

    # --- the scheduler ---

    def _connected(self, patience_seconds: float | None) -> Any:
        """A new client; waits for the scheduler, for ever if ``patience_seconds`` is None."""
        from distributed import Client

        ends = None if patience_seconds is None else time.monotonic() + patience_seconds
        is_told = False
        while True:
            problem = "it does not answer"
            try:
                address = self._address()
                return Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="swsearch")
            except (OSError, TimeoutError) as error:
                problem = str(error) if isinstance(error, FileNotFoundError) else problem
            except ValueError as error:
                raise InputError(f"--cluster {self.where}: {error}") from error
            if ends is not None and time.monotonic() >= ends:
                advice = "start one with `dask scheduler`, or name local:N"
                raise InputError(f"--cluster {self.where}: there is no scheduler: {problem}; {advice}")
            if patience_seconds is not None and not is_told:
                waiting = f"waiting for one for up to {patience_seconds:.0f} s"
                self._notify(f"--cluster {self.where}: there is no scheduler: {problem}; {waiting}")
                is_told = True
            time.sleep(RETRY_SECONDS)

    def _address(self) -> str:
        if "://" in self.where:
            return self.where
        registry().read(self.where)
        try:
            return str(json.loads(Path(self.where).read_bytes())["address"])
        except FileNotFoundError:
            raise FileNotFoundError("the file does not exist") from None
        except (KeyError, TypeError, ValueError):  # it is being written, or is another file
            raise FileNotFoundError("the file has no address of a scheduler") from None

    @property
    def is_lost(self) -> bool:
        """Whether the scheduler has ended, or cannot be reached; all tasks are then lost."""
        return self._client is None or self._client.status != "running"

    def reconnect(self) -> None:
        """Wait until there is a scheduler at the same place, and connect to it."""
        self.close()
        self._client = self._connected(None)

    def workers(self) -> dict[str, WorkerInfo] | None:
        """The workers that can take tasks, by their addresses; None if the scheduler does not answer."""
        try:
            known = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError, KeyError, AttributeError):
            return None
        hosts = [one.get("host") for one in known.values()]
        return {
            address: WorkerInfo(
                address,
                f"worker {address}",
                threads=int(one.get("nthreads") or 1),
                limit_bytes=int(one.get("memory_limit") or 0),
                n_on_host=hosts.count(one.get("host")),
                is_paused=one.get("status") == "paused",
            )
            for address, one in known.items()
            if one.get("status", "running") in ("running", "paused")
        }

    # --- tasks ---

    def ask(self, worker: str, request: str, *arguments: bytes | int | None) -> int:
        """See :class:`swsearch.cluster.connection.Connection`."""
        ticket = next(self._tickets)
        key = f"swsearch-{os.urandom(8).hex()}"
        future = self._client.submit(
            perform, PROGRAM, request, *arguments, key=key, workers=[worker], allow_other_workers=False, pure=False
        )
        self._tasks[ticket] = _Task(future)
        future.add_done_callback(lambda _: self._fetch(ticket))
        return ticket

    def _fetch(self, ticket: int) -> None:
        """Begin to fetch what a task returned; called by a thread of Dask's when the task has ended.

        If the worker ends now, the fetching never ends, and nothing waits for it.
        """
        task, client = self._tasks.get(ticket), self._client
        if task is None or client is None:
            return
        fetching = client.gather(task.future, asynchronous=True)
        task.fetched = asyncio.run_coroutine_threadsafe(fetching, client.loop.asyncio_loop)
        task.fetched.add_done_callback(lambda _: self._ended.put(ticket))

    def forget(self, ticket: int) -> None:
        """Forget a task, whether it has ended or not; its answer is not reported."""
        task = self._tasks.pop(ticket, None)
        if task is not None:
            with suppress(Exception):
                if task.fetched is not None:
                    task.fetched.cancel()
                task.future.release()

    def answered(self, seconds: float) -> list[Answered]:
        """The tasks that have ended since the last call; waits up to this time for the first of them."""
        return [self._answer(ticket) for ticket in taken(self._ended, seconds) if ticket in self._tasks]

    def _answer(self, ticket: int) -> Answered:
        from distributed import KilledWorker

        task = self._tasks[ticket]
        assert task.fetched is not None
        try:
            return Answered(ticket, task.fetched.result())
        except (KilledWorker, CancelledError, OSError, TimeoutError):
            return Answered(ticket, None)
        except Exception as error:
            return Answered(ticket, None, error)
        finally:
            self.forget(ticket)

    # --- the end ---

    def close(self) -> None:
        """End the connection; tasks in flight are cancelled."""
        self._tasks.clear()
        self._ended = queue.SimpleQueue()
        if self._client is not None:
            client, self._client = self._client, None
            with suppress(Exception):
                client.close(timeout=2)


def _require_dask() -> None:
    try:
        import distributed
    except ModuleNotFoundError as error:
        advice = "install it with `pip install 'swsearch[cluster]'`"
        raise InputError(f"--cluster: {error.name} is not installed; {advice}") from error
    del distributed
    # The driver itself reports what a lost worker or scheduler means.
    for name in [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)


# --- the function that a driver calls at a worker ---


def perform(program: str, request: str, *arguments: Any) -> bytes:
    """Perform a request of a driver, unless that has another version of the program; returns the packed answer."""
    from distributed import get_worker, secede

    share = Machine(threads=max(1, get_worker().state.nthreads))  # only a thread of Dask's may ask
    if program != PROGRAM:
        advice = "install the same version everywhere"
        return packed(Failed("InputError", f"this worker has {PROGRAM}, and the driver has {program}; {advice}"))
    if request == SEARCH and _residents().is_background:
        secede()
    return performed(_residents(), share, request, *arguments)


@cache
def _residents() -> Residents:
    """What this worker keeps open."""
    from distributed.system import MEMORY_LIMIT

    return Residents(host_bytes=MEMORY_LIMIT)

"""The connection to a Dask cluster: its workers, tasks for one of them, and their answers as they come.

:class:`Connection` is all that the rest of this package knows of Dask. A task is sent to one worker and to no other,
because the dispatcher decides what each worker holds. If the scheduler ends, Dask cancels all tasks and ends the
workers (dask/distributed, issue 1072): the connection is then lost, and :meth:`Connection.reconnect` waits for a
scheduler at the same place.

A text says where a cluster is: ``tcp://host:port`` (or ``tls://…``) is the address of a scheduler, ``local:N`` starts
N workers on this machine, and anything else is a file that ``dask scheduler --scheduler-file`` writes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import queue
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from swsearch.closeable import Closeable
from swsearch.cores import usable_cores
from swsearch.errors import EngineError, InputError
from swsearch.file_registry import registry

CHANGED_VARIABLES: Final = ("PYTHONHASHSEED", "__DASK_PARENT_PID")
"""Variables that Dask sets in this process for the workers that it starts."""
CONNECT_SECONDS: Final = 10.0
"""Longest time of one attempt to connect to a scheduler."""
RETRY_SECONDS: Final = 0.2
FIRST_SECONDS: Final = 60.0
"""Time for which a scheduler is waited for at the start; it may have been submitted together with the driver."""


@dataclass(frozen=True)
class WorkerInfo:
    """A worker of the cluster.

    Attributes
    ----------
    address : str
    name : str
        How messages name it: its address and its host.
    threads : int
        Number of threads that Dask gave it.
    limit_bytes : int
        The memory limit that Dask gave it; 0 if it has none.
    n_on_host : int
        Number of workers on its host.
    is_paused : bool
        Whether it takes no tasks at present, because it has used most of its memory limit.
    """

    address: str
    name: str
    threads: int
    limit_bytes: int = 0
    n_on_host: int = 1
    is_paused: bool = False


@dataclass(frozen=True)
class Answered:
    """A task that has ended.

    Attributes
    ----------
    ticket : int
    data : bytes or None
        What the worker's function returned; None if there is no answer.
    error : Exception or None
        Why there is no answer: the function could not be called. None if the task was lost with its worker.
    """

    ticket: int
    data: bytes | None
    error: Exception | None = None


@dataclass(eq=False)
class _Task:
    """A task at a worker: Dask's future and, when it has ended, the fetching of what it returned."""

    future: Any
    fetched: Future[bytes] | None = None


class Connection(Closeable):
    """A connection to the cluster at a place.

    Parameters
    ----------
    where : str
        The place, as in the text above.
    threads : int, optional
        Number of threads of each worker of ``local:N``; by default, an equal share of the cores of this machine.
    devices : sequence of int, optional
        GPUs of the workers of ``local:N``, one each; if None, their environment is not changed.
    notify : callable
        Called with a message when the waiting for a scheduler begins.

    Raises
    ------
    InputError
        There is no scheduler at this place, or the text is none of the three kinds; or Dask is not installed.
    """

    def __init__(
        self,
        where: str,
        threads: int | None = None,
        devices: Sequence[int] | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        _require_dask()
        self.where = where
        self._notify = notify
        self._local: Any = None
        self._client: Any = None
        self._tasks: dict[int, _Task] = {}
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._tickets = itertools.count()
        self._environment = {name: os.environ.get(name) for name in CHANGED_VARIABLES}
        try:
            if where.startswith("local:"):
                self._local = _local_cluster(_n_local(where), threads, devices)
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
                raise InputError(f"--cluster {self.where}: there is no scheduler, {problem}; {advice}")
            if patience_seconds is not None and not is_told:
                waiting = f"waiting for one for up to {patience_seconds:.0f} s"
                self._notify(f"--cluster {self.where}: there is no scheduler, {problem}; {waiting}")
                is_told = True
            time.sleep(RETRY_SECONDS)

    def _address(self) -> str:
        if self._local is not None:
            return str(self._local.scheduler_address)
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
        """Wait until there is a scheduler at the same place, and connect to it.

        Raises
        ------
        EngineError
            The cluster was started by this process (``local:N``) and has ended.
        """
        if self._local is not None:
            raise EngineError(f"--cluster {self.where}: the scheduler in this process has ended; resume the run")
        self._close_client()
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

    def submit(self, worker: str, function: Callable[..., bytes], *arguments: Any) -> int:
        """Send a task to a worker; returns its ticket."""
        ticket = next(self._tickets)
        key = f"swsearch-{os.urandom(8).hex()}"
        future = self._client.submit(
            function, *arguments, key=key, workers=[worker], allow_other_workers=False, pure=False
        )
        self._tasks[ticket] = _Task(future)
        future.add_done_callback(lambda _: self._fetch(ticket))
        return ticket

    def _fetch(self, ticket: int) -> None:
        """Begin to fetch what a task returned; called by a thread of Dask's when the task has ended.

        If the worker ends now, there is nothing to fetch for ever, and nothing waits for it.
        """
        task, client = self._tasks.get(ticket), self._client
        if task is None or client is None:
            return
        fetching = client.gather(task.future, asynchronous=True)
        task.fetched = asyncio.run_coroutine_threadsafe(fetching, client.loop.asyncio_loop)
        task.fetched.add_done_callback(lambda _: self._ended.put(ticket))

    def forget(self, ticket: int) -> None:
        """Let go of a task, whether it has ended or not; it is not answered any more."""
        task = self._tasks.pop(ticket, None)
        if task is not None:
            with suppress(Exception):
                if task.fetched is not None:
                    task.fetched.cancel()
                task.future.release()

    def answered(self, seconds: float) -> list[Answered]:
        """The tasks that have ended since the last call; waits for the first of them, but at most so long."""
        tickets = []
        with suppress(queue.Empty):
            if seconds > 0:
                tickets.append(self._ended.get(timeout=seconds))
            while True:
                tickets.append(self._ended.get_nowait())
        return [self._answer(ticket) for ticket in tickets if ticket in self._tasks]

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

    def _close_client(self) -> None:
        self._tasks.clear()
        self._ended = queue.SimpleQueue()
        if self._client is not None:
            client, self._client = self._client, None
            with suppress(Exception):
                client.close(timeout=2)

    def close(self) -> None:
        """End the connection, and the workers that it started; tasks in flight are cancelled."""
        self._close_client()
        if self._local is not None:
            local, self._local = self._local, None
            with suppress(Exception):
                local.close(timeout=10)
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _require_dask() -> None:
    try:
        import distributed
    except ModuleNotFoundError as error:
        advice = "`pip install 'swsearch[cluster]'` adds what is needed"
        raise InputError(f"--cluster: {error.name} is not installed; {advice}") from error
    del distributed
    # The driver itself reports what a lost worker or scheduler means.
    for name in [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _n_local(where: str) -> int:
    match = re.fullmatch("local:([1-9][0-9]{0,3})", where)
    if match is None:
        raise InputError(f"--cluster {where}: give the number of workers, such as local:4")
    return int(match[1])


def _local_cluster(n_workers: int, threads: int | None, devices: Sequence[int] | None) -> Any:
    """A scheduler in this process and workers in processes of their own, each with its share of cores or its GPU."""
    import dask
    from distributed import Nanny, Scheduler, SpecCluster

    if devices is not None and len(devices) < n_workers:
        raise InputError(f"--cluster local:{n_workers} needs a GPU for each worker, and --devices names {len(devices)}")
    share = threads or max(1, usable_cores() // n_workers)
    workers: dict[int, dict[str, Any]] = {}
    for number in range(n_workers):
        options: dict[str, Any] = {"nthreads": share, "memory_limit": 0, "dashboard": False, "host": "127.0.0.1"}
        environment = {"DASK_LOGGING__DISTRIBUTED": "critical"}
        if devices is not None:
            environment["CUDA_VISIBLE_DEVICES"] = str(devices[number])
        options |= {"env": environment, "silence_logs": logging.CRITICAL}
        workers[number] = {"cls": Nanny, "options": options}
    # The address of the dashboard is that of metrics as well, which Dask always serves.
    of_scheduler = {"dashboard": False, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1", "port": 0}
    scheduler = {"cls": Scheduler, "options": of_scheduler}
    # Otherwise, Dask would leave variables that are for the workers in the environment of this process.
    with dask.config.set({"distributed.nanny.pre-spawn-environ": {}}):
        return SpecCluster(workers, scheduler, name="swsearch", silence_logs=logging.CRITICAL)

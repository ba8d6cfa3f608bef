"""The interface between the dispatcher and the processes that search: which there are, requests, and answers.

:class:`Connection` is all that the dispatcher knows of them. Its two kinds are
:class:`swsearch.cluster.dask_connection.DaskConnection`, to the workers of a Dask cluster, and
:class:`swsearch.cluster.processes.WorkerProcesses`, to processes that it starts on this machine. A request is sent to
one worker and to no other, because the dispatcher decides what each worker holds.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final, Protocol, TypeVar

_Item = TypeVar("_Item")

PREPARE: Final = "prepare"
"""The request to open the engine of a packed :class:`Machine`. The second argument is the packed :class:`SearchSpec` of
the search that probably comes first, which the worker also opens; failures are reported by the search."""
SEARCH: Final = "search"
"""The request to search by a packed :class:`SearchSpec`; further arguments are the packed queries and the number of
bytes for databases, or None."""


@dataclass(frozen=True)
class WorkerInfo:
    """A worker as its connection describes it; ``name`` is used in messages.

    ``threads`` and ``limit_bytes``, its memory limit, are those that it was given (0 without a limit); ``n_on_host`` is
    the number of workers on its host. While it ``is_paused``, it takes no tasks, because it has used most of its memory
    limit.
    """

    address: str
    name: str
    threads: int
    limit_bytes: int = 0
    n_on_host: int = 1
    is_paused: bool = False


@dataclass(frozen=True)
class Answered:
    """A request that has ended.

    ``data`` is the packed :data:`swsearch.cluster.tasks.Answer` of the worker; otherwise ``error`` says why the request
    could not be sent, or is None if it was lost with its worker.
    """

    ticket: int
    data: bytes | None
    error: Exception | None = None


def taken(queued: SimpleQueue[_Item], seconds: float) -> list[_Item]:
    """What a queue has, in order; waits up to this time for the first item."""
    items = []
    with suppress(Empty):
        if seconds > 0:
            items.append(queued.get(timeout=seconds))
        while True:
            items.append(queued.get_nowait())
    return items


class Connection(Protocol):
    """A connection to workers."""

    where: str
    """The place of the workers, for messages."""
    title: str
    """The name of the workers in the description of a search."""

    @property
    def is_lost(self) -> bool:
        """Whether all requests are lost, and :meth:`reconnect` must be called."""
        ...

    def reconnect(self) -> None:
        """Wait until workers accept requests again."""
        ...

    def workers(self) -> dict[str, WorkerInfo] | None:
        """The workers that can take requests, by their addresses; None if that is not known at the moment."""
        ...

    def ask(self, worker: str, request: str, *arguments: bytes | int | None) -> int:
        """Send a worker a request, :data:`PREPARE` or :data:`SEARCH`, with its arguments; returns its ticket."""
        ...

    def forget(self, ticket: int) -> None:
        """Forget a request, whether it has ended or not; its answer is not reported."""
        ...

    def answered(self, seconds: float) -> list[Answered]:
        """The requests that have ended since the last call; waits up to this time for the first of them."""
        ...

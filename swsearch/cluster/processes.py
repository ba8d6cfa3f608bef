"""Workers that are processes of this machine: ``local:N``, and a process for each GPU of a search.

:class:`WorkerProcesses` starts them and is the driver's side of their sockets; :func:`work` is the other side.
A process has a GPU of its own, or a share of the cores. Its standard input is a socket, by which requests come and
answers go. When the driver closes it or is killed, the process ends at once, so that no worker outlives its driver. A
worker that dies is replaced, unless it has never answered.

A worker creates the context of its GPU while it imports the program, and it is started before the driver imports most
of its own modules, so that both start in the time of one.
"""

from __future__ import annotations

import importlib
import itertools
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from swsearch.cluster.connection import Answered, WorkerInfo, taken
from swsearch.errors import EngineError, InputError
from swsearch.threads import usable_cores
from swsearch.typing import Closeable

PREFIX: Final = "local:"
END_SECONDS: Final = 5.0
"""Time in which a worker ends when its input has ended; after it, the worker is killed."""
_WARM_UP: Final = "from swsearch.engine.cuda.runtime.warm_up import warm_up; warm_up(({device},)); "
_WORK: Final = "from swsearch.cluster.processes import work; work({threads}, {device})"
"""The program of a worker."""


class WorkerProcesses(Closeable):
    """Worker processes of this machine; see :class:`swsearch.cluster.connection.Connection`.

    By default, each worker has an equal share of the cores that this process may use. ``devices`` are the CUDA numbers
    of the workers' GPUs, one each. Raises :class:`InputError` if there are fewer devices than workers.
    """

    is_lost = False  # a worker that has ended is replaced

    def __init__(self, n_workers: int, threads: int | None = None, devices: Sequence[int] | None = None) -> None:
        self.where = f"{PREFIX}{n_workers}"
        if devices is not None and len(devices) < n_workers:
            raise InputError(f"--cluster {self.where} needs a GPU for each worker, and --devices names {len(devices)}")
        self.title = f"cluster {self.where}" if devices is None else f"{n_workers} GPUs, a process each"
        self._threads = threads or max(1, usable_cores() // n_workers)
        self._devices = [None] * n_workers if devices is None else list(devices)[:n_workers]
        self._answers: queue.SimpleQueue[Answered] = queue.SimpleQueue()
        self._tickets = itertools.count()
        self._forgotten: set[int] = set()
        self._names = itertools.count(1)
        self._workers: dict[str, _WorkerProcess] = {}
        try:
            for device in self._devices:
                self._start(device)
        except BaseException:
            self.close()
            raise

    @classmethod
    def of(cls, place: str, threads: int | None, devices: Sequence[int] | None) -> WorkerProcesses:
        """The workers of ``local:N``; raises :class:`InputError` if the text has no number, or for fewer devices than
        workers.
        """
        match = re.fullmatch(f"{PREFIX}([1-9][0-9]{{0,3}})", place)
        if match is None:
            raise InputError(f"--cluster {place}: give the number of workers, such as local:4")
        return cls(int(match[1]), threads, devices)

    def _start(self, device: int | None) -> None:
        number = next(self._names)
        name = f"worker {number}" if device is None else f"the process of GPU {device}"
        self._workers[str(number)] = _WorkerProcess(name, self._threads, device, self._answers.put)

    def reconnect(self) -> None:
        """Do nothing, since nothing is lost."""

    def workers(self) -> dict[str, WorkerInfo]:
        """The running workers by their addresses; those that have ended are replaced by others.

        Raises :class:`EngineError` if a worker has ended before its first answer.
        """
        for address, worker in list(self._workers.items()):
            if worker.process.poll() is not None:
                del self._workers[address]
                worker.close()
                if not worker.has_answered:
                    raise EngineError(f"{worker.name} could not start, its exit code is {worker.process.returncode}")
                self._start(worker.device)
        n_workers = len(self._devices)
        return {
            address: WorkerInfo(address, worker.name, self._threads, n_on_host=n_workers)
            for address, worker in self._workers.items()
        }

    def ask(self, worker: str, request: str, *arguments: bytes | int | None) -> int:
        """See :class:`swsearch.cluster.connection.Connection`."""
        ticket = next(self._tickets)
        self._workers[worker].send((ticket, request, *arguments))
        return ticket

    def forget(self, ticket: int) -> None:
        """See :class:`swsearch.cluster.connection.Connection`. The worker performs the request nevertheless."""
        self._forgotten.add(ticket)

    def answered(self, seconds: float) -> list[Answered]:
        """See :class:`swsearch.cluster.connection.Connection`."""
        return [answer for answer in taken(self._answers, seconds) if answer.ticket not in self._forgotten]

    def end(self) -> None:
        """Tell the workers to end, which takes a GPU a while; a later request starts others."""
        for worker in self._workers.values():
            worker.end()

    def close(self) -> None:
        """End the workers, also in the middle of a search."""
        self.end()
        workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            worker.close()


class _WorkerProcess:
    """A process of :func:`work`, with a GPU of its own if it has a device."""

    def __init__(self, name: str, threads: int, device: int | None, answer: Callable[[Answered], None]) -> None:
        self.name = name
        self.device = device
        self.has_answered = False
        self._answer = answer
        program = (_WORK if device is None else _WARM_UP + _WORK).format(threads=threads, device=device)
        self._socket, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen([sys.executable, "-P", "-c", program], stdin=theirs.fileno(), stdout=2)
        self._reader = threading.Thread(target=self._read, name=f"answers of {name}", daemon=True)
        self._reader.start()

    def send(self, request: tuple[Any, ...]) -> None:
        """Send a request; it has no answer if the process has ended."""
        with suppress(OSError):
            self._socket.send(request)

    def _read(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                ticket, data = self._socket.recv()
                self.has_answered = True
                self._answer(Answered(ticket, data))

    def end(self) -> None:
        """Tell the process to end."""
        with suppress(OSError), socket.socket(fileno=os.dup(self._socket.fileno())) as one:
            one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Return when the process has ended."""
        self.end()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        self._socket.close()


# --- the other side ---


def work(threads: int, device: int | None) -> None:
    """Perform the requests of standard input, until it ends; this ends the process.

    The driver may ask for other numbers of threads or other GPUs than these.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the driver as well, which ends the input
    channel = Connection(os.dup(0))

    from swsearch.cluster.residents import Residents, performed
    from swsearch.engine.registry import Machine

    if device is not None:  # what the first request needs, while the driver imports its own modules
        with suppress(ImportError):
            for name in ("swsearch.engine.cuda.search.multi_gpu", "pycuda.driver"):
                importlib.import_module(name)

    residents = Residents(host_bytes=_memory_bytes())
    share = Machine(threads=threads, devices=None if device is None else (device,))
    sending = threading.Lock()

    def perform(ticket: int, request: str, *arguments: Any) -> None:
        answer = performed(residents, share, request, *arguments)
        with sending, suppress(OSError):  # the driver has ended
            channel.send((ticket, answer))

    with suppress(EOFError, OSError):
        while True:
            threading.Thread(target=perform, args=channel.recv(), daemon=True).start()
    os._exit(0)  # the results are no longer needed


def _memory_bytes() -> int:
    """Memory of this machine, or of the container of this process if it has a limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # other systems, or no limit
        return min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return total

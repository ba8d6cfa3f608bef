"""The fork server: a process that has loaded the program and forks a process for each request.

``python -m tests.forking.server FOLDER`` listens on ``FOLDER/socket`` until its stdin ends. A fork leaves the server's
loop and becomes what a new interpreter would be at the start of the program: it takes the descriptors, the environment
and everything else from the request, makes its streams as the interpreter does, runs the program, and ends with the
interpreter's own finalization, which leaves out the modules of the server. Only variables that the interpreter or a
library evaluates before the program begins cannot be taken over; if they differ from those of the server, the client is
told to execute the interpreter.

The server has one thread, so that a fork may do anything that a new process may do.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import io
import os
import resource
import runpy
import selectors
import signal
import socket
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.forking import request
from tests.forking.preload import load_program
from tests.forking.request import Request

_BEYOND: Final = 512
"""Descriptors from this number on are used while those of a process are put in place."""
_AT_START: Final = ("PYTHON", "LC_", "LD_", "MALLOC_", "NPY_")
_ALSO_AT_START: Final = ("LANG", "LANGUAGE", "GLIBC_TUNABLES")
_HANDLED_LATER: Final = ("PYTHONUNBUFFERED",)


def start_variables(environment: Mapping[bytes, bytes]) -> dict[str, bytes]:
    """Return the variables that are evaluated before the program begins; an empty one has no effect."""
    named = {os.fsdecode(name): value for name, value in environment.items() if value}
    return {
        name: value
        for name, value in named.items()
        if (name.startswith(_AT_START) or name in _ALSO_AT_START) and name not in _HANDLED_LATER
    }


def is_supported(arguments: Request) -> bool:
    """Return whether the interpreter is asked to run the command or a program text."""
    first = list(arguments.arguments[:2])
    return first == [b"-m", b"swsearch"] or (first[:1] == [b"-c"] and len(first) == 2)


IGNORED_BY_PYTHON: Final = {signal.SIGPIPE, signal.SIGXFSZ}
"""Signals that each interpreter ignores from its start."""


class Server:
    """The server's loop."""

    def __init__(self, folder: Path) -> None:
        self._given = dict(
            variable.split(b"=", 1) for variable in Path("/proc/self/environ").read_bytes().split(b"\0") if variable
        )
        # What the interpreter itself sets at its start, as LC_CTYPE in the POSIX locale.
        self._own = {
            name: value
            for name, value in os.environb.items()
            if os.fsdecode(name) in start_variables({name: value}) and self._given.get(name) != value
        }
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / "socket"))
        self._listening.listen(64)
        self._wakened, waker = socket.socketpair()
        self._waker = waker
        for end in (self._wakened, waker):
            end.setblocking(False)
        self._connections: dict[int, socket.socket] = {}

    def serve(self) -> tuple[Request, socket.socket] | None:
        """Answer requests until stdin ends; return the request and its connection in each fork, and None at the end."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno())
        with selectors.DefaultSelector() as events:
            events.register(0, selectors.EVENT_READ)
            events.register(self._listening, selectors.EVENT_READ)
            events.register(self._wakened, selectors.EVENT_READ)
            while True:
                for key, _ in events.select():
                    if key.fileobj == 0:
                        for process in self._connections:
                            os.kill(process, signal.SIGKILL)
                        return None
                    if key.fileobj is self._wakened:
                        self._tell_ends(events)
                    elif key.fileobj is self._listening:
                        connection, _ = self._listening.accept()
                        asked = self._fork(events, connection)
                        if asked is not None:
                            return asked, connection
                    else:
                        self._end_of_client(events, key.fileobj)

    def _fork(self, events: selectors.BaseSelector, connection: socket.socket) -> Request | None:
        """Fork for the request of a connection; return the request in the fork, and None in the server."""
        try:
            asked = request.receive(connection)
        except ConnectionError:  # the client was killed
            connection.close()
            return None
        if is_supported(asked) and start_variables(asked.environment) == start_variables(self._given):
            process = os.fork()
            if process == 0:
                signal.set_wakeup_fd(-1)
                os.environb.clear()
                os.environb.update({**self._own, **asked.environment})
                return asked
            self._connections[process] = connection
            events.register(connection, selectors.EVENT_READ)
        else:
            with connection, contextlib.suppress(OSError):  # the client has ended
                connection.sendall(request.MESSAGE.pack(request.EXECUTE, 0))
        for descriptor in asked.descriptors.values():
            os.close(descriptor)
        return None

    def _tell_ends(self, events: selectors.BaseSelector) -> None:
        """Tell the clients of the processes that have ended."""
        with contextlib.suppress(BlockingIOError):  # another signal's byte was read in its place
            self._wakened.recv(4096)
        while self._connections:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            connection = self._connections.pop(process)
            with contextlib.suppress(KeyError):  # the client has ended, and the process was killed
                events.unregister(connection)
            with connection, contextlib.suppress(OSError):  # the client has ended
                connection.sendall(request.MESSAGE.pack(request.ENDED, status))

    def _end_of_client(self, events: selectors.BaseSelector, connection: Any) -> None:
        """Kill the process of a client that has ended."""
        for process, known in list(self._connections.items()):  # none, if it has ended in the same round of events
            if known is connection:
                os.kill(process, signal.SIGKILL)
                events.unregister(connection)


def begin(asked: Request, connection: socket.socket) -> None:
    """Take everything from the request but the environment, tell the client, and make the streams."""
    with contextlib.suppress(OSError):  # the group is gone, or of another session; the process keeps the server's
        os.setpgid(0, asked.group)
    channel = fcntl.fcntl(connection, fcntl.F_DUPFD_CLOEXEC, _BEYOND)
    beyond = {
        wanted: fcntl.fcntl(received, fcntl.F_DUPFD_CLOEXEC, _BEYOND) for wanted, received in asked.descriptors.items()
    }
    connection.detach()
    os.closerange(0, _BEYOND)
    for wanted, held in beyond.items():
        os.dup2(held, wanted)
        os.close(held)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    for number in signal.valid_signals() - IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:  # by the server, for example under nohup
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in asked.ignored:
        with contextlib.suppress(OSError, ValueError):  # a signal that Python does not know, or that libc keeps
            signal.signal(number, signal.SIG_IGN)
    os.umask(asked.umask)
    for kind, limit in enumerate(asked.limits):
        if resource.getrlimit(kind) != limit:
            resource.setrlimit(kind, limit)
    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        # The interpreter would keep the beginning of a module's bytecode as if it were the whole.
        sys.dont_write_bytecode = True
    os.chdir(asked.folder)
    with contextlib.suppress(BrokenPipeError):  # the client has ended, and the server kills this process
        os.write(channel, request.MESSAGE.pack(request.STARTED, os.getpid()))
    os.close(channel)
    make_streams()


def keep_modules() -> None:
    """Keep the modules that are loaded now out of the interpreter's finalization.

    To free their objects one by one, a process would first have to copy the memory that it shares with the server,
    which takes longer than most programs.
    """
    others = sys.modules.keys() - {"__main__", "builtins", "sys"}
    kept: list[Any] = [sys.modules.pop(name) for name in others]
    kept.append(kept)  # a cycle, which only the collector would free
    gc.freeze()


atexit.register(keep_modules)  # before all others, so that it is called after them


def make_streams() -> None:
    """Make the streams as the interpreter does at its start: None where the descriptor is closed."""
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        previous = getattr(sys, f"__{name}__")
        stream = None
        with contextlib.suppress(OSError):  # a closed descriptor: the stream is None
            os.fstat(number)
            stream = _stream(number, name, previous.encoding, previous.errors, unbuffered=unbuffered)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _stream(number: int, name: str, encoding: str, errors: str, *, unbuffered: bool) -> io.TextIOWrapper:
    raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    raw.name = f"<{name}>"
    if number == 0:
        return io.TextIOWrapper(io.BufferedReader(raw), encoding, errors, line_buffering=unbuffered)
    binary: Any = raw if unbuffered else io.BufferedWriter(raw)
    lines = number == 2 or (raw.isatty() and not unbuffered)
    stream = io.TextIOWrapper(binary, encoding, errors, newline="\n", line_buffering=lines, write_through=unbuffered)
    stream.mode = "w"  # type: ignore[misc]  # the interpreter sets it too; the type says read-only
    return stream


def run(asked: Request) -> None:
    """Run the command or the program text."""
    arguments = [os.fsdecode(argument) for argument in asked.arguments]
    if arguments[0] == "-m":
        sys.path[0] = os.getcwd()
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = ""
        sys.argv = ["-c", *arguments[2:]]
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(arguments[1], "<string>", "exec"), main.__dict__)


def serve_in(folder: Path) -> None:
    """Load the program and serve; the forks run the program from here."""
    server = Server(folder)
    load_program()
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"the program has started {len(threads) - 1} threads, which a fork would not have"
    print("ready", flush=True)
    asked = server.serve()
    if asked is not None:
        begin(*asked)
        run(asked[0])


if __name__ == "__main__":
    serve_in(Path(sys.argv[1]))

"""Forks of the server from Python: servers by environment, and processes with known ids.

`ForkServer.python` and `ForkServer.swsearch` are programs for `subprocess` and for shells. `ForkServer.popen` starts a
process without a program between, for tests that kill it or need its id.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from tests.compiled import ROOT, compiled, compiler_version
from tests.forking import request
from tests.forking.request import Request

_SOURCE = Path(__file__).with_name("client.c")
_OPTIONS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror")


def client_program() -> Path:
    """Return the compiled client."""
    compiler = os.environ.get("CC", "cc")

    def make(path: Path) -> None:
        subprocess.run([compiler, *_OPTIONS, "-o", str(path), str(_SOURCE)], check=True)

    return compiled("fork-client", [_SOURCE.read_text(), *_OPTIONS, compiler_version(compiler)], make)


class ForkServer:
    """A running server with its programs.

    Attributes
    ----------
    folder : Path
        Contains the programs, for a shell's PATH.
    python, swsearch : Path
        Stand-ins for the interpreter and for the command.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="swsearch-forks-"))  # a socket's path must be short
        self.python = self.folder / "python"
        self.swsearch = self.folder / "swsearch"
        shutil.copy(client_program(), self.python)
        self.swsearch.hardlink_to(self.python)
        (self.folder / "interpreter").symlink_to(sys.executable)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forking.server", str(self.folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **variables},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def close(self) -> None:
        """End the server and all its processes."""
        self._process.communicate()
        shutil.rmtree(self.folder)

    def popen(self, arguments: Sequence[str | os.PathLike[str]], **options: Any) -> Fork:
        """Start the interpreter with these arguments; the options are those of :class:`Fork`."""
        return Fork(self.folder / "socket", arguments, **options)


class Fork:
    """A process with the methods of `subprocess.Popen` that tests use; its streams are text.

    Parameters
    ----------
    server : Path
        The server's socket.
    arguments : sequence of str or path
        Those of the interpreter.
    cwd : path, optional
    env : mapping, optional
    stdin, stdout, stderr : optional
        None, a descriptor, a file, `subprocess.PIPE` or `subprocess.DEVNULL`.
    """

    def __init__(
        self,
        server: Path,
        arguments: Sequence[str | os.PathLike[str]],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
    ) -> None:
        self.returncode: int | None = None
        self._ended = False
        ours: list[IO[str] | None] = []
        with contextlib.ExitStack() as theirs:
            numbers = {}
            for number, given in enumerate((stdin, stdout, stderr)):
                numbers[number], own = _descriptors(given, number, theirs)
                ours.append(own)
            asked = Request.of_this_process(
                arguments,
                folder=os.getcwd() if cwd is None else cwd,
                environment=os.environ if env is None else env,
                descriptors=numbers,
            )
            self._server = socket.socket(socket.AF_UNIX)
            self._server.connect(str(server))
            asked.send(self._server)
            kind, self.pid = self._message()
        self.stdin, self.stdout, self.stderr = ours
        assert kind == request.STARTED, "the environment needs an interpreter of its own, or a server of its own"

    def _message(self) -> tuple[int, int]:
        content = self._server.recv(request.MESSAGE.size, socket.MSG_WAITALL)
        if len(content) != request.MESSAGE.size:
            raise EOFError("the fork server has ended")
        kind, value = request.MESSAGE.unpack(content)
        return kind, value

    def wait(self) -> int:
        """Wait for the end of the process; return its exit code, or the negative number of its signal."""
        if self.returncode is None:
            kind, status = self._message()
            assert kind == request.ENDED
            self.returncode = os.waitstatus_to_exitcode(status)
            self._server.close()
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code if the process has ended."""
        if self.returncode is None:
            with contextlib.suppress(BlockingIOError):  # no message yet: the process runs
                self._server.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
                return self.wait()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended since `poll`
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, text: str | None = None) -> tuple[str, str]:
        """Write to stdin, read stdout and stderr to their ends, and wait for the process."""
        found = {}

        def read(name: str, stream: IO[str]) -> None:
            with stream:
                found[name] = stream.read()

        streams = {name: stream for name in ("stdout", "stderr") if (stream := getattr(self, name)) is not None}
        readers = [threading.Thread(target=read, args=item) for item in streams.items() if not item[1].closed]
        for reader in readers:
            reader.start()
        if self.stdin is not None and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError), self.stdin:  # the process reads no further, as with Popen
                self.stdin.write(text or "")
        for reader in readers:
            reader.join()
        self.wait()
        return found.get("stdout", ""), found.get("stderr", "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process if it has not ended, and close its streams."""
        self.kill()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # a closed stream flushes what nobody reads
                    stream.close()
        self.wait()


def _descriptors(given: Any, number: int, theirs: contextlib.ExitStack) -> tuple[int, IO[str] | None]:
    """Return the descriptor that the process gets and, of a pipe, this process's stream; `theirs` closes the former."""
    if given is None:
        return number, None
    if given == subprocess.PIPE:
        reader, writer = os.pipe()
        passed, own = (reader, writer) if number == 0 else (writer, reader)
        theirs.callback(os.close, passed)
        return passed, open(own, "w" if number == 0 else "r")
    if given == subprocess.DEVNULL:
        opened = os.open(os.devnull, os.O_RDWR)
        theirs.callback(os.close, opened)
        return opened, None
    return (given if isinstance(given, int) else given.fileno()), None


class ForkServers:
    """The servers of a test session, each started when it is first needed."""

    def __init__(self) -> None:
        self._running: dict[frozenset[tuple[str, str]], ForkServer] = {}

    def __call__(self, **variables: str) -> ForkServer:
        """Return the server whose environment has these variables in addition to those of this process."""
        key = frozenset(variables.items())
        if key not in self._running:
            self._running[key] = ForkServer(variables)
        return self._running[key]

    def close(self) -> None:
        """End all servers."""
        for server in self._running.values():
            server.close()


@contextlib.contextmanager
def running_servers() -> Iterator[ForkServers]:
    """Servers that end with the block."""
    servers = ForkServers()
    try:
        yield servers
    finally:
        servers.close()

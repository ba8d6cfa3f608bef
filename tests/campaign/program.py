"""The program in processes of its own: started with a fault, a limit or unusual streams, killed, signalled, awaited.

There are three ways to start one. `started` runs the installed `swsearch` command, from the interpreter's first
instruction. `forked` calls the command's entry point in a fork of a server of :mod:`multiprocessing`, which has loaded
the program's modules, so that it begins its work fifteen times sooner. `called` calls any function in such a fork.

Faults at system calls need `shim.so` preloaded before libc: the server is started with it, so that a fork can be armed,
and the library does nothing until then.
"""

import contextlib
import faulthandler
import multiprocessing
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, NoReturn

import pytest

import swsearch
from tests.campaign import faults
from tests.processes import SWSEARCH

HANGS_SECONDS = 120.0
"""The time after which a process counts as hanging; a shorter time would also catch slow processes."""
MEMORY_BYTES = 3 << 30
"""Limit of the address space that a fork may use beyond that of the server."""

Limits = Mapping[int, int]
"""Soft and hard limits of the process, by the `resource` module's numbers."""


@dataclass(frozen=True)
class Done:
    """How a process ended.

    Attributes
    ----------
    code : int
        Exit code, or the negative number of the signal that ended the process.
    out, err : bytes
    calls : int
        System calls of the fault's classes.
    what : str
        The call that was faulted.
    seconds : float
    began : bool
        Whether a fork reached the program with its signal handlers; always true of an installed command.
    """

    code: int
    out: bytes
    err: bytes
    calls: int
    what: str
    seconds: float
    began: bool

    @property
    def text(self) -> str:
        """The errors, for a report of a failure."""
        return self.err.decode("utf-8", "replace")

    @property
    def errors(self) -> list[str]:
        """The lines that report errors."""
        return [line for line in self.text.splitlines() if "error:" in line]

    @property
    def fault(self) -> str | None:
        """What no command may do: die by a signal, show a traceback, exhaust its memory; None if none."""
        if self.code < 0:
            return f"died by {signal.Signals(-self.code).name}: {self.text[:1500]}"
        if "Traceback (most recent call last)" in self.text:
            return self.text[-1500:]
        return "out of memory" if "out of memory" in self.text else None

    def check_end(self) -> bool:
        """Return whether the command succeeded; a failure must be exit code 1 and one line, without a traceback."""
        assert self.code in (0, 1), f"exit code {self.code}: {self.text[-400:]}"
        assert "Traceback" not in self.text, self.text[-700:]
        assert self.code == 0 or len(self.errors) == 1, f"{len(self.errors)} lines of error: {self.text[-400:]}"
        return self.code == 0


@cache
def _server() -> ForkServerContext:
    """Start the server of this process's forks."""
    modules = [module.name for module in pkgutil.walk_packages(swsearch.__path__, "swsearch.")]
    own = [name for name in modules if ".cuda" not in name and name != "swsearch.__main__"]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "alembic.command", "sqlalchemy.dialects.sqlite", __name__, *own])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(faults.shim()))
        forkserver.ensure_running()
    return context


class Process:
    """A process that calls a function with a page and further arguments, the leader of its own process group."""

    def __init__(
        self, function: Callable[..., object], *arguments: Any, limits: Limits | None = None, stdout: Path | None = None
    ) -> None:
        self._files = tempfile.TemporaryDirectory(prefix="campaign-")
        folder = Path(self._files.name)
        self._out, self._err = folder / "out", folder / "err"
        self.page = faults.Page(folder / "page")
        self._began = time.monotonic()
        given = (self.page.path, stdout or self._out, self._err, limits or {}, function, arguments)
        self._process = _server().Process(target=_child, args=given)
        self._process.start()

    def signal(self, number: int) -> None:
        """Send a signal; do nothing if the process has ended."""
        if not self.has_ended() and self._process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def has_ended(self) -> bool:
        """Return whether the process has ended, by itself or by a signal."""
        return self._process.exitcode is not None

    def wait_for(self, happened: Callable[[], object]) -> None:
        """Wait until an event has happened or the process has ended."""
        while not happened() and not self.has_ended():
            time.sleep(0.0005)

    def wait(self, seconds: float = HANGS_SECONDS) -> Done:
        """Wait for the end of the process; after `seconds` it is killed, and the code is that of SIGKILL."""
        self._process.join(seconds)
        hung = b""
        if not self.has_ended():
            hung = b"the campaign: it hung and was killed\n"
            self.signal(signal.SIGKILL)
            self._process.join()
        assert self._process.exitcode is not None
        took = time.monotonic() - self._began
        with self._files, contextlib.closing(self.page):
            out, err = (path.read_bytes() if path.exists() else b"" for path in (self._out, self._err))
            page = self.page
            return Done(self._process.exitcode, out, err + hung, page.calls, page.what, took, page.began)


def _child(
    page: Path, stdout: Path, stderr: Path, limits: Limits, function: Callable[..., object], arguments: tuple[Any, ...]
) -> NoReturn:
    """Become the process in which the function is called, with streams and limits of its own."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    writes = os.O_WRONLY | os.O_CREAT
    for target, (path, flags) in enumerate(((os.devnull, os.O_RDONLY), (stdout, writes), (stderr, writes))):
        source = os.open(path, flags)
        os.dup2(source, target)
        os.close(source)
    # A limit or a fault would cut off the bytecode of modules, too, which later processes then cannot load.
    sys.dont_write_bytecode = True
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    of_child = {resource.RLIMIT_AS: pages * resource.getpagesize() + MEMORY_BYTES, resource.RLIMIT_CORE: 0}
    for kind, most in {**of_child, **limits}.items():
        resource.setrlimit(kind, (most, most))
    _call(lambda: function(page, *arguments))


def _call(function: Callable[[], object]) -> NoReturn:
    """Call a function and end the process as the interpreter does."""
    faulthandler.enable(2, all_threads=False)  # the frames of a crash are part of its output
    # These replace the interpreter's own streams for the lifetime of the process.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
    code: object = 0
    try:
        code = function()
    except SystemExit as error:
        code = error.code
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(int(code or 0))  # type: ignore[call-overload]


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of every process: temporary files below its folder, one thread of linear algebra."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    return {"TMPDIR": str(temporary), "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "120", "SWSEARCH_STORE": "hits.sqlite"}


def forked(
    arguments: Sequence[str], folder: Path, fault: faults.Fault = faults.NONE, *, limits: Limits | None = None
) -> Process:
    """Run `swsearch` with these arguments in a folder, in a fork of the server."""
    return Process(_run, list(arguments), folder, fault, limits=limits)


def _run(page: Path, arguments: list[str], folder: Path, fault: faults.Fault) -> NoReturn:
    """Call the entry point of the program, and note when signals are handled."""
    from swsearch.cli import app
    from swsearch.cli.start import run

    os.chdir(folder)
    sys.argv = ["swsearch", *arguments]
    os.environ.update(environment(folder))
    observed, run_app = faults.Page(page), app.run

    def noted() -> NoReturn:
        observed.began = True
        run_app()

    app.run = noted
    faults.arm(folder, page, fault)
    run()


def started(
    arguments: Sequence[str],
    folder: Path,
    fault: faults.Fault | None = None,
    *,
    limits: Limits | None = None,
    closed: Sequence[int] = (),
    stdout: Path | None = None,
) -> Process:
    """Start the installed command `swsearch` with these arguments in a folder; streams in `closed` are closed."""
    process = Process(_execute, list(arguments), folder, fault, closed, limits=limits, stdout=stdout)
    process.page.began = True
    return process


def _execute(
    page: Path, arguments: list[str], folder: Path, fault: faults.Fault | None, closed: Sequence[int]
) -> NoReturn:
    """Become the installed command."""
    variables = {**os.environ, **environment(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    if fault is None:
        del variables["LD_PRELOAD"]
    else:
        variables |= fault.environment(folder, page)
    os.chdir(folder)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in closed:
        os.close(stream)
    os.execve(SWSEARCH, [SWSEARCH, *arguments], variables)


def called(function: Callable[..., object], *arguments: Any) -> Done:
    """Call a function of a module in a fork, whose exit code is its value."""
    return Process(_called, function, arguments).wait()


def _called(_page: Path, function: Callable[..., object], arguments: tuple[Any, ...]) -> object:
    return function(*arguments)


def run(arguments: Sequence[str], folder: Path, fault: faults.Fault = faults.NONE) -> Done:
    """Run a forked command and wait for its end."""
    return forked(arguments, folder, fault).wait()

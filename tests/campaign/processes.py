"""The program in processes of its own: started with a fault, a limit or unusual streams, killed, signalled, awaited.

There are three ways to start one. `started` runs the installed `swsearch` command, from the interpreter's first
instruction. `forked` forks this process, which has already loaded the program's modules, and calls the command's entry
point; the fork is also a separate process and begins its work fifteen times sooner. `in_child` calls any function in a
fork. Faults at system calls need `shim.so` preloaded before libc: the campaign's own processes are started with it, so
that a fork can be armed, and it does nothing until then.
"""

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

from tests.campaign import faults
from tests.processes import SWSEARCH

_PR_SET_PDEATHSIG = 1
HANGS_SECONDS = 120.0
"""The time after which a process counts as hanging; a shorter time would also catch slow processes."""
MEMORY_BYTES = 3 << 30
"""Limit of the address space that a fork may use beyond that of this process."""


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


@dataclass
class Process:
    """A running process, the leader of its own process group."""

    pid: int
    out: IO[bytes]
    err: IO[bytes]
    page: faults.Page
    began: float = field(default_factory=time.monotonic)

    def signal(self, number: int) -> None:
        """Send a signal to the group; do nothing if it has ended. Its number is not reused before `wait`."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def has_ended(self) -> bool:
        """Return whether the process has ended, by itself or by a signal."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self, seconds: float = HANGS_SECONDS) -> Done:
        """Wait for the end of the process; after `seconds` it is killed, and the code is that of SIGKILL."""
        ends = time.monotonic() + seconds
        pause = 0.0005
        hung = b""
        while not self.has_ended():
            if time.monotonic() > ends:
                hung = b"the campaign: it hung and was killed\n"
                self.signal(signal.SIGKILL)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.01)
        _, status = os.waitpid(self.pid, 0)
        took = time.monotonic() - self.began
        with self.out, self.err, contextlib.closing(self.page):
            out, err = (os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in (self.out, self.err))
            calls, what, began = self.page.calls, self.page.what, self.page.began
        return Done(os.waitstatus_to_exitcode(status), out, err + hung, calls, what, took, began)


Limits = Mapping[int, int]
"""Soft and hard limits of the process, by the `resource` module's numbers."""


@cache
def load_program() -> None:
    """Import all modules that a command imports, so that a fork does not have to."""
    # Loaded for the forks, not used here.
    import alembic.command  # noqa: F401
    import sqlalchemy.dialects.sqlite  # noqa: F401

    import swsearch

    for module in pkgutil.walk_packages(swsearch.__path__, "swsearch."):
        if ".cuda" not in module.name and module.name != "swsearch.__main__":
            with contextlib.suppress(ImportError):  # a module of an extra that is not installed; a fork meets it itself
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # existing objects are not collected again, in any fork


def _child(
    become: Callable[[faults.Page], NoReturn], limits: Limits | None = None, stdout: int | None = None
) -> Process:
    """Fork this process; the child, in a group of its own and with its own streams, becomes what is given."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    of_child = {resource.RLIMIT_AS: pages * resource.getpagesize() + MEMORY_BYTES, resource.RLIMIT_CORE: 0}
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - `wait` closes them
    page = faults.Page()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)  # also done in the parent: a signal sent at once must find the group
        return Process(pid, out, err, page)
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        streams = (os.open(os.devnull, os.O_RDONLY), out.fileno() if stdout is None else stdout, err.fileno())
        for target, source in enumerate(streams):
            os.dup2(source, target)
        # A limit or a fault would cut off the bytecode of modules, too, which later processes then cannot load.
        sys.dont_write_bytecode = True
        for kind, most in {**of_child, **(limits or {})}.items():
            resource.setrlimit(kind, (most, most))
        become(page)
    finally:
        os._exit(96)  # never reached by the program


def in_child(function: Callable[[], object]) -> Done:
    """Call a function in a fork, whose exit code is its value."""
    return _child(lambda _: _call(function)).wait()


def forked(
    arguments: Sequence[str],
    folder: Path,
    fault: faults.Fault = faults.NONE,
    *,
    limits: Limits | None = None,
) -> Process:
    """Run `swsearch` with these arguments in a folder, in a fork of this process."""
    load_program()

    def become(page: faults.Page) -> NoReturn:
        os.chdir(folder)
        sys.argv = ["swsearch", *arguments]
        os.environ.update(environment(folder))
        if faults.is_loaded():
            faults.arm(folder, page.path, fault)
        elif fault.at:
            raise RuntimeError("a fork meets faults only where the campaign was started with its library")
        _call(lambda: _run(page))

    return _child(become, limits)


def _run(page: faults.Page) -> NoReturn:
    """Call the entry point of the program, and note when signals are handled."""
    from swsearch.cli import app
    from swsearch.cli.start import run

    run_app = app.run

    def noted() -> NoReturn:
        page.began = True
        run_app()

    app.run = noted
    run()


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
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    os._exit(int(code or 0))  # type: ignore[call-overload]


def started(
    arguments: Sequence[str],
    folder: Path,
    fault: faults.Fault | None = None,
    *,
    limits: Limits | None = None,
    closed: Sequence[int] = (),
    stdout: int | None = None,
) -> Process:
    """Start the installed command `swsearch` with these arguments in a folder; streams in `closed` are closed."""

    def become(page: faults.Page) -> NoReturn:
        variables = {**faults.without_shim(), **environment(folder)}
        if fault is not None:
            variables |= {**fault.environment(folder, page.path), "LD_PRELOAD": str(library)}
        page.began = True
        os.chdir(folder)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for stream in closed:
            os.close(stream)
        os.execve(SWSEARCH, [SWSEARCH, *arguments], variables)

    library = faults.shim()
    return _child(become, limits, stdout)


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of every process: temporary files below its folder, one thread of linear algebra."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    return {"TMPDIR": str(temporary), "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "120", "SWSEARCH_STORE": "hits.sqlite"}


def die_with_parent() -> None:
    """Ask the system to kill this process when its parent dies, so that a killed campaign leaves no processes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run(arguments: Sequence[str], folder: Path, fault: faults.Fault = faults.NONE) -> Done:
    """Run a forked command and wait for its end."""
    return forked(arguments, folder, fault).wait()


def wait_for(happened: Callable[[], object], process: Process) -> None:
    """Wait until an event has happened or the process has ended."""
    while not happened() and not process.has_ended():
        time.sleep(0.0005)

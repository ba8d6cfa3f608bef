"""The program in processes of its own: started with a fault, a limit or unusual streams, killed, signalled, awaited.

There are two ways to start it. `started` runs the installed `swsearch` command, from the interpreter's first
instruction. `forked` forks this process, which has already loaded the program's modules, and calls the command's entry
point; the fork is also a separate process and begins its work fifteen times sooner. Faults at system calls need
`shim.so` preloaded before libc: the campaign's own processes are started with it, so that a fork can be armed, and it
does nothing until then.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import pkgutil
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NoReturn

from tests.campaign import faults

COMMAND = Path(sys.executable).with_name("swsearch")
_PR_SET_PDEATHSIG = 1
HANGS_SECONDS = 120.0
"""The time after which a process counts as hanging; a shorter time would also catch slow processes."""


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
        """The output, for a report of a failure."""
        return self.err.decode("utf-8", "replace")

    @property
    def errors(self) -> list[str]:
        """The lines that report errors."""
        return [line for line in self.text.splitlines() if "error:" in line]


@dataclass
class Process:
    """A running process, the leader of its own process group."""

    pid: int
    out: Path
    err: Path
    page: faults.Page
    began: float = field(default_factory=time.monotonic)
    status: int | None = None
    mark: Path | None = None  # file that a fork creates when it reaches the program

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
        while not self.has_ended():
            if time.monotonic() > ends:
                self.err.write_bytes(self.err.read_bytes() + b"the campaign: it hung and was killed\n")
                self.signal(signal.SIGKILL)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.01)
        _, status = os.waitpid(self.pid, 0)
        took = time.monotonic() - self.began
        code = os.waitstatus_to_exitcode(status)
        calls, what = self.page.calls, self.page.what
        self.page.close()
        read = [path.read_bytes() if path.is_file() else b"" for path in (self.out, self.err)]
        return Done(code, *read, calls, what, took, self.mark is None or self.mark.exists())


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


def forked(
    arguments: Sequence[str],
    folder: Path,
    fault: faults.Fault = faults.NONE,
    *,
    limits: Limits | None = None,
    stdout: int | None = None,
) -> Process:
    """Run `swsearch` with these arguments in a folder, in a fork of this process."""
    load_program()
    out, err, page = _places(folder)
    mark = out.with_name(f"{out.name}-began")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)  # also done in the parent: a signal sent at once must find the group
        return Process(pid, out, err, page, mark=mark)
    try:
        os.setpgid(0, 0)
        _become_command(arguments, folder, out, err, stdout)
        # A limit or a fault would cut off the bytecode of modules, too, which later processes then cannot load.
        sys.dont_write_bytecode = True
        for kind, most in (limits or {}).items():
            resource.setrlimit(kind, (most, most))
        if fault.at or fault.action == faults.COUNT:
            if faults.is_loaded():
                faults.arm(folder, page.path, fault)
            elif fault.at:
                raise RuntimeError("a fork meets faults only where the campaign was started with its library")
        _run_as_interpreter(mark)
    finally:
        os._exit(96)  # never reached by the program


def _become_command(arguments: Sequence[str], folder: Path, out: Path, err: Path, stdout: int | None) -> None:
    """Set up what the interpreter has at its start: streams, handlers, arguments, environment."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.chdir(folder)
    for target, source in (
        (0, os.open(os.devnull, os.O_RDONLY)),
        (1, os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if stdout is None else stdout),
        (2, os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)),
    ):
        os.dup2(source, target)
        os.close(source)
    # These replace the interpreter's own streams for the lifetime of the process.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
    sys.argv = ["swsearch", *arguments]
    os.environ.update(environment(folder))


def _run_as_interpreter(mark: Path) -> None:
    """Call the entry point and end the process as the interpreter does; create `mark` when signals are handled."""
    from swsearch.cli import app
    from swsearch.cli.start import run

    run_app = app.run

    def marked() -> NoReturn:
        mark.touch()
        run_app()

    app.run = marked
    code: object = 0
    try:
        run()
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
    out, err, page = _places(folder)
    variables = {**faults.without_shim(), **environment(folder)}
    if fault is not None:
        variables |= {**fault.environment(folder, page.path), "LD_PRELOAD": str(faults.shim())}
    pid = os.fork()
    if pid:
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)
        return Process(pid, out, err, page)
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        sources = [os.open(os.devnull, os.O_RDONLY)]
        sources.append(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if stdout is None else stdout)
        sources.append(os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        for target, source in enumerate(sources):
            os.dup2(source, target)
        os.closerange(3, 256)
        for stream in closed:
            os.close(stream)
        # A limit or a fault would cut off the bytecode of modules, too, which later processes then cannot load.
        sys.dont_write_bytecode = True
        for kind, most in (limits or {}).items():
            resource.setrlimit(kind, (most, most))
        os.execve(COMMAND, [str(COMMAND), *arguments], variables)
    finally:
        os._exit(95)


def _places(folder: Path) -> tuple[Path, Path, faults.Page]:
    """Return the paths of a process's output, which lie beside its folder, not in it."""
    beside = folder.with_name(f"{folder.name}.streams")
    beside.mkdir(exist_ok=True)
    number = len(list(beside.glob("page-*")))
    page = faults.Page(beside / f"page-{number}")
    return beside / f"out-{number}", beside / f"err-{number}", page


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

"""A PostgreSQL server of Debian's package on a socket, without network, which can be killed and started again."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.patience import LIMIT_SECONDS
from tests.peers import POSTGRES

NOBODY = 65534


def unprivileged() -> list[str]:
    """Return the prefix of a command that must not run as root; empty if the tests do not run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


class PostgresServer:
    """A running server.

    Parameters
    ----------
    folder : Path
        Of its data and its socket, whose path must be short. What is there is removed.
    settings : str
        Of the server, such as ``fsync=off``.
    """

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder, self._settings = folder, settings
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        initdb = [*unprivileged(), POSTGRES[-1].with_name("initdb"), "-D", folder / "data", "-U", "swsearch"]
        subprocess.run(
            [*initdb, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            check=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers. It is killed when its parent dies, if ``setpriv`` is there."""
        with_parent = [*(unprivileged() or ["setpriv"]), "--pdeathsig=KILL"] if shutil.which("setpriv") else []
        command = [*with_parent, POSTGRES[-1], "-D", self.folder / "data", "-k", self.folder, "-c", "listen_addresses="]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*command, *(word for setting in self._settings for word in ("-c", setting))],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        ends = time.monotonic() + LIMIT_SECONDS
        ready = [POSTGRES[-1].with_name("pg_isready"), "-q", "-h", self.folder]
        while subprocess.run(ready, check=False).returncode:
            assert self._process.poll() is None, (self.folder / "log").read_text()[-1000:]
            assert time.monotonic() < ends, "the server does not answer"
            time.sleep(0.02)

    def kill(self) -> None:
        """Send SIGKILL to the server and all of its processes, as when the machine runs out of memory."""
        first = self._process.pid
        found = subprocess.run(["ps", "--ppid", str(first), "-o", "pid="], capture_output=True, text=True, check=False)
        others = [int(line) for line in found.stdout.split()]
        for process in (first, *others):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()
        while not all(map(_has_ended, others)):
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop the server and remove its folder."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()
        shutil.rmtree(self.folder)

    def url(self, name: str) -> str:
        """Create an empty database and return its URL."""
        import psycopg

        with psycopg.connect(f"host={self.folder} user=swsearch dbname=postgres", autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {name}")
        return f"postgresql://swsearch@/{name}?host={self.folder}"


def _has_ended(process: int) -> bool:
    """Return whether a process is gone, or is a zombie that its new parent has not yet reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True

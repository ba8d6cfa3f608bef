"""Servers to test: `swsearch serve` in processes of its own, on free ports, and requests to them."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from urllib3 import encode_multipart_formdata

from swsearch.cli.app import main
from swsearch.service.client import Client
from swsearch.store.store import Store
from tests.patience import LIMIT_SECONDS
from tests.support import DATA


class Answer(NamedTuple):
    """An answer; the names of its headers are in small letters."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        """The content as UTF-8."""
        return self.content.decode()

    @property
    def is_page(self) -> bool:
        """Whether a browser shows it, and not as a download."""
        return self.headers.get("content-type", "").startswith("text/html") and (
            "content-disposition" not in self.headers
        )

    def json(self) -> Any:
        """The value of the content."""
        return json.loads(self.content)


def ask(
    connection: HTTPConnection, path: str, body: str | bytes | None = None, method: str | None = None, **headers: str
) -> Answer:
    """Send one request as it is, and close the connection; a redirection is not followed."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    with contextlib.closing(connection):
        connection.request(method or ("GET" if body is None else "POST"), path, body, names)
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def tokens_of(store: str, owners: Iterable[str]) -> dict[str, str]:
    """A new token of each owner in a store, which is created."""
    with Store(store, create=True) as opened:
        return {owner: opened.accounts.add_token(owner)[1] for owner in owners}


class Site:
    """A server by its address, with the tokens of those owners who have one."""

    url: str
    tokens: dict[str, str]

    def client(self, owner: str | None = None) -> Client:
        """A client of an owner, or without a token, that waits as long as a slow machine takes."""
        return Client(self.url, "" if owner is None else self.tokens[owner], patience=LIMIT_SECONDS)

    def request(
        self,
        path: str,
        body: object = None,
        method: str | None = None,
        *,
        owner: str | None = None,
        source: str = "127.0.0.1",
        **headers: str,
    ) -> Answer:
        """Send one request from an address of this machine; a body that is no text is sent as JSON."""
        if owner is not None:
            headers["Authorization"] = f"Bearer {self.tokens[owner]}"
        if body is not None:
            headers.setdefault("Content_Type", "application/json")
        sent = body if isinstance(body, str | bytes | None) else json.dumps(body)
        site = urlsplit(self.url)
        connection = HTTPConnection(site.netloc, timeout=LIMIT_SECONDS, source_address=(source, 0))
        return ask(connection, site.path + path, sent, method, **headers)

    def send_form(self, path: str, fields: Iterable[tuple[str, Any]], **more: str) -> Answer:
        """Send a form as a browser does; a field is a text, or a file's name and its bytes."""
        body, kind = encode_multipart_formdata(list(fields))
        return self.request(path, body, **{"Content_Type": kind, "Origin": self.url, **more})


class RunningServer(Site):
    """A server with its worker, and the log of both.

    ``program`` is what runs the command; by default, the module. With ``owners``, each of whom gets a token, every
    request needs one. At the end of a ``with`` block the server is stopped, and must have logged nothing but JSON.
    """

    def __init__(
        self,
        folder: Path,
        databases: list[Path],
        *arguments: str,
        port: int = 0,
        store: str | None = None,
        program: Sequence[str] = (sys.executable, "-m", "swsearch"),
        owners: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.store = store or str(folder / "hits.sqlite")
        self.tokens = tokens_of(self.store, owners) if owners else {}
        command = ["serve", *map(str, databases), "--port", str(port)]
        command += ["--engine", "cpu", "--threads", "1", "--store", self.store, *arguments]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(
            [*program, *command], cwd=folder, stdin=nothing, stdout=pipe, stderr=pipe, text=True
        )
        self.log: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        code = self.stop()
        if kind is None:
            assert code == 0
            assert self.events("text") == [], "something else than JSON was logged"

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(json.loads(line) if line.startswith("{") else {"event": "text", "message": line})

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of the log with this event."""
        return [line for line in list(self.log) if line["event"] == name]

    def error(self, path: str, body: object = None, method: str | None = None, **more: str) -> tuple[int, str, str]:
        """Send a request that is refused; returns status, code and message."""
        answer = self.request(path, body, method, **more)
        assert answer.status >= 400, answer.content
        error = answer.json()
        assert set(error) == {"error"}
        assert str(self.folder) not in answer.text
        return answer.status, error["error"]["code"], error["error"]["message"]

    def stop(self) -> int:
        """Send SIGTERM and wait for the end; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def kill(self) -> None:
        """Send SIGKILL to the process that was started, and wait for its end."""
        self.process.kill()
        self._end()

    def _end(self) -> int:
        code = self.process.wait()
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        return code


def worker_pids(server: RunningServer) -> list[int]:
    """The worker processes of a server, by their parent."""
    own = server.process.pid
    found = []
    for child in Path(f"/proc/{own}/task/{own}/children").read_text().split():
        with contextlib.suppress(OSError):  # it has ended
            if b"--hints" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


def local_report(database: Path, folder: Path, *options: str, queries: str | None = None) -> bytes:
    """What `swsearch query` prints for these queries, by default seven real proteins, made in this process."""
    path, out = folder / "local.fasta", folder / "local-report"
    path.write_text((DATA / "queries.fasta").read_text() if queries is None else queries)
    line = ["query", str(path), str(database), *options, "--store", "none", "--quiet", "--out", str(out)]
    assert main(line) == 0
    return out.read_bytes()

"""Servers to test: `swsearch serve` in processes of its own, on free ports."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from fastapi import FastAPI

from swsearch.cli.app import main
from swsearch.service.client import Client


class RunningServer:
    """A server with its worker, and the log of both.

    ``program`` is what runs the command; by default, the module.
    """

    def __init__(
        self,
        folder: Path,
        databases: list[Path],
        *arguments: str,
        port: int = 0,
        store: str | None = None,
        program: Sequence[str] = (sys.executable, "-m", "swsearch"),
    ) -> None:
        self.folder = folder
        self.store = store or str(folder / "hits.sqlite")
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

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(json.loads(line) if line.startswith("{") else {"event": "text", "message": line})

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of the log with this event."""
        return [line for line in list(self.log) if line["event"] == name]

    def client(self, token: str | None = None) -> Client:
        """A client that waits as long as a slow machine takes."""
        return Client(self.url, token, patience=300)

    def request(
        self, path: str, body: object = None, method: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Send one request as it is; returns status, headers and body."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            names.setdefault("Content-Type", "application/json")
        request = Request(self.url + path, data, names, method=method)
        try:
            with urlopen(request, timeout=300) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read()

    def error(self, path: str, body: object = None, method: str | None = None, **headers: str) -> tuple[int, str, str]:
        """Send a request that is refused; returns status, code and message."""
        status, _, content = self.request(path, body, method, **headers)
        assert status >= 400, content
        error = json.loads(content)
        assert set(error) == {"error"}
        assert str(self.folder) not in content.decode()
        return status, error["error"]["code"], error["error"]["message"]

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


def answer_of(
    app: FastAPI, path: str, body: bytes = b"", method: str = "GET", **headers: str
) -> tuple[int, dict[str, Any], BaseException | None]:
    """Status and JSON of an application's answer in this process, and what it raised for its server."""
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "scheme": "http",
        "method": method, "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        "headers": [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    raised = None
    try:
        asyncio.run(app(scope, receive, send))
    except Exception as error:
        raised = error
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:])), raised


def worker_pids(server: RunningServer) -> list[int]:
    """The worker processes of a server, by their parent."""
    return [pid for pid, command in _children(server) if b"--hints" in command]


def _children(server: RunningServer) -> list[tuple[int, bytes]]:
    """Process ids and commands of a server's children, the oldest first."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == server.process.pid and fields[0] != "Z":
                found.append((int(fields[19]), int(path.parent.name), (path.parent / "cmdline").read_bytes()))
    return [(pid, command) for _, pid, command in sorted(found)]


def held_answer(server: RunningServer, queries: str, stop: Callable[[], None]) -> tuple[int, str]:
    """Status and state of the answer to a submission of few.db that is held while ``stop`` stops a server."""
    answers: list[tuple[int, dict[str, str], bytes]] = []
    body = {"queries": queries, "database": "few.db", "options": {"top": 9}}
    held = threading.Thread(target=lambda: answers.append(server.request("/api/v1/searches?wait=50", body)))
    held.start()
    while held.is_alive() and not any(search["options"]["top"] == 9 for search in server.client().searches()):
        time.sleep(0.02)  # from then on it is being answered
    stop()
    held.join()
    status, _, content = answers[0]
    return status, json.loads(content)["state"]


def local_report(arguments: list[str], folder: Path) -> bytes:
    """What `swsearch query` prints for these arguments, made in this process."""
    out = folder / "local-report"
    assert main([*arguments, "--out", str(out)]) == 0
    return out.read_bytes()

"""The service under many clients at once: how fast the state of a search is answered, and how long small searches wait.

    python benchmarks/benchmark_service_load.py QUERIES.fasta [--engine cpu] [--subjects 20000] [--pollers 200]
        [--streams 400] [--users 50] [--seconds 30] [--out RESULT.json]

The database is that of ``benchmark_search.py``. ``swsearch serve`` runs on this host with a new store, and searches one
job of 10,000 queries all the time. The clients run on the same host:

status  ``--pollers`` clients ask for the state of the job once a second each, while ``--streams`` others receive its
        events: milliseconds of an answer (median, 99th percentile, longest), errors, and events received by all
small   ``--users`` users, who each have one search of one query at a time, beside the same job: seconds from the
        submission to the end (median, longest). ``allowed`` is two batches of the worker, the longest ones of its log,
        and ``--users`` times the median of one small search alone: what the service promises (docs/design/service.md)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_search import database
from benchmark_service import sequences, served
from provenance import device_of, header, write_result

JOB_QUERIES = 10_000
JOB_LENGTHS = (250, 350)
SMALL_LENGTHS = (80, 120)


class Connection:
    """A connection that is kept from request to request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, str]]:
        """Send a request; returns the status and the headers of the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), headers

    async def json(self, method: str, path: str, body: object = None) -> Any:
        """Send a request and read its answer."""
        status, headers = await self.open(method, path, body)
        assert self._streams is not None
        content = await self._streams[0].readexactly(int(headers["content-length"]))
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {content!r}")
        return json.loads(content)

    async def lines(self, path: str) -> Any:
        """The lines of a stream of events."""
        status, _ = await self.open("GET", path)
        assert self._streams is not None
        if status != 200:
            raise RuntimeError(f"GET {path}: {status}")
        while line := await self._streams[0].readline():
            yield line

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def poll(port: int, key: str, ends: float, delay: float) -> list[float]:
    """The times of the answers of a client that asks once a second."""
    connection = Connection(port)
    times = []
    await asyncio.sleep(delay)
    while time.monotonic() < ends:
        began = time.perf_counter()
        await connection.json("GET", f"/api/v1/searches/{key}")
        times.append(time.perf_counter() - began)
        await asyncio.sleep(1.0)
    connection.close()
    return times


async def stream(port: int, key: str, first: asyncio.Semaphore, n_events: list[int]) -> None:
    """Count the events of one client; ``first`` is released with the first of them."""
    connection = Connection(port)
    try:
        async for line in connection.lines(f"/api/v1/searches/{key}/events"):
            if line.startswith(b"event:"):
                n_events.append(1)
                if len(n_events) == 1:
                    first.release()
    finally:
        connection.close()


async def search_small(port: int, name: str, queries: str, seed: int, ends: float) -> list[float]:
    """The times of the searches of one user, from the submission to the end."""
    connection = Connection(port)
    times = []
    for number, letters in enumerate(sequences(queries, *SMALL_LENGTHS, seed)):
        began = time.perf_counter()
        body = {"queries": f">small{number}\n{letters}\n", "database": name}
        found = await connection.json("POST", "/api/v1/searches?wait=50", body)
        while found["state"] in ("queued", "running"):
            found = await connection.json("GET", f"/api/v1/searches/{found['id']}?wait=50")
        if found["state"] != "done":
            raise RuntimeError(f"a search ended as {found['state']}")
        times.append(time.perf_counter() - began)
        if time.monotonic() > ends:
            break
    connection.close()
    return times


def failures(found: list[Any]) -> list[str]:
    return [repr(each) for each in found if isinstance(each, BaseException)]


async def measure(port: int, name: str, options: argparse.Namespace, log: Path) -> dict[str, Any]:
    """All figures."""
    alone = await search_small(port, name, options.queries, 1, time.monotonic() + 3)
    own = float(np.median(alone))
    letters = sequences(options.queries, *JOB_LENGTHS, 2)
    job = "".join(f">job{number}\n{next(letters)}\n" for number in range(JOB_QUERIES))
    connection = Connection(port)
    key = (await connection.json("POST", "/api/v1/searches", {"queries": job, "database": name}))["id"]
    while (await connection.json("GET", f"/api/v1/searches/{key}"))["state"] == "queued":
        await asyncio.sleep(0.05)

    first = asyncio.Semaphore(0)
    events: list[list[int]] = [[] for _ in range(options.streams)]
    streams = [asyncio.create_task(stream(port, key, first, counted)) for counted in events]
    for _ in streams:
        await first.acquire()
    n_at_start = sum(map(len, events))
    ends = time.monotonic() + options.seconds
    polls = [poll(port, key, ends, number / options.pollers) for number in range(options.pollers)]
    answers = await asyncio.gather(*polls, return_exceptions=True)
    n_events = sum(map(len, events)) - n_at_start
    ended = [str(task.exception()) for task in streams if task.done()]
    for task in streams:
        task.cancel()
    await asyncio.gather(*streams, return_exceptions=True)
    times = 1000 * np.array([second for each in answers if isinstance(each, list) for second in each])
    status = {
        "answers": len(times),
        "p50_ms": float(np.median(times)),
        "p99_ms": float(np.quantile(times, 0.99)),
        "longest_ms": float(times.max()),
        "errors": failures(answers) + [f"a stream ended: {problem}" for problem in ended],
        "events_per_second": n_events / options.seconds,
    }
    print("status", json.dumps(status), flush=True)

    n_lines = len(log.read_text(encoding="utf-8").splitlines())
    ends = time.monotonic() + options.seconds
    users = [search_small(port, name, options.queries, 100 + number, ends) for number in range(options.users)]
    waits = await asyncio.gather(*users, return_exceptions=True)
    seconds = np.array([second for each in waits if isinstance(each, list) for second in each])
    left = await connection.json("GET", f"/api/v1/searches/{key}")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[n_lines:]]
    batches = [line["seconds"] for line in lines if line["event"] == "batch"]
    small = {
        "searches": len(seconds),
        "median_seconds": float(np.median(seconds)),
        "longest_seconds": float(seconds.max()),
        "alone_seconds": own,
        "longest_batch_seconds": max(batches),
        "allowed_seconds": 2 * max(batches) + options.users * own,
        "errors": failures(waits),
        "job_done": left["queries"]["done"],
        "job_is_unfinished": left["state"] == "running",
    }
    print("small", json.dumps(small), flush=True)
    await connection.json("POST", f"/api/v1/searches/{key}/cancel")
    connection.close()
    return {"status": status, "small": small}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--subjects", type=int, default=20_000)
    parser.add_argument("--pollers", type=int, default=200)
    parser.add_argument("--streams", type=int, default=400)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    report: dict[str, Any] = {
        **header("service-load"),
        **{name: getattr(options, name) for name in ("engine", "subjects", "pollers", "streams", "users", "seconds")},
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        path = database(options.queries, options.subjects, Path(tempfile.gettempdir()))
        with served(path, ["--engine", options.engine], folder) as (url, _):
            port = int(url.rpartition(":")[2])
            report |= asyncio.run(measure(port, path.name, options, folder / "server.log"))
    report |= device_of(options.engine)  # now that the server has left the device
    write_result(report, options.out)


if __name__ == "__main__":
    main()

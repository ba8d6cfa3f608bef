"""What one owner sends does not stop the server for another. Source: docs/threat-model.md.

All tests share a server with tokens for two owners, which was started in a hostile folder. ann attacks; bob's search is
answered beside each attack.
"""

import asyncio
import contextlib
import contextvars
import gzip
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from swsearch.errors import InputError, Refused
from swsearch.service.asgi import create_app
from swsearch.service.bodies import SMALL_BYTES, Budget, Readers
from swsearch.service.sent_text import check_wanted
from swsearch.service.settings import ServerLimits, Settings
from swsearch.service.worker_processes import ServerWorker
from swsearch.store.store import Store
from tests.patience import LIMIT_SECONDS, wait_until
from tests.service.servers import RunningServer, worker_pids

PROTEIN = ">mine\nMKVLAAGIVGLLLAQWERTY\n"
OF_OWNER, OF_ALL = 4_000_000, 6_000_000
SILENCE = 15
MODULES = ("alembic", "json", "multiprocessing", "numpy", "re2", "secrets", "sqlalchemy", "uvicorn")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory, databases):
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "swsearch").mkdir()
    for name in ("swsearch/__init__", "swsearch/__main__", *MODULES):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'executed')!r}, 'a').write({name!r})\nimport nothing\n")
    limits = {"owner_bytes_in_flight": OF_OWNER, "bytes_in_flight": OF_ALL, "worker_silence_seconds": SILENCE}
    options = [f"--limit={name}={value}" for name, value in limits.items()]
    program = [str(Path(sys.executable).with_name("swsearch"))]
    with RunningServer(folder, [databases / "few.db"], *options, program=program, owners=["ann", "bob"]) as running:
        yield running
    assert not (folder / "executed").exists(), (folder / "executed").read_text()


def sent(attacked, body, owner="ann", **headers):
    """Status, headers and code of the answer to a submission."""
    answer = attacked.request("/api/v1/searches", body, owner=owner, **headers)
    return answer.status, answer.headers, answer.json().get("error", {}).get("code")


def bob_is_answered(attacked, **options):
    """Search for bob until the end; what is asked must differ, so that it is searched."""
    client = attacked.client("bob")
    done = client.wait(client.submit(PROTEIN, "few.db", {"evalue": 1000, **options})["id"])
    assert done["state"] == "done"


def test_no_process_of_a_server_executes_code_of_the_folder_where_it_was_started(attacked):
    bob_is_answered(attacked, top=11)
    died = {event["code"] for event in attacked.events("worker died")}
    assert died <= {-signal.SIGKILL}, "another test ends a worker that hangs"
    assert not (attacked.folder / "executed").exists(), (attacked.folder / "executed").read_text()


def test_a_pattern_that_backtracks_is_searched_in_linear_time(attacked):
    """With Python's re, this pattern takes 2^60 steps for this identifier."""
    client = attacked.client("ann")
    subjects = f">{'a' * 60}!\nMKVLAAGIVGLLLAQWERTY\n>aab\nMKVLAAGIVGLLLAQWERTY\n"
    attack = client.submit(PROTEIN, subjects=subjects, options={"id_pattern": "(a+)+$b|(a|a)*c|^(a|aa)+b$"})
    bob_is_answered(attacked, top=12)
    done = client.wait(attack["id"])
    assert (done["state"], done["queries"]["done"]) == ("done", 1)
    lines = client.report(attack["id"], "blast6").decode().splitlines()
    assert [line.split("\t")[1] for line in lines] == ["aab"]


def test_fasta_with_carriage_returns_alone_is_read_in_linear_time(attacked):
    """A quadratic reader would take many minutes."""
    body = {"queries": ">a\r" + "M\r" * 2_000_000, "database": "few.db"}
    packed = gzip.compress(json.dumps(body).encode(), 1)
    assert sent(attacked, packed, Content_Encoding="gzip")[::2] == (413, "query_too_long")
    bob_is_answered(attacked, top=13)
    assert attacked.request("/readyz").status == 200


def test_no_more_is_read_than_a_search_may_have(attacked):
    """A body of which the first records are too many is not read to its end, where it is irregular."""
    many = ">a\nM\n" * 400_000 + ">b\n1"
    status, _, code = sent(attacked, {"queries": many, "database": "few.db"})
    assert (status, code) == (413, "too_many_queries")


def test_json_of_many_values_is_refused_before_it_is_parsed(attacked):
    options = {f"option{number}": 0 for number in range(20_000)}
    assert sent(attacked, {"queries": PROTEIN, "database": "few.db", "options": options})[::2] == (413, "too_large")
    assert sent(attacked, b'{"queries": [' + b"0," * 50_000 + b"0]}")[::2] == (413, "too_large")
    assert sent(attacked, b'"' + b'\\"' * 50_000)[0] == 422
    bob_is_answered(attacked, top=14)


def test_bytes_in_memory_are_limited_by_owner_and_in_all(attacked):
    """Two requests that never end hold bytes; others are told when to try again, and small ones are answered."""
    large = gzip.compress(json.dumps({"queries": ">a\n" + "M" * 3_000_000, "database": "few.db"}).encode())
    address = urlsplit(attacked.url).netloc
    with contextlib.ExitStack() as stack:

        def unfinished(owner):
            connection = stack.enter_context(socket.create_connection(address.split(":")))
            head = f"POST /api/v1/searches HTTP/1.1\r\nHost: {address}\r\n"
            head += f"Authorization: Bearer {attacked.tokens[owner]}\r\nContent-Length: 9000000\r\n"
            connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + b" " * 2_000_000)
            return connection

        for owner in ("ann", "bob"):
            held = [unfinished(owner)]

            def is_refused(owner=owner, held=held, refused=(429, "too_many_bytes")):
                if select.select(held, [], [], 0)[0]:  # it was refused, because a large one was read at that moment
                    held[0] = unfinished(owner)
                status, headers, code = sent(attacked, large, owner, Content_Encoding="gzip")
                assert code in (refused[1], "query_too_long", "server_busy")
                assert status == 413 or int(headers["retry-after"]) > 0
                return (status, code) == refused

            wait_until(is_refused, "the bytes of an unfinished request count")
        bob_is_answered(attacked, top=15)
    wait_until(lambda: sent(attacked, large, Content_Encoding="gzip")[0] == 413, "a closed connection counts no more")


def test_a_worker_that_hangs_is_ended_and_its_queries_are_searched(attacked):
    """A stopped process is like one that hangs in native code: it neither works nor heeds a signal that it handles."""
    wait_until(
        lambda: attacked.request("/readyz").status == 200, "a worker that starts may take long, and is not ended"
    )
    (pid,) = worker_pids(attacked)
    os.kill(pid, signal.SIGSTOP)
    bob_is_answered(attacked, top=16)
    assert [event["process"] for event in attacked.events("worker hangs")] == [pid]
    wait_until(lambda: attacked.request("/readyz").status == 200, "the next worker is ready")
    metrics = attacked.request("/metrics", owner="ann").text
    assert "swsearch_worker_restarts_total 1.0" in metrics


# --- the parts ---


@pytest.mark.thorough
def test_a_budget_counts_the_bytes_of_others():
    budget = Budget(ServerLimits(owner_bytes_in_flight=100, bytes_in_flight=150))
    with contextlib.ExitStack() as others:
        second, other, third = (others.enter_context(budget.claim(owner)) for owner in ("ann", "bob", "eve"))
        with budget.claim("ann") as first:
            first(SMALL_BYTES + 90)
            first(30)  # its own bytes are bounded by other limits
            second(SMALL_BYTES)
            with pytest.raises(Refused, match="up to 100 bytes together"):
                second(1)
            other(SMALL_BYTES + 30)
            with pytest.raises(Refused, match="as many large requests as it may"):
                third(SMALL_BYTES + 1)
        second(1)
        third(1)


def request_of(owner, gone):
    """A request whose client goes when the event is set."""

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    return SimpleNamespace(state=SimpleNamespace(owner=owner), receive=receive)


def test_one_text_of_an_owner_is_read_at_a_time_and_given_up_with_its_client():
    """By events alone: what another owner sent is read while the first text is, and the second of ann is not."""
    may_end, ended = threading.Event(), threading.Event()
    order = []

    def endless():
        order.append("first")
        while not may_end.wait(0.001):
            try:
                check_wanted()
            except InputError:
                ended.set()
                raise
        raise AssertionError("the client has gone")

    async def attack():
        readers, gone, never = Readers(), asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(readers.read(request_of("ann", gone), endless))
        second = asyncio.create_task(readers.read(request_of("ann", never), order.append, "second"))
        while not order:
            await asyncio.sleep(0.001)
        assert await readers.read(request_of("bob", never), lambda: list(order)) == ["first"]
        assert not second.done()
        gone.set()
        with pytest.raises(InputError, match="ended early"):
            await first
        await second
        assert ended.is_set()
        readers.close()

    contextvars.copy_context().run(asyncio.run, attack())
    assert order == ["first", "second"]


@pytest.mark.thorough
def test_a_process_ends_while_a_text_is_read():
    """The text is one whose reading never ends, and never asks whether it is wanted."""
    program = """
import asyncio, threading
from types import SimpleNamespace
from swsearch.service.bodies import Readers

async def main():
    began, readers = threading.Event(), Readers()
    def endless():
        began.set()
        while True:
            pass
    request = SimpleNamespace(state=SimpleNamespace(owner="ann"), receive=asyncio.Event().wait)
    reading = asyncio.create_task(readers.read(request, endless))
    while not began.is_set():
        await asyncio.sleep(0.001)
    reading.cancel()
    readers.close()

asyncio.run(main())
print("ended")
"""
    command = [sys.executable, "-P", "-c", program]
    assert (
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_SECONDS).stdout == "ended\n"
    )


def test_a_worker_that_says_nothing_is_killed_and_started_again():
    """The worker is ready and hangs; one that says that it is alive is left alone."""
    said, heard, ended, deaths = "import time; print('ready\\nchanged a b', flush=True); time.sleep(1000)", [], [], []
    alive = "import time; print('ready\\nended c')\nwhile True: print('alive', flush=True); time.sleep(0.01)"

    def watched(name, program, silence):
        command = [sys.executable, "-c", program]
        return ServerWorker(
            command, lambda keys: heard.append((name, keys)), ended.append, lambda: deaths.append(name), silence
        )

    async def watch():
        hangs, works = watched("hangs", said, 0.3), watched("works", alive, 60)
        for worker in (hangs, works):
            worker.start()
        while heard.count(("hangs", ["a", "b"])) < 3 or not ended:
            await asyncio.sleep(0.01)
        assert works.is_ready
        await asyncio.gather(hangs.stop(0), works.stop(0))

    asyncio.run(watch())
    assert deaths[0] == "hangs"
    assert "works" not in deaths
    assert ended == [["c"]]
    assert ("works", []) not in heard, "a sign of life is no change"


def test_a_worker_that_hangs_before_it_is_ready_is_killed_and_started_again():
    """Such as one whose GPU driver does not answer; its silence counts from the start of the process."""
    deaths: list[float] = []

    async def watch():
        command = [sys.executable, "-c", "import time; time.sleep(1000)"]
        worker = ServerWorker(command, id, id, lambda: deaths.append(time.monotonic()), 0.3)
        began = time.monotonic()
        worker.start()
        while len(deaths) < 2:
            await asyncio.sleep(0.01)
        assert not worker.is_ready
        assert deaths[1] - deaths[0] >= 0.3, "the second process has its own time"
        assert deaths[0] - began >= 0.3
        await worker.stop(0)

    asyncio.run(asyncio.wait_for(watch(), LIMIT_SECONDS))


def test_a_worker_without_progress_is_not_ready(databases, tmp_path, monkeypatch):
    """Also if it is the server's own, which said that it was ready."""
    monkeypatch.setattr(ServerWorker, "is_ready", True)
    for commands in ((), (("worker",),)):
        store = str(tmp_path / f"hits{len(commands)}.sqlite")
        app = create_app(Settings({"few.db": databases / "few.db"}, store, worker_commands=commands))
        (readyz,) = [route.endpoint for route in app.routes if getattr(route, "path", "") == "/readyz"]
        assert readyz().status_code == 503
        with Store(store) as work:
            work.queue.enter("worker", "cpu")
            assert readyz().status_code == 200
            work.queue.heartbeat("worker", 1e9, timedelta(seconds=60), silence=timedelta(seconds=31))
            assert b"no_worker" in readyz().body
            work.queue.heartbeat("worker", 1e9, timedelta(seconds=60))
            assert readyz().status_code == 200
        app.state.service.close()

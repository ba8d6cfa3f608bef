"""A server with two web processes: what one of them does, the other knows. Source: docs/design/service.md.

A process that is stopped for a moment (SIGSTOP) accepts no connection, so a test can choose who answers it.
"""

import http.client
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from swsearch.store.tokens import TokenStore
from tests.service.servers import RunningServer, held_answer, web_pids, worker_pids

pytestmark = pytest.mark.thorough

PATIENCE = 120


class Several(RunningServer):
    """A server with two web processes and a token of ann."""

    token: str
    connections: list[http.client.HTTPConnection]

    def connected(self, pid, source="127.0.0.1"):
        """A connection to the web process with this id."""
        others = [each for each in web_pids(self) if each != pid]
        for each in others:
            os.kill(each, signal.SIGSTOP)
        try:
            connection = http.client.HTTPConnection(
                urlsplit(self.url).netloc, timeout=PATIENCE, source_address=(source, 0)
            )
            self.connections.append(connection)
            assert answer(connection, "/healthz")[0] == 200
        finally:
            for each in others:
                os.kill(each, signal.SIGCONT)
        return connection

    def both(self, source="127.0.0.1"):
        """A connection to each of the two."""
        return [self.connected(pid, source) for pid in web_pids(self)]


def answer(connection, path, body=None, method=None, **headers):
    """Status and text of an answer."""
    names = {name.replace("_", "-"): value for name, value in headers.items()} | {"Content-Type": "application/json"}
    data = None if body is None else json.dumps(body)
    connection.request(method or ("GET" if body is None else "POST"), path, data, names)
    found = connection.getresponse()
    return found.status, found.read().decode()


def wait_until(is_true, what):
    ends = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < ends, what
        time.sleep(0.02)


@pytest.fixture(scope="module")
def several(tmp_path_factory, databases):
    folder = tmp_path_factory.mktemp("several")
    with TokenStore(str(folder / "hits.sqlite"), create=True) as store:
        token = store.add_token("ann")[1]
    running = Several(folder, [databases / "few.db"], "--web-processes", "2", "--limit", "failures_per_minute=5")
    running.token = token
    running.connections = []
    yield running
    children = web_pids(running) + worker_pids(running)
    assert running.stop() == 0
    assert len(children) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    assert running.events("text") == [], "something else than JSON was logged"


@pytest.fixture
def bearer(several):
    yield {"Authorization": f"Bearer {several.token}"}
    while several.connections:
        several.connections.pop().close()


def test_both_answer_with_one_state(several, bearer, queries):
    first, second = several.both()
    body = {"queries": queries, "database": "few.db", "options": {"top": 4}}
    status, text = answer(first, "/api/v1/searches?wait=50", body, Idempotency_Key="same", **bearer)
    found = json.loads(text)
    assert (status, found["state"]) == (201, "done")
    status, text = answer(second, "/api/v1/searches?wait=50", body, Idempotency_Key="same", **bearer)
    assert (status, json.loads(text)) == (200, found)
    pages = [answer(each, f"/api/v1/searches/{found['id']}/queries/3/hits", **bearer) for each in (first, second)]
    assert pages[0] == pages[1]
    assert len(json.loads(pages[0][1])["hits"]) == 4
    # An identical search has its results at once.
    status, text = answer(second, "/api/v1/searches", body, **bearer)
    again = json.loads(text)
    assert (status, again["state"], again["run"]) == (201, "done", found["run"])
    assert [answer(each, "/readyz")[0] for each in (first, second)] == [200, 200]


def test_a_change_is_told_to_those_who_wait_at_the_other(several, bearer, queries):
    """A search that is cancelled by one ends the stream of the other, and a worker wakes for both."""
    first, second = several.both()
    (worker,) = worker_pids(several)
    os.kill(worker, signal.SIGSTOP)
    try:
        body = {"queries": queries, "database": "few.db", "options": {"top": 5}}
        key = json.loads(answer(first, "/api/v1/searches", body, **bearer)[1])["id"]
        second.request("GET", f"/api/v1/searches/{key}/events", headers=bearer)
        stream = second.getresponse()
        several.connections.append(stream)
        assert b'"queued"' in read_event(stream)
        states = []
        waiting = threading.Thread(
            target=lambda: states.append(answer(several.both()[1], f"/api/v1/searches/{key}?wait=50", **bearer)[1])
        )
        waiting.start()
        assert answer(first, f"/api/v1/searches/{key}/cancel", method="POST", **bearer)[0] == 200
        assert b'"cancelled"' in read_event(stream)
        waiting.join()
        assert '"cancelled"' in states[0]
    finally:
        os.kill(worker, signal.SIGCONT)


def read_event(stream):
    """The data of the next event."""
    while not (line := stream.readline()).startswith(b"data: "):
        assert line
    return line


def test_limits_are_those_of_one_server(several, bearer):
    """Invalid tokens are counted together, and a token that one process knew works at the other."""
    guesser = "127.0.0.9"
    first, second = several.both(guesser)
    assert answer(first, "/api/v1/databases", **bearer)[0] == 200
    statuses = [answer(each, "/api/v1/databases", X_API_Key="sws_guess")[0] for each in (first, second) * 4]
    assert statuses == [401] * 5 + [429] * 3
    assert answer(second, "/api/v1/databases", **bearer)[0] == 200
    assert answer(several.connected(web_pids(several)[1]), "/api/v1/databases", X_API_Key="sws_guess")[0] == 401


def counted(text, name):
    """The sum of a metric's samples."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


def test_metrics_are_sums_and_survive_a_process(several, bearer):
    first, second = several.both()
    before = counted(answer(first, "/metrics", **bearer)[1], "swsearch_requests_total")
    for each in (first, second):
        for _ in range(3):
            answer(each, "/api/v1/usage", **bearer)
    # Each answer is counted after it was sent.
    wait_until(
        lambda: counted(answer(second, "/metrics", **bearer)[1], "swsearch_requests_total") >= before + 6, "metrics"
    )
    text = answer(first, "/metrics", **bearer)[1]
    assert counted(text, 'swsearch_requests_total{method="GET",route="/api/v1/usage",status="200"}') >= 6
    assert text.count("\nswsearch_store_up 1.0") == 1
    n_requests = counted(text, "swsearch_requests_total")
    victim, other = web_pids(several)
    os.kill(victim, signal.SIGKILL)
    with pytest.raises((http.client.HTTPException, OSError)):
        answer(first, "/healthz")
    assert answer(second, "/healthz")[0] == 200
    wait_until(lambda: len(web_pids(several)) == 2 and several.events("web process died"), "a new web process")
    assert other in web_pids(several)
    assert victim not in web_pids(several)
    fresh = next(pid for pid in web_pids(several) if pid != other)
    text = answer(several.connected(fresh), "/metrics", **bearer)[1]
    assert counted(text, "swsearch_requests_total") >= n_requests
    assert counted(text, "swsearch_web_restarts_total") == 1
    # The new one knows that there is a worker.
    wait_until(lambda: answer(several.connected(fresh), "/readyz")[0] == 200, "ready")


def test_a_worker_that_died_is_known_to_all(several, bearer):
    first, second = several.both()
    (worker,) = worker_pids(several)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: worker not in worker_pids(several) and worker_pids(several), "a new worker")
    for each in (first, second):
        wait_until(lambda each=each: answer(each, "/readyz")[0] == 200, "ready")
        assert counted(answer(each, "/metrics", **bearer)[1], "swsearch_worker_restarts_total") == 1


def test_nothing_outlives_a_killed_supervisor(tmp_path, databases, queries, monkeypatch):
    """What waits for an answer gets one."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    running = RunningServer(tmp_path, [databases / "few.db"], "--web-processes", "2", "--no-worker")
    children = web_pids(running)
    assert len(children) == 2
    assert [path.name.startswith("swsearch-metrics-") for path in scratch.iterdir()] == [True]
    assert held_answer(running, queries, running.process.kill) == (201, "queued")
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), "a child did not end")
    running._end()
    assert list(scratch.iterdir()) == []


def test_a_server_whose_web_processes_cannot_start_says_so(tmp_path, databases, monkeypatch, capfd):
    from swsearch.cli.app import main

    monkeypatch.setattr("swsearch.service.supervisor._COMMAND", (sys.executable, "-c", "raise SystemExit(3)"))
    arguments = ["--web-processes", "2", "--no-worker", "--port", "0", "--store", str(tmp_path / "hits.sqlite")]
    environment = dict(os.environ)
    assert main(["serve", str(databases / "few.db"), *arguments]) == 1
    printed = capfd.readouterr().err
    assert '"event": "web process died"' in printed
    assert printed.splitlines()[-1].endswith("a web process ended while it started; the log says why")
    assert dict(os.environ) == environment  # the store of this server is not that of later commands

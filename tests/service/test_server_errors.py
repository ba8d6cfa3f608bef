"""What a server says and does when something of it fails: an error of its own, a store that is away, its own death.

Most applications run in this process, and answer one request each.
"""

import asyncio
import json
import logging
import os
import subprocess
import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from swsearch.errors import InputError, StoreError
from swsearch.report.formats import new_report
from swsearch.search.options import SearchOptions
from swsearch.service.asgi import create_app
from swsearch.service.logs import LogLines
from swsearch.service.reports import Download
from swsearch.service.settings import Settings
from tests.patience import wait_until
from tests.processes import start
from tests.service.servers import RunningServer, worker_pids


@pytest.fixture
def app(tmp_path):
    """An application without databases, with a store of its own."""
    made = create_app(Settings(databases={}, store=str(tmp_path / "hits.sqlite")))
    yield made
    made.state.service.close()


def answer_of(app, path, body=b"", method="GET", **headers):
    """Status and JSON of an application's answer in this process, and what it raised for its server."""
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "scheme": "http",
        "method": method, "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        "headers": [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()],
    }  # fmt: skip
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(dict(message))

    raised = None
    try:
        asyncio.run(app(scope, receive, send))
    except Exception as error:
        raised = error
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:])), raised


def lines_of(capfd):
    return [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]


def test_a_server_runs_without_stdout(tmp_path):
    """Its log on stderr has the address; expected: the exit code of SIGTERM is 0, as with stdout."""
    command = ["-m", "swsearch", "serve", "--databases", ".", "--port", "0", "--no-worker", "--store", "hits.sqlite"]
    closed = {"stdout": None, "preexec_fn": lambda: os.close(1)}
    with start(command, cwd=tmp_path, stderr=subprocess.PIPE, **closed) as server:
        url = next(json.loads(line)["url"] for line in server.stderr if "server started" in line)
        assert urlopen(f"{url}/healthz").status == 200
        server.terminate()
        server.communicate()
    assert server.returncode == 0


def test_an_error_of_the_server_is_in_its_log_once_with_the_traceback(app, capfd):
    """The framework raises the error again, and uvicorn logs it, as this test does in its place."""

    def at_fault():
        raise RuntimeError("this test failed on purpose")

    app.add_api_route("/api/v1/broken", at_fault)
    status, body, raised = answer_of(app, "/api/v1/broken", **{"x-request-id": "mine"})
    assert (status, body["error"]["code"]) == (500, "internal")
    assert body["error"]["message"].endswith("its log has it under mine")
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 1, "Exception in ASGI application", (), None)
    record.exc_info = (type(raised), raised, raised.__traceback__)
    LogLines().emit(record)
    errors = [line for line in lines_of(capfd) if line["level"] == "error"]
    assert [(line["request_id"], line["message"]) for line in errors] == [
        ("mine", "RuntimeError: this test failed on purpose")
    ]
    assert "in at_fault" in errors[0]["traceback"]
    record.exc_info = (ValueError, ValueError("another"), None)
    LogLines().emit(record)
    assert "ValueError: another" in lines_of(capfd)[0]["traceback"]


def test_a_store_that_cannot_be_used_is_said_once_however_many_ask(app, capfd, monkeypatch):
    def fail(*_):
        raise StoreError("hits.sqlite: the disk is full; this test says so to many")

    monkeypatch.setattr(app.state.service.store.searches, "of_owner", fail)
    answers = [answer_of(app, "/api/v1/searches") for _ in range(20)]
    assert {(status, body["error"]["code"]) for status, body, _ in answers} == {(503, "store_unavailable")}
    assert [line["message"] for line in lines_of(capfd) if line["event"] == "error"] == [
        "hits.sqlite: the disk is full; this test says so to many"
    ]


def test_an_origin_that_is_no_address_is_refused(app):
    status, body, raised = answer_of(app, "/api/v1/searches", b"{}", "POST", origin="http://[")
    assert (status, body["error"]["code"], raised) == (403, "cross_site", None)


def test_a_store_that_was_moved_away_is_not_ready(app, tmp_path):
    assert answer_of(app, "/readyz")[1]["error"]["code"] == "no_worker"
    (tmp_path / "hits.sqlite").rename(tmp_path / "elsewhere.sqlite")
    assert answer_of(app, "/readyz")[1]["error"]["code"] == "store_unavailable"


def test_a_report_that_fails_before_its_first_byte_is_no_success(server, queries, monkeypatch):
    client = server.client()
    key = client.wait(client.submit(queries, "few.db", {"top": 7})["id"])["id"]
    other = create_app(Settings(databases={}, store=server.store))

    def fail(*_):
        yield from ()
        raise StoreError("the connection is closed")

    try:
        monkeypatch.setattr(other.state.service.downloads.results, "queries", fail)
        status, body, _ = answer_of(other, f"/api/v1/searches/{key}/report")
        assert (status, body["error"]["code"]) == (503, "store_unavailable")
    finally:
        other.state.service.close()


def test_a_report_whose_reader_goes_ends_at_once(server, queries):
    """The connection that reads the results is given back by the thread of the report, whoever still has the report."""
    client = server.client()
    key = client.wait(client.submit(queries, "few.db", {"top": 7})["id"])["id"]
    with create_app(Settings(databases={}, store=server.store)).state.service as service:
        _, run_id = service.finished_run(key, "local")
        is_open = threading.Event()

        def endless(store):
            is_open.set()
            try:
                while True:
                    yield from store.results.queries(run_id)
            finally:
                is_open.clear()

        async def read_some():
            download = Download(service, run_id, new_report("json"), endless)
            answer = await download.answer("text/plain")
            assert await anext(answer.body_iterator)
            await answer.body_iterator.aclose()
            return download

        kept = asyncio.run(read_some())
        wait_until(lambda: not is_open.is_set(), "the report ends")
        assert kept is not None


def test_lists_of_words_are_in_the_description(app):
    """Each word of a list is accepted, and another is not."""
    schema = app.openapi()
    options = schema["components"]["schemas"]["SearchRequest"]["properties"]["options"]["properties"]
    lists = {name: described for name, described in options.items() if "enum" in described}
    assert {"ties", "strand", "translate", "mask_mode", "composition", "matrix"} <= lists.keys()
    for name, described in lists.items():
        others = {"mask": "lower"} if name == "mask_mode" else {}
        for word in described["enum"]:
            if word is not None:
                assert SearchOptions(**others, **{name: word})
        if name != "matrix":  # on a command line it may be a file
            with pytest.raises(InputError):
                SearchOptions(**others, **{name: "no such word"})
    read = schema["paths"]["/api/v1/searches/{key}/queries/{number}/hits"]["get"]["parameters"]
    words = {one["name"]: one["schema"].get("enum") for one in read}
    assert words["order"] == ["asc", "desc"]
    assert "query_coverage" in words["sort"]


@pytest.mark.thorough
def test_no_worker_outlives_a_killed_server(tmp_path, databases):
    running = RunningServer(tmp_path, [databases / "few.db"])
    wait_until(lambda: running.request("/readyz").status == 200, "the worker is ready")
    (worker,) = worker_pids(running)
    assert Path(f"/proc/{worker}").exists()
    running.kill()
    wait_until(lambda: not Path(f"/proc/{worker}").exists(), "the worker sees the end of its pipe")

"""What a server says and does when something of it fails: an error of its own, a store that is away, a child that dies.

The applications run in this process, and answer one request each.
"""

import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from swsearch.errors import InputError, StoreError
from swsearch.search.options import SearchOptions
from swsearch.service import process
from swsearch.service import server as server_module
from swsearch.service.app import create_app
from swsearch.service.logs import LogLines
from swsearch.service.server import bound_socket
from swsearch.service.settings import Settings
from swsearch.service.shared import SharedMemory
from swsearch.service.start import Start
from swsearch.service.supervisor import supervise
from tests.service.servers import answer_of


@pytest.fixture
def app(tmp_path):
    """An application without databases, with a store of its own."""
    made = create_app(Settings(databases={}, store=str(tmp_path / "hits.sqlite")))
    yield made
    made.state.service.close()


def lines_of(capfd):
    return [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]


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

    monkeypatch.setattr(app.state.service.store, "searches_of", fail)
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
        raise StoreError("the connection is closed")

    try:
        monkeypatch.setattr(other.state.service.downloads, "queries", fail)
        status, body, _ = answer_of(other, f"/api/v1/searches/{key}/report")
        assert (status, body["error"]["code"]) == (503, "store_unavailable")
    finally:
        other.state.service.close()


def test_lists_of_words_are_in_the_description(app):
    """Each word of a list is accepted, and another is not."""
    schema = app.openapi()
    options = schema["components"]["schemas"]["SearchRequest"]["properties"]["options"]["properties"]
    assert {"ties", "strand", "translate", "mask_mode", "composition", "matrix"} <= options.keys()
    for name, described in options.items():
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


# --- start ---


def test_a_web_process_that_is_killed_while_it_starts_is_started_again(tmp_path):
    """The first of two kills itself, as the kernel would when memory is short; the server comes up nevertheless."""
    once = tmp_path / "once"
    program = f"import os; os.mkdir({str(once)!r}); os.kill(os.getpid(), 9)"
    command = f"try: exec({program!r})\nexcept FileExistsError: from swsearch.service.process import main; main()"
    settings = Settings(databases={}, store=str(tmp_path / "hits.sqlite"), web_processes=2)
    create_app(settings).state.service.close()  # it makes the store
    announced = []

    def announce():
        announced.append(True)
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch, bound_socket("127.0.0.1", 0) as listening:
        patch.setattr("swsearch.service.supervisor._COMMAND", (sys.executable, "-c", command))
        supervise(settings, listening, announce)
    assert announced == [True]
    assert once.is_dir()


def test_a_store_that_is_away_at_the_start_of_a_web_process_is_one_line(tmp_path, monkeypatch, capfd):
    memory = SharedMemory()
    settings = Settings(databases={}, store=str(tmp_path / "missing" / "hits.sqlite"))
    start = Start(settings, 0, 0, memory.descriptor, Path(tmp_path), os.getpid())
    monkeypatch.setattr(process, "lines_of", lambda descriptor: iter([[start.line().decode().strip()]]))
    with pytest.raises(SystemExit) as ended:
        process.main()
    assert ended.value.code == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "web process cannot start"
    assert "the folder" in json.loads(line)["message"]


def test_a_port_whose_server_is_ending_is_waited_for(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr(server_module.time, "sleep", lambda seconds: other.close())
        with bound_socket("127.0.0.1", port) as listening:
            assert listening.getsockname()[1] == port

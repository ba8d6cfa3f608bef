"""Databases that come to a running server and leave it, with `--databases FOLDER`. Source: `swsearch query`."""

import json
import os
import re
import shlex
import shutil
import signal

import pytest

from swsearch.cli.app import main
from swsearch.errors import DatabaseError, Refused
from swsearch.service.databases import Databases
from tests.patience import wait_until
from tests.service.servers import RunningServer, local_report, worker_pids


@pytest.fixture
def served(tmp_path):
    """A server of an empty folder, and the folder."""
    folder = tmp_path / "offered"
    folder.mkdir()
    with RunningServer(tmp_path, [], "--databases", str(folder)) as running:
        yield running, folder


def come(database, folder, name):
    """Copy a database into the folder in the worst order: the sequences come when it is offered already."""
    (folder / name).mkdir()
    shutil.copy(database / "catalogue.json", folder / name)
    shutil.copytree(database, folder / name, dirs_exist_ok=True)


def names(client):
    return [database["name"] for database in client.databases()]


def test_a_database_comes_and_leaves(served, databases, queries, tmp_path):
    server, folder = served
    client = server.client()
    search = {"queries": queries, "database": "new.db", "options": {"top": 3}}
    assert names(client) == []
    assert "This server offers no database yet." in server.request("/databases").text
    assert server.error("/api/v1/searches", search) == (
        404, "unknown_database", "there is no database 'new.db'; this server has none at the moment",
    )  # fmt: skip

    come(databases / "few.db", folder, "new.db")
    done = client.submit(queries, "new.db", {"top": 3}, wait=50)  # at once, whenever the server looked last
    done = client.wait(done["id"])
    assert done["state"] == "done"
    report = local_report(folder / "new.db", tmp_path, "--top", "3", "--format", "json")
    assert client.report(done["id"], "json") == report
    wait_until(lambda: names(client) == ["new.db"], "the database is not listed")
    assert "<bdi>new.db</bdi>" in server.request("/databases").text

    # What was accepted waits for its database, and begins anew with its new content.
    (worker,) = worker_pids(server)
    os.kill(worker, signal.SIGSTOP)
    waiting = client.submit(queries, "new.db", {"top": 2})["id"]
    os.rename(folder / "new.db", folder / ".new.db")
    os.kill(worker, signal.SIGCONT)
    assert server.error("/api/v1/searches", search)[:2] == (404, "unknown_database")
    wait_until(lambda: names(client) == [], "the database is still listed")
    assert client.report(done["id"], "json") == report
    for _ in range(20):  # more than there are slots for downloads
        status, _, message = server.error(f"/api/v1/searches/{done['id']}/report?format=fasta")
        assert (status, message.partition(";")[0]) == (
            400, "the database of this search has changed or is not offered any more",
        )  # fmt: skip
    wait_until(lambda: server.events("database gone"), "the worker keeps the database")
    found = client.search(waiting)
    reason = "the database new.db is not there at the moment; the search waits for it"
    assert (found["state"], found["reason"]) == ("queued", reason)
    (tmp_path / "more.fasta").write_text(">added\nMKVLAAGIVGLLLAQWERTYMKVLAAGIVGLLLAQWERTY\n")
    assert main(["db", "add", str(folder / ".new.db"), str(tmp_path / "more.fasta"), "--quiet"]) == 0
    os.rename(folder / ".new.db", folder / "new.db")
    found = client.wait(waiting)
    assert (found["state"], found["database"]["generation"]) == ("done", done["database"]["generation"] + 1)
    for name in ("json", "fasta"):
        local = local_report(folder / "new.db", tmp_path, "--top", "2", "--format", name)
        assert client.report(waiting, name) == local

    # A compaction changes the digest, but no sequence of a hit.
    assert main(["db", "compact", str(folder / "new.db"), "--quiet"]) == 0
    assert client.report(waiting, "fasta") == local

    page = server.request("/databases").text + json.dumps(client.databases()) + client.report(waiting).decode()
    assert not re.search(r"offered|\.new\.db", page.replace("is offered", "")), "a path in an answer"


def test_what_is_no_database_is_not_offered(tmp_path, databases):
    folder = tmp_path / "offered"
    come_to = databases / "few.db"
    shutil.copytree(come_to, folder / "good.db")
    shutil.copytree(come_to, folder / "given.db")
    shutil.copytree(come_to, folder / ".hidden.db")
    shutil.copytree(come_to, folder / "line\nbreak.db")
    (folder / "linked.db").symlink_to(come_to)
    (folder / "broken").symlink_to(tmp_path / "nowhere")
    (folder / "notes.txt").write_text("no database")
    (folder / "half.db").mkdir()
    (folder / "damaged.db").mkdir()
    (folder / "damaged.db" / "catalogue.json").write_text("{")
    offered = Databases({"given.db": databases / "proteins.db"}, folder)
    assert [one.name for one in offered.all()] == ["given.db", "good.db", "linked.db"]
    assert offered.current("given.db").catalogue.n_subjects == 1500
    for name in ("half.db", ".hidden.db", "notes.txt", "..", "../offered/good.db", "broken"):
        with pytest.raises(Refused, match="there is no database"):
            offered.current(name)
    with pytest.raises(DatabaseError) as raised:
        offered.current("damaged.db")
    assert str(tmp_path) not in offered.without_paths(str(raised.value))
    shutil.rmtree(folder)
    assert offered.without_paths(f"{folder}/x: no such file") == "the folder of the databases/x: no such file"
    assert "given.db" in [one.name for one in offered.all()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is nothing to search; give databases, or a folder of them with --databases"),
        (["--databases", "nowhere"], "--databases nowhere: there is no such folder"),
        (["--databases", "few.db"], "--databases few.db is a database, not a folder of databases"),
    ],
)
def test_a_folder_that_is_none_is_refused(databases, monkeypatch, capfd, arguments, message, tmp_path):
    monkeypatch.chdir(databases)
    for command in ("serve", "worker"):
        code = main([command, *arguments, "--store", str(tmp_path / "hits.sqlite")])
        assert code == (1 if arguments else 2)
        printed = capfd.readouterr().err
        assert message in printed
        assert printed.count("\n") == 1


def test_a_sequence_file_in_a_folder_that_takes_none_is_indexed_elsewhere(tmp_path, monkeypatch, capfd):
    """`os.access` answers as for a read-only disk; the working folder, then the home, can be written."""
    archive, home = tmp_path / "read only", tmp_path / "home"
    for folder in (archive, home):
        folder.mkdir()
    (archive / "p.fa").write_text(">a\nMKVLAAGIVG\n")
    monkeypatch.setenv("HOME", str(home))
    for here, closed, place in ((tmp_path, (), archive), (tmp_path, (archive,), tmp_path), (archive, (archive,), home)):
        monkeypatch.chdir(here)
        monkeypatch.setattr(os, "access", lambda path, _mode, closed=closed: path not in closed)
        assert main(["serve", str(archive / "p.fa"), "--store", str(tmp_path / "hits.sqlite")]) == 1
        line = shlex.join(["swsearch", "index", str(archive / "p.fa"), "-o", str(place / "p.fa.swdb")])
        assert capfd.readouterr().err.endswith(f"not a packed database; index it first: `{line}`\n")

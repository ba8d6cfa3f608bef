"""Workers of a service on other hosts: another working directory, databases at other paths, a store in PostgreSQL.

Expected value: the report of `swsearch query` with the server's database.
"""

import shutil
import subprocess
import sys

import pytest

from swsearch.cli.app import main
from tests.patience import wait_until
from tests.service.servers import RunningServer, local_report
from tests.store.conftest import postgres, postgres_url, shared_postgres_database

__all__ = ["postgres", "postgres_url", "shared_postgres_database"]  # fixtures


@pytest.fixture
def host(tmp_path):
    """A function that starts a worker in a folder of its own, which stands for a host."""
    started = []

    def start(name, database, store):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copytree(database, folder / "data" / "few.db")
        command = [sys.executable, "-m", "swsearch", "worker", "data/few.db", "--store", store]
        with open(folder / "log", "w") as log:
            worker = subprocess.Popen(
                [*command, "--engine", "cpu", "--threads", "1"], cwd=folder, stdin=subprocess.DEVNULL, stderr=log
            )
        started.append(worker)
        wait_until(lambda: "worker started" in (folder / "log").read_text(), "the start of a worker")
        return folder / "log"

    yield start
    for worker in started:
        worker.kill()
        worker.wait()


def test_the_digest_decides_which_worker_searches(tmp_path, postgres_url, databases, queries, host):
    """A worker whose database of this name has other content leaves the search to the one with a copy."""
    (tmp_path / "other.fasta").write_text(">other\nMKVLAAGIVGLLLAQWERTY\n")
    assert main(["index", str(tmp_path / "other.fasta"), "-o", str(tmp_path / "other.db"), "--quiet"]) == 0
    with RunningServer(tmp_path, [databases / "few.db"], "--no-worker", store=postgres_url) as server:
        client = server.client()
        search = client.submit(queries, "few.db", {"top": 3})["id"]
        other_log = host("wrong", tmp_path / "other.db", postgres_url)
        log = host("right", databases / "few.db", postgres_url)
        assert client.wait(search)["state"] == "done"
        local = local_report(databases / "few.db", tmp_path, "--top", "3", "--format", "json")
        assert client.report(search, "json") == local
        assert '"event": "batch"' in log.read_text()
        assert '"event": "batch"' not in other_log.read_text()

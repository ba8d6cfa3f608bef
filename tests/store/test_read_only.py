"""Databases and stores where nothing can be written. Expected values: the output of the same commands in a usual place.

The commands run in a process for which the modes of files are effective, also if the tests run as root.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.conftest import bound_by_modes

REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may write anywhere, and setpriv is not there"
)

COMMANDS = """
import sys
from swsearch.cli.app import main
place = sys.argv[1]
for command in (
    "runs list", "runs show latest", "report latest --format blast6", "runs export latest --out copied.sqlite",
):
    print(main([*command.split(), "--store", f"{place}/hits.sqlite"]))
print(main(["db", "info", f"{place}/queries.db"]))
print(main(["db", "verify", f"{place}/queries.db"]))
print(main(["query", f"{place}/queries.fasta", f"{place}/queries.db", "--format", "blast6", "--store", "none"]))
"""

KILLED = """
import os, signal, sys
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_query
store = Store(sys.argv[1], create=True)
store.results.add(store.runs.start(RUN), make_query(0))
os.kill(os.getpid(), signal.SIGKILL)
"""


def run(code, path, folder, *prefix):
    """Return what a program of Python prints in ``folder``, and its messages."""
    return subprocess.run(
        [*prefix, sys.executable, "-c", code, str(path)],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip


def seal(folder):
    """Take the rights to write away from a folder and all that is in it."""
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def unseal(folder):
    """Give them back, so that the folder can be deleted."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_databases_and_stores_that_cannot_be_written_are_used_as_ever(tmp_path):
    place, work = tmp_path / "place", tmp_path / "work"
    place.mkdir()
    work.mkdir()
    shutil.copy(REPOSITORY / "data" / "queries.fasta", place)
    made = run(
        "import sys; from swsearch.cli.app import main; main(['index', 'queries.fasta', '-o', 'queries.db']);"
        "main(['query', 'queries.fasta', 'queries.db', '--store', 'hits.sqlite', '--out', 'table'])",
        "", place,
    )  # fmt: skip
    assert (place / "table").exists(), made.stderr
    before = run(COMMANDS, place, work, *bound_by_modes())
    (work / "copied.sqlite").unlink()
    seal(place)
    try:
        found = run(COMMANDS, place, work, *bound_by_modes())
        there = sorted(path.name for path in place.iterdir())
    finally:
        unseal(place)
    assert found.stdout == before.stdout
    assert found.stdout.count("\n0\n") == 7, found.stderr
    assert there == ["hits.sqlite", "queries.db", "queries.fasta", "table"]


LIST = "import sys; from swsearch.cli.app import main; sys.exit(main(['report', 'latest', '--store', sys.argv[1]]))"


@pytest.mark.parametrize("without", [(), ("-shm",), ("-shm", "log")])
def test_the_log_of_a_killed_process_is_read_or_named(tmp_path, without):
    """With the index of its log, the store is read; without it, the message names the log; an empty log is none."""
    place = tmp_path / "place"
    place.mkdir()
    store = place / "hits.sqlite"
    assert run(KILLED, store, tmp_path).returncode == -signal.SIGKILL
    log = place / "hits.sqlite-wal"
    assert log.stat().st_size > 0
    if "log" in without:
        assert run(LIST, store, tmp_path).returncode == 0  # which moves the log into the store
        log.touch()
    for ending in without[:1]:
        (place / f"hits.sqlite{ending}").unlink(missing_ok=True)
    seal(place)
    try:
        found = run(LIST, store, tmp_path, *bound_by_modes())
    finally:
        unseal(place)
    if without == ("-shm",):
        assert found.returncode == 1
        assert f"the last writes are in the log {log}, which cannot be read here; copy both" in found.stderr
    else:
        assert found.returncode == 0, found.stderr
        assert "sp|P00001|NAME_ORGANISM" in found.stdout

"""Builds that are killed, stopped or run out of disk space: nothing that looks like a database is left.

The expected folder content and messages are written by hand.
"""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.errors import DatabaseError
from tests.processes import Process, paused
from tests.tiers import mostly_thorough

CHILD = """
from swsearch.database import builder
from swsearch.errors import DatabaseError

{moment}
try:
    builder.build_database(sys.argv[1], sys.argv[2])
except DatabaseError as error:
    sys.exit("refused: " + str(error))
"""


def start_build(fasta: Path, target: Path) -> Process:
    """Start a build in its own process, which waits before it writes the catalogue until it reads a line."""
    moment = "builder.write_generation = before(builder.write_generation)"
    return paused(CHILD.format(moment=moment), fasta, target)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_killed_build_leaves_no_database(
    tmp_path: Path, fasta: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """kill -9: expected values: no target; a leftover that is refused by name, and is gone after the next build."""
    target = tmp_path / "db"
    child = start_build(fasta, target)
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    (leftover,) = names(tmp_path) - {fasta.name}
    assert leftover.startswith(".db.building-")
    for path in (target, tmp_path / leftover):
        with pytest.raises(DatabaseError):
            open_database(path)
    build_database(fasta, target)
    assert names(tmp_path) == {fasta.name, "db"}
    assert problems_of(target) == []


@pytest.mark.parametrize("sent", mostly_thorough([signal.SIGTERM, signal.SIGINT], signal.SIGINT))
def test_a_stopped_build_removes_its_files(tmp_path: Path, fasta: Path, sent: signal.Signals) -> None:
    """Expected values: only the FASTA is left; the exit code is a shell's for SIGTERM and Python's for Ctrl-C."""
    child = start_build(fasta, tmp_path / "db")
    child.send_signal(sent)
    child.communicate()
    assert child.returncode == (143 if sent is signal.SIGTERM else -signal.SIGINT)
    assert names(tmp_path) == {fasta.name}


@pytest.mark.parametrize("sent", mostly_thorough([signal.SIGTERM, signal.SIGINT], signal.SIGINT))
def test_a_signal_while_the_replaced_database_is_removed_leaves_nothing_of_it(
    tmp_path: Path, fasta: Path, sent: signal.Signals
) -> None:
    """The child waits before it removes the first file; expected values: the new database, and nothing beside it."""
    (tmp_path / "old.fa").write_text(">old\nMKV\n")
    build_database(tmp_path / "old.fa", tmp_path / "db")
    replacing = CHILD.replace("sys.argv[2])", "sys.argv[2], overwrite=True)")
    moment = "import os; os.unlink = before(os.unlink)"
    with paused(replacing.format(moment=moment), fasta, tmp_path / "db") as child:
        child.send_signal(sent)
        child.communicate()
    assert child.returncode == (143 if sent is signal.SIGTERM else -signal.SIGINT)
    assert names(tmp_path) == {fasta.name, "old.fa", "db"}
    with open_database(tmp_path / "db") as database:
        assert database.n_subjects > 1


def test_a_build_under_way_is_left_alone(tmp_path: Path, fasta: Path, problems_of: Callable[[Path], list[str]]) -> None:
    """A second build of the same target succeeds; the first build's folder remains until that build ends and fails."""
    target = tmp_path / "db"
    child = start_build(fasta, target)
    (under_way,) = names(tmp_path) - {fasta.name}
    build_database(fasta, target)
    assert names(tmp_path) == {fasta.name, "db", under_way}
    _, errors = child.communicate("\n")
    assert child.returncode == 1
    assert "came into being during the build" in errors
    assert names(tmp_path) == {fasta.name, "db"}
    assert problems_of(target) == []


def test_a_file_that_may_not_grow_ends_the_build_in_one_line(tmp_path: Path, fasta: Path) -> None:
    """A limit on file sizes gives EFBIG, which is handled like a full disk; it needs no right to mount."""
    script = (
        "import resource, signal, sys\n"
        "sys.dont_write_bytecode = True\n"  # else the interpreter keeps modules' bytecode that this limit cuts off
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n" + CHILD.format(moment="")
    )
    done = subprocess.run(
        [sys.executable, "-c", script, fasta, tmp_path / "db"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"refused: no room left on the disk of {tmp_path}")
    assert done.stderr.count("\n") == 1
    assert names(tmp_path) == {fasta.name}


def test_a_full_disk_ends_the_build_in_one_line(small_disk: Path, tmp_path: Path) -> None:
    """A real ENOSPC at growing sizes, so that each file fails once; expected value: an empty disk afterwards."""
    fasta = tmp_path / "big.fa"
    for n_subjects in range(250, 800, 25):
        fasta.write_text("".join(f">s{n}\n{'MKVLW' * 20}\n" for n in range(n_subjects)))
        with pytest.raises(DatabaseError, match=f"^no room left on the disk of {small_disk}"):
            build_database(fasta, small_disk / "db")
        assert list(small_disk.iterdir()) == []


def test_a_read_only_disk_is_named(small_disk: Path, fasta: Path) -> None:
    """Expected words: the system's message for EROFS."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(DatabaseError, match="Read-only file system"):
        build_database(fasta, small_disk / "db")

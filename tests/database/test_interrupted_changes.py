"""Changes that are killed, stopped, concurrent or out of disk space: the database is the old one or the new one.

The expected states come from the database before the change, and from the same change without disturbance.
"""

import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from swsearch.database.builder import build_database
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
from swsearch.database.opening import open_database
from swsearch.errors import DatabaseError
from tests.database.conftest import exported, fasta_text, leftovers, some_records
from tests.patience import LIMIT_SECONDS
from tests.processes import Process, paused, start

CHILD = """
import os
from swsearch.database import changes
from swsearch.errors import SwSearchError

def before_the_rename():
    replace = os.replace
    os.replace = lambda *names: (before(replace) if names[1].name == "catalogue.json" else replace)(*names)

def while_copying():
    chunks = changes.remaining_chunks
    changes.remaining_chunks = lambda *arguments: map(before(lambda chunk: chunk), chunks(*arguments))

{moment}
try:
    if sys.argv[2] == "add":
        changes.add_to_database(sys.argv[1], sys.argv[3])
    else:
        changes.compact_database(sys.argv[1])
except SwSearchError as error:
    sys.exit("refused: " + str(error))
"""
ADD, COMPACT = "before_the_rename()", "while_copying()"
"""Moments of an addition and of a compaction; the campaign kills and stops changes at all of their system calls."""


@pytest.fixture
def more(tmp_path: Path) -> Path:
    """A FASTA file to add; its identifiers begin with N."""
    path = tmp_path / "more.fa"
    path.write_bytes(fasta_text([(f"N{header}", letters) for header, letters in some_records(60, 8)]))
    return path


@pytest.fixture
def changed_path(tmp_path: Path, database_path: Path, more: Path) -> Path:
    """A database of two segments, with a subject removed from each."""
    add_to_database(database_path, more)
    remove_from_database(database_path, ["P3", "NP5"])
    return database_path


def start_change(database: Path, moment: str, more: Path) -> Process:
    """Start a change in its own process, which waits at its moment until it reads a line."""
    return paused(CHILD.format(moment=moment), database, *(["add", more] if moment == ADD else ["compact"]))


def state(path: Path) -> tuple[int, str, bytes]:
    """Return generation, digest and content."""
    with open_database(path) as database:
        return database.catalogue.generation, database.digest, exported(database)


def test_a_killed_change_leaves_the_old_database(
    changed_path: Path, more: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """kill -9; expected values: the state before; the next writer cleans up."""
    before = state(changed_path)
    child = start_change(changed_path, ADD, more)
    child.kill()
    child.communicate()
    assert state(changed_path) == before
    assert problems_of(changed_path) == []
    assert leftovers(changed_path)
    remove_from_database(changed_path, ["P0"])
    assert leftovers(changed_path) == set()
    assert problems_of(changed_path) == []


def test_a_stopped_change_cleans_up_at_once(changed_path: Path, more: Path) -> None:
    """Expected values: the old state, and no other file; the exit code is a shell's for SIGTERM."""
    before = state(changed_path)
    child = start_change(changed_path, COMPACT, more)
    child.send_signal(signal.SIGTERM)
    child.communicate()
    assert child.returncode == 143
    assert state(changed_path) == before
    assert leftovers(changed_path) == set()


def test_the_second_writer_is_told_who_the_first_is(changed_path: Path, more: Path, fasta: Path) -> None:
    """Expected words: the first writer's process id; expected value: only the first one's change, then a free lock."""
    child = start_change(changed_path, ADD, more)
    before = state(changed_path)
    for change in (
        lambda: add_to_database(changed_path, fasta),
        lambda: remove_from_database(changed_path, ["P1"]),
        lambda: compact_database(changed_path),
    ):
        with pytest.raises(
            DatabaseError, match=rf"is being changed by process {child.pid} on .*; run the command again"
        ):
            change()
    assert state(changed_path) == before
    child.communicate("\n")
    assert child.returncode == 0
    assert state(changed_path)[0] == before[0] + 1
    remove_from_database(changed_path, ["P1"])
    assert state(changed_path)[0] == before[0] + 2


def unwrapped(fasta: Path) -> bytes:
    """Return the FASTA with each sequence on one line, as in an export without line breaks."""
    records = fasta.read_bytes().split(b">")[1:]
    heads_and_tails = [record.partition(b"\n") for record in records]
    return b"".join(b">%s\n%s\n" % (head, tail.replace(b"\n", b"")) for head, _, tail in heads_and_tails)


def identifiers_of(fasta: Path) -> list[str]:
    """Return the first words of the headers."""
    return [line[1:].split()[0] for line in fasta.read_text().splitlines() if line.startswith(">")]


LOOP = """
import sys
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
database, more, identifiers = sys.argv[1], sys.argv[2], sys.argv[3:]
changes = [
    lambda: add_to_database(database, more),
    lambda: remove_from_database(database, identifiers),
    lambda: compact_database(database),
]
while True:
    for change in changes:
        print("here", flush=True)
        change()
"""


def start_loop(database: Path, more: Path, n_changes: int = 0) -> Process:
    """Start an endless loop of additions, removals and compactions in a process; return after some changes."""
    child = start(["-c", LOOP, database, more, *identifiers_of(more)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    for _ in range(n_changes + 1):
        assert child.stdout.readline() == "here\n"
    return child


def stop(child: Process) -> None:
    child.kill()
    child.communicate()


def test_killed_at_any_moment(
    database_path: Path, fasta: Path, more: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """kill -9 at random moments, one after another on the same database; expected values: one FASTA, or both."""
    source = random.Random(4)
    old = exported(open_database(database_path))
    allowed = {old, old + unwrapped(more)}
    generations = [1]
    for _ in range(12):
        child = start_loop(database_path, more, n_changes=source.randrange(4))
        time.sleep(source.uniform(0.0, 0.03))
        stop(child)
        generation, _, content = state(database_path)
        assert content in allowed
        assert problems_of(database_path) == []
        generations.append(generation)
        if content != old:
            remove_from_database(database_path, identifiers_of(more))
    assert generations == sorted(generations)
    assert generations[-1] > 12  # the children reported more changes than that
    compact_database(database_path)
    assert leftovers(database_path) == set()
    assert state(database_path)[2] == old


def test_readers_see_whole_generations_while_a_writer_works(database_path: Path, more: Path) -> None:
    """Readers open, read and read again later; expected values: one FASTA or both, and the same content again."""
    old = exported(open_database(database_path))
    allowed = {old, old + unwrapped(more)}
    child = start_loop(database_path, more)
    failures: list[object] = []
    generations: set[int] = set()
    ends = time.monotonic() + LIMIT_SECONDS

    def read() -> None:
        try:
            while len(generations) < 12 and not failures and time.monotonic() < ends:
                with open_database(database_path) as database:
                    content = exported(database)
                    if content not in allowed:
                        failures.append(database.catalogue)
                    time.sleep(0.01)
                    if exported(database) != content:
                        failures.append("changed while open")
                    generations.add(database.catalogue.generation)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop(child)
    assert failures == []
    assert len(generations) >= 12


# --- full and read-only disks ---


def refusal(change: Callable[[], object]) -> str | None:
    """Return the message with which the change is refused, or None if it is made."""
    try:
        change()
    except DatabaseError as error:
        return str(error)
    return None


def test_a_full_disk_leaves_the_old_database(
    small_disk: Path, tmp_path: Path, fasta: Path, more: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """A real ENOSPC with one page more each time, so that each write fails once; expected value: the old state."""
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    database = small_disk / "db"
    build_database(fasta, database)
    compact_database(database)
    n_failures = {}
    changes: dict[str, Callable[[], object]] = {
        "add": lambda: add_to_database(database, more),
        "remove": lambda: remove_from_database(database, [*identifiers_of(more), "P3"]),
        "compact": lambda: compact_database(database),
    }
    for name, change in changes.items():
        used = shutil.disk_usage(small_disk).used // 1024
        before = state(database)
        for free_kb in range(0, 4096, 4):
            subprocess.run(["mount", "-o", f"remount,size={used + free_kb}k", str(small_disk)], check=True)
            message = refusal(change)
            if message is None:
                n_failures[name] = free_kb // 4
                break
            assert message.startswith(f"no room left on the disk of {small_disk}")
            assert message.endswith("db is as it was before")
            assert state(database) == before
            assert problems_of(database) == []
            assert leftovers(database) == set()
        assert state(database)[0] == before[0] + 1
        assert problems_of(database) == []
    assert n_failures["add"] >= 8
    assert n_failures["remove"] >= 2
    assert n_failures["compact"] >= 8


def test_a_read_only_database_is_named(small_disk: Path, fasta: Path) -> None:
    """Expected words: the system's message for EROFS."""
    fasta.write_text(">a\nMK\n>b\nMV\n")
    build_database(fasta, small_disk / "db")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(DatabaseError, match="cannot be written: Read-only file system"):
        remove_from_database(small_disk / "db", ["a"])
    with open_database(small_disk / "db") as database:
        assert database.n_subjects == 2

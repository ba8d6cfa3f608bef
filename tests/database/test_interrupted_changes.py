"""Changes that are killed, stopped, concurrent or out of disk space: the database is the old one or the new one.

The expected states come from the database before the change, and from the same change without disturbance.
"""

import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from swsearch.database.builder import build_database
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
from swsearch.database.opening import open_database
from swsearch.database.staging import LOCK
from swsearch.errors import DatabaseError
from tests.database.conftest import exported, fasta_text, some_records
from tests.database.test_interrupted import PAUSES, start_paused
from tests.patience import LIMIT_SECONDS
from tests.processes import Process, start
from tests.tiers import mostly_thorough

CHILD = (
    PAUSES
    + """
from swsearch.database import changes, segment_writer, staging
from swsearch.errors import SwSearchError

def at_catalogue(wrap):
    replace = os.replace
    os.replace = lambda *names: (wrap(replace) if names[1].name == "catalogue.json" else replace)(*names)

def half_swept(function):
    def paused(path, **options):
        os.unlink(path / "lengths.bin")
        pause()
        function(path, **options)
    return paused

{moment}
try:
    if sys.argv[2] == "add":
        changes.add_to_database(sys.argv[1], sys.argv[3])
    elif sys.argv[2] == "remove":
        changes.remove_from_database(sys.argv[1], sys.argv[3:])
    else:
        changes.compact_database(sys.argv[1])
except SwSearchError as error:
    sys.exit("refused: " + str(error))
"""
)

MOMENTS = {
    "add, reading": "segment_writer.read_chunks = within(segment_writer.read_chunks)",
    "add, before the residues": "segment_writer.write_residues = before(segment_writer.write_residues)",
    "add, after the residues": "segment_writer.write_residues = after(segment_writer.write_residues)",
    "add, before the rename": "at_catalogue(before)",
    "add, after the rename": "at_catalogue(after)",
    "remove, one of two files written": "changes.with_tombstones = after(changes.with_tombstones)",
    "remove, before the rename": "at_catalogue(before)",
    "remove, after the rename": "at_catalogue(after)",
    "compact, copying": "changes.remaining_chunks = within(changes.remaining_chunks)",
    "compact, after the residues": "segment_writer.write_residues = after(segment_writer.write_residues)",
    "compact, before the rename": "at_catalogue(before)",
    "compact, after the rename": "at_catalogue(after)",
    "compact, old segments half removed": "changes.shutil.rmtree = half_swept(changes.shutil.rmtree)",
}
NEW = {name for name in MOMENTS if name.endswith(("after the rename", "half removed"))}
"""Moments at which the new database exists."""


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


def arguments_of(moment: str, more: Path) -> list[str]:
    """Return the change of a moment, as arguments of the child."""
    changes = {"add": ["add", str(more)], "remove": ["remove", "P9", "NP8", "NP9"], "compact": ["compact"]}
    return changes[moment.split(",", maxsplit=1)[0]]


def start_change(database: Path, moment: str, more: Path) -> Process:
    """Start the change of a moment in its own process, which waits there until it reads a line."""
    return start_paused(CHILD.format(moment=MOMENTS[moment]), database, *arguments_of(moment, more))


def state(path: Path) -> tuple[int, str, bytes]:
    """Return generation, digest and content."""
    with open_database(path) as database:
        return database.catalogue.generation, database.digest, exported(database)


def files_in_use(path: Path) -> set[str]:
    """Return the names of the files that the catalogue refers to, with the catalogue and the lock."""
    with open_database(path) as database:
        return {"catalogue.json", LOCK, *database.catalogue.files}


def files_there(path: Path) -> set[str]:
    """Return the names of all files, except removals that later ones replaced."""
    names = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    generation, _, _ = state(path)
    replaced = {name for name in names if (found := re.search(r"removed-(\d+)", name)) and int(found[1]) < generation}
    return names - (replaced - files_in_use(path))


def expected_states(path: Path, moment: str, more: Path) -> dict[str, tuple[int, str, bytes]]:
    """Return the database's present state, and its state after an undisturbed change."""
    copy = path.with_name("copy.swdb")
    shutil.copytree(path, copy)
    command = [sys.executable, "-c", CHILD.format(moment=""), copy, *arguments_of(moment, more)]
    subprocess.run(command, check=True)
    states = {"old": state(path), "new": state(copy)}
    shutil.rmtree(copy)
    return states


@pytest.mark.parametrize("moment", mostly_thorough(MOMENTS, "add, before the rename"))
def test_a_killed_change_leaves_the_old_or_the_new_database(
    changed_path: Path, more: Path, moment: str, problems_of: Callable[[Path], list[str]]
) -> None:
    """kill -9; expected values: the state before, or that of an undisturbed change; the next writer cleans up."""
    expected = expected_states(changed_path, moment, more)["new" if moment in NEW else "old"]
    child = start_change(changed_path, moment, more)
    assert state(changed_path) == expected
    child.kill()
    child.communicate()
    assert state(changed_path) == expected
    assert problems_of(changed_path) == []
    remove_from_database(changed_path, ["P0"])
    assert files_there(changed_path) == files_in_use(changed_path)
    assert problems_of(changed_path) == []


@pytest.mark.parametrize(
    ("moment", "sent"),
    mostly_thorough(
        [(moment, (signal.SIGTERM, signal.SIGINT)[n % 2]) for n, moment in enumerate(MOMENTS) if "half" not in moment],
        ("compact, copying", signal.SIGTERM),
    ),
)
def test_a_stopped_change_cleans_up_at_once(changed_path: Path, more: Path, moment: str, sent: signal.Signals) -> None:
    """Expected values: the old state or the new one, and no other file; exit codes as for a stopped build."""
    before = state(changed_path)
    child = start_change(changed_path, moment, more)
    child.send_signal(sent)
    child.communicate()
    assert child.returncode == (143 if sent is signal.SIGTERM else -signal.SIGINT)
    assert (state(changed_path) != before) == (moment in NEW)
    assert files_there(changed_path) == files_in_use(changed_path)


def test_the_second_writer_is_told_who_the_first_is(changed_path: Path, more: Path, fasta: Path) -> None:
    """Expected words: the first writer's process id; expected value: only the first one's change, then a free lock."""
    child = start_change(changed_path, "add, before the rename", more)
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
    assert files_there(database_path) == files_in_use(database_path)
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
        before, there = state(database), files_there(database)
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
            assert files_there(database) == there
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

"""Staged stores: what a kill leaves, on this machine and for another one, and who may replace a published file.

The processes that are killed are real. Another machine is a process with another folder for temporary files, which
therefore sees the published file alone. Expected values: by hand.
"""

import fcntl
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from swsearch import folders
from swsearch.cli.serve import _warn_of_network
from swsearch.errors import InputError, StoreError
from swsearch.folders import file_system
from swsearch.store.models import FINISHED
from swsearch.store.staging import StagedStore, open_store, upgrade_store
from swsearch.store.store import Store
from tests import processes
from tests.patience import wait_until
from tests.store.conftest import RUN, make_query

ADD_AND_WAIT = """
import sys
from swsearch.store.staging import StagedStore
from tests.store.conftest import RUN, make_query

path, n_published, n_queries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = StagedStore(path, create=True, publish_seconds=1e9)
run = store.runs.start(RUN)
for number in range(n_queries):
    store.results.add(run, make_query(number))
    if number + 1 == n_published:
        store.publish()
print("here", flush=True)
sys.stdin.readline()
store.runs.finish(run)
store.close()
"""


@pytest.fixture(autouse=True)
def node(tmp_path, monkeypatch):
    """The folder for temporary files of this machine."""
    (tmp_path / "node").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "node"))
    return tmp_path / "node"


@pytest.fixture
def target(tmp_path):
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared" / "hits.sqlite"


@pytest.fixture
def start():
    """Start a process that adds queries to a staged store and waits before it finishes its run."""

    def call(target, n_queries, n_published=0):
        arguments = ["-c", ADD_AND_WAIT, str(target), str(n_published), str(n_queries)]
        process = processes.start(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
        )
        assert process.stdout.readline() == "here\n", process.communicate()[1]
        return process

    return call


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


def numbers(store, run=1):
    return sorted(store.results.committed(run))


def test_a_finished_store_is_one_file_that_any_program_reads(target, node):
    with StagedStore(target, create=True) as store:
        assert store.name == str(target)
        run = store.runs.start(RUN)
        for number in range(3):
            store.results.add(run, make_query(number))
        store.runs.finish(run)
    assert [path.name for path in target.parent.iterdir()] == ["hits.sqlite"]
    assert list(node.iterdir()) == []
    with sqlite3.connect(f"{target.as_uri()}?mode=ro", uri=True) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    with Store(target) as store:
        assert (store.runs.get(1).state, numbers(store)) == ("finished", [0, 1, 2])
        assert list(store.results.queries(1)) == [make_query(number) for number in range(3)]


def test_a_killed_process_loses_no_committed_query_on_this_machine(start, target):
    kill(start(target, 5))
    with Store(target) as published:
        assert (published.runs.get(1).state, numbers(published)) == ("interrupted", [])
    with StagedStore(target) as store:
        assert (store.runs.get(1).state, numbers(store)) == ("interrupted", [0, 1, 2, 3, 4])
        store.runs.resume(1)
        store.results.add(1, make_query(5))
    with Store(target) as published:
        assert numbers(published) == [0, 1, 2, 3, 4, 5]


@pytest.mark.thorough
def test_what_a_killed_process_has_left_is_published_by_the_next_one_that_changes_nothing(start, target):
    kill(start(target, 5))
    StagedStore(target).close()
    with Store(target) as published:
        with sqlite3.connect(f"{target.as_uri()}?mode=ro", uri=True) as connection:
            assert connection.execute("SELECT state FROM runs").fetchall() == [("interrupted",)]
        connection.close()
        assert numbers(published) == [0, 1, 2, 3, 4]


def test_another_machine_goes_on_with_what_was_published(start, target, tmp_path, monkeypatch):
    """The run is interrupted in the published file, since the other machine cannot see that its process was killed."""
    kill(start(target, 5, n_published=3))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with StagedStore(target) as store:
        assert (store.runs.get(1).state, numbers(store)) == ("interrupted", [0, 1, 2])
        store.runs.resume(1)
        for number in (3, 4, 5):
            store.results.add(1, make_query(number))
        store.runs.finish(1)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "node"))
    with StagedStore(target) as store:  # what the killed process left is older than the published file
        assert (store.runs.get(1).state, numbers(store)) == ("finished", [0, 1, 2, 3, 4, 5])


@pytest.mark.thorough
@pytest.mark.parametrize("renamed", [False, True])
def test_a_kill_during_a_publication_loses_nothing(start, target, node, renamed):
    """A process that is killed while it publishes leaves the target before or after its rename; `bases` has both."""
    kill(start(target, 2))
    before = target.read_bytes()
    (bases,) = node.glob("*/bases")
    known = bases.read_text()
    kill(start(target, 3, n_published=3))
    assert target.read_bytes() != before
    bases.write_text(known + bases.read_text())
    if not renamed:
        target.write_bytes(before)
    with StagedStore(target) as store:
        assert [numbers(store, run.id) for run in store.runs.all()] == [[0, 1], [0, 1, 2]]


def test_a_query_is_published_in_time_although_no_other_follows(target):
    """The interval is short, and nothing is written while the test waits for the second publication."""
    with StagedStore(target, create=True, publish_seconds=0.05) as store:
        run = store.runs.start(RUN)
        for number in range(3):
            store.results.add(run, make_query(number))

        def published() -> list[int]:
            with Store(target) as found:
                return numbers(found)

        wait_until(lambda: published() == [0, 1, 2], "the publication of the last query")
        with Store(target) as found:  # while the store is open, and its run is not finished
            assert [numbers(found, each.id) for each in found.runs.all()] == [[0, 1, 2]]
            assert found.runs.get(run).state != FINISHED


def test_an_error_of_a_publication_in_time_ends_the_next_change(target):
    with StagedStore(target, create=True, publish_seconds=0.05) as store:
        run = store.runs.start(RUN)
        target.unlink()
        store.results.add(run, make_query(0))
        wait_until(lambda: list(target.parents[1].glob("node/swsearch-unpublished-*")), "the refused publication")
        with pytest.raises(StoreError, match="was deleted or replaced by another process"):
            wait_until(lambda: store.runs.interrupt(run), "the error")
    assert not target.exists()


@pytest.mark.thorough
def test_processes_of_this_machine_share_the_copy(start, target, node):
    """Each sees what the other has committed before it is published, and both publish; the last removes the copy."""
    process = start(target, 2)
    with StagedStore(target, publish_seconds=1e9) as store:
        assert numbers(store) == [0, 1]
        with Store(target) as published:
            assert numbers(published) == []
        assert store.runs.start(RUN) == 2
        store.results.add(2, make_query(7))
        store.runs.finish(2)
    with Store(target) as published:
        assert (numbers(published), numbers(published, 2)) == ([0, 1], [7])
    _, errors = process.communicate("\n")
    assert (process.returncode, errors) == (0, "")
    assert list(node.iterdir()) == []
    with Store(target) as published:
        assert [(run.state, run.n_queries) for run in published.runs.all()] == [("finished", 2), ("finished", 1)]


@pytest.mark.thorough
def test_the_last_process_publishes_what_a_killed_one_has_committed(start, target, node):
    process = start(target, 5)
    with StagedStore(target) as store:
        kill(process)
        assert numbers(store) == [0, 1, 2, 3, 4]
    assert list(node.iterdir()) == []
    with Store(target) as published:
        assert (published.runs.get(1).state, numbers(published)) == ("interrupted", [0, 1, 2, 3, 4])


def test_a_process_that_does_not_end_its_turn_is_not_waited_for_for_ever(target, node):
    """The lock is flock(2) on the file `turn`, held here in place of a process that publishes to a disk that hangs."""
    with StagedStore(target, create=True, busy_seconds=0.05) as store:
        (turn,) = node.glob("*/turn")
        with turn.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(StoreError, match=r"another process opens or publishes .*hits\.sqlite and does not"):
                StagedStore(target, create=True, busy_seconds=0.05)
        store.runs.start(RUN)
    with Store(target) as published:
        assert len(published.runs.all()) == 1


@pytest.mark.thorough
def test_a_process_never_overwrites_what_another_machine_has_published(start, target, tmp_path, monkeypatch):
    process = start(target, 4)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with StagedStore(target) as store:
        assert store.runs.start(RUN) == 2
    _, errors = process.communicate("\n")
    assert process.returncode == 1
    message = errors.splitlines()[-1]
    assert "hits.sqlite was deleted or replaced by another process, which this one must not overwrite" in message
    assert "--store hits-{shard}.sqlite" in message
    with Store(target) as store:
        assert [run.id for run in store.runs.all()] == [1, 2]
        assert numbers(store) == []
    kept = message.partition("what this process found is in ")[2].partition(";")[0]
    with Store(kept) as store:
        assert numbers(store) == [0, 1, 2, 3]


def test_a_publication_that_fails_loses_nothing(target):
    """The folder's place is taken by a file in place of a disk that fails; the next process publishes what is left."""
    away = target.parent.with_name("away")
    store = StagedStore(target, create=True, publish_seconds=1e9)
    run = store.runs.start(RUN)
    store.results.add(run, make_query(0))
    target.parent.rename(away)
    target.parent.touch()
    with pytest.raises(
        StoreError, match=r"hits.sqlite cannot be copied or published: Not a directory .*; what was stored is ke"
    ):
        store.close()
    target.parent.unlink()
    away.rename(target.parent)
    with StagedStore(target) as again:
        assert numbers(again) == [0]
        again.runs.interrupt(1)
    with Store(target) as published:
        assert numbers(published) == [0]


def test_a_machine_without_a_disk_of_its_own_is_one_line(target, monkeypatch):
    """The file systems of this machine are declared to be shared."""
    mounts = Path("/proc/self/mountinfo").read_text()
    types = {file_system(os.path.realpath(place), mounts) for place in (target.parent, "/tmp", "/var/tmp")}
    monkeypatch.setattr(folders, "SHARED", types)
    with pytest.raises(StoreError, match="no folder for temporary files is on a disk of this machine; set TMPDIR to"):
        open_store(target, create=True)
    assert not target.exists()


def test_a_folder_of_another_user_is_not_used(target, node):
    """Its name can be foreseen, so another user may have created it, or a link, in a folder that all may write to."""
    store = StagedStore(target, create=True)
    (folder,) = node.iterdir()
    store.close()
    folder.symlink_to(target.parent)
    with pytest.raises(StoreError, match="belongs to another user; set TMPDIR to another folder"):
        StagedStore(target, create=True)


def test_a_store_that_is_written_directly_is_not_staged(target):
    with Store(target, create=True) as store:
        store.runs.start(RUN)
        with pytest.raises(StoreError, match=r"hits.sqlite-wal shows that a process writes to the store itself"):
            StagedStore(target)
    with StagedStore(target) as staged:
        assert len(staged.runs.all()) == 1


def test_an_older_store_is_upgraded_here_and_published_as_one_file(target, node, later_revision):
    """Source: the same store, upgraded in place."""
    direct = target.with_name("direct.sqlite")
    with Store(direct, create=True) as old:
        run = old.runs.start(RUN)
        old.results.add(run, make_query(0))
        old.runs.finish(run)
    shutil.copyfile(direct, target)
    with later_revision():
        with pytest.raises(StoreError, match="swsearch runs upgrade"):
            StagedStore(target)
        upgrade_store(direct, stage="never")
        upgrade_store(target, stage="always")
        assert sorted(path.name for path in target.parent.iterdir()) == ["direct.sqlite", "hits.sqlite"]
        assert list(node.iterdir()) == []
        with Store(target, only_read=True) as staged, Store(direct, only_read=True) as expected:
            assert staged.runs.all() == expected.runs.all() != []
            assert list(staged.results.queries(1)) == list(expected.results.queries(1))
        published = target.read_bytes()
        upgrade_store(target, stage="always")
        assert target.read_bytes() == published
        assert list(node.iterdir()) == []


def test_an_upgrade_that_fails_changes_nothing(target, node):
    target.write_bytes(b"no database at all, " * 100)
    with pytest.raises(StoreError, match=str(target)):
        upgrade_store(target, stage="always")
    assert target.read_bytes() == b"no database at all, " * 100
    assert list(node.iterdir()) == []


def test_a_service_whose_store_is_on_a_network_file_system_says_so(target, monkeypatch, capsys):
    """The file system of the store is declared to be shared."""
    _warn_of_network(str(target))
    assert capsys.readouterr().err == ""
    mounts = Path("/proc/self/mountinfo").read_text()
    monkeypatch.setattr(folders, "SHARED", {file_system(os.path.realpath(target.parent), mounts)})
    _warn_of_network(str(target))
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["event"], line["store"]) == ("warning", "store on a network file system", str(target))
    assert "name one on a disk of this machine, or in PostgreSQL" in line["message"]
    _warn_of_network("postgresql://me@host/hits")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("content", [b"no database at all, " * 100, b""])
def test_another_file_is_refused_as_without_staging(target, node, content):
    if content:
        target.write_bytes(content)
    with pytest.raises(StoreError) as staged:
        StagedStore(target)
    with pytest.raises(StoreError) as direct:
        Store(target)
    assert str(staged.value) == str(direct.value)
    assert (target.read_bytes() if content else b"") == content
    assert list(node.iterdir()) == []


def test_the_choice_of_staging(target, tmp_path):
    for stage, kind in (("auto", Store), ("always", StagedStore), ("never", Store)):
        with open_store(tmp_path / f"{stage}.sqlite", create=True, stage=stage) as store:
            assert type(store) is kind
    with pytest.raises(InputError, match=r"--stage-store 'perhaps': choose auto, always or never"):
        open_store(target, create=True, stage="perhaps")
    with pytest.raises(InputError, match=r"postgresql.*is no file; leave the option out"):
        open_store("postgresql://nobody@nowhere/hits", stage="always")


def test_the_file_system_of_a_path_is_that_of_its_mount():
    """Source: proc(5). The last of two mounts at one place hides the other; a blank is written as its octal code."""
    mounts = """22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:35 / /scratch rw,relatime shared:20 - lustre 10.0.0.1@o2ib:/scratch rw
41 22 0:36 / /home rw,relatime - nfs4 server:/home rw,vers=4.2
42 41 8:17 / /home/local\\040disk rw,relatime shared:3 master:4 - xfs /dev/sdb1 rw
43 22 0:37 / /mnt rw - ext4 /dev/sdc1 rw
44 22 0:38 / /mnt rw - fuse.sshfs me@host:/ rw
"""
    assert file_system("/scratch/me", mounts) == "lustre"
    assert file_system("/scratchy/me", mounts) == "ext4"
    assert file_system("/home/me/hits", mounts) == "nfs4"
    assert file_system("/home/local disk/hits", mounts) == "xfs"
    assert file_system("/mnt", mounts) == "fuse.sshfs"
    assert file_system("/", mounts) == "ext4"
    assert file_system("/", "") is None


def test_this_folders_file_system_is_what_the_system_says(tmp_path):
    """Source: `stat -f` of coreutils, which asks the kernel in another way."""
    with open("/proc/self/mountinfo") as file:
        found = file_system(os.path.realpath(tmp_path), file.read())
    said = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True).stdout
    assert found is not None
    assert said.strip().partition("/")[0].startswith(found.partition("2")[0][:3])
    assert sys.platform == "linux"

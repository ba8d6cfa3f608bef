"""Staged stores: what a kill leaves, on this machine and for another one, and who may replace a published file.

The processes that are killed are real. Another machine is a process with another folder for temporary files, which
therefore sees the published file alone. Expected values: by hand.
"""

import errno
import json
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from swsearch import folders
from swsearch.cli.serve import _warn_of_network
from swsearch.errors import InputError, StoreError
from swsearch.folders import file_system
from swsearch.store import staged_store
from swsearch.store.rows import FINISHED
from swsearch.store.staged_store import StagedStore, upgrade_store
from swsearch.store.store import Store, open_store
from tests import processes
from tests.store.conftest import RUN, make_query

ADD_AND_WAIT = """
from swsearch.store import staged_store
from tests.store.conftest import RUN, make_query

staged_store.PUBLISH_SECONDS = 1e9
path, n_published, n_queries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = staged_store.StagedStore(path, create=True)
run = store.runs.start(RUN)
for number in range(n_queries):
    store.results.add(run, make_query(number))
    if number + 1 == n_published:
        store.publish()
pause()
store.runs.finish(run)
store.close()
"""

WAIT = """
import sys
from swsearch.store.store import open_store
from tests.store.conftest import RUN

with open_store(sys.argv[1], create=True, stage="always") as store:
    run = store.runs.get(1)
    print(run.state, sorted(store.results.committed(1)))
    store.runs.finish(store.runs.start(RUN))
"""

KILLED_AT = """
import os, signal, sys
from swsearch.store import staged_store
from tests.store.conftest import RUN, make_query

def trace(frame, event, _argument):
    if frame.f_code.co_filename != staged_store.__file__:
        return None
    if event == "line" and lines[frame.f_lineno - 1].strip() == {line!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    return trace

lines = open(staged_store.__file__).read().splitlines()
assert [each.strip() for each in lines].count({line!r}) == 1
store = staged_store.StagedStore(sys.argv[1])
with store.whole():
    store.results.add(store.runs.start(RUN), make_query(7))
    sys.settrace(trace)
raise AssertionError("the line was not reached")
"""


@pytest.fixture(autouse=True)
def node(tmp_path, monkeypatch):
    """The folder for temporary files of this machine."""
    (tmp_path / "node").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "node"))
    return tmp_path / "node"


@pytest.fixture
def at_once(monkeypatch):
    """Every commit is due to be published."""
    monkeypatch.setattr(staged_store, "PUBLISH_SECONDS", 0.0)
    monkeypatch.setattr(staged_store, "MAX_SHARE_OF_TIME", math.inf)


@pytest.fixture
def target(tmp_path):
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared" / "hits.sqlite"


def start(target, n_queries, n_published=0):
    """Start a process that adds queries to a staged store and waits before it finishes its run."""
    return processes.paused(ADD_AND_WAIT, target, n_published, n_queries)


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


def test_a_killed_owner_loses_nothing_that_was_published(target, node):
    """The next process removes the copy that a killed one has left, and continues from the published store."""
    kill(start(target, 5, n_published=3))
    assert list(node.glob("*/store.sqlite"))
    with StagedStore(target) as store:
        assert (store.runs.get(1).state, numbers(store)) == ("interrupted", [0, 1, 2])
        store.runs.resume(1)
        store.results.add(1, make_query(3))
    assert list(node.iterdir()) == []
    with Store(target) as published:
        assert numbers(published) == [0, 1, 2, 3]


def test_another_machine_goes_on_with_what_was_published(target, tmp_path, monkeypatch):
    """The run is interrupted in the published file, since the other machine cannot see that its process was killed."""
    kill(start(target, 5, n_published=3))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with StagedStore(target) as store:
        assert (store.runs.get(1).state, numbers(store)) == ("interrupted", [0, 1, 2])
        with sqlite3.connect(f"{target.as_uri()}?mode=ro", uri=True) as connection:
            assert connection.execute("SELECT state FROM runs").fetchall() == [("interrupted",)]
        connection.close()
        store.runs.resume(1)
        for number in (3, 4, 5):
            store.results.add(1, make_query(number))
        store.runs.finish(1)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "node"))
    with StagedStore(target) as store:  # what the killed process left is older than the published file
        assert (store.runs.get(1).state, numbers(store)) == ("finished", [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize("line", ["unfinished.replace(target)", "self._seen = _identity(whole)"])
def test_a_kill_during_a_publication_leaves_the_old_store_or_the_new_one(target, line):
    """The process is killed when it comes to this line, before and after the rename."""
    kill(start(target, 2, n_published=2))
    script = KILLED_AT.format(line=line)
    process = processes.start(["-c", script, str(target)], stderr=subprocess.PIPE)
    errors = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, errors
    is_published = line.startswith("self")
    with StagedStore(target) as store:
        assert [numbers(store, run.id) for run in store.runs.all()] == [[0, 1], [7]][: 1 + is_published]
    assert sorted(path.name for path in target.parent.iterdir() if "unfinished" not in path.name) == ["hits.sqlite"]


def test_a_change_is_published_if_the_last_publication_is_long_enough_ago(target, at_once, monkeypatch):
    with StagedStore(target, create=True) as store:
        run = store.runs.start(RUN)
        for number in (0, 1, 2):
            store.results.add(run, make_query(number))
            with Store(target) as published:  # while the store is open, and its run is not finished
                assert numbers(published) == list(range(number + 1))
                assert published.runs.get(run).state != FINISHED
        monkeypatch.setattr(staged_store, "PUBLISH_SECONDS", 1e9)
        for number in (3, 4):  # one more publication, whose interval is a long one
            store.results.add(run, make_query(number))
        with Store(target) as published:
            assert numbers(published) == [0, 1, 2, 3]
    with Store(target) as published:
        assert numbers(published) == [0, 1, 2, 3, 4]


def test_threads_share_a_staged_store(target, at_once):
    """Every commit is due to be published, while other threads commit and publish."""
    with StagedStore(target, create=True) as store:
        run = store.runs.start(RUN)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda number: store.results.add(run, make_query(number)), range(40)))
    with Store(target) as published:
        assert numbers(published) == list(range(40))


def test_a_second_process_of_the_machine_waits_and_says_so(target, node):
    """It then continues from what the first one has published at its end."""
    first = start(target, 2)
    second = processes.start(["-c", WAIT, str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = second.stderr.readline()
    assert line == f"swsearch: waiting for process {first.pid}, which writes to {target}; store names another store\n"
    _, errors = first.communicate("\n")
    assert (first.returncode, errors) == (0, "")
    printed, errors = second.communicate()
    assert (second.returncode, printed, errors) == (0, "finished [0, 1]\n", "")
    assert list(node.iterdir()) == []
    with Store(target) as published:
        assert len(published.runs.all()) == 2


def test_a_process_that_waits_goes_on_when_the_owner_is_killed(target, node):
    first = start(target, 5, n_published=3)
    second = processes.start(["-c", WAIT, str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert f"waiting for process {first.pid}" in second.stderr.readline()
    kill(first)
    printed, errors = second.communicate()
    assert (second.returncode, printed, errors) == (0, "interrupted [0, 1, 2]\n", "")
    assert list(node.iterdir()) == []


@pytest.mark.thorough
def test_many_processes_of_the_machine_take_turns(target, node):
    with StagedStore(target, create=True) as store:
        store.runs.finish(store.runs.start(RUN))
    started = [
        processes.start(["-c", WAIT, str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(5)
    ]
    for process in started:
        process.communicate()
        assert process.returncode == 0
    assert list(node.iterdir()) == []
    with Store(target) as published:
        assert [run.id for run in published.runs.all()] == [1, 2, 3, 4, 5, 6]


def test_a_process_does_not_wait_for_itself(target):
    with StagedStore(target, create=True) as store:
        with pytest.raises(StoreError, match=r"hits\.sqlite is open in this process already"):
            StagedStore(target)
        store.runs.start(RUN)
    with StagedStore(target) as again:
        assert len(again.runs.all()) == 1


@pytest.mark.thorough
def test_a_process_never_overwrites_what_another_machine_has_published(target, tmp_path, monkeypatch):
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
    with Store(kept_file(message)) as store:
        assert (store.runs.get(1).state, numbers(store)) == ("finished", [0, 1, 2, 3])


def kept_file(message):
    return message.partition("what was stored is kept in ")[2]


def test_a_store_that_was_deleted_is_not_made_again(target, at_once):
    """The error ends the next change, since it is due to be published; closing the store keeps what was stored."""
    store = StagedStore(target, create=True)
    run = store.runs.start(RUN)
    target.unlink()
    with pytest.raises(StoreError, match="was deleted or replaced by another process"):
        store.results.add(run, make_query(0))
    with pytest.raises(StoreError, match="was deleted or replaced by another process") as refused:
        store.close()
    store.close()
    assert not target.exists()
    with Store(kept_file(str(refused.value))) as kept:
        assert numbers(kept) == [0]


def test_a_mount_that_vanishes_loses_nothing(target, node, at_once):
    """The folder's place is taken by a file in place of a network file system that does not answer."""
    away = target.parent.with_name("away")
    store = StagedStore(target, create=True)
    run = store.runs.start(RUN)
    target.parent.rename(away)
    target.parent.touch()
    with pytest.raises(StoreError, match=r"hits.sqlite cannot be copied or published: Not a directory"):
        store.results.add(run, make_query(0))
    with pytest.raises(StoreError, match=r"hits.sqlite cannot be copied or published: Not a directory") as refused:
        store.close()
    (kept,) = node.glob("swsearch-unpublished-*/*")
    assert kept_file(str(refused.value)) == str(kept)
    with Store(kept) as found:
        assert numbers(found) == [0]
    target.parent.unlink()
    away.rename(target.parent)
    with StagedStore(target) as again:
        assert numbers(again) == []


def test_a_mount_that_comes_back_before_the_end_has_everything(target, node, at_once):
    away = target.parent.with_name("away")
    store = StagedStore(target, create=True)
    run = store.runs.start(RUN)
    target.parent.rename(away)
    with pytest.raises(StoreError, match=r"hits.sqlite was deleted|cannot be copied or published"):
        store.results.add(run, make_query(0))
    away.rename(target.parent)
    store.close()
    assert list(node.iterdir()) == []
    with Store(target) as published:
        assert numbers(published) == [0]


def test_a_full_disk_leaves_the_published_store(target, monkeypatch):
    """The system refuses to synchronize the new file, as a full file system with delayed allocation does."""

    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    kill(start(target, 2, n_published=2))
    before = target.read_bytes()
    store = StagedStore(target)
    store.runs.resume(1)
    before = target.read_bytes()
    store.results.add(1, make_query(2))
    monkeypatch.setattr("swsearch.store.staged_store.os.fsync", full)
    with pytest.raises(StoreError, match=r"hits.sqlite cannot be copied or published: No space left on de") as refused:
        store.close()
    assert [path.name for path in target.parent.iterdir()] == ["hits.sqlite"]
    assert target.read_bytes() == before
    with Store(kept_file(str(refused.value))) as kept:
        assert numbers(kept) == [0, 1, 2]


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
    (folder,) = node.glob("*/")
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
    with pytest.raises(InputError, match=r"stage_store='perhaps': choose auto, always, never"):
        open_store(target, create=True, stage="perhaps")
    with pytest.raises(InputError, match=r"postgresql.*is not a file; leave the option out"):
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

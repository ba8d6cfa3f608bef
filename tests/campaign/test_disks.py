"""Full disks, file-size limits and failing system calls: one clear line, exit code 1, nothing half-written.

`shim.c` makes the n-th call fail: "no space" and "quota exceeded" from that call on, a device error once or
permanently, or too many open files. It may also make a call short (a short write) or interrupt it (EINTR); both must
have no visible effect. The expected states on the disk come from undisturbed runs (`commands.py`).
"""

import errno
import os
import resource
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.campaign import faults
from tests.campaign.commands import NAMES, NEW, Command, judge, learned, prepared
from tests.campaign.faults import Fault
from tests.campaign.program import Done, forked, run
from tests.campaign.trials import Trial, told

pytestmark = [pytest.mark.thorough, pytest.mark.peer("gcc")]

SPACE = faults.WRITE | faults.CREATE
KINDS: dict[str, Fault] = {
    "no space": Fault(0, faults.FAIL, errno.ENOSPC, sticky=True, of=SPACE),
    "quota": Fault(0, faults.FAIL, errno.EDQUOT, sticky=True, of=SPACE),
    "a write that fails once": Fault(0, faults.FAIL, errno.EIO, of=faults.WRITE),
    "a sync that fails once": Fault(0, faults.FAIL, errno.EIO, of=faults.SYNC),
    "a rename that fails once": Fault(0, faults.FAIL, errno.EIO, of=faults.RENAME),
    "a device that is gone": Fault(0, faults.FAIL, errno.EIO, sticky=True, of=faults.CHANGES),
    "a read that fails once": Fault(0, faults.FAIL, errno.EIO, of=faults.READ),
    "too many open files": Fault(0, faults.FAIL, errno.EMFILE, sticky=True, of=faults.OPEN | faults.CREATE),
    "a short write": Fault(0, faults.SHORT, of=faults.WRITE),
    "an interrupted write": Fault(0, faults.FAIL, errno.EINTR, of=faults.WRITE),
    "a short read": Fault(0, faults.SHORT, of=faults.READ),
}
UNNOTICED = ("a short write", "an interrupted write", "a short read")


@cache
def calls_of(name: str, classes: int, state_dir: Path) -> int:
    """Return the number of calls of some classes in an undisturbed run."""
    template, command = learned(name, state_dir)
    folder = state_dir / f"counted-{name}-{classes}"
    command.prepare(template, folder)
    return run(command.arguments, folder, Fault(of=classes)).calls


def check(command: Command, folder: Path, done: Done, how: str, *, cleans_up: bool = True) -> None:
    """Check a command that may have failed: its end, the state on the disk, leftover files, and the next command."""
    with told(how):
        went_well = done.check_end()
        if cleans_up and not went_well:
            # SQLite checkpoints its log when the store is next opened; on a full disk it cannot do so at once.
            left = {name for name in command.leftovers(folder) if not name.endswith(("-wal", "-shm", "-journal"))}
            left |= {path.name for path in (folder / "tmp").iterdir()}
            assert not left, f"left behind: {sorted(left)}"
    state = judge(command, folder, how)
    assert not went_well or state == NEW, f"{how}: exit code 0, but the state is {state}"


@pytest.mark.campaign(8, 1_400)
def test_a_call_that_fails_is_one_line_and_an_incomplete_one_is_completed(trial: Trial) -> None:
    name = NAMES[trial.number % len(NAMES)]
    kind = list(KINDS)[(trial.number // len(NAMES)) % len(KINDS)]
    pattern = KINDS[kind]
    calls = calls_of(name, pattern.of, trial.state_dir)
    if not calls:
        return
    fault = Fault(trial.rng.randint(1, calls), pattern.action, pattern.value, pattern.sticky, pattern.of)
    command, folder = prepared(trial, name)
    done = run(command.arguments, folder, fault)
    how = f"{name} with {kind} at call {fault.at} of {calls}, {done.what}"
    assert kind not in UNNOTICED or done.code == 0, f"{how}: exit code {done.code}: {done.text[-300:]}"
    check(command, folder, done, how, cleans_up=not fault.sticky or fault.of == SPACE)


@pytest.mark.campaign(3, 300)
def test_a_full_disk_is_one_line(trial: Trial) -> None:
    """The file system holds the existing files and only a part of what the command writes."""
    name = NAMES[trial.number % len(NAMES)]
    command, folder = prepared(trial, name)
    before = _pages(folder)
    run(command.arguments, folder)
    pages = before + 1 + trial.rng.randrange(max(2, _pages(folder) - before) + 2)
    shutil.rmtree(folder)
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={pages * 4096}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs rights that this process does not have")
    try:
        try:
            prepared(trial, name)
            (folder / "tmp").mkdir(exist_ok=True)
        except OSError:
            return  # there is no room for the files before the command
        done = run(command.arguments, folder)
        subprocess.run(["mount", "-o", "remount,size=256m", str(folder)], check=True)
        check(command, folder, done, f"{name} on a disk of {pages} pages, {before} of them full")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _pages(folder: Path) -> int:
    """Return the number of 4 KiB pages that a tmpfs uses for a folder's files."""
    return sum(-(-path.stat().st_size // 4096) for path in folder.rglob("*") if path.is_file())


@pytest.mark.campaign(3, 300)
def test_a_limit_on_the_size_of_files_is_one_line(trial: Trial) -> None:
    """As `ulimit -f` sets it."""
    name = NAMES[trial.number % len(NAMES)]
    command, folder = prepared(trial, name)
    limit = trial.rng.randrange(500, trial.rng.choice((3_000, 20_000, 200_000)))
    done = forked(command.arguments, folder, limits={resource.RLIMIT_FSIZE: limit}).wait()
    check(command, folder, done, f"{name} with files of at most {limit} bytes")

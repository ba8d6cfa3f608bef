"""Full disks, file-size limits and failing system calls: one clear line, exit code 1, nothing half-written.

In `failing_calls`, `shim.c` makes the n-th call fail: "no space" and "quota exceeded" from that call on, a device error
once or permanently, or too many open files. It may also make a call short (a short write) or interrupt it (EINTR); both
must have no visible effect. `full_disk` uses a small file system of its own, and `file_limit` the system's limit on a
file's size. The expected states on the disk come from undisturbed runs (`commands.py`).
"""

import errno
import os
import resource
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.campaign import faults
from tests.campaign.commands import NEW, Command, commands, learned, prepared
from tests.campaign.faults import Fault
from tests.campaign.kills import judge as judge_kill
from tests.campaign.processes import Done, forked
from tests.campaign.processes import run as run_forked
from tests.campaign.trials import LeftOut, Trial

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
NAMES = tuple(commands())


@cache
def calls_of(name: str, classes: int, state_dir: Path) -> int:
    """Return the number of calls of some classes in an undisturbed run."""
    template, command = learned(name, state_dir)
    folder = state_dir / f"counted-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    command.prepare(template, folder)
    done = run_forked(command.arguments, folder, Fault(of=classes))
    shutil.rmtree(folder)
    return done.calls


def check_end(trial: Trial, done: Done, how: str) -> bool:
    """Return whether the command succeeded; a failure must be exit code 1 and one line, without a traceback."""
    if done.code == 0:
        return True
    trial.check(done.code == 1, f"{how}: exit code {done.code}: {done.text[-300:]}")
    trial.check("Traceback" not in done.text, f"{how}: a traceback: {done.text[-500:]}")
    trial.check(len(done.errors) == 1, f"{how}: {len(done.errors)} lines of error: {done.text[-300:]}")
    trial.counts["ended with one clear line"] += 1
    return False


def judge(trial: Trial, command: Command, folder: Path, done: Done, how: str, *, cleans_up: bool = True) -> None:
    """Check a command that may have failed: its end, the state on the disk, leftover files, and the next command."""
    went_well = check_end(trial, done, how)
    if cleans_up and not went_well:
        # SQLite checkpoints its log when the store is next opened; on a full disk it cannot do so at once.
        left = {name for name in command.leftovers(folder) if not name.endswith(("-wal", "-shm", "-journal"))}
        left |= {path.name for path in (folder / "tmp").iterdir()}
        trial.check(not left, f"{how}: left behind: {sorted(left)}")
    state = judge_kill(trial, command, folder, how)
    if went_well:
        trial.check(state == NEW, f"{how}: exit code 0, but the state is {state}")
        trial.counts["ended well"] += 1


def failing_calls(trial: Trial) -> None:
    """Make one call of one command fail in one way."""
    name = NAMES[trial.number % len(NAMES)]
    kind = list(KINDS)[(trial.number // len(NAMES)) % len(KINDS)]
    calls = calls_of(name, KINDS[kind].of, trial.state_dir)
    if not calls:
        trial.counts["commands without such a call"] += 1
        return
    pattern = KINDS[kind]
    fault = Fault(trial.rng.randint(1, calls), pattern.action, pattern.value, pattern.sticky, pattern.of)
    command, folder = prepared(trial, name)
    done = forked(command.arguments, folder, fault).wait()
    how = f"{name} with {kind} at call {fault.at} of {calls}, {done.what}"
    if kind in UNNOTICED:
        trial.check(done.code == 0, f"{how}: exit code {done.code}: {done.text[-300:]}")
    judge(trial, command, folder, done, how, cleans_up=not fault.sticky or fault.of == SPACE)


def full_disk(trial: Trial) -> None:
    """Run a command on a file system that holds the existing files and only a part of what the command writes."""
    if os.geteuid() != 0:
        raise LeftOut("only root may mount a small file system")
    name = NAMES[trial.number % len(NAMES)]
    command, folder = prepared(trial, name)
    before = _pages(folder)
    done = run_forked(command.arguments, folder)
    grown = max(2, _pages(folder) - before)
    shutil.rmtree(folder)
    folder.mkdir()
    pages = before + 1 + trial.rng.randrange(grown + 2)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={pages * 4096}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        trial.counts["not run: no right to mount"] += 1
        return
    try:
        try:
            prepared(trial, name)
            (folder / "tmp").mkdir(exist_ok=True)
        except OSError:
            trial.counts["no room for the files before the command"] += 1
            return
        done = forked(command.arguments, folder).wait()
        subprocess.run(["mount", "-o", "remount,size=256m", str(folder)], check=True)
        judge(trial, command, folder, done, f"{name} on a disk of {pages} pages, {before} of them full")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _pages(folder: Path) -> int:
    """Return the number of 4 KiB pages that a tmpfs uses for a folder's files."""
    return sum(-(-path.stat().st_size // 4096) for path in folder.rglob("*") if path.is_file())


def file_limit(trial: Trial) -> None:
    """Limit the size of each file, as `ulimit -f` does."""
    name = NAMES[trial.number % len(NAMES)]
    command, folder = prepared(trial, name)
    high = trial.rng.choice((3_000, 20_000, 200_000))
    limit = trial.rng.randrange(500, high)
    done = forked(command.arguments, folder, limits={resource.RLIMIT_FSIZE: limit}).wait()
    judge(trial, command, folder, done, f"{name} with files of at most {limit} bytes")

"""kill -9 at any moment: at every system call that changes a file (before it, after it, in the middle of a write),
and at random times of a command that was started as a user starts it.

After each kill the judge of `commands.py` checks the disk: the content is the old or the new one, nothing is
half-written, the store is intact, and the next command succeeds and gives the same bytes as an undisturbed run.
"""

import random
import signal
import time
from pathlib import Path

import pytest

from tests.campaign import faults
from tests.campaign.commands import judge, learned, prepared
from tests.campaign.faults import KILLS, Fault
from tests.campaign.program import forked, started
from tests.campaign.trials import Trial
from tests.tiers import mostly_thorough

pytestmark = pytest.mark.peer("gcc")

KILLED = ("index", "index_force", "db_add", "db_remove", "db_compact", "query", "batch", "runs_merge")
SMALL = ("index", "db_add", "db_remove", "db_compact")


@pytest.mark.parametrize("name", mostly_thorough(SMALL, "db_remove"))
def test_a_kill_at_each_system_call_leaves_the_old_database_or_the_new_one(
    name: str, tmp_path: Path, state_dir: Path
) -> None:
    template, command = learned(name, state_dir)
    source = random.Random(name)
    for call in range(1, command.calls + 1):
        way = source.choice(list(KILLS))
        folder = tmp_path / str(call)
        command.prepare(template, folder)
        done = forked(command.arguments, folder, Fault(call, KILLS[way])).wait()
        assert done.code == -signal.SIGKILL
        judge(command, folder, f"killed {way} call {call} of {command.calls}, {done.what}")


@pytest.mark.thorough
@pytest.mark.campaign(8, 1_200)
def test_a_kill_leaves_the_old_state_or_the_new_one(trial: Trial) -> None:
    """Three of four kills are at a system call, the others at a random time."""
    command, folder = prepared(trial, KILLED[trial.number % len(KILLED)])
    way = trial.rng.randrange(8)
    if way < 6:
        call, moment = trial.rng.randint(1, command.calls), trial.rng.choice(list(KILLS))
        done = forked(command.arguments, folder, Fault(call, KILLS[moment])).wait()
        how = f"killed {moment} call {call} of {command.calls}, {done.what}"
    elif way == 6:
        process = forked(command.arguments, folder)
        time.sleep(trial.rng.random() * command.seconds)
        process.signal(signal.SIGKILL)
        done, how = process.wait(), "killed at a random time"
    else:
        # Starting the interpreter takes most of a small command's time, so count from the first file change.
        process = started(command.arguments, folder, Fault())
        before = trial.rng.randrange(command.calls)
        process.wait_for(lambda: process.page.calls > before)
        time.sleep(trial.rng.random() * 0.002)
        process.signal(signal.SIGKILL)
        done, how = process.wait(), "the installed command, killed at a random time"
    assert done.code in ({-signal.SIGKILL} if way < 6 else {0, -signal.SIGKILL}), how
    judge(command, folder, f"{command.name}: {how}, {done.code}")


@pytest.mark.thorough
@pytest.mark.parametrize("way", KILLS)
def test_a_kill_comes_at_its_call(tmp_path: Path, state_dir: Path, way: str) -> None:
    """An export is killed at its one write: the unfinished file holds nothing, half of the data or all of it."""
    template, command = learned("db_export", state_dir)
    command.prepare(template, tmp_path)
    done = started(command.arguments, tmp_path, Fault(2, KILLS[way])).wait()
    assert done.code == -signal.SIGKILL
    assert done.what.startswith("write ")
    (unfinished,) = tmp_path.glob(".out.txt.*")
    whole = command.learned["new"]
    wanted = {"before": b"", "after": whole, "in the middle of": whole[: len(whole) // 2]}[way]
    assert unfinished.read_bytes() == wanted
    assert (tmp_path / "out.txt").read_bytes() == command.learned["old"]


@pytest.mark.thorough
def test_calls_fail_and_are_cut_short_as_asked(tmp_path: Path, state_dir: Path) -> None:
    """Source: the system's message for ENOSPC; a short write must be completed."""
    template, command = learned("db_export", state_dir)
    for fault, state, words in (
        (Fault(2, faults.FAIL, 28), "old", "No space left on device"),
        (Fault(2, faults.SHORT), "new", ""),
        (Fault(999, faults.KILL_BEFORE), "new", ""),
    ):
        folder = tmp_path / f"fail-{fault.at}-{fault.action}"
        command.prepare(template, folder)
        done = started(command.arguments, folder, fault).wait()
        assert done.check_end() == (state == "new")
        assert words in done.text
        assert command.state(folder) == state

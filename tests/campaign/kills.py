"""kill -9 at any moment: at every system call that changes a file (before it, after it, in the middle of a write),
and at random times of a command that was started as a user starts it.

After each kill the judge of `commands.py` checks the disk: the content is the old or the new one, nothing is
half-written, the store is intact, and the next command succeeds and gives the same bytes as an undisturbed run.
"""

import random
import signal
import time
from pathlib import Path

from tests.campaign import faults
from tests.campaign.commands import BETWEEN, Command, prepared
from tests.campaign.faults import Fault
from tests.campaign.processes import forked, started, wait_for
from tests.campaign.trials import Trial


def moments(name: str, seed: int, calls: int) -> list[tuple[int, str]]:
    """Return every call with every way to be killed at it, in random order: first each call in one of the ways."""
    rng = random.Random(f"{name} {seed}")
    ways = {call: rng.sample(list(faults.KILLS), 3) for call in range(1, calls + 1)}
    return [(call, ways[call][turn]) for turn in range(3) for call in rng.sample(list(ways), calls)]


def kill(trial: Trial) -> None:
    """Kill the command of the part: three of four kills are at a system call, the others at a random time."""
    name = trial.part.removeprefix("kill_")
    command, folder = prepared(trial, name)
    group, index = divmod(trial.number, 4)
    if index < 3:
        every = moments(name, trial.seed, command.calls)
        call, way = every[(3 * group + index) % len(every)]
        done = forked(command.arguments, folder, Fault(call, faults.KILLS[way])).wait()
        how = f"killed {way} call {call} of {command.calls}, {done.what}"
        trial.counts["kills at system calls"] += done.code == -signal.SIGKILL
    elif group % 2:
        process = forked(command.arguments, folder)
        time.sleep(trial.rng.random() * command.seconds)
        process.signal(signal.SIGKILL)
        done = process.wait()
        how = "killed at a random time"
        trial.counts["kills at random times"] += done.code == -signal.SIGKILL
    else:
        # Starting the interpreter takes most of a small command's time, so count from the first file change.
        process = started(command.arguments, folder, Fault())
        before = trial.rng.randrange(command.calls)
        wait_for(lambda: process.page.calls > before, process)
        time.sleep(trial.rng.random() * 0.002)
        process.signal(signal.SIGKILL)
        done = process.wait()
        how = "the installed command, killed at a random time"
        trial.counts["kills of the installed command"] += done.code == -signal.SIGKILL
    trial.counts["ended before the kill"] += done.code != -signal.SIGKILL
    judge(trial, command, folder, how)


def judge(trial: Trial, command: Command, folder: Path, how: str) -> str:
    """Check what a disturbance left and what the next command does; every problem names its cause."""
    n_before = len(trial.problems)
    state = command.state(trial, folder)
    trial.counts[f"left {state}"] += 1
    if state == BETWEEN or len(trial.problems) == n_before:
        command.go_on(trial, folder, state)
    trial.problems[n_before:] = [f"{how}: {problem}" for problem in trial.problems[n_before:]]
    return state

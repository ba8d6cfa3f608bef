"""Limits on memory: a command without the memory that it needs fails with one line or is killed; nothing is damaged.

The installed command is started with a limit on its address space, drawn between what the interpreter alone needs and
what the command needs. If the interpreter cannot even load the program, the messages are the interpreter's; such trials
are counted separately. The expected states on the disk come from undisturbed runs (`commands.py`).
"""

import resource
from functools import cache
from pathlib import Path

from tests.campaign.commands import NEW, learned, prepared
from tests.campaign.disks import NAMES
from tests.campaign.kills import judge
from tests.campaign.processes import started
from tests.campaign.trials import Trial

MIB = 1 << 20
LEAST_BYTES = 24 * MIB


@cache
def enough(name: str, state_dir: Path) -> int:
    """Return approximately the smallest address space with which a command succeeds, in bytes."""
    template, command = learned(name, state_dir)
    low, high = LEAST_BYTES, 4096 * MIB
    while high - low > 16 * MIB:
        middle = (low + high) // 2
        folder = state_dir / f"enough-{name}-{middle}"
        command.prepare(template, folder)
        done = started(command.arguments, folder, limits={resource.RLIMIT_AS: middle}).wait()
        low, high = (low, middle) if done.code == 0 else (middle, high)
    return high


def one_limit(trial: Trial) -> None:
    """Run one command with one limit: most limits are just below its need, so that its own work fails."""
    name = NAMES[trial.number % len(NAMES)]
    command, folder = prepared(trial, name)
    need = enough(name, trial.state_dir)
    if trial.rng.random() < 0.7:
        limit = need - trial.rng.randrange(48 * MIB)
    else:
        limit = trial.rng.randrange(LEAST_BYTES, need + 8 * MIB)
    done = started(command.arguments, folder, limits={resource.RLIMIT_AS: limit}).wait()
    how = f"{name} in {limit / MIB:.1f} MiB of {need / MIB:.0f}"
    state = judge(trial, command, folder, how)
    if done.code == 0:
        trial.check(state == NEW, f"{how}: exit code 0, but the state is {state}")
        trial.counts["ended well"] += 1
    elif done.code == 1 and len(done.errors) == 1 and "Traceback" not in done.text:
        trial.counts["ended with one clear line"] += 1
    elif done.code < 0:
        trial.counts["ended by the system"] += 1
    else:
        # While modules are loaded, before the command's own work begins, the messages are the interpreter's, which says
        # something else where it has no memory for the exception.
        trial.counts["ended in the interpreter's words"] += 1
        words = ("ImportError", "MemoryError", "without exception set", "without setting an exception")
        loading = any(word in done.text for word in (*words, "cannot allocate", "Fatal Python"))
        known = loading or "OpenBLAS" in done.text or not done.text.strip()
        trial.check(known, f"{how}: exit code {done.code}: {done.text[-400:]}")

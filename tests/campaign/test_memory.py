"""Limits on memory: a command without the memory that it needs fails with one line or is killed; nothing is damaged.

The installed command is started with a limit on its address space, drawn between what the interpreter alone needs and
what the command needs. If the interpreter cannot even load the program, the messages are the interpreter's. The
expected states on the disk come from undisturbed runs (`commands.py`).
"""

import resource
from functools import cache
from pathlib import Path

import pytest

from tests.campaign.commands import NAMES, NEW, judge, learned, prepared
from tests.campaign.program import started
from tests.campaign.trials import Trial

MIB = 1 << 20
LEAST_BYTES = 24 * MIB
LOADING = (
    "ImportError", "MemoryError", "without exception set", "without setting an exception", "cannot allocate",
    "Fatal Python", "OpenBLAS",
)  # fmt: skip
"""Words of the interpreter, while modules are loaded; it says something else where it has no memory for the exception.
"""


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


@pytest.mark.thorough
@pytest.mark.peer("gcc")
@pytest.mark.campaign(0, 220)
def test_a_command_without_memory_says_so_and_damages_nothing(trial: Trial) -> None:
    """Most limits are just below the command's need, so that its own work fails."""
    name = NAMES[trial.number % len(NAMES)]
    command, folder = prepared(trial, name)
    need = enough(name, trial.state_dir)
    if trial.rng.random() < 0.7:
        limit = need - trial.rng.randrange(48 * MIB)
    else:
        limit = trial.rng.randrange(LEAST_BYTES, need + 8 * MIB)
    done = started(command.arguments, folder, limits={resource.RLIMIT_AS: limit}).wait()
    how = f"{name} in {limit / MIB:.1f} MiB of {need / MIB:.0f}, exit code {done.code}: {done.text[-400:]}"
    state = judge(command, folder, how)
    assert done.code != 0 or state == NEW, how
    is_clear = done.code == 1 and len(done.errors) == 1 and "Traceback" not in done.text
    is_loading = not done.text.strip() or any(word in done.text for word in LOADING)
    assert done.code <= 0 or is_clear or is_loading, how

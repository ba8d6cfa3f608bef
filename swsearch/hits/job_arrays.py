"""The share of a batch that a task of a scheduler's job array searches, from the variables that the scheduler sets.

:func:`asked_shard` takes the value of ``--shard`` and an environment, and returns a
:class:`~swsearch.hits.share.Shard`. What each scheduler sets, for an array of 8 tasks that was submitted with ``1-8``:

==================  ====================  =============================================================
scheduler           number of the task    other variables
==================  ====================  =============================================================
Slurm               SLURM_ARRAY_TASK_ID   SLURM_ARRAY_TASK_MIN, _MAX, _STEP and _COUNT
LSF                 LSB_JOBINDEX          LSB_JOBINDEX_END and _STEP, not the first number
Grid Engine         SGE_TASK_ID           SGE_TASK_FIRST, _LAST and _STEPSIZE
PBS Pro, OpenPBS    PBS_ARRAY_INDEX       none
Torque              PBS_ARRAYID           none
==================  ====================  =============================================================

Outside arrays, LSF sets the number 0 and Grid Engine the word ``undefined``.

:func:`is_queued_again` tells whether the scheduler has started this job before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from swsearch.errors import InputError
from swsearch.hits.share import MAX_SHARES, Shard

AUTO: Final = "auto"


@dataclass(frozen=True)
class _Scheduler:
    """The variables of a scheduler; empty names are those that it does not set. ``example`` submits 8 tasks."""

    name: str
    task: str
    example: str
    last: str = ""
    first: str = ""
    step: str = ""
    count: str = ""
    outside: str = ""
    """The value of ``task`` in a job that is not part of an array."""


_SCHEDULERS: Final = (
    _Scheduler(
        "Slurm",
        "SLURM_ARRAY_TASK_ID",
        "sbatch --array=1-8",
        last="SLURM_ARRAY_TASK_MAX",
        first="SLURM_ARRAY_TASK_MIN",
        step="SLURM_ARRAY_TASK_STEP",
        count="SLURM_ARRAY_TASK_COUNT",
    ),
    _Scheduler(
        "LSF", "LSB_JOBINDEX", 'bsub -J "name[1-8]"', last="LSB_JOBINDEX_END", step="LSB_JOBINDEX_STEP", outside="0"
    ),
    _Scheduler(
        "Grid Engine",
        "SGE_TASK_ID",
        "qsub -t 1-8",
        last="SGE_TASK_LAST",
        first="SGE_TASK_FIRST",
        step="SGE_TASK_STEPSIZE",
        outside="undefined",
    ),
    _Scheduler("PBS", "PBS_ARRAY_INDEX", "qsub -J 1-8"),
    _Scheduler("Torque", "PBS_ARRAYID", "qsub -t 1-8"),
)
"""In order of precedence: a plug-in of Slurm can set the variables of PBS too."""


def asked_shard(text: str, environment: Mapping[str, str]) -> Shard:
    """The share that a value of ``--shard`` denotes.

    Parameters
    ----------
    text : str
        ``i/n``; or ``auto``: the place of this task among the tasks of its array; or ``auto/n``: the number of this
        task, of n shares. Only the last form works where the scheduler does not tell the number of tasks, and where
        some tasks of an array are submitted again.
    environment : mapping of str to str

    Raises
    ------
    InputError
        The text has another form; or this process is not a task of an array, or the scheduler's variables are
        incomplete, or do not describe an array from which the share follows.

    >>> slurm = {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "0",
    ...          "SLURM_ARRAY_TASK_MAX": "4", "SLURM_ARRAY_TASK_STEP": "2"}
    >>> print(asked_shard("auto", slurm), asked_shard("auto/8", {"PBS_ARRAY_INDEX": "3"}), asked_shard("1/4", {}))
    2/3 3/8 1/4
    """
    word, slash, count = text.partition("/")
    if word != AUTO:
        return Shard.parse(text)
    scheduler, task = _task(text, environment)
    if not slash:
        return _place(scheduler, task, environment)
    try:
        n_shares = Shard.parse(f"1/{count}").count
    except InputError:
        raise InputError(
            f"--shard {text[:40]!r}: give auto, or auto/n with the number of shares, such as auto/8"
        ) from None
    if not 1 <= task <= n_shares:
        problem = f"{scheduler.task} is {task}, and the shares are 1 to {n_shares:,}"
        advice = f"number the tasks from 1, such as `{scheduler.example}` for auto/8"
        raise InputError(f"--shard {text}: {problem}; {advice}")
    return Shard(task, n_shares)


def is_queued_again(environment: Mapping[str, str]) -> bool:
    """Whether this process belongs to a job that Slurm, LSF or Grid Engine has queued again.

    Before a scheduler starts a job again, it has ended the processes of the earlier attempt, wherever they were. PBS
    and Torque do not tell; for their jobs, the result is False.

    >>> is_queued_again({"SLURM_RESTART_COUNT": "1"}), is_queued_again({"SLURM_JOB_ID": "7"})
    (True, False)
    """
    return (
        environment.get("SLURM_RESTART_COUNT", "0") not in ("", "0")
        or environment.get("LSB_RESTART", "") == "Y"
        or (environment.get("RESTARTED", "0") == "1" and "SGE_TASK_ID" in environment)
    )


def _task(text: str, environment: Mapping[str, str]) -> tuple[_Scheduler, int]:
    """The scheduler of this process, and the number of its task."""
    for scheduler in _SCHEDULERS:
        if environment.get(scheduler.task, "") not in ("", scheduler.outside):
            return scheduler, _number(text, scheduler.task, environment)
    known = ", ".join(scheduler.task for scheduler in _SCHEDULERS)
    raise InputError(
        f"--shard {text}: this is no task of a job array (none of {known} is set); give the share, such as --shard 3/8"
    )


def _place(scheduler: _Scheduler, task: int, environment: Mapping[str, str]) -> Shard:
    """The place of a task among all tasks of its array."""
    with_number = f"number the tasks from 1 and give their number: `{scheduler.example}` and --shard auto/8"
    if not scheduler.last:
        raise InputError(f"--shard auto: {scheduler.name} does not tell how many tasks an array has; {with_number}")
    last = _number(AUTO, scheduler.last, environment)
    first = _number(AUTO, scheduler.first, environment) if scheduler.first else 1
    step = _number(AUTO, scheduler.step, environment) if scheduler.step in environment else 1
    numbers = range(first, last + 1, max(step, 1))
    described = f"{scheduler.name} describes task {task} of an array from {first} to {last}, step {step}"
    if first > 1:
        # The tasks of an array that failed are submitted again in this way; they would divide the batch anew.
        raise InputError(f"--shard auto: {described}; {with_number}, which also holds for tasks submitted again")
    is_regular = not scheduler.count or _number(AUTO, scheduler.count, environment) == len(numbers)
    if task not in numbers or not is_regular:
        raise InputError(f"--shard auto: {described}, which are not all of its tasks; {with_number}")
    return Shard(numbers.index(task) + 1, len(numbers))


def _number(text: str, variable: str, environment: Mapping[str, str]) -> int:
    value = environment.get(variable, "")
    if not value:
        raise InputError(f"--shard {text}: {variable} is not set; give the share, such as --shard 3/8")
    if not (value.isascii() and value.isdecimal() and len(value) <= len(str(MAX_SHARES))):
        raise InputError(
            f"--shard {text}: {variable} is {value[:40]!r}, no number; give the share, such as --shard 3/8"
        )
    return int(value)

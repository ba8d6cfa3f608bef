"""Shards: the queries that a run searches, as a part of the queries of some files, and the tasks of job arrays.

A run stores the description of its queries with its results. The description determines the missing queries of a run,
and distinguishes the shards of one batch from other runs.

:func:`asked_shard` gives the shard of a task of a scheduler's job array, from the value of ``--shard`` and the
variables that the scheduler sets. What each scheduler sets, for an array of 8 tasks that was submitted with ``1-8``:

==================  ====================  =============================================================
scheduler           number of the task    other variables
==================  ====================  =============================================================
Slurm               SLURM_ARRAY_TASK_ID   SLURM_ARRAY_TASK_MIN, _MAX, _STEP and _COUNT
LSF                 LSB_JOBINDEX          LSB_JOBINDEX_END and _STEP, not the first number
Grid Engine         SGE_TASK_ID           SGE_TASK_FIRST, _LAST and _STEPSIZE
PBS Pro, OpenPBS    PBS_ARRAY_INDEX       none
Torque              PBS_ARRAYID           none
==================  ====================  =============================================================

Outside arrays, LSF sets the number 0 and Grid Engine the word ``undefined``. :func:`is_queued_again` tells whether the
scheduler has started this job before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from swsearch.errors import InputError

MAX_SHARES: Final = 999_999_999
"""Largest number of shards. It is larger than any job array, and within the integer range of every SQL database."""
PLACEHOLDER: Final = "{shard}"
"""The text in a file's name that stands for the shard."""


@dataclass(frozen=True)
class Shard:
    """Shard ``index`` of ``count`` shards of a batch, from 1; a shard is every ``count``-th query.

    >>> Shard.parse("2/4").holds(5), Shard.parse("2/4").holds(6)
    (True, False)
    """

    index: int = 1
    count: int = 1

    @staticmethod
    def parse(text: str) -> Shard:
        """The shard that a text of the form ``i/n`` denotes.

        Raises
        ------
        InputError
            The text is not of the form ``i/n`` with 1 ≤ i ≤ n.
        """
        index, slash, count = text.partition("/")
        if slash and _is_number(index) and _is_number(count) and 1 <= int(index) <= int(count):
            return Shard(int(index), int(count))
        forms = f"give i/n with 1 <= i <= n <= {MAX_SHARES:,}, such as 2/8, or auto in a job array"
        raise InputError(f"--shard {text[:40]!r}: {forms}")

    @property
    def label(self) -> str:
        """The shard as part of a file's name, with leading zeros so that names sort by shard.

        >>> Shard(3, 8).label, Shard(3, 10).label
        ('3-of-8', '03-of-10')
        """
        return f"{self.index:0{len(str(self.count))}}-of-{self.count}"

    def named(self, name: str) -> str:
        """A name of a file with :attr:`label` in place of :data:`PLACEHOLDER`.

        >>> Shard(3, 8).named("hits-{shard}.sqlite")
        'hits-3-of-8.sqlite'
        """
        return name.replace(PLACEHOLDER, self.label)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def holds(self, number: int) -> bool:
        """Whether the query with this number belongs to the shard."""
        return number % self.count == self.index - 1

    def contains(self, other: Shard) -> bool:
        """Whether every query of ``other`` also belongs to this shard, for any number of queries.

        >>> Shard(1, 2).contains(Shard(3, 4)), Shard(1, 2).contains(Shard(2, 4)), Shard(1, 1).contains(Shard(2, 4))
        (True, False, True)
        """
        return other.count % self.count == 0 and self.holds(other.index - 1)

    def numbers(self, n_queries: int) -> range:
        """The numbers of the shard's queries if the files contain ``n_queries`` queries."""
        return range(self.index - 1, n_queries, self.count)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_SHARES))


@dataclass(frozen=True)
class AskedQueries:
    """The queries that a run is to search.

    Attributes
    ----------
    shard : Shard
        The shard of the files' queries.
    n_queries : int or None
        Number of queries of the files, over all shards and including records that cannot be searched; None until they
        are counted.
    digest : str or None
        SHA-256 of all these queries in their order, in hexadecimal; it depends neither on their distribution over files
        nor on the paths of the files. None until they are read.
    """

    shard: Shard = Shard()
    n_queries: int | None = None
    digest: str | None = None

    @property
    def n_of_shard(self) -> int | None:
        """Number of queries of the shard; None until it is known."""
        return None if self.n_queries is None else len(self.shard.numbers(self.n_queries))


@dataclass(frozen=True)
class Failure:
    """A query that could not be searched.

    Attributes
    ----------
    number : int
        Index of the query in the run, from 0.
    reason : str
        The problem, its location, and what to do.
    """

    number: int
    reason: str


def query_digest(header: str, letters: str) -> str:
    """SHA-256 of a query as it was written, in hexadecimal: the same text gives the same digest on every machine."""
    return hashlib.sha256(f"{header}\n{letters}".encode("utf-8", "surrogatepass")).hexdigest()


class RecordCount:
    """Counts queries while they are read, and computes the digest that identifies them."""

    def __init__(self) -> None:
        self.n_queries = 0
        self._digest = hashlib.sha256()

    def add(self, header: str, letters: str) -> None:
        """Count one query; for a record that is not a sequence, ``header`` is its first word and ``letters`` empty."""
        self.n_queries += 1
        self._digest.update(f"{header}\n{letters}\n".encode("utf-8", "surrogatepass"))

    def asked(self, shard: Shard) -> AskedQueries:
        """The description of the counted queries, of which the shard ``shard`` is searched."""
        return AskedQueries(shard, self.n_queries, self._digest.hexdigest())


def all_of(queries: Iterable[tuple[str, str]]) -> AskedQueries:
    """The description of queries with these headers and letters, if all of them are searched."""
    count = RecordCount()
    for header, letters in queries:
        count.add(header, letters)
    return count.asked(Shard())


# --- job arrays ---


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
    """The shard that a value of ``--shard`` denotes.

    Parameters
    ----------
    text : str
        ``i/n``; or ``auto``: the place of this task among the tasks of its array; or ``auto/n``: the number of this
        task, of n shards. Only the last form works where the scheduler does not tell the number of tasks, and where
        some tasks of an array are submitted again.
    environment : mapping of str to str

    Raises
    ------
    InputError
        The text has another form; or this process is not a task of an array, or the scheduler's variables are
        incomplete, or do not describe an array from which the shard follows.

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
        n_shards = Shard.parse(f"1/{count}").count
    except InputError:
        raise InputError(
            f"--shard {text[:40]!r}: give auto, or auto/n with the number of shards, such as auto/8"
        ) from None
    if not 1 <= task <= n_shards:
        problem = f"{scheduler.task} is {task}, and the shards are 1 to {n_shards:,}"
        advice = f"number the tasks from 1, such as `{scheduler.example}` for auto/8"
        raise InputError(f"--shard {text}: {problem}; {advice}")
    return Shard(task, n_shards)


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
        f"--shard {text}: this is not a task of a job array (none of {known} is set); give the shard: --shard 3/8"
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
        raise InputError(f"--shard {text}: {variable} is not set; give the shard, such as --shard 3/8")
    if not _is_number(value):
        raise InputError(
            f"--shard {text}: {variable} is {value[:40]!r}, not a number; give the shard, such as --shard 3/8"
        )
    return int(value)

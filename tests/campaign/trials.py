"""Numbered trials of a part, each determined by part, seed and number alone."""

import math
import random
import shutil
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Outcome:
    """What came of the trials of a part: the numbers of those that were run, and what broke in those that failed."""

    trials: list[int] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    left_out: str = ""  # why the part cannot be run here


class LeftOut(Exception):
    """A trial cannot be run here, nor can the others of its part; the message says why."""


@dataclass
class Trial:
    """One running trial.

    Attributes
    ----------
    part, seed, number
        What determines the trial.
    folder : Path
        An empty folder of its own; retained if the trial fails.
    rng : random.Random
    state_dir : Path
        The part's folder for data that trials share.
    ends : float
        The monotonic time at which the part's time is spent.
    problems : list of str
        What broke; one line each.
    counts : Counter
        Counts that the part adds up.
    """

    part: str
    seed: int
    number: int
    folder: Path
    state_dir: Path
    ends: float = math.inf
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.part} {self.seed} {self.number}")

    def array_rng(self) -> np.random.Generator:
        """Return a generator for arrays, determined in the same way."""
        return np.random.default_rng([self.seed, self.number, zlib.crc32(self.part.encode())])

    def check(self, holds: object, problem: str) -> bool:
        """Note a problem unless the condition holds; return whether it held."""
        if not holds:
            self.problems.append(problem)
        return bool(holds)


def run_trials(
    part: str, run: Callable[[Trial], None], numbers: Iterable[int], seed: int, state_dir: Path, seconds: float
) -> Outcome:
    """Run the trials with these numbers until the time is spent; one that has begun is finished."""
    ends = time.monotonic() + seconds
    outcome = Outcome()
    for number in numbers:
        if time.monotonic() >= ends:
            break
        trial = Trial(part, seed, number, state_dir / f"trial-{seed}-{number}", state_dir, ends)
        trial.folder.mkdir()
        try:
            run(trial)
        except LeftOut as error:
            outcome.left_out = str(error)
            break
        except Exception as error:  # the others are run, too; an exception in a trial counts as a failure
            frame = traceback.extract_tb(error.__traceback__)[-1]
            trial.problems.append(f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {error}")
        outcome.trials.append(number)
        outcome.counts.update(trial.counts)
        if trial.problems:
            outcome.failures[number] = "; ".join(map(_one_line, trial.problems[:3]))
            (trial.folder / "problems.txt").write_text("\n".join(trial.problems) + "\n")
        else:
            shutil.rmtree(trial.folder, ignore_errors=True)
    return outcome


def _one_line(problem: str) -> str:
    words = " ".join(problem.split())
    return words if len(words) <= 500 else f"{words[:240]} … {words[-240:]}"

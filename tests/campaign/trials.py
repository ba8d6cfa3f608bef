"""The loop that most parts use: numbered trials, each determined by part, seed and number, recorded as they end."""

import json
import math
import os
import random
import shutil
import subprocess
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Budget:
    """The limits of a part: it ends at whichever limit it reaches first."""

    trials: int  # number of trials to run, including those that an earlier, killed call has finished
    seconds: float  # wall time; a trial that has begun is finished
    first: int = 0  # number of the first trial: trials first, first + 1, …, first + trials - 1


@dataclass
class Outcome:
    trials: int = 0  # trials that were run
    survived: int = 0  # trials in which every promise held
    failures: list[str] = field(
        default_factory=list
    )  # one line each: what broke, and the part, seed and trial to repeat it
    notes: list[str] = field(default_factory=list)  # what was omitted and why; counts that belong in the summary


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
        The monotonic time at which the part's budget is spent.
    problems : list of str
        What broke; one line each.
    counts : Counter
        Counts that the summary adds up.
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


def run_trials(part: str, trial: Callable[[Trial], None], budget: Budget, seed: int, state_dir: Path) -> Outcome:
    """Run the trials of a part that its state does not yet contain, until the budget is spent."""
    ends = time.monotonic() + budget.seconds
    state_dir.mkdir(parents=True, exist_ok=True)
    journal = state_dir / f"seed-{seed}.jsonl"
    done = _read(journal)
    with open(journal, "a", encoding="utf-8") as file:
        if journal.stat().st_size and not journal.read_bytes().endswith(b"\n"):
            file.write("\n")  # ends the last line of a campaign that was killed
        for number in range(budget.first, budget.first + budget.trials):
            if number in done:
                continue
            if time.monotonic() >= ends:
                break
            try:
                entry = _run_one(part, trial, seed, number, state_dir, ends)
            except LeftOut as error:
                return Outcome(notes=[f"left out: {error}"])
            done[number] = entry
            file.write(json.dumps(entry) + "\n")
            file.flush()
    return _outcome(part, seed, [entry for number, entry in sorted(done.items()) if number >= budget.first])


def _run_one(
    part: str, trial: Callable[[Trial], None], seed: int, number: int, state_dir: Path, ends: float
) -> dict[str, Any]:
    folder = state_dir / f"trial-{seed}-{number}"
    if os.path.ismount(folder / "work"):  # a campaign that was killed could not unmount its small disk
        subprocess.run(["umount", "-l", str(folder / "work")], check=False)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    under_way = Trial(part, seed, number, folder, state_dir, ends)
    began = time.monotonic()
    try:
        trial(under_way)
    except LeftOut:
        folder.rmdir()
        raise
    except Exception as error:  # the campaign continues; an exception in a trial counts as a failure
        frame = traceback.extract_tb(error.__traceback__)[-1]
        under_way.problems.append(f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {error}")
    if under_way.problems:
        saved = state_dir / "failed" / folder.name
        shutil.rmtree(saved, ignore_errors=True)
        saved.parent.mkdir(exist_ok=True)
        folder.rename(saved)
        (saved / "problems.txt").write_text("\n".join(under_way.problems) + "\n")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "trial": number,
        "seconds": round(time.monotonic() - began, 3),
        "problems": under_way.problems,
        "counts": dict(under_way.counts),
    }


def _read(journal: Path) -> dict[int, dict[str, Any]]:
    done: dict[int, dict[str, Any]] = {}
    if journal.exists():
        for line in journal.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # half written when the campaign was killed: the trial runs again
            done[entry["trial"]] = entry
    return done


def _outcome(part: str, seed: int, entries: list[dict[str, Any]]) -> Outcome:
    outcome = Outcome(len(entries), sum(not entry["problems"] for entry in entries))
    counts: Counter[str] = Counter()
    for entry in entries:
        counts.update(entry["counts"])
        if entry["problems"]:
            again = f"python -m tests.campaign --part {part} --seed {seed} --trial {entry['trial']}"
            outcome.failures.append(f"{again}: " + "; ".join(map(_one_line, entry["problems"][:3])))
    outcome.notes = noted(counts)
    return outcome


def _one_line(problem: str) -> str:
    words = " ".join(problem.split())
    return words if len(words) <= 500 else f"{words[:240]} … {words[-240:]}"


def noted(counts: Mapping[str, int]) -> list[str]:
    """Return counts in the form of the summary."""
    return [f"{name}: {n:,}" for name, n in sorted(counts.items())]

"""Lists of hits against complete lists that are cut afterwards.

A trial is one database of data that hurt, with some dozens of searches and reports; ``tests/search/list_cases.py``
draws them, and ``tests/search/complete_lists.py`` is their judge.
"""

from __future__ import annotations

from pathlib import Path

from tests.campaign.parts import Budget, Outcome
from tests.campaign.trials import Trial, run_trials
from tests.search.list_cases import World, failures

N_CASES = 40


def trial(trial: Trial) -> None:
    """Search one database in many ways."""
    folder = trial.folder / "world"
    folder.mkdir()
    with World(trial.seed, trial.number, folder) as world:
        for message in failures(world, range(N_CASES)):
            trial.check(False, message)
        trial.counts.update(world.counts)


def run(budget: Budget, seed: int, state_dir: Path) -> Outcome:
    """Run the part `lists`."""
    return run_trials("lists", trial, budget, seed, state_dir)

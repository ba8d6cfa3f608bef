"""Lists of hits against complete lists that are cut afterwards.

A trial is one database of data that hurt, with some dozens of searches and reports; ``tests/search/list_cases.py``
draws them, and ``tests/search/complete_lists.py`` is their judge.
"""

import shutil
from dataclasses import replace

from tests.campaign.trials import Trial
from tests.search.list_cases import NARROWED, World, draw_case, failures

N_CASES = 40
EMULATED_EVERY = 8
N_EMULATED = 4


def trial(trial: Trial) -> None:
    """Search one database in many ways."""
    folder = trial.folder / "world"
    folder.mkdir()
    with World(trial.seed, trial.number, folder) as world:
        for message in failures(world, range(N_CASES)):
            trial.check(False, message)
        if trial.number % EMULATED_EVERY == 0 and shutil.which("g++"):
            for case in (draw_case(world, number) for number in range(N_EMULATED)):
                if case.way != NARROWED:
                    found = world.problems(replace(case, way="emulated GPU"))
                    trial.check(not found, f"emulated GPU, {case.queries} {case.options}: {found}")
        trial.counts.update(world.counts)

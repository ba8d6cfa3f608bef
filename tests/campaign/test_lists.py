"""Lists of hits against complete lists that are cut afterwards: many more cases of tests/search/test_complete_lists.py.

A trial is one database of data that hurt, with some dozens of searches and reports.
"""

import shutil
from dataclasses import replace

import pytest

from tests.campaign.trials import Trial
from tests.search.list_cases import NARROWED, World, draw_case, failures

N_CASES = 40
EMULATED_EVERY = 8
N_EMULATED = 4


@pytest.mark.thorough
@pytest.mark.campaign(0, 500)
def test_every_list_is_the_complete_list_cut_afterwards(trial: Trial) -> None:
    with World(trial.seed, trial.number, trial.folder) as world:
        found = failures(world, range(N_CASES))
        assert not found, "\n" + "\n".join(found)
        if trial.number % EMULATED_EVERY == 0 and shutil.which("g++"):
            for case in (draw_case(world, number) for number in range(N_EMULATED)):
                if case.way != NARROWED:
                    assert not world.problems(replace(case, way="emulated GPU")), f"{case.queries} {case.options}"

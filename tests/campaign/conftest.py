"""The campaign: tests that draw their cases at random, a few in ``make test-all`` and thousands in ``make campaign``.

``@pytest.mark.campaign(few, hourly)`` stands for the numbers of trials in ``make test-all`` and in an hour of two
processor cores; the fixture ``trial`` is one of them. A failure is repeated by the name that pytest prints, with the
options of the run: ``pytest --campaign 60 --campaign-seed 2 'tests/campaign/test_kills.py::test_…[17]'``.
"""

import math
from pathlib import Path

import pytest

from tests.campaign.trials import Trial
from tests.store.conftest import postgres

__all__ = ["postgres"]  # a fixture


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Number the trials of each test; one that has none here is listed as skipped, so that its absence is seen."""
    if "trial" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("campaign")
    assert mark is not None, f"{metafunc.definition.nodeid} says not how many trials it has"
    few, hourly = mark.args
    minutes = metafunc.config.getoption("--campaign")
    n_trials = few if minutes is None else math.ceil(hourly * minutes / 60)
    rather_skipped = pytest.param(0, marks=pytest.mark.skip("runs in `make campaign`"))
    metafunc.parametrize("trial", list(range(n_trials)) or [rather_skipped], indirect=True, ids=str)


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for data that trials share."""
    return tmp_path_factory.mktemp("campaign")


@pytest.fixture
def trial(request: pytest.FixtureRequest, tmp_path: Path, state_dir: Path) -> Trial:
    """One numbered trial of a test."""
    option = request.config.getoption
    seconds = 5.0 if option("--campaign") is None else 30.0
    return Trial(request.function.__name__, option("--campaign-seed"), request.param, tmp_path, state_dir, seconds)

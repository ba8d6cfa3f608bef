"""The campaign: each part is a test, with a few trials in ``make test-all`` (one part in ``make test``, too), and
thousands in ``make campaign``.

    pytest tests/campaign/test_parts.py --campaign 60                                    # an hour
    pytest 'tests/campaign/test_parts.py::test_part[readers]' --campaign-seed 1 --campaign-trial 17

Part, seed and number determine a trial. Expected values: each part's judge.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign.faults import shim
from tests.campaign.parts import PARTS, Part

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.timeout(0), pytest.mark.peer("gcc")]
OFTEN = "kill_db_remove"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Without an option, the parts of ``make test-all``; the longest come first."""
    option = metafunc.config.getoption
    chosen = [part for part in PARTS if part.small or option("--campaign") or option("--campaign-trial") is not None]
    parts = [
        pytest.param(part, id=part.name, marks=() if part.name == OFTEN else pytest.mark.thorough)
        for part in sorted(chosen, key=lambda part: -part.share)
    ]
    metafunc.parametrize("part", parts)


def test_part(part: Part, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    minutes, number, seed = map(request.config.getoption, ("--campaign", "--campaign-trial", "--campaign-seed"))
    first, n_trials, seconds = 0, part.small, 3600.0
    if number is not None:
        first, n_trials = number, 1
    elif minutes:
        n_jobs = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        n_trials, seconds = part.trials, 60 * minutes * n_jobs * part.share / sum(one.share for one in PARTS)
    command = [sys.executable, "-m", "tests.campaign", part.name, tmp_path, *map(str, (seed, first, n_trials, seconds))]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "LD_PRELOAD": str(shim())}, check=True)
    outcome = json.loads((tmp_path / "outcome.json").read_text())
    if outcome["left_out"]:
        pytest.skip(outcome["left_out"])
    print(f"{len(outcome['trials'])} trials;", *(f"{name}: {n:,};" for name, n in sorted(outcome["counts"].items())))
    again = f"pytest '{request.node.nodeid}' --campaign-seed {seed} --campaign-trial"
    assert not outcome["failures"], "\n".join(f"{again} {one}: {words}" for one, words in outcome["failures"].items())

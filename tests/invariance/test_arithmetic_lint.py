"""The lint of arithmetic accepts the program and reports each construct that it must refuse.

The expected violations are written by hand.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[2]
LINT = REPOSITORY / "scripts" / "lint_arithmetic.py"


class Done(NamedTuple):
    returncode: int
    stdout: str


Lint = Callable[..., Done]


@pytest.fixture(scope="module")
def script():
    """The script as a module: an interpreter for each case would take most of the time."""
    specification = importlib.util.spec_from_file_location("lint_arithmetic", LINT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def lint(script, capsys) -> Lint:
    """Call the script's ``main``, whose result is its exit code."""

    def call(*arguments: object) -> Done:
        capsys.readouterr()
        return Done(script.main([str(argument) for argument in arguments]), capsys.readouterr().out)

    return call


def planted(folder: Path, name: str, source: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_text(source)
    return folder


def test_the_program_passes():
    done = subprocess.run([sys.executable, LINT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_script_ends_as_its_function_does(tmp_path, lint):
    """Source: the function, for a folder with one violation."""
    folder = planted(tmp_path, "swsearch/search/new.py", "y = sum(x)")
    done = subprocess.run([sys.executable, LINT, folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == lint(folder)
    assert done.returncode == 1


def test_make_lint_runs_it():
    (recipe,) = [part for part in (REPOSITORY / "Makefile").read_text().split("\n\n") if part.startswith("lint:")]
    assert "scripts/lint_arithmetic.py" in recipe


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import math\ny = math.exp(2.0)", "math.exp"),
        ("import math as m\ny = map(m.log1p, [2.0])", "math.log1p"),
        ("from math import sqrt, lgamma", "math.lgamma"),
        ("import numpy as np\ny = np.expm1(x)", "numpy.expm1"),
        ("from numpy import log as ln", "numpy.log"),
        ("import numpy as np\ny = np.linalg.solve(a, b)", "numpy.linalg"),
        ("from numpy.linalg import solve", "numpy.linalg"),
        ("import numpy as np\ny = np.random.default_rng(1)", "numpy.random"),
        ("import scipy.special", "scipy"),
        ("import random", "random"),
        ("y = pow(x, 0.5)", "pow"),
    ],
)
def test_functions_of_the_machine_are_refused_everywhere(tmp_path, lint, source, name):
    """By hand: one violation, on the last line."""
    for package in ("scoring", "report"):
        done = lint(planted(tmp_path / package, f"swsearch/{package}/new.py", source))
        place = f"swsearch/{package}/new.py:{len(source.splitlines())}"
        assert done.returncode == 1
        assert done.stdout == f"{place}: {name} differs between machines; take it from swsearch.deterministic\n"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("y = x.sum()", ".sum"),
        ("y = x.sum(dtype=np.float64)", ".sum"),
        ("import numpy as np\ny = np.add.reduce(x)", ".reduce"),
        ("import numpy as np\ny = np.sum(x)", "numpy.sum"),
        ("import numpy as np\ny = np.einsum('i,i', x, x)", "numpy.einsum"),
        ("y = x @ z", "@"),
        ("y @= z", "@"),
        ("y = x**2.5", "**"),
        ("y **= 2", "**"),
        ("y = 2.0**-53", "**"),
        ("y = sum(x)", "sum"),
    ],
)
def test_sums_and_powers_are_refused_where_results_are_decided(tmp_path, lint, source, name):
    """By hand; reports count integers, so the same lines are accepted there."""
    done = lint(planted(tmp_path, "swsearch/search/new.py", source))
    assert done.returncode == 1
    assert f": {name} differs between machines" in done.stdout
    assert lint(planted(tmp_path / "other", "swsearch/report/new.py", source)).returncode == 0


def test_exact_arithmetic_passes(tmp_path, lint):
    """IEEE 754's own operations, sums of integers, and the module that consists of them are accepted."""
    source = """
import math
import numpy as np
from swsearch.deterministic import exp, log, total
y = math.fsum(x) + math.sqrt(x) + np.sqrt(x) + np.rint(x) + np.cumsum(x)[-1] + total(x) + exp(x) + log(x)
n = x.sum(axis=0, dtype=np.int64) + 2**n + np.int64(2) ** n
"""
    assert lint(planted(tmp_path, "swsearch/scoring/new.py", source)).returncode == 0


def test_an_entry_that_nothing_needs_is_told(tmp_path, lint):
    """A list of exceptions stays short only if obsolete entries are reported: here the plot no longer uses ``exp``."""
    done = lint(planted(tmp_path, "swsearch/search/score_check.py", "y = 1\n"))
    assert done.returncode == 1
    assert (
        "score_check.py: numpy.exp is allowed in lint_arithmetic.py and does not occur; take the entry out"
        in done.stdout
    )

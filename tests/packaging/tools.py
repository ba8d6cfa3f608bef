"""Programs and Pythons for the checks of packages, and the sdist of the checkout."""

import os
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MINORS = (11, 12, 13, 14)


def tool(environment: str, name: str) -> str:
    """The path of a program that ``make check-packages`` installs; skips the test where it is missing."""
    path = Path(sys.prefix) / "packaging" / environment / "bin" / name
    if not path.exists():
        pytest.skip(f"needs {name} (make check-packages)")
    return str(path)


def run(*command: object, **options: object) -> str:
    """Run a command, which must succeed; returns what it prints."""
    done = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        **options,
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stdout)
    return done.stdout


@cache
def interpreter(minor: int) -> str | None:
    """A Python 3.``minor``: on ``PATH``, or in a folder that the variable ``PYTHONS`` names; None if there is none."""
    folders = filter(None, os.environ.get("PYTHONS", "").split(os.pathsep))
    candidates = [shutil.which(f"python3.{minor}", path=path) for path in (None, *folders)]
    code = f"import sys, venv; sys.exit(sys.version_info[:2] != (3, {minor}))"
    for path in candidates:
        if path and subprocess.run([path, "-c", code], capture_output=True, check=False).returncode == 0:
            return path
    return None


def needed_interpreter(minor: int) -> str:
    """A Python 3.``minor``; skips the test where there is none."""
    path = interpreter(minor)
    if path is None:
        pytest.skip(f"needs Python 3.{minor}")
    return path


def build_sdist(folder: Path) -> Path:
    """Build the sdist of the checkout as a frontend does; returns its path."""
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", code, folder, cwd=ROOT)
    (path,) = folder.glob("*.tar.gz")
    return path


def with_ccache() -> dict[str, str]:
    """The variables of this process; a build with them uses the cache of compilations, if there is one."""
    return {**os.environ, **({"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {})}

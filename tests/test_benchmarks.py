"""Every script in ``benchmarks/`` can be loaded, so that a change of the package does not break one unnoticed."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_loads(monkeypatch, script):
    """Packages that only benchmarks need may be missing; names of this package may not."""
    monkeypatch.syspath_prepend(str(script.parent))
    spec = importlib.util.spec_from_file_location(f"benchmarks_{script.stem}", script)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as missing:
        if missing.name.startswith(("swsearch", "tests")) or (script.parent / f"{missing.name}.py").exists():
            raise
        pytest.skip(f"{missing.name} is not installed")
    assert module.__doc__

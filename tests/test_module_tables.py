"""The table of modules in a package's docstring names each module of the package, and no other."""

import ast
import re
from pathlib import Path

import pytest

import swsearch

PACKAGE = Path(swsearch.__file__).parent
WITH_TABLES = sorted(
    path.parent
    for path in PACKAGE.rglob("__init__.py")
    if re.search(r"^module +holds$", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def test_there_are_packages_with_tables():
    assert PACKAGE / "engine" / "cuda" / "search" in WITH_TABLES


@pytest.mark.parametrize("folder", WITH_TABLES, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_a_table_names_each_module(folder):
    described = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    assert described is not None
    named = re.findall(r"^``(\w+)``  ", described, re.MULTILINE)
    assert sorted(named) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")

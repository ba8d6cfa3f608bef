"""Counts what the program weighs, and fails where a count is above its limit.

    python scripts/house.py [--accept]

The limits are the values of ``scripts/house.json``. A count that has become smaller lowers its limit with ``--accept``,
which never raises one: a limit is raised by hand, with the reason in the message of the commit.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parents[1]
LIMITS = TOP / "scripts" / "house.json"
SMALL_FILE = 80
MOST_PARAMETERS = 8
NATIVE = (".cpp", ".hpp", ".cu", ".cuh", ".h", ".c")


def lines_of(paths: Iterator[Path] | list[Path]) -> int:
    """Number of lines of some files."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def words_of(*names: str) -> int:
    """Number of words of Markdown files or of all below a folder, without blocks of code."""
    texts = [path.read_text(encoding="utf-8") for name in names for path in _markdown(TOP / name)]
    return sum(len(part.split()) for text in texts for part in text.split("```")[::2])


def _markdown(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.md"))


def counts() -> dict[str, int]:
    """Each measure and its present value."""
    sources = sorted((TOP / "swsearch").rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sources}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    modules = Counter(path.name for path in sources if path.name != "__init__.py")
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    n_lines = lines_of(sources)
    tests = sorted((TOP / "tests").rglob("*.py"))
    native = [path for folder in ("simd", "cuda") for path in (TOP / folder).rglob("*") if path.suffix in NATIVE]
    return {
        "lines of swsearch": n_lines,
        "files of swsearch": len(sources),
        "classes of swsearch": classes.total(),
        "class names defined twice": sum(n > 1 for n in classes.values()),
        "module names in several folders": sum(n > 1 for n in modules.values()),
        f"files of swsearch under {SMALL_FILE} lines": sum(
            path.name != "__init__.py" and lines_of([path]) < SMALL_FILE for path in sources
        ),
        "lines of imports, per thousand": 1000
        * sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)
        // n_lines,
        f"functions with more than {MOST_PARAMETERS} parameters": sum(
            len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > MOST_PARAMETERS for node in functions
        ),
        "classes with Query in the name": sum("Query" in name for name in classes.elements()),
        "lines of simd and cuda": lines_of(native),
        "lines of tests": lines_of(tests),
        "lines of tests outside of test files": lines_of([path for path in tests if not path.name.startswith("test_")]),
        "words of README.md": words_of("README.md"),
        "words of CHANGELOG.md": words_of("CHANGELOG.md"),
        "words of docs": words_of("docs"),
    }


def main() -> int:
    """Print the counts beside their limits; returns 1 if one is above its limit."""
    limits: dict[str, int] = json.loads(LIMITS.read_text(encoding="utf-8"))
    present = counts()
    if "--accept" in sys.argv[1:]:
        limits = {name: min(value, limits.get(name, value)) for name, value in present.items()}
        LIMITS.write_text(json.dumps(limits, indent=1) + "\n", encoding="utf-8")
    above = {name for name, value in present.items() if value > limits[name]}
    for name, value in present.items():
        if name in above or "--accept" in sys.argv[1:]:
            print(f"{name}: {value:,}, limit {limits[name]:,}{' EXCEEDED' if name in above else ''}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())

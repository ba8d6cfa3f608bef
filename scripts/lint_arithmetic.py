"""Refuse arithmetic whose result depends on the machine, in all code that could affect a result of a search.

    python scripts/lint_arithmetic.py [FOLDER]

The script reads the Python files below FOLDER/swsearch (FOLDER is the repository by default), prints
``file:line: what`` for each finding, and exits with 1 if there are findings. It has two rules:

*Functions*, in the complete program: the results of ``exp``, ``log``, ``pow`` and similar functions of ``math`` or
NumPy depend on the C library or the processor, and random numbers depend on a library. :mod:`swsearch.deterministic`
has the functions that replace them.

*Sums*, in the packages that compute statistics, profiles and rankings (:data:`DECIDING`): a sum or product of arrays
whose order of additions is chosen by vector width or BLAS, an interpolation that may be fused, a power, and Python's
``sum``, whose method for floats changed with version 3.12. ``total`` and ``sum_in_order`` of that module do not depend
on such an order; a sum with an integer ``dtype`` is exact in any order.

:data:`ALLOWED` lists the permitted exceptions with their reasons; an entry that is no longer needed is also a finding.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

HOME = "swsearch/deterministic.py"
DECIDING = tuple(f"swsearch/{name}/" for name in ("query", "scoring", "search"))

EXACT_MATH = frozenset({
    "fsum", "sqrt", "isqrt", "fabs", "copysign", "floor", "ceil", "trunc", "fmod", "modf", "frexp", "ldexp",
    "nextafter", "ulp", "comb", "perm", "factorial", "gcd", "lcm", "isinf", "isnan", "isfinite", "isclose", "inf",
    "nan", "pi", "e", "tau",
})  # fmt: skip
"""Functions of ``math`` whose bits IEEE 754 or integer arithmetic determines, and constants. All others are refused."""

NUMPY_FUNCTIONS = frozenset({
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "cbrt", "hypot", "sin", "cos",
    "tan", "arcsin", "arccos", "arctan", "arctan2", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh",
    "arcsinh", "arccosh", "arctanh", "asinh", "acosh", "atanh", "sinc", "i0", "power", "pow", "float_power",
    "geomspace", "logspace", "linalg", "fft", "random", "polynomial", "polyfit", "polyval", "roots", "longdouble",
    "float128",
})  # fmt: skip
NUMPY_SUMS = frozenset({
    "sum", "nansum", "mean", "nanmean", "average", "median", "nanmedian", "std", "nanstd", "var", "nanvar", "prod",
    "nanprod", "dot", "vdot", "vecdot", "inner", "matmul", "matvec", "vecmat", "einsum", "tensordot", "kron",
    "convolve", "correlate", "cov", "corrcoef", "interp", "trapz", "trapezoid", "percentile", "quantile", "histogram",
    "gradient",
})  # fmt: skip
METHOD_SUMS = frozenset({"sum", "mean", "std", "var", "prod", "dot", "reduce", "reduceat", "trace"})
WHOLE_NUMBERS = frozenset({
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intp", "uintp", "int", "bool",
})  # fmt: skip
LIBRARIES = frozenset({"scipy", "random", "statistics", "cmath", "numba", "numexpr"})

BENCHMARK = "makes up the sequences of a benchmark, which decide no search"
COUNTS = "adds whole numbers"
ALLOWED = {
    ("swsearch/bench/workloads.py", "numpy.exp"): BENCHMARK,
    ("swsearch/bench/workloads.py", "numpy.random"): BENCHMARK,
    ("swsearch/bench/kernel_rates.py", "numpy.random"): BENCHMARK,
    ("swsearch/search/score_check.py", "numpy.exp"): "a curve that is only drawn",
    ("swsearch/search/score_check.py", "sum"): COUNTS + ": residues and rows",
    ("swsearch/search/searcher.py", "sum"): COUNTS + ": residues, rows and subjects",
    ("swsearch/search/planned_search.py", "sum"): COUNTS + ": residues",
    ("swsearch/search/slices.py", "sum"): COUNTS + ": residues, bytes and subjects",
    ("swsearch/search/simulation.py", "sum"): COUNTS + ": lengths and scores",
    ("swsearch/search/simulation.py", "numpy.median"): "of scores, whole numbers: their middle, or half of two",
    ("swsearch/search/search_subjects.py", "sum"): COUNTS + ": residues and subjects",
    ("swsearch/search/score_batches.py", "sum"): COUNTS + ": rows and subjects",
    ("swsearch/scoring/matrix.py", "sum"): COUNTS + ": scores",
}
"""File and name of each permitted exception, and the reason."""


def refused(tree: ast.Module, deciding: bool) -> Iterator[tuple[int, str]]:
    """Line and name of each finding in one file; the second rule applies only if ``deciding``."""
    modules: dict[str, str] = {}  # the names of imported modules in the file
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                root, _, inner = one.name.partition(".")
                modules[one.asname or root] = root
                if root in LIBRARIES:
                    yield node.lineno, root
                elif _is_refused(root, inner.partition(".")[0], deciding):
                    yield node.lineno, one.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            root, _, inner = (node.module or "").partition(".")
            for one in node.names:
                name = inner.partition(".")[0] or one.name
                if root in LIBRARIES:
                    yield node.lineno, root
                elif _is_refused(root, name, deciding):
                    yield node.lineno, f"{root}.{name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            module = modules[node.value.id]
            if _is_refused(module, node.attr, deciding):
                yield node.lineno, f"{module}.{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "pow" or (deciding and node.func.id == "sum"):
                yield node.lineno, node.func.id
        elif not deciding:
            continue
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, name = node.func.value, node.func.attr
            of_module = isinstance(owner, ast.Name) and owner.id in modules
            if name in METHOD_SUMS and not of_module and not _adds_whole_numbers(node):
                yield node.lineno, f".{name}"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
            base = node.left if isinstance(node, ast.BinOp) else node.target
            if not _is_whole(base):
                yield node.lineno, "**"


def _is_refused(module: str, name: str, deciding: bool) -> bool:
    if module == "math":
        return name not in EXACT_MATH and name != ""
    return module == "numpy" and (name in NUMPY_FUNCTIONS or (deciding and name in NUMPY_SUMS))


def _adds_whole_numbers(call: ast.Call) -> bool:
    """Whether a call has a ``dtype=`` argument with an integer type."""
    types = [keyword.value for keyword in call.keywords if keyword.arg == "dtype"]
    return any(getattr(one, "attr", getattr(one, "id", "")) in WHOLE_NUMBERS for one in types)


def _is_whole(base: ast.expr) -> bool:
    """Whether the base of a power is an integer constant: ``2**n``, ``np.int64(2) ** n``."""
    if isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
        return base.func.attr in WHOLE_NUMBERS
    return isinstance(base, ast.Constant) and isinstance(base.value, int)


def findings(folder: Path) -> Iterator[str]:
    """All findings below ``folder/swsearch``, one line each."""
    needed = set()
    for path in sorted((folder / "swsearch").rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if name == HOME:
            continue
        tree = ast.parse(path.read_text("utf-8"), name)
        for line, what in sorted(refused(tree, deciding=name.startswith(DECIDING))):
            if (name, what) in ALLOWED:
                needed.add((name, what))
            else:
                yield f"{name}:{line}: {what} differs between machines; take it from swsearch.deterministic"
    for name, what in sorted(ALLOWED.keys() - needed):
        if (folder / name).exists():
            yield f"{name}: {what} is allowed in {Path(__file__).name} and does not occur; take the entry out"


def main(arguments: list[str]) -> int:
    """Print all findings; return the exit code."""
    found = list(findings(Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]))
    print("\n".join(found) if found else "arithmetic: the same on every machine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

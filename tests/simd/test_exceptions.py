"""The native module's C++ exceptions become Python's, whatever other extensions the process has loaded."""

import subprocess
import sys

SCRIPT = """
import resource, tempfile
import duckdb
import numpy as np
from swsearch import _native

resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
pieces = (
    np.array([2**32 - 1, 5], np.uint32), np.array([2, 1], np.uint32), np.array([0, 2], np.uint32),
    np.array([0, 6], np.uint64), np.array([0, 2], np.uint64),
)
try:
    _native.gather_residues([tempfile.TemporaryFile().fileno()], pieces, 0, 31)
except Exception as error:
    print(type(error).__module__, type(error).__name__)
"""


def test_a_lack_of_memory_is_pythons_error_beside_another_nanobind_module() -> None:
    """DuckDB is built with nanobind too, and translates ``std::bad_alloc`` into an error of its own."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "builtins MemoryError\n"

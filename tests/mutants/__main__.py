"""Runs the tests of every fault of the table: ``python -m tests.mutants [--jobs N] [TEXT…]``.

With a TEXT, only the faults whose line contains it. Prints a line for each fault; the exit code is 1 if one was not
found. A fault is found if a test fails: tests that cannot be collected or that are all skipped find nothing.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.mutants.table import TOP, Mutation, mutations

MOST_SECONDS: Final = 600
"""A fault may be an endless loop; tests that take longer have found it."""
TESTS_FAILED: Final = 1
"""The exit code of pytest if it ran tests of which some failed."""


def is_found(mutation: Mutation) -> bool:
    """Whether a test of the fault fails with it."""
    site = Path(__file__).with_name("site")
    environment = {
        **os.environ,
        "SWSEARCH_MUTANT": json.dumps([mutation.module, mutation.right, mutation.faulty]),
        "PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "0", *mutation.tests]
    try:
        outcome = subprocess.run(
            command, cwd=TOP, env=environment, check=False, capture_output=True, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return True
    return outcome.returncode == TESTS_FAILED


def main() -> int:
    """Run the faults; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("text", nargs="*", help="only faults whose line contains one of these")
    options = parser.parse_args()
    chosen = [one for one in mutations() if not options.text or any(text in str(one) for text in options.text)]
    n_lost = 0
    with ThreadPoolExecutor(options.jobs) as threads:
        for mutation, found in zip(chosen, threads.map(is_found, chosen), strict=True):
            n_lost += not found
            print("found" if found else "NOT FOUND", mutation, flush=True)
    print(f"{len(chosen) - n_lost} of {len(chosen)} faults were found")
    return 1 if n_lost else 0


if __name__ == "__main__":
    sys.exit(main())

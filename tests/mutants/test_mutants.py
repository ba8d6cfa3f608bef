"""The table of faults fits the program, and a fault reaches the process that runs the tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.mutants.table import TOP, mutations


def test_each_fault_replaces_one_place_of_its_file():
    for mutation in mutations():
        assert (TOP / mutation.path).read_text(encoding="utf-8").count(mutation.right) == 1, mutation
        assert mutation.right != mutation.faulty
        for test in mutation.tests:
            assert (TOP / test.split("::")[0]).exists(), mutation


def test_a_fault_is_in_the_module_of_a_new_process():
    mutation = ["swsearch.hits.cigar", 'GAP: Final = "-"', 'GAP: Final = "~"']
    site = str(Path(__file__).with_name("site"))
    outcome = subprocess.run(
        [sys.executable, "-c", "from swsearch.hits.cigar import GAP; print(GAP)"],
        env={**os.environ, "SWSEARCH_MUTANT": json.dumps(mutation), "PYTHONPATH": site},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert outcome.stdout == "~\n"

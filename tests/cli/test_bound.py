"""What commands say about the bound: how many scores it took the place of, and whose rate is effective.

Expected values: the number of scores from the data, and the same hits with ``--no-bound``.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from swsearch.sequences.alphabet import PROTEIN
from tests.cli.conftest import Outcome
from tests.support import random_protein

Run = Callable[..., Outcome]


@pytest.fixture
def search(swsearch: Run, tmp_path: Path) -> Run:
    """Search 6,000 random proteins with two queries."""
    rng = np.random.default_rng(51)
    proteins = [PROTEIN.decode(random_protein(rng, 40)) for _ in range(6000)]
    (tmp_path / "s.fa").write_text("".join(f">s{n}\n{letters}\n" for n, letters in enumerate(proteins)))
    (tmp_path / "q.fa").write_text(f">q1\n{proteins[0]}\n>q2\n{proteins[1]}\n")
    assert swsearch("index", "s.fa", "-o", "s.db", "--quiet").code == 0
    command = ["query", "q.fa", "s.db", "--engine", "cpu", "--store", "none", "--evalue", "0.001", "--format", "blast6"]
    return lambda *options: swsearch(*command, *options)


def test_the_share_of_the_bound_is_said(search: Run) -> None:
    done = search()
    found = re.search(r"([\d,]+) of 12,000 scores were proved too low to report, the others were computed", done.err)
    assert found is not None, done.err
    assert 11_000 < int(found[1].replace(",", "")) < 12_000
    without = search("--no-bound")
    assert "proved" not in without.err
    assert without.out == done.out != ""
    assert "proved" not in search("--quiet").err


def test_the_rate_with_a_bound_is_effective(search: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate is printed at intervals, here at once."""
    monkeypatch.setattr("swsearch.cli.output.PLAIN_INTERVAL_SECONDS", 0.0)
    assert " effective GCUPS" in search().err
    for options in (["--no-bound"], ["--engine", "reference"]):
        err = search(*options).err
        assert " GCUPS" in err
        assert "effective" not in err

"""Extreme and invalid option values: each ends in one line and no traceback, or is used as given.

The expected outcome follows from the value by hand.
"""

import math

import numpy as np
import pytest

from swsearch.errors import InputError
from swsearch.search.options import SearchOptions
from tests.cli.conftest import DATA

HUGE = "9" * 30
ENDLESS = "9" * 5000
WHOLE = [
    "top", "max-hsps", "dbsize", "min-score", "min-alignment-length", "min-length", "max-length", "gap-open",
    "gap-extend", "match", "mismatch", "threads", "partition-residues", "genetic-code", "msa-max-identity", "msa-diff",
]  # fmt: skip
REAL = ["evalue", "min-bits", "min-identity", "min-query-coverage", "min-subject-coverage", "msa-coverage"]
NO_NUMBER = ["nan", "", "x", "1.5", "1e3", "0x10", "²", ENDLESS]


@pytest.fixture
def query(swsearch, tmp_path, protein_db):
    """Search with a short protein and the given options."""
    (tmp_path / "q.fasta").write_text(">q\nMKVLAAGIVGLLLAQ\n")
    return lambda *options: swsearch("query", "q.fasta", protein_db, "--store", "none", *options)


def is_one_line(outcome) -> bool:
    lines = [line for line in outcome.err.splitlines() if "rror" in line]
    return outcome.code in (1, 2) and outcome.out == "" and len(lines) == 1 and "Traceback" not in outcome.err


@pytest.mark.parametrize("option", WHOLE)
def test_whole_numbers(query, option):
    for value in [*NO_NUMBER, "-1", HUGE, "inf"]:
        if (option, value) == ("mismatch", "-1"):
            continue
        if (option, value) == ("partition-residues", HUGE):  # valid: an upper bound, so the complete database
            continue
        outcome = query(f"--{option}={value}")
        assert is_one_line(outcome), (option, value[:30], outcome.err[:500])
        assert f"--{option}" in outcome.err or "cost" in outcome.err or "are for DNA" in outcome.err


@pytest.mark.parametrize("option", REAL)
def test_real_numbers(query, option):
    for value in ["nan", "-inf", "-1", "", "x", "²", *(["inf", "1e400", HUGE] if option != "evalue" else [])]:
        outcome = query(f"--{option}={value}")
        assert is_one_line(outcome), (option, value, outcome)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("devices", ["", "0,0", "-1", "0,", "0 1", "a", "٣", ENDLESS]),
        ("taxid", ["", "9606,", "9606, ,1", "-1", "x", HUGE, ENDLESS, "9606;1"]),
        ("id-pattern", ["", "(", "[", "*", "\\", "(?P<x", "a{99999999999}"]),
        ("mask", ["", ",", "none,lower", "x"]),
        ("fields", ["", ",", "  ", "colour"]),
    ],
)
def test_lists_and_patterns(query, option, values):
    for value in values:
        outcome = query(f"--{option}={value}", "--format", "tsv")
        assert is_one_line(outcome), (option, value[:30], outcome.err[:500])
        assert f"--{option}" in outcome.error or "no field colour" in outcome.error
        assert len(outcome.error) < 700


def test_the_largest_values_are_what_they_say(swsearch, query, tmp_path, protein_db):
    plain = query("--format", "blast6").out
    assert query("--format", "blast6", "--top", 2**31 - 1, "--partition-residues", HUGE).out.startswith(plain)
    assert query("--format", "blast6", "--max-hsps", 2**31 - 1, "--gap-open", 16383, "--gap-extend", 16383).code == 0
    stored = swsearch("query", "q.fasta", protein_db, "--dbsize", 10**17, "--evalue", "inf", "--format", "blast6")
    assert swsearch("report", "latest", "--format", "blast6").out == stored.printed


@pytest.mark.parametrize(
    "shard", ["", "0/1", "2/1", "1", "x", "1-4", "1/0", "-1/2", "1/2/3", "٣/٤", f"1/{HUGE}", f"{ENDLESS}/2"]
)
def test_shares(swsearch, tmp_path, protein_db, shard):
    outcome = swsearch("batch", DATA / "queries.fasta", protein_db, "--shard", shard)
    assert is_one_line(outcome)
    assert "--shard" in outcome.error
    assert "give i/n with 1 <= i <= n" in outcome.error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", ".", "no/folder/h.tsv", "a.fasta/h.tsv"])
def test_files_that_cannot_be_written_are_named(swsearch, tmp_path, name):
    (tmp_path / "a.fasta").write_text(">a\nMKV\n")
    for option in ("matrix-out", "out"):
        outcome = swsearch("align", "a.fasta", "a.fasta", f"--{option}={name}")
        assert is_one_line(outcome)
        assert ".unfinished" not in outcome.error
    assert [path.name for path in tmp_path.iterdir()] == ["a.fasta"]


def test_scripts_hear_of_values_that_are_no_numbers():
    for changes in (
        {"top": "3"},
        {"top": 2.5},
        {"top": True},
        {"evalue": "1"},
        {"min_score": [1]},
        {"dbsize": math.inf},
    ):
        (name,) = changes
        with pytest.raises(InputError, match=f"{name}=.* number is needed"):
            SearchOptions(**changes)
    options = SearchOptions(top=np.int64(3), evalue=np.float32(1), min_identity=50)
    assert [type(value) for value in (options.top, options.evalue, options.min_identity)] == [int, float, float]

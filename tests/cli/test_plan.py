"""``swsearch plan``: what it prints, and what it refuses. Expected values: by hand, and the size of data/."""

import json
from itertools import pairwise

import pytest

from tests.cli.conftest import DATA

SIZE = ["--residues", "70e9", "--sequences", "200e6"]


def test_a_plan_is_readable_at_80_columns(swsearch):
    outcome = swsearch("plan", *SIZE, "--queries", "1e6", "--gpus", "8xH200", "--cores", "64", "--price", "4")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line.startswith("machine") or line.startswith("cost")] == [
        "machine", "cost", "machine",
    ]  # fmt: skip


def test_json_has_the_same_numbers(swsearch):
    outcome = swsearch("plan", *SIZE, "--gpus", "h100", "--gcups", "1000", "--format", "json")
    told = json.loads(outcome.out)
    (one,) = told["plans"]
    assert told["database"] == {"residues": 70_000_000_000, "sequences": 200_000_000}
    assert one["device_bytes"] == 70_000_000_000 + 200_000_000 * 12 + 1_500_000_000
    assert one["gcups"] == 750  # streamed
    assert one["query_seconds"] == pytest.approx(350 * 70e9 / 750e9)
    assert one["cost"] is None


def test_a_file_and_its_packed_database_have_the_same_plan(swsearch, protein_db):
    """Source: both count the same sequences; one pads what it reads, the other what is stored."""
    plans = [
        json.loads(swsearch("plan", str(path), "--cores", "2", "--format", "json").out)
        for path in (DATA / "proteins.fasta.gz", protein_db)
    ]
    for one in plans:
        one["plans"][0].pop("assumptions")
    assert plans[0] == plans[1]
    assert plans[0]["database"]["sequences"] > 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--residues 70e9 --gpus 8xA100", "only those of H100 and H200; give its rate with --gcups"),
        ("--residues 70e9 --gpus 0xH200", "write, for example, 8xH200"),
        ("--residues 70e9", "give --gpus, such as 8xH200, or --cores"),
        ("--gpus H200", "give either a database or its size"),
        ("a.fasta --residues 5 --gpus H200", "give either a database or its size"),
        ("a.fasta --sequences 5 --gpus H200", "--sequences is for --residues"),
        ("--residues many --gpus H200", "--residues 'many' is not a whole number"),
        ("--residues 1.5 --gpus H200", "is not a whole number"),
        ("--residues 5 --queries nan --gpus H200", "--queries 'nan' is not a whole number"),
        ("--residues 5 --sequences 6 --gpus H200", "more than the 5 residues"),
        ("--residues 5 --cores 2 --price 4", "--price 4 is for GPUs"),
        ("--residues 5 --gpus H200 --gcups 0", "--gcups 0 is not a positive number"),
        ("--residues 5 --gpus H200 --disk-rate inf", "--disk-rate inf is not a positive number"),
        ("missing.fasta --gpus H200", "missing.fasta"),
        ("s3://bucket/some.db --gpus H200", "a plan does not fetch a database"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(swsearch, line, message):
    outcome = swsearch("plan", *line.split())
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.error


def test_more_gpus_take_less_time(swsearch):
    times = [
        json.loads(swsearch("plan", *SIZE, "--gpus", f"{count}xH200", "--format", "json").out)["plans"][0][
            "query_seconds"
        ]
        for count in (1, 2, 8, 64)
    ]
    assert all(later < earlier for earlier, later in pairwise(times))

"""``--format json`` of the commands that describe runs, databases, engines and speeds.

Expected values: the tables of ``docs/reference/json.md``, whose keys are read here, and the text of the same commands.
"""

import json
import re

import pytest

from tests.cli.conftest import DATA
from tests.test_docs import ROOT

PAGE = (ROOT / "docs" / "reference" / "json.md").read_text()


def documented(title, number=0):
    """The keys of a table of the page, the first below a heading, or a later one."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    table = section.split("| --- | --- |\n")[number + 1].split("\n\n")[0]
    return {
        key: text
        for line in table.splitlines()
        for cells in [line.split("|")]
        for key in re.findall("`(.*?)`", cells[1])
        for text in [cells[2]]
    }


def keys_of(command, documented_keys):
    """The documented keys that a command prints; a key of one command alone begins its text with the command."""
    marked = re.compile(r" `((?:runs|bench)[a-z ]*)`: ")
    return {key for key, text in documented_keys.items() if not (found := marked.match(text)) or found[1] == command}


@pytest.fixture
def document(swsearch):
    """The object that a command prints."""

    def of(*command):
        outcome = swsearch(*command, "--format", "json")
        assert outcome.code == 0, outcome.err
        printed = json.loads(outcome.out)
        assert printed.pop("schema_version") == 1
        return printed

    return of


def test_runs_are_objects_with_the_documented_keys(swsearch, document, few_proteins_db, user_store, tmp_path):
    """One of two records is not a protein, so the batch has a failure; numbers by hand."""
    (tmp_path / "two.fa").write_text(">bad\n1234\n>good\nMKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW\n")
    swsearch("batch", "two.fa", few_proteins_db, "-q")
    swsearch("query", DATA / "queries.fasta", few_proteins_db, "--top", 2, "-q")
    listed, shown = document("runs", "list"), document("runs", "show", "1")
    tables = documented("`runs list`, `runs show`"), documented("`runs list`, `runs show`", 1)
    assert listed.keys() == keys_of("runs list", tables[0])
    assert shown.keys() == keys_of("runs show", tables[0])
    assert [run.keys() for run in listed["runs"]] == [keys_of("runs list", tables[1])] * 2
    assert shown["run"].keys() == keys_of("runs show", tables[1])
    assert (listed["store"], listed["n_bytes"] > 0) == (str(user_store), True)
    first, second = listed["runs"]
    assert [(run["n_queries"], run["n_failed"], run["n_missing"]) for run in (first, second)] == [(1, 1, 0), (7, 0, 0)]
    assert second["parameters"]["top"] == 2
    assert second["database"]["path"] == str(few_proteins_db)
    (failure,) = shown["run"].pop("failures")
    assert (failure["number"], "'1'" in failure["reason"] or "1234" in failure["reason"]) == (0, True)
    assert shown["run"] == first


def test_a_database_is_an_object_with_the_documented_keys(swsearch, document, few_proteins_db):
    found = document("db", "info", few_proteins_db)
    assert found.keys() == documented("`db info`").keys()
    text = swsearch("db", "info", few_proteins_db).out
    for name, value in (
        ("sequences", f"{found['n_subjects']:,}"),
        ("residues", f"{found['n_residues']:,}"),
        ("lengths", f"{found['shortest']:,} to {found['longest']:,}, mean {found['mean_length']:,.1f}"),
        ("digest", found["digest"]),
        ("made by", f"{found['program']}, {found['created']}"),
    ):
        assert f"{name:<12}{value}\n" in text


def test_several_databases_are_an_object_of_each_and_of_all(swsearch, document, few_proteins_db, lambda_db, protein_db):
    """Sums by hand; sequences of different alphabets have none, and the reason is that of a search."""
    given = [few_proteins_db, protein_db]
    found = document("db", "info", *given)
    each = [document("db", "info", path) for path in given]
    assert found["databases"] == each
    together = found["together"]
    names = PAGE.split("`together`, what a search")[1].split("; and `reason`")[0]
    assert list(together) == re.findall("`([a-z_]+)`", names)
    for name in ("n_subjects", "n_residues", "n_bytes"):
        assert together[name] == sum(one[name] for one in each)
    assert together["mean_length"] == together["n_residues"] / together["n_subjects"]
    assert together["digest"] == "+".join(one["digest"] for one in each)
    assert (found["reason"], together["longest"]) == (None, max(one["longest"] for one in each))
    shown = swsearch("db", "info", *given).out.split("\n\n")
    assert shown[:2] == [swsearch("db", "info", path).out.strip() for path in given]
    assert shown[2].splitlines()[:3] == ["together    2 databases", "alphabet    protein", "sequences   1,560"]
    mixed = document("db", "info", few_proteins_db, lambda_db)
    assert mixed["together"] is None
    refused = swsearch("query", DATA / "queries.fasta", few_proteins_db, lambda_db, "--store", "none").error
    assert refused == f"swsearch: error: {mixed['reason']}"
    last = swsearch("db", "info", few_proteins_db, lambda_db).out.splitlines()[-1]
    assert last == f"together    cannot be searched: {mixed['reason']}"


def test_engines_are_objects_with_the_documented_keys(swsearch, document):
    found = document("engines")
    assert found.keys() == documented("`engines`").keys()
    listed = [line.split()[0] for line in swsearch("engines").out.splitlines()]
    assert [engine["name"] for engine in found["engines"]] == listed[:-1]
    assert all((engine["reason"] is None) == engine["usable"] for engine in found["engines"])
    for engine in found["engines"]:
        is_measured = engine["usable"] and engine["name"] != "reference"
        assert engine["gcups"] > 0 if is_measured else engine["gcups"] is None


def test_measured_speeds_are_objects_with_the_documented_keys(document):
    found = document("bench", "--residues", 20_000, "--lengths", "10")
    assert found.keys() == keys_of("bench", documented("`bench`, `bench kernels`"))
    words = PAGE.split("A row of `bench`:")[1].split("\n\n")[0]
    assert [list(row) for row in found["rows"]] == [re.findall("`([a-z_]+)`", re.sub(r"\([^)]*\)", "", words))] * 2
    assert [row["scores"] for row in found["rows"]] == ["all", "reported"]
    kernels = document("bench", "kernels", "--residues", 2_000, "--query-length", 20, "--tasks", "search")
    assert kernels.keys() == keys_of("bench kernels", documented("`bench`, `bench kernels`"))


def test_another_format_is_refused(swsearch, few_proteins_db):
    for command in (["runs", "list"], ["db", "info", few_proteins_db], ["engines"], ["bench"]):
        assert "choose table or json" in swsearch(*command, "--format", "yaml").error

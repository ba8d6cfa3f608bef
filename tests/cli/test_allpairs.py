"""``swsearch allpairs``: its report, resumption, shares, and what it refuses.

Expected values: ``swsearch query`` with the same sequences, and runs that were not interrupted.
"""

import json
import signal

import pytest

from swsearch.store.store import Store

PAIRS = ["--evalue", "10", "--quiet"]


def test_the_lines_are_those_of_the_longer_sequences_search(swsearch, few_proteins_db):
    """Source: `swsearch query`; the length of a sequence is in its output."""
    fields = ["--format", "blast6", "--fields", "std qlen slen score cigar"]
    lines = swsearch("allpairs", few_proteins_db, *PAIRS, *fields).out.splitlines()
    search = ["query", few_proteins_db.with_suffix(".fasta"), few_proteins_db, "--store", "none", "--top", "60"]
    whole = swsearch(*search, *PAIRS, *fields).out
    rows = {line: line.split("\t") for line in whole.splitlines()}
    expected = {line for line, row in rows.items() if (int(row[12]), row[0]) > (int(row[13]), row[1])}
    equal = {line for line, row in rows.items() if row[12] == row[13]}
    assert len(lines) == len(set(lines)) > 50
    assert set(lines) - equal == expected - equal


def test_a_killed_run_resumes_to_the_same_bytes_and_shares_merge_to_them(swsearch, spawn_paused, few_proteins_db):
    """Source: the run without interruption. A cut to other lengths and other batches change nothing."""
    asked = ["allpairs", few_proteins_db, *PAIRS, "--format", "json"]
    whole = swsearch(*asked, "--store", "whole.sqlite").out
    assert sum(len(query["hits"]) for query in json.loads(whole)["queries"]) > 50
    resumed = [*asked, "--store", "killed.sqlite", "--resume", "latest"]
    moment = 'Results, "add", 7'
    process = spawn_paused(moment, *resumed, "--out", "never.json", "--partition-residues", "3000")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with Store("killed.sqlite") as store:
        assert store.runs.get("latest").n_queries == 7
    assert swsearch(*resumed).out == whole
    for shard in ("1/3", "2/3", "3/3"):
        outcome = swsearch(
            "allpairs", few_proteins_db, *PAIRS, "--shard", shard, "--store", "{shard}.sqlite", "--format", "none"
        )
        assert (outcome.code, outcome.out) == (0, "")
    assert swsearch("runs", "merge", "{shard}.sqlite", "--store", "merged.sqlite").code == 0
    assert swsearch("report", "latest", "--store", "merged.sqlite", "--format", "json").out == whole
    assert swsearch("report", "latest", "--store", "whole.sqlite", "--format", "json").out == whole


def test_another_search_is_not_resumed(swsearch, few_proteins_db):
    """The same sequences in the same order as a batch are another search."""
    assert swsearch("allpairs", few_proteins_db, "--store", "a.sqlite", "--format", "none").code == 0
    shown = swsearch("runs", "show", "latest", "--store", "a.sqlite").out
    assert "all against all True" in shown
    asked = ["--evalue", "0.001", "--top", str(2**31 - 1), "--store", "a.sqlite", "--resume", "1"]
    refused = swsearch("batch", few_proteins_db.with_suffix(".fasta"), few_proteins_db, *asked)
    assert "is of another search: what queries are compared with differs" in refused.error


def test_a_table_says_with_which_subjects_a_query_is_compared(swsearch, few_proteins_db):
    printed = swsearch("allpairs", few_proteins_db, "--store", "none", "--format", "table").out
    assert "of the subjects that are not longer ha" in printed
    assert "of 60 subjects" not in printed


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--gap-open", "1", "--gap-extend", "1"], "give --evalue inf and limit scores with --min-score"),
        (
            ["--gap-open", "1", "--gap-extend", "1", "--evalue", "inf"],
            "so that every pair would be reported; cut by --min-score",
        ),
        (["--store", "none", "--resume", "latest"], "--resume goes on with a stored run"),
        (["--slices", "yes"], "--slices is for the workers of a cluster"),
        (["--format", "gff"], "there is no format 'gff'; gff3 is the one of .gff files; choose from"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_stored(swsearch, tmp_path, few_proteins_db, options, problem):
    (tmp_path / "few.db").symlink_to(few_proteins_db)
    refused = swsearch("allpairs", "few.db", "--store", "s.sqlite", *options)
    assert problem in refused.refusal
    assert not (tmp_path / "s.sqlite").exists()


def test_without_evalues_scores_choose_the_pairs(swsearch, few_proteins_db):
    printed = swsearch(
        "allpairs", few_proteins_db, "--gap-open", "1", "--gap-extend", "1", "--evalue", "inf", "--min-score", "900",
        "--store", "none", "--format", "tsv", "--fields", "qseqid sseqid score evalue",
    )  # fmt: skip
    rows = [line.split("\t") for line in printed.out.splitlines()[1:]]
    assert printed.code == 0
    assert rows
    assert all(int(score) >= 900 and not evalue for _, _, score, evalue in rows)

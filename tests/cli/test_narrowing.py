"""``swsearch report`` with limits: the stored hits within them, and an answer where the store does not have enough.

The rules are tested with random limits of random runs in tests/search/test_complete_lists.py.

Expected values: searches with the same limits, and hand counts in their results.
"""

import json
from collections import Counter

import pytest

from tests.cli.conftest import QUERIES

LIMITS = [
    ("--top 12 --max-hsps 3", "--max-hsps 2 --evalue 0.001 --top 9"),
    ("--top 60 --max-hsps 3", "--min-query-coverage 30 --min-subject-coverage 30 --min-identity 30 --top 4"),
    ("--top 60 --max-hsps 3", "--min-alignment-length 120 --min-bits 60.5"),
    ("--top 60 --sensitive", "--evalue 1e-5 --top 7"),
    ("--top 60 --sensitive", "--min-score 150"),
]
"""The options of runs, and narrower limits and filters of reports of them."""


def report_and_search(swsearch, database, stored, limits, *searched, form="blast6"):
    """The report of a run that was searched with the options ``stored``, and the search with ``limits``."""
    assert swsearch("query", QUERIES, database, *stored.split(), *searched, "--quiet").code == 0
    narrowed = swsearch("report", "latest", "--format", form, *limits.split())
    assert narrowed.code == 0, narrowed.err
    again = ["query", QUERIES, database, *stored.split(), *limits.split(), *searched, "--format", form]
    return narrowed, swsearch(*again, "--store", "none", "--quiet").out


@pytest.mark.parametrize(("stored", "limits"), LIMITS)
def test_narrower_limits_give_the_hits_of_a_search_with_them(swsearch, few_proteins_db, stored, limits):
    narrowed, searched = report_and_search(swsearch, few_proteins_db, stored, limits)
    assert narrowed.out == searched
    assert searched
    assert "warning" not in narrowed.err


@pytest.mark.parametrize("stored", ["--top 12", "--top 12 --sensitive"])
@pytest.mark.parametrize("form", ["table", "pairwise", "json", "html", "tsv"])
def test_a_shorter_list_is_reported_as_a_search_for_it_would_be(swsearch, few_proteins_db, form, stored):
    narrowed, searched = report_and_search(swsearch, few_proteins_db, stored, "--top 2", form=form)
    assert narrowed.out == searched


def test_lists_that_the_search_cut_are_counted_where_more_may_pass(swsearch, few_proteins_db):
    """By hand: every query has more than two subjects with E <= 1000, and lists are cut at two."""
    assert swsearch("query", QUERIES, few_proteins_db, "--top", 2, "--evalue", 1000, "-q").code == 0
    warning = "lists were cut at --top 2 by the search, so further subjects may pass the filters"
    assert f"warning: 7 {warning}" in swsearch("report", "latest", "--min-identity", 99).err
    assert warning not in swsearch("report", "latest", "--min-identity", 1).err
    assert warning not in swsearch("report", "latest", "--min-identity", 1, "--top", 1).err
    assert warning not in swsearch("report", "latest", "--evalue", 1e-5).err
    found = swsearch("report", "latest", "--min-score", 1, "--format", "json").out
    assert {query["n_stored"] for query in json.loads(found)["queries"]} == {2}


def test_a_narrowed_report_states_its_limits_and_what_it_is_a_part_of(swsearch, few_proteins_db):
    """By hand, from the E-values of the complete report."""
    assert swsearch("query", QUERIES, few_proteins_db, "--top", 5, "--evalue", 1000, "-q").code == 0
    whole = json.loads(swsearch("report", "latest", "--format", "json").out)
    limit = whole["queries"][0]["hits"][2]["evalue"]
    narrowed = json.loads(swsearch("report", "latest", "--evalue", limit, "--format", "json").out)
    assert narrowed["parameters"] == {**whole["parameters"], "evalue": limit}
    for query, part in zip(whole["queries"], narrowed["queries"], strict=True):
        expected = [hit for hit in query["hits"] if hit["evalue"] <= limit]
        assert part["hits"] == expected
        assert (part["n_stored"], part["n_passed"]) == (5, len(expected))
    assert len(narrowed["queries"][0]["hits"]) == 3
    table = swsearch("report", "latest", "--evalue", limit).out
    assert f"Hits:     3 of 5 stored subjects have an E-value of at most {limit:g}; all are shown\n" in table


@pytest.mark.parametrize(
    ("limits", "answer"),
    [
        ("--top 6", "--top 6: the run keeps the best 5 subjects of each query; for others, search again with --top"),
        ("--evalue 11", "--evalue 11: the run keeps hits with E-values up to 10; for others"),
        ("--evalue inf", "--evalue inf: the run keeps hits with E-values up to 10; for others"),
        ("--max-hsps 2", "--max-hsps 2: the run keeps the best alignment of a subject and, of long ones"),
        ("--min-identity 20", "--min-identity 20: the run keeps alignments with 25% identity and more"),
        ("--min-identity 120", "choose a percentage, 0 to 100"),
        ("--evalue 0", "choose a number above 0"),
        ("--matrix BLOSUM45", "--matrix: it belongs to a search, and `swsearch report` computes nothing"),
        ("--query ENGB_MYCH", "run 1 has no query 'ENGB_MYCH'; 'ENGB_MYCH2' is similar"),
    ],
)
def test_what_the_store_does_not_have_is_refused_with_the_reason(
    swsearch, tmp_path, few_proteins_db, user_store, limits, answer
):
    searched = ["query", QUERIES, few_proteins_db, "--top", 5, "--min-identity", 25, "-q"]
    assert swsearch(*searched).code == 0
    outcome = swsearch("report", "latest", *limits.split(), "--out", "hits.txt")
    assert answer in outcome.error
    assert outcome.code in (1, 2)
    assert outcome.out == ""
    assert not (tmp_path / "hits.txt").exists()


def test_a_run_without_evalues_is_not_narrowed_by_them(swsearch, few_proteins_db):
    """Gap costs of 0 have no statistics."""
    assert swsearch("query", QUERIES, few_proteins_db, "--gap-open", 0, "--gap-extend", 1, "-q").code == 0
    assert "--evalue 1: the run has no E-values; say --min-score" in swsearch("report", "latest", "--evalue", 1).error


def test_queries_are_chosen_by_identifier_or_accession_in_the_order_of_the_run(swsearch, few_proteins_db):
    """The identifiers are those of data/queries.fasta, read here."""
    names = [line.split()[0][1:] for line in QUERIES.read_text().splitlines() if line.startswith(">")]
    assert swsearch("query", QUERIES, few_proteins_db, "-q").code == 0
    whole = swsearch("report", "latest", "--format", "tsv").out.splitlines()
    chosen = ["--query", names[2], "--query", names[0].split("|")[1]]
    found = swsearch("report", "latest", "--format", "tsv", *chosen).out.splitlines()
    assert found == [whole[0], *(line for line in whole if line.split("\t")[0] in (names[0], names[2]))]
    assert len(found) > 2


def test_limits_that_decide_what_rounds_include_are_refused(swsearch, few_proteins_db):
    """Those that do not are those of a search."""
    assert swsearch("query", QUERIES, few_proteins_db, "--iterations", 2, "--top", 60, "-q").code == 0
    answer = "--min-identity 40: it decides what the 2 rounds of the run include; search again with --min-identity"
    assert answer in swsearch("report", "latest", "--min-identity", 40).error
    narrowed, searched = report_and_search(swsearch, few_proteins_db, "--iterations 2", "--evalue 0.01 --top 5")
    assert narrowed.out == searched


def values(printed, *names):
    """Some columns of a ``tsv`` report."""
    titles, *lines = (line.split("\t") for line in printed.splitlines())
    return [tuple(line[titles.index(name)] for name in names) for line in lines]


def test_counts_of_alignments_are_stored_shown_and_narrowed(swsearch, protein_db):
    """The leucine-rich repeats of NLR proteins. Expected: what searches with ``--max-hsps 50`` list."""

    def listed(*more):
        searched = ["query", QUERIES, protein_db, "--store", "none", "--max-hsps", 50, "--format", "tsv", "-q", *more]
        return Counter(values(swsearch(*searched).out, "qseqid", "sseqid"))

    names = ["--format", "tsv", "--fields", "qseqid sseqid n_hsps"]
    searched = swsearch("query", QUERIES, protein_db, "--count-hsps", "--top", 20, "--store", "one.sqlite")
    every = listed("--top", 20)
    assert max(every.values()) > 5
    n_further = sum(every.values()) - len(every)
    assert "further alignments (n_hsps); --max-hsps lists more of them" in searched.err
    assert f" {n_further:,} further alignments" in searched.err
    assert " 1/7\n" in searched.out
    report = ["report", "latest", "--store", "one.sqlite"]
    counts = [(*pair, str(every[pair])) for pair in every]
    for limits in ([], ["--max-hsps", 1]):
        assert values(swsearch(*report, *limits, *names).out, "qseqid", "sseqid", "n_hsps") == counts
    assert values(swsearch(*report, "--top", 3, *names).out, "n_hsps")[:3] == [(count,) for *_, count in counts[:3]]
    hits = [hit for query in json.loads(swsearch(*report, "--format", "json").out)["queries"] for hit in query["hits"]]
    assert [str(hit["n_hsps"]) for hit in hits] == [count for *_, count in counts]
    assert '<td class="number">1/7</td>' in swsearch(*report, "--format", "html").out
    # Of those that are not stored, nobody knows whether they meet a narrower limit.
    narrowed = values(swsearch(*report, "--evalue", 1e-3, *names).out, "qseqid", "sseqid", "n_hsps")
    assert narrowed == [(*pair, "1" if every[tuple(pair)] == 1 else "") for *pair, _ in narrowed]
    swsearch("query", QUERIES, protein_db, "--count-hsps", "--max-hsps", 50, "--store", "all.sqlite", "-q")
    whole = swsearch("report", "latest", "--store", "all.sqlite", "--evalue", 1e-3, "--max-hsps", 1, *names).out
    strict = listed("--evalue", 1e-3)
    assert values(whole, "qseqid", "sseqid", "n_hsps") == [(*pair, str(strict[pair])) for pair in strict]

"""`swsearch runs merge`: the shards of a batch, merged completely or in part, are the whole batch.

The expected output comes from a batch without shards; the expected messages are written by hand.
"""

import re
import signal

import pytest

from swsearch.hits.shards import AskedQueries, Shard
from swsearch.store.store import Store
from tests.cli.conftest import QUERIES
from tests.cli.test_batch import forget_queries, report
from tests.store.conftest import RUN, make_query


@pytest.fixture
def shards(swsearch, tmp_path, few_proteins_db, many_queries):
    """Three shards of one batch of 36 queries, each in its own store; the last query, in shard 3/3, fails."""
    with (tmp_path / "two.fasta").open("a") as file:
        file.write(">last is not a protein\nMKV7\n")
    for index in (1, 2, 3):
        arguments = ["--store", f"{index}.sqlite", "--shard", f"{index}/3", "--top", "3"]
        assert swsearch("batch", *many_queries, few_proteins_db, *arguments).code == (1 if index == 3 else 0)
    return ["1.sqlite", "2.sqlite", "3.sqlite"]


def test_a_shard_that_is_missing_is_named_and_nothing_is_merged(swsearch, tmp_path, shards):
    """By hand: each shard has 12 of the 36 queries, including the failed one at the end."""
    for absent in (0, 1, 2):
        there = [store for index, store in enumerate(shards) if index != absent]
        refused = swsearch("runs", "merge", *there, "--store", "m.sqlite")
        assert f"shard {absent + 1}/3 is missing, 12 of 36 queries; name the store that has it" in refused.refusal
        assert "`swsearch runs merge --partial` merges what is there" in refused.error
    refused = swsearch("runs", "merge", shards[1], "--store", "m.sqlite")
    assert "shards 1/3, 3/3 are missing, 24 of 36 queries" in refused.error
    assert not (tmp_path / "m.sqlite").exists()


def test_a_partial_merge_says_what_is_missing_and_can_be_completed(swsearch, few_proteins_db, many_queries, shards):
    """Source: the same batch without shards."""
    partial = swsearch("runs", "merge", *shards[:2], "--store", "m.sqlite", "--partial")
    assert partial.printed == "run 1 in m.sqlite: 24 queries of 2 shards, 12 missing\n"
    assert "warning: 12 queries are missing, number 2 for one; shard 3/3 is not there" in partial.err
    with Store("m.sqlite") as store:
        run = store.runs.get(1)
        assert (run.state, run.n_missing) == ("interrupted", 12)
        assert store.results.missing(1) == list(range(2, 36, 3))
    shown = swsearch("runs", "show", "1", "--store", "m.sqlite").out
    assert re.search(r"^missing +12 of the 36 that it was asked for are missing$", shown, re.MULTILINE)
    assert re.search(r"^remark +merged from 2 runs, shards 1/3, 2/3, without shard 3/3$", shown, re.MULTILINE)
    warned = swsearch("report", "1", "--store", "m.sqlite").err
    assert "the 24 queries that it has so far, 12 of the 36 that it was asked for are missing" in warned
    arguments = ["batch", *many_queries, few_proteins_db, "--top", "3"]
    completed = swsearch(*arguments, "--store", "m.sqlite", "--resume", "latest")
    assert completed.out == "run 1 in m.sqlite: 11 queries done, 24 were there before, 1 failed\n"
    assert swsearch(*arguments, "--store", "whole.sqlite").code == 1
    assert report(swsearch, "m.sqlite") == report(swsearch, "whole.sqlite")


def test_failed_queries_are_merged_and_not_missing(swsearch, shards):
    merged = swsearch("runs", "merge", *shards, "--store", "m.sqlite")
    assert (merged.code, merged.err) == (0, "")
    assert merged.out == "run 1 in m.sqlite: 35 queries of 3 shards, 1 failed\n"
    with Store("m.sqlite") as store:
        run = store.runs.get(1)
        assert (run.state, run.n_missing, run.n_failed, run.asked.shard) == ("finished", 0, 1, Shard())
        assert [failed.number for failed in store.results.failures(1)] == [35]
    assert "two.fasta, record 16 (last): residue 4" in swsearch("runs", "show", "1", "--store", "m.sqlite").out


def test_doubled_unfinished_and_foreign_shards_are_refused(swsearch, tmp_path, few_proteins_db, many_queries, shards):
    def refusal(*stores):
        outcome = swsearch("runs", "merge", *stores, "--store", "m.sqlite")
        assert outcome.code == 1
        assert not (tmp_path / "m.sqlite").exists()
        return outcome.error

    twice = refusal(*shards, shards[0])
    assert "shard 1/3 is there twice, as run 1 of 1.sqlite and as run 1 of 1.sqlite; leave one out" in twice
    batch = ["batch", *many_queries, few_proteins_db, "--top", "3"]
    assert swsearch(*batch, "--store", "four.sqlite", "--shard", "3/4").code == 0
    assert swsearch(*batch[:-1], "4", "--store", "longer.sqlite", "--shard", "3/3").code == 1
    assert "--top differs" in refusal(*shards[:2], "longer.sqlite")
    assert "is shard 3/4 and run 1 of 1.sqlite is shard 1/3: these are not shards of one" in refusal(
        *shards[:2], "four.sqlite"
    )
    fewer = ["batch", many_queries[0], few_proteins_db, "--top", "3"]
    assert swsearch(*fewer, "--store", "fewer.sqlite", "--shard", "3/3").code == 0
    assert "run 1 of fewer.sqlite is a shard of other queries than run 1 of 1.sqlite" in refusal(
        *shards[:2], "fewer.sqlite"
    )
    with Store(shards[2]) as store:
        store.runs.interrupt(1)
    assert "run 1 of 3.sqlite, shard 3/3, is interrupted; finish it with" in refusal(*shards)
    forced = swsearch("runs", "merge", *shards, shards[0], "four.sqlite", "--store", "m.sqlite", "--partial")
    assert forced.out == "run 1 in m.sqlite: 35 queries of 5 shards, 1 failed\n"


def test_shards_of_one_store_are_all_merged(swsearch, few_proteins_db, many_queries):
    """Source: the batch without shards. The store also holds the run of a query and a killed run of one shard."""
    batch = ["batch", *many_queries, few_proteins_db, "--store", "h.sqlite", "--top", "3"]
    assert swsearch(*batch, "--shard", "1/2").code == 0
    with Store("h.sqlite") as store:
        store.runs.interrupt(1)
    forget_queries("h.sqlite", 3)
    for shard in ("2/2", "1/2"):
        assert swsearch(*batch, "--shard", shard).code == 0
    assert swsearch("query", QUERIES, few_proteins_db, "--store", "h.sqlite").code == 0
    merged = swsearch("runs", "merge", "h.sqlite", "--store", "h.sqlite")
    assert merged.out == "run 5 in h.sqlite: 35 queries of 2 shards\n"
    assert "run 1 of h.sqlite (shard 1/2, interrupted) is left out; run 3, which is finished, is taken" in merged.err
    assert swsearch(*batch).code == 0
    assert report(swsearch, "h.sqlite", "5") == report(swsearch, "h.sqlite", "6")
    assert swsearch(*batch, "--shard", "2/2").code == 0
    doubled = swsearch("runs", "merge", "h.sqlite", "--store", "m.sqlite")
    assert "shard 2/2 is there twice, as run 2 of h.sqlite and as run 7 of h.sqlite" in doubled.error


def test_an_exported_shard_is_still_a_shard(swsearch, shards):
    assert swsearch("runs", "export", "1", "--store", "3.sqlite", "--out", "copy.sqlite").code == 0
    merged = swsearch("runs", "merge", *shards[:2], "copy.sqlite", "--store", "m.sqlite")
    assert merged.out == "run 1 in m.sqlite: 35 queries of 3 shards, 1 failed\n"


@pytest.mark.parametrize("ended", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize(
    "command", ["runs merge one.sqlite two.sqlite --store m.sqlite", "runs export 1 --store one.sqlite --out m.sqlite"]
)
def test_a_merge_that_is_killed_leaves_nothing(swsearch, spawn_paused, tmp_path, command, ended):
    """Expected: no run is left, and the same command then succeeds; `latest` must not be an incomplete merge."""
    for name, index in (("one", 1), ("two", 2)):
        with Store(tmp_path / f"{name}.sqlite", create=True) as store:
            run_id = store.runs.start(RUN, AskedQueries(Shard(index, 2), 6, "digest"))
            for number in range(index - 1, 6, 2):
                store.results.add(run_id, make_query(number))
            store.runs.finish(run_id)
    process = spawn_paused('Results, "add", 2', *command.split())
    with Store(tmp_path / "m.sqlite") as target:
        assert target.runs.all() == []
    process.send_signal(ended)
    process.communicate()
    with Store(tmp_path / "m.sqlite") as target:
        assert target.runs.all() == []
    assert swsearch(*command.split()).code == 0
    with Store(tmp_path / "m.sqlite") as target:
        assert [run.state for run in target.runs.all()] == ["finished"]
        assert [query.number for query in target.results.queries("latest")] == (
            list(range(6)) if "merge" in command else [0, 2, 4]
        )

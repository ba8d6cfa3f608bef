"""Shards in job arrays: names of their stores, tasks that run again, and what `runs merge` takes. Expected values: by
hand, or the same batch without shards."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess

import pytest

from swsearch.store.store import Store
from tests.cli.conftest import QUERIES
from tests.cli.test_batch import forget_queries, report
from tests.peers import SFTP_SERVER
from tests.tiers import mostly_thorough


def in_array(monkeypatch, task, last=3):
    """The environment of a task of a Slurm array."""
    for name, value in (("ID", task), ("MIN", 1), ("MAX", last), ("STEP", 1), ("COUNT", last)):
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", str(value))


@pytest.fixture
def shards(swsearch, monkeypatch, few_proteins_db):
    """Three tasks of an array, each with a store of its own: the arguments with which they were started."""
    arguments = ["batch", QUERIES, few_proteins_db, "--shard", "auto", "--store", "h-{shard}.sqlite"]
    for task in (1, 2, 3):
        in_array(monkeypatch, task)
        outcome = swsearch(*arguments, "--resume", "latest")
        assert outcome.out == f"run 1 in h-{task}-of-3.sqlite: {3 if task == 1 else 2} queries done, 0 failed\n"
    return arguments


def test_the_tasks_of_an_array_name_their_stores_and_are_merged_by_that_name(swsearch, few_proteins_db, shards):
    """Source: the batch without shards."""
    merged = swsearch("runs", "merge", "h-{shard}.sqlite", "--store", "all.sqlite")
    assert (merged.out, merged.err) == ("run 1 in all.sqlite: 7 queries of 3 shards\n", "")
    assert swsearch("batch", QUERIES, few_proteins_db, "--store", "whole.sqlite").code == 0
    assert report(swsearch, "all.sqlite") == report(swsearch, "whole.sqlite")


def test_a_query_takes_its_share_and_names_every_output_by_it(swsearch, monkeypatch, tmp_path, few_proteins_db):
    in_array(monkeypatch, 2)
    outputs = ["--store", "s-{shard}.sqlite", "--out", "o-{shard}.tsv", "--events", "e-{shard}.jsonl"]
    outcome = swsearch("query", QUERIES, few_proteins_db, "--shard", "auto", "--format", "blast6", *outputs)
    assert outcome.code == 0, outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "e-2-of-3.jsonl", "o-2-of-3.tsv", "s-2-of-3.sqlite",
    ]  # fmt: skip
    found = {line.split("\t")[0] for line in (tmp_path / "o-2-of-3.tsv").read_text().splitlines()}
    headers = [line[1:].split()[0] for line in QUERIES.read_text().splitlines() if line.startswith(">")]
    assert found <= {headers[1], headers[4]}


def test_a_task_that_has_ended_has_nothing_to_do_when_it_runs_again(swsearch, monkeypatch, shards):
    """As if the whole array were submitted again because one task had failed; a second run could not be merged."""
    in_array(monkeypatch, 2)
    again = swsearch(*shards, "--resume", "latest")
    assert again.out == "run 1 in h-2-of-3.sqlite: 0 queries done, 2 were there before, 0 failed\n"
    assert swsearch("runs", "merge", "h-{shard}.sqlite", "--store", "all.sqlite").code == 0


def test_a_task_that_runs_again_in_other_files_begins_anew(swsearch, monkeypatch, tmp_path, few_proteins_db, shards):
    """By hand: the first query is left out, so the shard has other queries than the finished run."""
    (tmp_path / "fewer.fasta").write_text(">" + ">".join(QUERIES.read_text().split(">")[2:]))
    in_array(monkeypatch, 2)
    other = swsearch("batch", "fewer.fasta", few_proteins_db, *shards[3:], "--resume", "latest")
    assert other.out == "run 2 in h-2-of-3.sqlite: 2 queries done, 0 failed\n"


def test_a_share_of_no_queries_is_merged_too(swsearch, few_proteins_db):
    """Source: the batch without shards; it has 7 queries, so shards 8/9 and 9/9 are empty."""
    for index in range(1, 10):
        outcome = swsearch("batch", QUERIES, few_proteins_db, "--shard", f"{index}/9", "--store", "s-{shard}.sqlite")
        n_done = "1 query" if index < 8 else "0 queries"
        assert outcome.out == f"run 1 in s-{index}-of-9.sqlite: {n_done} done, 0 failed\n"
    refused = swsearch("runs", "merge", *(f"s-{index}-of-9.sqlite" for index in range(1, 9)), "--store", "all.sqlite")
    assert "shard 9/9 is missing, 0 of 7 queries" in refused.error
    assert swsearch("runs", "merge", "s-{shard}.sqlite", "--store", "all.sqlite").code == 0
    assert swsearch("batch", QUERIES, few_proteins_db, "--store", "whole.sqlite").code == 0
    assert report(swsearch, "all.sqlite") == report(swsearch, "whole.sqlite")


def test_a_name_for_all_shares_stands_for_the_stores_that_are_there(swsearch, tmp_path, few_proteins_db, shards):
    (tmp_path / "h-3-of-3.sqlite").rename(tmp_path / "away")
    missing = swsearch("runs", "merge", "h-{shard}.sqlite", "--store", "all.sqlite")
    assert "shard 3/3 is missing, 2 of 7 queries; name the store that has it" in missing.error
    (tmp_path / "away").rename(tmp_path / "h-3-of-3.sqlite")
    shutil.copy(tmp_path / "h-1-of-3.sqlite", tmp_path / "h-01-of-10.sqlite")
    several = swsearch("runs", "merge", "h-{shard}.sqlite", "--store", "all.sqlite")
    assert "there are stores of 3 and 10 shards; name those of one batch, such as h-*-of-10.sqlite" in several.error
    nothing = swsearch("runs", "merge", "x-{shard}.sqlite", "--store", "all.sqlite")
    assert "x-{shard}.sqlite: there is no such store of any shard" in nothing.error
    assert not (tmp_path / "all.sqlite").exists()


def test_a_run_is_chosen_by_its_number(swsearch, few_proteins_db, shards):
    """By hand: shard 1/3 is there twice in its store; the message names the runs as they can be given."""
    again = ["batch", QUERIES, few_proteins_db, "--shard", "1/3", "--store", "h-1-of-3.sqlite"]
    assert swsearch(*again).out == "run 2 in h-1-of-3.sqlite: 3 queries done, 0 failed\n"
    rest = ["h-2-of-3.sqlite", "h-3-of-3.sqlite", "--store", "all.sqlite"]
    twice = swsearch("runs", "merge", "h-1-of-3.sqlite", *rest)
    assert "shard 1/3 is there twice" in twice.error
    assert "name the run to take, as h-1-of-3.sqlite#2" in twice.error
    assert swsearch("runs", "merge", "h-1-of-3.sqlite#2", *rest).out == "run 1 in all.sqlite: 7 queries of 3 shards\n"
    assert swsearch("runs", "merge", *rest[:2], "h-1-of-3.sqlite#1", *rest[2:]).code == 0
    unknown = swsearch("runs", "merge", "h-1-of-3.sqlite#7", *rest)
    assert "h-1-of-3.sqlite has no run '7'" in unknown.error


def test_the_batch_is_that_of_the_run_that_is_named(swsearch, few_proteins_db):
    """By hand: one store with the shards of two batches, of which the newer one would be merged."""
    for top in ("3", "5"):
        for index in (1, 2):
            shard = ["--shard", f"{index}/2", "--top", top, "--store", "h.sqlite"]
            assert swsearch("batch", QUERIES, few_proteins_db, *shard).code == 0
    assert swsearch("runs", "merge", "h.sqlite#1", "h.sqlite#2", "--store", "all.sqlite").code == 0
    assert swsearch("runs", "merge", "h.sqlite", "--store", "all.sqlite").code == 0
    with Store("all.sqlite") as store:
        assert [run.info.parameters["top"] for run in store.runs.all()] == [3, 5]


def test_auto_outside_an_array_stores_nothing(swsearch, tmp_path, few_proteins_db):
    for command in ("query", "batch"):
        refused = swsearch(command, QUERIES, few_proteins_db, "--shard", "auto", "--store", "h-{shard}.sqlite")
        assert "--shard auto: this is not a task of a job array" in refused.refusal
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("same_node", mostly_thorough([True, False], False))
def test_a_killed_task_goes_on_from_its_published_store(
    swsearch, spawn_paused, monkeypatch, tmp_path, few_proteins_db, same_node
):
    """Source: the batch without shards. The run was published; its first queries were on the disk of the node alone."""
    node, other = tmp_path / "node", tmp_path / "other"
    for folder in (node, other):
        folder.mkdir()
    in_array(monkeypatch, 1, last=2)
    monkeypatch.setenv("TMPDIR", str(node))
    arguments = ["batch", QUERIES, few_proteins_db, "--shard", "auto", "--store", "h-{shard}.sqlite"]
    arguments += ["--stage-store", "always", "--resume", "latest"]
    process = spawn_paused('Results, "add", 3', *arguments)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    monkeypatch.setenv("TMPDIR", str(node if same_node else other))
    resumed = swsearch(*arguments)
    assert (resumed.code, resumed.out) == (
        0,
        "run 1 in h-1-of-2.sqlite: 4 queries done, 0 were there before, 0 failed\n",
    )
    in_array(monkeypatch, 2, last=2)
    assert swsearch(*arguments).code == 0
    merged = swsearch("runs", "merge", "h-{shard}.sqlite", "--store", "all.sqlite", "--stage-store", "always")
    assert merged.out == "run 1 in all.sqlite: 7 queries of 2 shards\n"
    assert sorted(path.name for path in tmp_path.glob("*.sqlite*")) == [
        "all.sqlite", "h-1-of-2.sqlite", "h-2-of-2.sqlite",
    ]  # fmt: skip
    assert swsearch("batch", QUERIES, few_proteins_db, "--store", "whole.sqlite").code == 0
    assert report(swsearch, "all.sqlite") == report(swsearch, "whole.sqlite")


@pytest.mark.parametrize(
    "variables", mostly_thorough([{"SLURM_RESTART_COUNT": "1"}, {"LSB_RESTART": "Y"}, {}], {"SLURM_RESTART_COUNT": "1"})
)
def test_a_job_that_is_queued_again_elsewhere_goes_on_with_its_own_run(
    swsearch, monkeypatch, few_proteins_db, variables
):
    """By hand: the first attempt was on another machine, whose processes cannot be seen; the scheduler has ended it."""
    arguments = ["batch", QUERIES, few_proteins_db, "--store", "h.sqlite", "--resume", "latest", "--shard"]
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("swsearch.store.runs.host_name", lambda: "node7")
        for shard in ("1/2", "2/2"):
            assert swsearch(*arguments, shard).code == 0
        with Store("h.sqlite") as store:
            for run in (1, 2):
                store.runs.resume(run)
    forget_queries("h.sqlite", 4)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    again = swsearch(*arguments, "1/2")
    if variables:
        assert again.out == "run 1 in h.sqlite: 2 queries done, 2 were there before, 0 failed\n"
    else:
        assert again.out == "run 3 in h.sqlite: 4 queries done, 0 failed\n"
        assert "run 1 of the same search is being worked on by process" in again.err


@pytest.fixture
def network(tmp_path):
    """One folder as two mounts of a network file system, as two machines see it: sshfs without ssh."""
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("needs /dev/fuse")
    (tmp_path / "served").mkdir()
    command = tmp_path / "ssh"
    command.write_text(f"#!/bin/sh\nexec {SFTP_SERVER}\n")
    command.chmod(0o755)
    mounts = [tmp_path / "first", tmp_path / "second"]
    with contextlib.ExitStack() as stack:
        for mount in mounts:
            mount.mkdir()
            options = f"ssh_command={command},dir_cache=no"
            done = subprocess.run(
                ["sshfs", "-o", options, f"host:{tmp_path / 'served'}", mount],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
            stack.callback(subprocess.run, ["fusermount3", "-u", "-z", mount], check=True)
        yield mounts


@pytest.mark.parametrize(("ended", "n_published"), [(signal.SIGKILL, 0), (signal.SIGTERM, 3)])
def test_a_task_on_a_network_file_system_goes_on_on_another_machine(
    swsearch, spawn_paused, few_proteins_db, network, ended, n_published
):
    """Source: the batch in one process. The first process ends after three queries; SIGTERM lets it publish them."""
    first, second = network
    batch = ["batch", QUERIES, few_proteins_db, "--resume", "latest", "--store"]
    process = spawn_paused('Results, "add", 3', *batch, first / "h.sqlite")
    assert [path.name for path in first.iterdir()] == ["h.sqlite"]
    process.send_signal(ended)
    process.communicate()
    resumed = swsearch(*batch, second / "h.sqlite")
    counts = f"{7 - n_published} queries done, {n_published} were there before, 0 failed"
    assert resumed.out == f"run 1 in {second / 'h.sqlite'}: {counts}\n"
    again = swsearch(*batch, first / "h.sqlite")  # what the killed process left is discarded
    assert again.out == f"run 2 in {first / 'h.sqlite'}: 7 queries done, 0 failed\n"
    assert [path.name for path in first.iterdir()] == ["h.sqlite"]
    assert swsearch("batch", QUERIES, few_proteins_db, "--store", "whole.sqlite").code == 0
    assert report(swsearch, first / "h.sqlite", "1") == report(swsearch, "whole.sqlite")
    with contextlib.closing(sqlite3.connect(second / "h.sqlite", isolation_level=None)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        # An exclusive lock of SQLite that nobody releases stands for locks that do not work; a reader takes none.
        connection.execute("BEGIN EXCLUSIVE")
        assert report(swsearch, second / "h.sqlite") == report(swsearch, "whole.sqlite")

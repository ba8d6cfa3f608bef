"""A search that is interrupted says what the store keeps and with which command it goes on.

The command that is printed is executed; the finished report is compared with that of a search without interruption.
"""

import os
import re
import shlex
import signal
import threading

import pytest

from tests.cli.conftest import QUERIES
from tests.tiers import mostly_thorough


@pytest.mark.parametrize(
    ("sent", "code"), mostly_thorough([(signal.SIGINT, 130), (signal.SIGTERM, 143)], (signal.SIGINT, 130))
)
@pytest.mark.parametrize("command", mostly_thorough(["query", "batch"], "query"))
def test_the_command_that_is_printed_finishes_the_search(
    swsearch, spawn_paused, tmp_path, few_proteins_db, user_store, command, sent, code
):
    words = [command, QUERIES, few_proteins_db, "--top", "3", "--format", "blast6", "--out", "the hits.txt"]
    expected = swsearch("query", QUERIES, few_proteins_db, "--top", "3", "--format", "blast6", "--store", "none")
    process = spawn_paused('Results, "add", 3', *words, "--resume", "latest")
    process.send_signal(sent)
    _, errors = process.communicate()
    assert process.returncode == code
    assert f"run 1 in {user_store} keeps 2 of 7 queries and is marked interrupted" in errors
    assert ("swsearch: interrupted\n" in errors) == (sent == signal.SIGINT)
    (line,) = re.findall("^swsearch: to go on: swsearch (.*)$", errors, re.MULTILINE)
    assert line.endswith(" --resume 1")
    assert not (tmp_path / "the hits.txt").exists()
    assert swsearch(*shlex.split(line)).code == 0
    assert (tmp_path / "the hits.txt").read_text() == expected.out


def test_the_two_searches_of_rbh_go_on_with_the_command_that_is_printed(swsearch, spawn_paused, few_proteins_db):
    """It is interrupted in its first search, of which the second knows nothing."""
    words = ["rbh", few_proteins_db, few_proteins_db, "--format", "blast6", "--store", "pairs.sqlite"]
    process = spawn_paused('Results, "add", 3', *words)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    (line,) = re.findall("^swsearch: to go on: swsearch (.*)$", errors, re.MULTILINE)
    assert line.endswith(" --resume latest")
    expected = swsearch("rbh", few_proteins_db, few_proteins_db, "--format", "blast6", "--store", "whole.sqlite")
    assert swsearch(*shlex.split(line)).out == expected.out
    assert expected.out


def test_a_command_leaves_the_handlers_of_the_program_that_calls_it(swsearch):
    """After a command in the same process, SIGTERM ends a test run as before, and not with the exit of a command."""
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(one) for one in signals]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        assert swsearch("matrices").code == 0
        assert swsearch("query", "nosuch.fa", "nosuch.db").code == 1
        assert [signal.getsignal(one) for one in signals] == [signal.SIG_DFL, before[1]]
    finally:
        signal.signal(signal.SIGTERM, before[0])


def test_queries_of_a_pipe_must_come_again(spawn_paused, tmp_path, few_proteins_db):
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(QUERIES.read_text()))
    feeder.start()
    process = spawn_paused('Results, "add", 2', "query", "pipe", few_proteins_db)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    feeder.join()
    shown = f"swsearch: to go on, with the same queries as input: swsearch query pipe {few_proteins_db} --resume 1\n"
    assert shown in errors


def test_a_search_without_a_store_says_that_nothing_was_stored(spawn_paused, few_proteins_db):
    process = spawn_paused('Run, "tell", 2', "query", QUERIES, few_proteins_db, "--store", "none")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "swsearch: nothing was stored\n" in errors

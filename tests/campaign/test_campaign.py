"""The campaign itself: trials can be repeated, judges detect damage, and the page of promises names its tests.

The expected values are those of each command's judge, or follow from the damage that a test makes by hand.
"""

import os
import re
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.campaign.commands import NEW, OLD, Command, learned
from tests.campaign.program import called

pytestmark = [pytest.mark.thorough, pytest.mark.peer("gcc")]

ROOT = Path(__file__).parents[2]


def done(name: str, folder: Path, state_dir: Path) -> Command:
    """Return a command with its judge; the folder is then in the state after the undisturbed command."""
    template, command = learned(name, state_dir)
    command.prepare(template, folder)
    assert command.state(folder) == OLD
    command.must(folder, command.arguments)
    assert command.state(folder) == NEW
    assert command.leftovers(folder) == set()
    return command


def test_the_judges_see_a_changed_database(tmp_path: Path, state_dir: Path) -> None:
    """A flipped bit and a leftover file; expected values: the words of the problems."""
    command = done("db_add", tmp_path, state_dir)
    residues = min((tmp_path / "some.db").glob("*/residues.bin"))
    leftover = residues.with_name("residues.spool")
    leftover.touch()
    assert command.leftovers(tmp_path) == {f"{residues.parent.name}/residues.spool"}
    data = bytearray(residues.read_bytes())
    data[0] ^= 1
    residues.write_bytes(data)
    with pytest.raises(AssertionError, match="has changed since it was written"):
        command.state(tmp_path)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM hits WHERE rowid = (SELECT max(rowid) FROM hits)", "has not the results of an undisturbed one"),
        ("DELETE FROM hits WHERE rowid = (SELECT min(rowid) FROM hits)", "run 1, there before, has changed"),
        ("DELETE FROM runs WHERE id = 1", "foreign_key_check"),
    ],
)
def test_the_judges_see_a_changed_store(tmp_path: Path, state_dir: Path, statement: str, problem: str) -> None:
    """A missing row; expected values: the words of the problems."""
    command = done("query", tmp_path, state_dir)
    connection = sqlite3.connect(tmp_path / "hits.sqlite", isolation_level=None)
    connection.execute(statement)
    connection.close()
    with pytest.raises(AssertionError, match=problem):
        command.state(tmp_path)


@pytest.mark.parametrize(("name", "out"), [("report", "out.txt"), ("query", "hits.tsv")])
def test_the_judges_see_a_file_that_is_half_written(tmp_path: Path, state_dir: Path, name: str, out: str) -> None:
    """A file that lacks one byte; expected values: the words of the problems."""
    command = done(name, tmp_path, state_dir)
    (tmp_path / out).write_bytes((tmp_path / out).read_bytes()[:-1])
    with pytest.raises(AssertionError, match=f"{out} is half written"):
        command.state(tmp_path)


def print_and_return() -> int:
    print("said")
    return 3


def die() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def take_all_memory() -> int:
    return len(bytearray(1 << 40))


def test_a_child_that_dies_or_takes_all_memory_is_told_from_one_that_ends() -> None:
    ended = called(print_and_return)
    assert (ended.code, ended.out, ended.err, ended.fault) == (3, b"said\n", b"", None)
    assert re.search(r"(?s)SIGSEGV.* in die\n", str(called(die).fault))
    assert "MemoryError" in str(called(take_all_memory).fault)


def test_every_test_that_the_page_names_is_there_and_every_test_of_the_campaign_is_named() -> None:
    """Source: docs/design/reliability.md, and the files that it names."""
    page = (ROOT / "docs" / "design" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 25
    for path, function in named:
        found = re.search(rf"^ *def {function}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        assert found, f"{path}::{function} is not there"
    before = page.partition("## How the campaign works")[0]
    promises = [line for line in before.splitlines() if line.startswith("| ") and line.count("|") == 4]
    of_campaign = {name for promise in promises for name in re.findall(r"`(\w+)`", promise.split("|")[3])}
    files = Path(__file__).parent.rglob("test_*.py")
    marked = re.compile(r"^@pytest\.mark\.campaign\(.*\n(?:@.*\n)*def (\w+)", re.MULTILINE)
    assert {name for file in files for name in marked.findall(file.read_text(encoding="utf-8"))} == of_campaign
    for promise in promises:
        assert "`" in promise or promise.startswith(("| Promise", "| ---")), f"nothing tests this: {promise}"

"""Fixtures that run the command line: in this process for speed, and in a separate process where it is killed."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from swsearch.cli import output
from swsearch.cli.app import main
from tests.processes import Process, paused, start
from tests.support import DATA

QUERIES = DATA / "queries.fasta"

PAUSED = """
from swsearch.run import Run
from swsearch.cli.app import main
from swsearch.store.results import Results

def pause_after(owner, name, calls_left):
    function = getattr(owner, name)
    def paused(*arguments, **values):
        nonlocal calls_left
        result = function(*arguments, **values)
        calls_left -= 1
        if calls_left == 0:
            pause()
        return result
    setattr(owner, name, paused)

pause_after({moment})
sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Outcome:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def printed(self) -> str:
        """What a command printed on stdout that did all that it was asked for: exit code 0."""
        assert self.code == 0, self.err
        return self.out

    @property
    def error(self) -> str:
        """The one line that an expected error prints."""
        lines = [line for line in self.err.splitlines() if "error:" in line]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]

    @property
    def refusal(self) -> str:
        """The error of a command that ended with it and printed nothing else: exit code 1."""
        assert (self.code, self.out) == (1, ""), self
        return self.error


@pytest.fixture
def swsearch(capfd, monkeypatch, tmp_path) -> Callable[..., Outcome]:
    """Run ``swsearch`` with the given arguments, in an empty folder; a busy machine adds no lines of progress."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output, "PLAIN_INTERVAL_SECONDS", output.LONGEST_INTERVAL_SECONDS)

    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def spawn(tmp_path: Path) -> Callable[..., Process]:
    """Start ``swsearch`` in a process of its own, in an empty folder."""

    def call(*arguments: object, stdin: object = None) -> Process:
        return start(
            ["-m", "swsearch", *map(str, arguments)],
            cwd=tmp_path,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    return call


@pytest.fixture
def spawn_paused(tmp_path: Path) -> Callable[..., Process]:
    """As `spawn`, but paused at a given call: after ``Results, "add", 3`` the third query is stored."""

    return lambda moment, *arguments: paused(PAUSED.format(moment=moment), *arguments, cwd=tmp_path)


@pytest.fixture(scope="session")
def protein_db(real_databases) -> Path:
    """A database of the 1,500 real proteins in data/."""
    return real_databases / "proteins.db"


@pytest.fixture(scope="session")
def few_proteins_db(real_databases) -> Path:
    """A database of 60 of the proteins, for commands whose time is not the point."""
    return real_databases / "few.db"


@pytest.fixture(scope="session")
def some_proteins_db(real_databases) -> Path:
    """A database of 300 of the proteins, which has several partitions and long lists of hits."""
    return real_databases / "some.db"


@pytest.fixture(scope="session")
def lambda_db(real_databases) -> Path:
    """A database of one subject: the genome of phage lambda."""
    return real_databases / "lambda.db"


@pytest.fixture
def many_queries(tmp_path):
    """Two files of 35 queries: five windows over each of the demo's queries, one of which occurs twice."""
    records = [record.splitlines() for record in QUERIES.read_text().split(">")[1:]]
    queries = []
    for header, *lines in records:
        letters = "".join(lines)
        identifier = header.split()[0]
        queries += [(f"{identifier}_{start} window", letters[start : start + 90]) for start in (0, 20, 40, 44, 0)]
    for name, part in (("one.fasta", queries[:20]), ("two.fasta", queries[20:])):
        (tmp_path / name).write_text("".join(f">{header}\n{letters}\n" for header, letters in part))
    return ["one.fasta", "two.fasta"]

"""Closed streams, names that are not UTF-8 and too many threads: the command works, or one clear line says why not.

The expected output comes from the same command with all its streams, or with permitted values.
"""

import itertools
import os
import resource
import subprocess
import sys

import pytest

from tests.cli.conftest import DATA
from tests.processes import SWSEARCH
from tests.tiers import mostly_thorough

LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW"
CLOSED = ["".join(chosen) for n in (1, 2, 3) for chosen in itertools.combinations(("<&- ", ">&- ", "2>&- "), n)]


@pytest.fixture
def folder(swsearch, tmp_path):
    (tmp_path / "q.fa").write_text(f">one\n{LETTERS}\n>two\n{LETTERS}\n")
    assert swsearch("index", "q.fa", "-o", "p.db").code == 0
    return tmp_path


@pytest.fixture
def run(folder):
    """Run a command of the shell that begins with the arguments of ``swsearch``."""

    def call(command, python=sys.executable, **options):
        return subprocess.run(
            ["bash", "-c", f"{python} -m swsearch {command}"],
            check=False, capture_output=True, cwd=folder, **options,
        )  # fmt: skip

    return call


@pytest.mark.parametrize("closed", mostly_thorough(CLOSED, ">&- "))
def test_closed_streams_lose_nothing_and_mix_nothing(swsearch, folder, run, closed):
    """Source: the same command with all its streams open."""
    expected = swsearch("query", "q.fa", "p.db", "--store", "none").out.encode()
    outcome = run(f"query q.fa p.db --out hits.txt {closed}", sys.executable)
    assert outcome.returncode == 0
    assert (folder / "hits.txt").read_bytes() == expected
    assert b"Traceback" not in outcome.stderr
    assert outcome.stdout == b""
    assert "finished" in swsearch("runs", "list").out
    outcome = run(f"query q.fa p.db --store none {closed}")
    assert outcome.returncode == (1 if " >&-" in f" {closed}" else 0)
    assert outcome.stdout == (b"" if outcome.returncode else expected)
    if outcome.returncode and "2>" not in closed:
        assert outcome.stderr.splitlines()[-1] == (
            b"swsearch: error: stdout is closed; give --out FILE, or redirect stdout"
        )
    commands = ["query - p.db", "index - -o new.db", "align - q.fa", "db remove p.db --from-file -"]
    for command in [*commands, "--version"] if closed == "<&- " else ["--version"]:
        outcome = run(f"{command} {closed}", stdin=subprocess.DEVNULL)
        assert b"Traceback" not in outcome.stderr
        if command != "--version":
            assert b"error: stdin is closed, so - cannot be read; name a file" in outcome.stderr


def test_talk_to_a_reader_that_is_gone_ends_no_search(run):
    """Source: the results of a search whose stderr leads to a program that has ended."""
    expected = run("query q.fa p.db --store none").stdout
    outcome = run("query q.fa p.db 2> >(exec true)")
    assert (outcome.returncode, outcome.stdout) == (0, expected)
    assert b"finished" in run("runs list").stdout


COMMANDS_WITH_NAMES = [
    b"index q.fa -o x\xe9.db",
    b"index x\xe9.fa -o new.db",
    b"index q.fa -o x\xe9.db; {} index q.fa -o x\xe9.db --force",
    b"query q.fa p.db --out x\xe9.txt",
    b"query x\xe9.fa p.db --store none",
    b"query q.fa x\xe9p.db",
    b"query q.fa p.db --store x\xe9.sqlite; {} runs list --store x\xe9.sqlite; {} report latest --store x\xe9.sqlite",
    b"query q.fa p.db --plot x\xe9.png --quiet",
    b"query q.fa p.db --include x\xe9.none",
    b"batch x\xe9.fa p.db --store x\xe9.sqlite --events x\xe9.jsonl",
    b"align x\xe9.fa q.fa --out x\xe9.txt",
    b"align q.fa q\xe9.none",
    b"align --text x\xe9 a --mode edit",
    b"db info x\xe9p.db",
    b"db add x\xe9p.db q.fa",
    b"db compact x\xe9p.db",
    b"db export p.db --out x\xe9.fa.gz",
    b"query q.fa p.db --format x\xe9",
]


@pytest.mark.parametrize("locale", mostly_thorough(["C.UTF-8", "POSIX"], "POSIX"))
@pytest.mark.parametrize("command", mostly_thorough(COMMANDS_WITH_NAMES, b"query x\xe9.fa p.db --store none"))
def test_names_that_are_no_text(folder, command, locale):
    (folder / os.fsdecode(b"x\xe9.fa")).write_text(f">one\n{LETTERS}\n")
    (folder / "p.db").rename(folder / os.fsdecode(b"x\xe9p.db"))
    (folder / "p.db").symlink_to(os.fsdecode(b"x\xe9p.db"))
    variables = {"LC_ALL": locale, "PYTHONIOENCODING": ""}
    python = f"{sys.executable} -m swsearch".encode()
    whole = python + b" " + command.replace(b"{}", python)
    environment = {**os.environ, **variables}
    outcome = subprocess.run([b"bash", b"-ec", whole], check=False, capture_output=True, cwd=folder, env=environment)
    assert b"Traceback" not in outcome.stderr, outcome.stderr.decode("utf-8", "replace")
    assert outcome.returncode in (0, 1)
    assert outcome.stderr.count(b"error:") == outcome.returncode


@pytest.mark.parametrize("n", ["1025", "5000", "100000000000000000000"])
def test_more_threads_than_there_can_be(swsearch, folder, n):
    for command in ("query q.fa p.db --store none", "align q.fa q.fa", "align q.fa --pairs --cigar"):
        many = swsearch(*command.split(), "--threads", n)
        assert (many.code, many.out) == (1, ""), many.err
        assert many.error == (
            f"swsearch: error: --threads {n}: 1,024 at most; the cores of this machine are taken without it"
        )


def test_fewer_threads_than_asked_for_do_the_work(swsearch, folder):
    """Source: one thread. A memory limit stops the system from starting more threads, each with a stack of 8 MB."""
    query = ["query", DATA / "queries.fasta", "big.db", "--store", "none", "--top", "2"]
    assert swsearch("index", DATA / "proteins.fasta.gz", "-o", "big.db").code == 0
    expected = swsearch(*query, "--threads", "1").out
    outcome = subprocess.run(
        [SWSEARCH, *map(str, query), "--threads", "1024"],
        check=False, capture_output=True, text=True, cwd=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)),
    )  # fmt: skip
    assert (outcome.returncode, outcome.stdout) == (0, expected), outcome.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command", mostly_thorough(["engines", "--help", "runs list", "db info p.db", "report latest"], "runs list")
)
def test_a_reader_that_is_gone_is_no_error(swsearch, folder, command, unbuffered):
    """Source: `query | head`; with and without a buffer the closed pipe is detected at different operations.

    Messages are those for a reader that stays, or none, if the pipe was found closed before.
    """
    assert swsearch("query", "q.fa", "p.db").code == 0
    messages = swsearch(*command.split()).err
    reader, writer = os.pipe()
    os.close(reader)
    try:
        outcome = subprocess.run(
            [SWSEARCH, *command.split()],
            check=False, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    finally:
        os.close(writer)
    assert outcome.returncode == 0
    assert outcome.stderr in ("", messages)

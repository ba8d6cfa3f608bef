"""Progress not on a terminal: few plain lines with share, rate and remaining time. On a terminal: a bar, then removed.

The expected lines are calculated by hand from a clock that the test sets; terminal output is interpreted by pyte.
"""

import contextlib
import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pyte
import pytest

from swsearch.cli import output
from swsearch.cli.output import PLAIN_INTERVAL_SECONDS, ProgressReport, quietly, say
from tests.cli.conftest import DATA
from tests.processes import SWSEARCH


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(output, "time", made)
    return made


def test_plain_lines_tell_share_rate_and_time_left(clock, capsys):
    """Hand calculation: 30 of 100 billion units in 6 s are 5.0 billion a second, and 70 billion are left for 14 s."""
    with ProgressReport("searching", 100_000_000_000, "GCUPS", 1e9) as report:
        report.note("1 of 4 queries done")
        clock.now += 6
        report.advance(30_000_000_000)
    assert capsys.readouterr().err == "swsearch: searching, 1 of 4 queries done: 30.0 % done, 5.0 GCUPS, 14 s left\n"


def test_there_is_one_line_in_five_seconds_however_often_it_is_told(clock, capsys):
    with ProgressReport("searching", 1000, "GCUPS", 1e9) as report:
        for _ in range(1000):
            clock.now += 0.022
            report.advance(1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == int(22 / PLAIN_INTERVAL_SECONDS)
    assert all(line.startswith("swsearch: searching: ") for line in lines)


def test_a_week_is_told_in_less_than_a_quarter_of_a_megabyte(clock, monkeypatch):
    """The log is also never silent for more than five minutes."""
    week = 7 * 24 * 3600
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with ProgressReport("searching", week * 10_000_000_000, "GCUPS", 1e9) as report:
        last, size, longest = clock.now, 0, 0.0
        for second in range(0, week, 2):
            clock.now += 2
            report.note(f"{second:,} queries done")
            report.advance(20_000_000_000)
            if log.tell() > size:
                size, last = log.tell(), clock.now
            longest = max(longest, clock.now - last)
    assert 50_000 < size < 250_000
    assert longest <= 300


def test_an_unknown_total_tells_the_rate_alone(clock, capsys):
    with ProgressReport("indexing", 0, "M residues/s", 1e6) as report:
        clock.now += 10
        report.reach(50_000_000)
    assert capsys.readouterr().err == "swsearch: indexing: 5.0 M residues/s\n"


def test_quiet_says_nothing(clock, capsys):
    with quietly(True), ProgressReport("searching", 100, "GCUPS", 1e9) as report:
        clock.now += 60
        report.advance(50)
    assert capsys.readouterr().err == ""


class FullDisk(io.FileIO):
    """/dev/full, on which every write fails; the failed writes are counted."""

    def __init__(self):
        super().__init__("/dev/full", "w")
        self.n_failed = 0

    def write(self, data):
        try:
            return super().write(data)
        except OSError:
            self.n_failed += 1
            raise


def test_a_talk_that_nobody_hears_ends_no_work(clock, monkeypatch):
    """The writing of each of the three messages fails, and the work that is reported continues to its end."""
    done = []
    with FullDisk() as full:
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(full, write_through=True))
        with ProgressReport("searching", 100, "GCUPS", 1e9) as report:
            for units in (50, 50):
                clock.now += 60
                report.advance(units)
                done.append(units)
        say("done")
        assert done == [50, 50]
        assert full.n_failed >= 3


class Screen:
    """A pseudo-terminal of 100 columns, with its present content and all earlier content."""

    def __init__(self, lines=400):
        try:
            self.master, self.slave = pty.openpty()
        except OSError as error:
            pytest.skip(f"this machine gives out no pseudo-terminals: {error.strerror}")
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 100, 0, 0))
        self.screen = pyte.Screen(100, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.sent = b""
        self.was_shown = set()

    def read(self):
        """Read everything that is sent until the last process closes the terminal; record each state of the screen."""
        os.close(self.slave)
        with contextlib.suppress(OSError):  # EIO: no process has it open any more
            while block := os.read(self.master, 65536):
                self.sent += block
        os.close(self.master)
        for byte in self.sent:
            self.stream.feed(bytes([byte]))
            if byte in b"\r\n\x1b":
                line = self.screen.buffer[self.screen.cursor.y]  # `display` would make the text of all lines
                self.was_shown.add("".join(line[x].data for x in range(self.screen.columns)).rstrip())
        return [line.rstrip() for line in self.screen.display]


EVERY_BAR = """
import sys
from swsearch.cli import app, output
output.BAR_INTERVAL_SECONDS = 0.0
sys.exit(app.main(sys.argv[1:]))
"""
"""The command line with a bar for each step, even if the machine completes the step fast."""


def test_results_and_the_bar_never_share_a_line(few_proteins_db, tmp_path):
    """Source: the same command with its results in a file. Both stdout and stderr are the terminal."""
    command = [sys.executable, "-c", EVERY_BAR, "query", str(DATA / "queries.fasta"), str(few_proteins_db)]
    command += ["--store", "none", "--top", "5"]
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    outcome = subprocess.run(
        [*command, "--out", "hits.txt"], check=True, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    talk = outcome.stderr.splitlines()
    first = [line for line in talk if "engine" in line]
    last = [line for line in talk if "lists end at" in line]
    expected = [*first, *(tmp_path / "hits.txt").read_text().splitlines(), *last]
    screen = Screen()
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=screen.slave, stderr=screen.slave)
    shown = screen.read()
    assert process.wait() == 0
    wrapped = [line[start : start + 100].rstrip() for line in expected for start in range(0, max(len(line), 1), 100)]
    assert shown == wrapped + [""] * (len(shown) - len(wrapped))
    bars = {line for line in screen.was_shown if line.startswith("searching")}
    assert any("GCUPS" in line and "queries done" in line for line in bars)
    assert screen.was_shown <= {*bars, *wrapped, ""}


@pytest.mark.parametrize(
    ("columns", "options", "width"), [("", [], 100), ("118", [], 118), ("118", ["--width", "96"], 96)]
)
def test_a_table_has_the_width_of_its_terminal(swsearch, few_proteins_db, columns, options, width):
    """Source: the same command with its results in a file and the width as an option."""
    command = ["query", DATA / "queries.fasta", few_proteins_db, "--store", "none", "--quiet", *options]
    assert swsearch(*command[:6], "--width", width, "--out", "hits.txt").code == 0
    screen = Screen()
    environment = {**os.environ, "COLUMNS": columns}
    subprocess.run([SWSEARCH, *map(str, command)], check=True, env=environment, stdout=screen.slave)
    screen.read()
    assert screen.sent.decode().replace("\r\n", "\n") == Path("hits.txt").read_text()


@pytest.mark.parametrize("width", [1, 20, 40, 80, 300])
def test_the_bar_fits_the_terminal(clock, monkeypatch, width):
    """No line is wrapped, because a wrapped line could not be erased."""
    screen = Screen(5)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    with os.fdopen(os.dup(screen.slave), "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with ProgressReport("searching", 4_000_000_000, "GCUPS", 1e9) as report:
            report.note("3 of 20 queries done")
            for _ in range(4):
                clock.now += 1
                report.advance(1_000_000_000)
            say("something else")
            report.advance(0)
            clock.now += 1
            report.advance(0)
    shown = screen.read()
    assert shown == ["swsearch: something else", "", "", "", ""]
    bars = [part for part in screen.sent.decode().replace("\x1b[K", "\r").split("\r") if part.startswith("s")]
    assert max([len(bar) for bar in bars if "else" not in bar], default=0) <= max(width - 1, 1)


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(clock, monkeypatch):
    screen = Screen(5)
    monkeypatch.setenv("TERM", "dumb")
    with os.fdopen(os.dup(screen.slave), "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with ProgressReport("searching", 100, "GCUPS", 1) as report:
            clock.now += 10
            report.advance(50)
    assert screen.read()[0] == "swsearch: searching: 50.0 % done, 5.0 GCUPS, 10 s left"

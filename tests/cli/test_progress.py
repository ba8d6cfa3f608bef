"""Progress off a terminal: few plain lines with share, rate and time left; on one: a bar that leaves nothing behind."""

import os
import pty
import sys

import pytest

from swsearch.cli import progress
from swsearch.cli.progress import PLAIN_INTERVAL_SECONDS, ProgressReport


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
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


def test_a_week_is_told_in_less_than_a_quarter_of_a_megabyte(clock, capsys):
    """And never is a log silent for more than five minutes."""
    week = 7 * 24 * 3600
    with ProgressReport("searching", week * 10_000_000_000, "GCUPS", 1e9) as report:
        told, size, silence, longest = clock.now, 0, 0.0, 0.0
        for second in range(0, week, 2):
            clock.now += 2
            report.note(f"{second:,} queries done")
            report.advance(20_000_000_000)
            line = capsys.readouterr().err
            if line:
                size, told = size + len(line), clock.now
            silence = clock.now - told
            longest = max(longest, silence)
    assert 50_000 < size < 250_000
    assert longest <= 300


def test_an_unknown_total_tells_the_rate_alone(clock, capsys):
    with ProgressReport("indexing", 0, "M residues/s", 1e6) as report:
        clock.now += 10
        report.reach(50_000_000)
    assert capsys.readouterr().err == "swsearch: indexing: 5.0 M residues/s\n"


def test_quiet_says_nothing(clock, capsys):
    with ProgressReport("searching", 100, "GCUPS", 1e9, quiet=True) as report:
        clock.now += 60
        report.advance(50)
    assert capsys.readouterr().err == ""


def _read_until(descriptor, last):
    """What a terminal was sent, to ``last``: it arrives in as many pieces as it was written in, or more."""
    shown = b""
    while last not in shown:
        shown += os.read(descriptor, 65536)
    return shown.decode()


def test_a_terminal_gets_a_bar(monkeypatch):
    """A pseudo-terminal is stderr; the bar's figures are on it."""
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"this machine gives out no pseudo-terminals: {error.strerror}")
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        with ProgressReport("searching", 4_000_000_000, "GCUPS", 1e9) as report:
            report.advance(2_000_000_000)
        terminal.flush()
        shown = _read_until(master, b"\x1b[?25h")
    os.close(master)
    assert "searching" in shown
    assert "GCUPS" in shown

"""The progress of a command on stderr: a bar on a terminal, otherwise plain lines, as in a log file.

The interval between plain lines increases with the elapsed time, from a few seconds to a few minutes. The log of
``--log`` gets the plain lines in either case.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from swsearch.cli.output import last_line, say, terminal_width

if TYPE_CHECKING:
    from swsearch.engine.protocol import Forecast

PLAIN_INTERVAL_SECONDS: Final = 5.0
LONGEST_INTERVAL_SECONDS: Final = 300.0
"""The interval between plain lines is a hundredth of the elapsed time, within these limits."""
BAR_INTERVAL_SECONDS: Final = 0.1
SHORTEST_BAR: Final = 5
LONGEST_BAR: Final = 40
"""Largest width of the bar, in characters."""
LONG_SECONDS: Final = 10.0
"""The plan of a search is printed before it starts if it is expected to take longer than this."""


def duration(seconds: float) -> str:
    """A duration as text.

    >>> duration(3.2), duration(75), duration(7320)
    ('3 s', '1 min 15 s', '2 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def say_plan(forecast: Forecast | None, *, quiet: bool) -> None:
    """Print the plan of a long search and an estimate of its time, if one is known."""
    if forecast is not None and forecast.seconds >= LONG_SECONDS:
        say(f"plan: {forecast}; about {duration(forecast.seconds)}", quiet=quiet)


class ProgressReport:
    """Reports how many of ``total`` units are complete, the rate, and the remaining time; a context manager.

    Parameters
    ----------
    what : str
        The word before the numbers, such as ``searching``.
    total : int
        Number of all units; 0 if it is unknown.
    unit : str
        Name of the unit of the rate, ``scale`` units per second, such as ``GCUPS``.
    scale : float
        Number of units in one ``unit``.
    quiet : bool
        Whether to print nothing on stderr.
    """

    def __init__(self, what: str, total: int, unit: str, scale: float, quiet: bool = False) -> None:
        self._what = what
        self._total = total
        self._unit = unit
        self._scale = scale
        self._done = 0
        self._note = ""
        self._began = self._said = self._drawn = time.monotonic()
        self._quiet = quiet
        self._has_bar = not quiet and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def __enter__(self) -> Self:
        self._began = self._said = self._drawn = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        last_line.clear_bar()

    def note(self, text: str) -> None:
        """Add a note to the line, such as ``3 of 20 queries done``."""
        self._note = text

    def advance(self, units: int) -> None:
        """Add ``units`` to the number of complete units; print a line when the interval is over."""
        self.reach(self._done + units)

    def reach(self, units: int) -> None:
        """Set the number of complete units; print a line when the interval is over."""
        is_first = not self._done
        self._done = units
        now = time.monotonic()
        if self._has_bar and (is_first or now - self._drawn >= BAR_INTERVAL_SECONDS):
            self._drawn = now
            last_line.show_bar(self._bar((terminal_width(sys.stderr) or 80) - 1))
        if now - self._said >= min(max(PLAIN_INTERVAL_SECONDS, (now - self._began) / 100), LONGEST_INTERVAL_SECONDS):
            self._said = now
            share = f"{100 * self._done / self._total:.1f} % done, " if self._total else ""
            say(f"{self._heading()}: {share}{self._figures()}", quiet=self._quiet or self._has_bar)

    def _bar(self, width: int) -> str:
        """Heading, bar and numbers in at most ``width`` characters, so that the terminal does not wrap the line."""
        left = width - len(self._heading()) - len(self._figures()) - 4
        bar = ""
        if self._total and left >= SHORTEST_BAR:
            length = min(left, LONGEST_BAR)
            done = min(length, length * self._done // self._total)
            bar = f"[{'=' * done}{' ' * (length - done)}] "
        return f"{self._heading()} {bar}{self._figures()}"[: max(width, 0)]

    def _heading(self) -> str:
        return f"{self._what}, {self._note}" if self._note else self._what

    def _figures(self) -> str:
        seconds = time.monotonic() - self._began
        rate = self._done / seconds if seconds > 0 else 0.0
        left = f", {duration((self._total - self._done) / rate)} left" if self._total and rate > 0 else ""
        return f"{rate / self._scale:.1f} {self._unit}{left}"

"""The table of faults, ``mutations.txt``.

A fault is a block of lines; blank lines separate the blocks, and lines that begin with ``#`` are remarks:

    swsearch/hits/ranks.py: tests/search/test_ranking.py
    - the right text, within one line of the file
    + the faulty text

After the colon stand the arguments of pytest that select the tests that must find it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

TOP: Final = Path(__file__).parents[2]
TABLE: Final = Path(__file__).with_name("mutations.txt")


@dataclass(frozen=True)
class Mutation:
    """A fault: ``right`` is replaced by ``faulty`` in the file ``path``; ``tests`` must find it."""

    path: str
    right: str
    faulty: str
    tests: tuple[str, ...]

    @property
    def module(self) -> str:
        """The name of the faulty module."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def __str__(self) -> str:
        return f"{self.path}: {self.right.strip()} -> {self.faulty.strip()}"


def mutations() -> list[Mutation]:
    """All faults, in the order of the table."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = []
    for block in "\n".join(lines).split("\n\n"):
        if block.strip():
            head, right, faulty = block.strip("\n").split("\n")
            path, _, tests = head.partition(": ")
            assert right.startswith("- "), block
            assert faulty.startswith("+ "), block
            found.append(Mutation(path, right[2:], faulty[2:], tuple(tests.split())))
    return found

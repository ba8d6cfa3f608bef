"""Trials of the campaign's tests: what each draws is determined by the test, a seed and a number alone."""

import random
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Trial:
    """One trial of a test.

    Attributes
    ----------
    test : str
    seed, number : int
        What determines the trial, with the name of the test.
    folder : Path
        An empty folder of its own.
    state_dir : Path
        A folder for data that the trials of all tests share.
    seconds : float
        What a trial may take whose length is its own choice.
    """

    test: str
    seed: int
    number: int
    folder: Path
    state_dir: Path
    seconds: float = 5.0
    rng: random.Random = field(init=False)
    numbers: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.test} {self.seed} {self.number}")
        self.numbers = np.random.default_rng([self.seed, self.number, zlib.crc32(self.test.encode())])


@contextmanager
def told(how: str) -> Iterator[None]:
    """Say with each failure of the block what was done before."""
    try:
        yield
    except Exception as error:
        error.add_note(how)
        raise

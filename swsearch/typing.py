"""Types of all packages: aliases of array types, with the dtype and the meaning of the axes, and what can be closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint8]
"""Residue codes, shape ``(n_residues,)``; bits 0-4 letter, bit 5 soft mask (:mod:`swsearch.sequences.alphabet`)."""

ScoreTable = NDArray[np.int8]
"""Scores of query rows against subject letters, shape ``(n_rows, 32)``."""

Scores = NDArray[np.int32]
"""Raw scores, shape ``(n_subjects,)``."""

SubjectIndex = NDArray[np.uint32]
"""Indices of subjects in FASTA order, from 0, shape ``(n_subjects,)``."""

Lengths = NDArray[np.uint32]
"""Lengths in residues, shape ``(n_sequences,)``."""

Offsets = NDArray[np.uint64]
"""Byte offsets in a file, shape ``(n_sequences,)`` or ``(n_sequences + 1,)``."""

Letters = NDArray[np.uint16]
"""Letters of a text or residue codes as numbers, shape ``(n_letters,)``."""

Mask = NDArray[np.bool_]
"""Whether each residue is masked, shape ``(n_residues,)``."""

Floats = NDArray[np.float64]
"""Real numbers, one axis."""

Bools = NDArray[np.bool_]
"""Truth values, one axis."""

Places = NDArray[np.int64]
"""Positions in a sequence, from 0, one axis."""

Progress = Callable[[int], None]
"""A function that is called with the amount of work, such as the number of cells, completed since its last call."""

LengthRange = tuple[int, int]
"""The shortest and the longest of some lengths."""


class Closeable(ABC):
    """A context manager that calls :meth:`close` at the end of its block, including after an exception."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; further calls have no effect."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

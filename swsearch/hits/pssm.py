"""A position-specific scoring matrix (PSSM) as a plain record: what the last round of an iterated search searched with.

The store saves it with the result of a query, and :mod:`swsearch.pssm` writes it to files and searches with it again.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

N_AMINO_ACIDS = 20
"""Number of letters with position-specific scores: those with the first codes of the protein alphabet."""


@dataclass(frozen=True, eq=False)
class Pssm:
    """The scores of the twenty amino acids at each position of a query.

    Attributes
    ----------
    scores : int8 array, shape (length, 20)
        In the order of the alphabet, ``ARNDCQEGHILKMFPSTWYV``, and in the units of the search's matrix.
    """

    scores: NDArray[np.int8]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pssm) and np.array_equal(self.scores, other.scores)

    def __hash__(self) -> int:
        return hash(self.scores.tobytes())

    def as_text(self) -> str:
        """The scores as a store keeps them: compressed, in base 64."""
        return base64.b64encode(zlib.compress(np.ascontiguousarray(self.scores).tobytes())).decode("ascii")

    @classmethod
    def from_text(cls, text: str, length: int) -> Self:
        """The inverse of :meth:`as_text`, for a query of ``length`` positions.

        Raises
        ------
        ValueError
            The text is damaged, or the PSSM is that of a query of another length.
        """
        try:
            values = zlib.decompress(base64.b64decode(text, validate=True))
        except zlib.error as error:
            raise ValueError(f"the scores of a PSSM are damaged: {error}") from error
        if len(values) != length * N_AMINO_ACIDS:
            raise ValueError(f"the scores of a PSSM are damaged: {len(values)} values for {length} positions")
        return cls(np.frombuffer(values, dtype=np.int8).reshape(-1, N_AMINO_ACIDS))

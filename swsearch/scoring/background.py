"""How often each letter occurs by chance: what statistics, simulations and composition corrections compare with."""

from __future__ import annotations

from typing import Final

import numpy as np

from swsearch.sequences.alphabet import PROTEIN, Alphabet
from swsearch.typing import Floats

_AMINO_ACIDS_PER_THOUSAND: Final = (
    78.05, 51.29, 44.87, 53.64, 19.25, 42.64, 62.95, 73.77, 21.99, 51.42,
    90.19, 57.44, 22.43, 38.56, 52.03, 71.20, 58.41, 13.30, 32.16, 64.41,
)  # fmt: skip
"""In the order ARNDCQEGHILKMFPSTWYV (Robinson and Robinson 1991, as BLAST's parameters were computed with)."""


def background(alphabet: Alphabet) -> Floats:
    """Frequencies of the 20 amino acids, or of the 4 bases, in the order of their codes; they sum to 1.

    >>> background(PROTEIN).shape, round(float(background(PROTEIN)[0]), 4)
    ((20,), 0.0781)
    """
    if alphabet is PROTEIN:
        weights = np.array(_AMINO_ACIDS_PER_THOUSAND)
        frequencies: Floats = weights / weights.sum()
        return frequencies
    return np.full(4, 0.25)

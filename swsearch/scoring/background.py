"""Background frequencies of letters, for statistics, simulations and composition correction."""

from __future__ import annotations

from typing import Final

import numpy as np

from swsearch.sequences.alphabet import PROTEIN, Alphabet
from swsearch.typing import Floats

_AMINO_ACIDS_PER_HUNDRED_THOUSAND: Final = (
    7805, 5129, 4487, 5364, 1925, 4264, 6295, 7377, 2199, 5142,
    9019, 5744, 2243, 3856, 5203, 7120, 5841, 1330, 3216, 6441,
)  # fmt: skip
"""Number of each residue per 100,000 in natural proteins, in the order ARNDCQEGHILKMFPSTWYV (Robinson and Robinson
1991; the parameters of BLAST were computed with the same numbers)."""


def background(alphabet: Alphabet) -> Floats:
    """Frequencies of the 20 amino acids, or of the 4 bases, in the order of their codes; float64, with sum 1.

    >>> background(PROTEIN).shape, round(float(background(PROTEIN)[0]), 5)
    ((20,), 0.07805)
    """
    if alphabet is PROTEIN:
        frequencies: Floats = np.array(_AMINO_ACIDS_PER_HUNDRED_THOUSAND) / 100_000
        return frequencies
    return np.full(4, 0.25)

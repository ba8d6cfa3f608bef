"""Queries with which a bound proves little: short peptides, and proteins of few residues or of repeats.

Nothing is read: the sequences are random with a fixed seed, after the composition and the repeats that name their
family. ``benchmark_bound.py --biased`` measures that no search for one of them is slower with the bound than without,
and ``check_hits.py`` that its hits are the same.
"""

from __future__ import annotations

import numpy as np

from swsearch.sequences.alphabet import PROTEIN
from swsearch.typing import Codes

N_PEPTIDES = 20
BACKGROUND = "LLLLLLLLLAAAAAAAAGGGGGGGSSSSSSSVVVVVVVEEEEEEDDDDDTTTTTTKKKKKKIIIIIIPPPPPRRRRRNNNNQQQQFFFFYYYHHMMCW"
"""Residues about as often as in proteins."""
HEPTAD = ("LIVM", "KERQ", "KERQSN", "LIVA", "EKQR", "KERQ", "EKRNS")
"""Residues at the seven positions of a coiled coil."""


def biased_queries(seed: int = 1) -> list[tuple[str, Codes]]:
    """Names and residue codes of the queries."""
    rng = np.random.default_rng(seed)

    def drawn(letters: str, length: int) -> str:
        return "".join(rng.choice(list(letters), length))

    found = [(f"peptide {length}", drawn(BACKGROUND, length)) for length in np.linspace(8, 30, N_PEPTIDES).astype(int)]
    for length in (140, 420, 1050):
        found.append((f"coiled coil {length}", "".join(drawn(HEPTAD[i % 7], 1) for i in range(length))))
        triplets = "".join("G" + drawn("PPPPAEKQ", 1) + drawn("PPPARKS", 1) for _ in range(length // 3))
        found.append((f"collagen {length}", triplets))
    found += [(f"poly-Q {length}", "Q" * length) for length in (40, 200)]
    found += [("acidic 300", drawn("DDDDEEEEEESSGKA", 300)), ("serine and arginine 300", drawn("RRRRSSSSRSPGK", 300))]
    return [(name, PROTEIN.encode(letters)) for name, letters in found]

"""The diversity of a multiple alignment, in two measures of which both are at most 20 for protein.

:func:`effective_number` is Neff of HH-suite (``NEFF`` in its ``hhm`` files), an entropy of weighted rows;
:func:`mean_kinds` is the simple count of PSI-BLAST, on which its weight of observations depends.
"""

from __future__ import annotations

import numpy as np

from swsearch import _native
from swsearch.hits.pssm import N_AMINO_ACIDS
from swsearch.typing import Codes


def effective_number(codes: Codes, n_kinds: int = N_AMINO_ACIDS, threads: int = 1) -> float:
    """Neff: the mean over the columns of the effective number of rows of the subalignment of each column.

    The subalignment of a column has the rows with a residue there, and the columns that at least 90 % of these rows
    reach. Its effective number is the exponential of the mean entropy of these columns, where the rows have
    position-based weights (Henikoff and Henikoff 1994) within the subalignment. It is 1 for one row and at most
    ``n_kinds``.

    Source: HH-suite's user guide; Söding 2005, Bioinformatics 21:951. ``hhmake`` computes logarithms with an error of
    some 1e-3, so its values differ in the third digit.

    Parameters
    ----------
    codes : uint8 array, shape (n_rows, n_columns)
        Codes below ``n_kinds`` are residues.
    n_kinds : int
        20 for protein, 4 for DNA.
    threads : int
        The value does not depend on it.

    >>> effective_number(np.array([[0, 1, 2, 3]], np.uint8))
    1.0
    >>> effective_number(np.array([[0] * 12, [1] * 12], np.uint8))
    2.0
    """
    return _native.effective_number(np.ascontiguousarray(codes), n_kinds, threads)


def mean_kinds(codes: Codes, n_kinds: int = N_AMINO_ACIDS) -> float:
    """Mean number of different residues of a column, over the columns that have any; 0 if none has.

    Altschul and others 1997, Nucleic Acids Research 25:3389: the relative number of independent observations of a
    column is this mean over the columns of its reduced alignment; here it is that of the whole alignment.

    >>> mean_kinds(np.array([[0, 1, 2, 31], [0, 2, 3, 31], [0, 2, 4, 31]], np.uint8))
    2.0
    """
    found = np.stack([(codes == kind).any(axis=0) for kind in range(n_kinds)])
    kinds = np.count_nonzero(found, axis=0)
    return int(kinds.sum(dtype=np.int64)) / max(1, int(np.count_nonzero(kinds)))

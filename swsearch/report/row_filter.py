"""Multiple alignments as arrays of codes: which rows are kept, and the diversity of an alignment.

An alignment is a uint8 array of shape (n_rows, n_columns): residue codes of an alphabet, other letters, and 31 for a
gap. Row 0 is the query. :func:`swsearch.report.anchored.alignment_codes` makes such arrays of the hits of a query.

A row is kept by its coverage and identity with the query, and its identity with other rows.
The conditions are those of HH-suite's ``hhfilter`` (Steinegger and others 2019, BMC Bioinformatics 20:473), which also
the server of ColabFold uses, in MMseqs2's form:

``coverage`` (``-cov``)  residues of the row, in percent of the columns
``query_identity`` (``-qid``)  residues of the row that equal the query's, in percent of the residues of the row
``max_identity`` (``-id``)  identity with a longer row that is kept, in percent
``diff`` (``-diff``)  the number of rows that a diverse selection keeps in each window of 50 columns

**Identity of two rows** is the percentage of equal residues among the columns in which both have a residue, or among
the residues of the shorter row if that is lower. Letters that are not amino acids (X, B …) or bases (N …) are no
residues. The rows are considered from the one with the most residues to the one with the fewest, those of equal length
in their order; a row is removed if its identity with a row that was kept before exceeds ``max_identity``. The query is
the first and is always kept.

**A diverse selection** keeps few rows first: with a limit of 20 % identity. The limit then rises by 1 to 5 % at a time,
up to ``max_identity``, for the rows that reach a window that has fewer rows than ``diff``. So similar rows are kept
where a part of the query has few relatives, and removed where it has many. The number of rows of a window is that of
its deepest column, with the query.

Differences from hhfilter: rows of equal length are considered in the order of the alignment, where hhfilter's order is
that of its sorting algorithm; a row that has exactly ``query_identity`` is kept; rows without a common column are never
similar; and with a limit below 20 %, a diverse selection is one with that limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.arguments import number, whole_number
from swsearch.errors import InputError
from swsearch.sequences.alphabet import N_AMINO_ACIDS
from swsearch.typing import Codes
from swsearch.words import ABSENT, option

LOWEST_LIMIT: Final = 20
"""Percent identity with which a diverse selection begins."""
MOST_ROWS: Final = 2**31 - 1
"""Largest number of rows that a condition may name."""


@dataclass(frozen=True)
class RowFilter:
    """The conditions on the rows of an alignment; the defaults keep all of them. False as a bool if nothing is asked.

    Attributes
    ----------
    coverage : float
        Smallest percentage, 0 to 100, of the columns in which a row has a residue.
    query_identity : float
        Smallest percentage, 0 to 100, of a row's residues that equal the query's.
    max_identity : int
        Largest percentage, 0 to 100, of identity with another row; 100 removes no row.
    diff : int
        Rows of each window of 50 columns, at least 0, beyond which similar rows are removed; 0: no such selection.
    filter_above : int
        The conditions on identity among rows are ignored if at most this many rows besides the query pass the others;
        the idea of MMseqs2's ``--filter-min-enable``.

    Raises
    ------
    InputError
        A value is out of its range, or ``filter_above`` has nothing to act on.
    """

    coverage: float = 0.0
    query_identity: float = 0.0
    max_identity: int = 100
    diff: int = 0
    filter_above: int = 0

    def __post_init__(self) -> None:
        for name in ("coverage", "query_identity", "max_identity"):
            value = getattr(self, name)
            percent = whole_number(name, value) if name == "max_identity" else number(name, value)
            object.__setattr__(self, name, percent)
            if not 0 <= percent <= 100:
                raise InputError(f"{option_of(name, percent)}: choose a percentage, 0 to 100")
        for name in ("diff", "filter_above"):
            count = whole_number(name, getattr(self, name))
            object.__setattr__(self, name, count)
            if not 0 <= count <= MOST_ROWS:
                raise InputError(f"{option_of(name, count)}: choose a whole number, 0 to {MOST_ROWS:,}")

        if self.filter_above and self.max_identity == 100 and self.diff == 0:
            needed = f"{option_of('max_identity')} and {option_of('diff')}"
            raise InputError(f"{option_of('filter_above')} serves {needed}; give one of them")

    def __bool__(self) -> bool:
        return (self.coverage, self.query_identity, self.max_identity, self.diff) != (0, 0, 100, 0)

    def kept(self, codes: Codes, n_kinds: int = N_AMINO_ACIDS) -> NDArray[np.intp]:
        """The rows that are kept, in ascending order; row 0, the query, is always one of them.

        Parameters
        ----------
        codes : uint8 array, shape (n_rows, n_columns)
            Codes below ``n_kinds`` are residues; at least one row.
        n_kinds : int
            20 for protein, 4 for DNA.

        >>> from swsearch.sequences.alphabet import PROTEIN
        >>> rows = ["MKVLAW", "MKVLAF", "-KVL--", "MRILGW"]
        >>> codes = np.array([[31 if a == "-" else PROTEIN.code(a) for a in row] for row in rows], np.uint8)
        >>> RowFilter(coverage=60).kept(codes).tolist()
        [0, 1, 3]
        >>> RowFilter(max_identity=80).kept(codes).tolist()
        [0, 3]
        """
        if not self:
            return np.arange(len(codes))
        residues = codes < n_kinds
        n_residues = np.count_nonzero(residues, axis=1)
        passes = n_residues > 0
        passes &= 100 * n_residues >= self.coverage * codes.shape[1]
        if self.query_identity > 0:
            identical = np.count_nonzero(residues & (codes == codes[0]), axis=1)
            passes &= 100 * identical >= self.query_identity * n_residues
        passes[0] = True
        rows = np.flatnonzero(passes)
        if (self.max_identity == 100 and self.diff == 0) or len(rows) - 1 <= self.filter_above:
            return rows
        others = rows[1:]
        order = np.concatenate([[0], others[np.argsort(-n_residues[others], kind="stable")]]).astype(np.uint32)
        taken = np.zeros(len(codes), dtype=np.uint8)
        _native.select_rows(
            np.ascontiguousarray(codes), order, n_kinds, self.max_identity, LOWEST_LIMIT, self.diff, taken
        )
        return np.flatnonzero(taken)


EVERY_ROW: Final = RowFilter()
"""The conditions that keep all rows."""


def option_of(name: str, value: object = ABSENT) -> str:
    """The option for an attribute of :class:`RowFilter` in a message, which is ``--msa-...`` on the command line."""
    return option(name, value, flag="--msa-" + name.replace("_", "-"))


# --- diversity: two measures, of which both are at most 20 for protein ---


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

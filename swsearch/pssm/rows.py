"""The hits of a query as rows of a multiple alignment whose columns are the positions of the query.

:func:`anchored_rows` takes the hits of a :class:`~swsearch.hits.result.QueryResult`; :mod:`swsearch.pssm.weights` and
:mod:`swsearch.pssm.estimation` use its rows. A row has one code for each position of the query: that of a residue, or
:data:`GAP` where the subject lacks the position, or :data:`OUTSIDE` before and after the aligned part. Residues that a
subject has between two positions of the query are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.sequences.alphabet import CODE_MASK, PAD_CODE, PROTEIN
from swsearch.typing import Codes

OUTSIDE: Final = 30
"""Code of a column before or after the aligned part of a row."""
GAP: Final = PAD_CODE
"""Code of a gap inside the aligned part of a row."""
NEARLY_IDENTICAL: Final = 94
"""Percentage of equal residues from which on a row adds nothing to an earlier one, as in PSI-BLAST."""


def anchored_rows(query_length: int, hits: Sequence[Hit]) -> NDArray[np.uint8]:
    """The rows of protein hits, in the order of the hits.

    Parameters
    ----------
    query_length : int
        Number of positions of the query, which is not translated.
    hits : sequence of Hit
        Hits with ``subject_letters``.

    Returns
    -------
    uint8 array, shape (n_hits, query_length)

    Raises
    ------
    InputError
        An alignment does not fit its letters or the query.
    """
    rows = np.empty((len(hits), query_length), dtype=np.uint8)
    letters = "".join([hit.alignment.subject_letters for hit in hits]).encode("latin-1", "replace")
    cigars = "".join([hit.alignment.cigar for hit in hits]).encode("latin-1", "replace")
    codes = PROTEIN.encode_table[np.frombuffer(letters, dtype=np.uint8)] & np.uint8(CODE_MASK)
    failed = _native.write_rows(
        codes,
        np.cumsum([len(hit.alignment.subject_letters) for hit in hits], dtype=np.int64),
        np.frombuffer(cigars, dtype=np.uint8),
        np.cumsum([len(hit.alignment.cigar) for hit in hits], dtype=np.int64),
        np.array([hit.alignment.query_start for hit in hits], dtype=np.int64),
        rows,
    )
    if failed >= 0:
        raise InputError(f"the alignment with {hits[failed].subject_id} does not fit its letters; search again")
    return rows


def distinct_rows(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The rows that add something to those before them.

    The first row is the query. A further row is left out if it equals the query in all its residues, or an earlier
    remaining row in at least :data:`NEARLY_IDENTICAL` percent of them. The percentage refers to the residues of the
    later row, so a long row is not left out because of a short one.
    """
    keep = np.empty(len(rows), dtype=np.uint8)
    _native.keep_distinct(np.ascontiguousarray(rows), NEARLY_IDENTICAL, keep)
    distinct: NDArray[np.uint8] = rows[keep.astype(bool)]
    return distinct


def rows_of_alignment(codes: Codes) -> NDArray[np.uint8]:
    """The rows of an alignment from a file, whose gaps before the first and after the last residue are outside."""
    rows = codes.copy()
    is_gap = rows == GAP
    before = np.logical_and.accumulate(is_gap, axis=1)
    after = np.logical_and.accumulate(is_gap[:, ::-1], axis=1)[:, ::-1]
    rows[before | after] = OUTSIDE
    return rows

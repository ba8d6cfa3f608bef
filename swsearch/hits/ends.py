"""Where optimal local alignments end, as an engine may know it of subjects whose scores it found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Ends:
    """The ends of one query's best alignments, by docs/design/traceback.md: smallest subject end, then query end.

    Attributes
    ----------
    query_end : int64 array, shape (n_subjects,)
        Query residues before the end, 1 to the query's length, along the strand of the profile; 0 where nothing aligns.
    subject_end : int64 array, shape (n_subjects,)
        Subject residues before the end, likewise.
    """

    query_end: NDArray[np.int64]
    subject_end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.query_end)

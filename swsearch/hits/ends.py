"""The ends of optimal local alignments, as an engine may report them for subjects that it has scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Ends:
    """The ends of one query's best alignments; of several, the smallest subject end, then the smallest query end.

    Attributes
    ----------
    query_end : int64 array, shape (n_subjects,)
        Query residues up to the end, 1 to the query's length, along the strand of the profile; 0 where nothing aligns.
    subject_end : int64 array, shape (n_subjects,)
        Subject residues up to the end, 1 to the subject's length; 0 where nothing aligns.
    """

    query_end: NDArray[np.int64]
    subject_end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.query_end)

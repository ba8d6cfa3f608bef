"""The ends of optimal local alignments, as an engine may report them for subjects that it has scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Ends:
    """The ends of one query's optimal alignments; among several, the smallest subject end, then smallest query end.

    Attributes
    ----------
    query_end : int64 array, shape (n_subjects,)
        Number of query residues up to the end, 1 to the query's length, on the strand of the profile; 0 if nothing
        aligns.
    subject_end : int64 array, shape (n_subjects,)
        Number of subject residues up to the end, 1 to the subject's length; 0 if nothing aligns.
    """

    query_end: NDArray[np.int64]
    subject_end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.query_end)

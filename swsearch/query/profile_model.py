"""Queries as profile hidden Markov models: for each position a column, and the probabilities of gaps beside it.

A *column* is the distribution of the 20 amino acids at a position of a sequence in the alignments of its relatives. The
model of a position has three states: a pair of residues (M), an insertion of subject residues behind it (I), and a
deletion of the position (D). Its transitions lead to its own insertion and to the pair and the deletion of the next
position. Models of HMMER's files have transitions of their own, all other queries have :data:`USUAL_TRANSITIONS`.

Local Forward scores (:mod:`swsearch.query.columns`) add the odds of all alignments, each the product of the odds of its
pairs and of the probabilities of its transitions. The recurrence of the kernels needs four factors for each position
(:attr:`ProfileModel.gap_factors`), in which transitions into a gap and back to a pair are combined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.typing import Floats

GAP_OPEN: Final = 0.03
GAP_EXTEND: Final = 0.5
"""Probabilities δ that a gap begins in either sequence after a pair of residues, and ε that it is extended."""
MM, MI, MD, IM, II, DM, DD = range(N_TRANSITIONS := 7)
"""The order of the transitions, which is that of HMMER's files: the state that they leave, and the one they lead to."""
USUAL_TRANSITIONS: Final = (
    1.0 - 2.0 * GAP_OPEN,
    GAP_OPEN,
    GAP_OPEN,
    1.0 - GAP_EXTEND,
    GAP_EXTEND,
    1.0 - GAP_EXTEND,
    GAP_EXTEND,
)
_LEAST: Final = 1e-6
"""In place of smaller probabilities of transitions by which others are divided."""


@dataclass(frozen=True, eq=False)
class ProfileModel:
    """Columns and transitions.

    Attributes
    ----------
    columns : float64 array, shape (length, 20)
        Each has the sum 1.
    transitions : float64 array, shape (length, 7)
        Probabilities in the order of :data:`USUAL_TRANSITIONS`. Those of the last position lead nowhere.
    """

    columns: Floats
    transitions: Floats

    @classmethod
    def of_columns(cls, columns: Floats) -> ProfileModel:
        """A model with the usual transitions."""
        return cls(columns, np.tile(np.array(USUAL_TRANSITIONS), (len(columns), 1)))

    def __len__(self) -> int:
        """Number of positions."""
        return len(self.columns)

    @property
    def reversed(self) -> ProfileModel:
        """The model in which each path through this one has the same probability from its end to its beginning."""
        before = np.roll(self.transitions[::-1], -1, axis=0)  # those of the position before, which now follows
        return ProfileModel(self.columns[::-1], before[:, [MM, IM, DM, MI, II, MD, DD]])

    @property
    def odds_factors(self) -> NDArray[np.float32]:
        """The columns, each times the probability that no gap follows; float32 of shape (length, 20)."""
        return (np.maximum(self.transitions[:, MM:MI], _LEAST) * self.columns).astype(np.float32)

    @property
    def gap_factors(self) -> NDArray[np.float32]:
        """The factors of gaps, float32 of shape (length, 4).

        They lead from the pair of the position before to a deletion of this position and back to a pair; from a
        deletion of the position before to one of this position; from this pair to an insertion and back to a pair; and
        from an insertion to a further residue of it. Each is divided by what the state that it leaves has already
        been multiplied with, as if it were followed by a pair.
        """
        here = np.maximum(self.transitions, [_LEAST, 0, 0, 0, 0, _LEAST, 0])
        before = np.roll(here, 1, axis=0)
        factors = (
            here[:, DM] * before[:, MD] / before[:, MM],
            here[:, DM] * before[:, DD] / before[:, DM],
            here[:, MI] * here[:, IM] / here[:, MM],
            here[:, II],
        )
        return np.stack(factors, axis=1).astype(np.float32)

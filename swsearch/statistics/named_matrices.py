"""What a user must know of each named matrix to choose it: :func:`describe_matrices`, for ``swsearch matrices``."""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.scoring.matrix import matrix_names, named_matrix, unit_of
from swsearch.scoring.scheme import ScoringScheme, default_gap
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.parameters import find_statistics, published_gaps
from swsearch.statistics.ungapped import matrix_lambda


@dataclass(frozen=True)
class MatrixDescription:
    """One named matrix.

    Attributes
    ----------
    scheme : ScoringScheme
        The matrix with its default gap costs.
    unit : int
        Factor by which its published scores are multiplied before they are rounded: 1 or 10.
    statistics : str
        The source of E-values: NCBI's tables for some gap costs, a simulation for all others, or the reason why there
        are none.
    """

    scheme: ScoringScheme
    unit: int
    statistics: str

    @property
    def score_range(self) -> str:
        """The lowest and the highest score of two letters, and the unit unless it is 1."""
        matrix = self.scheme.matrix
        n_letters = len(matrix.alphabet.letters)
        lowest = int(matrix.scores[:n_letters, :n_letters].min())
        return f"{lowest} … {matrix.max_score}" + (f" x {self.unit}" if self.unit > 1 else "")


def describe_matrices() -> list[MatrixDescription]:
    """All named matrices, in the order of their names.

    >>> [one.statistics for one in describe_matrices() if one.scheme.matrix.name in ("HOXD70", "TRANS")]
    ['simulated', 'none: random letters score 0 or more on average']
    """
    matrices = [named_matrix(name) for name in matrix_names()]
    schemes = [ScoringScheme(matrix, default_gap(matrix)) for matrix in matrices]
    return [MatrixDescription(scheme, unit_of(scheme.matrix.name), _statistics(scheme)) for scheme in schemes]


def _statistics(scheme: ScoringScheme) -> str:
    if matrix_lambda(scheme.matrix) is None:
        return "none: random letters score 0 or more on average"
    published = published_gaps(scheme)
    if isinstance(find_statistics(scheme), Statistics):
        return f"NCBI's for {published}"
    return f"simulated; NCBI's for {published}" if published else "simulated"

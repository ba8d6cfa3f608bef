"""``swsearch matrices``: a list of the named substitution matrices, or the scores of one of them."""

from __future__ import annotations

from typing import Annotated

import typer

from swsearch.cli import completion


def matrices(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", autocompletion=completion.matrices, help="Print only the scores of this matrix."
        ),
    ] = None,
) -> None:
    """List the matrices that --matrix takes by name.

    The columns are the lowest and highest score (x 10: ten times the published ones), the default gap costs (a gap
    of k residues costs open + k * extend), and the source of E-values. With a name, print this matrix as text that
    --matrix takes as a file.

    Example: swsearch matrices

    Example: swsearch matrices NUC.4.4
    """
    from swsearch.scoring.matrix import matrix_names, matrix_text, named_matrix, unit_of
    from swsearch.scoring.published_parameters import source_of_evalues
    from swsearch.scoring.scheme import ScoringScheme, default_gap

    if name is not None:
        print(matrix_text(named_matrix(name)), end="")
        return
    print(f"{'matrix':<12}{'letters':<9}{'scores':<17}{'gaps':<8}E-values")
    for matrix in map(named_matrix, matrix_names()):
        scheme = ScoringScheme(matrix, default_gap(matrix))
        n_letters, unit = len(matrix.alphabet.letters), unit_of(matrix.name)
        lowest = int(matrix.scores[:n_letters, :n_letters].min())
        scores = f"{lowest} … {matrix.max_score}" + (f" x {unit}" if unit > 1 else "")
        evalues = source_of_evalues(scheme)
        print(f"{matrix.name:<12}{matrix.alphabet.name:<9}{scores:<17}{scheme.gap!s:<8}{evalues}")

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
    from swsearch.scoring.matrix import matrix_text, named_matrix
    from swsearch.scoring.published_parameters import describe_matrices

    if name is not None:
        print(matrix_text(named_matrix(name)), end="")
        return
    print(f"{'matrix':<12}{'letters':<9}{'scores':<17}{'gaps':<8}E-values")
    for one in describe_matrices():
        matrix = one.scheme.matrix
        print(f"{matrix.name:<12}{matrix.alphabet.name:<9}{one.score_range:<17}{one.scheme.gap!s:<8}{one.statistics}")

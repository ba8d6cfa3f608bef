"""Reader of NCBI's PSSMs in text format, as written by ``psiblast -out_ascii_pssm``.

The file has a title, a line of column letters, and one line per position with its number, its letter, and a score for
each of the first twenty column letters. The rest of each line, such as weighted percentages, and the lines of
statistics at the end are ignored.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from swsearch.errors import InputError, ScoringError
from swsearch.hits.result import N_AMINO_ACIDS
from swsearch.query.position_specific import PositionSpecificQuery, with_other_letters
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.lines import text_lines, whole_number
from swsearch.sequences.source import shown_name
from swsearch.words import counted

_AMINO_ACIDS: Final = frozenset(PROTEIN.letters[:N_AMINO_ACIDS])


def read_pssm(path: str | os.PathLike[str], matrix: SubstitutionMatrix, header: str) -> PositionSpecificQuery:
    """The query of a PSSM file.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    matrix : SubstitutionMatrix
        Matrix for the scores of letters without a column in the PSSM.
    header : str
        Header of the query, because the file has none.

    Raises
    ------
    InputError
        The file is not a PSSM in this format; the message names the line.
    """
    name = shown_name(path)
    columns: list[int] = []
    letters: list[str] = []
    rows: list[list[int]] = []
    for number, line in enumerate(text_lines(path, name), 1):
        fields = line.split()
        if not columns:
            if len(fields) >= N_AMINO_ACIDS and set(fields[:N_AMINO_ACIDS]) == _AMINO_ACIDS:
                columns = [PROTEIN.code(letter) for letter in fields[:N_AMINO_ACIDS]]
            continue
        if not fields or not (fields[0].isascii() and fields[0].isdecimal()):
            break
        if fields[0].lstrip("0") != str(len(rows) + 1):
            problem = f"position {fields[0][:20]} where {len(rows) + 1} is due"
            raise InputError(f"{name}, line {number}: {problem}; mend the PSSM")
        try:
            scores = [whole_number(field) for field in fields[2 : 2 + N_AMINO_ACIDS]]
        except ValueError as error:
            raise InputError(f"{name}, line {number}: a score is no whole number ({error}); mend the PSSM") from error
        if len(scores) < N_AMINO_ACIDS:
            problem = f"{counted(len(scores), 'score')}, {N_AMINO_ACIDS} are needed"
            raise InputError(f"{name}, line {number}: {problem}; the file may be cut short")
        letters.append(fields[1])
        rows.append(scores)
    if not rows:
        raise InputError(
            f"{name} is no PSSM as `psiblast -out_ascii_pssm` writes it: no column letters, or no positions"
        )
    try:
        consensus = PROTEIN.encode("".join(letters))
    except InputError as error:
        raise InputError(f"{name}: the second column is not the query: {error}") from error
    if len(consensus) != len(rows):
        raise InputError(
            f"{name}: the second column holds {counted(len(consensus), 'letter')} for {counted(len(rows), 'position')}"
        )
    scores_by_code = np.empty((len(rows), N_AMINO_ACIDS), dtype=np.int64)
    scores_by_code[:, columns] = rows
    try:
        scores_table = with_other_letters(scores_by_code, consensus, matrix)
    except ScoringError as error:
        raise ScoringError(f"{name}: {error}") from error
    return PositionSpecificQuery(header, consensus, PROTEIN, scores_table)

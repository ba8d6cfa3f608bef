"""Substitution matrices: NCBI's by name, a file in NCBI's format, or match and mismatch for DNA.

A matrix is held for the 32 codes of an alphabet (:mod:`swsearch.sequences.alphabet`), rows the query's letter, columns
the subject's. Letters that score as another (``U`` as ``X`` in protein, ``U`` as ``T`` in DNA) have that letter's row
and column; codes that are no letter, padding above all, score -128 against everything.

DNA letters that stand for several bases score the mean over the pairs of bases they stand for, rounded down: with
2/-3, ``N`` against ``A`` is ``floor((2 - 3 - 3 - 3) / 4) = -2``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import InputError, ScoringError
from swsearch.sequences.alphabet import DNA, IUPAC_BASES, N_CODES, PROTEIN, Alphabet
from swsearch.sequences.lines import text_lines
from swsearch.typing import ScoreTable

PAD_SCORE: Final = -128
MIN_SCORE: Final = -127
MAX_SCORE: Final = 127
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{0,18})?", re.ASCII)


class SubstitutionMatrix:
    """Scores of letter pairs. Immutable, hashable by content.

    Parameters
    ----------
    name : str
        ``BLOSUM62``, a file's name, or ``match 2, mismatch -3``.
    alphabet : Alphabet
    scores : int8 array, shape (32, 32)
        Score of query letter (row) against subject letter (column).
    """

    def __init__(self, name: str, alphabet: Alphabet, scores: ScoreTable) -> None:
        if scores.shape != (N_CODES, N_CODES):
            raise ScoringError(f"matrix {name} has shape {scores.shape}; {N_CODES} rows and columns are needed")
        if int(scores.max()) <= 0:
            raise ScoringError(f"matrix {name} has no positive score, so nothing can align; choose another")
        self.name = name
        self.alphabet = alphabet
        self.scores: ScoreTable = np.array(scores, dtype=np.int8)
        self.scores.setflags(write=False)

    @cached_property
    def max_score(self) -> int:
        """Largest score of any pair."""
        return int(self.scores.max())

    def score(self, query: str, subject: str) -> int:
        """Score of two upper-case letters.

        >>> named_matrix("BLOSUM62").score("W", "W")
        11
        """
        return int(self.scores[self.alphabet.code(query), self.alphabet.code(subject)])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SubstitutionMatrix)
            and self.alphabet.name == other.alphabet.name
            and bool(np.array_equal(self.scores, other.scores))
        )

    def __hash__(self) -> int:
        return hash((self.alphabet.name, self.scores.tobytes()))

    def __repr__(self) -> str:
        return f"SubstitutionMatrix({self.name!r})"


def _from_letters(name: str, alphabet: Alphabet, letters: str, values: np.ndarray) -> SubstitutionMatrix:
    """A matrix from the letters that label ``values``; letters the file lacks score as ``scored_as``, X or N say."""
    if not np.all(values == np.rint(values)):
        raise ScoringError(f"matrix {name} has scores that are not whole numbers; scale and round it first")
    if values.min() < MIN_SCORE or values.max() > MAX_SCORE:
        raise ScoringError(f"matrix {name} has scores outside {MIN_SCORE} … {MAX_SCORE}; scale it down")
    place = {letter: i for i, letter in enumerate(letters.upper())}
    fallback = "X" if alphabet is PROTEIN else "N"
    chosen: list[tuple[int, int]] = []
    missing: list[str] = []
    for code, letter in enumerate(alphabet.letters):
        source = next((x for x in (letter, alphabet.scored_as.get(letter, ""), fallback) if x in place), None)
        if letter in alphabet.scored_as and alphabet.scored_as[letter] in place:
            source = alphabet.scored_as[letter]  # U, O and J always score as X, whatever the file says of them
        if source is None:
            missing.append(letter)
        else:
            chosen.append((code, place[source]))
    if missing:
        raise ScoringError(f"matrix {name} has no row for {''.join(missing)} and none for {fallback}; add one of them")
    scores = np.full((N_CODES, N_CODES), PAD_SCORE, dtype=np.int8)
    codes = np.array([code for code, _ in chosen])
    rows = np.array([row for _, row in chosen])
    scores[np.ix_(codes, codes)] = values[np.ix_(rows, rows)].astype(np.int8)
    return SubstitutionMatrix(name, alphabet, scores)


def matrix_names() -> list[str]:
    """Names that :func:`named_matrix` takes: the BLOSUM and PAM matrices that Biopython carries."""
    from Bio.Align import substitution_matrices

    return [name for name in substitution_matrices.load() if name.startswith(("BLOSUM", "PAM"))]


@cache
def named_matrix(name: str) -> SubstitutionMatrix:
    """One of NCBI's protein matrices, through Biopython.

    Raises
    ------
    ScoringError
        There is no such matrix; the message lists those there are.
    """
    from Bio.Align import substitution_matrices

    wanted = name.upper()
    if wanted not in matrix_names():
        raise ScoringError(f"there is no matrix {name!r}; choose a file or one of {', '.join(matrix_names())}")
    loaded = substitution_matrices.load(wanted)
    return _from_letters(wanted, PROTEIN, str(loaded.alphabet), np.asarray(loaded))


def matrix_file(path: str | os.PathLike[str], alphabet: Alphabet) -> SubstitutionMatrix:
    """A matrix from a text file in NCBI's format: ``#`` comments, a line of column letters, a labelled line a row.

    Every column letter has one row, in any order; case does not count. The file may be compressed.

    Raises
    ------
    ScoringError
        The file cannot be read as a matrix, or lacks letters of ``alphabet``.
    """
    name = os.fspath(path)
    try:
        letters, values = _parse_table(text_lines(path, f"matrix file {name}"))
    except _FormatProblem as problem:
        raise ScoringError(f"matrix file {name} is not in NCBI's format: {problem}") from problem
    except InputError as error:
        raise ScoringError(str(error)) from error
    return _from_letters(os.path.basename(name), alphabet, letters, values)


class _FormatProblem(ValueError):
    """What is wrong with the text of a matrix, and in which line."""


def _parse_table(lines: Iterable[str]) -> tuple[str, NDArray[np.float64]]:
    """Column letters, and the scores in their order, float64 of shape (n, n)."""
    letters: list[str] = []
    rows: dict[str, list[float]] = {}
    for number, line in enumerate(lines, 1):
        fields = line.upper().split()
        if not fields or fields[0].startswith("#"):
            continue
        try:
            if not letters:
                letters = _checked_labels(fields)
            else:
                rows[_checked_label(fields[0], letters, rows)] = _numbers(fields[1:], len(letters))
        except _FormatProblem as problem:
            raise _FormatProblem(f"line {number}: {problem}") from problem
    missing = next((letter for letter in letters if letter not in rows), None)
    if not letters or missing is not None:
        what = "no line of column letters" if missing is None else f"no row for {missing}"
        raise _FormatProblem(f"it has {what}; it may be cut short")
    return "".join(letters), np.array([rows[letter] for letter in letters])


def _checked_labels(fields: list[str]) -> list[str]:
    wrong = next((field for field in fields if len(field) != 1 or not field.isascii()), None)
    if wrong is not None:
        raise _FormatProblem(f"{wrong[:20]!r} is no column letter; the first line without # has one for each column")
    if len(set(fields)) < len(fields):
        raise _FormatProblem("a column letter comes twice")
    return fields


def _checked_label(label: str, letters: list[str], rows: dict[str, list[float]]) -> str:
    if label not in letters or label in rows:
        what = "is a second row of its letter" if label in rows else "is no column letter"
        raise _FormatProblem(f"row {label[:20]!r} {what}; give a row for each column letter")
    return label


def _numbers(fields: list[str], wanted: int) -> list[float]:
    if len(fields) != wanted:
        raise _FormatProblem(f"{len(fields)} scores for {wanted} columns; the line may be cut short")
    wrong = next((field for field in fields if _NUMBER.fullmatch(field) is None), None)
    if wrong is not None:
        raise _FormatProblem(f"{wrong[:20]!r} is no number")
    return list(map(float, fields))


@cache
def match_mismatch(match: int, mismatch: int) -> SubstitutionMatrix:
    """A DNA matrix: ``match`` for equal bases, ``mismatch`` for others, means for ambiguous letters (see above).

    >>> match_mismatch(2, -3).score("A", "A"), match_mismatch(2, -3).score("A", "N")
    (2, -2)
    """
    if not 0 < match <= MAX_SCORE:
        raise ScoringError(f"match score {match} is out of range; choose 1 to {MAX_SCORE}")
    if not MIN_SCORE <= mismatch <= 0:
        raise ScoringError(f"mismatch score {mismatch} is out of range; choose {MIN_SCORE} to 0, a penalty is negative")
    letters = DNA.letters
    values = np.empty((len(letters), len(letters)))
    for row, query in enumerate(letters):
        for column, subject in enumerate(letters):
            pairs = [match if a == b else mismatch for a in IUPAC_BASES[query] for b in IUPAC_BASES[subject]]
            values[row, column] = sum(pairs) // len(pairs)
    return _from_letters(f"match {match}, mismatch {mismatch}", DNA, letters, values)


def matrix_text(matrix: SubstitutionMatrix) -> str:
    """A matrix in NCBI's text format: all letters of its alphabet, rows the query's.

    >>> matrix_text(match_mismatch(2, -3)).splitlines()[0]
    '#  match 2, mismatch -3'
    """
    letters = matrix.alphabet.letters
    lines = [f"#  {matrix.name}", "   " + " ".join(f"{letter:>4}" for letter in letters)]
    for code, letter in enumerate(letters):
        row = " ".join(f"{score:>4}" for score in matrix.scores[code, : len(letters)].tolist())
        lines.append(f"{letter}  {row}")
    return "\n".join(lines) + "\n"


def parse_matrix_text(text: str, name: str, alphabet: Alphabet) -> SubstitutionMatrix:
    """The matrix that :func:`matrix_text` wrote.

    Raises
    ------
    ScoringError
        The text is not a square table of whole numbers in a line a row.
    """
    try:
        letters, values = _parse_table(text.splitlines())
    except _FormatProblem as problem:
        raise ScoringError(f"the stored scores of matrix {name} cannot be read: {problem}") from problem
    return _from_letters(name, alphabet, letters, values)

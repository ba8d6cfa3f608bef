"""Substitution matrices: Biopython's matrices by name, files in NCBI's format, or match and mismatch scores for DNA.

A matrix has 32 rows and columns, for the codes of an alphabet (:mod:`swsearch.sequences.alphabet`): rows for the letter
of the query, columns for that of the subject. Letters that have the scores of another letter (``U`` of ``X`` in
protein, ``U`` of ``T`` in DNA) have the row and column of that letter; codes that are not letters, such as padding,
have the score -128 against all codes.

A letter that a matrix lacks has the scores of ``X`` (protein) or ``N`` (DNA) if the matrix has them. Otherwise the
score of a letter that represents several amino acids or bases is the mean over the pairs that it represents, rounded
down: with 2/-3, the score of ``N`` against ``A`` is ``floor((2 - 3 - 3 - 3) / 4) = -2``. The stop ``*`` then has the
lowest score of the matrix against all letters, and 1 against itself, as in NCBI's matrices.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import numpy as np

from swsearch.errors import ScoringError
from swsearch.file_registry import registry
from swsearch.sequences.alphabet import AMINO_ACIDS, DNA, IUPAC_AMINO_ACIDS, IUPAC_BASES, N_CODES, PROTEIN, Alphabet
from swsearch.typing import Floats, ScoreTable
from swsearch.words import quoted, shortened

PAD_SCORE: Final = -128
MIN_SCORE: Final = -127
MAX_SCORE: Final = 127
MAX_FILE_BYTES: Final = 1 << 20
"""Largest size of a matrix file in bytes; a matrix of 27 letters has about 3,000 bytes."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]+(\.0*)?")
_LONGEST_SCORE: Final = 16


class SubstitutionMatrix:
    """Scores of pairs of letters; immutable, and hashable by content.

    Parameters
    ----------
    name : str
        For example ``BLOSUM62``, the name of a file, or ``match 2, mismatch -3``.
    alphabet : Alphabet
    scores : int8 array, shape (32, 32)
        Score of query letter (row) against subject letter (column).
    """

    def __init__(self, name: str, alphabet: Alphabet, scores: ScoreTable) -> None:
        if scores.shape != (N_CODES, N_CODES):
            raise ScoringError(f"matrix {name} has shape {scores.shape}; {N_CODES} rows and columns are needed")
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
    """A matrix from whole scores and their letters; the module's docstring defines the scores of missing letters."""
    index = {letter: i for i, letter in enumerate(letters.upper())}
    rows = _rows_of_letters(alphabet, index)
    missing = "".join(letter for letter in alphabet.letters.replace("*", "") if letter not in rows)
    if missing:
        raise ScoringError(f"matrix {name} has no row for {missing} and none for {alphabet.unknown}; add one")
    whole: list[list[int]] = values.astype(np.int64).tolist()
    scores = np.full((N_CODES, N_CODES), PAD_SCORE, dtype=np.int8)
    for code, letter in enumerate(alphabet.letters):
        for other_code, other in enumerate(alphabet.letters):
            if letter in rows and other in rows:
                pairs = [whole[row][column] for row in rows[letter] for column in rows[other]]
                scores[code, other_code] = sum(pairs) // len(pairs)
            else:  # a stop
                scores[code, other_code] = 1 if letter == other else int(values.min())
    return SubstitutionMatrix(name, alphabet, scores)


def _rows_of_letters(alphabet: Alphabet, index: dict[str, int]) -> dict[str, list[int]]:
    """The rows of a table whose mean is the row of each letter; letters without such rows are left out."""
    represented = IUPAC_AMINO_ACIDS if alphabet is PROTEIN else IUPAC_BASES
    found: dict[str, list[int]] = {}
    for letter in alphabet.letters:
        same = alphabet.scored_as.get(letter, letter)
        # U, O and J always have the scores of X, even if the table has rows for them.
        own = next((one for one in (same, letter, alphabet.unknown) if one in index), None)
        if own is not None:
            found[letter] = [index[own]]
        elif same in represented and all(one in index for one in represented[same]):
            found[letter] = [index[one] for one in represented[same]]
    return found


@cache
def _biopython_folder() -> Path:
    """The folder of Biopython's matrix files, which are NCBI's.

    The files are read from there because ``Bio.Align`` takes longer to import than many searches take.
    """
    package = importlib.util.find_spec("Bio")
    locations = [] if package is None else list(package.submodule_search_locations or [])
    folder = Path(*locations[:1], "Align", "substitution_matrices", "data")
    if not folder.is_dir():
        raise ScoringError("Biopython, which has the matrices, is not installed; run: pip install biopython")
    return folder


@dataclass(frozen=True, eq=False)
class _Published:
    """A matrix as Biopython's file has it: ``scores`` of ``letters``, with decimal places."""

    name: str
    alphabet: Alphabet
    letters: str
    scores: Floats

    @property
    def unit(self) -> int:
        fitting = [factor for factor in (1, 10, 100) if abs(np.rint(self.scores * factor)).max() <= MAX_SCORE]
        exact = [factor for factor in fitting if np.allclose(self.scores * factor, np.rint(self.scores * factor))]
        return (exact or fitting[::-1])[0]


@cache
def _biopython_files() -> frozenset[str]:
    return frozenset(path.name for path in _biopython_folder().iterdir())


@cache
def _find_published(name: str) -> _Published | None:
    """A matrix of Biopython by its exact name; None if it is not for proteins or DNA, as SCHNEIDER, for codons."""
    if name not in _biopython_files():
        return None
    lines = (_biopython_folder() / name).read_text("utf-8").splitlines()
    letters, *rows = [fields for line in lines if not line.startswith("#") and (fields := line.split())]
    for alphabet, needed in ((DNA, "ACGT"), (PROTEIN, AMINO_ACIDS)):
        if set(needed) <= set(letters) <= set(alphabet.letters):
            scores = np.array([row[1:] for row in rows], dtype=np.float64)
            return _Published(name, alphabet, "".join(letters), scores)
    return None


def _published(given: str) -> _Published:
    found = _find_published(given.upper())
    if found is None:
        similar = difflib.get_close_matches(given.upper(), matrix_names(), n=3)
        suggestion = f"did you mean {' or '.join(similar)}? " if similar else ""
        raise ScoringError(f"there is no matrix {shortened(given)!r}; {suggestion}swsearch matrices lists all")
    return found


def matrix_names(alphabet: Alphabet | None = None) -> list[str]:
    """The names that :func:`named_matrix` accepts, for one alphabet or for both.

    >>> matrix_names(DNA)
    ['BLASTN', 'HOXD70', 'MEGABLAST', 'NUC.4.4', 'TRANS']
    """
    published = [found for name in sorted(_biopython_files()) if (found := _find_published(name)) is not None]
    return [found.name for found in published if alphabet in (None, found.alphabet)]


def is_matrix_name(given: str) -> bool:
    """Whether :func:`named_matrix` accepts a name."""
    return _find_published(given.upper()) is not None


def matrix_name(given: str) -> str:
    """The name of a matrix as Biopython writes it, from one in any case.

    Raises
    ------
    ScoringError
        There is no such matrix; the message suggests similar names.

    >>> matrix_name("nuc.4.4")
    'NUC.4.4'
    """
    return _published(given).name


def unit_of(name: str) -> int:
    """The factor by which the published scores of a named matrix are multiplied before they are rounded.

    Scores are whole numbers from -127 to 127. The factor is the smallest of 1, 10 and 100 with which the published
    scores are whole; if they then exceed the range, it is the largest with which they do not, and halves are rounded to
    the even number.

    >>> unit_of("BLOSUM62"), unit_of("DAYHOFF"), unit_of("GONNET1992")  # 11, 1.7 and 14.2 are the highest scores
    (1, 10, 1)
    """
    return _published(name).unit


@cache
def named_matrix(name: str) -> SubstitutionMatrix:
    """One of Biopython's matrices for proteins or DNA, by its name in any case; :func:`unit_of` defines the unit.

    Raises
    ------
    ScoringError
        There is no such matrix; the message suggests similar names.
    """
    published = _published(name)
    scores = np.rint(published.scores * published.unit)
    return _from_letters(published.name, published.alphabet, published.letters, scores)


def matrix_file(path: str | os.PathLike[str], alphabet: Alphabet) -> SubstitutionMatrix:
    """A matrix from a text file in NCBI's format: ``#`` comments, a line of column letters, and one labelled line per
    row.

    Raises
    ------
    ScoringError
        The file cannot be read as a matrix (the message names the line and the problem), or lacks letters of
        ``alphabet``.
    """
    name = f"matrix file {os.fspath(path)}"
    return _parsed(name, os.path.basename(os.fspath(path)), alphabet, _matrix_lines(path, name))


def _matrix_lines(path: str | os.PathLike[str], name: str) -> list[str]:
    """The lines of a small text file."""
    registry().read(path)
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ScoringError(f"{name}: {error.strerror or error}; choose another file") from error
    except ValueError as error:
        raise ScoringError(f"{name!r}: {error}; choose another file") from error
    if len(raw) > MAX_FILE_BYTES:
        raise ScoringError(f"{name} has more than {MAX_FILE_BYTES:,} bytes, so it is not a matrix; choose another file")
    lines = raw.removeprefix(b"\xef\xbb\xbf").splitlines()
    for number, line in enumerate(lines, 1):
        bad = next((byte for byte in line if byte >= 0x7F or (byte < 0x20 and byte != ord("\t"))), None)
        if bad is not None and not line.lstrip().startswith(b"#"):
            raise ScoringError(f"{name}, line {number}: byte 0x{bad:02X} has no place in a matrix, which is plain text")
    return [line.decode("ascii", "replace") for line in lines]


def _parsed(source: str, name: str, alphabet: Alphabet, lines: Iterable[str]) -> SubstitutionMatrix:
    """The matrix of some lines, comments and empty lines included; messages name the ``source``."""
    columns = ""
    rows: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        where = f"{source}, line {number}"
        if not fields or fields[0].startswith("#"):
            continue
        if columns:
            rows |= _row(where, fields, columns, rows, alphabet)
            continue
        for position, field in enumerate(fields, 1):
            _check_letter(f"{where}, column letter {position}", field, alphabet)
        columns = "".join(fields).upper()
        twice = next((letter for letter in columns if columns.count(letter) > 1), None)
        if twice is not None:
            raise ScoringError(f"{where}: there are two columns {twice}; leave one of them out")
    if not columns:
        raise ScoringError(f"{source} has no line of column letters; it is empty, or holds comments alone")
    missing = [letter for letter in columns if letter not in rows]
    if missing:
        raise ScoringError(f"{source} ends without a row for {', '.join(missing)}; it may be cut short")
    return _from_letters(name, alphabet, columns, np.array([rows[letter] for letter in columns], dtype=float))


def _row(
    where: str, fields: Sequence[str], columns: str, rows: Mapping[str, object], alphabet: Alphabet
) -> dict[str, list[int]]:
    """The scores of a line behind ``rows``, by its letter."""
    _check_letter(f"{where}, row label", fields[0], alphabet)
    letter = fields[0].upper()
    if letter in rows:
        raise ScoringError(f"{where}: there are two rows {letter}; leave one of them out")
    if letter not in columns:
        raise ScoringError(f"{where}: row {letter} has no column; a matrix has the same letters in both")
    if len(fields) - 1 != len(columns):
        problem = f"{len(fields) - 1} scores in row {letter}, but {len(columns)} column letters"
        raise ScoringError(f"{where}: {problem}; give a score for each")
    for column, field in zip(columns, fields[1:], strict=True):
        if not _WHOLE.fullmatch(field):
            raise ScoringError(
                f"{where}: score {quoted(field)} of {letter} with {column} is not a whole number; round it"
            )
        # int() raises an error for numbers of thousands of digits, so longer fields are refused first.
        if len(field) > _LONGEST_SCORE or not MIN_SCORE <= int(float(field)) <= MAX_SCORE:
            problem = f"score {field[:_LONGEST_SCORE]} of {letter} with {column} is outside {MIN_SCORE} … {MAX_SCORE}"
            raise ScoringError(f"{where}: {problem}; scale the matrix down")
    return {letter: [int(float(field)) for field in fields[1:]]}


def _check_letter(where: str, field: str, alphabet: Alphabet) -> None:
    if len(field) != 1:
        form = "a line of letters comes first, then a line for each, its letter and its scores"
        raise ScoringError(f"{where}: {field[:20]!r} is not a letter; {form}, separated by blanks")
    if field.upper() not in alphabet.letters + "*":
        raise ScoringError(f"{where}: {field!r} is not a letter of {alphabet.name}; give a matrix for it")


@cache
def match_mismatch(match: int, mismatch: int) -> SubstitutionMatrix:
    """A DNA matrix: ``match`` for equal bases, ``mismatch`` for others, means for ambiguous letters (see above).

    >>> match_mismatch(2, -3).score("A", "A"), match_mismatch(2, -3).score("A", "N")
    (2, -2)
    """
    if not 0 <= match <= MAX_SCORE:
        raise ScoringError(f"match score {match} is out of range; choose 0 to {MAX_SCORE}")
    if not MIN_SCORE <= mismatch <= 0:
        raise ScoringError(f"mismatch score {mismatch} is out of range; choose {MIN_SCORE} to 0, a penalty is negative")
    scores = np.where(np.eye(4, dtype=np.bool_), match, mismatch)
    return _from_letters(f"match {match}, mismatch {mismatch}", DNA, "ACGT", scores)


def matrix_text(matrix: SubstitutionMatrix) -> str:
    """A matrix in NCBI's text format, with all letters of its alphabet; rows are the query's letters.

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
    """The matrix of a text that :func:`matrix_text` wrote.

    Raises
    ------
    ScoringError
        The text is not a square table of integers; the message names the line.
    """
    return _parsed(f"the stored scores of matrix {name}", name, alphabet, text.splitlines())

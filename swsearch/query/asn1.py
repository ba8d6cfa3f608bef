"""PSI-BLAST's checkpoints: PSSMs in text ASN.1 (``PssmWithParameters``), read and written.

``psiblast -out_pssm`` writes this format and ``psiblast -in_pssm`` reads it; the profiles of NCBI's conserved domain
database (``.smp``) have it, too. Matrices have a row for each of the letters ``-ABCDEFGHIKLMNPQRSTVWXYZU*OJ``, of which
the last two may be missing, and a column for each position; ``byRow`` tells which of them is contiguous.

The *scores* of a checkpoint (``finalData``) are divided by its scaling factor and rounded. A checkpoint without scores
has *frequency ratios* (``intermediateData``), which are, despite their name, the frequencies Q of the amino acids with
pseudocounts. Its scores are ln(Q / p) with the background p, on the scale of the search's matrix
(:func:`swsearch.query.scale.scaled_scores`). Positions without frequencies have the scores of the matrix.

A file in the text form of ASN.1 has one or several values, each with the name of its type at the beginning of a line::

    PssmWithParameters ::= { pssm { numRows 28, query seq { id { local str "Q1" } } } }

The names before a value are its *path*: that of ``"Q1"`` is ``pssm/query/seq/id/local/str``. The elements of a list
have the path of the list. :func:`read_values` keeps the values of the paths that its caller names. A string in double
quotes may continue on the next line; a double quote in it is written twice. ``'0A'H`` are bytes. Comments and binary
digits (``'01'B``) are not read, because NCBI's programs write none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, TextIO

import numpy as np
from numpy.typing import NDArray

from swsearch.deterministic import exp, log, sum_in_order
from swsearch.errors import InputError, ScoringError
from swsearch.query.profile import PositionSpecificQuery, with_other_letters
from swsearch.query.profile_files import CHECKPOINT_TYPE
from swsearch.query.scale import query_lambda, scaled_scores
from swsearch.scoring.matrix import MIN_SCORE, SubstitutionMatrix
from swsearch.scoring.scheme import GapPenalty
from swsearch.scoring.ungapped import background
from swsearch.sequences.alphabet import CODE_MASK, N_AMINO_ACIDS, PROTEIN
from swsearch.sequences.record import split_header
from swsearch.sequences.source import shown_name, text_lines
from swsearch.typing import Codes, Floats
from swsearch.words import counted, quoted

LETTERS: Final = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
"""The letters of NCBIstdaa by code, the rows of a PSSM."""
_AMINO_ACID_ROWS: Final = np.array([LETTERS.index(letter) for letter in PROTEIN.letters[:N_AMINO_ACIDS]])
_NO_SCORE: Final = -32768
"""NCBI's score of letters that cannot be aligned."""
_SCORE_OF_X: Final = -1
_SCORE_OF_STOP: Final = -4
_SMALLEST_RATIO: Final = 1e-30
_FREQUENCY_SUMS: Final = (0.5, 2.0)
"""Sums of the frequencies of a position; those of PSI-BLAST are between 0.9 and 1.1."""
_LARGEST_EXPONENT: Final = 330
_DIGITS_IN_LINE: Final = 78

_ROWS: Final = "pssm/numRows"
_COLUMNS: Final = "pssm/numColumns"
_BY_ROW: Final = "pssm/byRow"
_IS_PROTEIN: Final = "pssm/isProtein"
_TITLE: Final = "pssm/query/seq/descr/title"
_LOCAL: Final = ("pssm/query/seq/id/local/str", "pssm/query/seq/id/local/id")
_ACCESSIONS: Final = tuple(
    f"pssm/query/seq/id/{base}/accession"
    for base in ("swissprot", "other", "genbank", "embl", "ddbj", "pir", "prf", "tpg", "tpe", "tpd")
)
_CODES: Final = "pssm/query/seq/inst/seq-data/ncbistdaa"
_STRINGS: Final = ("pssm/query/seq/inst/seq-data/ncbieaa", "pssm/query/seq/inst/seq-data/iupacaa")
_FREQUENCIES: Final = "pssm/intermediateData/freqRatios"
_SCORES: Final = "pssm/finalData/scores"
_FACTOR: Final = "pssm/finalData/scalingFactor"
_PATHS: Final = frozenset(
    {_ROWS, _COLUMNS, _BY_ROW, _IS_PROTEIN, _TITLE, *_LOCAL, *_ACCESSIONS, _CODES, *_STRINGS}
    | {_FREQUENCIES, _SCORES, _FACTOR}
)
_UNNAMED: Final = "Query_"
"""Beginning of the identifiers that NCBI's programs make up."""


# --- reading ---


def read_checkpoints(
    path: str | os.PathLike[str], matrix: SubstitutionMatrix, stem: str
) -> Iterator[PositionSpecificQuery]:
    """The queries of a file of checkpoints, in order.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    matrix : SubstitutionMatrix
        Matrix for the scores of letters without scores in the checkpoint, and for the scale of frequencies.
    stem : str
        Identifier of queries without one.

    Raises
    ------
    InputError
        The file is not in this format; the message names the line.
    ScoringError
        A score is outside -127 … 127, or the matrix has no scale for frequencies.
    """
    name = shown_name(path)
    for number, (line, values) in enumerate(read_values(path, CHECKPOINT_TYPE, _PATHS), 1):
        try:
            yield _query(values, matrix, stem if number == 1 else f"{stem}_{number}")
        except (InputError, ScoringError) as error:
            raise type(error)(f"{name}, PSSM of line {line}: {error.marked}") from error


def _query(values: dict[str, list[Value]], matrix: SubstitutionMatrix, stem: str) -> PositionSpecificQuery:
    if values.get(_IS_PROTEIN) == ["FALSE"]:
        raise InputError("it is a profile of nucleotides; queries are profiles of proteins")
    n_rows, n_columns = _number(values, _ROWS), _number(values, _COLUMNS)
    if not _AMINO_ACID_ROWS.max() < n_rows <= len(LETTERS) or n_columns < 1:
        raise InputError(f"numRows is {n_rows} and numColumns {n_columns}; a PSSM of proteins has 26 or 28 rows")
    codes = _letters(values, n_columns)
    header = _header(values, stem)
    by_row = values.get(_BY_ROW, ["FALSE"]) == ["TRUE"]

    def by_position(matrix_values: NDArray[np.generic]) -> NDArray[np.generic]:
        table = matrix_values.reshape(n_rows, n_columns).T if by_row else matrix_values.reshape(n_columns, n_rows)
        return table[:, _AMINO_ACID_ROWS]

    if _SCORES in values:
        scores = by_position(_integers(values, _SCORES, n_rows * n_columns)).astype(np.int64)
        unaligned = scores == _NO_SCORE
        factor = _number(values, _FACTOR) if _FACTOR in values else 1
        if factor < 1:
            raise InputError(f"the scaling factor is {factor}; it is at least 1")
        scores = np.rint(scores / factor).astype(np.int64)
        scores[unaligned] = MIN_SCORE
    elif _FREQUENCIES in values:
        frequencies = by_position(_reals(values, _FREQUENCIES, n_rows * n_columns)).astype(np.float64)
        scores = _scores_of_frequencies(frequencies, codes, matrix)
    else:
        raise InputError("it holds neither scores nor frequency ratios; write it with psiblast -out_pssm")
    return PositionSpecificQuery(header, codes, PROTEIN, with_other_letters(scores, codes, matrix))


def _number(values: dict[str, list[Value]], path: str) -> int:
    found = values.get(path, [])
    if len(found) != 1 or not isinstance(found[0], int):
        raise InputError(f"{path.rsplit('/', 1)[1]} is not one number")
    return found[0]


def _letters(values: dict[str, list[Value]], n_columns: int) -> Codes:
    """Residue codes of the query."""
    text = ""
    if _CODES in values:
        try:
            digits = bytes.fromhex(str(values[_CODES][0]))
            text = "".join(LETTERS[code] for code in digits)
        except (ValueError, IndexError):
            raise InputError(
                f"the query has digits that are not letters of NCBIstdaa (0 to {len(LETTERS) - 1})"
            ) from None
    else:
        text = "".join(str(values[path][0]) for path in _STRINGS if path in values)
    if len(text) != n_columns:
        problem = "it has no query sequence" if not text else f"the query has {counted(len(text), 'letter')}"
        raise InputError(f"{problem} for {counted(n_columns, 'position')} of the PSSM")
    try:
        return PROTEIN.encode(text.upper())
    except InputError as error:
        raise InputError(f"the query: {error}") from error


def _header(values: dict[str, list[Value]], stem: str) -> str:
    """Identifier and title of the query."""
    title = " ".join(" ".join(str(value).split()) for value in values.get(_TITLE, ()))
    given = [str(values[path][0]) for path in (*_ACCESSIONS, *_LOCAL) if path in values]
    named = "_".join(given[0].split()) if given and not given[0].startswith(_UNNAMED) else ""
    if named and title.split(" ", 1)[0] != named:
        title = f"{named} {title}"
    return title.strip() or f"{stem} PSSM"


def _integers(values: dict[str, list[Value]], path: str, n_due: int) -> NDArray[np.int64]:
    found = values[path]
    what = path.rsplit("/", 1)[1]
    word = next((value for value in found if not isinstance(value, int)), None)
    if word is not None:
        raise InputError(f"{what} holds {quoted(str(word))}, which is not a whole number")
    if len(found) != n_due:
        raise InputError(f"{what} holds {counted(len(found), 'number')}, {n_due} are due; the file may be cut short")
    return np.array(found, dtype=np.int64)


def _reals(values: dict[str, list[Value]], path: str, n_due: int) -> Floats:
    """Real numbers, each of which is a block of mantissa, base 10 and exponent."""
    parts = _integers(values, path, 3 * n_due).reshape(n_due, 3)
    if (parts[:, 1] != 10).any() or (np.abs(parts[:, 2]) > _LARGEST_EXPONENT).any():
        raise InputError(f"{path.rsplit('/', 1)[1]} holds a number that is not {{ mantissa, 10, exponent }}")
    return np.array([float(f"{mantissa}e{exponent}") for mantissa, _, exponent in parts.tolist()])


def _scores_of_frequencies(frequencies: Floats, codes: Codes, matrix: SubstitutionMatrix) -> NDArray[np.int64]:
    sums = sum_in_order(frequencies, axis=1)
    present = (frequencies != 0).any(axis=1)
    low, high = _FREQUENCY_SUMS
    wrong = np.flatnonzero((frequencies < 0).any(axis=1) | (present & ~((low < sums) & (sums < high))))
    if wrong.size:
        raise InputError(f"the frequencies of position {wrong[0] + 1} are negative or do not sum to 1")
    odds = np.zeros_like(frequencies)
    odds[present] = log(np.maximum(frequencies[present] / background(PROTEIN), _SMALLEST_RATIO))
    return scaled_scores(odds, present, codes, matrix)


# --- writing ---


def write_checkpoint(
    stream: TextIO,
    header: str,
    codes: Codes,
    scores: NDArray[np.int8],
    gap: GapPenalty,
    matrix: str,
    *,
    lam: float,
    k: float,
) -> None:
    """Write a profile as a checkpoint, which ``psiblast -in_pssm`` reads.

    Several may be written to one stream; psiblast reads the first of them. Besides the scores, a checkpoint has the
    frequencies that they imply, from which psiblast computes its composition-based statistics.

    Parameters
    ----------
    stream : text stream
    header : str
        Header of the query. Characters that ASN.1 does not allow in a string are replaced by ``?``.
    codes : uint8 array, shape (length,)
        Residue codes of the query.
    scores : int8 array, shape (length, 20)
    gap : GapPenalty
    matrix : str
        Name of the substitution matrix.
    lam, k : float
        λ and K of gapped alignments, with which psiblast computes E-values.
    """
    n_positions = len(codes)
    letters = PROTEIN.decode(codes & np.uint8(CODE_MASK))
    digits = bytes(LETTERS.index(letter) for letter in letters).hex().upper()
    # Every position has the letter-independent scores that NCBI's programs give to X, the stop, and other letters.
    table = np.full((n_positions, len(LETTERS)), _NO_SCORE, dtype=np.int64)
    table[:, LETTERS.index("X")] = _SCORE_OF_X
    table[:, LETTERS.index("*")] = _SCORE_OF_STOP
    table[:, _AMINO_ACID_ROWS] = scores
    frequencies = np.zeros((n_positions, len(LETTERS)))
    entropy = lam
    ungapped = query_lambda(scores)
    if ungapped is not None:
        odds = background(PROTEIN) * exp(ungapped * scores.astype(np.float64))
        shares = odds / sum_in_order(odds, axis=1)[:, None]
        frequencies[:, _AMINO_ACID_ROWS] = shares
        entropy = ungapped * float(sum_in_order(sum_in_order(shares * scores, axis=1))) / n_positions
    identifier = split_header(header)[0] or "query"
    write = stream.write
    write(f"{CHECKPOINT_TYPE} ::= {{\n  pssm {{\n    isProtein TRUE,\n")
    write(f"    numRows {len(LETTERS)},\n    numColumns {n_positions},\n    byRow FALSE,\n")
    write(f"    query seq {{\n      id {{\n        local str {_string(identifier)}\n      }},\n")
    write(f"      descr {{\n        title {_string(header or identifier)}\n      }},\n")
    write(f"      inst {{\n        repr raw,\n        mol aa,\n        length {n_positions},\n")
    write(f"        seq-data ncbistdaa '{_wrapped(digits)}'H\n      }}\n    }},\n")
    write("    intermediateData {\n      freqRatios {\n")
    write(",\n".join(map(_real, frequencies.ravel().tolist())))
    write("\n      }\n    },\n    finalData {\n      scores {\n")
    write(",\n".join(map(str, table.ravel().tolist())))
    write(f"\n      }},\n      lambda {_real(lam)},\n      kappa {_real(k)},\n")
    # NCBI's readers require h, the relative entropy, but their statistics of gapped alignments do not use it.
    write(f"      h {_real(entropy)}\n    }}\n  }},\n")
    write(f"  params {{\n    pseudocount 0,\n    rpsdbparams {{\n      matrixName {_string(matrix)},\n")
    write(f"      gapOpen {gap.open},\n      gapExtend {gap.extend}\n    }}\n  }}\n}}\n")


def _string(text: str) -> str:
    """A text as a string of printable ASCII characters."""
    plain = "".join(letter if " " <= letter <= "~" else "?" for letter in text)
    return '"' + plain.replace('"', '""') + '"'


def _wrapped(digits: str) -> str:
    """Hexadecimal digits on lines of a length that NCBI's readers accept."""
    return "\n".join(digits[start : start + _DIGITS_IN_LINE] for start in range(0, len(digits), _DIGITS_IN_LINE))


def _real(value: float) -> str:
    """A number as mantissa, base and exponent, with 15 digits."""
    mantissa, exponent = f"{value:.14e}".split("e")
    digits = mantissa.replace(".", "")
    trimmed = digits.rstrip("0") or "0"
    return f"{{ {int(trimmed)}, 10, {int(exponent) - 14 + len(digits) - len(trimmed) if value else 0} }}"


Value = int | str
"""A number; or the text of a string, the hexadecimal digits of ``'…'H``, or the word of a truth value or an
enumeration."""

MAX_DEPTH: Final = 100
"""Largest number of blocks inside each other."""
MAX_CHARACTERS: Final = 1 << 27
"""Length of the longest value, in characters; 50,000 positions of PSI-BLAST fit. A value is in memory as a whole."""
_TOKEN: Final = re.compile(
    r"""\s+|((?:-?[0-9]{1,18},\s*){2,})|((?:{\s*-?[0-9]{1,18},\s*-?[0-9]{1,18},\s*-?[0-9]{1,18}\s*},\s*)+)|([{},])|"""
    r"""(-?[0-9]{1,18})(?![0-9A-Za-z_.])|([A-Za-z][A-Za-z0-9-]*)|"([^"]*(?:""[^"]*)*)"|'([^']*)'H|(::=)|(.)""",
    re.ASCII,
)
_NUMBERS, _REALS, _MARK, _NUMBER, _WORD, _STRING, _BYTES, _ASSIGNED, _OTHER = range(1, 10)
"""Two or more numbers with their commas, and real numbers (blocks of three numbers) with theirs, are one token each:
almost all of a file consists of them."""
_WITHOUT_MARKS: Final = str.maketrans("{},", "   ")


def read_values(
    path: str | os.PathLike[str], type_name: str, paths: Collection[str]
) -> Iterator[tuple[int, dict[str, list[Value]]]]:
    """The values of a file: the line at which each begins, and the values of its paths in order.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    type_name : str
        Type of all values.
    paths : collection of str
        The paths to keep. Others are missing in the result, as are paths without a value.

    Raises
    ------
    InputError
        The file is not in this form, is cut short, or has a value of another type; the message names the line.
    """
    name = shown_name(path)
    text: list[str] = []
    first_line, size = 1, 0
    for number, line in enumerate(text_lines(path, name), 1):
        if line.startswith(type_name) and size:
            yield from _values("".join(text), first_line, name, type_name, paths)
            text, first_line, size = [], number, 0
        text.append(line)
        size += len(line)
        if size > MAX_CHARACTERS:
            raise InputError(
                f"{name}, line {first_line}: a value of more than {MAX_CHARACTERS:,} characters; divide it"
            )
    yield from _values("".join(text), first_line, name, type_name, paths)


def _values(
    text: str, first_line: int, name: str, type_name: str, paths: Collection[str]
) -> Iterator[tuple[int, dict[str, list[Value]]]]:
    """The values of a text that begins at a line of the file ``name``."""
    blocks: list[str] = []  # the paths of the open blocks
    words: list[str] = []  # of the present element, before its value
    complete = False  # whether the present element has its value
    begun = 0
    found: dict[str, list[Value]] = {}

    def line_at(position: int) -> int:
        return first_line + text.count("\n", 0, position)

    def fault(position: int, problem: str) -> InputError:
        return InputError(f"{name}, line {line_at(position)}: {problem}; the file is damaged, write it again")

    def keep(values: Sequence[Value], names: list[str]) -> None:
        place = _joined(blocks[-1], names)
        if values and place in paths:
            found.setdefault(place, []).extend(values)

    for match in _TOKEN.finditer(text):
        kind = match.lastindex
        if kind is None:
            continue
        token, position = match[kind], match.start()
        if kind == _OTHER:
            raise fault(position, f"{quoted(token)} is neither a number, a name nor a string")
        if not blocks:
            due = (type_name, "::=", "{")[len(words)]
            if token != due:
                raise fault(position, f"expected '{type_name} ::= {{'")
            if due == "{":
                blocks, words, complete, found = [""], [], False, {}
                begun = position
            else:
                words.append(token)
        elif token in ("}", ",") and kind == _MARK:
            if words and not complete:
                keep(words[-1:], words[:-1])
            words, complete = [], token == "}"
            if complete:
                blocks.pop()
                if not blocks:
                    yield line_at(begun), found
        elif complete:
            raise fault(position, "expected ',' or '}' behind a value")
        elif kind in (_MARK, _REALS) and len(blocks) == MAX_DEPTH:
            raise fault(position, f"more than {MAX_DEPTH} blocks inside each other")
        elif kind == _MARK:
            blocks.append(_joined(blocks[-1], words))
            words = []
        elif kind in (_NUMBERS, _REALS):
            numbers = list(map(int, token.translate(_WITHOUT_MARKS).split()))
            n_named = 1 if kind == _NUMBERS else 3  # a name belongs to the first number, or block, alone
            keep(numbers[:n_named], words)
            keep(numbers[n_named:], [])
            words = []
        elif kind == _WORD:
            words.append(token)
        elif kind == _ASSIGNED:
            raise fault(position, "'::=' inside a value")
        else:
            keep([int(token) if kind == _NUMBER else _unquoted(token)], words)
            words, complete = [], True
    if blocks or words:
        raise InputError(f"{name}: the last value has no end; the file may be cut short")


def _unquoted(text: str) -> str:
    """The content of a quoted token, which may have been continued on further lines."""
    return text.replace("\r", "").replace("\n", "").replace('""', '"')


def _joined(place: str, names: list[str]) -> str:
    """The path of an element of a block."""
    if not names:
        return place
    return "/".join([place, *names] if place else names)

"""How a result is printed: text in one line, numbers as BLAST prints them, and the rows of an alignment.

Numbers are the same on every machine. The functions ``blast_*`` use the number formats of NCBI BLAST+ 2.12, checked
against its output: fewer digits for less significant values, an E-value below 1e-180 as ``0.0``, and a bit score above
99.9 without decimals, truncated rather than rounded.

In the records, an alignment is in the direction of the aligned query strand. BLAST prints the forward query and the
reversed subject instead. Therefore, for the minus strand, the CIGAR is reversed and the subject's letters are
reverse-complemented; the query's letters remain exactly as written. Translated residues are printed in the direction of
their frame.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from swsearch.hits.cigar import parse
from swsearch.hits.hit import Hit
from swsearch.hits.result import RunInfo
from swsearch.scoring.matrix import SubstitutionMatrix, parse_matrix_text
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.sequences.fasta_text import reverse_complement_letters

# --- text ---


_CONTROL = re.compile("[\0-\x1f\x7f\x85\u2028\u2029]")


def one_line(text: str) -> str:
    r"""Text with a space for each tab, line end and other control character, so that it cannot break a table.

    >>> one_line("a\tb\r\n")
    'a b  '
    """
    return text if text.isprintable() else _CONTROL.sub(" ", text)  # the test takes a tenth of the time


def cut(text: str, width: int) -> str:
    """Text of at most ``width`` characters; ``…`` replaces the omitted end.

    >>> cut("Leghemoglobin", 8)
    'Leghemo…'
    """
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


# --- numbers ---


UNKNOWN: Final = "N/A"
"""BLAST's text for an unknown value, also in the BLAST formats here."""

_ZERO_BELOW = 1e-180


def blast_evalue(evalue: float | None, *, digits: int = 0) -> str:
    """An E-value as BLAST prints it, with ``digits`` decimals if it is in scientific notation.

    BLAST uses 0 decimals in its pairwise reports and 2 in its tabular reports.

    >>> [blast_evalue(value) for value in (1e-200, 2.58e-103, 1.2e-5, 0.0123, 0.5, 3.14, 138.4)]
    ['0.0', '3e-103', '1e-05', '0.012', '0.50', '3.1', '138']
    """
    if evalue is None:
        return UNKNOWN
    if evalue < _ZERO_BELOW:
        return "0.0"
    if evalue < 0.0009:
        return f"{evalue:.{digits}e}"
    if evalue < 0.1:
        return f"{evalue:.3f}"
    if evalue < 1.0:
        return f"{evalue:.2f}"
    if evalue < 10.0:
        return f"{evalue:.1f}"
    return f"{evalue:.0f}"


def blast_bits(bits: float | None) -> str:
    """A bit score as BLAST prints it; a score below 100 has at least four characters.

    >>> [blast_bits(value) for value in (8.81, 99.9, 175.9, 123456.0)]
    [' 8.8', '99.9', '175', '1.235e+05']
    """
    if bits is None:
        return UNKNOWN
    if bits > 99_999:
        return f"{bits:.3e}"
    if bits > 99.9:
        return str(int(bits))
    return f"{bits:4.1f}"


def percent(part: int, whole: int) -> float:
    """``part`` of ``whole`` in percent; 0 if ``whole`` is 0.

    >>> percent(1, 3)
    33.333333333333336
    """
    return 100 * part / whole if whole else 0.0


def whole_percent(part: int, whole: int) -> int:
    """``part`` of ``whole`` in percent, rounded to an integer as by BLAST: half up, and 100 only if they are equal.

    >>> whole_percent(299, 300), whole_percent(300, 300), whole_percent(1, 8)
    (99, 100, 13)
    """
    if part >= whole:
        return 100
    return min(99, (200 * part + whole) // (2 * whole))


# --- the two rows of an alignment ---


def shown(query_letters: str, hit: Hit) -> tuple[str, str, str]:
    """A hit's alignment in the direction of the forward query, whose letters are given as written.

    The aligned letters of query and subject, and the CIGAR: the arguments of the functions of
    :mod:`swsearch.hits.cigar`.
    """
    alignment = hit.alignment
    letters = alignment.query_letters or query_letters[alignment.query_start : alignment.query_end]
    if not hit.is_turned:
        return letters, alignment.subject_letters, alignment.cigar
    backwards = "".join(f"{length}{operation}" for length, operation in reversed(parse(alignment.cigar)))
    return letters, reverse_complement_letters(alignment.subject_letters), backwards


def matrix_of(run: RunInfo) -> SubstitutionMatrix:
    """The matrix of a run, from its stored text."""
    return _parsed(run.matrix_scores, run.matrix, run.aligned_alphabet)


@lru_cache(maxsize=4)
def _parsed(text: str, name: str, alphabet: str) -> SubstitutionMatrix:
    return parse_matrix_text(text, name, ALPHABETS[alphabet])


def frames(hit: Hit) -> tuple[int, int]:
    """Frames of query and subject; 0 for an untranslated side of a translated search.

    Without any translation, the frames are 1, and -1 for a reversed subject. Protein has no frames, and BLAST 2.12
    prints 1.
    """
    if hit.query_frame or hit.subject_frame:
        return hit.query_frame, hit.subject_frame
    return 1, -1 if hit.is_turned else 1

"""The two rows of an alignment as reports show them, and what is read off them: the midline and BTOP.

Inside, an alignment runs along the strand of the query that aligned. BLAST shows the other way round: the query as it
was given, the subject turned. So for the minus strand the CIGAR is read backwards and the subject's letters are
reverse-complemented; the query's letters stay exactly as written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from swsearch.hits.cigar import gapped, parse
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.scoring.matrix import SubstitutionMatrix, parse_matrix_text
from swsearch.sequences.alphabet import ALPHABETS, CODE_MASK

GAP: Final = "-"
_COMPLEMENT: Final = str.maketrans("ACGTRYSWKMBDHVNUacgtryswkmbdhvnu", "TGCAYRSWMKVHDBNAtgcayrswmkvhdbna")


def aligned_rows(query: QueryResult, hit: Hit) -> tuple[str, str]:
    """The query's and the subject's row, gaps as ``-``, in the direction of the query as given."""
    alignment = hit.alignment
    letters = query.letters[alignment.query_start : alignment.query_end]
    if hit.strand == "plus":
        return gapped(letters, alignment.subject_letters, alignment.cigar)
    backwards = "".join(f"{length}{operation}" for length, operation in reversed(parse(alignment.cigar)))
    return gapped(letters, alignment.subject_letters.translate(_COMPLEMENT)[::-1], backwards)


def same_letter(query: str, subject: str, alphabet: str) -> bool:
    """Whether two letters are one residue: case does not count, and U of RNA is T."""
    query, subject = query.upper(), subject.upper()
    if alphabet == "dna":
        return query.replace("U", "T") == subject.replace("U", "T")
    return query == subject


@lru_cache(maxsize=4)
def _matrix(text: str, name: str, alphabet: str) -> SubstitutionMatrix:
    return parse_matrix_text(text, name, ALPHABETS[alphabet])


def midline(run: RunInfo, query_row: str, subject_row: str) -> str:
    """What stands between two rows: the letter, or ``|`` in DNA, where they agree; ``+`` for a score above 0."""
    alphabet = run.database.alphabet
    marks = []
    for query, subject in zip(query_row, subject_row, strict=True):
        if GAP in (query, subject):
            marks.append(" ")
        elif same_letter(query, subject, alphabet):
            marks.append("|" if alphabet == "dna" else query.upper())
        else:
            marks.append("+" if alphabet != "dna" and _score(run, query, subject) > 0 else " ")
    return "".join(marks)


def _score(run: RunInfo, query: str, subject: str) -> int:
    matrix = _matrix(run.matrix_scores, run.matrix, run.database.alphabet)
    row, column = matrix.alphabet.encode(query + subject) & CODE_MASK
    return int(matrix.scores[row, column])


def btop(query_row: str, subject_row: str, alphabet: str) -> str:
    """BLAST's traceback operations: a number for a run of equal letters, the two letters for any other column.

    >>> btop("ACDE-F", "ACWEYF", "protein")
    '2DW1-Y1'
    """
    parts: list[str] = []
    equal = 0
    for query, subject in zip(query_row, subject_row, strict=True):
        if same_letter(query, subject, alphabet):
            equal += 1
            continue
        if equal:
            parts.append(str(equal))
            equal = 0
        parts.append(f"{query.upper()}{subject.upper()}")
    if equal:
        parts.append(str(equal))
    return "".join(parts)

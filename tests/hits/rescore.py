"""An independent check of an alignment: its score is computed letter by letter from the coordinates and the CIGAR.

The module shares no code with the traceback or :mod:`swsearch.hits.cigar`, so that it detects errors in these modules.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from swsearch.hits.hit import Alignment
from swsearch.scoring.scheme import ScoringScheme
from swsearch.sequences.alphabet import reverse_complement
from swsearch.typing import Codes, ScoreTable


class Counted(NamedTuple):
    """The score and the counts of an alignment, in the order of the fields of :class:`Alignment`."""

    score: int
    identities: int
    positives: int
    columns: int
    gap_openings: int
    gap_residues: int


def counted(
    cigar: str, query: Sequence[Any], subject: Sequence[Any], pair_score: Callable[[int, int], int], *gap: int
) -> Counted:
    """Count two aligned parts column by column; raise AssertionError if the CIGAR does not fit them.

    ``pair_score`` is given the places of two letters.
    """
    assert re.fullmatch(r"([1-9]\d*[=XID])*", cigar), cigar
    runs = [(int(digits), operation) for digits, operation in re.findall(r"(\d+)(.)", cigar)]
    assert all(one != other for (_, one), (_, other) in pairwise(runs)), f"a run continues the one before in {cigar}"
    covered = [sum(length for length, operation in runs if operation != other) for other in "DI"]
    assert covered == [len(query), len(subject)], cigar
    gaps = [length for length, operation in runs if operation in "ID"]
    gap_open, gap_extend = gap
    score = -sum(gap_open + length * gap_extend for length in gaps)
    i = j = identities = positives = 0
    for length, operation in runs:
        if operation in "=X":
            for place in range(length):
                one, other = query[i + place], subject[j + place]
                assert (one == other) == (operation == "="), f"{operation} on {one} and {other}"
                pair = pair_score(i + place, j + place)
                score += pair
                positives += pair > 0
                identities += operation == "="
        i += length * (operation != "D")
        j += length * (operation != "I")
    return Counted(score, identities, positives, sum(length for length, _ in runs), len(gaps), sum(gaps))


def rescore(
    query: Codes,
    subject: Codes,
    alignment: Alignment,
    scheme: ScoringScheme,
    strand: str = "plus",
    position_scores: ScoreTable | None = None,
) -> int:
    """The raw score of an alignment of a hit; raise AssertionError if anything that it states is wrong.

    Parameters
    ----------
    query : uint8 array, shape (query_length,)
        Codes of the forward query, also for the minus strand.
    subject : uint8 array, shape (subject_length,)
    alignment : Alignment
    scheme : ScoringScheme
    strand : str
        ``plus`` or ``minus``.
    position_scores : int8 array, shape (query_length, 32), optional
        Scores of a position-specific query, used instead of the scheme's matrix; for the plus strand only.
    """
    start = alignment.query_start
    assert 0 <= start < alignment.query_end <= len(query)
    assert 0 <= alignment.subject_start < alignment.subject_end <= len(subject)
    alphabet = scheme.alphabet
    aligned_query = query[start : alignment.query_end]
    if strand == "minus":
        aligned_query = reverse_complement(aligned_query)
    letters = alphabet.decode(subject[alignment.subject_start : alignment.subject_end])
    assert letters == alignment.subject_letters
    a, b = alphabet.decode(aligned_query).upper(), letters.upper()
    if alphabet.name == "dna":
        a, b = a.replace("U", "T"), b.replace("U", "T")

    def pair_score(i: int, j: int) -> int:
        if position_scores is None:
            return scheme.matrix.score(a[i], b[j])
        return int(position_scores[start + i, alphabet.code(b[j])])

    assert re.fullmatch(r"\d+[=X](.*[=X])?", alignment.cigar), "a gap at an end"
    found = counted(alignment.cigar, a, b, pair_score, scheme.gap.open, scheme.gap.extend)
    assert [getattr(alignment, name) for name in found._fields[1:]] == [*found[1:]]
    return found.score

"""An independent check of an alignment: its score is computed letter by letter from the coordinates and the CIGAR.

The module shares no code with the traceback or :mod:`swsearch.hits.cigar`, so that it detects errors in these modules.
"""

import re

from swsearch.errors import InputError
from swsearch.hits.hit import Alignment
from swsearch.scoring.scheme import ScoringScheme
from swsearch.sequences.alphabet import reverse_complement
from swsearch.typing import Codes, ScoreTable


def rescore(
    query: Codes,
    subject: Codes,
    alignment: Alignment,
    scheme: ScoringScheme,
    strand: str = "plus",
    position_scores: ScoreTable | None = None,
) -> int:
    """The raw score of an alignment.

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

    Raises
    ------
    InputError
        The alignment is not valid: an operation is unknown or has length 0, a gap is at an end, ``=`` denotes different
        letters or ``X`` equal ones, coordinates are outside the sequences or do not fit the CIGAR, or the subject
        letters or the counts do not fit the columns.
    """

    def wrong(why: str) -> InputError:
        shown = alignment.cigar if len(alignment.cigar) <= 40 else alignment.cigar[:37] + "..."
        return InputError(f"alignment {shown!r} does not fit: {why}")

    for name, start, end, length in (
        ("query", alignment.query_start, alignment.query_end, len(query)),
        ("subject", alignment.subject_start, alignment.subject_end, len(subject)),
    ):
        if not 0 <= start < end <= length:
            raise wrong(f"{name} {start} to {end} is not part of {length} residues")

    aligned_query = query[alignment.query_start : alignment.query_end]
    if strand == "minus":
        aligned_query = reverse_complement(aligned_query)
    aligned_subject = subject[alignment.subject_start : alignment.subject_end]
    alphabet = scheme.alphabet
    a, b = alphabet.decode(aligned_query).upper(), alphabet.decode(aligned_subject).upper()
    if alphabet.decode(aligned_subject) != alignment.subject_letters:
        raise wrong("the subject letters are not those of the subject")
    if alphabet.name == "dna":
        a, b = a.replace("U", "T"), b.replace("U", "T")

    pieces = re.findall(r"(\d+)(\D)", alignment.cigar)
    if not pieces or "".join(map("".join, pieces)) != alignment.cigar:
        raise wrong("it is not a list of counts and operations")
    if pieces[0][1] in "ID" or pieces[-1][1] in "ID":
        raise wrong("a gap at an end")

    score = identities = positives = columns = gap_residues = gap_openings = 0
    i = j = 0
    previous = ""
    for digits, operation in pieces:
        length = int(digits)
        if length == 0 or operation == previous:
            raise wrong(f"run {digits}{operation} is empty or continues the one before")
        previous = operation
        columns += length
        if operation in "=X":
            for _ in range(length):
                if i >= len(a) or j >= len(b):
                    raise wrong(f"it needs more than {len(a)} query and {len(b)} subject residues")
                if (a[i] == b[j]) != (operation == "="):
                    raise wrong(f"{operation} stands on {a[i]} and {b[j]}, query residue {i + 1} of the alignment")
                if position_scores is None:
                    pair = scheme.matrix.score(a[i], b[j])
                else:
                    pair = int(position_scores[alignment.query_start + i, alphabet.code(b[j])])
                score += pair
                positives += pair > 0
                identities += operation == "="
                i, j = i + 1, j + 1
        elif operation in "ID":
            score -= scheme.gap.open + length * scheme.gap.extend
            gap_residues += length
            gap_openings += 1
            if operation == "I":
                i += length
            else:
                j += length
        else:
            raise wrong(f"operation {operation!r} is none of =, X, I, D")
    if (i, j) != (len(a), len(b)):
        raise wrong(f"it covers {i} query and {j} subject residues, the coordinates {len(a)} and {len(b)}")
    counted = (identities, positives, columns, gap_openings, gap_residues)
    stated = (
        alignment.identities,
        alignment.positives,
        alignment.columns,
        alignment.gap_openings,
        alignment.gap_residues,
    )
    if counted != stated:
        raise wrong(f"identities, positives, columns, gaps and gap residues are {counted}, not {stated}")
    return score

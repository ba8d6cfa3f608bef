"""An alignment as text: the edits that transform the query into the subject, and the letters common to both."""

from __future__ import annotations

from collections.abc import Iterator

from swsearch.hits.cigar import parse


def edits(query: str, subject: str, cigar: str) -> Iterator[str]:
    """The edits in order, one per letter; unchanged letters are omitted.

    Parameters
    ----------
    query, subject : str
        The aligned letters, without gaps.
    cigar : str
        ``=``, ``X``, ``I`` (consumes the query: a deletion from it), ``D`` (consumes the subject: an insertion).

    >>> list(edits("RISOTTO", "PRESTO", "1D1=1X1=1I1=1I1="))
    ['insert P', 'substitute I with E', 'delete O', 'delete T']
    """
    i = j = 0
    for length, operation in parse(cigar):
        for _ in range(length):
            if operation == "X":
                yield f"substitute {_shown(query[i])} with {_shown(subject[j])}"
            elif operation == "I":
                yield f"delete {_shown(query[i])}"
            elif operation == "D":
                yield f"insert {_shown(subject[j])}"
            i += operation != "D"
            j += operation != "I"


def common_letters(query: str, cigar: str) -> str:
    """The letters of the columns marked ``=``; for an LCS alignment, they are the longest common subsequence.

    >>> common_letters("RISOTTO", "1D1=1X1=1I1=1I1=")
    'RSTO'
    """
    parts = []
    i = 0
    for length, operation in parse(cigar):
        if operation == "=":
            parts.append(query[i : i + length])
        if operation != "D":
            i += length
    return "".join(parts)


def _shown(letter: str) -> str:
    """A letter, escaped if it cannot be printed on a line."""
    return letter if letter.isprintable() and not letter.isspace() else repr(letter)

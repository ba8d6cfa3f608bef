"""The order of the subjects of a result, and the cut of the ordered list at the top N.

Subjects are ordered by ascending E-value, then descending raw score, then ascending subject index, each by its best
alignment. :mod:`swsearch.search.ranking` applies the same order to arrays of scores, before there are hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from swsearch.hits.hit import Hit


def ranked(subjects: Iterable[Sequence[Hit]]) -> list[Hit]:
    """The alignments of all subjects in the order of the subjects, with new ranks; those of each are given best first.

    >>> ranked([])
    []
    """
    in_order = sorted(subjects, key=lambda several: _key(several[0]))
    return [replace(hit, rank=rank) for rank, several in enumerate(in_order, 1) for hit in several]


def _key(hit: Hit) -> tuple[float, int, int]:
    """The sort key of a subject by its best alignment; without statistics, no hit has an E-value."""
    return 0.0 if hit.evalue is None else hit.evalue, -hit.score, hit.subject_index


def first_subjects(hits: Sequence[Hit], top: int, ties: str) -> Sequence[Hit]:
    """The hits of the first ``top`` subjects; with ``ties`` ``all``, also those that equal the last of them."""
    firsts = [hit for hit in hits if hit.hsp == 1]
    if len(firsts) <= top:
        return hits
    last = top
    if ties == "all":
        limit = firsts[top - 1]
        while last < len(firsts) and (firsts[last].evalue, firsts[last].score) == (limit.evalue, limit.score):
            last += 1
    return [hit for hit in hits if hit.rank <= last]

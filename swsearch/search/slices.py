"""Slices of a database: what one is, and how the results of a search of each become those of the whole database.

A slice is one segment of a packed database, or a large segment with some small ones. A
:class:`~swsearch.search.searcher.Searcher` of a slice has a database of these segments only
(``open_database(path, parts=...)``), in which subjects keep the ``subject_index`` that they have in the whole
database. E-values refer to the residues of the whole database, which its catalogue states, and otherwise depend only on
the lengths of query and subject; so each hit of a slice is, digit for digit, the hit of the whole database.

:func:`merge_results` joins the results of one query. It is exact, because the N best subjects of the database are among
the N best of each slice: whatever ranks a subject (score, E-value, filters on its alignments, adjustment for
composition) depends on no other subject. The subjects that equal the last (``--ties all``) are complete in each slice
for the same reason, and the subjects that passed are counted slice by slice. In a round of an iterated search, each
slice lists at least the subjects that it includes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from swsearch.hits.limits import Limits, ranked
from swsearch.hits.result import QueryResult
from swsearch.search.search_subjects import SearchSubjects

SMALL_SEGMENT: Final = 0.1
"""A segment with less than this share of the residues of the largest segment is not a slice by itself."""


@dataclass(frozen=True)
class Slice:
    """A part of the database of a search: ``n_residues`` scored residues in segments with files of ``n_bytes`` bytes.

    ``segments`` are their numbers in the catalogue, from 0, ascending. ``parameters`` are number and digest of the
    subjects that pass the filters, as :attr:`SearchSubjects.parameters`.
    """

    segments: tuple[int, ...]
    n_residues: int
    n_bytes: int
    parameters: dict[str, str | int]


def slices_of(subjects: SearchSubjects) -> list[Slice]:
    """The slices of the database of a search, in the order of their first segments.

    Every segment is in exactly one slice; a slice without residues of subjects that pass the filters is left out. If
    all are, the whole database is the only slice. Small segments, such as those of ``swsearch db add``, would be slices
    that cost more than they save. They are added, the largest first, to the slice that has the fewest residues at that
    time.
    """
    catalogue = subjects.database.catalogue
    sizes = [segment.n_residues - segment.n_removed_residues for segment in catalogue.segments]
    large = [number for number, size in enumerate(sizes) if size >= SMALL_SEGMENT * max(sizes)]
    groups = [[number] for number in large]
    for number in sorted(set(range(len(sizes))) - set(large), key=lambda number: (-sizes[number], number)):
        min(groups, key=lambda group: sum(sizes[one] for one in group)).append(number)
    slices = [_slice(subjects, tuple(sorted(group))) for group in sorted(groups, key=min)]
    return [one for one in slices if one.n_residues] or [whole(subjects)]


def whole(subjects: SearchSubjects) -> Slice:
    """The whole database as one slice."""
    return _slice(subjects, tuple(range(len(subjects.database.catalogue.segments))))


def _slice(subjects: SearchSubjects, numbers: tuple[int, ...]) -> Slice:
    catalogue = subjects.database.catalogue
    n_bytes = sum(file.size for number in numbers for file in catalogue.segments[number].files.values())
    if len(numbers) == len(catalogue.segments):
        return Slice(numbers, subjects.n_residues, n_bytes, subjects.parameters)
    part = subjects.database.part(numbers)
    selection = None if subjects.selection is None else subjects.selection.among(part.subject_index)
    n_residues, _ = subjects.counted(part, None if selection is None else selection.chosen)
    return Slice(numbers, n_residues, n_bytes, {} if selection is None else selection.parameters)


def merge_results(parts: Sequence[QueryResult], limits: Limits) -> QueryResult:
    """The result of one query in the whole database, from its results in each slice, in any order.

    Those of an iterated search are of one round. The hits are ranked anew; in an iterated search, they include all
    subjects that the round includes. The cost is the sum of the costs of the slices.
    """
    hits = ranked(several for part in parts for several in part.by_subject)
    evalues = [hit.evalue for hit in hits if hit.hsp == 1 and hit.evalue is not None]
    wanted = limits.n_wanted(np.array(evalues))
    stats = parts[0].stats
    for part in parts[1:]:
        stats += part.stats
    n_passed = sum(part.n_passed for part in parts)
    listed = tuple(replace(limits, top=wanted).first_subjects(hits))
    return replace(parts[0], hits=listed, n_passed=n_passed, stats=stats)

"""The subjects of a search: those of the database that pass the filters, either untranslated or in six frames.

:class:`SearchSubjects` gives the searcher the partitions to score, the lengths for the statistics, and the residues of
the subjects to align. Filters and translation of subjects are hidden from all other modules. The length of a translated
subject in residues is a third of its number of bases, as in blastx and tblastn.

In a search of all against all, each subject is compared with those before it (:attr:`SearchSubjects.order`). The order
is that of the packed format: by length, then by ``subject_index``. The subjects before another one are therefore the
first ones of each partition, and a search of all against all scores about half of the cells of a search of the database
with all its sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import distinct
from swsearch.database.partition import Partition
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import ScoreEngine, ScoreRequest
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, SubjectRecord
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.sequences.genetic_code import CODON, FRAMES
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, Lengths, Offsets, Progress, SubjectIndex

if TYPE_CHECKING:
    from swsearch.database.translated_subjects import TranslatedSubjects
    from swsearch.filters.subject_filters import SubjectSelection

LEAST_SAVED: Final = 0.03
"""Share of the residues that parts of other subjects must have at least, so that their scores are saved: it costs lower
thresholds of the others."""
_POSITIONS: Final = 16
"""Residues of a subject that are looked up for all subjects at once; almost every subject scores with one of them."""
STEPS: Final = 128
"""Number of lengths to which a partition is cut. Engines keep what they have prepared for a partition, so a cut for
each query would cost more than the few subjects with which a query is scored needlessly."""


class SearchSubjects:
    """The subjects of one search.

    Parameters
    ----------
    database : PackedDatabase
        An open database; the caller closes it.
    options : SearchOptions
    partition_residues : int, optional
        Largest number of residues of a partition; a longer subject is a separate partition.
    translating : callable, optional
        Called with the number of bases translated since the last call, if subjects are translated.
    is_scored_here : bool
        Whether the subjects are scored in this process. Otherwise they are only counted: there are no partitions, and
        nothing is translated.

    Attributes
    ----------
    frames : tuple of int
        Frames of a subject, in order of preference among equal scores; ``(0,)`` if subjects are not translated.
    partitions : list of Partition
        All subjects that are searched, with ``n_residues`` residues.
    distinct, maximal : list of Partition
        The same without the subjects that are equal to others; and also without those that are part of others, if
        these have many residues. :meth:`compared` and :meth:`with_parts` add their scores.
    n_rows, n_subjects : int
        Number of rows of all partitions, one per subject or per frame of a subject, and of subjects.
    distinct_lengths : uint32 array
        The distinct lengths of the searched subjects for the statistics, ascending.
    notes : tuple of str
        Messages for the user about the filters.
    selection : SubjectSelection or None
        The subjects that pass the filters; None if all subjects are searched.
    parameters : dict
        Number and digest of the filtered subjects. They are stored with the run, because a file of identifiers may
        change between two searches. Empty without filters.

    Raises
    ------
    InputError
        No subject passes the filters, or a file of a filter cannot be read.
    DatabaseError
        The disk space does not suffice for the translated subjects.
    """

    def __init__(
        self,
        database: PackedDatabase,
        options: SearchOptions,
        partition_residues: int | None = None,
        translating: Progress | None = None,
        *,
        is_scored_here: bool = True,
    ) -> None:
        self.database = database
        self.frames = options.subject_frames
        self._is_translated = options.code is not None and self.frames != (0,)
        self._translated: TranslatedSubjects | None = None
        if options.code is not None and self._is_translated and is_scored_here:
            from swsearch.database.translated_subjects import TranslatedSubjects

            self._translated = TranslatedSubjects(database, options.code, progress=translating)
        self.selection: SubjectSelection | None = None
        if options.subject_filters:
            from swsearch.filters.subject_filters import select_subjects

            self.selection = select_subjects(database, options.subject_filters)
        self.notes = () if self.selection is None else self.selection.notes
        self.parameters: dict[str, str | int] = {}
        lengths = database.distinct_lengths()
        chosen = None
        if self.selection is not None:
            chosen = self.selection.chosen
            lengths = database.lengths(self.selection.subject_index)
            self.parameters = self.selection.parameters
        self.partitions = list(self._cut(chosen, partition_residues)) if is_scored_here else []
        self.distinct = [partition.distinct for partition in self.partitions]
        self.maximal = [partition.maximal for partition in self.partitions]
        n_distinct, n_maximal = (sum(one.n_residues for one in those) for those in (self.distinct, self.maximal))
        if n_distinct - n_maximal <= n_distinct * LEAST_SAVED:
            self.maximal = self.distinct
        if is_scored_here:
            self.n_residues = sum(partition.n_residues for partition in self.partitions)
            self.n_rows = sum(map(len, self.partitions))
        else:
            self.n_residues, self.n_rows = self.counted(database, chosen)
        self.n_subjects = self.n_rows // len(self.frames)
        self.distinct_lengths = distinct(self._counted(lengths))
        self._first_rows: dict[tuple[int, int], Partition] = {}
        self._n_positive: dict[bytes, int] = {}

    def counted(self, database: PackedDatabase, chosen: NDArray[np.bool_] | None) -> tuple[int, int]:
        """Numbers of residues and of rows of the searched subjects of a database, or of a slice of it."""
        n_residues = n_rows = 0
        for whole in database.partitions():
            lengths = whole.lengths if chosen is None else whole.lengths[chosen[whole.subject_index]]
            if self._is_translated:
                from swsearch.database.translated_subjects import translated_lengths

                lengths = translated_lengths(lengths)
            n_residues += int(lengths.sum(dtype=np.int64))
            n_rows += int(np.count_nonzero(lengths))
        return n_residues, n_rows

    def _cut(self, chosen: NDArray[np.bool_] | None, partition_residues: int | None) -> Iterator[Partition]:
        source = self._translated or self.database
        if chosen is None:
            yield from source.partitions(partition_residues)
            return
        for whole in source.partitions():
            rows = np.flatnonzero(chosen[self.subjects(whole.subject_index)])
            yield from whole[rows].split(partition_residues)

    def subjects(self, rows: SubjectIndex) -> SubjectIndex:
        """The subjects of a partition's rows; a row of a translated partition is one frame of a subject."""
        return rows if self._translated is None else rows // np.uint32(len(FRAMES))

    # --- the subjects that a query is compared with: all, or those before it (swsearch.query.profile) ---

    @cached_property
    def order(self) -> tuple[SubjectIndex, Lengths]:
        """Index and length of the searched subjects in ascending order, two uint32 arrays of shape (n_subjects,)."""
        parts = [] if self.selection is None else [self.selection.subject_index]
        subject_index = np.concatenate(parts or [whole.subject_index for whole in self.database.partitions()])
        lengths = self.database.lengths(subject_index)
        rows = np.lexsort((subject_index, lengths))
        return subject_index[rows], lengths[rows]

    @cached_property
    def _residues_before(self) -> NDArray[np.int64]:
        """Number of residues before each subject in the order, and of all."""
        return np.concatenate(([0], np.cumsum(self.order[1], dtype=np.int64)))

    def n_compared_residues(self, query: SequenceRecord) -> int:
        """Number of residues of the subjects that a query is compared with."""
        if isinstance(query, SubjectRecord):
            return int(self._residues_before[_n_before(*self.order, query)])
        return self.n_residues

    def before(self, queries: Sequence[SubjectRecord]) -> list[Partition]:
        """Partitions to score, for all subjects before one of the queries, and perhaps some others; none is empty.

        Equal arguments give the same objects.
        """
        last = max(queries, key=lambda query: query.place)
        return [part for number in range(len(self.distinct)) if len(part := self._first_part(number, last))]

    def _first_part(self, number: int, query: SubjectRecord) -> Partition:
        """The subjects of a partition that are before a query, and less than one in :data:`STEPS` of the others."""
        whole = self.distinct[number]
        step = max(1, -(-len(whole) // STEPS))
        stop = -(-_n_before(whole.subject_index, whole.lengths, query) // step) * step
        if stop >= len(whole):
            return whole
        if (number, stop) not in self._first_rows:
            self._first_rows[number, stop] = whole[:stop]
        return self._first_rows[number, stop]

    def _repeats(self, *, equal: bool) -> list[tuple[Partition, NDArray[np.intp], SubjectIndex]]:
        """Of each partition, rows that are equal to others, or part of them, and these others, ascending."""
        found = []
        for partition in self.partitions:
            if partition.repeats is not None:
                rows, others = partition.repeats[(partition.repeats[:, 1] < partition.repeats[:, 0]) == equal].T
                scored = partition.subject_index[others]
                order = np.argsort(scored, kind="stable")
                found.append((partition, rows[order].astype(np.intp), scored[order]))
        return [each for each in found if len(each[1])]

    @cached_property
    def _equal(self) -> list[tuple[Partition, NDArray[np.intp], SubjectIndex]]:
        return self._repeats(equal=True)

    @cached_property
    def _parts(self) -> list[tuple[Partition, NDArray[np.intp], SubjectIndex]]:
        return self._repeats(equal=False)

    @property
    def has_repeats(self) -> bool:
        """Whether some subjects may not be scored, because others have their residues."""
        return len(self._equal) > 0 or self.maximal is not self.distinct

    def with_parts(self, block: ScoreBlock, profile: QueryProfile, floor: int, engine: ScoreEngine) -> ScoreBlock:
        """The scores of the distinct subjects that reach a floor, from those of the maximal ones that do."""
        found = [block]
        for partition, rows, wholes in self._parts:
            if len(places := _occurrences(block, wholes)[1]):
                found += engine.score([ScoreRequest(profile, floor)], partition[np.sort(rows[places])])
        return ScoreBlock.concatenate(found)

    @cached_property
    def shortest_part(self) -> int | None:
        """The length of the shortest subject that is part of another; None if none is left out of ``maximal``."""
        if self.maximal is self.distinct:
            return None
        return min(int(partition.lengths[rows].min()) for partition, rows, _ in self._parts)

    def _with_equal(self, block: ScoreBlock) -> ScoreBlock:
        """The scores of all subjects, from those of the distinct ones."""
        if not self._equal:
            return block
        found = [(part, rows, *_occurrences(block, scored)) for part, rows, scored in self._equal]
        places = np.concatenate([in_block for _, _, in_block, _ in found])
        added = np.concatenate([part.subject_index[rows[those]] for part, rows, _, those in found])
        within = block.within
        if within:
            pairs = zip(added.tolist(), block.subject_index[places].tolist(), strict=True)
            within = {**within, **{other: within[subject] for other, subject in pairs if subject in within}}
        return replace(
            block,
            subject_index=np.concatenate([block.subject_index, added]),
            score=np.concatenate([block.score, block.score[places]]),
            within=within,
        )

    def compared(self, block: ScoreBlock, query: SequenceRecord) -> ScoreBlock:
        """The scores of the subjects that are compared with the query, from those of the distinct subjects."""
        block = self._with_equal(block)
        if not isinstance(query, SubjectRecord):
            return block
        lengths = self.database.lengths(block.subject_index)
        is_before = lengths < len(query)
        is_before |= (lengths == len(query)) & (block.subject_index < query.subject_index)
        return block.among(block.subject_index[is_before])

    # --- lengths for the statistics ---

    def _counted(self, lengths: Lengths) -> Lengths:
        return lengths if not self._is_translated else np.maximum(lengths // np.uint32(CODON), np.uint32(1))

    def lengths(self, subject_index: SubjectIndex) -> Lengths:
        """Lengths of these subjects in residues, for the statistics."""
        return self._counted(self.database.lengths(subject_index))

    def residues(self, n_letters: int) -> int:
        """Number of residues in one frame for ``n_letters`` letters of a database; at least 1."""
        return n_letters if not self._is_translated else max(1, n_letters // CODON)

    # --- scores and alignments ---

    def by_frame(self, block: ScoreBlock) -> list[ScoreBlock]:
        """The scores of the partitions' rows as one block per frame, with the ``subject_index`` of the subjects."""
        return [block] if self._translated is None else self._translated.by_frame(block)

    def n_positive(self, profiles: Iterable[QueryProfile]) -> int:
        """Number of subjects that score at least 1 with one of the profiles.

        A single pair of residues is an alignment, and no alignment without a pair of positive score has one. So these
        are the subjects with a letter that scores positively at a query position. Queries with the same such letters,
        as most have, are counted once.
        """
        is_positive = np.any(np.concatenate([profile.table for profile in profiles]) > 0, axis=0)
        key = is_positive.tobytes()
        if key not in self._n_positive:
            rows = np.concatenate([part.subject_index[_containing(part, is_positive)] for part in self.partitions])
            self._n_positive[key] = len(rows) if len(self.frames) == 1 else len(distinct(self.subjects(rows)))
        return self._n_positive[key]

    def stored_ranges(
        self, subject_index: SubjectIndex, frame: int
    ) -> Iterator[tuple[NDArray[np.intp], Codes, Offsets, Lengths]]:
        """Residues of these subjects in one frame; see :meth:`PackedDatabase.stored_ranges`."""
        if self._translated is None:
            return self.database.stored_ranges(subject_index)
        return self._translated.stored_ranges(subject_index, frame)


def _occurrences(block: ScoreBlock, subjects: SubjectIndex) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Each occurrence of a subject of the block among ``subjects``, ascending: its place in the block, and in these."""
    begin, end = (np.searchsorted(subjects, block.subject_index, side=side) for side in ("left", "right"))
    counts = end - begin
    in_block = np.repeat(np.arange(len(block)), counts)
    return in_block, np.repeat(end - np.cumsum(counts), counts) + np.arange(len(in_block))


def _containing(partition: Partition, positive: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The rows that contain one of the letters; ``positive`` has one element per residue code."""
    found = []
    remaining = np.arange(len(partition))  # without such a letter before the current position
    for position in range(_POSITIONS):
        remaining = remaining[partition.lengths[remaining] > position]
        codes = partition.residues[partition.starts[remaining] + np.uint64(position)] & CODE_MASK
        found.append(remaining[positive[codes]])
        remaining = remaining[~positive[codes]]
    later = [row for row in remaining.tolist() if positive[partition.codes(row) & CODE_MASK].any()]
    return np.concatenate([*found, np.array(later, np.intp)])


def _n_before(subject_index: SubjectIndex, lengths: Lengths, query: SubjectRecord) -> int:
    """Number of subjects before a query, in the order of this module."""
    length = len(query)
    first, stop = np.searchsorted(lengths, np.array([length, length + 1], dtype=np.uint32))
    return int(first + np.searchsorted(subject_index[first:stop], np.uint32(query.subject_index)))

"""What queries are aligned with: the subjects of a database that pass the filters, as they are or in their frames.

The searcher asks :class:`SearchSubjects` for partitions to score, for the lengths that the statistics count, and for the
residues of subjects to align; whether subjects are chosen or translated is known here alone. Lengths and residues of
translated subjects are a third of their bases, as in blastx and tblastn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.database.reader import PackedDatabase
from swsearch.database.translated import TranslatedSubjects
from swsearch.filters.subject_filters import select_subjects
from swsearch.hits.score_block import ScoreBlock
from swsearch.search.options import SearchOptions
from swsearch.sequences.genetic_code import CODON, FRAMES
from swsearch.typing import Codes, Lengths, Offsets, SubjectIndex


class SearchSubjects:
    """The subjects of one search.

    Parameters
    ----------
    database : PackedDatabase
        Open; stays the caller's.
    options : SearchOptions
    partition_residues : int, optional
        Residues of a partition at most, but for a single subject.
    translating : callable, optional
        Called with the bases translated since the last call, where subjects are translated.

    Attributes
    ----------
    database : PackedDatabase
    frames : tuple of int
        Frames of a subject in the order that breaks ties; ``(0,)`` where subjects are not translated.
    partitions : list of Partition
        All that is scored.
    n_residues : int
        Residues of all partitions.
    distinct_lengths : uint32 array
        Lengths, as the statistics count them, of the subjects that are searched.
    notes : tuple of str
        What a person should hear of the choice.
    parameters : dict
        What a run keeps of the choice: files of identifiers may change between two searches.

    Raises
    ------
    InputError
        No subject passes the filters, or a file that they name cannot be read.
    DatabaseError
        There is no room for the translated subjects.
    """

    def __init__(
        self,
        database: PackedDatabase,
        options: SearchOptions,
        partition_residues: int | None = None,
        translating: Callable[[int], None] | None = None,
    ) -> None:
        self.database = database
        self.frames = options.subject_frames
        self._translated: TranslatedSubjects | None = None
        if options.code is not None and self.frames != (0,):
            self._translated = TranslatedSubjects(database, options.code, progress=translating)
        selection = select_subjects(database, options.subject_filters)
        self.notes = () if selection is None else selection.notes
        self.parameters: dict[str, str | int] = {}
        lengths = database.distinct_lengths()
        chosen = None
        if selection is not None:
            chosen = selection.chosen
            lengths = database.lengths(selection.subject_index)
            self.parameters = {"chosen_subjects": selection.n_subjects, "chosen_digest": selection.digest}
        self.partitions = list(self._cut(chosen, partition_residues))
        self.n_residues = sum(partition.n_residues for partition in self.partitions)
        self.distinct_lengths = np.unique(self._counted(lengths))

    def _cut(self, chosen: NDArray[np.bool_] | None, partition_residues: int | None) -> Iterator[Partition]:
        source = self._translated or self.database
        if chosen is None:
            yield from source.partitions(partition_residues)
            return
        for whole in source.partitions():
            places = np.flatnonzero(chosen[self._subjects(whole.subject_index)])
            if partition_residues is not None:
                yield from whole[places].split(partition_residues)
            elif places.size:
                yield whole[places]

    def _subjects(self, rows: SubjectIndex) -> SubjectIndex:
        """``subject_index`` of a partition's rows, which number subjects in frames where they are translated."""
        return rows if self._translated is None else rows // np.uint32(len(FRAMES))

    # --- lengths as the statistics count them ---

    def _counted(self, lengths: Lengths) -> Lengths:
        return lengths if self._translated is None else np.maximum(lengths // np.uint32(CODON), np.uint32(1))

    def lengths(self, subject_index: SubjectIndex) -> Lengths:
        """Lengths of some subjects."""
        return self._counted(self.database.lengths(subject_index))

    def residues(self, n_letters: int) -> int:
        """Residues that ``n_letters`` of a database stand for, in one frame; at least 1."""
        return n_letters if self._translated is None else max(1, n_letters // CODON)

    # --- scores and alignments ---

    def by_frame(self, block: ScoreBlock) -> list[ScoreBlock]:
        """Scores of partitions' rows, one block a frame, each with its ``subject_index``."""
        return [block] if self._translated is None else self._translated.by_frame(block)

    def stored_ranges(
        self, subject_index: SubjectIndex, frame: int
    ) -> Iterator[tuple[NDArray[np.intp], Codes, Offsets, Lengths]]:
        """Residues of some subjects in a frame; see :meth:`PackedDatabase.stored_ranges`."""
        if self._translated is None:
            return self.database.stored_ranges(subject_index)
        return self._translated.stored_ranges(subject_index, frame)

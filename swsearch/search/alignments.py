"""The alignments of ranked subjects.

This step follows the ranking. :class:`SubjectAligner` takes query frames and the subjects to align, and returns a list
of :class:`SubjectAlignment` for each subject. A *comparison* is one query frame (or strand) with one frame of the
subjects. Each comparison has its own alignment matrix, so alignments of two comparisons never share a pair of residues.
:mod:`swsearch.search.ranking` decides which comparisons are aligned, and how often. Many more alignments are computed
than are listed; coordinates on the input sequences and letters are those of :meth:`SubjectAligner.alignment` alone.

If a subject is much longer than the query, such as a genome, and the engine can report alignment ends, the engine
computes the end first; the traceback then computes only the columns before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.protocol import BackgroundEngine
from swsearch.errors import EngineError
from swsearch.hits.hit import Alignment
from swsearch.hits.score_block import Ends, ScoreBlock
from swsearch.hits.traceback import LocalAligner, Path, on_bases
from swsearch.query.profile import QueryProfile
from swsearch.search.frames import Frame
from swsearch.search.search_subjects import SearchSubjects
from swsearch.typing import Bools, Codes, Lengths, Offsets, Scores

SPARED_CELLS: Final = 1 << 28
"""Smallest number of cells that an end must save the traceback for the engine to compute it: about 20 ms of one core.
The request waits until the engine has finished its current work (``benchmarks/benchmark_ends.py``)."""

MOST_ALIGNMENTS: Final = 2**31 - 1
"""Largest number of alignments of a subject that can be requested from the native code; no subject has as many."""

Comparison = tuple[Frame, int]
"""A query frame, and the frame of the subjects, which is 0 if they are not translated."""


class SubjectAlignment(NamedTuple):
    """One alignment of a subject in one comparison, whose frames have the coordinates of its path.

    ``subject_codes`` are the aligned residues of the subject's frame.
    """

    subject: int
    comparison: Comparison
    path: Path
    subject_codes: Codes

    @property
    def score(self) -> int:
        """The raw score."""
        return self.path.score

    @property
    def query_codes(self) -> Codes:
        """The aligned residues of the query's frame."""
        return self.comparison[0].codes[self.path.query_start : self.path.query_end]


@dataclass(frozen=True, eq=False)
class SubjectAligner:
    """Computes the alignments of one search.

    The alphabet of ``aligner`` is that of the aligned sequences, after any translation. ``engine`` computed the scores
    and can report ends.
    """

    search_subjects: SearchSubjects
    aligner: LocalAligner
    engine: BackgroundEngine | None = None

    def align(
        self,
        comparison: Comparison,
        block: ScoreBlock,
        *,
        most: int,
        floor: int | Scores,
        earlier: Sequence[Sequence[SubjectAlignment]] = (),
    ) -> Iterator[tuple[int, list[SubjectAlignment]]]:
        """The best alignments of subjects in one comparison, by descending score, with each ``subject_index``.

        ``block`` has the subjects with the engine's scores, unless they have earlier alignments. A subject has ``most``
        alignments at most, at least 1, none of which scores less than ``floor``, one number or int32 with one element
        per subject. With ``earlier``, the known alignments of each subject in this comparison, those that follow are
        returned.
        """
        query_frame, subject_frame = comparison
        floors = np.broadcast_to(np.asarray(floor, dtype=np.int32), len(block))
        ranges = self.search_subjects.stored_ranges(block.subject_index, subject_frame)
        for in_block, residues, starts, lengths in ranges:
            scores = block.score[in_block]
            parts: list[tuple[int, int] | None] = []
            if block.within:
                parts = [block.within.get(subject) for subject in block.subject_index[in_block].tolist()]
            groups: Iterable[tuple[NDArray[np.intp], Ends | None]] = [(np.arange(len(lengths)), None)]
            if most == 1 and not earlier:
                groups = self._with_ends(query_frame.profile, residues, starts, lengths, scores, parts)
            for rows, ends in groups:
                known = [[one.path for one in earlier[row]] for row in in_block[rows].tolist()] if earlier else []
                try:
                    paths = self.aligner.paths(
                        query_frame,
                        Partition(residues, starts[rows], lengths[rows], block.subject_index[in_block[rows]]),
                        scores=None if earlier else scores[rows],
                        ends=ends,
                        most=min(most, MOST_ALIGNMENTS),
                        floor=floors[in_block[rows]],
                        earlier=known,
                    )
                except EngineError as error:  # the arrays contradict each other, or the engine is at fault
                    name = self.search_subjects.database.name
                    raise EngineError(f"{name} may be damaged ({error}); run `swsearch db verify {name}`") from error
                subjects = block.subject_index[in_block[rows]].tolist()
                for subject, start, several in zip(subjects, starts[rows].tolist(), paths, strict=True):
                    codes = [residues[start + one.subject_start : start + one.subject_end] for one in several]
                    yield subject, list(map(partial(SubjectAlignment, subject, comparison), several, codes))

    def may_spare(self, n_rows: int, lengths: Lengths) -> Bools:
        """Whether an end of the engine may spare the traceback of a query with ``n_rows`` rows much of each subject."""
        return (lengths.astype(np.int64) * n_rows >= SPARED_CELLS) & (self.engine is not None)

    def alignment(self, found: SubjectAlignment, n_letters: int) -> Alignment:
        """The alignment in coordinates of the input sequences; the query has ``n_letters``."""
        frame, subject_frame = found.comparison
        aligned = self.aligner.alignment(frame, found.path, found.subject_codes)
        n_subject_letters = self.search_subjects.database.length(found.subject) if subject_frame else 0
        return on_bases(aligned, frame.codes, frame.number, n_letters, subject_frame, n_subject_letters)

    def _with_ends(
        self,
        profile: QueryProfile,
        residues: Codes,
        starts: Offsets,
        lengths: Lengths,
        scores: Scores,
        parts: list[tuple[int, int] | None],
    ) -> Iterator[tuple[NDArray[np.intp], Ends | None]]:
        """The rows of ``lengths`` in at most two groups: those whose ends the engine reported, and the others.

        ``parts``, unless it is empty, has the first column and the number of columns in which each end lies, or None.
        """
        rows = np.arange(len(lengths))
        columns = profile.most_columns(scores) if self.may_spare(profile.length, lengths).any() else None
        if self.engine is not None and columns is not None:
            long = (lengths.astype(np.int64) - columns) * profile.length >= SPARED_CELLS
            asked = rows[long]
            if asked.size:
                begin, n_columns = np.zeros(len(asked), np.int64), lengths[asked]
                for row, part in enumerate(parts[index] for index in asked.tolist()) if parts else ():
                    if part is not None:
                        begin[row], n_columns[row] = part
                first = starts[asked] + begin.astype(np.uint64)
                subjects = Partition(residues, first, n_columns, asked.astype(np.uint32))
                ends = self.engine.ends(profile, subjects, scores[asked])
                if ends is not None:
                    yield asked, Ends(ends.query_end, ends.subject_end + begin)
                    rows = rows[~long]
        if rows.size:
            yield rows, None

"""The alignments of ranked subjects: of the best reading alone, or the best of all readings where several are wanted.

Comes after ranking. An engine that tells where alignments end is asked of subjects far longer than the query, a genome
say, whose matrix is then gone through before the end alone. A *comparison* is a reading of the query with a frame of
the subjects; each has a matrix of its own, so alignments of two comparisons never use the same pair of residues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.alignment.traceback import align_several
from swsearch.alignment.translated import on_bases
from swsearch.database.partition import Partition
from swsearch.engine.protocol import EndsEngine
from swsearch.hits.ends import Ends
from swsearch.hits.hit import Alignment
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.search.query_frames import Reading
from swsearch.search.search_subjects import SearchSubjects
from swsearch.sequences.alphabet import Alphabet
from swsearch.typing import Codes, Lengths, Offsets, Scores

SPARED_CELLS: Final = 1 << 28
"""The engine is asked for an end that spares at least so many cells, 20 ms of a core: an answer waits until the engine
has ended what it is at (``benchmarks/benchmark_ends.py``)."""

MOST_ALIGNMENTS: Final = 2**31 - 1
"""Alignments of a subject that the native door can be asked for; no subject has as many."""

Comparison = tuple[Reading, int]
"""A reading of the query, and the frame of the subjects, 0 where they are not translated."""


@dataclass(frozen=True)
class Found:
    """One alignment, on the letters of query and subject as given, with its score and how both were read."""

    score: int
    alignment: Alignment
    strand: str
    query_frame: int
    subject_frame: int


@dataclass(frozen=True, eq=False)
class SubjectAligner:
    """Makes the alignments of one search.

    Attributes
    ----------
    search_subjects : SearchSubjects
    alphabet : Alphabet
        Of what is aligned.
    matrix : SubstitutionMatrix or None
        Decides which columns are positive where profiles do not.
    max_hsps : int
        Alignments of one subject, at least 1.
    threads : int
    engine : EndsEngine or None
        Asked for ends; its scores are those that are aligned.
    """

    search_subjects: SearchSubjects
    alphabet: Alphabet
    matrix: SubstitutionMatrix | None
    max_hsps: int
    threads: int
    engine: EndsEngine | None = None

    def align(
        self, n_letters: int, scored: Iterable[tuple[Comparison, ScoreBlock]], floor: int
    ) -> dict[int, list[Found]]:
        """The best alignments of each subject by its index: by higher score, then comparison, then as they were found.

        Parameters
        ----------
        n_letters : int
            Length of the query as given.
        scored : iterable of (comparison, ScoreBlock)
            What to align, with the engine's scores, all of at least ``floor``.
        floor : int
            Least score of an alignment.
        """
        found: dict[int, list[Found]] = {}
        for comparison, block in scored:
            for subject, several in self._align_comparison(n_letters, comparison, block, floor):
                found.setdefault(subject, []).extend(several)
        for several in found.values():
            several.sort(key=lambda one: -one.score)
            del several[self.max_hsps :]
        return found

    def _align_comparison(
        self, n_letters: int, comparison: Comparison, block: ScoreBlock, floor: int
    ) -> Iterator[tuple[int, list[Found]]]:
        reading, frame = comparison
        for places, residues, starts, lengths in self.search_subjects.stored_ranges(block.subject_index, frame):
            scores = block.score[places]
            for rows, ends in self._with_ends(reading.profile, residues, starts, lengths, scores):
                aligned = align_several(
                    reading.codes,
                    reading.profile,
                    self.alphabet,
                    residues=residues,
                    starts=starts[rows],
                    lengths=lengths[rows],
                    scores=scores[rows],
                    ends=ends,
                    matrix=self.matrix,
                    most=min(self.max_hsps, MOST_ALIGNMENTS),
                    floor=floor,
                    n_threads=self.threads,
                    strand="plus" if reading.frame else reading.strand,
                )
                for subject, several in zip(block.subject_index[places[rows]].tolist(), aligned, strict=True):
                    yield subject, [self._found(*one, comparison, n_letters, subject) for one in several]

    def _found(self, score: int, alignment: Alignment, comparison: Comparison, n_letters: int, subject: int) -> Found:
        reading, frame = comparison
        on_letters = on_bases(
            alignment, reading.codes, reading.frame, n_letters, frame, self.search_subjects.database.length(subject)
        )
        return Found(score, on_letters, reading.strand, reading.frame, frame)

    def _with_ends(
        self, profile: QueryProfile, residues: Codes, starts: Offsets, lengths: Lengths, scores: Scores
    ) -> Iterator[tuple[NDArray[np.intp], Ends | None]]:
        """All rows of some subjects in groups, with the ends of those that the engine was asked for."""
        rows = np.arange(len(lengths))
        columns = profile.most_columns(scores)
        if self.engine is not None and self.max_hsps == 1 and columns is not None:
            long = (lengths.astype(np.int64) - columns) * profile.length >= SPARED_CELLS
            asked = rows[long]
            if asked.size:
                subjects = Partition(residues, starts[asked], lengths[asked], asked.astype(np.uint32))
                ends = self.engine.ends(profile, subjects, scores[asked])
                if ends is not None:
                    yield asked, ends
                    rows = rows[~long]
        if rows.size:
            yield rows, None

"""The alignments of ranked subjects: of the best reading alone, or the best of all readings where several are wanted.

Comes after ranking. A *comparison* is a reading of the query with a frame of the subjects; each has a matrix of its
own, so alignments of two comparisons never use the same pair of residues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from swsearch.alignment.traceback import align_several
from swsearch.alignment.translated import on_bases
from swsearch.hits.hit import Alignment
from swsearch.hits.score_block import ScoreBlock
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.search.readings import Reading
from swsearch.search.targets import Targets
from swsearch.sequences.alphabet import Alphabet

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
    targets : Targets
    alphabet : Alphabet
        Of what is aligned.
    matrix : SubstitutionMatrix or None
        Decides which columns are positive where profiles do not.
    max_hsps : int
        Alignments of one subject, at least 1.
    threads : int
    """

    targets: Targets
    alphabet: Alphabet
    matrix: SubstitutionMatrix | None
    max_hsps: int
    threads: int

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
        for places, residues, starts, lengths in self.targets.stored_ranges(block.subject_index, frame):
            aligned = align_several(
                reading.codes,
                reading.profile,
                self.alphabet,
                residues=residues,
                starts=starts,
                lengths=lengths,
                scores=block.score[places],
                matrix=self.matrix,
                most=self.max_hsps,
                floor=floor,
                n_threads=self.threads,
                strand="plus" if reading.frame else reading.strand,
            )
            for subject, several in zip(block.subject_index[places].tolist(), aligned, strict=True):
                n_bases = self.targets.database.length(subject)
                yield (
                    subject,
                    [
                        Found(
                            score,
                            on_bases(alignment, reading.codes, reading.frame, n_letters, frame, n_bases),
                            reading.strand,
                            reading.frame,
                            frame,
                        )
                        for score, alignment in several
                    ],
                )

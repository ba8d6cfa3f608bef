"""Alignments of the subjects that a search reports, computed by the native traceback.

The engines return only scores; the traceback then computes the coordinates and the CIGAR of each alignment, for one
query and typically a few hundred subjects. docs/design/traceback.md defines which one of several optimal alignments is
returned; the choice does not depend on threads, memory or instruction set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.errors import EngineError, InputError
from swsearch.hits.cigar import parse
from swsearch.hits.hit import Alignment
from swsearch.hits.score_block import Ends
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN, Alphabet
from swsearch.sequences.genetic_code import base_range
from swsearch.typing import Codes, Progress, Scores

if TYPE_CHECKING:  # records know no query
    from swsearch.database.partition import Partition
    from swsearch.search.frames import Frame


class Path(NamedTuple):
    """The path of an alignment of a frame of the query with one of a subject, in the coordinates of both frames.

    ``query_start`` to ``subject_end`` are 0-based and half-open. ``counts`` are the five numbers that follow the CIGAR
    in :class:`swsearch.hits.hit.Alignment`, with the positives by the scores of the query's profile.
    """

    score: int
    query_start: int
    query_end: int
    subject_start: int
    subject_end: int
    cigar: str
    counts: tuple[int, int, int, int, int]


@dataclass(frozen=True, eq=False)
class LocalAligner:
    """Aligns queries with subjects of one alphabet.

    Attributes
    ----------
    alphabet : Alphabet
        The alphabet of queries and subjects; it defines which letters are equal, and the letters of the subject.
    matrix : SubstitutionMatrix, optional
        Determines which columns are positive; by default, the query's profile does, whose scores may be corrected.
    n_threads : int
        Number of threads, at least 1; each thread aligns one subject at a time.
    progress : callable, optional
        Called from the thread of the caller with the number of cells completed since the last call.
    """

    alphabet: Alphabet
    matrix: SubstitutionMatrix | None = None
    n_threads: int = 1
    progress: Progress | None = None

    def paths(
        self,
        query: Frame,
        subjects: Partition,
        *,
        most: int = 1,
        floor: int | Scores = 1,
        earlier: Sequence[Sequence[Path]] = (),
        scores: Scores | None = None,
        ends: Ends | None = None,
    ) -> list[list[Path]]:
        """The best local alignments of one query with each of several subjects, in the order of the subjects.

        The first alignment of a subject is its optimal one. Each further alignment is the best of those that share no
        aligned pair of residues with an earlier one (Waterman and Eggert, J. Mol. Biol. 197:723, 1987). A part of query
        or subject may occur in several alignments; the copies of a repeat therefore appear as successive alignments.

        Parameters
        ----------
        query : Frame
            Codes and profile of one strand: for the minus strand, of the reverse complement.
        subjects : Partition
            The subjects, in any order.
        most : int
            Largest number of alignments of a subject, at least 1.
        floor : int, or int32 array of shape (n_subjects,)
            Lowest score of an alignment, at least 1; one for all subjects, or one of each.
        earlier : sequence of sequence of Path, optional
            For each subject, paths that this method returned for the same query and subject. Those that follow them are
            returned.
        scores : int32 array, shape (n_subjects,), optional
            The engine's scores. The best alignment of each subject must have this score; a difference raises an error.
        ends : Ends, optional
            The ends of the alignments with these scores, if the engine reports them; requires ``most`` to be 1. They do
            not change the alignments, but the traceback computes only the columns that an alignment of this score and
            end can span.

        Returns
        -------
        list of list of Path
            For each subject, its alignments by descending score; empty if no score reaches ``floor``.

        Raises
        ------
        InputError
            The arrays do not fit together.
        EngineError
            The score of the best alignment differs from that in ``scores``, or its end from that in ``ends``.
        KeyboardInterrupt
            The program was interrupted; raised after all threads have ended.
        """
        profile, n_codes = query.profile, len(query.codes)
        if n_codes != profile.length:
            raise InputError(f"the query has {n_codes} residues, its profile {profile.length}; give them of one strand")
        known = None
        if ends is not None:
            if scores is None or most != 1:
                raise InputError("ends are of one best alignment a subject: give scores with them, and leave most at 1")
            known = np.column_stack([scores, ends.query_end, ends.subject_end]).astype(np.int64)
        found = _native.align_local(
            np.ascontiguousarray(query.codes),
            np.ascontiguousarray(profile.rows, dtype=np.int32),
            np.ascontiguousarray(profile.table),
            profile.gap.open,
            profile.gap.extend,
            self.alphabet.identity_table,
            subjects.residues,
            np.ascontiguousarray(subjects.starts, dtype=np.uint64),
            np.ascontiguousarray(subjects.lengths, dtype=np.uint32),
            self.n_threads,
            progress=self.progress,
            most=most,
            floors=np.broadcast_to(np.asarray(floor, dtype=np.int32), len(subjects)).copy(),
            ends=known,
            earlier=[[(one.query_start, one.subject_start, one.cigar) for one in each] for each in earlier],
        )
        paths = [[Path(*row[:6], row[6:]) for row in of_subject] for of_subject in found]
        if scores is not None:
            _check_ends(paths, scores, known)
        return paths

    def alignment(self, query: Frame, path: Path, subject_codes: Codes) -> Alignment:
        """The alignment of a path, in the coordinates of the forward query; those of a frame stay those of the frame.

        ``subject_codes`` are the aligned residues of the subject.
        """
        _, first, last, subject_start, subject_end, cigar, counts = path
        query_codes = query.codes[first:last]
        if query.strand == "minus" and not query.number:
            first, last = len(query.codes) - last, len(query.codes) - first
        letters = self.alphabet.decode(subject_codes)
        found = Alignment(first, last, subject_start, subject_end, cigar, *counts, letters)
        if self.matrix is None:
            return found
        return replace(found, positives=count_positives(query_codes, subject_codes, cigar, self.matrix))


def _check_ends(paths: Sequence[Sequence[Path]], scores: Scores, ends: NDArray[np.int64] | None) -> None:
    """Check that the best alignments have the scores of the engine and, if these are known, its ends."""
    for subject, (several, score) in enumerate(zip(paths, scores.tolist(), strict=True)):
        best = several[0].score if several else 0
        if best != score:
            raise EngineError(f"subject {subject}: the engine's score is {score}, its alignment's {best}")
        mine = [several[0].query_end, several[0].subject_end] if several else []
        if several and ends is not None and (given := ends[subject, 1:].tolist()) != mine:
            problem = f"the engine's end is {given}, its alignment's {mine} (query, subject)"
            raise EngineError(f"subject {subject}: {problem}")


def count_positives(query: Codes, subject: Codes, cigar: str, matrix: SubstitutionMatrix) -> int:
    """Number of alignment columns whose pair of residues has a score above 0 in ``matrix``.

    Parameters
    ----------
    query, subject : uint8 array
        Codes of the aligned parts, without gaps.
    cigar : str
    matrix : SubstitutionMatrix
    """
    positives = i = j = 0
    for length, operation in parse(cigar):
        if operation in "=X":
            pairs = matrix.scores[query[i : i + length] & CODE_MASK, subject[j : j + length] & CODE_MASK]
            positives += int(np.count_nonzero(pairs > 0))
        i += length if operation != "D" else 0
        j += length if operation != "I" else 0
    return positives


# --- coordinates on bases ---


def on_bases(
    alignment: Alignment, query: Codes, query_frame: int, n_query_bases: int, subject_frame: int, n_subject_bases: int
) -> Alignment:
    """An alignment of two frames, with coordinates in bases on each side that was translated.

    Parameters
    ----------
    alignment : Alignment
        The alignment of residues; its coordinates are residues of the frames.
    query : uint8 array
        Residue codes of the query, or of its frame.
    query_frame, subject_frame : int
        The translated frame; 0 if the sequence was not translated, so that its coordinates do not change.
    n_query_bases, n_subject_bases : int
        Lengths of the input sequences.
    """
    if not query_frame and not subject_frame:
        return alignment
    changes: dict[str, int | str] = {}
    if query_frame:
        start, end = alignment.query_start, alignment.query_end
        changes["query_letters"] = PROTEIN.decode(query[start:end])
        changes["query_start"], changes["query_end"] = base_range(start, end, query_frame, n_query_bases)
    if subject_frame:
        changes["subject_start"], changes["subject_end"] = base_range(
            alignment.subject_start, alignment.subject_end, subject_frame, n_subject_bases
        )
    return replace(alignment, **changes)  # type: ignore[arg-type]

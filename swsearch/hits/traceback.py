"""Alignments of the subjects that a search reports, computed by the native traceback.

The engines return only scores; the traceback then computes the coordinates and the CIGAR of each alignment, for one
query and typically a few hundred subjects. docs/design/traceback.md defines which one of several optimal alignments is
returned; the choice does not depend on threads, memory or instruction set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swsearch import _native
from swsearch.errors import EngineError, InputError
from swsearch.hits.cigar import parse
from swsearch.hits.hit import Alignment
from swsearch.hits.score_block import Ends
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN, Alphabet
from swsearch.sequences.genetic_code import base_range
from swsearch.typing import Codes, Scores

if TYPE_CHECKING:  # records know no query
    from swsearch.database.partition import Partition
    from swsearch.search.frames import Frame


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
    progress: Callable[[int], None] | None = None

    def align(
        self,
        query: Frame,
        subjects: Partition,
        *,
        most: int = 1,
        floor: int | Scores = 1,
        earlier: Sequence[Sequence[Alignment]] = (),
        scores: Scores | None = None,
        ends: Ends | None = None,
    ) -> list[list[tuple[int, Alignment]]]:
        """The best local alignments of one query with each of several subjects, in the order of the subjects.

        The first alignment of a subject is its optimal one. Each further alignment is the best of those that share no
        aligned pair of residues with an earlier one (Waterman and Eggert, J. Mol. Biol. 197:723, 1987). A part of query
        or subject may occur in several alignments; the copies of a repeat therefore appear as successive alignments.

        Parameters
        ----------
        query : Frame
            Codes and profile of one strand: for the minus strand, of the reverse complement, while the coordinates of
            alignments are those of the forward query. Coordinates of a translated frame are those of the frame itself.
        subjects : Partition
            The subjects, in any order.
        most : int
            Largest number of alignments of a subject, at least 1.
        floor : int, or int32 array of shape (n_subjects,)
            Lowest score of an alignment, at least 1; one for all subjects, or one of each.
        earlier : sequence of sequence of Alignment, optional
            For each subject, alignments that this method returned for the same query and subject. Those that follow
            them are returned.
        scores : int32 array, shape (n_subjects,), optional
            The engine's scores. The best alignment of each subject must have this score; a difference raises an error.
        ends : Ends, optional
            The ends of the alignments with these scores, if the engine reports them; requires ``most`` to be 1. They do
            not change the alignments, but the traceback computes only the columns that an alignment of this score and
            end can span.

        Returns
        -------
        list of list of (int, Alignment)
            For each subject, its alignments with their scores, by descending score; empty if no score reaches
            ``floor``.

        Raises
        ------
        InputError
            The arrays do not fit together.
        EngineError
            The score of the best alignment differs from that in ``scores``, or its end from that in ``ends``.
        KeyboardInterrupt
            The program was interrupted; raised after all threads have ended.
        """
        if query.strand not in ("plus", "minus"):
            raise InputError(f"strand {query.strand!r} is unknown; choose plus or minus")
        codes, profile, is_minus = query.codes, query.profile, query.strand == "minus" and not query.number
        n_codes, residues = len(codes), subjects.residues
        if n_codes != profile.length:
            raise InputError(f"the query has {n_codes} residues, its profile {profile.length}; give them of one strand")
        known = None
        if ends is not None:
            if scores is None or most != 1:
                raise InputError("ends are of one best alignment a subject: give scores with them, and leave most at 1")
            known = np.column_stack([scores, ends.query_end, ends.subject_end]).astype(np.int64)
        begins = [
            [(n_codes - one.query_end if is_minus else one.query_start, one.subject_start, one.cigar) for one in each]
            for each in earlier
        ]
        found = _native.align_local(
            np.ascontiguousarray(codes),
            np.ascontiguousarray(profile.rows, dtype=np.int32),
            np.ascontiguousarray(profile.table),
            profile.gap.open,
            profile.gap.extend,
            self.alphabet.identity_table,
            residues,
            np.ascontiguousarray(subjects.starts, dtype=np.uint64),
            np.ascontiguousarray(subjects.lengths, dtype=np.uint32),
            self.n_threads,
            progress=self.progress,
            most=most,
            floors=np.broadcast_to(np.asarray(floor, dtype=np.int32), len(subjects)).copy(),
            ends=known,
            earlier=begins,
        )
        alignments = []
        for subject, (start, of_subject) in enumerate(zip(subjects.starts.tolist(), found, strict=True)):
            best = of_subject[0][0] if of_subject else 0
            if scores is not None and best != scores[subject]:
                raise EngineError(f"subject {subject}: the engine's score is {scores[subject]}, its alignment's {best}")
            several = []
            for row in of_subject:
                score, first, last, subject_start, subject_end, cigar = row[:6]
                if known is not None and [last, subject_end] != (given := known[subject, 1:].tolist()):
                    mine = [last, subject_end]
                    raise EngineError(
                        f"subject {subject}: the engine's end is {given}, its alignment's {mine} (query, subject)"
                    )
                query_part = (n_codes - last, n_codes - first) if is_minus else (first, last)
                subject_part = residues[start + subject_start : start + subject_end]
                letters = self.alphabet.decode(subject_part)
                alignment = Alignment(*query_part, subject_start, subject_end, cigar, *row[6:], letters)
                if self.matrix is not None:
                    positives = count_positives(codes[first:last], subject_part, cigar, self.matrix)
                    alignment = replace(alignment, positives=positives)
                several.append((score, alignment))
            alignments.append(several)
        return alignments


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

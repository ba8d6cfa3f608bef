"""Alignments of the subjects that a search reports, from the native traceback.

The engines give scores alone; this finds for one query and a few hundred subjects where each alignment lies and its
CIGAR. Which of several optimal alignments is given is fixed by docs/design/traceback.md, so it never depends on
threads, memory or instruction set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from swsearch import _native
from swsearch.errors import EngineError, InputError
from swsearch.hits.cigar import parse
from swsearch.hits.hit import Alignment
from swsearch.query.profile import QueryProfile
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import CODE_MASK, Alphabet
from swsearch.typing import Codes, Lengths, Offsets, Scores

MEMORY_BYTES: Final = 64 << 20
"""Bytes that one thread takes for decisions, beyond what grows with the lengths; the alignment is the same for all."""


def align_hits(
    query: Codes,
    profile: QueryProfile,
    alphabet: Alphabet,
    *,
    residues: Codes,
    starts: Offsets,
    lengths: Lengths,
    n_threads: int = 1,
    strand: str = "plus",
    scores: Scores | None = None,
    matrix: SubstitutionMatrix | None = None,
    memory_bytes: int = MEMORY_BYTES,
    progress: Callable[[int], None] | None = None,
) -> list[Alignment]:
    """The optimal local alignment of one query with each of some subjects, in their order.

    Parameters
    ----------
    query : uint8 array, shape (query_length,)
        Codes along the strand that ``profile`` scores: of the reverse complement for the minus strand.
    profile : QueryProfile
    alphabet : Alphabet
        Of query and subjects; decides which letters are equal and how the subject is written.
    residues : uint8 array
        Residue codes that hold all subjects, as a partition maps them.
    starts : uint64 array, shape (n_subjects,)
        First byte of each subject in ``residues``.
    lengths : uint32 array, shape (n_subjects,)
        Residues of each subject.
    n_threads : int
        Threads, each on a subject of its own; at least 1.
    strand : str
        ``plus`` or ``minus``. For ``minus``, query coordinates are those of the query as given.
    scores : int32 array, shape (n_subjects,), optional
        The engine's scores; a difference is an error, never a silent choice.
    matrix : SubstitutionMatrix, optional
        Decides which columns are positive, where that should not be the profile, whose scores may be corrected.
    memory_bytes : int
        See :data:`MEMORY_BYTES`.
    progress : callable, optional
        Called from this thread with the cells done since the last call.

    Raises
    ------
    InputError
        A subject does not align with the query at all (its score is 0), or the arrays do not fit together.
    EngineError
        The alignment's score is not the one in ``scores``.
    KeyboardInterrupt
        After all threads have ended.
    """
    if strand not in ("plus", "minus"):
        raise InputError(f"strand {strand!r} is unknown; choose plus or minus")
    if len(query) != profile.length:
        raise InputError(f"the query has {len(query)} residues, its profile {profile.length}; give them of one strand")
    found = _native.align_local(
        np.ascontiguousarray(query),
        np.ascontiguousarray(profile.rows, dtype=np.int32),
        np.ascontiguousarray(profile.table),
        profile.gap.open,
        profile.gap.extend,
        alphabet.identity_table,
        residues,
        np.ascontiguousarray(starts, dtype=np.uint64),
        np.ascontiguousarray(lengths, dtype=np.uint32),
        n_threads,
        memory_bytes,
        progress,
    )
    alignments = []
    for place, row in enumerate(found):
        score, query_start, query_end, subject_start, subject_end, cigar = row[:6]
        if scores is not None and score != scores[place]:
            raise EngineError(f"subject {place}: the engine's score is {scores[place]}, its alignment's {score}")
        if score == 0:
            raise InputError(f"subject {place} does not align with the query: no pair of residues scores above 0")
        if strand == "minus":
            query_start, query_end = len(query) - query_end, len(query) - query_start
        begin = int(starts[place])
        identities, positives, columns, gap_openings, gap_residues = row[6:]
        if matrix is not None:
            aligned = query[row[1] : row[2]], residues[begin + subject_start : begin + subject_end]
            positives = count_positives(*aligned, cigar, matrix)
        letters = alphabet.decode(residues[begin + subject_start : begin + subject_end])
        alignments.append(
            Alignment(
                query_start,
                query_end,
                subject_start,
                subject_end,
                cigar,
                identities,
                positives,
                columns,
                gap_openings,
                gap_residues,
                letters,
            )
        )
    return alignments


def count_positives(query: Codes, subject: Codes, cigar: str, matrix: SubstitutionMatrix) -> int:
    """Columns of an alignment whose pair scores above 0 in ``matrix``.

    Parameters
    ----------
    query, subject : uint8 array
        Codes of the aligned parts.
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

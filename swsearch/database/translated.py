"""A DNA database read as protein: every subject in its six frames, laid out as partitions that engines take.

The search builds it once, after opening the database, and hands its partitions to the engine like any others; so every
engine searches translated subjects, and none knows of it. What an engine takes for a subject is a subject in one frame:
its number, in place of a ``subject_index``, is ``6 * subject_index + place of the frame in FRAMES``, and
:meth:`TranslatedSubjects.by_frame` takes the scores apart again. All frames of a segment are one partition, so that the
frames of a single long subject are work for several threads.

The residues, about two bytes a base, lie in a temporary file without a name (in ``TMPDIR``) that is mapped into memory:
the system keeps in memory what there is room for, and the file is gone with the process, however that ends. Translating
takes memory for one block of bases, whatever the length of a subject.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT, TAIL_PADDING
from swsearch.database.partition import Partition
from swsearch.database.reader import PackedDatabase, Segment
from swsearch.errors import DatabaseError
from swsearch.hits.score_block import ScoreBlock
from swsearch.sequences.alphabet import DNA, PAD_CODE, reverse_complement
from swsearch.sequences.genetic_code import CODON, FRAMES, GeneticCode
from swsearch.typing import Codes, Lengths, Offsets, SubjectIndex

BLOCK_BASES: Final = 1 << 22
"""Bases that are translated at a time."""
MAX_SUBJECTS: Final = (2**32 - 1) // len(FRAMES)
"""Subjects whose frames can be numbered in 32 bits."""

_OFFSETS: Final = np.array([abs(frame) - 1 for frame in FRAMES], dtype=np.uint32)


@dataclass(frozen=True, eq=False)
class _TranslatedSegment:
    """One segment in six frames.

    Attributes
    ----------
    segment : Segment
    partition : Partition
        Its subjects in all frames that have a codon, shortest first.
    positions : uint32 array, shape (n_subjects,)
        Row of each subject in ``starts`` and ``lengths``, by ``subject_index - segment.base``.
    starts, lengths : uint64 and uint32 arrays, shape (n_subjects, 6)
        Where each subject lies in each frame, in the partition's residues.
    """

    segment: Segment
    partition: Partition
    positions: SubjectIndex
    starts: Offsets
    lengths: Lengths


class TranslatedSubjects:
    """Six frames of all subjects of an open DNA database.

    Parameters
    ----------
    database : PackedDatabase
        Of DNA; must stay open.
    code : GeneticCode
    block_bases : int
        Bases translated at a time, at least 3; decides memory and how often progress is told.
    progress : callable, optional
        Called after each block with the bases translated since the last call; those of the database in all.

    Raises
    ------
    DatabaseError
        There is no room for the temporary file, there are more than 715,827,882 subjects, or a residue is no letter.
    """

    def __init__(
        self,
        database: PackedDatabase,
        code: GeneticCode,
        *,
        block_bases: int = BLOCK_BASES,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        if database.n_subjects > MAX_SUBJECTS:
            problem = (
                f"{database.path} has {database.n_subjects:,} subjects, of which {MAX_SUBJECTS:,} can be translated"
            )
            raise DatabaseError(f"{problem}; split it")
        wholes = [segment.partition() for segment in database.segments]
        layouts = [_layout(whole) for whole in wholes]
        residues = _temporary_array(sum(n_bytes for *_, n_bytes in layouts))
        self._segments: list[_TranslatedSegment] = []
        begin = 0
        for segment, whole, (starts, lengths, order, n_bytes) in zip(database.segments, wholes, layouts, strict=True):
            region = residues[begin : begin + n_bytes]
            begin += n_bytes
            region[:] = PAD_CODE
            _translate(segment, whole, region, starts, code, block_bases, progress)
            first_numbers = whole.subject_index * np.uint32(len(FRAMES))
            numbers = np.add.outer(first_numbers, np.arange(len(FRAMES), dtype=np.uint32)).ravel()
            partition = Partition(region, starts.ravel()[order], lengths.ravel()[order], numbers[order])
            positions = np.empty(segment.n_subjects, dtype=np.uint32)
            positions[whole.subject_index - np.uint32(segment.base)] = np.arange(len(whole), dtype=np.uint32)
            self._segments.append(_TranslatedSegment(segment, partition, positions, starts, lengths))
        residues.setflags(write=False)

    @property
    def n_residues(self) -> int:
        """Residues of all subjects in all frames."""
        return sum(segment.partition.n_residues for segment in self._segments)

    def partitions(self, max_residues: int | None = None) -> Iterator[Partition]:
        """The subjects in all frames, as :meth:`PackedDatabase.partitions` gives those of a database.

        Subjects without a whole codon in a frame are left out of it.
        """
        for segment in self._segments:
            if max_residues is not None:
                yield from segment.partition.split(max_residues)
            elif len(segment.partition):
                yield segment.partition

    @staticmethod
    def by_frame(block: ScoreBlock) -> list[ScoreBlock]:
        """Scores of a partition's rows, apart by frame in the order of ``FRAMES``, each with its ``subject_index``.

        How many were scored again is told with the first frame, for all.
        """
        subject_index, frame = np.divmod(block.subject_index, np.uint32(len(FRAMES)))
        blocks = []
        for number in range(len(FRAMES)):
            rows = np.flatnonzero(frame == number)
            blocks.append(ScoreBlock(subject_index[rows], block.score[rows], 0 if number else block.n_rescored))
        return blocks

    def stored_ranges(
        self, subject_index: SubjectIndex, frame: int
    ) -> Iterator[tuple[NDArray[np.intp], Codes, Offsets, Lengths]]:
        """As :meth:`PackedDatabase.stored_ranges`, in a frame."""
        number = FRAMES.index(frame)
        for translated in self._segments:
            places = np.flatnonzero(translated.segment.holds(subject_index))
            if places.size:
                rows = translated.positions[subject_index[places] - np.uint32(translated.segment.base)]
                starts, lengths = translated.starts[rows, number], translated.lengths[rows, number]
                yield places, translated.partition.residues, starts, lengths


def _layout(whole: Partition) -> tuple[Offsets, Lengths, NDArray[np.intp], int]:
    """Where a partition's subjects lie in all frames.

    Returns
    -------
    starts, lengths : uint64 and uint32 arrays, shape (n, 6)
    order : int array
        The rows of these, flat, that have a codon: by length, then subject, then frame.
    n_bytes : int
        Of all of them, padding included.
    """
    bases = whole.lengths[:, None]
    lengths = (np.maximum(bases, _OFFSETS) - _OFFSETS) // np.uint32(CODON)
    order = np.argsort(lengths, axis=None, kind="stable")
    room = -(-lengths.ravel()[order].astype(np.int64) // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT
    ends = np.cumsum(room)
    starts = np.empty(lengths.size, dtype=np.uint64)
    starts[order] = ends - room
    n_empty = int(np.count_nonzero(lengths == 0))
    n_bytes = (int(ends[-1]) if len(ends) else 0) + TAIL_PADDING
    return starts.reshape(lengths.shape), lengths, order[n_empty:], n_bytes


def _temporary_array(n_bytes: int) -> Codes:
    """Bytes of a file without a name, its room on the disk taken."""
    try:
        with tempfile.TemporaryFile(prefix="swsearch-translated-") as file:
            os.posix_fallocate(file.fileno(), 0, max(n_bytes, 1))
            return np.asarray(np.memmap(file, dtype=np.uint8, mode="r+"))[:n_bytes]
    except OSError as error:
        folder, wanted = tempfile.gettempdir(), f"{n_bytes:,} bytes of the translated database"
        advice = "set TMPDIR to a folder with more room"
        raise DatabaseError(f"{folder} cannot take {wanted}: {error.strerror or error}; {advice}") from error


def _translate(
    segment: Segment,
    whole: Partition,
    residues: Codes,
    to: Offsets,
    code: GeneticCode,
    block_bases: int,
    progress: Callable[[int], None] | None,
) -> None:
    """Write all frames of all subjects into ``residues``, each at its place in ``to``, shape (n, 6)."""
    if not len(whole):
        return
    starts, ends = whole.starts.astype(np.int64), whole.starts.astype(np.int64) + whole.lengths
    begun = int(starts[0])
    n_done, n_bases = 0, whole.n_residues
    for first in range(begun, int(ends[-1]), block_bases):
        # Codons that begin in this block; the last of them ends two bases after it.
        stop = min(first + block_bases, int(ends[-1]) - CODON + 1)
        window = whole.residues[first : stop + CODON - 1]
        segment.check_letters(window, DNA, padded=True)
        forward, backward = code.codons(window), code.codons(reverse_complement(window))[::-1]
        for place in range(int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(starts, stop))):
            begin, last = int(starts[place]), int(ends[place]) - CODON
            low, high = max(begin, first), min(last, stop - 1)
            if low > high:
                continue
            for frame, target in zip(FRAMES, to[place].tolist(), strict=True):
                offset = abs(frame) - 1
                # Codons of a frame begin at every third base from its first, to the left in the minus frames.
                if frame > 0:
                    skipped = max(0, -(-(low - begin - offset) // CODON))
                    codons = forward[begin + offset + CODON * skipped - first : high - first + 1 : CODON]
                else:
                    skipped = max(0, -(-(last - offset - high) // CODON))
                    rightmost = max(low - 1, last - offset - CODON * skipped)
                    codons = backward[low - first : rightmost - first + 1][::-1][::CODON]
                residues[target + skipped : target + skipped + len(codons)] = codons
        if progress is not None:
            # Blocks also hold padding and removed subjects; what is told adds up to the bases that are translated.
            reached = n_bases * (min(first + block_bases, int(ends[-1])) - begun) // (int(ends[-1]) - begun)
            progress(reached - n_done)
            n_done = reached

"""A DNA database translated to protein: every subject in six frames, in partitions for the engines.

The search translates the database once, after it is opened, and passes the partitions to the engine like any others;
the translation is invisible to engines. Each row of such a partition is one frame of a subject. Instead of the
``subject_index``, a row has the number ``6 * subject_index + index of the frame in FRAMES``, and
:meth:`TranslatedSubjects.by_frame` separates the scores by frame. All frames of a segment are in one partition, so that
several threads can share the frames of a single long subject.

The residues, about two bytes per base, are in an unnamed temporary file (in ``TMPDIR``) that is mapped into memory. The
operating system caches as much of it in memory as possible, and removes it when the process ends, for any reason. The
translation needs memory for one block of bases, independent of the lengths of the subjects.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import TAIL_PADDING, padded
from swsearch.database.partition import Partition
from swsearch.database.reader import PackedDatabase
from swsearch.database.segment import Segment
from swsearch.errors import DatabaseError
from swsearch.hits.score_block import ScoreBlock
from swsearch.sequences.alphabet import DNA, PAD_CODE, reverse_complement
from swsearch.sequences.genetic_code import CODON, FRAMES, GeneticCode
from swsearch.typing import Codes, Lengths, Offsets, Progress, SubjectIndex

BLOCK_BASES: Final = 1 << 22
"""Bases that are translated at a time."""
MAX_SUBJECTS: Final = (2**32 - 1) // len(FRAMES)
"""Subjects whose frames can be numbered in 32 bits."""

_OFFSETS: Final = np.array([abs(frame) - 1 for frame in FRAMES], dtype=np.uint32)


@dataclass(frozen=True, eq=False)
class _TranslatedSegment:
    """One segment in six frames; its partition has the frames with at least one codon, by ascending length.

    ``starts`` and ``lengths``, shape (n_subjects, 6), are those of each subject in each frame, in the residues of the
    partition. ``positions`` has the row of each subject in them, by the FASTA index in the segment.
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
        A DNA database; it must stay open.
    code : GeneticCode
    block_bases : int
        Number of bases translated at a time, at least 3. It affects memory use and how often progress is reported.
    progress : callable, optional
        Called after each block with the number of bases translated since the last call. The sum of these numbers is
        the number of bases of the database.

    Raises
    ------
    DatabaseError
        The disk space does not suffice for the temporary file, there are more than 715,827,882 subjects, or a residue
        is not a base.
    """

    def __init__(
        self,
        database: PackedDatabase,
        code: GeneticCode,
        *,
        block_bases: int = BLOCK_BASES,
        progress: Progress | None = None,
    ) -> None:
        if database.n_subjects > MAX_SUBJECTS:
            problem = (
                f"{database.name} has {database.n_subjects:,} subjects, of which {MAX_SUBJECTS:,} can be translated"
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
            positions = np.empty(segment.entry.n_subjects, dtype=np.uint32)
            positions[segment.locate(whole.subject_index)[1]] = np.arange(len(whole), dtype=np.uint32)
            self._segments.append(_TranslatedSegment(segment, partition, positions, starts, lengths))
        residues.setflags(write=False)

    def partitions(self, max_residues: int | None = None) -> Iterator[Partition]:
        """The subjects in all frames, divided as by :meth:`PackedDatabase.partitions`.

        Frames without a complete codon are omitted.
        """
        for segment in self._segments:
            yield from segment.partition.split(max_residues)

    @staticmethod
    def by_frame(block: ScoreBlock) -> list[ScoreBlock]:
        """The scores of a partition's rows, one block per frame of ``FRAMES``, with the subjects' ``subject_index``.

        The first block contains the number of rescored rows of all frames.
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
        """The result of :meth:`PackedDatabase.stored_ranges`, for the subjects in one frame."""
        number = FRAMES.index(frame)
        for translated in self._segments:
            inside, fasta_indices = translated.segment.locate(subject_index)
            if inside.size:
                rows = translated.positions[fasta_indices]
                starts, lengths = translated.starts[rows, number], translated.lengths[rows, number]
                yield inside, translated.partition.residues, starts, lengths


def translated_lengths(n_bases: Lengths) -> Lengths:
    """Numbers of residues of subjects of ``n_bases``, shape (n,), in all frames; uint32, shape (n, 6).

    >>> translated_lengths(np.array([7, 2], dtype=np.uint32)).tolist()
    [[2, 2, 1, 2, 2, 1], [0, 0, 0, 0, 0, 0]]
    """
    lengths: Lengths = (np.maximum(n_bases[:, None], _OFFSETS) - _OFFSETS) // np.uint32(CODON)
    return lengths


def _layout(whole: Partition) -> tuple[Offsets, Lengths, NDArray[np.intp], int]:
    """The layout of a partition's subjects in all frames.

    Returns
    -------
    starts, lengths : uint64 and uint32 arrays, shape (n, 6)
    order : int array
        Flat indices of those frames that have a codon: by length, then subject, then frame.
    n_bytes : int
        Size of all frames in bytes, including padding.
    """
    lengths = translated_lengths(whole.lengths)
    order = np.argsort(lengths, axis=None, kind="stable")
    room = padded(lengths.ravel()[order].astype(np.int64))
    ends = np.cumsum(room)
    starts = np.empty(lengths.size, dtype=np.uint64)
    starts[order] = ends - room
    n_empty = int(np.count_nonzero(lengths == 0))
    n_bytes = (int(ends[-1]) if len(ends) else 0) + TAIL_PADDING
    return starts.reshape(lengths.shape), lengths, order[n_empty:], n_bytes


def _temporary_array(n_bytes: int) -> Codes:
    """The mapped bytes of an unnamed file whose disk space is allocated."""
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
    progress: Progress | None,
) -> None:
    """Write all frames of all subjects into ``residues``, each at its start in ``to``, shape (n, 6)."""
    if not len(whole):
        return
    starts, ends = whole.starts.astype(np.int64), whole.starts.astype(np.int64) + whole.lengths
    begun = int(starts[0])
    n_done, n_bases = 0, whole.n_residues
    for first in range(begun, int(ends[-1]), block_bases):
        # The block contains the codons that begin in it; the last of them ends two bases after it.
        stop = min(first + block_bases, int(ends[-1]) - CODON + 1)
        window = whole.residues[first : stop + CODON - 1]
        segment.check_letters(window, DNA, padded=True)
        forward, backward = code.codons(window), code.codons(reverse_complement(window))[::-1]
        for row in range(int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(starts, stop))):
            begin, last = int(starts[row]), int(ends[row]) - CODON
            low, high = max(begin, first), min(last, stop - 1)
            if low > high:
                continue
            for frame, target in zip(FRAMES, to[row].tolist(), strict=True):
                offset = abs(frame) - 1
                # The codons of a frame begin at every third base from its first base; minus frames run right to left.
                if frame > 0:
                    skipped = max(0, -(-(low - begin - offset) // CODON))
                    codons = forward[begin + offset + CODON * skipped - first : high - first + 1 : CODON]
                else:
                    skipped = max(0, -(-(last - offset - high) // CODON))
                    rightmost = max(low - 1, last - offset - CODON * skipped)
                    codons = backward[low - first : rightmost - first + 1][::-1][::CODON]
                residues[target + skipped : target + skipped + len(codons)] = codons
        if progress is not None:
            # Blocks also contain padding and removed subjects; the reported numbers sum to the translated bases.
            reached = n_bases * (min(first + block_bases, int(ends[-1])) - begun) // (int(ends[-1]) - begun)
            progress(reached - n_done)
            n_done = reached

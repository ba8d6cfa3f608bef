"""A DNA database read as protein: every subject in its six frames, laid out as partitions that engines take.

The search builds it once, after opening the database, and hands its partitions to the engine like any others; so every
engine searches translated subjects, and none knows of it. A subject has the same ``subject_index`` in each frame.

The residues, about two bytes a base, lie in a temporary file without a name (in ``TMPDIR``) that is mapped into memory:
the system keeps in memory what there is room for, and the file is gone with the process, however that ends. Translating
takes memory for one block of bases, whatever the length of a subject.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT, TAIL_PADDING
from swsearch.database.partition import Partition
from swsearch.database.reader import PackedDatabase, Segment
from swsearch.errors import DatabaseError
from swsearch.sequences.alphabet import PAD_CODE, reverse_complement
from swsearch.sequences.genetic_code import CODON, FRAMES, GeneticCode
from swsearch.typing import Codes, Lengths, Offsets, SubjectIndex

BLOCK_BASES: Final = 1 << 22
"""Bases that are translated at a time."""


@dataclass(frozen=True, eq=False)
class _Frame:
    """One frame of one segment: its subjects that have a codon in it, in stored order."""

    partition: Partition
    n_skipped: int
    """Subjects before them in stored order that are too short."""


@dataclass(frozen=True, eq=False)
class _TranslatedSegment:
    """A segment's frames, and where a subject stands in its stored order; uint32, by ``subject_index - base``."""

    segment: Segment
    positions: SubjectIndex
    frames: Mapping[int, _Frame]


class TranslatedSubjects:
    """Six frames of all subjects of an open DNA database.

    Parameters
    ----------
    database : PackedDatabase
        Of DNA; must stay open.
    code : GeneticCode
    block_bases : int
        Bases translated at a time, at least 3; decides memory alone.

    Raises
    ------
    DatabaseError
        There is no room for the temporary file.
    """

    def __init__(self, database: PackedDatabase, code: GeneticCode, *, block_bases: int = BLOCK_BASES) -> None:
        wholes = [(segment, segment.partition()) for segment in database.segments]
        layouts = [[_layout(whole, frame) for frame in FRAMES] for _, whole in wholes]
        room = sum(n_bytes for layout in layouts for _, _, n_bytes in layout)
        residues = _temporary_array(room)
        self._segments: list[_TranslatedSegment] = []
        begin = 0
        for (segment, whole), layout in zip(wholes, layouts, strict=True):
            frames = {}
            for frame, (starts, lengths, n_bytes) in zip(FRAMES, layout, strict=True):
                region = residues[begin : begin + n_bytes]
                region[:] = PAD_CODE
                n_skipped = int(np.searchsorted(lengths, 1))
                index = whole.subject_index[n_skipped:]
                partition = Partition(region, starts[n_skipped:], lengths[n_skipped:], index)
                frames[frame] = _Frame(partition, n_skipped)
                begin += n_bytes
            starts_of = {frame: starts for frame, (starts, _, _) in zip(FRAMES, layout, strict=True)}
            targets = {frame: (frames[frame].partition.residues, starts_of[frame]) for frame in FRAMES}
            _translate(whole, targets, code, block_bases)
            positions = np.empty(segment.n_subjects, dtype=np.uint32)
            positions[whole.subject_index - np.uint32(segment.base)] = np.arange(len(whole), dtype=np.uint32)
            self._segments.append(_TranslatedSegment(segment, positions, frames))
        residues.setflags(write=False)

    @property
    def n_residues(self) -> int:
        """Residues of all subjects in all frames."""
        return sum(frame.partition.n_residues for segment in self._segments for frame in segment.frames.values())

    def partitions(self, frame: int, max_residues: int | None = None) -> Iterator[Partition]:
        """The subjects in a frame, as :meth:`PackedDatabase.partitions` gives those of a database.

        Subjects without a whole codon in the frame are left out.
        """
        for segment in self._segments:
            whole = segment.frames[frame].partition
            if max_residues is not None:
                yield from whole.split(max_residues)
            elif len(whole):
                yield whole

    def stored_ranges(
        self, subject_index: SubjectIndex, frame: int
    ) -> Iterator[tuple[NDArray[np.intp], Codes, Offsets, Lengths]]:
        """As :meth:`PackedDatabase.stored_ranges`, in a frame; each of the subjects must have a codon there."""
        for translated in self._segments:
            places = np.flatnonzero(translated.segment.holds(subject_index))
            if places.size:
                found = translated.frames[frame]
                stored = translated.positions[subject_index[places] - np.uint32(translated.segment.base)]
                stored = stored - np.uint32(found.n_skipped)
                partition = found.partition
                yield places, partition.residues, partition.starts[stored], partition.lengths[stored]


def _layout(whole: Partition, frame: int) -> tuple[Offsets, Lengths, int]:
    """Starts and lengths of a partition's subjects in a frame, and the bytes that they take."""
    bases = np.maximum(whole.lengths, np.uint32(abs(frame) - 1)) - np.uint32(abs(frame) - 1)
    lengths = bases // np.uint32(CODON)
    room = (lengths.astype(np.uint64) + np.uint64(SUBJECT_ALIGNMENT - 1)) // np.uint64(SUBJECT_ALIGNMENT)
    ends = np.cumsum(room * np.uint64(SUBJECT_ALIGNMENT), dtype=np.uint64)
    starts = ends - room * np.uint64(SUBJECT_ALIGNMENT)
    return starts, lengths, (int(ends[-1]) if len(ends) else 0) + TAIL_PADDING


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
    whole: Partition, targets: Mapping[int, tuple[Codes, Offsets]], code: GeneticCode, block_bases: int
) -> None:
    """Write the frames of all subjects; ``targets`` has each frame's residues and each subject's first byte there."""
    if not len(whole):
        return
    starts, lengths = whole.starts.astype(np.int64), whole.lengths.astype(np.int64)
    ends = starts + lengths
    for first in range(int(starts[0]), int(ends[-1]), block_bases):
        # Codons that begin in this block; the last of them ends two bases after it.
        stop = min(first + block_bases, int(ends[-1]) - CODON + 1)
        window = whole.residues[first : stop + CODON - 1]
        along = {1: code.codons(window), -1: code.codons(reverse_complement(window))[::-1]}
        inside = range(int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(starts, stop)))
        for place in inside:
            begin, last = int(starts[place]), int(ends[place]) - CODON
            low, high = max(begin, first), min(last, stop - 1)
            if low > high:
                continue
            for frame, (residues, frame_starts) in targets.items():
                offset = abs(frame) - 1
                # Codons of a frame begin at every third base from its first, to the left in the minus frames.
                if frame > 0:
                    skipped = max(0, -(-(low - begin - offset) // CODON))
                    codons = along[1][begin + offset + CODON * skipped - first : high - first + 1 : CODON]
                else:
                    skipped = max(0, -(-(last - offset - high) // CODON))
                    codons = along[-1][low - first : max(low, last - offset - CODON * skipped + 1) - first][::-1][
                        ::CODON
                    ]
                to = int(frame_starts[place]) + skipped
                residues[to : to + len(codons)] = codons

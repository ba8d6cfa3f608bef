"""Division of the subjects of a segment into slices, which are equal in numbers of subjects and nearly in residues.

:mod:`swsearch.database.format` specifies slices. The writer sorts all subjects by length as for one segment
(:mod:`swsearch.database.external_sort`); :func:`write_slices` then deals them, in FASTA order for the headers and the
numbers, and in stored order for the residues. The whole segment's files are only hashed, for the digest of the
database, which does not depend on the slices.

Subjects are dealt like cards, in stored order: the one at position p of the whole segment is at position p // K of
slice p % K, so no table is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.array_files import BY_LENGTH, ArrayFiles, StoredHeaders
from swsearch.database.external_sort import SortedRuns, Spool, StoredBlock, padded
from swsearch.database.format import (
    ARRAY_DTYPES,
    INDICES,
    TAIL_PADDING,
    FileEntry,
    SegmentEntry,
)
from swsearch.database.segment import Items
from swsearch.sequences.alphabet import PAD_CODE
from swsearch.threads import Threads
from swsearch.typing import Lengths, Offsets, SubjectIndex

_BY_FASTA: Final = ("indices", "positions", "headers", "header_ends")


def write_slices(
    folders: Sequence[Path],
    runs: SortedRuns,
    whole_headers: StoredHeaders,
    spool: Path,
    block_bytes: int,
    threads: Threads,
) -> tuple[dict[str, FileEntry], list[SegmentEntry]]:
    """Write the arrays of all slices.

    Parameters
    ----------
    folders : sequence of paths
        The new, empty folders of the slices, at most as many as there are subjects.
    runs : SortedRuns
        All subjects.
    whole_headers : StoredHeaders
    spool : path
        A temporary file.
    block_bytes : int
        Approximate number of bytes of residues that are dealt at a time.
    threads : Threads

    Returns
    -------
    whole : dict of str to FileEntry
        The files that the whole segment would have, without those of the headers.
    slices : list of SegmentEntry
    """
    with Spool(spool) as own_indices:
        whole, by_fasta = _deal_in_fasta_order(folders, runs, whole_headers, own_indices, threads)
        stored, by_length, statistics = _deal_in_stored_order(folders, runs, own_indices, block_bytes, threads)
    entries = []
    for number, folder in enumerate(folders):
        files = {**by_fasta[number], **by_length[number]}
        entries.append(
            SegmentEntry(
                name=folder.name,
                n_subjects=statistics[number].n_subjects,
                n_residues=statistics[number].n_residues,
                shortest=statistics[number].shortest,
                longest=statistics[number].longest,
                files={name: files[name] for name in ARRAY_DTYPES},
                indices=files[INDICES],
            )
        )
    return {**whole, **stored}, entries


def _deal_in_fasta_order(
    folders: Sequence[Path],
    runs: SortedRuns,
    whole_headers: StoredHeaders,
    own_indices: Spool,
    threads: Threads,
) -> tuple[dict[str, FileEntry], list[dict[str, FileEntry]]]:
    """Write the arrays in FASTA order, and the FASTA index of each subject in its slice to a spool, in run order."""
    n_slices = len(folders)
    n_dealt = np.zeros(n_slices, dtype=np.int64)
    header_bytes = np.zeros(n_slices, dtype=np.uint64)
    with ExitStack() as stack:
        whole = stack.enter_context(ArrayFiles(None, ["positions"], threads))
        files = [stack.enter_context(ArrayFiles(folder, _BY_FASTA, threads)) for folder in folders]
        first = 0
        for positions in runs.positions():
            whole.write("positions", positions)
            order, parts = _by_slice(positions, n_slices)
            headers = whole_headers.read(first, first + len(positions)).permuted(order)
            own = np.empty(len(positions), dtype=np.uint32)
            for number, part in enumerate(parts):
                chosen = order[part]
                own[chosen] = np.arange(n_dealt[number], n_dealt[number] + len(chosen), dtype=np.int64)
                n_dealt[number] += len(chosen)
                files[number].write("indices", (chosen + first).astype(np.uint32))
                files[number].write("positions", positions[chosen] // n_slices)
                dealt = headers[part]
                files[number].write("headers", dealt.data)
                files[number].write("header_ends", dealt.ends + header_bytes[number])
                header_bytes[number] += np.uint64(len(dealt.data))
            own_indices.write_values(first, runs.in_run_order(own, first))
            first += len(positions)
        return whole.finish(), [file.finish() for file in files]


@dataclass
class _Lengths:
    """Statistics of the lengths of a slice's subjects, which are added in stored order."""

    n_subjects: int = 0
    n_residues: int = 0
    shortest: int = 0
    longest: int = 0

    def add(self, lengths: Lengths) -> None:
        if len(lengths):
            self.n_subjects += len(lengths)
            self.n_residues += int(lengths.sum(dtype=np.uint64))
            self.shortest = self.shortest or int(lengths[0])
            self.longest = int(lengths[-1])


def _deal_in_stored_order(
    folders: Sequence[Path], runs: SortedRuns, own_indices: Spool, block_bytes: int, threads: Threads
) -> tuple[dict[str, FileEntry], list[dict[str, FileEntry]], list[_Lengths]]:
    n_slices = len(folders)
    ends = np.zeros(n_slices, dtype=np.uint64)
    statistics = [_Lengths() for _ in folders]
    with ExitStack() as stack:
        whole = stack.enter_context(ArrayFiles(None, BY_LENGTH, threads))
        files = [stack.enter_context(ArrayFiles(folder, BY_LENGTH, threads)) for folder in folders]
        for block in _dealt_blocks(runs, own_indices, n_slices, block_bytes):
            for name in BY_LENGTH:
                whole.write(name, getattr(block.stored, name))
            for number, part in enumerate(block.parts):
                lengths = block.lengths[part]
                rooms = padded(lengths)
                files[number].write("residues", block.residues[part].data)
                files[number].write("starts", ends[number] + np.cumsum(rooms, dtype=np.uint64) - rooms)
                files[number].write("lengths", lengths)
                files[number].write("order", block.order[part])
                ends[number] += rooms.sum(dtype=np.uint64)
                statistics[number].add(lengths)
        padding = np.full(TAIL_PADDING, PAD_CODE, dtype=np.uint8)
        for one in (whole, *files):
            one.write("residues", padding)
        return whole.finish(), [file.finish() for file in files], statistics


@dataclass(frozen=True, eq=False)
class _DealtBlock:
    """A block of stored order, and its subjects slice by slice; ``order`` has FASTA indices in the slices."""

    stored: StoredBlock
    parts: list[slice]
    residues: Items
    lengths: Lengths
    order: SubjectIndex


def _dealt_blocks(runs: SortedRuns, own_indices: Spool, n_slices: int, block_bytes: int) -> Iterator[_DealtBlock]:
    def dealt(stored: StoredBlock, own: SubjectIndex) -> _DealtBlock:
        n = len(stored.lengths)
        order, parts = _by_slice(np.arange(stored.first, stored.first + n), n_slices)
        ends: Offsets = np.cumsum(padded(stored.lengths), dtype=np.uint64)
        residues = Items(stored.residues, ends).permuted(order)
        return _DealtBlock(stored, parts, residues, stored.lengths[order], own[order])

    return runs.blocks_with(own_indices, block_bytes, dealt)


def _by_slice(positions: NDArray[Any], n_slices: int) -> tuple[NDArray[np.int64], list[slice]]:
    """The subjects at these stored positions slice by slice, otherwise in order, and the part of each slice.

    >>> _by_slice(np.array([4, 2, 6, 5]), 3)
    (array([2, 0, 1, 3]), [slice(0, 1, None), slice(1, 2, None), slice(2, 4, None)])
    """
    slices = positions % n_slices
    order = np.argsort(slices, kind="stable").astype(np.int64)
    stops = np.cumsum(np.bincount(slices, minlength=n_slices)).tolist()
    return order, [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]

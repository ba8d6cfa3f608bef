"""Sizes at which the CUDA engine goes over to another way of working, in one place for who wants others."""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.engine.cuda import end_positions, tiled_subjects, verified_windows


@dataclass(frozen=True)
class Thresholds:
    """The defaults are measured (``docs/design/cuda-engine.md``); no score depends on any of them.

    Attributes
    ----------
    window_overlap, window_stride : int
        Columns that windows of long subjects share, and at least advance by.
    windowed_residues : int
        Subjects of no more residues are never scored in windows.
    windowed_rows : int
        Queries of more rows are scored by diamonds, rather than in windows, against long subjects.
    diamond_residues : int
        Subjects of no more residues are never scored by diamonds.
    end_group_bytes, smallest_end_group_bytes : int
        Residues of the subjects whose ends are looked for together, and how few they may be where memory is short.
    """

    window_overlap: int = verified_windows.OVERLAP
    window_stride: int = verified_windows.MIN_STRIDE
    windowed_residues: int = verified_windows.MIN_LENGTH
    windowed_rows: int = tiled_subjects.MAX_WINDOW_ROWS
    diamond_residues: int = tiled_subjects.MIN_LENGTH
    end_group_bytes: int = end_positions.GROUP_BYTES
    smallest_end_group_bytes: int = end_positions.SMALLEST_GROUP

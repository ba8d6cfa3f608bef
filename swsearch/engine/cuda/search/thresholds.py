"""The sizes at which the CUDA engine changes its method, collected in one class so that tests can choose others."""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.engine.cuda.search import end_positions, selection, tiled_subjects, verified_windows


@dataclass(frozen=True)
class Thresholds:
    """Sizes at which the engine changes its method.

    The defaults are measured (``docs/design/cuda-engine.md``). No score depends on them.

    Attributes
    ----------
    window_overlap, window_stride : int
        Columns by which windows of long subjects overlap, and the smallest distance between their starts.
    windowed_residues : int
        Subjects of at most so many residues are never scored in windows.
    windowed_rows : int
        Queries of more rows are scored against long subjects by diamonds, not in windows.
    diamond_residues : int
        Subjects of at most so many residues are never scored by diamonds.
    bound_subjects : int
        If fewer subjects are scored by the inter-task kernel, no bound replaces their scores.
    downloaded : int
        Number of selected subjects that are downloaded with their number.
    end_group_bytes, smallest_end_group_bytes : int
        Residues of a group of subjects whose ends are searched together, and of the smallest group if memory is short.
    """

    window_overlap: int = verified_windows.OVERLAP
    window_stride: int = verified_windows.MIN_STRIDE
    windowed_residues: int = verified_windows.MIN_LENGTH
    windowed_rows: int = tiled_subjects.MAX_WINDOW_ROWS
    diamond_residues: int = tiled_subjects.MIN_LENGTH
    bound_subjects: int = 1 << 15
    downloaded: int = selection.DOWNLOADED
    end_group_bytes: int = end_positions.GROUP_BYTES
    smallest_end_group_bytes: int = end_positions.SMALLEST_GROUP

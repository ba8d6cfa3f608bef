"""The options of an engine's plans, and the sizes at which it changes its method. No score depends on them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Thresholds:
    """Sizes at which the engine changes its method.

    The defaults are measured (``docs/design/cuda-engine.md``). No score depends on them.

    Attributes
    ----------
    window_overlap, window_stride : int
        Columns by which windows of long subjects overlap at first, and the smallest distance between their starts:
        below it, most of the work is overlap. ``benchmarks/benchmark_window_checkpoints.py`` measures how many columns
        are needed.
    windowed_residues : int
        Subjects of at most so many residues are never scored in windows.
    windowed_rows : int
        Rows of the longest query that is scored against long subjects in windows; others take diamonds.
    diamond_residues : int
        Subjects of at most so many residues are never scored by diamonds.
    located_cells : int
        The columns around the best alignments of subjects with fewer cells are not noted, since the whole subject is
        aligned soon enough.
    cut_residues : int
        The subjects of a partition with fewer residues are never cut into stretches.
    copy_picoseconds : float
        Time per residue that stretches must save before subjects are cut: that of copying and uploading them.
    bound_subjects : int
        If fewer subjects are scored by the inter-task kernel, no bound replaces their scores.
    downloaded : int
        Number of selected subjects that are downloaded with their number.
    end_group_bytes, smallest_end_group_bytes : int
        Residues of a group of subjects whose ends are searched together, unless a single window has more, and of the
        smallest group if memory is short: if fewer bytes are free, the device finds no ends.
    """

    window_overlap: int = 256
    window_stride: int = 384
    windowed_residues: int = 2048
    windowed_rows: int = 16_384
    diamond_residues: int = 4096
    located_cells: int = 1 << 26
    cut_residues: int = 1 << 24
    copy_picoseconds: float = 2_000.0
    bound_subjects: int = 1 << 15
    downloaded: int = 1 << 14
    end_group_bytes: int = 32 << 20
    smallest_end_group_bytes: int = 1 << 20


@dataclass(frozen=True)
class PlanOptions:
    """The options of an engine that change its plans, but no score.

    Attributes
    ----------
    texture : bool
        Read profiles as textures rather than from global memory.
    pairs : bool
        Let two queries of similar length share words.
    deferred : bool
        Use the deferred maximum where the caller gives floors.
    thresholds : Thresholds
    band_rows : int or None
        Rows of a band of the bound that replaces the deferred maximum; 0 for no bound; None for the engine's choice,
        which depends on the query's length and on a sample of the subjects.
    generic : bool
        Plan with generic kernels only.
    diamonds : bool
        Whether long subjects of queries of many thousand rows may be scored by diamonds.
    """

    texture: bool = True
    pairs: bool = True
    deferred: bool = True
    thresholds: Thresholds = field(default_factory=Thresholds)
    band_rows: int | None = None
    generic: bool = False
    diamonds: bool = True

"""The options of an engine's plans, and the sizes at which it changes its method. No score depends on them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Thresholds:
    """Sizes at which the engine changes its method, measured (``docs/design/cuda-engine.md``). No score depends on
    them.

    Attributes
    ----------
    window_overlap, window_stride : int
        Columns by which windows overlap at first (``benchmarks/benchmark_window_checkpoints.py``), and the smallest
        distance between their starts: below it, most of the work is overlap.
    windowed_residues, diamond_residues : int
        Only longer subjects are scored in windows, and by diamonds.
    windowed_rows : int
        Rows of the longest query that is scored in windows; others take diamonds.
    located_cells : int
        The columns around the best alignments of subjects with fewer cells are not noted: they are aligned as a whole.
    cut_residues : int
        The subjects of a partition with fewer residues are never cut into stretches.
    copy_picoseconds : float
        Time per residue that stretches must save before subjects are cut: that of copying and uploading them.
    bound_subjects : int
        Fewest subjects of the inter-task kernel for which a bound replaces scores.
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
        Rows of a band of the bound; 0 for no bound; None for the engine's choice, by the query's length and a sample.
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

"""Types of the native module; simd/ documents each function beside its code."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from swsearch.typing import Codes, Lengths, Offsets, ScoreTable

# simd/pack
def gather(
    fd: int,
    from_: NDArray[np.uint64],
    lengths: NDArray[np.uint32],
    to: NDArray[np.uint64],
    out: NDArray[np.uint8],
    fill: int,
) -> int: ...
def rename_without_replacing(from_: str, to: str) -> int: ...
def exchange(one: str, other: str) -> int: ...

# simd/align
def align_local(
    query_codes: Codes,
    rows: NDArray[np.int32],
    table: ScoreTable,
    gap_open: int,
    gap_extend: int,
    identity: Codes,
    residues: Codes,
    starts: Offsets,
    lengths: Lengths,
    n_threads: int = 1,
    memory_bytes: int = 67108864,
    progress: Callable[[int], None] | None = None,
    isa: str = "auto",
) -> list[tuple[int, int, int, int, int, str, int, int, int, int, int]]: ...
def score_ends(
    rows: NDArray[np.int32],
    table: ScoreTable,
    gap_open: int,
    gap_extend: int,
    residues: Codes,
    starts: Offsets,
    lengths: Lengths,
    n_threads: int = 1,
    progress: Callable[[int], None] | None = None,
    isa: str = "auto",
) -> list[tuple[int, int, int]]: ...
def align_isas() -> list[str]: ...

# simd/pair
def align_pair(
    query: NDArray[np.uint16],
    subject: NDArray[np.uint16],
    table: ScoreTable | None,
    match: int,
    mismatch: int,
    gap_open: int,
    gap_extend: int,
    local: bool,
    query_free: bool,
    subject_free: bool,
    path: bool,
    n_threads: int = 1,
    memory_bytes: int = 268435456,
    progress: Callable[[int], None] | None = None,
    isa: str = "auto",
) -> tuple[int, int, int, int, int, list[tuple[str, int]] | None]: ...
def pair_isas() -> list[str]: ...

"""Types of the native module; simd/ documents each function beside its code."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from swsearch.typing import Codes, Lengths, Offsets, ScoreTable

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

"""Types of the native module; simd/ documents each function beside its code."""

import numpy as np
from numpy.typing import NDArray

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

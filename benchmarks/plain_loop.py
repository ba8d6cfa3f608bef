"""The baseline of the CPU engine's benchmark: a plain loop over the cells, compiled for this machine on request.

``plain_loop.cpp`` describes what it computes and what it omits. The rate of a search relative to that of the loop,
measured in the same run, is comparable between processors.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from swsearch.bench.workloads import Measurement, Workload, profiles_of, timed
from swsearch.typing import Codes, Scores

HERE: Final = Path(__file__).parent
AVX512: Final = ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq")
BUILDS: Final = {
    "avx512vbmi": ("avx512", (*AVX512, "-mavx512vbmi")),
    "avx512bw": ("avx512", AVX512),
    "avx2": ("avx2", ("-mavx2",)),
    "sse41": ("sse41", ("-msse4.1",)),
    "neon": ("neon", ()),
}
"""Vectors (``simd/common/vectors``) and compiler options of each instruction set."""
SATURATED: Final = 255


def options_of(instruction_set: str) -> list[str]:
    """The options of g++ for the loop with one instruction set."""
    vectors, flags = BUILDS[instruction_set]
    include, define = f"-I{HERE.parent / 'simd'}", f"-DSWSEARCH_VECTORS={vectors}"
    return ["-std=c++17", "-O3", "-w", "-shared", "-fPIC", include, define, *flags]


def build(instruction_set: str, library: Path) -> None:
    """Compile the loop for one instruction set into a shared library."""
    subprocess.run(["g++", *options_of(instruction_set), HERE / "plain_loop.cpp", "-o", library], check=True)


class PlainLoop:
    """The loop, built with g++ for one instruction set.

    Parameters
    ----------
    instruction_set : str
        One of :data:`BUILDS`.
    library : Path, optional
        What :func:`build` has written for it; by default, it is built now.

    Raises
    ------
    subprocess.CalledProcessError
        The loop cannot be compiled; the compiler has printed the reason.
    """

    def __init__(self, instruction_set: str, library: Path | None = None) -> None:
        self.instruction_set = instruction_set
        with tempfile.TemporaryDirectory() as folder:
            if library is None:
                library = Path(folder, "plain_loop.so")
                build(instruction_set, library)
            self._call = ctypes.CDLL(str(library)).plain_loop

    def scores(self, workload: Workload, query: Codes) -> Scores:
        """Scores of all subjects in stored order, only for the first strand; those above 255 are 255."""
        profile, partition = profiles_of(workload, query)[0], workload.partition
        scores = np.empty(len(partition), dtype=np.int32)
        gap = workload.scheme.gap
        self._call(
            *(_address(profile.rows), profile.length, _address(profile.table), len(profile.table)),
            *(gap.first, gap.extend),
            *(_address(partition.residues), _address(partition.starts), _address(partition.lengths), len(partition)),
            _address(scores),
        )
        return scores

    def measure(self, workload: Workload, query: Codes) -> Measurement:
        """Score one query with one thread."""
        wall, cpu = timed(lambda: self.scores(workload, query))
        cells = len(query) * workload.partition.n_residues
        return Measurement(workload.name, "plain loop", self.instruction_set, 1, len(query), cells, False, wall, cpu)


def _address(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)

"""Every entry compiles for every architecture that is served, within the registers that its tile was chosen for.

The figures are the assembler's report. The inter-task kernels use the whole register file, so a few values of the
outer loop may be spilled; more than that would be in the inner loop.
"""

from __future__ import annotations

import itertools
import re

import pytest

from swsearch.engine.cuda.compiler import Compiler, find_compiler
from swsearch.engine.cuda.kernels import (
    COLLECT_KERNEL,
    Arithmetic,
    KernelSpec,
    Pairing,
    list_kernel,
    range_kernel,
    sweep_kernel,
)
from swsearch.engine.cuda.tuning import choose_list_tile, tiles
from swsearch.scoring.gap import GapPenalty

pytestmark = pytest.mark.slow

ARCHITECTURES = [75, 80, 86, 90, 120]
GAP = GapPenalty(11, 1)
SPILLED_OUTSIDE = 64
"""Bytes."""
SPILLED_STATE = 128
"""Bytes of a lane's state before a diamond, written once in 32 steps."""


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    found = find_compiler()
    if found is None:
        pytest.skip("neither nvcc nor NVRTC is here; install the CUDA toolkit or nvidia-cuda-nvrtc and cuda-bindings")
    return found


def report(compiler: Compiler, spec: KernelSpec, architecture: int) -> tuple[int, int]:
    """Registers a thread, and bytes spilled."""
    code, log = compiler.compile(spec, architecture)
    assert code[:4] == b"\x7fELF"
    registers = re.search(r"Used (\d+) registers", log)
    spilled = re.search(r"(\d+) bytes spill stores", log)
    assert registers is not None, log
    assert spilled is not None, log
    return int(registers.group(1)), int(spilled.group(1))


def range_spec(architecture: int, pairing: Pairing, place: int, *, deferred: bool) -> KernelSpec:
    shape = tiles(architecture, pairing, 28)[place]
    return range_kernel(
        Arithmetic.FAST, shape.tile, GAP, deferred=deferred, boundary=True, texture=True,
        threads=shape.threads, blocks=shape.blocks,
    )  # fmt: skip


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_inter_task_kernels_fit_their_registers(compiler: Compiler, architecture: int) -> None:
    limit = 65_536 // (256 * 2)
    for pairing, place in itertools.product([Pairing.ROW_BLOCKS, Pairing.TWO_QUERIES], [0, -1]):
        spec = range_spec(architecture, pairing, place, deferred=place == -1)
        registers, spilled = report(compiler, spec, architecture)
        assert registers <= limit
        assert spilled <= (0 if place == 0 else SPILLED_OUTSIDE)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_list_and_collect_kernels_spill_nothing(compiler: Compiler, architecture: int) -> None:
    for arithmetic in Arithmetic:
        pairing = Pairing.SINGLE if arithmetic is Arithmetic.WIDE else Pairing.ROW_BLOCKS
        shape = choose_list_tile(architecture, pairing, 17, 10_000)
        spec = list_kernel(arithmetic, shape.tile, GAP, texture=False, threads=shape.threads, blocks=shape.blocks)
        registers, spilled = report(compiler, spec, architecture)
        assert spilled == 0
        assert registers <= 168
    assert report(compiler, COLLECT_KERNEL, architecture)[1] == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_diamond_kernels_keep_a_lane_in_registers(compiler: Compiler, architecture: int) -> None:
    """Eight words a lane, the largest tile; local problems hold a lane's state twice, and may spill one of them."""
    options = [(True, "sweep_pairs"), (False, "sweep_pairs")]
    if architecture == 90:
        options.append((True, "locate_best"))
    for local, entry in options:
        spec = sweep_kernel(narrow=True, words=8, local=local, affine=True, compared=False, entry=entry)
        registers, spilled = report(compiler, spec, architecture)
        assert registers <= 128
        assert spilled <= (SPILLED_STATE if local and architecture < 90 else 0)

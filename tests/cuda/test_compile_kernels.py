"""Every entry compiles for every architecture that is served, within the registers that its tile was chosen for.

The figures are the assembler's report. The inter-task kernels use the whole register file, so a few values of the
outer loop may be spilled; more than that would be in the inner loop.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from swsearch.engine.cuda.classic import CLASSIC_KERNELS, plan_classic
from swsearch.engine.cuda.compiler import Compiler, find_compiler
from swsearch.engine.cuda.kernels import (
    COLLECT_KERNEL,
    COMPARE_KERNEL,
    COUNT_KERNEL,
    Arithmetic,
    Edges,
    KernelSpec,
    Pairing,
    list_kernel,
    range_kernel,
    sweep_kernel,
)
from swsearch.engine.cuda.short_pairs import pair_kernel
from swsearch.engine.cuda.tuning import choose_list_tile, tiles
from swsearch.engine.cuda.wavefront import WAVEFRONT_KERNEL
from swsearch.engine.pair_arrays import AlignmentProblem
from swsearch.query.profile import sequence_profile
from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN

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


def range_spec(architecture: int, pairing: Pairing, place: int, edges: Edges, *, deferred: bool) -> KernelSpec:
    shape = tiles(architecture, pairing, 28)[place]
    return range_kernel(
        Arithmetic.FAST, shape.tile, GAP, deferred=deferred, edges=edges, texture=True,
        threads=shape.threads, blocks=shape.blocks,
    )  # fmt: skip


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_inter_task_kernels_fit_their_registers(compiler: Compiler, architecture: int) -> None:
    limit = 65_536 // (256 * 2)
    for pairing, place in itertools.product([Pairing.ROW_BLOCKS, Pairing.TWO_QUERIES], [0, -1]):
        edges = Edges.OWN if pairing is Pairing.TWO_QUERIES or place == 0 else Edges.READS_PAIR
        spec = range_spec(architecture, pairing, place, edges, deferred=place == -1)
        registers, spilled = report(compiler, spec, architecture)
        assert registers <= limit
        assert spilled <= (0 if place == 0 else SPILLED_OUTSIDE)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_list_and_collect_kernels_spill_nothing(compiler: Compiler, architecture: int) -> None:
    for arithmetic, entry in itertools.product(Arithmetic, ["score_list", "score_windows", "list_ends"]):
        pairing = Pairing.SINGLE if arithmetic is Arithmetic.WIDE else Pairing.ROW_BLOCKS
        tiles_of = "score_windows" if entry == "score_windows" else "score_list"
        tile = choose_list_tile(architecture, pairing, 17, 10_000, tiles_of)
        spec = list_kernel(arithmetic, tile, GAP, strips=40, texture=False, warps=12, entry=entry)
        registers, spilled = report(compiler, spec, architecture)
        assert spilled == 0
        assert registers <= (128 if entry == "score_windows" else 168)
    largest = choose_list_tile(architecture, Pairing.ROW_BLOCKS, 28, 2_000, "score_windows")
    for strips in (1, 2):
        spec = list_kernel(
            Arithmetic.FAST, largest, GAP, strips=strips, texture=True, warps=16, entry="score_windows"
        )  # fmt: skip
        registers, spilled = report(compiler, spec, architecture)
        assert spilled == 0
        assert registers <= 128
    for spec in (COLLECT_KERNEL, COUNT_KERNEL, COMPARE_KERNEL):
        assert report(compiler, spec, architecture)[1] == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_classic_kernels_spill_nothing(compiler: Compiler, architecture: int) -> None:
    """Registers for two, four and three blocks of 256 threads a multiprocessor."""
    profile = sequence_profile(np.arange(600, dtype=np.uint8) % 20, default_scheme(PROTEIN))
    limits = {"simt": 128, "striped": 64, "partitioned": 80}
    for kernel in CLASSIC_KERNELS:
        plan = plan_classic(kernel, profile, wide=kernel == "striped")
        registers, spilled = report(compiler, plan.spec, architecture)
        assert spilled == 0
        assert registers <= limits[kernel]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pair_kernels_spill_nothing(compiler: Compiler, architecture: int) -> None:
    """16 rows a lane, affine gaps, a table and decisions: what takes most registers."""
    scores = AlignmentProblem(True, True, True, 11, 1, table=np.zeros((32, 32), np.int8))
    registers, spilled = report(compiler, pair_kernel(16, scores, path=True), architecture)
    assert spilled == 0
    assert registers <= 65_536 // (64 * 6)
    assert report(compiler, WAVEFRONT_KERNEL, architecture)[1] == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_diamond_kernels_keep_a_lane_in_registers(compiler: Compiler, architecture: int) -> None:
    """Eight words a lane, the largest tile; local sweeps hold a lane's state twice, and may spill one of them."""
    options = [(True, "sweep_pairs"), (False, "sweep_pairs"), (True, "trace_pairs"), (False, "trace_pairs")]
    if architecture == 90:
        options.append((True, "locate_best"))
    for local, entry in options:
        spec = sweep_kernel(narrow=True, words=8, local=local, affine=True, compared=False, entry=entry)
        registers, spilled = report(compiler, spec, architecture)
        assert registers <= 128
        holds_two_states = local and entry != "trace_pairs"
        assert spilled <= (SPILLED_STATE if holds_two_states and architecture < 90 else 0)

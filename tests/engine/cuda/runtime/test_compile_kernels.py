"""Every entry compiles for every supported architecture within the registers that its tile allows.

The figures come from the assembler's report. The inter-task kernels use the full register file, so a few values of the
outer loop may be spilled; more spills would be in the inner loop.

All kernels of an architecture are compiled in one call, each in its own namespace: in separate calls, three quarters of
the time would be spent on starting the compiler's programs and reading its headers. The report is cached
(``tests/compiled.py``).
"""

import itertools
import json
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pytest

from scripts.build_kernels import Nvcc, find_nvcc
from swsearch.engine.cuda.history.cudasw2 import CLASSIC_KERNELS, plan_classic
from swsearch.engine.cuda.history.wavefront import WAVEFRONT_KERNEL
from swsearch.engine.cuda.runtime.compiler import compile_options
from swsearch.engine.cuda.runtime.kernels import (
    COMPILED_GAPS,
    Arithmetic,
    BoundaryMode,
    IntraTaskEntry,
    KernelSpec,
    Pairing,
    intra_task_kernel,
    short_pairs_kernel,
    sweep_kernel,
)
from swsearch.engine.cuda.search.tiles import (
    LISTED_BLOCKS,
    LISTED_THREADS,
    MOST_LISTED_WORDS,
    available_bands,
    choose_list_tile,
    listed_shape,
    package_kernels,
    shape_kernel,
    tiles,
)
from swsearch.folders import resource_folder
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN
from tests.compiled import compiled, digest_of
from tests.tiers import mostly_thorough

pytestmark = pytest.mark.peer("nvcc")

ARCHITECTURES = [75, 80, 86, 90, 100, 120]
GAP = COMPILED_GAPS[0]
OFTEN_TESTED = 90
"""The architecture whose kernels are compiled with every ``make test``."""
SPILLED_OUTSIDE = 64
"""Limit of the bytes that are spilled outside the inner loop."""
SPILLED_PARAMETERS = 96
"""The same if gap costs are parameters."""
SPILLED_STATE = 128
"""Bytes of a lane's state before a diamond, written once in 32 steps."""


class Report(NamedTuple):
    """Registers per thread, and spilled bytes."""

    registers: int
    spilled: int


@cache
def compiler() -> Nvcc:
    path = find_nvcc()
    assert path is not None
    return Nvcc(path)


def range_spec(architecture: int, pairing: Pairing, place: int) -> KernelSpec:
    edges = BoundaryMode.OWN if pairing is Pairing.TWO_QUERIES or place == 0 else BoundaryMode.READS_PAIR
    return shape_kernel(tiles(architecture, pairing)[place], GAP, edges)


def inter_task_kernels(architecture: int) -> list[KernelSpec]:
    """Return the kernels of the first and last tile of each pairing."""
    pairings = (Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES)
    return [range_spec(architecture, pairing, index) for pairing in pairings for index in (0, -1)]


def bound_kernels(architecture: int) -> list[KernelSpec]:
    """Return the bounds of the largest tile of each pairing and height of bands, with boundaries.

    Those of row blocks read the boundary of a pair.
    """
    return [
        shape_kernel(shape, GAP, edges, band=band)
        for band in available_bands(architecture)
        for pairing, edges in (
            (Pairing.TWO_BLOCKS, BoundaryMode.READS_PAIR), (Pairing.TWO_QUERIES, BoundaryMode.OWN),
        )
        for shape in [max(tiles(architecture, pairing, band), key=lambda shape: shape.tile.words)]
    ]  # fmt: skip


def list_kernels(architecture: int) -> list[KernelSpec]:
    specs = []
    for arithmetic, entry in itertools.product(Arithmetic, get_args(IntraTaskEntry)):
        tile = choose_list_tile(architecture, arithmetic, 10_000, tall=False)
        specs.append(intra_task_kernel(arithmetic, tile, GAP, edges=BoundaryMode.OWN, entry=entry))
    return specs


def tall_kernels(architecture: int) -> list[KernelSpec]:
    """Return kernels of the largest tile for windows, for a query of one strip and of two."""
    largest = choose_list_tile(architecture, Arithmetic.FAST, 2_000, tall=True)
    return [
        intra_task_kernel(Arithmetic.FAST, largest, GAP, edges=edges) for edges in (BoundaryMode.NONE, BoundaryMode.OWN)
    ]


def parameter_kernels(architecture: int) -> list[KernelSpec]:
    """Return kernels whose gap costs are parameters, of the largest tiles."""
    pairings = (Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES)
    return [
        shape_kernel(
            max(tiles(architecture, pairing, band), key=lambda shape: shape.tile.words), None, edges, band=band
        )
        for band in (0, *available_bands(architecture))
        for pairing in pairings
        for edges in (BoundaryMode.NONE, BoundaryMode.OWN)
    ]


def listed_kernels(architecture: int) -> list[KernelSpec]:
    """Return the kernels of the largest tile for the subjects that pass a bound."""
    shape = listed_shape(MOST_LISTED_WORDS)
    return [shape_kernel(shape, GAP, edges, listed=True) for edges in (BoundaryMode.NONE, BoundaryMode.OWN)]


def small_kernels(architecture: int) -> list[KernelSpec]:
    """Return those that have no constants."""
    return [kernel for kernel in package_kernels(architecture) if not kernel.constants]


def classic_kernels(architecture: int) -> list[KernelSpec]:
    profile = sequence_profile(np.arange(600, dtype=np.uint8) % 20, default_scheme(PROTEIN))
    return [plan_classic(kernel, profile, wide=kernel == "striped").spec for kernel in CLASSIC_KERNELS]


def pair_kernels(architecture: int) -> list[KernelSpec]:
    """Return kernels with 16 rows per lane, affine gaps, a table and decisions (most registers), and the wavefront."""
    return [short_pairs_kernel(rows=16, affine=True, local=True, table=True, path=True), WAVEFRONT_KERNEL]


def diamond_options(architecture: int) -> list[tuple[bool, str]]:
    """Return whether the problem is local, and the entry."""
    options = [(True, "sweep_pairs"), (False, "sweep_pairs"), (True, "trace_pairs"), (False, "trace_pairs")]
    return [*options, (True, "locate_best")] if architecture == 90 else options


def diamond_kernels(architecture: int) -> list[KernelSpec]:
    """Return kernels with eight words per lane, the largest tile."""
    return [
        sweep_kernel(narrow=True, words=8, local=local, affine=True, compared=False, entry=entry)
        for local, entry in diamond_options(architecture)
    ]


KERNELS: tuple[Callable[[int], list[KernelSpec]], ...] = (
    inter_task_kernels, bound_kernels, list_kernels, tall_kernels, small_kernels, classic_kernels, pair_kernels,
    diamond_kernels, listed_kernels, parameter_kernels,
)  # fmt: skip


def joined_source(specs: list[KernelSpec]) -> str:
    """Join the entries into one source; the n-th has its constants in the namespace ``kernel_n_alone``.

    What precedes the entries comes first, once for each file and outside any namespace. C linkage cannot be used,
    because several functions would have the same name.
    """
    texts = [(resource_folder("cuda") / spec.source).read_text() for spec in specs]
    divided = [re.split(r"^(?=SWS_KERNEL\()", text, maxsplit=1, flags=re.MULTILINE) for text in texts]
    lines = list(dict.fromkeys(before for before, _ in divided))
    lines += [
        "#undef SWS_KERNEL",
        "#define SWS_KERNEL(threads, blocks) __global__ void __launch_bounds__(threads, blocks)",
    ]
    for number, (spec, (_, entry)) in enumerate(zip(specs, divided, strict=True)):
        lines += [f"#define SWS_{name} {value}" for name, value in spec.constants]
        lines += [f"namespace kernel_{number}_alone {{", entry, "}"]
        lines += [f"#undef SWS_{name}" for name, _ in spec.constants]
    return "\n".join(lines) + "\n"


def read_report(log: str) -> Report:
    registers = re.search(r"Used (\d+) registers", log)
    spilled = re.search(r"(\d+) bytes spill stores", log)
    assert registers is not None, log
    assert spilled is not None, log
    return Report(int(registers.group(1)), int(spilled.group(1)))


def read_reports(log: str, n_kernels: int) -> list[Report]:
    """Return the reports in the order of the kernels' numbers."""
    parts = re.split(r"Compiling entry function '\w*?kernel_(\d+)_alone", log)[1:]
    found = {int(number): read_report(part) for number, part in zip(parts[::2], parts[1::2], strict=True)}
    assert sorted(found) == list(range(n_kernels)), log
    return [found[number] for number in range(n_kernels)]


@cache
def all_reports(architecture: int) -> dict[KernelSpec, Report]:
    """Return the assembler's report on every kernel."""
    # The number of threads per block does not affect a kernel's code, so two lists may contain the same kernel.
    specs = list(dict.fromkeys(spec for kernels in KERNELS for spec in kernels(architecture)))
    source = joined_source(specs)

    def write(path: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="swsearch-kernels-") as folder:
            (Path(folder) / "all.cu").write_text(source)
            # An absolute folder, because the file is not in the folder of the sources.
            code, log = compiler().compile(KernelSpec(folder, "all", (), 0), architecture)
        assert code[:4] == b"\x7fELF"
        path.write_text(json.dumps(read_reports(log, len(specs))))

    options = compile_options(KernelSpec("", "all", (), 0), architecture, Path("."))
    parts = [digest_of(resource_folder("cuda")), source, *options, compiler().name, compiler().version]
    found = json.loads(compiled(f"registers-sm{architecture}.json", parts, write).read_text())
    return {spec: Report(*report) for spec, report in zip(specs, found, strict=True)}


def reports(kernels: Callable[[int], list[KernelSpec]], architecture: int) -> list[Report]:
    """Return the assembler's reports on some kernels, in their order."""
    found = all_reports(architecture)
    return [found[spec] for spec in kernels(architecture)]


@pytest.mark.parametrize("architecture", mostly_thorough(ARCHITECTURES, OFTEN_TESTED))
def test_inter_task_kernels_fit_their_registers(architecture: int) -> None:
    limit = 65_536 // (256 * 2)
    for (registers, spilled), index in zip(reports(inter_task_kernels, architecture), [0, -1, 0, -1], strict=True):
        assert registers <= limit
        assert spilled <= (0 if index == 0 else SPILLED_OUTSIDE)


@pytest.mark.parametrize("architecture", mostly_thorough(ARCHITECTURES, OFTEN_TESTED))
def test_bounds_spill_nothing(architecture: int) -> None:
    """Where 16-bit maxima are emulated, a few values of the outer loop may be spilled."""
    for registers, spilled in reports(bound_kernels, architecture):
        assert registers <= 65_536 // (256 * 2)
        assert spilled <= (SPILLED_OUTSIDE if architecture == 75 else 0)


@pytest.mark.parametrize("architecture", mostly_thorough(ARCHITECTURES, OFTEN_TESTED))
def test_gap_costs_as_parameters_spill_little(architecture: int) -> None:
    """They take two registers, and nothing else has room for them in the largest tiles."""
    for registers, spilled in reports(parameter_kernels, architecture):
        assert registers <= 65_536 // (256 * 2)
        assert spilled <= SPILLED_PARAMETERS


def report_alone(spec: KernelSpec, architecture: int) -> Report:
    """Return the assembler's report on a kernel, compiled as the engine compiles it."""

    def write(path: Path) -> None:
        code, log = compiler().compile(spec, architecture)
        assert code[:4] == b"\x7fELF"
        path.write_text(json.dumps(read_report(log)))

    options = compile_options(spec, architecture, Path("."))
    parts = [digest_of(resource_folder("cuda")), repr(spec), *options, compiler().name, compiler().version]
    return Report(*json.loads(compiled(f"registers-{spec.entry}.json", parts, write).read_text()))


@pytest.mark.parametrize("architecture", mostly_thorough(ARCHITECTURES, OFTEN_TESTED))
def test_list_and_collect_kernels_spill_nothing(architecture: int) -> None:
    for registers, spilled in [*reports(list_kernels, architecture), *reports(tall_kernels, architecture)]:
        assert spilled == 0
        assert registers <= 128
    for registers, spilled in reports(listed_kernels, architecture):
        assert spilled == 0
        assert registers <= 65_536 // (LISTED_THREADS * LISTED_BLOCKS)
    for _, spilled in reports(small_kernels, architecture):
        assert spilled == 0


@pytest.mark.parametrize("architecture", mostly_thorough(ARCHITECTURES, OFTEN_TESTED))
def test_classic_kernels_spill_nothing(architecture: int) -> None:
    """The registers allow two, four and three blocks of 256 threads per multiprocessor."""
    limits = {"simt": 128, "striped": 64, "partitioned": 80}
    for kernel, (registers, spilled) in zip(CLASSIC_KERNELS, reports(classic_kernels, architecture), strict=True):
        assert spilled == 0
        assert registers <= limits[kernel]


@pytest.mark.parametrize("architecture", mostly_thorough(ARCHITECTURES, OFTEN_TESTED))
def test_pair_kernels_spill_nothing(architecture: int) -> None:
    (registers, spilled), (_, spilled_of_wavefront) = reports(pair_kernels, architecture)
    assert spilled == 0
    assert registers <= 65_536 // (64 * 6)
    assert spilled_of_wavefront == 0


@pytest.mark.parametrize("architecture", mostly_thorough(ARCHITECTURES, OFTEN_TESTED))
def test_diamond_kernels_keep_a_lane_in_registers(architecture: int) -> None:
    """Local sweeps hold a lane's state twice, and may spill one copy."""
    for (local, entry), (registers, spilled) in zip(
        diamond_options(architecture), reports(diamond_kernels, architecture), strict=True
    ):
        assert registers <= 128
        holds_two_states = local and entry != "trace_pairs"
        assert spilled <= (SPILLED_STATE if holds_two_states and architecture < 90 else 0)


@pytest.mark.thorough
@pytest.mark.parametrize("kernels", [small_kernels, diamond_kernels])
def test_a_kernel_alone_is_as_among_the_others(kernels: Callable[[int], list[KernelSpec]]) -> None:
    """Source: the compiler's report on one kernel, compiled as the engine compiles it."""
    spec = kernels(90)[-1]
    assert report_alone(spec, 90) == all_reports(90)[spec]

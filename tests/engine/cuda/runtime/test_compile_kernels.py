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
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pytest

from scripts.build_kernels import Nvcc, find_nvcc
from swsearch.engine.cuda.history.cudasw2 import plan_classic
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
    TunedTile,
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
REGISTERS = 65_536
"""Of a multiprocessor."""
MOST_REGISTERS = 255
"""Of a thread, on every architecture."""
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


def largest(architecture: int, pairing: Pairing, band: int = 0) -> TunedTile:
    return max(tiles(architecture, pairing, band), key=lambda shape: shape.tile.words)


def of_searches(architecture: int) -> Iterator[tuple[KernelSpec, Report]]:
    """Yield inter-task kernels and bounds, two blocks of 256 threads at a time, with the most that each may take."""
    limit = REGISTERS // (256 * 2)
    one, two = Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES
    for pairing, below in ((one, BoundaryMode.READS_PAIR), (two, BoundaryMode.OWN)):
        smallest, tallest = (tiles(architecture, pairing)[place] for place in (0, -1))
        yield shape_kernel(smallest, GAP, BoundaryMode.OWN), Report(limit, 0)
        yield shape_kernel(tallest, GAP, below), Report(limit, SPILLED_OUTSIDE)
        for band in available_bands(architecture):
            # Where 16-bit maxima are emulated, a few values of the outer loop may be spilled.
            spilled = SPILLED_OUTSIDE if architecture == 75 else 0
            yield shape_kernel(largest(architecture, pairing, band), GAP, below, band=band), Report(limit, spilled)
    for band, pairing in itertools.product((0, *available_bands(architecture)), (one, two)):
        for edges in (BoundaryMode.NONE, BoundaryMode.OWN):  # gap costs as parameters take two registers
            shape = largest(architecture, pairing, band)
            yield shape_kernel(shape, None, edges, band=band), Report(limit, SPILLED_PARAMETERS)


def of_lists(architecture: int) -> Iterator[tuple[KernelSpec, Report]]:
    """Yield the kernels of lists: of every type, the largest ones, those behind a bound; and all without constants."""
    for arithmetic, entry in itertools.product(Arithmetic, get_args(IntraTaskEntry)):
        tile = choose_list_tile(architecture, arithmetic, 10_000, tall=False)
        yield intra_task_kernel(arithmetic, tile, GAP, edges=BoundaryMode.OWN, entry=entry), Report(128, 0)
    tall = choose_list_tile(architecture, Arithmetic.FAST, 2_000, tall=True)
    passing = listed_shape(MOST_LISTED_WORDS)
    for edges in (BoundaryMode.NONE, BoundaryMode.OWN):
        yield intra_task_kernel(Arithmetic.FAST, tall, GAP, edges=edges), Report(128, 0)
        limit = REGISTERS // (LISTED_THREADS * LISTED_BLOCKS)
        yield shape_kernel(passing, GAP, edges, listed=True), Report(limit, 0)
    for kernel in package_kernels(architecture):
        if not kernel.constants:
            yield kernel, Report(MOST_REGISTERS, 0)


def of_history(architecture: int) -> Iterator[tuple[KernelSpec, Report]]:
    """Yield those of CUDASW++, two, four and three blocks of 256 threads at a time, and the wavefront."""
    profile = sequence_profile(np.arange(600, dtype=np.uint8) % 20, default_scheme(PROTEIN))
    for kernel, limit in (("simt", 128), ("striped", 64), ("partitioned", 80)):
        yield plan_classic(kernel, profile, wide=kernel == "striped").spec, Report(limit, 0)
    yield WAVEFRONT_KERNEL, Report(MOST_REGISTERS, 0)


def of_pairs(architecture: int) -> Iterator[tuple[KernelSpec, Report]]:
    """Yield the kernels of pairs with the most registers: 16 rows or eight words per lane, affine gaps, a table, paths.

    Local sweeps hold a lane's state twice, and may spill one copy.
    """
    short = short_pairs_kernel(rows=16, affine=True, local=True, table=True, path=True)
    yield short, Report(REGISTERS // (64 * 6), 0)
    entries = [(True, "sweep_pairs"), (False, "sweep_pairs"), (True, "trace_pairs"), (False, "trace_pairs")]
    entries += [(True, "locate_best")] if architecture == 90 else []
    for local, entry in entries:
        holds_two_states = local and entry == "sweep_pairs"
        spec = sweep_kernel(narrow=True, words=8, local=local, affine=True, compared=False, entry=entry)
        yield spec, Report(128, SPILLED_STATE if holds_two_states and architecture < 90 else 0)


def allowed(architecture: int) -> list[tuple[KernelSpec, Report]]:
    """Return the kernels that are compiled, with the most registers and spilled bytes that each may take."""
    parts = (of_searches, of_lists, of_history, of_pairs)
    return [each for part in parts for each in part(architecture)]


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
    specs = list(dict.fromkeys(spec for spec, _ in allowed(architecture)))
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


@pytest.mark.parametrize("architecture", mostly_thorough(ARCHITECTURES, OFTEN_TESTED))
def test_kernels_fit_their_registers(architecture: int) -> None:
    found = all_reports(architecture)
    for spec, most in allowed(architecture):
        report = found[spec]
        assert report.registers <= most.registers, spec
        assert report.spilled <= most.spilled, spec


@pytest.mark.thorough
@pytest.mark.parametrize("entry", ["forward_totals", "locate_best"])
def test_a_kernel_alone_is_as_among_the_others(entry: str) -> None:
    """Source: the compiler's report on one kernel, compiled as the engine compiles it."""
    spec = next(spec for spec, _ in allowed(90) if spec.entry == entry)

    def write(path: Path) -> None:
        code, log = compiler().compile(spec, 90)
        assert code[:4] == b"\x7fELF"
        path.write_text(json.dumps(read_report(log)))

    options = compile_options(spec, 90, Path("."))
    parts = [digest_of(resource_folder("cuda")), repr(spec), *options, compiler().name, compiler().version]
    alone = json.loads(compiled(f"registers-{spec.entry}.json", parts, write).read_text())
    assert Report(*alone) == all_reports(90)[spec]

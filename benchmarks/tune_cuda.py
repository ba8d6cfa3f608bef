"""Measures the speed of the inter-task CUDA kernel on this GPU for different tiles.

    python benchmarks/tune_cuda.py [--pairing kTwoBlocks] [--groups 8] [--words 8,16,28] [--launches 256x2]
    python benchmarks/tune_cuda.py --bands 5,6,8 --words 40,48 --groups 4,8
    python benchmarks/tune_cuda.py --write cuda/tuning/hopper.json [--sections bound]

A tile is the shape of a strip of query rows: lanes per subject, words per lane, and the contents of a word
(``cuda/search/tile.cuh``). Subjects are synthetic proteins. The query has exactly the rows of the strips, so
that no time is spent on padding.

Without ``--write``, every combination of the options is measured, and one line of JSON per kernel is printed: GCUPS,
picoseconds per strip and subject residue, registers per thread, and spilled bytes.

With ``--write FILE``, the tiles in the sections ``inter_task`` and ``bound`` of FILE are measured, and FILE is replaced
by a copy with the new times. Each tile is measured as a single strip (``alone``) and as one of several strips that
exchange a boundary (``edges``). ``swsearch/engine/cuda/search/tiles.py`` reads these files.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_cuda import synthetic
from provenance import compiler_of

from swsearch.engine.cuda.runtime.compiled_kernels import KernelCache
from swsearch.engine.cuda.runtime.compiler import Compiler
from swsearch.engine.cuda.runtime.device import Stream, Timing, timed
from swsearch.engine.cuda.runtime.kernels import (
    COMPILED_GAPS,
    Arithmetic,
    BoundaryMode,
    KernelSpec,
    Pairing,
    Tile,
    inter_task_kernel,
)
from swsearch.engine.cuda.runtime.parameters import INTER_TASK, packed
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.slots import pack_strips, profile_strips
from swsearch.engine.cuda.search.subjects import SubjectStore
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN

EDGE_STRIPS = 4
"""Number of strips measured together for the times with boundaries: the first reads none, the last writes none."""


class Reporting:
    """A compiler that records the assembler's report."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self.name, self.version = compiler.name, compiler.version
        self.reports: dict[KernelSpec, str] = {}

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        code, self.reports[spec] = self._compiler.compile(spec, architecture)
        return code, self.reports[spec]


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


@dataclass(frozen=True)
class Case:
    """A kernel, and the number of its strips that are measured together."""

    tile: Tile
    spec: KernelSpec
    strips: int


class Tuner:
    """Runs kernels on subjects with the lengths and the composition of proteins."""

    def __init__(self, n_subjects: int, repeat: int) -> None:
        self.device = PyCudaDevice()
        self._repeat = repeat
        self._compiler = Reporting(compiler_of(self.device))
        self._partition = synthetic(n_subjects, [], 1, n_long=0)
        self._subjects = next(SubjectStore(self.device, 1 << 34).pieces(self._partition))
        self._scores = self.device.allocate(n_subjects * 4)
        self._counters = self.device.allocate(64)
        self._boundaries = [self.device.allocate(self._subjects.residue_bytes * 8) for _ in range(2)]

    def compile(self, cases: Iterable[Case]) -> None:
        """Fill the kernel cache."""
        cache = KernelCache(self.device.facts.architecture, [], find_compiler=lambda: self._compiler)
        for case in cases:
            cache.take(case.spec)

    def measure(self, case: Case) -> dict[str, Any]:
        """The constants of the kernel and its speed; registers only if it was compiled in this run."""
        device, subjects, tile = self.device, self._subjects, case.tile
        rng = np.random.default_rng(2)
        n_queries = 2 if tile.pairing is Pairing.TWO_QUERIES else 1
        codes = rng.integers(0, 20, tile.rows * case.strips).astype(np.uint8)
        constants = dict(case.spec.constants)
        profiles = [sequence_profile(codes, default_scheme(PROTEIN))] * n_queries
        words = pack_strips([profile_strips(profiles, tile, Arithmetic.FAST)])
        buffer = device.allocate(words.nbytes)
        device.upload(buffer, words, Stream.COMPUTE)
        gap = default_scheme(PROTEIN).gap
        resident = min(device.resident_blocks(case.spec, tile.shared_bytes()), int(constants["BLOCKS"]))
        seconds: list[float] = []
        for _ in range(self._repeat + 1):
            device.clear(self._counters, 64, Stream.COMPUTE)
            timing = Timing()
            with timed(device, timing):
                for strip in range(case.strips):
                    parameters = packed(
                        INTER_TASK,
                        profile=buffer.texture(),
                        query=(
                            strip * tile.strip_units, strip > 0, strip + 1 < case.strips,
                            self._boundaries[strip % 2].address, self._boundaries[1 - strip % 2].address,
                        ),
                        subjects=(
                            subjects.residues.address, subjects.starts.address, subjects.lengths.address,
                            len(subjects), 0, 0,
                        ),
                        gap=(gap.open, gap.extend),
                        scores_low=self._scores.address,
                        scores_high=self._scores.address,
                        work_counter=self._counters.address + 4 * strip,
                    )  # fmt: skip
                    grid = device.facts.multiprocessors * resident
                    device.launch(case.spec, grid, tile.shared_bytes(), parameters, Stream.COMPUTE)
            seconds.append(timing.seconds)
        buffer.free()
        n_residues = self._partition.n_residues
        a_strip = min(seconds[1:]) / case.strips
        log = self._compiler.reports.get(case.spec, "")
        registers = re.search(r"Used (\d+) registers", log)
        spilled = re.search(r"(\d+) bytes spill stores", log)
        return {key.lower(): value for key, value in constants.items()} | {
            "strips": case.strips,
            "resident": resident,
            "gcups": round(n_residues * tile.rows * n_queries / a_strip / 1e9),
            "picoseconds": round(a_strip / n_residues * 1e12, 2),
            "registers": int(registers.group(1)) if registers else None,
            "spilled": int(spilled.group(1)) if spilled else None,
        }


def case_of(
    tile: Tile, threads: int, blocks: int, *, strips: int, band: int = 0, more: tuple[tuple[str, str], ...] = ()
) -> Case:
    edges = BoundaryMode.OWN if strips > 1 else BoundaryMode.NONE
    spec = inter_task_kernel(tile, COMPILED_GAPS[0], band=band, edges=edges, threads=threads, blocks=blocks)
    return Case(tile, replace(spec, constants=spec.constants + more), strips)


def tuning_text(tuning: dict[str, Any]) -> str:
    """The text of a tuning file, with one line per tile."""
    lines = [f' "{key}": {json.dumps(value)}' for key, value in tuning.items() if not isinstance(value, dict)]
    for section, by_pairing in tuning.items():
        if isinstance(by_pairing, dict):
            lists = [
                f'  "{pairing}": [\n' + ",\n".join(f"   {json.dumps(entry)}" for entry in entries) + "\n  ]"
                for pairing, entries in by_pairing.items()
            ]
            lines.append(f' "{section}": {{\n' + ",\n".join(lists) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_tuning(path: Path, tuner: Tuner, sections: Sequence[str]) -> None:
    """Measure the tiles of some sections of a tuning file and rewrite it."""
    tuning = json.loads(path.read_text(encoding="utf-8"))
    tuning["measured"] = (
        f"{tuner.device.facts.name}, {compiler_of(tuner.device).name} {compiler_of(tuner.device).version}"
    )
    kinds = [("alone", 1), ("edges", EDGE_STRIPS)]
    cases: dict[tuple[str, str, int, str], Case] = {}
    for section in sections:
        for pairing, entries in tuning[section].items():
            for place, entry in enumerate(entries):
                tile = Tile(Pairing(pairing), entry["group"], entry["words"])
                band = entry.get("band", 0)
                for kind, strips in kinds:
                    if kind in entry:
                        cases[section, pairing, place, kind] = case_of(
                            tile, entry["threads"], entry["blocks"], strips=strips, band=band
                        )
    tuner.compile(cases.values())
    for (section, pairing, place, kind), case in cases.items():
        row, entry = tuner.measure(case), tuning[section][pairing][place]
        entry[kind] = row["picoseconds"]
        print(section, pairing, kind, row["gcups"], entry, flush=True)
    path.write_text(tuning_text(tuning), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairing", default="kTwoBlocks,kTwoQueries")
    parser.add_argument("--groups", default="8")
    parser.add_argument("--words", default="8,16,24,28")
    parser.add_argument("--launches", default="256x2", help="threads x blocks, several with commas")
    parser.add_argument("--bands", default="0", help="rows of a band of the bound, 0 for none")
    parser.add_argument("--strips", default="1", help="1 for one strip, 2 and more for kernels with boundaries")
    parser.add_argument("--subjects", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--constants", default="", help="more constants: NAME=VALUE with commas, sets with semicolons")
    parser.add_argument("--write", type=Path, help="a tuning file, to be measured and written again")
    parser.add_argument("--sections", default="inter_task,bound", help="its sections to measure")
    options = parser.parse_args()

    tuner = Tuner(options.subjects, options.repeat)
    if options.write is not None:
        write_tuning(options.write, tuner, options.sections.split(","))
        return
    sets = [
        tuple((pair.split("=")[0], pair.split("=")[1]) for pair in part.split(",") if pair)
        for part in options.constants.split(";")
    ]
    cases = [
        case_of(
            Tile(Pairing(pairing), group, words), *numbers(launch.replace("x", ",")),
            strips=strips, band=band, more=more,
        )
        for pairing, group, words, launch, strips, band, more in itertools.product(
            options.pairing.split(","), numbers(options.groups), numbers(options.words), options.launches.split(","),
            numbers(options.strips), numbers(options.bands), sets,
        )
        if band == 0 or words % band == 0
    ]  # fmt: skip
    tuner.compile(cases)
    for case in cases:
        print(json.dumps(tuner.measure(case)), flush=True)


if __name__ == "__main__":
    main()

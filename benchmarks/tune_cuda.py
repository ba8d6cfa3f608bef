"""Measures tiles of the inter-task kernel on this GPU: the figures behind ``cuda/tuning/``.

    python benchmarks/tune_cuda.py [--pairing kRowBlocks] [--groups 8] [--words 8,16,28] [--launches 256x2]

Every combination of the options is run with queries that fill the strips exactly, so that the figure is the tile's own.
Kernels are compiled side by side first. A JSON line a shape gives GCUPS, registers and spilled bytes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from benchmark_cuda import synthetic

from swsearch.engine.cuda.compiler import Compiler, KernelCache
from swsearch.engine.cuda.device import PyCudaDevice, Stream
from swsearch.engine.cuda.kernels import Arithmetic, Edges, KernelSpec, Pairing, Tile, range_kernel
from swsearch.engine.cuda.profile import PROTEIN_COLUMNS, pack_profile
from swsearch.engine.cuda.subjects import SubjectStore
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN


class Reporting:
    """A compiler that keeps what the assembler reports."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self.name, self.version = compiler.name, compiler.version
        self.reports: dict[KernelSpec, str] = {}

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        code, self.reports[spec] = self._compiler.compile(spec, architecture)
        return code, self.reports[spec]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairing", default="kRowBlocks,kTwoQueries")
    parser.add_argument("--groups", default="8")
    parser.add_argument("--words", default="8,16,24,28")
    parser.add_argument("--launches", default="256x2", help="threads x blocks, several with commas")
    parser.add_argument("--deferred", default="0,1")
    parser.add_argument("--strips", default="1", help="1 for one strip, 2 and more for kernels with boundaries")
    parser.add_argument("--texture", default="1")
    parser.add_argument("--arithmetic", default="FastPair")
    parser.add_argument("--subjects", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--constants", default="", help="more constants: NAME=VALUE with commas, sets with semicolons")
    options = parser.parse_args()

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    scheme = default_scheme(PROTEIN)
    arithmetic = Arithmetic(options.arithmetic)
    sets = [
        tuple((pair.split("=")[0], pair.split("=")[1]) for pair in part.split(",") if pair)
        for part in options.constants.split(";")
    ]
    launches = [tuple(int(n) for n in launch.split("x")) for launch in options.launches.split(",")]
    cases: list[tuple[Tile, int, KernelSpec]] = []
    for name, group, words, launch, deferred, strips, texture, more in itertools.product(
        options.pairing.split(","), numbers(options.groups), numbers(options.words), launches,
        numbers(options.deferred), numbers(options.strips), numbers(options.texture),
        sets,
    ):  # fmt: skip
        tile = Tile(Pairing(name), group, words, PROTEIN_COLUMNS)
        spec = range_kernel(
            arithmetic, tile, scheme.gap, deferred=bool(deferred), edges=Edges.OWN if strips > 1 else Edges.NONE,
            texture=bool(texture), threads=launch[0], blocks=launch[1],
        )  # fmt: skip
        cases.append((tile, strips, replace(spec, constants=spec.constants + more)))

    device = PyCudaDevice()
    compiler = Reporting(device.compiler)
    cache = KernelCache(compiler)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda case: cache.load(case[2], device.facts.architecture), cases))
    partition = synthetic(options.subjects, [], 1, n_long=0)
    subjects = next(SubjectStore(device, 1 << 34).pieces(partition))
    rng = np.random.default_rng(2)
    scores = device.allocate(len(partition) * 4)
    counter = device.allocate(64)
    boundary = [device.allocate(subjects.residue_bytes * 8) for _ in range(2)]
    for tile, strips, spec in cases:
        n_queries = 2 if tile.pairing is Pairing.TWO_QUERIES else 1
        profiles = [sequence_profile(rng.integers(0, 20, tile.rows * strips).astype(np.uint8), scheme)] * n_queries
        packed = pack_profile(profiles, tile, arithmetic)
        buffer = device.allocate(packed.nbytes)
        device.upload(buffer, packed, Stream.COMPUTE)
        view = device.texture(buffer)
        resident = min(device.resident_blocks(spec, tile.shared_bytes()), int(dict(spec.constants)["BLOCKS"]))
        seconds: list[float] = []
        for _ in range(options.repeat):
            device.clear(counter, 64, Stream.COMPUTE)
            with device.timed(Stream.COMPUTE) as taken:
                for strip in range(strips):
                    arguments = [
                        np.uint64(buffer.address), np.uint64(view.handle), np.int32(strip * tile.strip_units),
                        np.int32(strip > 0), np.int32(strip + 1 < strips),
                        np.uint64(boundary[strip % 2].address), np.uint64(boundary[1 - strip % 2].address),
                        np.uint64(subjects.residues.address), np.uint64(subjects.starts.address),
                        np.uint64(subjects.lengths.address), np.uint32(len(subjects)),
                        np.uint64(scores.address), np.uint64(scores.address), np.uint64(counter.address + 4 * strip),
                    ]  # fmt: skip
                    device.launch(
                        spec, device.facts.multiprocessors * resident, tile.shared_bytes(), arguments, Stream.COMPUTE
                    )
            seconds += taken
        log = compiler.reports.get(spec, "")
        spilled = re.search(r"(\d+) bytes spill stores", log)
        registers = re.search(r"Used (\d+) registers", log)
        row = dict(spec.constants) | {
            "strips": strips, "resident": resident,
            "gcups": round(partition.n_residues * tile.rows * strips * n_queries / min(seconds[1:]) / 1e9),
            "microseconds": round(min(seconds[1:]) * 1e6 / strips),
            "registers": int(registers.group(1)) if registers else None,
            "spilled": int(spilled.group(1)) if spilled else None,
        }  # fmt: skip
        print(json.dumps({key.lower(): value for key, value in row.items()}), flush=True)
        view.close()
        buffer.free()


if __name__ == "__main__":
    main()

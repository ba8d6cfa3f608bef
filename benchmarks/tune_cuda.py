"""Measures tiles of the inter-task kernel on this GPU: the figures behind ``cuda/tuning/``.

    python benchmarks/tune_cuda.py [--pairing kRowBlocks] [--groups 8] [--words 8,16,28] [--launches 256x2]

Every combination of the options is run with queries that fill exactly one strip, so that the figure is the tile's own.
A JSON line a shape gives GCUPS, registers and spilled bytes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re

import numpy as np
from benchmark_cuda import synthetic

from swsearch.engine.cuda.compiler import find_compiler
from swsearch.engine.cuda.device import PyCudaDevice, Stream
from swsearch.engine.cuda.kernels import Arithmetic, Pairing, Tile, range_kernel
from swsearch.engine.cuda.profile import PROTEIN_COLUMNS, pack_profile
from swsearch.engine.cuda.subjects import SubjectStore
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairing", default="kRowBlocks,kTwoQueries")
    parser.add_argument("--groups", default="8")
    parser.add_argument("--words", default="8,16,24,28")
    parser.add_argument("--launches", default="256x2", help="threads x blocks, several with commas")
    parser.add_argument("--deferred", default="0,1")
    parser.add_argument("--strips", default="1", help="1 for one strip, 2 for kernels with a boundary")
    parser.add_argument("--texture", default="1")
    parser.add_argument("--subjects", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=4)
    options = parser.parse_args()

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    partition = synthetic(options.subjects, [], 1, n_long=0)
    device = PyCudaDevice()
    compiler = find_compiler()
    assert compiler is not None
    subjects = next(SubjectStore(device, 1 << 34).pieces(partition))
    scheme = default_scheme(PROTEIN)
    rng = np.random.default_rng(2)
    scores = device.allocate(len(partition) * 4)
    counter = device.allocate(64)
    half = subjects.residue_bytes * 8
    boundary = device.allocate(2 * half)
    launches = [tuple(int(n) for n in launch.split("x")) for launch in options.launches.split(",")]
    for name, group, words, launch, deferred, strips, texture in itertools.product(
        options.pairing.split(","), numbers(options.groups), numbers(options.words), launches,
        numbers(options.deferred), numbers(options.strips), numbers(options.texture),
    ):  # fmt: skip
        tile = Tile(Pairing(name), group, words, PROTEIN_COLUMNS)
        threads, blocks = launch
        spec = range_kernel(
            Arithmetic.FAST, tile, scheme.gap, deferred=bool(deferred), boundary=strips > 1, texture=bool(texture),
            threads=threads, blocks=blocks,
        )  # fmt: skip
        n_queries = 2 if tile.pairing is Pairing.TWO_QUERIES else 1
        profiles = [sequence_profile(rng.integers(0, 20, tile.rows * strips).astype(np.uint8), scheme)] * n_queries
        packed = pack_profile(profiles, tile, Arithmetic.FAST)
        buffer = device.allocate(packed.nbytes)
        device.upload(buffer, packed, Stream.COMPUTE)
        view = device.texture(buffer)
        resident = device.resident_blocks(spec, tile.shared_bytes())
        seconds: list[float] = []
        for _ in range(options.repeat):
            device.clear(counter, 64, Stream.COMPUTE)
            with device.timed(Stream.COMPUTE) as taken:
                for strip in range(strips):
                    arguments = [
                        np.uint64(buffer.address), np.uint64(view.handle), np.int32(strip), np.int32(strips),
                        np.uint64(subjects.residues.address), np.uint64(subjects.starts.address),
                        np.uint64(subjects.lengths.address), np.uint32(len(subjects)),
                        np.uint64(boundary.address + half * ((strip + 1) % 2)),
                        np.int64((half if strip % 2 else -half) // 4),
                        np.uint64(scores.address), np.uint64(scores.address), np.uint64(counter.address + 4 * strip),
                    ]  # fmt: skip
                    device.launch(
                        spec, device.facts.multiprocessors * resident, tile.shared_bytes(), arguments, Stream.COMPUTE
                    )
            seconds += taken
        _, log = compiler.compile(spec, device.facts.architecture)
        spilled = re.search(r"(\d+) bytes spill stores", log)
        registers = re.search(r"Used (\d+) registers", log)
        row = {
            "pairing": name, "group": group, "words": words, "threads": threads, "blocks": blocks,
            "deferred": deferred, "strips": strips, "texture": texture, "resident": resident,
            "gcups": round(partition.n_residues * tile.rows * strips * n_queries / min(seconds[1:]) / 1e9),
            "registers": int(registers.group(1)) if registers else None,
            "spilled": int(spilled.group(1)) if spilled else None,
        }  # fmt: skip
        print(json.dumps(row), flush=True)
        view.close()
        buffer.free()


if __name__ == "__main__":
    main()

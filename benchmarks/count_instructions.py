"""Counts the instructions of the inter-task kernels for an architecture, and calculates a tuning file from them.

    python benchmarks/count_instructions.py --architecture 120 [--nvcc NVCC]
    python benchmarks/count_instructions.py --architecture 120 --write cuda/tuning/blackwell.json [--nvcc NVCC]

No GPU is needed, but nvcc and its disassembler ``cuobjdump``. The inner loop computes four columns of the subject; what
is counted is every instruction of the loop.

Without ``--write``, one line is printed for each kind of kernel: instructions per word of scores with the words per
lane of the tables in docs/design/cuda-engine.md.

With ``--write FILE``, the times in the sections ``inter_task`` and ``bound`` of FILE are calculated, and FILE is
replaced by a copy. The loops of tiles that differ only in their words per lane have a number of instructions that
increases linearly, so the smallest and the largest tile are counted, and FILE lists series of tiles. A strip takes the
time of these instructions in all lanes of a group; neither the throughput of each instruction nor the memory traffic of
boundaries enters, because both would have to be measured. The times are scaled such that the exact kernel of the
fastest tile takes as long per row as on an H200, to which the other constants of the planner refer.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tune_cuda import case_of, tuning_text

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts.build_kernels import Nvcc, find_nvcc
from swsearch.engine.cuda.runtime.kernels import KernelSpec, Pairing, Tile
from swsearch.engine.cuda.search.tiles import tuned_for, words_of

COLUMNS_PER_LOOP = 4
SHOWN_WORDS = {0: 28, 4: 40, 5: 40, 6: 42, 8: 40}
"""Words per lane of the printed kernels, by the rows of a band; 0 for the exact kernel."""
MEASURED = 90
"""The architecture whose times are measured."""


def loop_instructions(listing: str) -> list[str]:
    """The instructions of the inner loop, as cuobjdump lists them: the shortest one with the most exchanges of lanes.

    Before 9.0, code after the loop, for lanes that have diverged, branches back to each of the columns. Such a branch
    looks like the end of a shorter loop, but one with fewer exchanges.
    """
    found = re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", listing, re.MULTILINE)
    code = [(int(address, 16), instruction) for address, instruction in found]
    loops = []
    for end, (address, instruction) in enumerate(code):
        target = re.search(r"\bBRA\b.*?\b0x([0-9a-f]+)", instruction)
        if target is not None and (begin := int(target[1], 16)) < address:
            loops.append([text for place, text in code[: end + 1] if place >= begin])
    return min(loops, key=lambda loop: (-sum("SHFL.UP" in text for text in loop), len(loop)))


@dataclass(frozen=True)
class Counter:
    """Counts the inner loops of kernels that one nvcc compiles for one architecture."""

    nvcc: Nvcc
    architecture: int

    def count(self, spec: KernelSpec) -> int:
        """The instructions of the inner loop of a kernel, four columns."""
        code, _ = self.nvcc.compile(spec, self.architecture)
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(code)
            file.flush()
            disassembler = Path(os.path.realpath(self.nvcc.path)).with_name("cuobjdump")
            command = [str(disassembler), "-sass", file.name]
            return len(loop_instructions(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


@dataclass(frozen=True)
class Family:
    """Tiles that differ in lanes and words per lane only, with the kernel that computes them."""

    pairing: Pairing
    band: int
    edges: bool

    def spec(self, words: int, threads: int = 256, blocks: int = 2) -> KernelSpec:
        """The kernel of the tile with four lanes."""
        return case_of(
            Tile(self.pairing, 4, words), threads, blocks, strips=2 if self.edges else 1, band=self.band
        ).spec  # fmt: skip


def families(entry: dict[str, Any], pairing: Pairing) -> dict[str, Family]:
    """The kernels of a series of tiles of a tuning file, by the key of their times."""
    return {key: Family(pairing, entry.get("band", 0), key == "edges") for key in ("alone", "edges") if key in entry}


def calculated(tuning: dict[str, Any], counter: Counter, pool: ThreadPoolExecutor) -> None:
    """Replace the times of the series of tiles of a tuning file."""
    words: dict[Family, set[int]] = {}
    tiles = [
        (Pairing(pairing), entry)
        for section in ("inter_task", "bound")
        for pairing, entries in tuning[section].items()
        for entry in entries
    ]
    for pairing, entry in tiles:
        for family in families(entry, pairing).values():
            words.setdefault(family, set()).update(words_of(entry))
    ends = [(family, end(of_family)) for family, of_family in words.items() for end in (min, max)]
    counts = dict(zip(ends, pool.map(lambda each: counter.count(each[0].spec(each[1])), ends), strict=True))

    def line(family: Family) -> tuple[float, float]:
        """The instructions without words, and those per word."""
        least, most = min(words[family]), max(words[family])
        per_word = (counts[family, most] - counts[family, least]) / max(most - least, 1)
        return counts[family, least] - per_word * least, per_word

    exact = [entry for pairing, entry in tiles if pairing is Pairing.TWO_BLOCKS and "band" not in entry]
    base, per_word = line(Family(Pairing.TWO_BLOCKS, 0, edges=False))
    per_row = min((base + per_word * n_words) / (2 * n_words) for entry in exact for n_words in words_of(entry))
    scale = measured_per_row() / per_row
    for pairing, entry in tiles:
        for key, family in families(entry, pairing).items():
            entry[key] = [round(scale * entry["group"] * part, 4) for part in line(family)]


@cache
def measured_per_row() -> float:
    """Picoseconds per row and residue of the fastest measured tile for one query's exact scores."""
    entries = tuned_for(MEASURED)["inter_task"][Pairing.TWO_BLOCKS.value]
    return min(entry["alone"] / (2 * entry["group"] * entry["words"]) for entry in entries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--architecture", type=int, required=True, help="120 for compute capability 12.0, 86 for 8.6")
    parser.add_argument("--nvcc", help="the compiler, by default the first that is found")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at a time")
    parser.add_argument("--write", type=Path, help="an existing tuning file of series, whose times are replaced")
    options = parser.parse_args()
    counter = Counter(Nvcc(options.nvcc or find_nvcc() or "nvcc"), options.architecture)
    with ThreadPoolExecutor(options.jobs) as pool:
        if options.write is not None:
            tuning = json.loads(options.write.read_text(encoding="utf-8"))
            tuning["measured"] = f"nowhere; instructions counted, nvcc {counter.nvcc.version}"
            calculated(tuning, counter, pool)
            options.write.write_text(tuning_text(tuning), encoding="utf-8")
            return
        shown = [
            Family(pairing, band, edges=False)
            for pairing in (Pairing.TWO_QUERIES, Pairing.TWO_BLOCKS)
            for band in SHOWN_WORDS
        ]
        counts = pool.map(lambda family: counter.count(family.spec(SHOWN_WORDS[family.band])), shown)
        for family, n_instructions in zip(shown, counts, strict=True):
            words = SHOWN_WORDS[family.band]
            line = {
                "pairing": family.pairing.value, "band": family.band, "words": words, "loop": n_instructions,
                "per_word": round(n_instructions / (COLUMNS_PER_LOOP * words), 2),
            }  # fmt: skip
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

"""Made-up families of aligned proteins, as arrays of codes and as a3m."""

import re
import subprocess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LETTERS = "ARNDCQEGHILKMFPSTWYV"
GAP, X = 31, 22


def family(seed: int, n_rows: int, n_columns: int) -> NDArray[np.uint8]:
    """A query and `n_rows` relatives in random order; row after row lacks one residue more, at its ends or inside.

    So no two rows have the same number of residues: the order of such rows in hhfilter is that of its sort.
    """
    random = np.random.default_rng(seed)
    known = [random.integers(0, 20, n_columns)]
    rows = [known[0].copy()]
    for n_lacking in range(1, n_rows + 1):
        relative = known[random.integers(len(known))].copy()
        mutated = random.random(n_columns) < random.choice([0.03, 0.1, 0.3, 0.5])
        relative[mutated] = random.integers(0, 20, np.count_nonzero(mutated))
        known.append(relative)
        row = relative.copy()
        start, stop = np.sort(random.integers(0, n_lacking + 1, 2))
        row[:start] = GAP
        row[n_columns - (stop - start) :] = GAP
        inside = np.arange(start, n_columns - (stop - start))
        row[random.choice(inside, n_lacking - stop, replace=False)] = random.choice([GAP, X])
        rows.append(row)
    order = np.concatenate([[0], 1 + random.permutation(n_rows)])
    return np.array(rows, dtype=np.uint8)[order]


def write_a3m(codes: NDArray[np.uint8], path: Path) -> None:
    """Write an alignment; the name of a row is its number."""
    letters = {**dict(enumerate(LETTERS)), GAP: "-", X: "X"}
    path.write_text("".join(f">{i}\n{''.join(letters[c] for c in row)}\n" for i, row in enumerate(codes.tolist())))


def hhfilter(codes: NDArray[np.uint8], folder: Path, *options: object) -> list[int]:
    """The rows that HH-suite's program keeps."""
    write_a3m(codes, folder / "all.a3m")
    files = ["-i", folder / "all.a3m", "-o", folder / "kept.a3m"]
    subprocess.run(["hhfilter", *files, "-v", "0", *map(str, options)], check=True)
    return [int(name) for name in re.findall(r"^>(\d+)", (folder / "kept.a3m").read_text(), re.MULTILINE)]


def hhmake_neff(codes: NDArray[np.uint8], folder: Path) -> float:
    """Neff by HH-suite's program, with one decimal."""
    write_a3m(codes, folder / "all.a3m")
    files = ["-i", folder / "all.a3m", "-o", folder / "all.hhm"]
    subprocess.run(["hhmake", *files, "-v", "0", "-id", "100", "-diff", "0"], check=True)
    (found,) = re.findall(r"^NEFF +([0-9.]+)", (folder / "all.hhm").read_text(), re.MULTILINE)
    return float(found)

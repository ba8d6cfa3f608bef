"""A database for hhblits, each of whose sequences is an alignment of its own.

    python benchmarks/hhsuite.py all.fasta hhsuite/db [--check 300 --cstranslate cstranslate]

hhblits compares the profile of a query with the *states* of each sequence before it aligns profiles: at each position,
the one of 219 typical columns (``cs219.lib``) that is most probable after the sequence has received pseudocounts from
4,000 contexts of 13 residues (``context_data.lib``). HH-suite's ``hhsuitedb.py`` has them computed by

    cstranslate -f -x 0.3 -c 4 -I a3m -A cs219.lib -D context_data.lib -i DB_a3m -o DB_cs219

which translates 400 to 700 residues a second, because it multiplies the counts of all 20 residues at each of the 13
positions by those of each context. `Translator` computes the same sums as products of matrices, about 20,000 residues a
second. ``--check`` compares its states with those of ``cstranslate`` for a random sample of the sequences, to which as
many with unknown residues are added, and ends with an error if any differs. Debian's ``hhsuite`` has the program as
``/usr/libexec/hhsuite/cstranslate-avx2``.

The sequences are translated in parts, each of which is kept, so a run that was stopped goes on. The files of HH-suite
are ``DB_a3m`` and ``DB_cs219``, each with ``.ffdata`` and ``.ffindex``.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHARE = Path(os.environ.get("HHLIB", "/usr/share/hhsuite")) / "data"
CONTEXTS, STATES = SHARE / "context_data.lib", SHARE / "cs219.lib"
ADMIXTURE = 0.3
"""Share of the pseudocounts in a column (``-x``). ``-c`` changes it only for alignments of several sequences."""
CENTER, DECAY, STATE_WEIGHT = 1.6, 0.85, 1000.0
"""Weight of the position in the middle of a context, its factor for each step from there, and that of a state."""
LETTERS = "ARNDCQEGHILKMFPSTWYV"
READ_AS = {"B": "D", "Z": "E", "U": "C"}
"""Other letters that ``cstranslate`` takes for a residue; the others are unknown."""
PART = 500
"""Number of sequences in a part."""
ROWS = 512
"""Number of positions that are translated at once."""

Sequences = dict[str, str]


class Translator:
    """The states of sequences, as ``cstranslate`` computes them for alignments of one sequence."""

    def __init__(self) -> None:
        prior, columns = _library(CONTEXTS)
        n_contexts, width, _ = columns.shape
        middle = width // 2
        weights = CENTER * DECAY ** np.abs(np.arange(width) - middle)
        self.width = width
        self.prior = prior.astype(np.float32)
        scores = (weights[:, None, None] * columns.transpose(1, 2, 0)).reshape(-1, n_contexts)
        self.scores = np.ascontiguousarray(scores, np.float32)
        """Logarithm of the probability of a residue at a position of each context, shape (13 · 20, 4,000)."""
        self.pseudocounts = np.exp(columns[:, middle]).astype(np.float32)
        self.state_prior, states = _library(STATES)
        self.state_scores = STATE_WEIGHT * states[:, 0].T

    def __call__(self, sequence: str) -> bytes:
        counts = _counts(sequence)
        length, margin = len(counts), self.width // 2
        padded = np.zeros((length + 2 * margin, len(LETTERS)), np.float32)
        padded[margin : margin + length] = counts
        windows = np.lib.stride_tricks.sliding_window_view(padded.reshape(-1), self.width * len(LETTERS))
        windows = windows[:: len(LETTERS)]
        found = np.empty(length, np.uint8)
        for start in range(0, length, ROWS):
            end = start + ROWS
            posterior = np.ascontiguousarray(windows[start:end]) @ self.scores + self.prior
            posterior -= posterior.max(axis=1, keepdims=True)
            np.exp(posterior, out=posterior)
            columns = (posterior @ self.pseudocounts).astype(np.float64)
            columns /= columns.sum(axis=1, keepdims=True)
            columns = ADMIXTURE * columns + (1 - ADMIXTURE) * counts[start:end]
            columns /= columns.sum(axis=1, keepdims=True)
            found[start:end] = (columns @ self.state_scores + self.state_prior).argmax(axis=1)
        known = counts.any(axis=1)
        # No sequence has begun before the first known residue: cstranslate divides by zero there, and takes state 0.
        found[: int(known.argmax()) if known.any() else length] = 0
        return found.tobytes()


def _library(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of the prior of each profile of a library, and of its columns, shape (profiles, positions, 20)."""
    priors: list[float] = []
    profiles: list[list[list[float]]] = []
    for line in path.read_text().splitlines():
        if line.startswith("PRIOR"):
            priors.append(float(line.split()[1]))
            profiles.append([])
        elif line[:1].isdigit():
            profiles[-1].append([float("inf") if word == "*" else float(word) for word in line.split()[1:21]])
    return np.log(priors), np.array(profiles) * (-np.log(2) / 1000)


def _counts(sequence: str) -> NDArray[np.float64]:
    """1 at the residue of each position, shape (length, 20)."""
    code = np.full(256, len(LETTERS))
    for letter, residue in {**dict(zip(LETTERS, LETTERS, strict=True)), **READ_AS}.items():
        code[ord(letter)] = LETTERS.index(residue)
    rows: NDArray[np.float64] = np.vstack([np.eye(len(LETTERS)), np.zeros(len(LETTERS))])
    counts: NDArray[np.float64] = rows[code[np.frombuffer(sequence.encode(), np.uint8)]]
    return counts


def read(path: Path) -> Sequences:
    """The sequences of a FASTA file, by the first words of their headers."""
    records = path.read_text().split(">")[1:]
    return {header.split()[0]: "".join(lines) for header, *lines in map(str.splitlines, records)}


def write_entries(entries: dict[str, bytes], base: Path) -> None:
    """An ffindex: the entries, each ended by a zero byte, and the name, start and length of each, sorted by name."""
    start = 0
    rows = []
    with open(f"{base}.ffdata", "wb") as file:
        for name, entry in sorted(entries.items()):
            file.write(entry + b"\0")
            rows.append(f"{name}\t{start}\t{len(entry) + 1}\n")
            start += len(entry) + 1
    Path(f"{base}.ffindex").write_text("".join(rows))


def read_entries(base: Path) -> dict[str, bytes]:
    """The entries of an ffindex."""
    data = Path(f"{base}.ffdata").read_bytes()
    rows = [line.split("\t") for line in Path(f"{base}.ffindex").read_text().splitlines()]
    return {name: data[int(start) : int(start) + int(length) - 1] for name, start, length in rows}


def alignments(sequences: Sequences) -> dict[str, bytes]:
    """The alignment of each sequence with itself alone."""
    return {name: f">{name}\n{sequence}\n".encode() for name, sequence in sequences.items()}


def build(fasta: Path, base: Path) -> None:
    """Write the database of a FASTA file, unless it is there."""
    if Path(f"{base}_cs219.ffindex").exists():
        return
    base.parent.mkdir(parents=True, exist_ok=True)
    sequences = read(fasta)
    names = list(sequences)
    translator = Translator()
    states: dict[str, bytes] = {}
    parts = range(0, len(names), PART)
    for number, start in enumerate(parts):
        kept = base.parent / f"{base.name}-part-{number}"
        if not Path(f"{kept}.ffindex").exists():
            write_entries({name: translator(sequences[name]) for name in names[start : start + PART]}, kept)
            print(f"states of part {number + 1} of {len(parts)}", flush=True)
        states |= read_entries(kept)
    write_entries(alignments(sequences), Path(f"{base}_a3m"))
    write_entries(states, Path(f"{base}_cs219"))


def check(fasta: Path, base: Path, n_sequences: int, program: str) -> None:
    """Compare the states of a random sample, and of sequences with unknown residues, with those of ``cstranslate``."""
    sequences = read(fasta)
    rng = random.Random(1)
    unusual = [name for name, sequence in sequences.items() if set(sequence) - set(LETTERS)]
    names = rng.sample(list(sequences), min(n_sequences, len(sequences)))
    names += rng.sample(unusual, min(n_sequences, len(unusual)))
    sample = {name: sequences[name] for name in names}
    states = read_entries(Path(f"{base}_cs219"))
    with tempfile.TemporaryDirectory() as folder:
        write_entries(alignments(sample), Path(folder, "sample_a3m"))
        command: list[Any] = [program, "-f", "-x", ADMIXTURE, "-c", 4, "-I", "a3m", "-A", STATES, "-D", CONTEXTS]
        command += ["-i", Path(folder, "sample_a3m"), "-o", Path(folder, "sample_cs219")]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        theirs = read_entries(Path(folder, "sample_cs219"))
    different = [name for name in sample if theirs[name] != states[name]]
    residues = sum(map(len, sample.values()))
    if different:
        raise SystemExit(
            f"the states of {len(different)} of {len(sample)} sequences differ: {', '.join(different[:10])}"
        )
    print(f"the states of {len(sample)} sequences with {residues:,} residues are those of {program}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fasta", type=Path, help="the sequences; parts that exist are not computed again")
    parser.add_argument("database", type=Path, help="first part of the names of the files")
    parser.add_argument(
        "--check", type=int, metavar="N", help="compare N sequences, and N with unknown residues, with cstranslate"
    )
    parser.add_argument("--cstranslate", default="cstranslate", help="the program")
    options = parser.parse_args()
    build(options.fasta, options.database)
    if options.check:
        check(options.fasta, options.database, options.check, options.cstranslate)


if __name__ == "__main__":
    main()

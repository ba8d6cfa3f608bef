"""Train the contexts of queries (``swsearch/query/contexts.npz``) by expectation maximization.

    python benchmarks/train_contexts.py proteins.fasta --work build/contexts --out contexts.npz

1. MMseqs2 (``search --num-iterations 2``) aligns random proteins of 60 to 500 residues, the *seeds*, with all. The
   proteins should be the representatives of clusters, so that columns are those of distant relatives: those of the
   program are 130,844 proteins of 40 to 800 residues of Swiss-Prot (``scripts/swissprot.sh``), of
   ``mmseqs easy-linclust --min-seq-id 0.6 -c 0.8``.
2. Each alignment becomes a profile: rows that cover half of the seed, weights of Henikoff and Henikoff 1994 (doi
   10.1016/0022-2836(94)90032-9), columns that the rows of 30 % of the weight have. The effective number of sequences is
   the exponential of the mean entropy of these columns; profiles below 2.5 are left out.
3. The contexts (``swsearch/query/contexts.py``) are those of a mixture: windows of 13 columns, each of which counts as
   many observations as the root of its effective number of sequences.

The file of the program was made by these steps with another choice of random seeds.
"""

from __future__ import annotations

import argparse
import subprocess
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from swsearch.query.contexts import CENTRAL_WEIGHT, DECAY, FILE_UNITS, WIDTH

SEED = 39
LETTERS = "ARNDCQEGHILKMFPSTWYV"
OTHER = 20
"""Code of another letter, and of a place outside the sequence."""
MIN_DEPTH = 2.5
ROWS_PER_PROFILE = 32
BACKGROUND = np.array(
    [7805, 5129, 4487, 5364, 1925, 4264, 6295, 7377, 2199, 5142,
     9019, 5744, 2243, 3856, 5203, 7120, 5841, 1330, 3216, 6441]
) / 100_000  # fmt: skip
CODE = np.full(256, OTHER, dtype=np.uint8)
CODE[np.frombuffer(LETTERS.encode(), dtype=np.uint8)] = np.arange(20)
MOST_DEPTH = 8.0
MOST_WINDOWS = 350_000
PSEUDOCOUNTS = 2.0
"""Columns of natural composition that are added to those of a context."""


@dataclass
class Profile:
    """``columns`` are frequencies (length, 20); ``letters`` of some rows, with the column of each letter or -1."""

    name: str
    columns: np.ndarray
    is_filled: np.ndarray
    depth: float
    rows: list[tuple[np.ndarray, np.ndarray]]
    names: list[str]


def profile(block: str, number: int) -> Profile | None:
    """The profile of one alignment; None if it is too shallow."""
    rng = np.random.default_rng([SEED, number])
    parts = [part.split("\n", 1) for part in block.split(">")[1:]]
    names = [head.split()[0] for head, _ in parts]
    texts = [body.replace("\n", "") for _, body in parts]
    inserted = str.maketrans("", "", "abcdefghijklmnopqrstuvwxyz")
    matched = [text.translate(inserted) for text in texts]
    if len({len(text) for text in matched}) != 1:  # the end of a file that was cut
        return None
    codes = np.stack([np.frombuffer(text.encode(), dtype=np.uint8) for text in matched])
    is_gap = codes == ord("-")
    codes = CODE[codes]
    codes[is_gap] = 21
    _, first = np.unique(codes, axis=0, return_index=True)  # the seed is among its own hits
    keep = [index for index in sorted(first.tolist()) if (codes[index] < 20).mean() >= 0.5]
    if len(keep) < 3:
        return None
    codes = codes[keep]
    onehot = codes[:, :, None] == np.arange(20)
    counts = onehot.sum(axis=0)
    kinds = (counts > 0).sum(axis=1)
    share = np.where(onehot, 1 / np.maximum(counts * kinds[:, None], 1)[None], 0).sum(axis=2)
    weights = share.sum(axis=1) / np.maximum((codes < 20).sum(axis=1), 1)
    weights /= weights.sum()
    columns = np.einsum("n,nla->la", weights, onehot)
    filled = columns.sum(axis=1)
    columns /= np.maximum(filled, 1e-9)[:, None]
    is_filled = filled > 0.3
    if not is_filled.any():
        return None
    entropy = -(columns * np.log(np.maximum(columns, 1e-12))).sum(axis=1)
    depth = float(np.exp(entropy[is_filled].mean()))
    if depth < MIN_DEPTH:
        return None
    others = np.arange(1, len(keep))
    chosen = [0, *rng.permutation(others)[: ROWS_PER_PROFILE - 1].tolist()]
    rows = []
    for index in chosen:
        text = texts[keep[index]]
        raw = np.frombuffer(text.encode(), dtype=np.uint8)
        is_match = (raw < ord("a")) | (raw > ord("z"))
        column = np.where(is_match, np.cumsum(is_match) - 1, -1)
        here = raw != ord("-")
        rows.append((CODE[np.frombuffer(text.upper().encode(), dtype=np.uint8)][here], column[here].astype(np.int32)))
    return Profile(names[0], columns.astype(np.float32), is_filled, depth, rows, names)


def aligned(proteins: Path, n_seeds: int, work: Path) -> list[str]:
    """The alignments of random seeds, as A3M."""
    records = [block.split("\n", 1) for block in proteins.read_text().split(">")[1:]]
    fitting = [one for one in records if 60 <= len(one[1].replace("\n", "")) <= 500]
    chosen = np.random.default_rng(SEED).permutation(len(fitting))[:n_seeds]
    (work / "seeds.fasta").write_text("".join(f">{fitting[one][0]}\n{fitting[one][1]}" for one in chosen.tolist()))
    search = "--num-iterations 2 -s 4.5 -e 0.001 --e-profile 0.001 --max-seqs 300 -a 1"
    for command in (
        f"createdb {proteins} {work}/all",
        f"createdb {work}/seeds.fasta {work}/seeds",
        f"search {work}/seeds {work}/all {work}/found {work}/temporary {search}",
        f"result2msa {work}/seeds {work}/all {work}/found {work}/alignments --msa-format-mode 6",
    ):
        subprocess.run(["mmseqs", *command.split()], check=True, stdout=subprocess.DEVNULL)
    return [block for block in (work / "alignments").read_text().split("\0") if block.strip()]


def windows(profiles: list[Profile]) -> tuple[np.ndarray, np.ndarray]:
    """Windows of filled columns, float16 of shape (n, 13, 20), and the number of observations of each."""
    found, weights = [], []
    for one in profiles:
        if len(one.columns) < WIDTH:
            continue
        filled = np.where(one.is_filled[:, None], one.columns, BACKGROUND.astype(np.float32))
        views = np.lib.stride_tricks.sliding_window_view(filled, WIDTH, axis=0).transpose(0, 2, 1)
        found.append(views[one.is_filled[WIDTH // 2 : -(WIDTH // 2)]].astype(np.float16))
        weights.append(np.full(len(found[-1]), min(one.depth, MOST_DEPTH) ** 0.5, np.float32))
    return np.concatenate(found), np.concatenate(weights)


def trained(found: np.ndarray, weights: np.ndarray, n: int, passes: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of priors (n,) and of columns (n, 13, 20)."""
    order = np.random.default_rng(SEED).permutation(len(found))[:MOST_WINDOWS]
    found, weights = found[order].reshape(-1, WIDTH * 20), weights[order]
    usual = BACKGROUND.astype(np.float32)
    of_places = (CENTRAL_WEIGHT * DECAY ** np.abs(np.arange(WIDTH) - WIDTH // 2)).astype(np.float32)
    columns = (found[:n].astype(np.float32).reshape(-1, WIDTH, 20) + 0.4 * usual) / 1.4
    priors = np.full(n, 1 / n, np.float32)
    for number in range(passes):
        table = (np.log(columns) * of_places[:, None]).reshape(n, -1).T.astype(np.float32)
        counts, sums, likelihood = np.zeros((n, WIDTH * 20), np.float32), np.zeros(n, np.float32), 0.0
        for start in range(0, len(found), 4096):
            some, observations = found[start : start + 4096].astype(np.float32), weights[start : start + 4096, None]
            shares = observations * (some @ table) + np.log(priors)
            largest = shares.max(axis=1, keepdims=True)
            shares = np.exp(shares - largest)
            total = shares.sum(axis=1, keepdims=True)
            likelihood += float((np.log(total) + largest).sum())
            shares *= observations / total
            counts += shares.T @ some
            sums += shares.sum(axis=0)
        columns = (counts.reshape(-1, WIDTH, 20) + PSEUDOCOUNTS * usual) / (sums + PSEUDOCOUNTS)[:, None, None]
        priors = (sums + 1e-3) / (sums + 1e-3).sum()
        print(f"pass {number + 1}: {likelihood / len(found):.3f}", flush=True)
    return np.log(priors), np.log(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proteins", type=Path, help="FASTA of representatives of clusters")
    parser.add_argument("--work", type=Path, required=True, help="folder for the databases and alignments of MMseqs2")
    parser.add_argument("--seeds", type=int, default=4500)
    parser.add_argument("--contexts", type=int, default=4000)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True, help="the library")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    blocks = aligned(options.proteins, options.seeds, options.work)
    with ProcessPoolExecutor() as pool:
        found = pool.map(profile, blocks, range(len(blocks)), chunksize=20)
        profiles = [one for one in found if one is not None]
    print(f"{len(profiles)} profiles, mean depth {np.mean([one.depth for one in profiles]):.2f}", flush=True)
    priors, columns = trained(*windows(profiles), options.contexts, options.passes)
    in_units = [
        np.clip(np.rint(-FILE_UNITS * one), 0, 255).astype(np.uint8) for one in (priors - priors.max(), columns)
    ]
    # Not compressed: the same arrays are the same bytes with every version of zlib.
    np.savez(options.out, priors=in_units[0], columns=in_units[1])


if __name__ == "__main__":
    main()

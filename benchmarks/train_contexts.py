"""Train the contexts of queries (``swsearch/query/contexts.npz``) by expectation maximization: needs PyTorch, which the
program does not.

    python benchmarks/train_contexts.py proteins.fasta.xz --work build/contexts --out contexts.npz [--engine cuda]

1. ``swsearch query --iterations 3`` searches random proteins of 60 to 600 residues, the *seeds*, in all. The proteins
   should be the representatives of clusters, so that columns are those of distant relatives: those of the program are
   145,871 proteins of 40 to 800 residues of Swiss-Prot (``scripts/swissprot.sh``), of
   ``mmseqs easy-linclust --min-seq-id 0.6 -c 0.8``.
2. Each alignment becomes a profile: rows that cover half of the seed, weights of Henikoff and Henikoff 1994 (doi
   10.1016/0022-2836(94)90032-9), columns that the rows of 30 % of the weight have. The effective number of sequences is
   the exponential of the mean entropy of these columns; profiles below 2.5 are left out.
3. The contexts (``swsearch/query/contexts.py``) are those of a mixture: windows of 13 columns, each of which counts as
   many observations as the root of its effective number of sequences.

``--out`` beside the library receives ``training.json`` with the SHA-256 of the proteins and what was counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

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


def records(path: Path) -> list[tuple[str, str]]:
    content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    blocks = content.decode().split(">")[1:]
    return [(block.split(None, 1)[0], "".join(block.split("\n")[1:])) for block in blocks]


def search(
    proteins: Path, seeds: list[tuple[str, str]], work: Path, engine: str, seconds: float, processes: int
) -> list[Path]:
    """The alignments of the seeds, in files of 250 seeds; no further file is begun after ``seconds``."""
    database = work / "proteins.db"
    plain = work / "proteins.fasta"
    if not database.exists():
        plain.write_text("".join(f">{name}\n{letters}\n" for name, letters in records(proteins)))
        subprocess.run(["swsearch", "index", plain, "-o", database], check=True)
    began = time.monotonic()
    threads = max(1, len(os.sched_getaffinity(0)) // processes)

    def search_some(start: int) -> Path | None:
        target = work / f"alignments-{start}.a3m"
        if not target.exists():
            if time.monotonic() - began > seconds:
                return None
            query, part = work / f"seeds-{start}.fasta", work / f"part-{start}.a3m"
            query.write_text("".join(f">{name}\n{letters}\n" for name, letters in seeds[start : start + 250]))
            command = ["swsearch", "query", query, database, "--iterations", "3", "--evalue", "0.001", "--top", "300"]
            command += ["--format", "a3m", "--store", "none", "--engine", engine, "--threads", threads, "--out", part]
            subprocess.run(list(map(str, command)), check=True, stderr=subprocess.DEVNULL)
            part.rename(target)
        print(f"searched seeds {start} to {start + 250}: {time.monotonic() - began:.0f} s", flush=True)
        return target

    with ThreadPoolExecutor(processes) as pool:
        return [found for found in pool.map(search_some, range(0, len(seeds), 250)) if found is not None]


def profiles_of(files: list[Path]) -> tuple[int, list[Profile]]:
    """The number of alignments in the files of :func:`search`, and the profiles of those that are deep enough."""
    blocks = [block for file in files for block in file.read_text().split("\0")]
    with ProcessPoolExecutor() as pool:
        found = pool.map(profile, blocks, range(len(blocks)), chunksize=20)
        return len(blocks), [one for one in found if one is not None]


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


def trained(
    found: np.ndarray, weights: np.ndarray, n: int, passes: int, device: str
) -> tuple[np.ndarray, np.ndarray, float]:
    """Logarithms of priors (n,) and of columns (n, 13, 20), and the mean logarithm of the likelihood of a window."""
    order = np.random.default_rng(SEED).permutation(len(found))
    seen = torch.from_numpy(found[order].reshape(-1, WIDTH * 20)).to(device)
    observations = torch.from_numpy(weights[order]).to(device)[:, None]
    usual = torch.from_numpy(BACKGROUND.astype(np.float32)).to(device)
    of_places = CENTRAL_WEIGHT * DECAY ** (torch.arange(WIDTH, device=device) - WIDTH // 2).abs()
    columns = (seen[:n].float().reshape(-1, WIDTH, 20) + 0.4 * usual) / 1.4
    priors = torch.full((n,), 1 / n, device=device)
    for number in range(passes):
        table = (columns.log() * of_places[:, None]).reshape(n, -1).T.contiguous()
        counts, sums = torch.zeros((n, WIDTH * 20), device=device), torch.zeros(n, device=device)
        likelihood = 0.0
        for start in range(0, len(seen), 32768):
            some, of_some = seen[start : start + 32768].float(), observations[start : start + 32768]
            shares = of_some * (some @ table) + priors.log()
            total = torch.logsumexp(shares, 1, keepdim=True)
            likelihood += float(total.sum())
            shares = (shares - total).exp() * of_some
            counts += shares.T @ some
            sums += shares.sum(0)
        columns = (counts.reshape(-1, WIDTH, 20) + PSEUDOCOUNTS * usual) / (sums + PSEUDOCOUNTS)[:, None, None]
        priors = (sums + 1e-3) / (sums + 1e-3).sum()
        print(f"pass {number + 1}: {likelihood / len(seen):.3f}", flush=True)
    return priors.log().cpu().numpy(), columns.log().cpu().numpy(), likelihood / len(seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proteins", type=Path, help="FASTA of representatives of clusters, plain or .xz")
    parser.add_argument("--work", type=Path, required=True, help="folder for the database and the alignments")
    parser.add_argument("--seeds", type=int, default=12_000)
    parser.add_argument("--contexts", type=int, default=6400)
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--processes", type=int, default=1, help="searches at a time")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--out", type=Path, required=True, help="the library")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    fitting = [one for one in records(options.proteins) if 60 <= len(one[1]) <= 600]
    chosen = np.random.default_rng(SEED).permutation(len(fitting))[: options.seeds].tolist()
    seeds = [fitting[index] for index in chosen]
    files = search(options.proteins, seeds, options.work, options.engine, float("inf"), options.processes)
    n_alignments, profiles = profiles_of(files)
    found, weights = windows(profiles)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    priors, columns, likelihood = trained(found, weights, options.contexts, options.passes, device)
    in_units = [
        np.clip(np.rint(-FILE_UNITS * one), 0, 255).astype(np.uint8) for one in (priors - priors.max(), columns)
    ]
    # Not compressed: libraries for compression make other bytes of the same arrays.
    np.savez(options.out, priors=in_units[0], columns=in_units[1])
    summary = {
        "proteins": options.proteins.name,
        "sha256": hashlib.sha256(options.proteins.read_bytes()).hexdigest(),
        "seed_of_random_numbers": SEED,
        "alignments": n_alignments,
        "profiles": len(profiles),
        "mean_depth": round(float(np.mean([one.depth for one in profiles])), 3),
        "windows": len(found),
        "contexts": options.contexts,
        "likelihood": round(likelihood, 3),
        "torch": torch.__version__,
    }
    options.out.with_name("training.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()

"""Train the model of context columns (``swsearch/query/columns.npz``): needs PyTorch, which the program does not.

    python benchmarks/train_columns.py swissprot.fasta.xz --work build/columns --out build/columns/result

1. ``swsearch query --iterations 3`` searches random proteins of a database (60 to 700 residues, the *seeds*) in the
   whole database; its alignments (``--format a3m``) are kept under ``--work``.
2. Each alignment becomes a profile: rows that cover half of the seed, weights of Henikoff and Henikoff 1994 (doi
   10.1016/0022-2836(94)90032-9), columns that the rows of 30 % of the weight have. The effective number of sequences is
   the exponential of the mean entropy of these columns; profiles below 2.5 are left out.
3. A network is trained that predicts a column from the residues around it: it sees a window of one sequence (the seed,
   or a homologue in the same columns), and has a table of the residues at each place, two layers of clipped sums, and
   the exponentials of 20 sums.
4. It is judged by columns that no model has seen: seeds that are connected by alignments are held out together. The
   figure is the mean of Σ f(a) log2(t(a) / p(a)) over the columns, in bits, weighted by the square root of the
   effective number of sequences, where f is the column, t what the model says of the seed alone, and p the
   composition of natural proteins.

``--out`` receives ``columns-NAME.npz`` for each network, ``training.json`` with the figures, the
SHA-256 of the data, the seeds of the random numbers and the options. A model file has int16 weights, so the program
computes with integers. Sampled reversed proteins for the calibration of E-values (``decoys``) are in the file, too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from train_contexts import (
    BACKGROUND,
    CODE,
    LETTERS,
    OTHER,
    ROWS_PER_PROFILE,
    SEED,
    Profile,
    profiles_of,
    records,
    search,
)

LEVELS = 256
"""Units of an activation, and of the weights of the first layer."""
FINE = 1024
"""Units of the weights of the later layers."""
CLIP = 1023
"""Largest activation, in units."""
N_DECOYS = 256


# --- Profiles ---


def held_out(profiles: list[Profile], share: float) -> np.ndarray:
    """Whether each profile is held out: all those that alignments connect with each other, or none of them."""
    parent = list(range(len(profiles)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    seen: dict[str, int] = {}
    for index, one in enumerate(profiles):
        for name in one.names:
            parent[root(index)] = root(seen.setdefault(name, index))
    roots = [root(index) for index in range(len(profiles))]
    sizes = np.bincount(roots, minlength=len(profiles))
    chosen, total = set(), 0
    for group in np.random.default_rng(SEED + 1).permutation(np.unique(roots)).tolist():
        if sizes[group] <= max(1, 0.02 * len(profiles)) and total < share * len(profiles):
            chosen.add(group)
            total += sizes[group]
    return np.array([group in chosen for group in roots])


# --- Data on the device ---


class Windows:
    """Windows of rows and the columns that belong to them."""

    def __init__(self, profiles: list[Profile], n_rows: int, device: str, reach: int = 32) -> None:
        letters, places, targets, weights, columns = [], [], [], [], []
        start, at = 0, reach
        for one in profiles:
            columns.append(one.columns)
            for codes, column in one.rows[:n_rows]:
                letters += [np.full(reach, OTHER, np.uint8), codes]
                use = (column >= 0) & one.is_filled[np.maximum(column, 0)] & (codes < 20)
                places.append(at + np.flatnonzero(use))
                targets.append(start + column[use])
                weights.append(np.full(int(use.sum()), min(one.depth, 8.0) ** 0.5, np.float32))
                at += reach + len(codes)
            start += len(one.columns)
        letters.append(np.full(reach, OTHER, np.uint8))
        self.letters = torch.from_numpy(np.concatenate(letters)).to(device)
        self.places = torch.from_numpy(np.concatenate(places)).to(device)
        self.targets = torch.from_numpy(np.concatenate(targets).astype(np.int64)).to(device)
        self.weights = torch.from_numpy(np.concatenate(weights)).to(device)
        self.columns = torch.from_numpy(np.concatenate(columns)).to(device)

    def window(self, index: torch.Tensor, width: int) -> torch.Tensor:
        offsets = torch.arange(width, device=index.device) - width // 2
        return self.letters[self.places[index][:, None] + offsets].long()


def bits(predicted: torch.Tensor, columns: torch.Tensor, weights: torch.Tensor) -> float:
    """Weighted mean of Σ f log2(t / p)."""
    p = torch.tensor(BACKGROUND, dtype=torch.float32, device=predicted.device)
    each = (columns * torch.log2(predicted.clamp_min(1e-9) / p)).sum(dim=1)
    return float((each * weights).sum() / weights.sum())


# --- The network ---


class Network(torch.nn.Module):
    def __init__(self, width: int, first: int, second: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.width = width
        self.dropout = torch.nn.Dropout(dropout)
        self.first = torch.nn.Linear(width * 21, first)
        self.second = torch.nn.Linear(first, second)
        self.third = torch.nn.Linear(second, 20)
        with torch.no_grad():
            self.first.weight.mul_(4.0)  # one residue of 21 letters is present at each place

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.one_hot(windows, 21).flatten(1).to(self.first.weight.dtype)
        x = self.dropout(self.first(x).clamp(0, CLIP / LEVELS))
        return self.third(self.second(x).clamp(0, CLIP / LEVELS))

    def integers(self) -> dict[str, np.ndarray]:
        """The weights as the program reads them; sums of the last layer are logarithms to base 2."""

        def units(tensor: torch.Tensor, scale: float) -> np.ndarray:
            return np.rint(tensor.detach().double().cpu().numpy() * scale)

        log2e = float(np.log2(np.e))
        first = units(self.first.weight, LEVELS).T.reshape(self.width, 21, -1)
        bias = units(self.first.bias, LEVELS)
        assert np.abs(first).max(axis=1).sum(axis=0).max() + np.abs(bias).max() < 32767, "the first layer overflows"
        found = {"first": first, "first_bias": bias}
        found["second"], found["third"] = units(self.second.weight, FINE), units(self.third.weight, FINE * log2e)
        for name, layer, scale in (("second", self.second, FINE), ("third", self.third, FINE * log2e)):
            found[f"{name}_bias"] = units(layer.bias, scale * LEVELS)
            most = np.abs(found[name]).sum(axis=1) * CLIP + np.abs(found[f"{name}_bias"])
            assert most.max() < 2**31, f"the sums of the {name} layer overflow"
            assert np.abs(found[name]).max() < 2**15, f"the weights of the {name} layer overflow"
        types = {"second_bias": np.int32, "third_bias": np.int32}
        return {name: value.astype(types.get(name, np.int16)) for name, value in found.items()}


def integer_columns(model: dict[str, np.ndarray], windows: np.ndarray) -> np.ndarray:
    """The columns that the integer weights predict, computed plainly."""
    total = model["first_bias"].astype(np.int64) + sum(
        model["first"][place].astype(np.int64)[windows[:, place]] for place in range(windows.shape[1])
    )
    hidden = np.clip(total, 0, CLIP) @ model["second"].astype(np.int64).T + model["second_bias"]
    sums = np.clip(hidden >> 10, 0, CLIP) @ model["third"].astype(np.int64).T + model["third_bias"]
    odds = np.exp2((sums - sums.max(axis=1, keepdims=True)) / 2**18)
    return odds / odds.sum(axis=1, keepdims=True)


def train(
    data: Windows, valid: Windows, shape: tuple[int, int, int], steps: int, dropout: float, batch: int
) -> tuple[Network, float]:
    """A network, and its bits on the held-out columns."""
    torch.manual_seed(SEED)
    device = str(data.letters.device)
    network = Network(*shape, dropout).to(device)
    decayed = [layer.weight for layer in (network.first, network.second, network.third)]
    biases = [layer.bias for layer in (network.first, network.second, network.third)]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": biases, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps, pct_start=0.1)
    for _ in range(steps):
        index = torch.randint(len(data.places), (batch,), device=device)
        sums = network(data.window(index, network.width))
        columns = data.columns[data.targets[index]]
        loss = -(columns * torch.log_softmax(sums, dim=1)).sum(dim=1)
        loss = (loss * data.weights[index]).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
    network.eval()
    with torch.no_grad():
        index = torch.arange(len(valid.places), device=device)
        predicted = torch.cat(
            [torch.softmax(network(valid.window(part, network.width)), 1) for part in index.split(65536)]
        )
    return network, bits(predicted, valid.columns[valid.targets], valid.weights)


def decoys(proteins: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    """Reversed proteins of 100 to 600 residues: their residue codes, and where each ends."""
    fitting = [letters for _, letters in proteins if 100 <= len(letters) <= 600 and set(letters) <= set(LETTERS)]
    chosen = np.random.default_rng(SEED + 2).choice(len(fitting), min(N_DECOYS, len(fitting)), replace=False)
    codes = [CODE[np.frombuffer(fitting[index][::-1].encode(), dtype=np.uint8)] for index in chosen.tolist()]
    return {"decoys": np.concatenate(codes), "decoy_ends": np.cumsum([len(one) for one in codes]).astype(np.int32)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proteins", type=Path, help="FASTA, plain or .xz")
    parser.add_argument("--work", type=Path, required=True, help="folder for the database and the alignments")
    parser.add_argument("--out", type=Path, required=True, help="folder for the models")
    parser.add_argument("--seeds", type=int, default=5000)
    parser.add_argument("--search-seconds", type=float, default=1e9, help="begin no search after this time")
    parser.add_argument("--processes", type=int, default=1, help="searches at a time")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--batch", type=int, default=16384)
    parser.add_argument("--networks", default="13x256x32x4000x0.1", help="width, units, units, steps, dropout")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many of the seeds, of an earlier search")
    parser.add_argument("--alignments", type=Path, nargs="*", default=[], help="alignments of an earlier search")
    parser.add_argument("--train-seconds", type=float, default=1e9, help="train no further network after this time")
    options = parser.parse_args()
    for folder in (options.work, options.out):
        folder.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    proteins = records(options.proteins)
    fitting = [one for one in proteins if 60 <= len(one[1]) <= 700]
    chosen = np.random.default_rng(SEED).choice(len(fitting), min(options.seeds, len(fitting)), replace=False)
    seeds = [fitting[index] for index in chosen[options.skip :].tolist()]
    files = search(options.proteins, seeds, options.work, options.engine, options.search_seconds, options.processes)
    n_alignments, profiles = profiles_of([*options.alignments, *files])
    apart = held_out(profiles, 0.06)
    learned = [one for one, out in zip(profiles, apart, strict=True) if not out]
    tested = [one for one, out in zip(profiles, apart, strict=True) if out]
    print(f"{len(profiles)} profiles of {n_alignments} alignments, {len(tested)} held out", flush=True)
    data, valid = Windows(learned, ROWS_PER_PROFILE, device), Windows(tested, 1, device)
    columns = valid.columns[valid.targets]
    figures: dict[str, Any] = {
        "proteins": options.proteins.name,
        "sha256": hashlib.sha256(options.proteins.read_bytes()).hexdigest(),
        "sequences": len(proteins),
        "residues": sum(len(letters) for _, letters in proteins),
        "seeds": n_alignments,
        "seed_of_random_numbers": SEED,
        "profiles": len(profiles),
        "mean_depth": round(float(np.mean([one.depth for one in profiles])), 3),
        "held_out_profiles": len(tested),
        "held_out_columns": len(valid.places),
        "training_windows": len(data.places),
        "torch": torch.__version__,
        "bits": {"the columns themselves": round(bits(columns, columns, valid.weights), 4)},
    }
    began = time.monotonic()

    def note(name: str, value: float) -> None:
        figures["bits"][name] = round(value, 4)
        print(f"{name}: {value:.4f} bits, {time.monotonic() - began:.0f} s", flush=True)
        (options.out / "training.json").write_text(json.dumps(figures, indent=2) + "\n")

    reversed_proteins = decoys(proteins)
    index = torch.arange(len(valid.places), device=device)
    windows = valid.window(index, 31).cpu().numpy()
    for text in options.networks.split(","):
        if time.monotonic() - began > options.train_seconds:
            break
        width, first, second, steps = map(int, text.split("x")[:4])
        dropout = float(text.split("x")[4])
        network, value = train(data, valid, (width, first, second), steps, dropout, options.batch)
        note(f"network {text}", value)
        model = network.integers()
        middle = windows[:, (31 - width) // 2 : (31 - width) // 2 + width]
        some = np.random.default_rng(SEED).choice(len(middle), min(20_000, len(middle)), replace=False)
        exact = torch.from_numpy(integer_columns(model, middle[some])).float().to(device)
        note(f"network {text}, integers", bits(exact, columns[some], valid.weights[some]))
        summary = json.dumps(figures | {"network": text, "batch": options.batch})
        arrays = {**model, **reversed_proteins, "training": np.frombuffer(summary.encode(), dtype=np.uint8)}
        np.savez(options.out / f"columns-{text}.npz", **arrays)  # not compressed, as in train_contexts.py


if __name__ == "__main__":
    main()

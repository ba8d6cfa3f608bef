"""Depth of the alignments of iterated searches, beside psiblast, jackhmmer and hhblits.

    python benchmarks/benchmark_depth.py scop40.fasta.gz background.fasta.gz --work build/iterations [--queries 20]

The first domains of the sample of ``benchmark_iterations.py`` are searched in the domains and the background proteins
with three rounds. The subjects with an E-value up to 0.001 in the last round are aligned to the query; the longest row
of each subject counts. Writes ``benchmarks/results/depth.json``, for each tool the values of each query and their mean:

sequences
    Number of subjects.
depth
    Mean number of residues at a position of the query.
neff
    Effective number of sequences: the sum over the rows of 1 / (number of rows, itself included, that have the same
    residue in at least 62 % of the positions at which both have one).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from benchmark_iterations import INCLUSION, ROUNDS, SEED, Data, call, prepare, versions
from numpy.typing import NDArray
from provenance import commit, processor, write_result
from scope import records

import swsearch
from swsearch.query.multiple_alignment import anchored_rows
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN

Rows = dict[str, str]
"""The row of each subject: a letter or ``-`` for each position of the query."""

IDENTITY = 0.62


def kept(rows: Rows, subject: str, row: str) -> None:
    """Keep the longest row of a subject."""
    if len(row) - row.count("-") > len(rows.get(subject, "")) - rows.get(subject, "").count("-"):
        rows[subject] = row


def psiblast(data: Data, query: Path, length: int) -> Rows:
    text = call(
        "psiblast", "-query", query, "-db", data.work / "blast", "-num_iterations", ROUNDS[-1], "-num_threads", 1,
        "-inclusion_ethresh", INCLUSION, "-evalue", INCLUSION, "-max_target_seqs", 30_000,
        "-outfmt", "7 sseqid qstart qseq sseq",
    )  # fmt: skip
    rows: Rows = {}
    for line in text.splitlines():
        if line.startswith("# Iteration"):
            rows = {}
        elif line.count("\t") == 3:
            subject, start, aligned_query, aligned = line.split("\t")
            letters = "".join(s for q, s in zip(aligned_query, aligned, strict=True) if q != "-")
            kept(rows, subject, ("-" * (int(start) - 1) + letters).ljust(length, "-"))
    return rows


def jackhmmer(data: Data, query: Path, length: int) -> Rows:
    path = query.with_suffix(".sto")
    call("jackhmmer", "-N", ROUNDS[-1], "--incE", INCLUSION, "--cpu", 0, "-A", path, "-o", "/dev/null", query,
         data.all_fasta)  # fmt: skip
    blocks: dict[str, str] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("#=GC RF") or (line and not line.startswith(("#", "//"))):
            name, part = line.rsplit(None, 1)
            blocks[name] = blocks.get(name, "") + part
    reference = blocks.pop("#=GC RF", "")
    columns = [column for column, mark in enumerate(reference) if mark == "x"]
    if blocks and len(columns) != length:
        raise ValueError(f"{query}: {len(columns)} columns of the model, {length} positions of the query")
    rows: Rows = {}
    for name, row in blocks.items():
        if "/" in name:  # the query itself has no range
            kept(rows, name.rsplit("/", 1)[0], "".join(row[column] for column in columns).upper().replace(".", "-"))
    return rows


def hhblits(data: Data, query: Path, length: int) -> Rows:
    """On the database of single sequences of ``benchmark_iterations.py``."""
    path = query.with_suffix(".a3m")
    call("hhblits", "-i", query, "-d", data.work / "hhsuite" / "db", "-n", ROUNDS[-1], "-e", INCLUSION, "-cpu", 1,
         "-o", "/dev/null", "-oa3m", path)  # fmt: skip
    rows: Rows = {}
    for name, letters in list(records(path))[1:]:  # the first is the query
        kept(rows, name.split()[0], "".join(one for one in letters if not one.islower()))
    return rows


def ours(data: Data, query: Path, length: int, *, sensitive: bool = False) -> Rows:
    options = swsearch.SearchOptions(top=10_000, evalue=INCLUSION, iterations=ROUNDS[-1], sensitive=sensitive)
    (result,) = swsearch.search_database(query, data.work / "swsearch.db", options, engine="cpu", threads=1)
    codes = anchored_rows(length, result.hits)
    letters = [
        "".join(PROTEIN.letters[code] if code < len(PROTEIN.letters) else "-" for code in row)
        for row in (codes & CODE_MASK).tolist()
    ]
    rows: Rows = {}
    for hit, row in zip(result.hits, letters, strict=True):
        kept(rows, hit.subject_id, row)
    return rows


TOOLS: dict[str, Callable[[Data, Path, int], Rows]] = {
    "psiblast": psiblast,
    "jackhmmer": jackhmmer,
    "hhblits": hhblits,
    "swsearch": ours,
    "swsearch sensitive": partial(ours, sensitive=True),
}


def measured(rows: Rows) -> dict[str, float]:
    """Number of sequences, depth and effective number of the rows of an alignment."""
    if not rows:
        return {"sequences": 0, "depth": 0.0, "neff": 0.0}
    table: NDArray[np.uint8] = np.array([list(row.encode()) for row in rows.values()], dtype=np.uint8)
    present = table != ord("-")
    neff = 0.0
    for row, filled in zip(table, present, strict=True):
        common = present & filled
        same = (common & (table == row)).sum(axis=1)
        n_common = common.sum(axis=1)
        neff += 1 / max(1, int(((same >= IDENTITY * n_common) & (n_common > 0)).sum()))
    return {"sequences": len(rows), "depth": round(float(present.sum() / table.shape[1]), 2), "neff": round(neff, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("domains", type=Path)
    parser.add_argument("background", type=Path)
    parser.add_argument(
        "--work", type=Path, required=True, help="folder of benchmark_iterations.py, which made its files"
    )
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "depth.json")
    options = parser.parse_args()
    data = prepare(options.domains, options.background, options.work)
    if not (data.work / "swsearch.db").exists():
        swsearch.build_database(data.all_fasta, data.work / "swsearch.db")
    chosen = np.random.default_rng(SEED).choice(len(data.sccs), 300, replace=False).tolist()[: options.queries]
    values: dict[str, dict[str, dict[str, float]]] = {}
    for tool in options.tools.split(","):
        values[tool] = {}
        for index in chosen:
            name = list(data.sccs)[index]
            query = data.queries([name], data.work / "depth.fasta")
            values[tool][name] = measured(TOOLS[tool](data, query, len(data.letters[name])))
        means = {
            key: round(float(np.mean([row[key] for row in values[tool].values()])), 2)
            for key in ("sequences", "depth", "neff")
        }
        values[tool]["mean"] = means
        print(tool, json.dumps(means), flush=True)
    result = {
        "data": f"{options.domains.name} and {options.background.name}",
        "rounds": ROUNDS[-1],
        "inclusion E-value": INCLUSION,
        "seed": SEED,
        "cpu": processor(),
        "commit": commit(),
        "versions": versions(),
        "tools": values,
    }
    write_result(result, options.out)


if __name__ == "__main__":
    main()

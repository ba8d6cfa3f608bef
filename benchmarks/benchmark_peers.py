"""Complete protein searches beside other programs: time of the whole command, and how many subjects each finds.

    python benchmarks/benchmark_peers.py QUERIES.fasta PROTEINS.fasta[.gz] [--queries 200] [--repeat 3]
        [--out RESULT.json]

Each program searches with the first query alone, and with the first ``--queries`` queries in one command, with the
options of its manual for a search of proteins and a limit of E <= 0.001, on all cores. Databases are built before, and
timed too. ``seconds`` is the elapsed time and ``processor_seconds`` the processor time of the command with its
children, both the smallest of ``--repeat`` runs, in which the programs take turns; the command with all queries runs
once. ``found`` is the number of pairs of a query and a subject that the program reports, the query itself not
counted; ``missed`` is the number of those that swsearch reports and the program does not. Programs that are not
installed are left out, and the output names them. ``make peers`` runs the script.

On a machine with a GPU, swsearch uses it, and MMseqs2 is also measured with ``--gpu 1``, for which its program must be
built (``cmake -DENABLE_CUDA=1``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provenance import device_of, header, write_result

from swsearch.threads import usable_cores

EVALUE = "0.001"
MOST_SUBJECTS = "100000"
"""Every list is complete: no program may cut it."""

Command = list[str | Path]


@dataclass(frozen=True)
class Program:
    """One program: its executable, the command that builds its database and the one that searches.

    ``search`` takes a file of queries and the file for the table; ``pairs`` reads query and subject from a line of it.
    """

    name: str
    executable: str
    version: tuple[str, ...]
    build: Command
    search: Callable[[Path, Path], Command]
    pairs: Callable[[str], tuple[str, str] | None]


def of_table(line: str) -> tuple[str, str] | None:
    """Query and subject of a line of BLAST's table."""
    fields = line.split("\t")
    return None if line.startswith("#") or len(fields) < 2 else (fields[0], fields[1])


def of_domain_table(line: str) -> tuple[str, str] | None:
    """Query and subject of a line of HMMER's table of sequences."""
    fields = line.split()
    return None if line.startswith("#") or len(fields) < 3 else (fields[2], fields[0])


def programs(fasta: Path, folder: Path) -> Iterator[Program]:
    """The programs, with their databases in ``folder``."""
    threads = str(usable_cores())
    own = folder / "own.db"
    for mode in ("", "--sensitive"):
        yield Program(
            f"swsearch {mode}".strip(), "swsearch", ("--version",),
            ["swsearch", "index", fasta, "-o", own, "--quiet", "--force"],
            lambda queries, table, mode=mode: [  # type: ignore[misc]  # mypy infers no type of a default
                "swsearch", "query", queries, own, *([mode] if mode else []), "--evalue", EVALUE,
                "--top", MOST_SUBJECTS, "--format", "blast6", "--out", table, "--store", "none", "--quiet",
            ],
            of_table,
        )  # fmt: skip
    blast = folder / "blast"
    yield Program(
        "blastp", "blastp", ("-version",), ["makeblastdb", "-in", fasta, "-dbtype", "prot", "-out", blast],
        lambda queries, table: [
            "blastp", "-query", queries, "-db", blast, "-evalue", EVALUE, "-max_target_seqs", MOST_SUBJECTS,
            "-num_threads", threads, "-outfmt", "6", "-out", table,
        ],
        of_table,
    )  # fmt: skip
    yield Program(
        "phmmer", "phmmer", ("-h",), [],
        lambda queries, table: ["phmmer", "--noali", "--cpu", threads, "-E", EVALUE, "--tblout", table, queries, fasta],
        of_domain_table,
    )  # fmt: skip
    yield Program(
        "ssearch36", "ssearch36", ("-h",), [],
        lambda queries, table: [
            "sh", "-c",
            f"ssearch36 -q -T {threads} -s BL62 -f -11 -g -1 -E {EVALUE} -m 8 -d 0 '{queries}' '{fasta}' > '{table}'",
        ],
        of_table,
    )  # fmt: skip
    diamond = folder / "diamond.dmnd"
    for mode in ("", "--sensitive", "--ultra-sensitive"):
        yield Program(
            f"diamond {mode}".strip(), "diamond", ("version",), ["diamond", "makedb", "--in", fasta, "-d", diamond],
            lambda queries, table, mode=mode: [  # type: ignore[misc]
                "diamond", "blastp", "-q", queries, "-d", diamond, "-e", EVALUE, "-k", "0", "-p", threads,
                *([mode] if mode else []), "-o", table,
            ],
            of_table,
        )  # fmt: skip
    mmseqs = folder / "mmseqs"
    for sensitivity in ("5.7", "7.5"):
        yield Program(
            f"mmseqs -s {sensitivity}", "mmseqs", ("version",), ["mmseqs", "createdb", fasta, mmseqs],
            lambda queries, table, s=sensitivity: [  # type: ignore[misc]
                "mmseqs", "easy-search", queries, mmseqs, table, folder / f"tmp-{s}", "-s", s, "-e", EVALUE,
                "--max-seqs", MOST_SUBJECTS, "--threads", threads,
            ],
            of_table,
        )  # fmt: skip
    if has_gpu():
        padded = folder / "mmseqs-padded"
        yield Program(
            "mmseqs --gpu 1", "mmseqs", ("version",),
            ["sh", "-c", f"mmseqs createdb '{fasta}' '{mmseqs}' && mmseqs makepaddedseqdb '{mmseqs}' '{padded}'"],
            lambda queries, table: [
                "mmseqs", "easy-search", queries, padded, table, folder / "tmp-gpu", "--gpu", "1", "-e", EVALUE,
                "--max-seqs", MOST_SUBJECTS, "--threads", threads,
            ],
            of_table,
        )  # fmt: skip


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU."""
    return shutil.which("nvidia-smi") is not None


def run(command: Command) -> tuple[float, float]:
    """Elapsed and processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    elapsed = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def version_of(program: Program) -> str:
    """The first line with a version of what the program says of itself, or else its first line."""
    said = subprocess.run([program.executable, *program.version], check=False, capture_output=True, text=True)
    lines = [line.strip() for line in (said.stdout + said.stderr).splitlines()]
    return next((line for line in lines if re.search(r"\d+\.\d|^\d", line)), lines[0] if lines else "")


def pairs_found(program: Program, table: Path) -> set[tuple[str, str]]:
    """The pairs of a query and another sequence in a table."""
    with table.open(encoding="utf-8", errors="replace") as lines:
        return {pair for line in lines if (pair := program.pairs(line)) is not None and pair[0] != pair[1]}


def first_queries(source: Path, n: int, target: Path) -> None:
    """Write the first ``n`` records of a FASTA file."""
    records = source.read_text(encoding="utf-8").split(">")[1 : n + 1]
    target.write_text("".join(f">{record}" for record in records), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fasta_queries", type=Path)
    parser.add_argument("proteins", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    # The program of this environment, compiled modules and all, as its users start it.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fasta, one, many = folder / "proteins.fasta", folder / "one.fasta", folder / "many.fasta"
        opened = gzip.open if options.proteins.suffix == ".gz" else open
        with opened(options.proteins, "rb") as source, fasta.open("wb") as target:
            shutil.copyfileobj(source, target)
        first_queries(options.fasta_queries, 1, one)
        first_queries(options.fasta_queries, options.queries, many)
        everyone = list(programs(fasta, folder))
        chosen = [program for program in everyone if shutil.which(program.executable)]
        rows: dict[str, dict[str, Any]] = {}
        for program in chosen:
            build = run(program.build) if program.build else (0.0, 0.0)
            rows[program.name] = {
                "version": version_of(program),
                "build_seconds": build[0],
                "build_processor_seconds": build[1],
            }
        times: dict[str, list[tuple[float, float]]] = {program.name: [] for program in chosen}
        for _ in range(options.repeat):
            for program in chosen:
                times[program.name].append(run(program.search(one, folder / "one.tsv")))
        own: set[tuple[str, str]] = set()
        for program in chosen:
            elapsed, processor = run(program.search(many, folder / "many.tsv"))
            found = pairs_found(program, folder / "many.tsv")
            own = own or found  # swsearch is the first
            rows[program.name] |= {
                "one_seconds": min(seconds for seconds, _ in times[program.name]),
                "one_processor_seconds": min(seconds for _, seconds in times[program.name]),
                "many_seconds": elapsed,
                "many_processor_seconds": processor,
                "found": len(found),
                "missed": len(own - found),
            }
            print(program.name, json.dumps(rows[program.name]), flush=True)
    report = {
        **header("peers"),
        **device_of("cuda" if has_gpu() else "cpu"),
        "cores": usable_cores(),
        "n_queries": options.queries,
        "evalue": float(EVALUE),
        "missing": sorted({program.name for program in everyone} - {program.name for program in chosen}),
        "programs": rows,
    }
    write_result(report, options.out)


if __name__ == "__main__":
    main()

"""``swsearch bench``: how fast this machine's CPU engine is, beside a peer if wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench(
    fasta: Annotated[
        Path | None, typer.Argument(metavar="[FASTA]", help="Subjects to measure with. [generated proteins]")
    ] = None,
    residues: Annotated[int, typer.Option(min=1, help="Residues of generated subjects.")] = 10_000_000,
    lengths: Annotated[str, typer.Option(help="Query lengths, separated by commas.")] = "40,144,375,1000,5478",
    instruction_sets: Annotated[
        str, typer.Option(help="Instruction sets, separated by commas: best, all, or by name.")
    ] = "best",
    threads: Annotated[str, typer.Option(help="Thread counts, separated by commas.")] = "1",
    peer: Annotated[
        list[str] | None, typer.Option(help="Measure this program beside: pyopal or swipe; may be given twice.")
    ] = None,
) -> None:
    """Measure cells a second (GCUPS) by query length, instruction set and thread count.

    Both rates are printed: by wall time, and by CPU time of one core. "reported" asks for the scores a search reports.

    Example: swsearch bench --residues 20000000 --threads 1,2 --peer pyopal
    """
    from swsearch.cli.output import say
    from swsearch.engine.cpu.engine import usable_instruction_sets
    from swsearch.errors import InputError
    from swsearch.search.bench import (
        Measurement,
        generated_proteins,
        generated_query,
        measure,
        workload_of_file,
    )
    from swsearch.search.peers import Peer, peer_missing

    for name in peer or []:
        missing = peer_missing(name)
        if missing:
            raise InputError(f"--peer {name}: {missing}")
    query_lengths = _numbers("--lengths", lengths)
    thread_counts = _numbers("--threads", threads)
    usable = usable_instruction_sets()
    chosen = {"best": usable[:1], "all": usable}.get(instruction_sets, instruction_sets.split(","))
    workload = generated_proteins(residues) if fasta is None else workload_of_file(fasta)
    subjects = workload.partition
    say(f"{workload.name}: {len(subjects):,} subjects, {subjects.n_residues:,} residues; {workload.scheme}")

    def show(found: Measurement, peers: dict[str, float]) -> None:
        ratios = "".join(f"{found.core_gcups / rate:8.1f} x {name}" for name, rate in peers.items())
        print(
            f"{found.query_length:>6} {found.program:<9} {found.instruction_set:<11} {found.threads:>7} "
            f"{'reported' if found.floored else 'all':<9}{found.gcups:>8.1f} {found.core_gcups:>8.1f}{ratios}",
            flush=True,
        )

    print(f"{'query':>6} {'program':<9} {'instructions':<11} threads scores       wall  CPU second")
    opened = {name: Peer(name, workload) for name in peer or []}
    try:
        for length in query_lengths:
            query = generated_query(workload.scheme.alphabet, length)
            rates: dict[str, float] = {}
            for name, program in opened.items():
                found = program.measure(query)
                show(found, {})
                rates[name] = found.core_gcups
            for instruction_set in chosen:
                for n in thread_counts:
                    for floored in (False, True):
                        show(
                            measure(workload, query, threads=n, instruction_set=instruction_set, floored=floored),
                            rates,
                        )
    finally:
        for program in opened.values():
            program.close()


def _numbers(option: str, text: str) -> list[int]:
    """Whole numbers of at least 1, separated by commas."""
    from swsearch.errors import InputError

    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise InputError(f"{option} {text!r}: give whole numbers of at least 1, separated by commas")
    return [int(word) for word in words]

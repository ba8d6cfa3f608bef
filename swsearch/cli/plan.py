"""``swsearch plan``: memory, time and cost of a large search before it is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import options
from swsearch.words import counted, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swsearch.planning import DatabaseSize, Machine, Plan
    from swsearch.typing import Lengths

_LARGEST = 10**18


def _count(option: str, text: str) -> int:
    """A whole number, such as ``70e9``."""
    from swsearch.errors import InputError

    try:
        value = float(text.replace("_", "").replace(",", ""))
    except ValueError:
        value = float("nan")
    if not (1 <= value <= _LARGEST and value == int(value)):
        raise InputError(f"{option} {quoted(text)} is not a whole number from 1; write, for example, 70e9")
    return int(value)


def _rate(option: str, value: float | None) -> None:
    from swsearch.errors import InputError

    if value is not None and not 0 < value < float("inf"):
        raise InputError(f"{option} {value:g} is not a positive number")


def plan(
    database: Annotated[
        str | None, typer.Argument(metavar="[DATABASE]", help="A FASTA file or a packed database, whose size is read.")
    ] = None,
    queries: Annotated[str, typer.Option(help="Number of queries, such as 1e6.")] = "1",
    query_length: Annotated[int, typer.Option(min=1, help="Mean length of the queries.")] = 350,
    residues: Annotated[str | None, typer.Option(help="Size in place of DATABASE, such as 70e9.")] = None,
    sequences: Annotated[str | None, typer.Option(help="Number of sequences, with --residues.")] = None,
    gpus: Annotated[str | None, typer.Option(help="GPUs, such as 8xH200.")] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Cores, where the CPU searches.")] = None,
    gcups: Annotated[float | None, typer.Option(help="Rate of a GPU, in billions of cells a second.")] = None,
    gpu_memory: Annotated[float | None, typer.Option(help="Memory of a GPU, in GB.")] = None,
    price: Annotated[float | None, typer.Option(help="Price of a GPU for an hour.")] = None,
    disk_rate: Annotated[float, typer.Option(help="Speed of the disk, in GB/s.")] = 2.0,
    network_rate: Annotated[float, typer.Option(help="Speed of the network, in GB/s.")] = 1.25,
    format_name: options.TableFormat = "table",
) -> None:
    """Plan a large search: memory, placement on the GPUs, time and cost, and what these numbers rest on.

    With --gpus and --cores, both are planned, one after the other.

    Example: swsearch plan --residues 70e9 --sequences 200e6 --queries 1e6 --gpus 8xH200 --price 4
    """
    from swsearch.errors import InputError
    from swsearch.planning import Machine
    from swsearch.planning import plan as plan_search

    n_queries = _count("--queries", queries)
    if gpus is None:
        for option, value in (("--gcups", gcups), ("--gpu-memory", gpu_memory), ("--price", price)):
            if value is not None:
                raise InputError(f"{option} {value:g} is for GPUs; say --gpus")
    for option, value in (
        ("--gcups", gcups), ("--gpu-memory", gpu_memory), ("--price", price), ("--disk-rate", disk_rate),
        ("--network-rate", network_rate),
    ):  # fmt: skip
        _rate(option, value)
    machines = []
    if gpus is not None:
        machines.append(Machine.of_gpus(gpus, gcups, None if gpu_memory is None else gpu_memory * 1e9))
    if cores is not None:
        machines.append(Machine(None, cores))
    if not machines:
        raise InputError("give --gpus, such as 8xH200, or --cores")
    size = _size(database, residues, sequences)
    plans = [
        plan_search(
            size, machine, n_queries, query_length,
            price=price if machine.gpu else None, disk_rate=disk_rate * 1e9, network_rate=network_rate * 1e9,
        )
        for machine in machines
    ]  # fmt: skip
    if format_name == "json":
        _print_json(size, plans, n_queries, query_length)
        return
    _row("database", f"{counted(size.n_residues, 'residue')}, {counted(size.n_sequences, 'sequence')}")
    _row("queries", f"{n_queries:,} of {counted(query_length, 'residue')}")
    for machine, one in zip(machines, plans, strict=True):
        print()
        _print(machine, one)


def _size(database: str | None, residues: str | None, sequences: str | None) -> DatabaseSize:
    """The size that was given, or that of a file."""
    from swsearch.errors import InputError
    from swsearch.planning import DatabaseSize

    if (database is None) == (residues is None):
        raise InputError("give either a database or its size with --residues")
    if residues is not None:
        n_sequences = None if sequences is None else _count("--sequences", sequences)
        return DatabaseSize.of_counts(_count("--residues", residues), n_sequences)
    if sequences is not None:
        raise InputError("--sequences is for --residues; those of a database are counted")
    assert database is not None
    if "://" in database:
        raise InputError(f"{database}: a plan does not fetch a database; give its --residues and --sequences")
    if Path(database).is_dir():
        from swsearch.database.reader import PackedDatabase

        with PackedDatabase.open(database) as opened:
            n_sequences, n_residues, padded = _totals(partition.lengths for partition in opened.partitions())
    else:
        from swsearch.sequences.fasta import read_chunks

        n_sequences, n_residues, padded = _totals(chunk.lengths for chunk in read_chunks(database))
    if n_sequences == 0:
        raise InputError(f"{database}: there are no sequences to plan for")
    return DatabaseSize(n_residues, n_sequences, padded, f"counted in {Path(database).name}")


def _totals(blocks: Iterable[Lengths]) -> tuple[int, int, int]:
    """Numbers of sequences, residues and padded bytes of all blocks of lengths."""
    from swsearch.database.format import SUBJECT_ALIGNMENT

    n_sequences = n_residues = padded = 0
    for lengths in blocks:
        whole = lengths.astype("int64")
        n_sequences += len(whole)
        n_residues += int(whole.sum())
        padded += int((whole + -whole % SUBJECT_ALIGNMENT).sum())
    return n_sequences, n_residues, padded


def _print_json(size: DatabaseSize, plans: list[Plan], n_queries: int, query_length: int) -> None:
    from dataclasses import asdict

    from swsearch.cli.documents import write_document

    counts = {"residues": size.n_residues, "sequences": size.n_sequences}
    asked = {"queries": n_queries, "query_length": query_length}
    write_document({"database": counts, **asked, "plans": [asdict(one) for one in plans]})


def _print(machine: Machine, one: Plan) -> None:
    each = "GPU" if machine.gpu else "core"
    _row("machine", one.machine)
    size, unit = (1e9, "GB") if one.device_bytes >= 1e8 else (1e6, "MB")
    _row("memory", f"{one.device_bytes / size:,.2f} {unit}, {one.bytes_per_residue:.3f} bytes a residue")
    _row("placement", _placement(one))
    _row("rate", f"{one.gcups_each:,.0f} GCUPS a {each}, {one.gcups:,.0f} together")
    _row("a query", f"{one.query_seconds_each:.3g} s on one {each}, {one.query_seconds:.3g} s on all")
    disk, network = _duration(one.loading_disk_seconds), _duration(one.loading_network_seconds)
    _row("loading", f"{disk} from disk, {network} over the network")
    _row("total time", f"{_duration(one.total_seconds)}, loading from disk included")
    if one.cost is not None:
        _row("cost", f"{one.cost:,.2f}")
    for number, assumption in enumerate(one.assumptions):
        _row("assumed" if number == 0 else "", assumption)


def _placement(one: Plan) -> str:
    pieces = counted(one.n_pieces, "piece")
    return {
        "resident": "each GPU holds the database",
        "shared": "each GPU holds a share of the database",
        "streamed": f"fits a worker on one GPU, streamed to it in {pieces}",
        "sliced": f"too large for a worker on one GPU: swsearch index --slices {one.n_slices}; "
        f"each slice streamed in {pieces}",
        "host": "in the memory of the host",
    }[one.placement]


def _duration(seconds: float) -> str:
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.3g} s"


def _row(name: str, text: str) -> None:
    """A name and its value, in lines of at most 80 columns."""
    import textwrap

    print(
        textwrap.fill(
            f"{name:<12}{text}", 80, subsequent_indent=" " * 12, break_on_hyphens=False, break_long_words=False
        )
    )

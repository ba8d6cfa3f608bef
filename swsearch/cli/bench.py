"""``swsearch engines`` and ``swsearch bench``: which engines can be used on this machine, and how fast they are.

``bench`` measures the CPU engine, ``bench kernels`` all kernels.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from swsearch import __version__
from swsearch.cli import options
from swsearch.cli.command import CommandGroup, given_names
from swsearch.cli.output import result_stream, say
from swsearch.errors import InputError, SwSearchError
from swsearch.words import counted, quoted

if TYPE_CHECKING:
    from swsearch.bench.kernel_rates import KernelRow

app = CommandGroup(invoke_without_command=True)

PROGRAM: Final = f"swsearch {__version__}"
MEASURED_RESIDUES: Final = 2_000_000
MEASURED_QUERIES: Final = {"cpu": 1, "cuda": 128}
"""Number of queries in the call by which ``engines`` measures an engine: as many as keep it busy."""


def engines(format_name: options.TableFormat = "table") -> None:
    """Show which engines are built, which can be used here, what the others need, and how fast they are now.

    Example: swsearch engines

    Example: swsearch engines --format json
    """
    from swsearch.engine.registry import engine_infos

    infos = engine_infos()
    gcups: dict[str, float] = {}
    speeds: dict[str, str] = {}
    for name in (info.name for info in infos if info.usable and info.name in MEASURED_QUERIES):
        try:
            gcups[name] = _gcups(name)
            speeds[name] = f"; {gcups[name]:,.1f} GCUPS now"
        except SwSearchError as error:  # such as a GPU whose memory is in use
            speeds[name] = f"; not measured: {error.on_command_line()}"
    if format_name == "json":
        from swsearch.cli.documents import describe_engines, write_document

        write_document(describe_engines(infos, gcups))
        return
    for info in infos:
        state = "usable" if info.usable else "built, not usable here" if info.built else "not built"
        print(f"{info.name:<10} {state:<24} {info.detail + speeds.get(info.name, '') if info.usable else info.reason}")
    print(f"{'auto':<10} {next(info.name for info in infos if info.usable)}")


def _gcups(name: str) -> float:
    """The rate of all scores of proteins of 375 residues against generated ones, on all cores or the first GPU."""
    from swsearch.bench.workloads import gcups_of, generated_proteins, generated_query
    from swsearch.engine.registry import Machine, open_engine

    workload = generated_proteins(MEASURED_RESIDUES)
    query = generated_query(workload.scheme.alphabet, 375)
    engine, _ = open_engine(Machine(name))
    with engine:
        return gcups_of(engine, workload, query, MEASURED_QUERIES[name])


@app.callback()
def bench(
    context: typer.Context,
    fasta: Annotated[
        Path | None,
        typer.Option(click_type=options.INPUT_PATH, help="FASTA file of the subjects. [generated proteins]"),
    ] = None,
    residues: Annotated[int, typer.Option(min=1, help="Number of residues of the generated subjects.")] = 10_000_000,
    lengths: Annotated[str, typer.Option(help="Query lengths, separated by commas.")] = "40,144,375,1000,5478",
    instruction_sets: Annotated[
        str, typer.Option(help="Instruction sets, separated by commas: best, all, or by name.")
    ] = "best",
    threads: Annotated[
        str, options.declared("threads", help="Thread counts, separated by commas.", rich_help_panel=None)
    ] = "1",
    format_name: options.TableFormat = "table",
) -> None:
    """Measure cells a second (GCUPS) by query length, instruction set and thread count.

    Both rates are printed: by wall time, and by CPU time of one core. "reported" asks for the scores a search reports.

    `swsearch bench kernels` measures every kernel of CPU and GPU instead.

    Example: swsearch bench --residues 20000000 --threads 1,2
    """
    if context.invoked_subcommand is not None:
        given = [f"--{name.replace('_', '-')}" for name in given_names(context)]
        if given:
            where = f"swsearch bench {context.invoked_subcommand}"
            raise InputError(f"{given[0]} stands before {context.invoked_subcommand}; put its options behind `{where}`")
        return
    if fasta is not None and "residues" in given_names(context):
        raise InputError("--residues is the size of generated subjects; leave it out, or --fasta")
    from swsearch.bench.workloads import generated_proteins, generated_query, measure, workload_of_file
    from swsearch.cli.documents import describe_measurement, write_document
    from swsearch.engine.cpu.engine import usable_instruction_sets
    from swsearch.threads import check_threads

    query_lengths = _numbers("--lengths", lengths)
    thread_counts = _numbers("--threads", threads)
    for count in thread_counts:
        check_threads(count)
    usable = usable_instruction_sets()
    unknown = [name for name in instruction_sets.split(",") if name not in ("best", "all", *usable)]
    if unknown:
        raise InputError(f"--instruction-sets: {unknown[0]!r} is not among {', '.join(usable)} that can be used here")
    chosen = {"best": usable[:1], "all": usable}.get(instruction_sets, instruction_sets.split(","))
    workload = generated_proteins(residues) if fasta is None else workload_of_file(fasta)
    subjects = workload.partition
    size = f"{counted(len(subjects), 'subject')}, {counted(subjects.n_residues, 'residue')}"
    say(f"{workload.name}: {size}; {workload.scheme}")

    measured = []

    if format_name == "table":
        print(f"{'query':>6} {'instructions':<11} threads scores       wall  CPU second")
    for length, name, n, floored in itertools.product(query_lengths, chosen, thread_counts, (False, True)):
        query = generated_query(workload.scheme.alphabet, length)
        found = measure(workload, query, threads=n, instruction_set=name, floored=floored)
        measured.append(describe_measurement(found))
        if format_name == "table":
            print(
                f"{length:>6} {found.instruction_set:<11} {n:>7} "
                f"{'reported' if floored else 'all':<9}{found.gcups:>8.1f} {found.core_gcups:>8.1f}",
                flush=True,
            )
    if format_name == "json":
        described = {
            "name": workload.name,
            "n_subjects": len(subjects),
            "n_residues": subjects.n_residues,
            "scoring": str(workload.scheme),
        }
        write_document({"program": PROGRAM, "subjects": described, "rows": measured})


@app.command()
def kernels(
    context: typer.Context,
    fasta: Annotated[
        Path | None,
        typer.Option(
            click_type=options.INPUT_PATH, help="FASTA file of the subjects of the search. [generated proteins]"
        ),
    ] = None,
    residues: Annotated[int, typer.Option(min=1, help="Number of residues of the generated subjects.")] = 20_000_000,
    query_length: Annotated[int, typer.Option(min=1, help="Length of the query of the search, in residues.")] = 375,
    pair_length: Annotated[int, typer.Option(min=1, help="Length of each sequence of the long pair.")] = 4800,
    pairs: Annotated[int, typer.Option(min=1, help="Number of short pairs of the batch.")] = 1000,
    batch_length: Annotated[int, typer.Option(min=1, max=2048, help="Length of each sequence of a short pair.")] = 512,
    tasks: Annotated[str, typer.Option(help="Tasks to measure, separated by commas.")] = "search,pair,batch",
) -> None:
    """Measure every kernel of CPU and GPU on the same data, each checked against the reference.

    search: a query against many subjects; pair: a long global alignment; batch: short pairs with their alignments. A
    row whose device is missing says so. Slow rows work on an even share of the data.

    Example: swsearch bench kernels --residues 2000000 --tasks search
    """
    from swsearch.bench import kernel_rates
    from swsearch.bench.workloads import generated_proteins, workload_of_file
    from swsearch.cli.documents import write_document
    from swsearch.engine.registry import engine_infos
    from swsearch.threads import threads_to_use

    arguments: options.Arguments = context.obj
    chosen = [word.strip() for word in tasks.split(",")]
    for task in chosen:
        if task not in kernel_rates.TASKS:
            raise InputError(f"--tasks {task!r}: choose {', '.join(kernel_rates.TASKS)}")
    _refuse_useless(given_names(context), chosen)
    n_threads = threads_to_use(arguments.threads)
    gpu = kernel_rates.usable_gpu()
    measured: list[KernelRow] = []
    with result_stream(arguments.out) as stream:
        if arguments.format == "table":
            print(_KERNEL_HEADER, file=stream)
        for task in chosen:
            if task == "search":
                workload = generated_proteins(residues) if fasta is None else workload_of_file(fasta)
                rows = kernel_rates.measure_search(workload, query_length, n_threads, gpu)
            elif task == "pair":
                rows = kernel_rates.measure_pair(pair_length, n_threads, gpu)
            else:
                rows = kernel_rates.measure_batch(pairs, batch_length, n_threads, gpu)
            for row in rows:
                measured.append(row)
                if arguments.format == "table":
                    _show(row, kernel_rates.ratio(row, "reference", measured), stream)
        if arguments.format == "json":
            devices = {one.name: one.detail if one.usable else f"not usable: {one.reason}" for one in engine_infos()}
            document = {"program": PROGRAM, "devices": devices, "rows": kernel_rates.document(measured)}
            write_document(document, stream)


def _refuse_useless(given: Sequence[str], tasks: list[str]) -> None:
    """Refuse options that have no effect on these tasks."""
    if "fasta" in given and "residues" in given:
        raise InputError("--residues is the size of generated subjects; leave it out, or --fasta")
    for name, task in _TASK_OF.items():
        if name in given and task not in tasks:
            raise InputError(f"--{name.replace('_', '-')} is for the task {task}; leave it out, or add it to --tasks")


_TASK_OF = {
    "fasta": "search", "residues": "search", "query_length": "search",
    "pair_length": "pair", "pairs": "batch", "batch_length": "batch",
}  # fmt: skip
"""Options of one task."""
_KERNEL_HEADER = (
    f"{'task':<7} {'kernel':<28} {'threads':>7} {'cells':>15} {'seconds':>10} {'GCUPS':>9} {'in kernel':>9} "
    f"{'x reference':>11} {'checked':>8}"
)


def _show(row: KernelRow, ratio: float | None, stream: TextIO) -> None:
    if row.gcups is None or row.seconds is None:
        print(f"{row.task:<7} {row.kernel:<28} not measured: {row.missing}", file=stream, flush=True)
        return
    own = "" if row.kernel_gcups is None else f"{row.kernel_gcups:.2f}"
    print(
        f"{row.task:<7} {row.kernel:<28} {row.threads or 'gpu':>7} {row.cells:>15,} {row.seconds:>10.4f} "
        f"{row.gcups:>9.3f} {own:>9} {'' if ratio is None else f'{ratio:,.1f}':>11} {row.checked:>8,}",
        file=stream,
        flush=True,
    )


def _numbers(option: str, text: str) -> list[int]:
    """The integers in a text of integers of at least 1, separated by commas."""
    numbers = options.whole_numbers(text)
    if numbers is None or 0 in numbers:
        shown = quoted(text)
        raise InputError(f"{option} {shown}: give whole numbers of at least 1, separated by commas")
    return numbers

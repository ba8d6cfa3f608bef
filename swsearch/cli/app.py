"""The ``swsearch`` command: its subcommands, and the one place where an error becomes a message and an exit code.

Results go to stdout, talk to stderr. Exit codes: 0 done, 1 bad input or state, 2 usage, 130 interrupted. A closed pipe
(``swsearch query … | head``) ends the program quietly. ``--debug`` shows the traceback of an expected error as well.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from swsearch import __version__
from swsearch.cli import align, batch, bench, db, engines, index, query, report, runs
from swsearch.cli.output import open_closed_streams, say
from swsearch.cli.start import leave
from swsearch.errors import KernelCompileError, OutputClosed, SwSearchError

EXIT_BAD_INPUT = 1
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

app = typer.Typer(
    name="swsearch",
    help="""Exhaustive Smith-Waterman search of protein and DNA databases: exact scores, no filter, no lost hit.

    Example: swsearch index proteins.fasta.gz -o proteins.db

    Example: swsearch query queries.fasta proteins.db --top 10

    Example: swsearch report latest --format blast6
    """,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("index", short_help="Pack FASTA files into a database.")(index.index)
app.add_typer(db.app, name="db")
app.command("query", short_help="Search a database; print the hits and store them.")(query.query)
app.command("align", short_help="Align two sequences, or two files pair by pair.")(align.align)
app.command("batch", short_help="Search with many files; resumable, in shares.")(batch.batch)
app.add_typer(runs.app, name="runs")
app.command("report", short_help="Print a stored run in any format.")(report.report)
app.command("engines", short_help="Show which engines can be used here, and why not.")(engines.engines)
app.add_typer(bench.app, name="bench", short_help="Measure how fast this machine searches.")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"swsearch {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Options that stand before the command."""


@cache
def commands() -> Callable[..., Any]:
    """The command line as Typer builds it from the signatures, which takes some 40 ms: once in a process."""
    return typer.main.get_command(app)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments[:1]
    open_closed_streams()
    # A polite kill unwinds like Ctrl-C, so that temporary files go and the run is marked; the default would not.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    try:
        if signal.getsignal(signal.SIGINT) is leave:  # until here nothing was to be cleared up
            signal.signal(signal.SIGINT, signal.default_int_handler)
        outcome: Any = commands()(arguments, standalone_mode=False)
        sys.stdout.flush()
    except (OutputClosed, BrokenPipeError):
        return _end_unread()
    except SystemExit as leaving:
        # Typer ends a command whose print() met a closed pipe in this way, with 1.
        if leaving.code == 1 and isinstance(leaving.__context__, BrokenPipeError):
            return _end_unread()
        raise
    except KeyboardInterrupt:
        say("interrupted")
        return EXIT_INTERRUPTED
    except SwSearchError as error:
        return _fail(error, str(error), debug)
    except OSError as error:
        return _fail(error, _describe(error), debug)
    except MemoryError as error:
        return _fail(error, "out of memory; search a smaller database, or give fewer --threads", debug)
    except Exception as error:
        # Typer's own errors carry an exit code and know how to show themselves; anything else is a bug.
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        return int(getattr(error, "exit_code", 2))
    return int(outcome) if isinstance(outcome, int) else 0


def run() -> NoReturn:
    """The ``swsearch`` command: :func:`main`, and an end at once.

    Everything is closed by then. What Python would go on to do, taking its modules and the GPU's driver apart piece by
    piece, takes a fifth of a second after a search, and the system does it anyway. Where a thread is at work still,
    such as a compiler's whose kernel is to be kept, it is waited for.
    """
    code = main()
    if any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()):
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # said already, or closed
                stream.flush()
    os._exit(code)


def _end_unread() -> int:
    """Nobody reads on: point stdout elsewhere, so that no last flush complains either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 0


def _fail(error: BaseException, message: str, debug: bool) -> int:
    if debug:
        traceback.print_exception(error, file=sys.stderr)
        if isinstance(error, KernelCompileError):
            print(error.log, file=sys.stderr)
    say(f"error: {message}")
    return EXIT_BAD_INPUT


def _describe(error: OSError) -> str:
    """One line for an error of the operating system that no part of the program foresaw."""
    place = f"{error.filename}: " if error.filename else ""
    advice = "; free some space and run the command again" if error.errno == errno.ENOSPC else ""
    return f"{place}{error.strerror or error}{advice}"

"""The ``swsearch`` command: its subcommands, and the conversion of all errors to messages and exit codes.

Results are written to stdout, messages to stderr. The exit codes are 0 for success, 1 for invalid input or state, 2 for
wrong usage, and 130 for an interrupt. A closed pipe (``swsearch query … | head``) ends the program without a message.
``--debug`` also shows the traceback of an expected error. ``--log`` keeps what is said (:mod:`swsearch.cli.log`).
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import cache
from itertools import takewhile
from typing import Annotated, Any, Final, NoReturn

import typer

from swsearch import __version__
from swsearch.cli import (
    align,
    allpairs,
    batch,
    bench,
    cluster,
    completion,
    config,
    db,
    engines,
    index,
    matrices,
    msa,
    plan,
    query,
    rbh,
    report,
    runs,
    serve,
    tokens,
)
from swsearch.cli.command import MAX_WIDTH, CommandGroup
from swsearch.cli.command_line import begin
from swsearch.cli.log import begin_log, end_log
from swsearch.cli.output import open_closed_streams, say
from swsearch.cli.start import leave
from swsearch.command_log import append
from swsearch.errors import KernelCompileError, OutputClosed, SwSearchError, UsageError

EXIT_BAD_INPUT = 1
EXIT_WRONG_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

_HELP = """Exhaustive Smith-Waterman search of protein and DNA databases: exact scores, no filter, no lost hit.

    Example: swsearch index proteins.fasta.gz -o proteins.db

    Example: swsearch query queries.fasta proteins.db --top 10

    Example: swsearch report latest --format blast6
    """

# Each command in the order of the help: a function or a group of commands, with its line in the help; the line of None
# is in the group.
_COMMANDS: Final[dict[str, tuple[Callable[..., None] | typer.Typer, str | None]]] = {
    "index": (index.index, "Pack FASTA files into a database."),
    "db": (db.app, None),
    "query": (query.query, "Search a database; print the hits and store them."),
    "allpairs": (allpairs.allpairs, "Compare all sequences of a database with each other."),
    "cluster": (cluster.cluster, "Divide the sequences of a database into clusters."),
    "rbh": (rbh.rbh, "Report reciprocal best hits of two sets of sequences."),
    "msa": (msa.msa, "Make deep multiple alignments for structure prediction."),
    "align": (align.align, "Align two sequences, or two files pair by pair."),
    "batch": (batch.batch, "Search with many files; resumable, in shares."),
    "runs": (runs.app, None),
    "report": (report.report, "Print a stored run in any format."),
    "serve": (serve.serve, "Serve searches to browsers and scripts."),
    "worker": (serve.worker, "Search for a service, also on other hosts."),
    "tokens": (tokens.app, None),
    "matrices": (matrices.matrices, "List the substitution matrices by name."),
    "engines": (engines.engines, "Show which engines can be used here, and why not."),
    "plan": (plan.plan, "Plan a large search: memory, time and cost."),
    "completion": (completion.completion, "Print the script that completes commands in a shell."),
    "config": (config.config, "Show the options of a command, and where their values come from."),
    "bench": (bench.app, "Measure how fast this machine searches."),
}


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"swsearch {__version__}")
        raise typer.Exit


def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Options that stand before the command."""


@cache
def commands(name: str | None = None) -> Callable[..., Any]:
    """The command line, with the named command or with all, which Typer builds from their signatures.

    All of them take some 40 ms, and one of them a few; each is built once per process.
    """
    app = CommandGroup(
        name="swsearch",
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MAX_WIDTH},
    )
    app.callback()(_options)
    for known, (command, line) in _COMMANDS.items():
        if name not in (None, known):
            continue
        if not isinstance(command, typer.Typer):
            app.command(known, short_help=line)(command)
        elif line is None:
            app.add_typer(command, name=known)
        else:
            app.add_typer(command, name=known, short_help=line)
    return typer.main.get_command(app)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    began = time.monotonic()
    arguments = sys.argv[1:] if arguments is None else arguments
    begin(arguments)
    open_closed_streams()
    if completion.VARIABLE in os.environ:
        completion.begin_completion()
    # SIGTERM unwinds the stack like Ctrl-C, so that temporary files are removed and the run is marked as interrupted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    try:
        code = _code(arguments)
    except BaseException as error:
        end_log(began, error)
        raise
    end_log(began, code)
    return code


def _code(arguments: list[str]) -> int:
    """Run the command line and convert errors; returns the exit code."""
    head = list(takewhile(lambda word: word not in _COMMANDS, arguments))
    debug = "--debug" in head
    try:
        if signal.getsignal(signal.SIGINT) is leave:  # up to here, there was nothing to clean up
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if completion.VARIABLE not in os.environ:
            begin_log(arguments, is_early=True)
        named = arguments[0] if arguments and not head else None
        outcome: Any = commands(named)(arguments, standalone_mode=False, prog_name="swsearch")
        if outcome == EXIT_INTERRUPTED:  # Typer has caught the KeyboardInterrupt
            say("interrupted")
        sys.stdout.flush()
    except (OutputClosed, BrokenPipeError):
        return _end_unread()
    except SystemExit as leaving:
        # Typer exits with 1 in this way if print() in a command fails because of a closed pipe.
        if leaving.code == 1 and isinstance(leaving.__context__, BrokenPipeError):
            return _end_unread()
        raise
    except KeyboardInterrupt:
        say("interrupted")
        return EXIT_INTERRUPTED
    except UsageError as error:
        return _fail(error, str(error), debug, EXIT_WRONG_USAGE)
    except SwSearchError as error:
        return _fail(error, str(error), debug)
    except OSError as error:
        return _fail(error, _describe(error), debug, is_logged=True)
    except MemoryError as error:
        message = "out of memory; search a smaller database, or give fewer --threads"
        return _fail(error, message, debug, is_logged=True)
    except Exception as error:
        if (usage := _wrong_usage(error)) is None:
            raise
        return _fail(error, usage, debug, EXIT_WRONG_USAGE)
    return int(outcome) if isinstance(outcome, int) else 0


def run() -> NoReturn:
    """The ``swsearch`` command: run :func:`main`, then end the process immediately.

    All files are closed at that point. The finalization of Python's modules and of the GPU driver would take a fifth of
    a second after a search, and the operating system releases their resources anyway. Threads that are still working,
    such as a compiler whose kernel is to be cached, are waited for.
    """
    code = main()
    if any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()):
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # the error was reported, or the stream is closed
                stream.flush()
    os._exit(code)


def _end_unread() -> int:
    """Redirect stdout to the null device, because its reader has closed it and a final flush would raise an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 0


def _wrong_usage(error: Exception) -> str | None:
    """The message of one line for an exception of Typer; None for any other exception, which is a bug."""
    if not hasattr(error, "format_message"):
        return None
    message = str(error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = "swsearch" if context is None else context.command_path
    return f"{message[:1].lower()}{message[1:]}; see `{path} --help`"


def _fail(
    error: BaseException, message: str, debug: bool, code: int = EXIT_BAD_INPUT, *, is_logged: bool = False
) -> int:
    """Say an error in one line; with ``debug`` with its traceback, which ``is_logged`` adds to the log in any case."""
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    if debug or is_logged:
        append("traceback of the error that follows", logging.ERROR, error)
    if isinstance(error, KernelCompileError):
        append(error.log, logging.ERROR)
        if debug:
            print(error.log, file=sys.stderr)
    say(f"error: {message}")
    return code


def _describe(error: OSError) -> str:
    """A message of one line for an error of the operating system that no other part of the program handles."""
    place = f"{error.filename}: " if error.filename else ""
    advice = "; free some space and run the command again" if error.errno == errno.ENOSPC else ""
    return f"{place}{error.strerror or error}{advice}"

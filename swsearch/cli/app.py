"""The ``swsearch`` command: its subcommands, and the conversion of all errors to messages and exit codes.

Results are written to stdout, messages to stderr. The exit codes are 0 for success, 1 for invalid input or state, 2 for
wrong usage, 130 for an interrupt and 143 for SIGTERM. A closed pipe (``swsearch query … | head``) ends the program
without a message. ``--debug`` also shows the traceback of an expected error. ``--log`` keeps what is said
(:mod:`swsearch.cli.log`).
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
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, NoReturn

import typer

from swsearch import __version__
from swsearch.cli import completion
from swsearch.cli.command import MAX_WIDTH, CommandGroup, Group, is_refusal
from swsearch.cli.command_line import begin
from swsearch.cli.configuration import in_plain_words
from swsearch.cli.log import end_log
from swsearch.cli.output import open_closed_streams, say
from swsearch.cli.start import leave
from swsearch.command_log import append
from swsearch.errors import KernelCompileError, OutputClosed, SwSearchError, UsageError
from swsearch.file_registry import registered

EXIT_BAD_INPUT = 1
EXIT_WRONG_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

_HELP = """Exhaustive Smith-Waterman search of protein and DNA databases: exact scores, no filter, no lost hit.

    Example: swsearch index proteins.fasta.gz -o proteins.db

    Example: swsearch query queries.fasta proteins.db --top 10

    Example: swsearch report latest --format blast6
    """

_COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "index": ("swsearch.cli.index:index", "Pack FASTA files into a database."),
    "query": ("swsearch.cli.query:query", "Search a database; print the hits and store them."),
    "allpairs": ("swsearch.cli.comparison:allpairs", "Compare all sequences of a database with each other."),
    "cluster": ("swsearch.cli.comparison:cluster", "Divide the sequences of a database into clusters."),
    "rbh": ("swsearch.cli.comparison:rbh", "Report reciprocal best hits of two sets of sequences."),
    "msa": ("swsearch.cli.msa:msa", "Make deep multiple alignments for structure prediction."),
    "domains": ("swsearch.cli.domains:domains", "Find the domains of proteins with a library of families."),
    "align": ("swsearch.cli.align:align", "Align two sequences, or two files pair by pair."),
    "batch": ("swsearch.cli.query:batch", "Search with many files; resumable, in shards."),
    "report": ("swsearch.cli.report:report", "Print a stored run in any format."),
    "serve": ("swsearch.cli.serve:serve", "Serve searches to browsers and scripts."),
    "worker": ("swsearch.cli.serve:worker", "Search for a service, also on other hosts."),
    "matrices": ("swsearch.cli.matrices:matrices", "List the substitution matrices by name."),
    "engines": ("swsearch.cli.bench:engines", "Show which engines can be used here, and why not."),
    "completion": ("swsearch.cli.completion:completion", "Print the script that completes commands in a shell."),
    "config": ("swsearch.cli.configuration:config", "Show the options of a command, and where their values come from."),
    "db": ("swsearch.cli.db:app", "Fetch, inspect, verify, export and change databases."),
    "runs": ("swsearch.cli.stored_runs:app", "List, show, copy, merge, delete and prune stored runs."),
    "tokens": ("swsearch.cli.serve:tokens", "Add, list and revoke the tokens of a service."),
    "bench": ("swsearch.cli.bench:app", "Measure how fast this machine searches."),
}
"""Each command in the order of the help: its function or group of commands, as module and name, and its line there."""


_DEBUG: Final[ContextVar[bool]] = ContextVar("swsearch_debug", default=False)
"""Whether errors are to have their tracebacks."""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"swsearch {__version__}")
        raise typer.Exit


def _set_debug(wanted: bool) -> None:
    _DEBUG.set(wanted)


def _options(
    debug: Annotated[
        bool, typer.Option("--debug", callback=_set_debug, is_eager=True, help="Print the traceback of an error.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that stand before the command."""


class _Commands(Mapping[str, Any]):
    """The commands by their names, each imported and built from its signature by Typer when it is first used.

    All of them would take a tenth of a second at the start of each command.
    """

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            module, _, attribute = _COMMANDS[name][0].partition(":")
            self._built[name] = typer.main.get_command(_program({name: getattr(import_module(module), attribute)}))
        return self._built[name].commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Root(Group):
    """The group of all commands, whose help does not need them."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """The names of the commands, in the order of the help."""
        return list(self.commands)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write the commands with their lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


def _program(members: Mapping[str, Callable[..., None] | typer.Typer]) -> CommandGroup:
    """The options before the command, and these commands."""
    app = CommandGroup(
        cls=_Root,
        name="swsearch",
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={
            "help_option_names": ["-h", "--help"],
            "max_content_width": MAX_WIDTH,
            "token_normalize_func": lambda name: name.replace("_", "-"),
        },
    )
    app.callback()(_options)
    for name, command in members.items():
        line = _COMMANDS[name][1]
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, short_help=line)
        else:
            app.command(name, short_help=line)(command)
    return app


@cache
def commands() -> Any:
    """The command line; each of its commands is imported when it is used."""
    root: Any = typer.main.get_command(_program({}))
    root.commands = _Commands()
    return root


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    began = time.monotonic()
    arguments = sys.argv[1:] if arguments is None else arguments
    begin(arguments)
    open_closed_streams()
    if completion.VARIABLE in os.environ:
        completion.begin_completion()
    # SIGTERM unwinds the stack like Ctrl-C, so that temporary files are removed and the run is marked as interrupted.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    try:
        with registered("command"):
            code = _code(arguments)
    except BaseException as error:
        end_log(began, error)
        raise
    finally:
        # Of the program that called this function, such as a test; None is one that is not Python's.
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
    end_log(began, code)
    return code


def _code(arguments: list[str]) -> int:
    """Run the command line and convert errors; returns the exit code."""
    _DEBUG.set(False)
    try:
        if signal.getsignal(signal.SIGINT) is leave:  # up to here, there was nothing to clean up
            signal.signal(signal.SIGINT, signal.default_int_handler)
        outcome: Any = commands()(arguments, standalone_mode=False, prog_name="swsearch")
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
        return _fail(error, error.marked, EXIT_WRONG_USAGE)
    except SwSearchError as error:
        return _fail(error, error.marked)
    except OSError as error:
        return _fail(error, _describe(error), is_logged=True)
    except MemoryError as error:
        message = "out of memory; search a smaller database, or give fewer --threads"
        return _fail(error, message, is_logged=True)
    except Exception as error:
        if (usage := _wrong_usage(error)) is None:
            raise
        return _fail(error, usage, EXIT_WRONG_USAGE)
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


def _wrong_usage(error: Any) -> str | None:
    """The message of one line for an exception of Typer; None for any other exception, which is a bug."""
    if not is_refusal(error):
        return None
    message = in_plain_words(" ".join(str(error.format_message()).split())).rstrip(".")  # Typer breaks lines in some
    context = getattr(error, "ctx", None)
    path = "swsearch" if context is None else context.command_path
    message = f"{message[:1].lower()}{message[1:]}"
    return f"{message} See `{path} --help`" if message.endswith("?") else f"{message}; see `{path} --help`"


def _fail(error: BaseException, message: str, code: int = EXIT_BAD_INPUT, *, is_logged: bool = False) -> int:
    """Say an error in one line, with ``--debug`` after its traceback, which ``is_logged`` always adds to the log."""
    debug = _DEBUG.get()
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

"""The exceptions that this package raises for expected errors, as one class hierarchy::

    SwSearchError
    ├── UsageError                     a command line that cannot be understood
    ├── InputError (ValueError)        sequences or parameters from the user that cannot be used
    │   ├── WrongType (TypeError)      an argument of a function that is of another type
    │   ├── FastaFormatError           a record that cannot be read: file, record, line, column
    │   ├── AlphabetMismatch           protein where DNA is needed, or the reverse
    │   ├── ScoringError               a matrix, gap cost or profile that cannot be used
    │   └── Refused                    a request that a service refuses: a limit, or a conflict
    ├── DatabaseError                  a packed database that is missing, foreign, damaged, or already exists
    ├── EngineError                    an engine that fails during its work
    │   ├── EngineUnavailable          an engine that cannot be used on this machine, with the reason
    │   └── KernelCompileError         a kernel that the compiler rejects, with its log
    └── StoreError                     a store of hits that cannot be read or written
        ├── RunNotFound                no such run
        ├── RunTaken                   a run that another process has just resumed
        ├── HitsNotFound               no hits of a query with this number in a run
        ├── SearchNotFound             no such search in a service
        └── SchemaOutdated             a store of another program version, with the command that upgrades it

:class:`OutputClosed` is not part of the hierarchy: it ends a command after the reader of its results has closed the
pipe.

``str(error)`` is one line, which states the problem, its location, and the remedy. A script catches
:class:`SwSearchError`. The command line (:mod:`swsearch.cli`) prints the line with its own names of options
(:meth:`SwSearchError.on_command_line`) and exits with 1, or with 2 after a :class:`UsageError`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from swsearch.words import as_arguments, as_options, one_line, shortened


@contextmanager
def writing_to(place: str) -> Iterator[None]:
    """Add ``place`` as the file name to errors of the operating system that have none, such as those of a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or place
        raise


class OutputClosed(Exception):
    """The reader of the results, such as ``head``, has closed the pipe; this is not an error of the command."""


class SwSearchError(Exception):
    """Base class of all exceptions that this package raises for expected errors.

    Parameters
    ----------
    message : str
        One line: the problem, its location, and the remedy. It names options by :func:`swsearch.words.option`. Control
        characters, which the contents of a file may bring into it, are escaped.
    """

    def __init__(self, message: str = "") -> None:
        self.marked = one_line(message)
        """The message with marked options, for the message of another error."""
        super().__init__(as_arguments(self.marked))

    def on_command_line(self) -> str:
        """The message in the words of the command line: ``--top 0``, where ``str(error)`` says ``top=0``."""
        return as_options(self.marked)


class UsageError(SwSearchError):
    """A command line that cannot be understood."""


class InputError(SwSearchError, ValueError):
    """Sequences or parameters of the user that cannot be used."""


class WrongType(InputError, TypeError):
    """An argument of a function is of a type that it does not take."""


class FastaFormatError(InputError):
    """A sequence file that cannot be read.

    Attributes
    ----------
    path : str
        The name of the file, ``<stdin>`` for standard input.
    record : int or None
        Number of the record in the file, counted from 1.
    identifier : str or None
        First word of the header of that record.
    line, column : int or None
        Location in the (decompressed) file, counted from 1.
    """

    def __init__(
        self,
        problem: str,
        path: str,
        *,
        record: int | None = None,
        identifier: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.problem = problem
        self.path = path
        self.record = record
        self.identifier = identifier
        self.line = line
        self.column = column
        place = [path]
        if record is not None:
            place.append(f"record {record}" + (f" ({shortened(identifier)})" if identifier else ""))
        if line is not None:
            place.append(f"line {line}")
        if column is not None:
            place.append(f"column {column}")
        super().__init__(f"{', '.join(place)}: {problem}")

    def replaced(self, **changed: Any) -> FastaFormatError:
        """The error with other values of some parameters."""
        names = ("problem", "path", "record", "identifier", "line", "column")
        return FastaFormatError(**{name: getattr(self, name) for name in names} | changed)


class AlphabetMismatch(InputError):
    """Query, database and scoring scheme do not have the same alphabet.

    Attributes
    ----------
    expected, actual : str
        Names of the alphabets.
    """

    def __init__(self, expected: str, actual: str, where: str, advice: str) -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(f"{where} is {actual}, but {expected} is needed; {advice}")


class ScoringError(InputError):
    """A substitution matrix, gap cost or query profile that cannot be used."""


class DatabaseError(SwSearchError):
    """A packed database that is missing, of another format, damaged, or already exists at the target."""


class EngineError(SwSearchError):
    """An engine failed during its work."""


class EngineUnavailable(EngineError):
    """An engine cannot be used on this machine.

    Attributes
    ----------
    engine, reason : str
    """

    def __init__(self, engine: str, reason: str) -> None:
        self.engine = engine
        self.reason = reason
        super().__init__(f"the {engine} engine cannot be used here: {reason}")


class KernelCompileError(EngineError):
    """The compiler rejected a kernel; ``log`` is the compiler's output, ``reason`` its first line."""

    def __init__(self, kernel: str, log: str) -> None:
        self.kernel = kernel
        self.log = log
        self.reason = next((line for line in log.splitlines() if line.strip()), "no message")
        super().__init__(f"kernel {kernel} does not compile: {self.reason} (whole log with --debug)")


class StoreError(SwSearchError):
    """A store of hits that cannot be read or written."""


class RunNotFound(StoreError):
    """The store has no such run."""

    def __init__(self, run: str, store: str) -> None:
        self.run = run
        of_store = f"--store {shlex.quote(store)}"
        if run == "latest":
            super().__init__(f"{store} has no run; `swsearch query {of_store}` stores one")
        else:
            from difflib import get_close_matches  # only here: most commands need none of it

            meant = "did you mean latest? " if get_close_matches(run, ["latest"]) else ""
            super().__init__(f"{store} has no run {run!r}; {meant}`swsearch runs list {of_store}` lists them")


class RunTaken(StoreError):
    """Another process has resumed a run since its state was read."""


class SchemaOutdated(StoreError):
    """The store was written by another version of the program."""

    def __init__(self, store: str, found: str, needed: str, advice: str) -> None:
        self.found = found
        self.needed = needed
        super().__init__(f"{store} has schema {found}, this program needs {needed}; {advice}")


class HitsNotFound(StoreError):
    """A run has no query with this number, and so no hits of it."""

    def __init__(self, store: str, run_id: int, number: int) -> None:
        self.number = number
        super().__init__(f"{store}: run {run_id} has no query {number}")


class SearchNotFound(StoreError):
    """A service has no such search, or it belongs to another owner."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__("there is no such search, or it has expired")


class Refused(InputError):
    """A service refuses a request that it understands.

    Attributes
    ----------
    code : str
        The reason in one word, for programs: ``queue_full``, ``daily_limit``, ``too_large``, ``idempotency_conflict`` …
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)

"""Defaults of options from environment variables and from a configuration file.

The command line comes first, then the environment, the file, and the built-in default. In the file, a table with the
name of a command has defaults of this command alone, and precedes what stands outside of tables::

    threads = 8
    evalue = 1e-3

    [report]
    format = "blast6"

``SWSEARCH_THREADS`` and a key outside of tables apply to all commands in which the option has the same meaning
(:func:`is_shared`), so that a narrower ``evalue`` of searches does not narrow reports of stored runs.

``swsearch config`` shows the options of a command with their values, and where each value comes from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from swsearch.cli import options
from swsearch.cli.output import say
from swsearch.errors import InputError, SwSearchError, UsageError
from swsearch.file_registry import registry
from swsearch.folders import user_folder
from swsearch.options import COMPARISONS, MACHINE, SEARCH_OPTIONS, offered
from swsearch.words import as_options, option, quoted

PREFIX: Final = "SWSEARCH_"
_TYPER_TYPE: Final = re.compile(r"is not a valid (int|float)(?: range)?\b")
FILE_VARIABLE: Final = "SWSEARCH_CONFIG"
"""Environment variable that names the configuration file; if it is empty, none is read."""
OTHER_VARIABLES: Final = (
    FILE_VARIABLE, "SWSEARCH_CACHE", "SWSEARCH_CACHE_LIMIT", "SWSEARCH_DATABASES", "SWSEARCH_DOWNLOADS",
    "SWSEARCH_KERNEL_CACHE", "SWSEARCH_LINKS", "SWSEARCH_TAXONOMY",
    "SWSEARCH_TEST_CACHE", "SWSEARCH_TOKEN",
)  # fmt: skip
"""Environment variables that do not set an option."""
_SEARCHES: Final = ("query", "batch", "allpairs", "msa")
_OF_ALL: Final = ("threads", "store", "stage_store", "quiet")
_OF_MACHINE: Final = tuple(
    row.name for row in offered("query") if row.panel == MACHINE and row.is_local and row.name not in _OF_ALL
)
_LOG: Final = "log"
SHARED: Final = (_LOG, *_OF_ALL, *_OF_MACHINE, *(name for name in SEARCH_OPTIONS if name != "taxonomy"))
"""The options that have an environment variable and may stand outside of tables, by their names with ``_``.

``SWSEARCH_TAXONOMY`` is not a default of ``--taxonomy``: it counts only where a taxonomy is needed and the database has
none (:mod:`swsearch.taxonomy.subject_taxa`).
"""


def is_shared(command: str, name: str) -> bool:
    """Whether an option of a command has the meaning that it has in all commands with a default of this name.

    >>> is_shared("query", "evalue"), is_shared("report", "evalue"), is_shared("db verify", "threads")
    (True, False, True)
    """
    if name == _LOG:
        return True
    if command.split(maxsplit=1)[0] == "bench":
        return False
    if name in _OF_MACHINE:
        return command in (*_SEARCHES, *COMPARISONS)
    return name in _OF_ALL or (command in _SEARCHES and name in SHARED)


@dataclass(frozen=True)
class Given:
    """A default of an option, and the place where it was found, such as ``config.toml, line 3``."""

    name: str
    value: Any
    source: str
    place: str


@dataclass(frozen=True)
class ConfigurationFile:
    """The content of a configuration file.

    Attributes
    ----------
    path : Path or None
        The file; None if none is to be read.
    exists : bool
    values : mapping of str to value or mapping
        As TOML has them.
    """

    path: Path | None
    exists: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    @classmethod
    def read(cls) -> ConfigurationFile:
        """Read the file of the user, or that of :data:`FILE_VARIABLE`.

        Raises
        ------
        InputError
            The file cannot be read or is not TOML, or :data:`FILE_VARIABLE` names a missing file.
        """
        named = os.environ.get(FILE_VARIABLE)
        if named == "":
            return cls(None)
        folder = user_folder("XDG_CONFIG_HOME", ".config")
        usual = None if folder is None else folder / "swsearch" / "config.toml"
        path = usual if named is None else Path(named)
        if path is None or (named is None and not path.is_file()):
            return cls(path)
        import tomllib

        registry().read(path, is_source=False)
        try:
            text = path.read_text(encoding="utf-8")
            return cls(path, True, tomllib.loads(text), text)
        except OSError as error:
            where = f"{FILE_VARIABLE}={path}" if named is not None else str(path)
            raise InputError(f"{where}: {error.strerror or error}; name another file with {FILE_VARIABLE}") from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"{path} is not TOML: {error}") from error

    def line(self, key: str, table: str | None = None) -> str:
        """The file with the line of a key, for messages."""
        inside = None
        for number, line in enumerate(self.text.splitlines(), 1):
            if header := re.match(r"\s*\[\s*([^\]]*?)\s*\]", line):
                inside = header[1].replace(".", " ").replace('"', "")
                if inside == key and table is None:
                    return f"{self.path}, line {number}"
            elif inside == table and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
                return f"{self.path}, line {number}"
        return str(self.path)

    def tables(self, commands: Mapping[str, Sequence[str]]) -> dict[str, Mapping[str, Any]]:
        """The tables of commands by the names of the commands, checked.

        Parameters
        ----------
        commands : mapping of str to sequence of str
            The names of the options of each command, with ``_``.

        Raises
        ------
        InputError
            A key or table does not exist.
        """
        found: dict[str, Mapping[str, Any]] = {}
        for key, value in self.values.items():
            if not isinstance(value, dict):
                self._check(key, None, SHARED)
            elif key in commands:
                found[key] = value
            elif any(name.startswith(f"{key} ") for name in commands):
                for inner, table in value.items():
                    self._check(f"{key} {inner}", None, list(commands), is_table=True)
                    found[f"{key} {inner}"] = table
            else:
                self._check(key, None, list(commands), is_table=True)
        for command, table in found.items():
            for key in table if isinstance(table, dict) else ():
                self._check(key, command, commands[command])
        return found

    def _check(self, key: str, table: str | None, known: Sequence[str], *, is_table: bool = False) -> None:
        if key.replace("-", "_") in known or key in known:
            return
        near = get_close_matches(key.replace("-", "_"), known, n=1)
        advice = f"{near[0]!r} is similar" if near else "`swsearch config` lists those that exist"
        what = "there is no command" if is_table else f"`swsearch {table}` has no option" if table else "no default"
        tail = "" if is_table or table else " can stand outside of a command's table"
        raise InputError(f"{self.line(key, table)}: {what} {quoted(key)}{tail}; {advice}")


def in_plain_words(message: str) -> str:
    """A message of Typer about a value, without the names of its types.

    >>> in_plain_words("'1e3' is not a valid int range")
    "'1e3' is not a whole number"
    """
    return _TYPER_TYPE.sub(lambda match: "is not a whole number" if match[1] == "int" else "is not a number", message)


def defaults_of(command: str, options: Sequence[str]) -> Iterator[Given]:
    """The defaults of the options of a command that the environment and the file have.

    Parameters
    ----------
    command : str
        Its name, as ``query`` or ``db info``.
    options : sequence of str
        The names of its options, with ``_``.
    """
    from swsearch.cli.command import names_of_all

    file = ConfigurationFile.read()
    own: Mapping[str, Any] = file.tables(names_of_all()).get(command, {}) if file.exists else {}
    common = {key: value for key, value in file.values.items() if not isinstance(value, dict)}
    for name in options:
        variable = f"{PREFIX}{name.upper()}"
        if is_shared(command, name) and os.environ.get(variable):
            yield Given(name, os.environ[variable], "environment", variable)
            continue
        for key in (name, name.replace("_", "-")):
            if key in own:
                yield Given(name, own[key], "file", file.line(key, command))
                break
            if key in common and is_shared(command, name):
                yield Given(name, common[key], "file", file.line(key))
                break


def converted(one: Any, context: Any, given: Given) -> Any:
    """The value of a default as the type of its option has it.

    Raises
    ------
    UsageError
        It has no such value; the message names the place.
    """
    value = given.value
    shown = quoted(str(value))
    is_wrong = isinstance(value, dict) or isinstance(value, list) != bool(one.multiple)
    if is_wrong or (isinstance(value, bool) and not one.is_flag):
        advice = f'; give a list, such as ["{value}"]' if one.multiple and isinstance(value, str) else ""
        raise UsageError(f"{given.place}: {shown} is not a value of {one.opts[0]}{advice}")
    try:
        return one.type_cast_value(context, value if isinstance(value, bool | list) else str(value))
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        reason = in_plain_words(str(getattr(error, "message", ""))).rstrip(".")
        raise UsageError(f"{given.place}: {shown} is not a value of {one.opts[0]}: {reason}") from error


PLACES: Final = "swsearch.places"
"""Key in ``ctx.meta`` for the values of defaults and where they come from, by the names of their parameters."""


@contextmanager
def naming_places(context: Any) -> Iterator[None]:
    """Let an error about the value of an option say where it comes from, if that is not the command line."""
    try:
        yield
    except SwSearchError as error:
        # Some values have quotes; advice follows.
        problem, _, _ = error.on_command_line().replace("'", "").partition(";")
        for name, (value, given) in context.meta.get(PLACES, {}).items():
            is_default = getattr(context.get_parameter_source(name), "name", "") != "COMMANDLINE"
            shown = re.escape(as_options(option(given.name, value)).replace("'", ""))
            if is_default and given.place not in problem and re.search(rf"{shown}(?![\w.-])", problem):
                error.marked = f"{given.place}: {error.marked}"
        raise


def config(
    command: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", help="Name of a command. [query]")] = None,
    format_name: options.TableFormat = "table",
) -> None:
    """Show the options of a command with their values, and where each value comes from.

    An option of the command line comes first, then the environment (SWSEARCH_THREADS), the configuration file
    (~/.config/swsearch/config.toml, or that of SWSEARCH_CONFIG), and the built-in default.

    Example: swsearch config

    Example: swsearch config report --format json
    """
    from swsearch.cli.command import all_commands, configured, context_of, option_names
    from swsearch.cli.documents import write_document

    name = " ".join(command or ["query"])
    known = all_commands()
    if name not in known:
        raise UsageError(f"there is no command {quoted(name)}; `swsearch --help` lists all")
    context = context_of(known[name], name)
    file = ConfigurationFile.read()
    found = configured(context)
    rows: list[dict[str, Any]] = []
    for one in option_names(context).values():
        value, given = found.get(one.name, (one.get_default(context), None))
        source = ("built-in", None) if given is None else (given.source, given.place)
        shown = value if value is None or isinstance(value, bool | int | float) else str(value)
        rows.append({"option": max(one.opts, key=len), "value": shown, "source": source[0], "place": source[1]})
    wrong = unknown_variables()
    if format_name == "json":
        path = None if file.path is None else str(file.path)
        write_document({
            "command": name, "file": path, "file_exists": file.exists, "options": rows, "unknown_variables": wrong,
        })  # fmt: skip
        return
    print(f"{'file':<26}{file.path or 'none'}{'' if file.exists or file.path is None else ' (does not exist)'}")
    for row in rows:
        shown = "" if row["value"] is None else str(row["value"])
        print(f"{row['option']:<26}{shown:<22} {row['place'] or row['source']}")
    for variable in wrong:
        say(f"warning: {variable} is not a variable of this program")


def unknown_variables() -> list[str]:
    """Environment variables that begin like those of this program and are none of them."""
    known = {*OTHER_VARIABLES, *(f"{PREFIX}{name.upper()}" for name in SHARED)}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)

"""The options of :mod:`swsearch.options` on the command line, and the types of options that name files.

:func:`table_options` makes the options of a command from the table. :data:`Threads` and its like are the same rows for
the signatures of the commands that have other options too. :class:`Arguments` has the values that a command line gives.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperOption
from typer.main import get_click_type
from typer.models import TyperPath

from swsearch.cli import completion
from swsearch.errors import InputError, UsageError
from swsearch.file_registry import FileRegistry, registry
from swsearch.folders import make_user_folder, user_store
from swsearch.options import DEFAULT_STORE, EVERY_SUBJECT, OPTIONS, Option, offered, option_of
from swsearch.output_files import COMPRESSED
from swsearch.words import quoted

if TYPE_CHECKING:
    from swsearch.engine.registry import Machine
    from swsearch.report.narrowing import Narrowing
    from swsearch.report.row_filter import RowFilter
    from swsearch.search.options import SearchOptions
    from swsearch.search.queries import Requirements
    from swsearch.sequences.fasta_text import SubjectPart


class NamedFile(TyperPath):
    """The type of an option or argument that names a file, a store or a database.

    It is told to the registry of the command (:mod:`swsearch.file_registry`) before the command begins. Files that are
    named in another way are told when they are opened.

    Parameters
    ----------
    tell : callable
        Tells the registry the name; takes the registry, the option and the name.
    is_written : bool
        Whether the command writes what is named.
    name : str
        The name of the type, for the help; ``str`` for what may be a URL.
    """

    def __init__(
        self, tell: Callable[[FileRegistry, str, str], None], *, is_written: bool = False, name: str = "path"
    ) -> None:
        super().__init__()
        self.tell = tell
        self.is_written = is_written
        self.name = name

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as it is, if it may be a URL; otherwise, a path.

        Raises
        ------
        UsageError
            It is empty, which would name the working folder.
        """
        if value == "":
            is_option = param is not None and param.param_type_name == "option"
            refuse_empty(max(param.opts, key=len) if is_option else "")
        return value if self.name == "str" else super().convert(value, param, ctx)


_WholeNumbers: Final[Any] = type(get_click_type(annotation=int, parameter_info=typer.Option(min=0)))
"""Typer's type of whole numbers in a range, which it has no public name for."""


class _NumberOrWord(_WholeNumbers):  # type: ignore[misc]
    """The type of an option that takes whole numbers in a range, and words in their place."""

    def __init__(self, row: Option) -> None:
        super().__init__(min=row.minimum, max=row.maximum)
        self._row = row

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number that is given or that a word means."""
        try:
            return super().convert(self._row.words.get(str(value), value), param, ctx)
        except typer.BadParameter as problem:
            if self._row.range is None:
                raise
            raise typer.BadParameter(f"{value}: choose {self._row.range.says}", ctx, param) from problem


INPUT_PATH: Final = NamedFile(lambda registry, _, name: registry.read_named(name))
INPUT_NAME: Final = NamedFile(INPUT_PATH.tell, name="str")
OUTPUT_FILE: Final = NamedFile(FileRegistry.write, is_written=True)
NEW_DATABASE: Final = NamedFile(FileRegistry.write_database, is_written=True)
CREATED_STORE: Final = NamedFile(FileRegistry.write_store, is_written=True, name="str")
KEPT_STORE: Final = NamedFile(lambda registry, _, store: registry.keep_store(store), name="str")
_FILES: Final = {
    "input": INPUT_PATH, "input or URL": INPUT_NAME, "output": OUTPUT_FILE,
    "database": NEW_DATABASE, "store": CREATED_STORE, "kept store": KEPT_STORE, "created store": CREATED_STORE,
}  # fmt: skip


def refuse_empty(option: str = "") -> NoReturn:
    """Refuse an empty name of a file, of an option or of an argument; most often, a variable of the shell is empty.

    Raises
    ------
    UsageError
    """
    problem = f"{option}: the name is empty" if option else "an argument is empty"
    raise UsageError(f"{problem}; give one, and check that a variable of the shell is not empty")


STORE_VARIABLE: Final = "SWSEARCH_STORE"
"""Environment variable that specifies the store if ``--store`` is not used."""


def store_or_none(store: str) -> str:
    """The name of a store; ``none`` is recognised in upper and lower case."""
    if not store.strip():
        raise InputError("--store has an empty name; give a file or a database URL, or none")
    return "none" if store.lower() == "none" else store


def refuse_none(store: str, otherwise: str = "") -> None:
    """Refuse ``none`` in commands that require a store, ``otherwise`` than which something else may be done.

    Raises
    ------
    InputError
        The name is ``none``, from the option or the environment.
    """
    if store_or_none(store) == "none":
        in_environment = os.environ.get(STORE_VARIABLE, "").lower() == "none"
        given = f"{STORE_VARIABLE}=none" if in_environment else "--store none"
        advice = f"name their store with --store FILE{otherwise}"
        raise InputError(f"{given} keeps no hits, and this command works on kept ones; {advice}")


def kept_store(store: str) -> str:
    """The name of a store, for commands that require one; :data:`DEFAULT_STORE` becomes the path of the user's store.

    Raises
    ------
    InputError
        The name is ``none``.
    StoreError
        It is the user's store, and the user has no home folder.
    """
    refuse_none(store)
    return str(user_store()) if store == DEFAULT_STORE else store


def created_store(store: str) -> str:
    """The result of :func:`kept_store`, for commands that create the store if it is missing."""
    name = kept_store(store)
    if store == DEFAULT_STORE:
        make_user_folder()
    return name


def device_list(devices: str | None) -> list[int] | None:
    """Device numbers from the value of ``--devices``; None if the option is not used.

    Raises
    ------
    InputError
        The value is not a list of numbers.

    >>> device_list("0,1")
    [0, 1]
    """
    if devices is None:
        return None
    numbers = whole_numbers(devices)
    if numbers is None:
        raise InputError(f"--devices {quoted(devices)}: give CUDA numbers separated by commas, such as 0,1")
    return numbers


def whole_numbers(text: str) -> list[int] | None:
    """The integers in a text of nonnegative integers, separated by commas.

    The result is None if the text has another form, or if a number has more than nine digits.

    >>> whole_numbers("0, 12"), whole_numbers("1,,2"), whole_numbers("-1")
    ([0, 12], None, None)
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) <= 9 for word in words):
        return None
    return [int(word) for word in words]


_CHECKS: Final[dict[str, Callable[[str], Any]]] = {
    "store": store_or_none, "kept store": kept_store, "created store": created_store, "devices": device_list,
    "fields": lambda names: None if names is None else names.replace(",", " ").split(),
    "format": lambda name: "blast6" if name == "m8" else name,  # as BLAST's -m 8 was called
    "subject_sets": lambda folder: refuse_empty("--subject-sets") if folder == "" else folder,
}  # fmt: skip
"""What the value of an option without choices must be or becomes, by its name or by what it names."""


def name_files(parameters: Iterable[Any], values: dict[str, Any]) -> None:
    """Put the shard in place of ``{shard}`` in the names of outputs, and tell the registry which files are named.

    Results on stdout are told when they begin, because some commands refuse two of them with a better message. Here it
    matters only that stdout may have been redirected to a file.

    Raises
    ------
    InputError
        An output must not be written, or a pipe is read by two arguments or options.
    """
    inputs: list[str] = []
    registry().write("", "-")
    for one in parameters:
        value = values.get(one.name)
        if not isinstance(one.type, NamedFile) or value is None:
            continue
        option = max(one.opts, key=len)
        for name in map(str, value if isinstance(value, (list, tuple)) else [value]):
            if not one.type.is_written:
                one.type.tell(registry(), option, name)
                inputs += [name] if one.type in (INPUT_PATH, INPUT_NAME) else []
            elif name != "-":
                values[one.name] = type(value)(of_share(name, values.get("shard")))
                one.type.tell(registry(), option, str(values[one.name]))
    if len(inputs) > 1:
        from swsearch.sequences.source import refuse_repeated_pipes  # only here: most commands do not read sequences

        refuse_repeated_pipes(inputs)


def of_share(name: str, shard: str | None) -> str:
    """The name of an output with the shard of ``--shard`` in place of ``{shard}``, if the command has this option."""
    if shard is None or "{shard}" not in name:
        return name
    from swsearch.hits.shards import asked_shard

    return asked_shard(shard, os.environ).named(name)


def table_options(command: str) -> list[TyperOption]:
    """The options that the table has for a command."""
    return [_table_option(row, command) for row in offered(command)]


def _table_option(row: Option, command: str) -> TyperOption:
    settings = _settings(row)
    check = settings.pop("callback")
    return TyperOption(
        param_decls=[row.name, *row.flags],
        type=_type(row),
        is_flag=row.type is bool,
        multiple=row.type is list,
        default=row.default_in(command),
        show_default=True,
        callback=None if check is None else lambda _ctx, _param, value: check(value),
        hidden=row.is_hidden,
        show_envvar=True,
        **settings,
    )


def _settings(row: Option) -> dict[str, Any]:
    """What Typer is told about an option in a signature and about one of its parser."""
    return {
        "help": _help(row),
        "rich_help_panel": row.panel or None,
        "metavar": row.metavar or (f"[{'|'.join(row.choices)}]" if row.choices else None),
        "autocompletion": _completion(row),
        "callback": row.check if row.choices else _CHECKS.get(row.file or row.name),
        "envvar": STORE_VARIABLE if row.name == "store" else None,
    }


def _help(row: Option) -> str:
    if "{formats}" not in row.help:
        return row.help
    from swsearch.report.formats import names_with_notes  # only here: most commands have no reports

    return row.help.replace("{formats}", names_with_notes())


def _type(row: Option) -> Any:
    if row.file:
        return _FILES[row.file]
    if row.type is bool:
        return None
    kind = str if row.type is list else row.type
    if row.minimum is None and row.maximum is None:
        return kind
    if row.words:
        return _NumberOrWord(row)
    return get_click_type(annotation=kind, parameter_info=typer.Option(min=row.minimum, max=row.maximum))


def _completion(row: Option) -> Callable[[Any, list[str], str], list[Any]] | None:
    if row.completion:
        words: Callable[[Any, list[str], str], list[Any]] = getattr(completion, row.completion)
        return words
    return (lambda ctx, args, incomplete: list(row.choices)) if row.choices else None


def declared(name: str, command: str | None = None, **changes: Any) -> Any:
    """The row of an option for the signature of a command, perhaps with another help or type of file.

    ``command`` is one whose row is meant, if several options have the name.
    """
    row = option_of(name, command)
    kind = {"min": row.minimum, "max": row.maximum, "click_type": _FILES.get(row.file)}
    return typer.Option(*row.flags, **_settings(row) | kind | changes)


DATABASE_HELP: Final = "A database made by `swsearch index`, its URL in an object store, or a sequence file."
AnyDatabase = Annotated[str, typer.Argument(metavar="DB", click_type=INPUT_NAME, help=DATABASE_HELP)]
StoredRun = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        autocompletion=completion.runs,
        help="Number of a run, or latest for the newest finished run, or the newest run if none is finished.",
    ),
]
Threads = Annotated[int | None, declared("threads")]
Out = Annotated[Path | None, declared("out", "query")]
Quiet = Annotated[bool, declared("quiet")]
"""What it means is decided in :meth:`swsearch.cli.command.Command.invoke`."""
DatabaseTaxidMap = Annotated[str | None, declared("taxid_map", "index")]
KeptStore = Annotated[str, declared("store", "report")]
CreatedStore = Annotated[str, declared("store", "serve")]
StageStore = Annotated[str, declared("stage_store")]
TableFormat = Annotated[str, declared("format", "kernels")]


class Arguments:
    """The values of the options of a command, as attributes by the names of the table.

    Their types are those of the table. An option that the command does not offer has the default that the table has
    for this command, such as ``top`` of all against all; so has one that the command line does not give, and that
    needs another one (:attr:`swsearch.options.Option.needs`).
    """

    def __init__(self, command: str, values: Mapping[str, Any], given: Collection[str]) -> None:
        self.command = command
        self._given = given
        rows = (*reversed(OPTIONS), *offered(command))  # of several rows, that of the command or else the first counts
        self._rows = {row.name: row for row in rows}
        self._values = {row.name: row.default_in(command) for row in rows}
        self._values |= {row.name: _converted(row, values[row.name]) for row in offered(command) if row.name in values}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(name)
        row, value = self._rows[name], self._values[name]
        default = row.default_in(self.command)
        return value if value == default or not row.needs or self.gives(name) or self._has_meaning(row) else default

    def _has_meaning(self, row: Option) -> bool:
        """Whether the option that another one needs has a value with which it has a meaning."""
        needed, *values = row.needs
        value = getattr(self, needed)
        if needed == "format":
            from swsearch.report.formats import takes

            return takes(value, row.name, self._values["fields"] or ())
        return value in values if values else value not in (None, "none", self._rows[needed].default)

    def changed(self, **values: Any) -> Arguments:
        """The same values, except for these."""
        other = copy(self)
        other._values = self._values | values
        return other

    def gives(self, *names: str) -> bool:
        """Whether the command line gives one of these parameters; the values of others are defaults."""
        return any(name in names for name in self._given)

    def format_by_name(self, out: str | os.PathLike[str] | None) -> str:
        """The format of a report: as asked, or what the name of its file says if no format is given.

        ``.gz`` and its like may follow the suffix of the file. The lines of blast6 are tab-separated, so ``.tsv`` says
        nothing else for them.

        Raises
        ------
        InputError
            The name is that of a file that no format writes, such as a spreadsheet.
        """
        from swsearch.report.formats import FOREIGN_SUFFIXES, FORMATS, SUFFIXES

        formats = self._rows["format"].choices or FORMATS
        usual = self._rows["format"].default_in(self.command)
        default = "table" if usual == "none" else usual
        chosen: str = self.format
        if out is None or chosen != default or self.gives("format"):
            return chosen
        path = Path(out)
        suffix = (Path(path.stem) if path.suffix.lower() in COMPRESSED else path).suffix.lower()
        if suffix in FOREIGN_SUFFIXES:
            own = ", ".join(one for one, name in SUFFIXES.items() if name in formats)
            raise InputError(
                f"--out {quoted(str(out))}: there are no reports as {suffix}; choose {own}, or say --format"
            )
        named = SUFFIXES.get(suffix, default)
        return default if named not in formats or (named, default) == ("tsv", "blast6") else named

    @property
    def asked(self) -> SearchOptions:
        """The options of the search, checked."""
        from swsearch.search.options import SearchOptions

        return SearchOptions(**{one.name: getattr(self, one.name) for one in fields(SearchOptions)})

    @property
    def machine(self) -> Machine:
        """What of this machine the search uses."""
        from swsearch.engine.registry import Machine

        return Machine(self.engine, self.threads, self.devices, not self.no_bound, self.partition_residues)

    @property
    def narrowing(self) -> Narrowing:
        """The limits by which a stored result is narrowed, checked."""
        from swsearch.report.narrowing import LIMITS, Narrowing

        limits = {name: value for name in LIMITS if (value := getattr(self, name)) is not None}
        if limits.get("top") == EVERY_SUBJECT:  # all that are stored
            del limits["top"]
        if limits:
            from swsearch.search.options import SearchOptions

            SearchOptions(**limits)
        return Narrowing(**limits)

    @property
    def rows(self) -> RowFilter | None:
        """The conditions on the rows of a multiple alignment, checked; None if there are none."""
        rows = [row for row in offered(self.command) if row.name.startswith("msa_")]
        if all(getattr(self, row.name) == row.default for row in rows):
            return None
        from swsearch.report.row_filter import RowFilter

        return RowFilter(**{row.name.removeprefix("msa_"): getattr(self, row.name) for row in rows})

    @property
    def part(self) -> SubjectPart | None:
        """The part of each subject that the format ``fasta`` writes, checked; None if no option is given."""
        from swsearch.sequences.fasta_text import SubjectPart

        is_asked = self.aligned or self.flank is not None
        return SubjectPart(aligned=True, flank=self.flank or 0) if is_asked else None


def _converted(row: Option, value: Any) -> Any:
    """The value of Typer's parser as the program uses it."""
    if row.type is list:
        return [Path(one) if row.file == "input" else one for one in value or ()] or None
    return Path(value) if row.type is Path and value is not None else value


def check_alphabet(alphabet: str | None, requirements: Requirements) -> None:
    """Refuse an ``--alphabet`` that is not the alphabet of the queries of this search.

    Raises
    ------
    InputError
        The alphabets differ; the message names the options with which queries of this alphabet can be searched.
    """
    if alphabet in (None, requirements.alphabet.name):
        return
    from swsearch.sequences.alphabet import ALPHABETS

    chosen = ALPHABETS[alphabet]
    how, advice = "without --translate", f"leave --alphabet out, or {requirements.advice(chosen)}"
    if requirements.translate is not None:
        how, advice = f"with --translate {requirements.translate}", requirements.advice(chosen)
    raise InputError(f"--alphabet {alphabet}: {how} queries are {requirements.alphabet.name}; {advice}")

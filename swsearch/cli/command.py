"""The commands of ``swsearch`` as Typer builds them: groups of commands, and what each command adds to Typer's.

Typer's parser reads the words of a command line; nothing else in the program does. :class:`Preparation` gives it other
programs' names of the command's options (:mod:`swsearch.cli.spellings`). Before the values are converted, it replaces
those names, finds the defaults of the environment and the configuration file, and opens the log. The program itself
answers other programs' command words.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from swsearch.cli import command_line, log
from swsearch.cli.configuration import PLACES, Given, converted, defaults_of, naming_places
from swsearch.cli.options import Arguments, name_files, table_options
from swsearch.cli.output import quietly
from swsearch.errors import SwSearchError, UsageError
from swsearch.options import FLAGS, PANELS, SEARCH_OPTIONS
from swsearch.words import shortened

if TYPE_CHECKING:
    from swsearch.cli.spellings import Spelling

_VALUES: Final = {
    "<int range>": "N", "<int>": "N", "<float range>": "X", "<float>": "X", "<str>": "TEXT", "<path>": "FILE",
}  # fmt: skip
"""The words for values in the help, in place of Typer's names of types."""
MAX_WIDTH: Final = 120
"""Largest number of columns of the help."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
PROGRAMS: Final = "swsearch.programs"
"""Key in ``ctx.meta`` for the programs whose words are parsed, also their short ones; by default, those of all."""
_DATABASE: Final[dict[str, str | None]] = {"query": None, "batch": None, "msa": None, "index": "--out"}
"""For each command that takes ``-query`` and ``-db``, the option for ``-db``; None if it is the last argument."""


# --- commands and groups of commands ---


class Command(TyperCommand):
    """A command; each has the option ``--log``."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._of_table = table_options(self.name or "")
        self.params += [*self._of_table, log.option(), Preparation()]

    def invoke(self, ctx: Any) -> Any:
        """Call the function of the command; ``ctx.obj`` has the options of the table."""
        is_quiet, given = bool(ctx.params.get("quiet")), given_names(ctx)
        values = {str(one.name): ctx.params.pop(str(one.name)) for one in self._of_table}
        ctx.obj = Arguments(self.name or "", values, given)
        with quietly(is_quiet), naming_places(ctx):
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and tell the registry which files they name; wrong usage is logged.

        Raises
        ------
        UsageError
            A value of another program has no counterpart.
        InputError
            An output must not be written.
        """
        words = list(args)
        try:
            with naming_places(ctx):
                left = super().parse_args(ctx, args)
        except Exception as error:
            if not is_refusal(error) and not isinstance(error, SwSearchError):
                raise
            if getattr(error, "ctx", ctx) is None:  # an option without its value; the message names this command
                error.ctx = ctx  # type: ignore[attr-defined]
            if similar := getattr(error, "possibilities", None):
                own = {name for one in self.get_params(ctx) for name in one.opts}
                error.possibilities = [name for name in similar if name in own]  # type: ignore[attr-defined]
            if not ctx.resilient_parsing:
                prepare(ctx, leniently_parsed(ctx, words))
            _refuse_option_of_searches(name_of(ctx), getattr(error, "option_name", ""))
            if hasattr(error, "possibilities"):  # an unknown option; the parser has taken the words up to it
                explain_unknown(error, ctx, words, len(words) - len(args) - 1)
            raise
        if not ctx.resilient_parsing:
            name_files(self.params, ctx.params)
        return left

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options in groups: each under its panel, in the order of the groups."""
        groups: dict[str, list[Any]] = {name: [] for name in ("Arguments", *PANELS, "Options")}
        for one in self.get_params(ctx):
            is_option = one.param_type_name == "option"
            groups[getattr(one, "rich_help_panel", None) or "Options" if is_option else "Arguments"].append(one)
        for name, members in groups.items():
            records = [record for one in members if (record := one.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(name):
                    formatter.write_dl(list(_with_words_for_values(records)))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the usage line; a required argument has no braces."""
        return [piece.removeprefix("{").removesuffix("}") for piece in super().collect_usage_pieces(ctx)]


def _refuse_option_of_searches(command: str, unknown: str) -> None:
    """Refuse an unknown option of ``report`` that decides which hits a search finds, in words that say so."""
    if command == "report" and unknown.lstrip("-").replace("-", "_") in SEARCH_OPTIONS:
        reason = "it belongs to a search, and `swsearch report` computes nothing"
        raise UsageError(f"{shortened(unknown)}: {reason}; search again with it")


def given_names(context: typer.Context) -> list[str]:
    """The names of the parameters that the command line gives; the values of others are defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if getattr(source, "name", "") == "COMMANDLINE"]


def all_commands() -> dict[str, Any]:
    """All commands by their names, such as ``query`` and ``db info``."""
    from swsearch.cli.app import commands

    found: dict[str, Any] = {}
    root: Any = commands()
    for name, command in root.commands.items():
        found |= {f"{name} {inner}": one for inner, one in getattr(command, "commands", {}).items()}
        if not hasattr(command, "commands") or command.invoke_without_command:
            found[name] = command
    return found


def context_of(command: Any, name: str) -> typer.Context:
    """The context of a command as if it were called; one without the settings of the program would change its help."""
    from swsearch.cli.app import commands

    root: Any = commands()
    parent = typer.Context(root, info_name="swsearch", **root.context_settings)
    return typer.Context(command, info_name=name, parent=parent)


def names_of_all() -> dict[str, list[str]]:
    """The names of the options of each command, with ``_``."""
    return {name: list(option_names(context_of(one, name))) for name, one in all_commands().items()}


def _with_words_for_values(records: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for option, text in records:
        names, blank, value = option.rpartition(" <")
        yield (f"{names} {_VALUES.get(f'<{value}', f'<{value}')}" if blank else option), text


class Group(TyperGroup):
    """A group of commands; the root of all answers the words of other programs."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.append(log.option())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command; without arguments, print the help and end with exit code 2."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            print(ctx.get_help(), file=sys.stderr)
            ctx.exit(2)
        words = list(args)
        try:
            left = super().parse_args(ctx, args)
        except Exception as error:
            if is_refusal(error) and not ctx.resilient_parsing:
                self._refuse_other_words(ctx, words, leniently_parsed(ctx, words).get(log.NAME))
            raise
        if not left and self.invoke_without_command and not ctx.resilient_parsing:
            log.begin_log(
                ctx.meta.get(log.KEY), [text for value in ctx.params.values() for text in command_line.texts(value)]
            )
        return left

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the words name; the root of all answers words of other programs with the right line."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if is_refusal(error) and not ctx.resilient_parsing:
                self._refuse_other_words(ctx, args, ctx.meta.get(log.KEY))
            raise

    def _refuse_other_words(self, ctx: Any, words: list[str], log_file: str | None) -> None:
        log.begin_log(log_file, ())
        if ctx.parent is None:
            from swsearch.cli.spellings import refuse_other_words

            refuse_other_words(words, self.commands)


class CommandGroup(typer.Typer):
    """Commands under one name, such as those of ``swsearch db``; the parameters are those of ``typer.Typer``."""

    def __init__(self, cls: type[TyperGroup] = Group, **settings: Any) -> None:
        super().__init__(cls=cls, add_completion=False, rich_markup_mode=None, **settings)

    def command(self, *names: Any, **settings: Any) -> Callable[[_Function], _Function]:
        """Add a command, as ``typer.Typer.command``."""
        return super().command(*names, cls=Command, **settings)


# --- what is done before the values of a command line are converted ---


class Preparation(TyperOption):
    """An option of every command that has no name; the parser processes it before those with a value."""

    def __init__(self) -> None:
        super().__init__(param_decls=["preparation", "--preparation"], hidden=True, is_eager=True, expose_value=False)

    def add_to_parser(self, parser: Any, ctx: Any) -> None:
        """Add the other names of the command's options: with one dash, and those of other programs."""
        options = _options(ctx)
        for one in options.values():
            _add(parser, one, [name[1:] for name in one.opts if len(name) > 3], const=True)
            _add(parser, one, [name[1:] for name in one.secondary_opts], const=False)
        for row in _usable(ctx):
            target = options.get(row.here)
            names = [name for name in row.names if name == row.name or name not in options]
            if target is not None and row.convert is None:
                _add(parser, target, names, const=True)
            else:
                action = "store" if row.takes else "store_const"
                parser.add_option(obj=self, opts=names, dest=row.name, action=action, const=True)

    def handle_parse_result(self, ctx: Any, opts: Mapping[str, Any], args: list[str]) -> tuple[Any, list[str]]:
        """Prepare the values of the command line, unless only a shell's completion asks."""
        if not ctx.resilient_parsing:
            assert isinstance(opts, dict)
            replace_names(ctx, opts)
            command_line.note(name_of(ctx), ctx.command.get_params(ctx), opts)
            prepare(ctx, opts)
        return None, args


def prepare(ctx: Any, opts: Mapping[str, Any]) -> None:
    """Find the defaults of the environment and the configuration file, and open the log.

    ``opts`` has the values of the parser by the names of the parameters.
    """
    found = configured(ctx, on_server=opts.get("server") not in (None, "auto"))
    ctx.meta[PLACES] = found
    ctx.default_map = {key: value for key, (value, _) in found.items()}
    named = (opts.get(log.NAME), ctx.meta.get(log.KEY), ctx.default_map.get(log.NAME))
    name = next((one for one in named if one is not None), None)
    others = [text for key, value in opts.items() if key != log.NAME for text in command_line.texts(value)]
    log.begin_log(name, others, opts.get("shard") or ctx.default_map.get("shard"))


def leniently_parsed(ctx: Any, words: Sequence[str]) -> dict[str, Any]:
    """The values of a line that has wrong words, by the names of the parameters; those it states rightly."""
    lenient = typer.Context(
        ctx.command, parent=ctx.parent, info_name=ctx.info_name, resilient_parsing=True, ignore_unknown_options=True
    )
    opts, _, _ = ctx.command.make_parser(lenient).parse_args(list(words))
    return dict(opts)


def configured(ctx: Any, *, on_server: bool = False) -> dict[str, tuple[Any, Given]]:
    """The defaults of a command from the environment and the configuration file, by the names of its parameters.

    With ``on_server``, those of options that concern this machine are left out.
    """
    by_name = option_names(ctx)
    usable = [one for one in by_name if not on_server or one in SEARCH_OPTIONS or one == log.NAME]
    found = [(by_name[given.name], given) for given in defaults_of(name_of(ctx), usable)]
    return {one.name: (converted(one, ctx, given), given) for one, given in found}


def name_of(ctx: Any) -> str:
    """The name of the command, as ``query`` or ``db info``."""
    return str(ctx.command_path.removeprefix(f"{ctx.find_root().info_name} "))


def option_names(ctx: Any) -> dict[str, Any]:
    """The options of a command by their long names with ``_``."""
    return {
        max(one.opts, key=len).lstrip("-").replace("-", "_"): one
        for one in ctx.command.get_params(ctx)
        if one.param_type_name == "option" and not one.hidden and "--help" not in one.opts
    }


def _options(ctx: Any) -> dict[str, Any]:
    """The options of a command by each of their names."""
    return {
        name: one
        for one in ctx.command.get_params(ctx)
        if one.param_type_name == "option" and not one.hidden
        for name in one.opts
    }


def is_refusal(error: Exception) -> bool:
    """Whether an exception is the parser's refusal of a command line; any other one concerns the program."""
    return hasattr(error, "format_message")


# --- the names of other programs ---


def is_long_name(word: str) -> bool:
    """Whether a word with one dash is the name of an option, not a short option with its value.

    >>> is_long_name("-word_size"), is_long_name("-k5"), is_long_name("-s"), is_long_name("--fast")
    (True, False, False, False)
    """
    return re.fullmatch("-[A-Za-z][A-Za-z_]+", word) is not None


def value_behind(words: Sequence[str], at: int) -> str | None:
    """The word behind an option of a command line, if it may be its value: a number, or no option."""
    follows = words[at + 1 : at + 2]
    return follows[0] if follows and re.match("[^-]|-?$|-[0-9.]", follows[0]) else None


def one_dash_names(ctx: Any) -> set[str]:
    """The names with one dash that the parser knows, also those of other programs, with ``_`` and with ``-``."""
    names = {name[1:] for one in _options(ctx).values() for name in (*one.opts, *one.secondary_opts)}
    names |= {row.name for row in _usable(ctx)}
    return names | {name.replace("-", "_").replace("_", "-", 1) for name in names}


def explain_unknown(error: Any, ctx: Any, words: Sequence[str], at: int) -> None:
    """Let the error of an unknown option, which stands at a place of the line, name it and its meaning elsewhere.

    The parser names a word with one dash by its first letter.
    """
    from swsearch.cli.spellings import ALL_PROGRAMS

    name, _, value = words[at].partition("=")
    if name[:2] != "--" and not is_long_name(name):
        name, value = name[:2], name[2:] or value
    options = _options(ctx)
    rows = [row for row in _usable(ctx, ALL_PROGRAMS) if row.name == name]
    given = value or value_behind(words, at)
    meanings = [
        f"that of {row.program} {described}"
        for row in rows
        if options.keys() >= set(re.findall("--[a-z-]+", described := row.described(given)))
    ]
    error.message = "; ".join([f"No such option: {shortened(name)}", *meanings])


def _add(parser: Any, option: Any, names: Sequence[str], *, const: bool) -> None:
    """Let the parser know an option by further names."""
    if not names:
        return
    if option.is_flag:
        parser.add_option(obj=option, opts=names, dest=option.name, action="store_const", const=const)
    else:
        action = "append" if option.multiple else "store"
        parser.add_option(obj=option, opts=names, dest=option.name, action=action, nargs=option.nargs)


def _usable(ctx: Any, programs: Sequence[str] | None = None) -> Iterable[Spelling]:
    """The rows that a command can follow: those of a program take precedence over its own names, others do not.

    By default, the programs are those whose words are parsed.
    """
    from swsearch.cli.spellings import FIRST, LAST, SPELLINGS

    command, options, programs = name_of(ctx), _options(ctx), programs or ctx.meta.get(PROGRAMS)
    for row in SPELLINGS:
        is_own = row.name in options or (not row.here and row.name in FLAGS)
        is_of = not (row.is_short or is_own) if programs is None else row.program in programs
        is_known = command in _DATABASE if row.here in (FIRST, LAST) else row.convert is not None or row.here in options
        if is_of and is_known:
            yield row


def replace_names(ctx: Any, opts: dict[str, Any], problems: list[str] | None = None) -> None:
    """Replace what the parser found under names of other programs by options and arguments of the command.

    Raises
    ------
    UsageError
        A value has no counterpart, two names mean the same option, or the command does not have it. With a list of
        ``problems``, this message is added to it instead, and the name is left out.
    """
    if not any(key.startswith("-") for key in opts):
        return
    from swsearch.cli.spellings import FIRST, LAST

    options = _options(ctx)
    rows = {row.name: row for row in _usable(ctx)}
    arguments = next((one.name for one in ctx.command.get_params(ctx) if one.nargs == -1), "")
    files = list(opts.pop(arguments, None) or ())
    source_of: dict[str, str] = {}
    found = dict(opts)
    opts.clear()
    for key, value in found.items():
        if key not in rows:
            opts[key] = value
            continue
        row = rows[key]
        try:
            for flag, own in _own(row, None if value is True else value, files):
                if flag == FIRST:
                    files.insert(0, str(own))
                elif flag == LAST and _DATABASE[name_of(ctx)] is None:
                    _add_databases(row, str(own), files, opts, options)
                else:
                    target = str(_DATABASE[name_of(ctx)]) if flag == LAST else flag
                    if target not in options:
                        raise UsageError(f"{key} means {target}, which `swsearch {name_of(ctx)}` does not have")
                    if source_of.setdefault(target, key) != key:
                        raise UsageError(
                            f"{key}: it means {target}, and so does {source_of[target]}; say {target} once"
                        )
                    opts[options[target].name] = True if own is None else own
        except UsageError as error:
            if problems is None:
                raise
            problems.append(str(error))
    if arguments:
        opts[arguments] = tuple(files) or None


def _own(row: Spelling, value: str | None, files: list[str]) -> list[tuple[str, str | None]]:
    """The options of swsearch for a value; names of fields behind it were parsed as files, and are taken from these."""
    from swsearch.cli.spellings import OTHERS

    if row.takes_fields and value is not None:
        from swsearch.report.fields import FIELDS

        fields = [word for word in files if word in ("std", *FIELDS) and not os.path.exists(word)]
        files[:] = [word for word in files if word not in fields]
        value = " ".join([value, *fields])
    try:
        return row.own(value)
    except UsageError as error:
        shown = row.name if value is None else f"{row.name} {shortened(value)}"
        is_of_program = row.program != OTHERS
        problem = f"{shown} of {row.program} has no counterpart" if is_of_program else f"no such option: {row.name}"
        raise UsageError(f"{problem}; {error}") from error


def _add_databases(row: Spelling, value: str, files: list[str], opts: dict[str, Any], options: Any) -> None:
    """Add the databases of ``-db`` behind the files.

    A sequence file or several databases are added as ``--db``, if the command has it: as the last argument, a sequence
    file would be a query file where the configuration file has databases.
    """
    from swsearch.cli.spellings import databases_of

    databases = databases_of(value) if row.names_databases else [value]
    if "--db" in options and (len(databases) > 1 or os.path.isfile(value)):
        opts["db"] = [*(opts.get("db") or ()), *databases]
        return
    files += databases
    if len(databases) > 1 and "--together" in options:
        opts[options["--together"].name] = True

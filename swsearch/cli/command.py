"""The commands of ``swsearch`` as Typer builds them: groups of commands, and what each command adds to Typer's.

A command understands other programs' spellings of its options (:mod:`swsearch.cli.wording`), and the program itself
answers their command words (:mod:`swsearch.cli.other_programs`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Final, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from swsearch.cli import log
from swsearch.cli.configuration import Given, converted, defaults_of
from swsearch.cli.options import Arguments, table_options, tell_files
from swsearch.cli.wording import CommandOptions, in_own_words
from swsearch.errors import UsageError
from swsearch.options import PANELS, SEARCH_OPTIONS

_VALUES: Final = {
    "<int range>": "N", "<int>": "N", "<float range>": "X", "<float>": "X", "<str>": "TEXT", "<path>": "FILE",
}  # fmt: skip
"""The words for values in the help, in place of Typer's names of types."""
MAX_WIDTH: Final = 120
"""Largest number of columns of the help."""
_FILE_METAVARS: Final = ("FILE", "DB", "FOLDER")
_FILE_OPTIONS: Final = ("out", "taxonomy")
"""How options are recognised whose values name files, besides by their type."""

_GIVEN: Final[ContextVar[frozenset[str]]] = ContextVar("swsearch_given_options", default=frozenset())
"""The names of the parameters that the command line in progress gives."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Command(TyperCommand):
    """A command; each has the option ``--log``."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._of_table = table_options(self.name or "")
        self.params += [*self._of_table, log.option()]

    def invoke(self, ctx: Any) -> Any:
        """Call the function of the command; ``ctx.obj`` has the options of the table."""
        ctx.obj = Arguments(self.name or "", {str(one.name): ctx.params.pop(str(one.name)) for one in self._of_table})
        return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, in the words of swsearch or of other programs.

        Raises
        ------
        UsageError
            An option has no counterpart.
        InputError
            An output must not be written.
        """
        if not ctx.resilient_parsing:
            name = ctx.command_path.removeprefix(f"{ctx.find_root().info_name} ")
            known = CommandOptions.of(name, self.get_params(ctx))
            args = in_own_words(args, known)
            _refuse_empty_names(args, known, self.get_params(ctx))
            if not {"-h", "--help"} & {*args}:
                on_server = any(word.partition("=")[0] == "--server" for word in args)
                found = configured(self, ctx, name, on_server=on_server)
                ctx.default_map = {key: value for key, (value, _) in found.items()}
                log.begin_log(args, ctx.default_map.get(log.NAME), ctx.default_map.get("shard"))
        try:
            left = super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # an option without its value; the message names this command
                error.ctx = ctx  # type: ignore[attr-defined]
            raise
        if not ctx.resilient_parsing:
            _GIVEN.set(frozenset(name for name in ctx.params if is_on_command_line(ctx, name)))
            tell_files(self.params, ctx.params)
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


def configured(command: Any, ctx: Any, name: str, *, on_server: bool = False) -> dict[str, tuple[Any, Given]]:
    """The defaults of a command from the environment and the configuration file, by the names of its parameters.

    With ``on_server``, those of options that concern this machine are left out.
    """
    by_name = option_names(command, ctx)
    usable = [one for one in by_name if not on_server or one in SEARCH_OPTIONS or one == log.NAME]
    found = defaults_of(name, usable, _names_of_all)
    return {by_name[key].name: (converted(by_name[key], ctx, given), given) for key, given in found}


def _refuse_empty_names(words: Sequence[str], options: CommandOptions, parameters: Iterable[Any]) -> None:
    """Refuse empty names of files and databases, which would be those of the working folder.

    ``align --text`` has texts for arguments, which may be empty.

    Raises
    ------
    UsageError
        Such a name is empty; most often, a variable of the shell is.
    """
    advice = "give one, and check that a variable of the shell is not empty"
    name_files = {
        name
        for one in parameters
        if one.param_type_name == "option" and one.name != log.NAME
        if one.type.name == "path" or one.metavar in _FILE_METAVARS or one.name in _FILE_OPTIONS
        for name in one.opts
    }
    left = list(words)
    arguments: list[str] = []
    while left:
        word = left.pop(0)
        name, has_value, value = word.partition("=")
        if word == "--":
            arguments += left
            break
        if not word.startswith("-"):
            arguments.append(word)
        elif name not in options.takes_value:
            return  # the parser says that there is no such option
        elif options.takes_value[name] and (has_value or left):
            value = value if has_value else left.pop(0)
            if not value and name in name_files:
                raise UsageError(f"{name}: the name is empty; {advice}")
    if "" in arguments and "--text" not in words:
        raise UsageError(f"an argument is empty; {advice}")


def is_on_command_line(context: typer.Context, name: str) -> bool:
    """Whether the command line gives the option with this parameter name; otherwise, its value is a default."""
    return getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"


def words_give(*names: str) -> bool:
    """Whether the command line in progress gives one of these parameters, as :func:`is_on_command_line`."""
    return not _GIVEN.get().isdisjoint(names)


def option_names(command: Any, ctx: Any) -> dict[str, Any]:
    """The options of a command by their long names with ``_``."""
    return {
        max(one.opts, key=len).lstrip("-").replace("-", "_"): one
        for one in command.get_params(ctx)
        if one.param_type_name == "option" and "--help" not in one.opts
    }


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


def _names_of_all() -> dict[str, list[str]]:
    return {name: list(option_names(one, typer.Context(one))) for name, one in all_commands().items()}


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
        if (
            ctx.parent is None
            and not ctx.resilient_parsing
            and args
            and args[0].partition("=")[0] not in self._known(ctx)
        ):
            from swsearch.cli.other_programs import refuse_other_words

            refuse_other_words(args, self.commands)
        return super().parse_args(ctx, args)

    def _known(self, ctx: Any) -> set[str]:
        """The words with which a command line may begin."""
        return {"--", *self.commands, *(name for one in self.get_params(ctx) for name in one.opts)}


class CommandGroup(typer.Typer):
    """Commands under one name, such as those of ``swsearch db``; the parameters are those of ``typer.Typer``."""

    def __init__(self, cls: type[TyperGroup] = Group, **settings: Any) -> None:
        super().__init__(cls=cls, add_completion=False, rich_markup_mode=None, **settings)

    def command(self, *names: Any, **settings: Any) -> Callable[[_Function], _Function]:
        """Add a command, as ``typer.Typer.command``."""
        return super().command(*names, cls=Command, **settings)

"""The commands of ``swsearch`` as Typer builds them: groups of commands, and what each command adds to Typer's.

A command understands other programs' spellings of its options (:mod:`swsearch.cli.parsing`), and the program itself
answers their command words (:mod:`swsearch.cli.spellings`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from swsearch.cli import log
from swsearch.cli.command_line import texts
from swsearch.cli.configuration import naming_places
from swsearch.cli.options import Arguments, table_options, tell_files
from swsearch.cli.output import quietly
from swsearch.cli.parsing import (
    Preparation,
    explain_unknown,
    is_refusal,
    leniently_parsed,
    name_of,
    option_names,
    prepare,
)
from swsearch.errors import SwSearchError, UsageError
from swsearch.options import PANELS, SEARCH_OPTIONS
from swsearch.words import shortened

_VALUES: Final = {
    "<int range>": "N", "<int>": "N", "<float range>": "X", "<float>": "X", "<str>": "TEXT", "<path>": "FILE",
}  # fmt: skip
"""The words for values in the help, in place of Typer's names of types."""
MAX_WIDTH: Final = 120
"""Largest number of columns of the help."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


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
            log.begin_log(ctx.meta.get(log.KEY), [text for value in ctx.params.values() for text in texts(value)])
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

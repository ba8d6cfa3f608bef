"""``swsearch completion``: the script by which a shell completes command lines, and the words that it completes.

Typer has the scripts, calls the functions of this module with what precedes the cursor, and leaves out words that begin
otherwise. File names are completed by the shell itself.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, Final, Literal

import typer

from swsearch.errors import SwSearchError
from swsearch.folders import user_store

VARIABLE: Final = "_SWSEARCH_COMPLETE"
"""Environment variable by which the script asks the program for words; the name follows from that of the program."""


def begin_completion() -> None:
    """Let the program answer the script of a shell; messages would stand in the line that is being typed."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="bash|zsh|fish", help="Shell for which the script is printed."),
    ],
) -> None:
    """Print the script that completes commands, options and values in a shell.

    Choices, formats, fields, matrices and numbers of runs are completed. A line in ~/.bashrc enables it:
    eval "$(swsearch completion bash)"; in ~/.zshrc, the same with zsh; for fish: swsearch completion fish | source.

    Example: swsearch completion bash
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="swsearch", complete_var=VARIABLE, shell=shell))


def formats(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Report formats."""
    from swsearch.report.formats import FORMATS

    return list(FORMATS)


def fields(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Names of fields; of a list with commas, the last one."""
    from swsearch.report.fields import FIELDS

    before, comma, _ = incomplete.rpartition(",")
    chosen = before.split(",")
    return [f"{before}{comma}{name}" for name in ("std", *FIELDS) if name not in chosen]


def matrices(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Names of matrices."""
    from swsearch.scoring.matrix import matrix_names

    return matrix_names()


def runs(ctx: Any, args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """Numbers of the runs of the store that the command line names, the newest first, and ``latest``."""
    from swsearch.store.store import Store

    found = [("latest", "the newest finished run")]
    try:
        with Store(ctx.params.get("store") or user_store(), only_read=True) as store:
            found += [
                (str(run.id), f"{run.info.database.name}, {run.started:%Y-%m-%d %H:%M} UTC, {run.state}")
                for run in reversed(store.runs.all())
            ]
    except SwSearchError:
        pass  # without a store there are no numbers
    return found

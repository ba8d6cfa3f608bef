"""What every searching command asks for, declared once: :class:`SearchArguments` holds the answers, and
:func:`takes_search_arguments` gives a command the options.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swsearch.cli import options

if TYPE_CHECKING:
    from swsearch.search.options import SearchOptions
    from swsearch.search.searcher import Searcher


@dataclass(frozen=True)
class SearchArguments:
    """The options of a search and of the machine it runs on. Each field is an option of the same name."""

    alphabet: options.Alphabet = None
    top: options.Top = 25
    evalue: options.Evalue = 10.0
    ties: options.Ties = "cut"
    strand: options.Strand = "both"
    matrix: options.Matrix = None
    match: options.Match = None
    mismatch: options.Mismatch = None
    gap_open: options.GapOpen = None
    gap_extend: options.GapExtend = None
    dbsize: options.DbSize = None
    engine: options.Engine = "auto"
    threads: options.Threads = None
    devices: options.Devices = "0"
    partition_residues: options.PartitionResidues = None
    store: options.Store = options.DEFAULT_STORE
    quiet: options.Quiet = False

    @property
    def asked(self) -> SearchOptions:
        """The fields that :class:`SearchOptions` has, checked."""
        from swsearch.search.options import SearchOptions

        return SearchOptions(**{field.name: getattr(self, field.name) for field in fields(SearchOptions)})

    def wake_gpus(self, database: str) -> None:
        """Let the GPUs of this search start while the program loads what else it needs; never fails."""
        from swsearch.database.reader import load_catalogue
        from swsearch.engine.registry import wake_gpus
        from swsearch.errors import SwSearchError

        # What is wrong with the options or the database is said by open_searcher.
        with contextlib.suppress(SwSearchError):
            catalogue = load_catalogue(Path(database))
            wake_gpus(self.engine, options.device_list(self.devices), catalogue.n_subjects)

    def open_searcher(self, database: str) -> AbstractContextManager[tuple[Searcher, str]]:
        """Open a database and an engine for these options; see :func:`swsearch.search.api.open_searcher`."""
        from swsearch.search.api import open_searcher

        return open_searcher(
            database,
            self.asked,
            engine=self.engine,
            threads=self.threads,
            devices=options.device_list(self.devices),
            partition_residues=self.partition_residues,
        )


def takes_search_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` an option for each field of :class:`SearchArguments`.

    ``command`` has a parameter ``search: SearchArguments``, in whose place the options appear in its help.
    """
    shared = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(SearchArguments, eval_str=True).parameters.values()
    ]
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name == "search":
            parameters += shared
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        search = SearchArguments(**{parameter.name: given.pop(parameter.name) for parameter in shared})
        command(**given, search=search)

    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped

"""What every searching command asks for, declared once: :class:`SearchArguments` holds the answers, and
:func:`takes_search_arguments` gives a command the options.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from swsearch.cli import options

if TYPE_CHECKING:
    from swsearch.cli.progress import ProgressReport
    from swsearch.search.options import SearchOptions
    from swsearch.search.searcher import Searcher

SWITCH_SECONDS: Final = 0.0005
"""How long a GPU's thread waits for Python's lock, which loading modules and aligning would keep from it longer."""


@dataclass(frozen=True)
class SearchArguments:
    """The options of a search and of the machine it runs on. Each field is an option of the same name."""

    alphabet: options.Alphabet = None
    top: options.Top = 25
    evalue: options.Evalue = 10.0
    ties: options.Ties = "cut"
    strand: options.Strand = "both"
    translate: options.Translate = None
    genetic_code: options.GeneticCode = None
    max_hsps: options.MaxHsps = 1
    matrix: options.Matrix = None
    match: options.Match = None
    mismatch: options.Mismatch = None
    gap_open: options.GapOpen = None
    gap_extend: options.GapExtend = None
    dbsize: options.DbSize = None
    mask: options.Mask = "none"
    mask_mode: options.MaskMode = "soft"
    composition: options.Composition = "none"
    min_score: options.MinScore = None
    min_bits: options.MinBits = None
    min_identity: options.MinIdentity = None
    min_query_coverage: options.MinQueryCoverage = None
    min_subject_coverage: options.MinSubjectCoverage = None
    min_alignment_length: options.MinAlignmentLength = None
    min_length: options.MinLength = None
    max_length: options.MaxLength = None
    id_pattern: options.IdPattern = None
    include: options.Include = None
    exclude: options.Exclude = None
    taxid: options.Taxid = None
    taxid_map: options.TaxidMap = None
    taxonomy: options.Taxonomy = None
    engine: options.Engine = "auto"
    threads: options.Threads = None
    devices: options.Devices = None
    kernel: options.Kernel = "strip"
    partition_residues: options.PartitionResidues = None
    store: options.Store = options.DEFAULT_STORE
    quiet: options.Quiet = False

    @property
    def asked(self) -> SearchOptions:
        """The fields that :class:`SearchOptions` has, checked."""
        from swsearch.search.options import SearchOptions

        return SearchOptions(**{field.name: getattr(self, field.name) for field in fields(SearchOptions)})

    @property
    def files(self) -> list[str]:
        """The files that these options read; a matrix may be one, or a name."""
        named = (self.matrix, self.include, self.exclude, self.taxid_map, self.taxonomy)
        return [path for path in named if path is not None]

    def warm_up_gpus(self, database: str) -> None:
        """Let the GPUs of this search start while the program loads what else it needs; never fails."""
        from swsearch.database.reader import load_catalogue
        from swsearch.engine.registry import warm_up_gpus
        from swsearch.errors import SwSearchError

        # What is wrong with the options or the database is said by open_searcher.
        with contextlib.suppress(SwSearchError):
            catalogue = load_catalogue(Path(database))
            if warm_up_gpus(self.engine, options.device_list(self.devices) or (0,), catalogue.n_subjects):
                sys.setswitchinterval(SWITCH_SECONDS)

    @contextlib.contextmanager
    def open_searcher(self, database: str) -> Iterator[tuple[Searcher, str]]:
        """Open a database and an engine for these options; see :func:`swsearch.search.api.open_searcher`.

        Where subjects are translated, says how far that is.
        """
        from swsearch.search.api import open_searcher

        asked = self.asked
        with contextlib.ExitStack() as stack:
            with self._translation_report(database) as report:
                opened = stack.enter_context(
                    open_searcher(
                        database,
                        asked,
                        engine=self.engine,
                        threads=self.threads,
                        devices=options.device_list(self.devices),
                        kernel=self.kernel,
                        partition_residues=self.partition_residues,
                        translating=None if report is None else report.advance,
                    )
                )
            yield opened

    def _translation_report(self, database: str) -> AbstractContextManager[ProgressReport | None]:
        from swsearch.cli.progress import ProgressReport
        from swsearch.database.reader import load_catalogue

        if self.translate not in ("subject", "both"):
            return contextlib.nullcontext()
        n_bases = load_catalogue(Path(database)).n_residues
        return ProgressReport("translating", n_bases, "M bases/s", 1e6, self.quiet)


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

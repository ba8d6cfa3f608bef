"""The domains of queries that are proteins: found by `swsearch domains` when a page asks for them.

One process at a time looks for them, with one thread, so that neither the web process nor its workers wait for it, and
nothing that fails there ends them. Browsers keep what was found.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from swsearch.errors import EngineError, Refused

if TYPE_CHECKING:
    from swsearch.domains.domain_report import Values

_MOST_WAITING: Final = 32
"""Number of proteins that may wait for their turn."""
_NICE: Final = ("nice", "-n", "5")
"""As a worker that computes on the cores of its server."""


def check_families(paths: Sequence[str]) -> tuple[str, ...]:
    """Files of models; raises InputError for one that cannot be read, or does not begin with a model of proteins, and
    for two models of one name.
    """
    from swsearch.domains.model_library import ModelLibrary
    from swsearch.query.hmm import read_families
    from swsearch.scoring.matrix import named_matrix

    for path in paths:
        next(read_families(path, named_matrix("BLOSUM62")))
    ModelLibrary(paths, named_matrix("BLOSUM62"))
    return tuple(paths)


class DomainFinder:
    """Finds the domains of proteins by some files of models, at least one; it belongs to one event loop."""

    def __init__(self, families: Sequence[str]) -> None:
        nice = _NICE if shutil.which(_NICE[0]) else ()
        options = ("--engine", "cpu", "--threads", "1", "--format", "jsonl", "--quiet")
        self._command = (*nice, sys.executable, "-P", "-m", "swsearch", "domains", "-", *families, *options)
        self._turn = asyncio.Semaphore(1)
        self._n_waiting = 0

    async def of(self, letters: str) -> list[Values]:
        """The domains of a protein, as the format ``jsonl`` has them.

        Raises EngineError if they could not be found, and Refused if too many proteins wait.
        """
        if self._n_waiting == _MOST_WAITING:
            raise Refused("server_busy", "many proteins wait for their domains; try again in some seconds")
        self._n_waiting += 1
        try:
            async with self._turn:
                return await self._searched(letters)
        finally:
            self._n_waiting -= 1

    async def _searched(self, letters: str) -> list[Values]:
        process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        try:
            written, said = await process.communicate(f">query\n{letters}\n".encode("latin-1", "replace"))
        finally:
            with suppress(ProcessLookupError):  # it has ended
                process.kill()
        if process.returncode:
            raise EngineError(f"the domains could not be found: {said.decode(errors='replace').strip()[-200:]}")
        domains: list[Values] = json.loads(written)["domains"]
        return domains

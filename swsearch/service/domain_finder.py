"""The domains of queries that are proteins: found by `swsearch domains` when a page asks for them.

One process at a time looks for them, with one thread, so that neither the web process nor its workers wait for it, and
nothing that fails there ends them. What was found last is kept.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from swsearch.errors import EngineError, Refused

if TYPE_CHECKING:
    from swsearch.domains.domain_report import Values

_KEPT: Final = 1000
"""Number of proteins whose domains are kept."""
_MOST_WAITING: Final = 32
"""Number of proteins that may wait for their turn."""
_NICE: Final = ("nice", "-n", "5")
"""As a worker that computes on the cores of its server."""


def check_families(paths: Sequence[str]) -> tuple[str, ...]:
    """The absolute paths of files of models.

    Raises
    ------
    InputError
        A file cannot be read, or does not begin with a model of proteins.
    """
    from swsearch.query.hmm import read_families
    from swsearch.scoring.matrix import named_matrix

    for path in paths:
        next(read_families(path, named_matrix("BLOSUM62")))
    return tuple(map(os.path.abspath, paths))


class DomainFinder:
    """The domains of proteins by some files of models, at least one; it belongs to one event loop."""

    def __init__(self, families: Sequence[str]) -> None:
        nice = _NICE if shutil.which(_NICE[0]) else ()
        options = ("--engine", "cpu", "--threads", "1", "--format", "jsonl", "--quiet")
        self._command = (*nice, sys.executable, "-P", "-m", "swsearch", "domains", "-", *families, *options)
        self._turn = asyncio.Semaphore(1)
        self._n_waiting = 0
        self._found: dict[str, list[Values]] = {}

    async def of(self, letters: str) -> list[Values]:
        """The domains of a protein, as the format ``jsonl`` has them.

        Raises
        ------
        EngineError
            They could not be found.
        Refused
            Too many proteins wait.
        """
        if letters not in self._found:
            if self._n_waiting == _MOST_WAITING:
                raise Refused("server_busy", "many proteins wait for their domains; try again in some seconds")
            self._n_waiting += 1
            try:
                async with self._turn:
                    await self._find(letters)
            finally:
                self._n_waiting -= 1
        return self._found[letters]

    async def _find(self, letters: str) -> None:
        if letters not in self._found:  # the one before waited for the same
            found = await self._searched(letters)
            if len(self._found) == _KEPT:
                del self._found[next(iter(self._found))]
            self._found[letters] = found

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

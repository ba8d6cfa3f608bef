"""What a worker keeps between batches: one engine, the current generation of each database, and recent searchers.

A :class:`~swsearch.search.searcher.Searcher` is kept per fingerprint, since its filters, translation and statistics may
take longer than a search. All of them share one engine, which recognizes the memory of a database that it has uploaded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self
from weakref import WeakKeyDictionary

from swsearch.closeable import Closeable
from swsearch.cores import threads_to_use
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import BackgroundEngine
from swsearch.engine.registry import open_engine
from swsearch.errors import DatabaseError
from swsearch.hits.result import RunInfo
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.record import SequenceRecord
from swsearch.service.databases import Databases
from swsearch.service.fingerprints import fingerprint
from swsearch.service.logs import log
from swsearch.service.requests import options_of
from swsearch.store.search_records import Batch, SearchedDatabase

MAX_SEARCHERS: Final = 16
"""Number of searchers that are kept, the most recently used ones."""
FIRST_CELLS_PER_SECOND: Final = 2e9
"""Speed of one core that is assumed until it is measured; it is low, so the first batch is short."""
_WARM_UP_LETTERS: Final = "MKVLAAGIVGLLLAQWERTY" * 15


class Residents(Closeable):
    """The engine and the databases of a worker.

    Parameters
    ----------
    databases : Databases
    engine : str
        As for :func:`swsearch.engine.registry.open_engine`, like ``threads`` and ``devices``.
    threads : int, optional
    devices : sequence of int, optional

    Raises
    ------
    EngineUnavailable
        The engine cannot be used on this machine.
    """

    def __init__(
        self,
        databases: Databases,
        engine: str = "auto",
        threads: int | None = None,
        devices: Sequence[int] | None = None,
    ) -> None:
        self.databases = databases
        self.threads = threads_to_use(threads)
        self._stack = ExitStack()
        self.engine, self.engine_choice = open_engine(engine, threads, devices)
        self._stack.enter_context(self.engine)
        self._open: dict[str, PackedDatabase] = {}
        self._searchers: OrderedDict[str, Searcher] = OrderedDict()
        self._run_infos: WeakKeyDictionary[Searcher, RunInfo] = WeakKeyDictionary()

    def close(self) -> None:
        """Close the engine and the databases."""
        self._searchers.clear()
        for database in self._open.values():
            database.close()
        self._open.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def current(self) -> list[SearchedDatabase]:
        """The generations that can be searched now; a new generation is opened, and what is gone is closed."""
        offered = [database.searched for database in self.databases.all()]
        paths = self.databases.paths
        for name in self._open.keys() - paths.keys():
            log("database gone", database=name)
            self._close(name)
        return [one for one in offered if one.name in paths and self._opened(one, paths[one.name])]

    def _opened(self, searched: SearchedDatabase, path: Path) -> bool:
        known = self._open.get(searched.name)
        if known is not None and (known.digest, known.catalogue.generation) == (searched.digest, searched.generation):
            return True
        try:
            database = PackedDatabase.open_content(path, searched.digest)
        except DatabaseError:  # it is being changed; the next look succeeds
            return False
        if known is not None:
            self._close(searched.name)
        log("database opened", database=searched.name, generation=searched.generation)
        self._open[searched.name] = database
        return True

    def _close(self, name: str) -> None:
        """Close a database and let go of its searchers."""
        closed = self._open.pop(name)
        for outdated in [key for key, searcher in self._searchers.items() if searcher.database is closed]:
            del self._searchers[outdated]
        closed.close()

    def searcher(self, batch: Batch) -> Searcher:
        """The searcher for a batch of one of the :meth:`current` generations.

        Raises
        ------
        SwSearchError
            The search cannot be made: no subject passes its filters, or a filter needs statistics that there are not.
        """
        known = self._searchers.get(batch.fingerprint)
        if known is None:
            known = self._new_searcher(batch.database.name, options_of(batch.options))
            self._searchers[batch.fingerprint] = known
            if len(self._searchers) > MAX_SEARCHERS:
                self._searchers.popitem(last=False)
        self._searchers.move_to_end(batch.fingerprint)
        return known

    def run_info(self, batch: Batch, command: str) -> RunInfo:
        """The record of the runs of a batch, for whose fingerprint there is a searcher."""
        searcher = self._searchers[batch.fingerprint]
        if searcher not in self._run_infos:
            self._run_infos[searcher] = searcher.run_info(command)
        return self._run_infos[searcher]

    def _new_searcher(self, name: str, options: SearchOptions) -> Searcher:
        return Searcher(self._open[name], self.engine, options, threads=self.threads, engine_choice=self.engine_choice)

    def warm_up(self) -> None:
        """On a GPU, upload the databases and compile the kernels of the default schemes before the first search."""
        if not isinstance(self.engine, BackgroundEngine):
            return
        for searched in self.current():
            options = SearchOptions()
            searcher = self._new_searcher(searched.name, options)
            self._searchers[fingerprint(searched, options.as_parameters())] = searcher
            alphabet = searcher.query_alphabet
            letters = _WARM_UP_LETTERS if alphabet.name == "protein" else "ACGTTGCATGCA" * 25
            for _ in searcher.search([SequenceRecord("", alphabet.encode(letters), alphabet)]):
                pass

    @property
    def first_speed(self) -> float:
        """Cells per second that are assumed until a batch was measured, from the engine's forecast if it gives one."""
        if isinstance(self.engine, BackgroundEngine) and self._searchers:
            n_cells = 10**13
            predicted = next(reversed(self._searchers.values())).forecast(n_cells)
            if predicted is not None and predicted.seconds > 0:
                return n_cells / predicted.seconds
        return FIRST_CELLS_PER_SECOND * self.threads

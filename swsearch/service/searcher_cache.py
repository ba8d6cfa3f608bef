"""The searcher cache of a worker: one engine, the current version of each database, and recent searchers.

A :class:`~swsearch.search.searcher.Searcher` is kept per fingerprint, since its filters, translation and statistics may
take longer than a search. All of them share one engine, which recognizes the memory of a database that it has uploaded.

A database is opened when it is searched first. An open one has some descriptors, of which the operating system gives a
process a limited number, so those that were not searched for longest are closed again.
"""

from __future__ import annotations

import errno
import resource
from collections import OrderedDict
from typing import Final

from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import BackgroundEngine
from swsearch.engine.registry import Machine, open_engine
from swsearch.errors import DatabaseError
from swsearch.hits.result import RunInfo
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.record import SequenceRecord
from swsearch.service.databases import Databases
from swsearch.service.logs import log
from swsearch.service.submit import fingerprint, options_of
from swsearch.store.search_records import Batch, SearchedDatabase
from swsearch.threads import beat
from swsearch.typing import Closeable

COMMAND: Final = "swsearch serve"
"""The command that the runs of a service store."""
MAX_SEARCHERS: Final = 16
"""Number of searchers that are kept, the most recently used ones."""
_OTHER_DESCRIPTORS: Final = 200
"""Descriptors for everything but databases: the store, libraries, a GPU."""
_IN_USE: Final = 2
"""Number of databases that stay open in any case: a worker has two batches at a time."""
FIRST_CELLS_PER_SECOND: Final = 2e9
"""Speed of one core that is assumed until it is measured; it is low, so the first batch is short."""
_WARM_UP_LETTERS: Final = "MKVLAAGIVGLLLAQWERTY" * 15


class SearcherCache(Closeable):
    """The engine and the databases of a worker; EngineUnavailable says why the engine cannot be used here."""

    def __init__(self, databases: Databases, machine: Machine) -> None:
        self.databases = databases
        self.machine = machine
        self.engine, self.engine_choice = open_engine(machine)
        self._open: OrderedDict[str, PackedDatabase] = OrderedDict()
        """The open databases, the one that was searched last at the end."""
        self._searchers: OrderedDict[str, tuple[Searcher, RunInfo]] = OrderedDict()

    def close(self) -> None:
        """Close the engine and the databases."""
        self._searchers.clear()
        for database in self._open.values():
            database.close()
        self._open.clear()
        self.engine.close()

    def current(self) -> list[SearchedDatabase]:
        """The generations that there are now; open databases that are gone, or have another one, are closed."""
        offered = self.databases.all()
        generations = {one.name: (one.searched.digest, one.searched.generation) for one in offered}
        for name, database in list(self._open.items()):
            if not self.databases.has(name):
                log("database gone", database=name)
                self._close(name)
            elif name in generations and generations[name] != (database.digest, database.catalogue.generation):
                self._close(name)
        return [one.searched for one in offered]

    def open(self, searched: SearchedDatabase) -> None:
        """Open a database for its next search, unless it is open; raises DatabaseError if it cannot be read now."""
        if searched.name not in self._open:
            self._open[searched.name] = self._opened(searched)
            log("database opened", database=searched.name, generation=searched.generation)
        self._open.move_to_end(searched.name)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OTHER_DESCRIPTORS
        while len(self._open) > _IN_USE and sum(map(_n_descriptors, self._open.values())) > limit:
            self._close(next(iter(self._open)))

    def _opened(self, searched: SearchedDatabase) -> PackedDatabase:
        while True:
            try:
                return self.databases.open(searched.name, searched.digest)
            except DatabaseError as error:
                lacks_descriptors = getattr(error.__cause__, "errno", None) in (errno.EMFILE, errno.ENFILE)
                if not lacks_descriptors or len(self._open) < _IN_USE:
                    raise
                self._close(next(iter(self._open)))

    def _close(self, name: str) -> None:
        """Close a database and let go of its searchers."""
        closed = self._open.pop(name)
        for outdated in [key for key, (searcher, _) in self._searchers.items() if searcher.database is closed]:
            del self._searchers[outdated]
        closed.close()

    def searcher(self, batch: Batch) -> tuple[Searcher, RunInfo]:
        """The searcher for a batch of a database that is open, and the record of the runs of its searches.

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

    def _new_searcher(self, name: str, options: SearchOptions) -> tuple[Searcher, RunInfo]:
        searcher = Searcher(
            self._open[name],
            self.engine,
            options,
            machine=self.machine,
            translating=beat,
            engine_choice=self.engine_choice,
        )
        return searcher, searcher.run_info(COMMAND)

    def warm_up(self) -> None:
        """On a GPU, upload the databases and compile the kernels of the default schemes before the first search."""
        if not isinstance(self.engine, BackgroundEngine):
            return
        self.current()
        for offered in self.databases.offered():
            beat()
            searched, options = offered.searched, SearchOptions()
            try:
                self.open(searched)
            except DatabaseError:  # it is being changed; the first search opens it
                continue
            made = self._new_searcher(searched.name, options)
            self._searchers[fingerprint(searched, options.as_parameters())] = made
            searcher, _ = made
            alphabet = searcher.query_alphabet
            letters = _WARM_UP_LETTERS if alphabet.name == "protein" else "ACGTTGCATGCA" * 25
            for _ in searcher.search([SequenceRecord("", alphabet.encode(letters), alphabet)]):
                pass

    @property
    def first_speed(self) -> float:
        """Cells per second that are assumed until a batch was measured, from the engine's forecast if it gives one."""
        if isinstance(self.engine, BackgroundEngine) and self._searchers:
            n_cells = 10**13
            searcher, _ = next(reversed(self._searchers.values()))
            predicted = searcher.forecast(n_cells)
            if predicted is not None and predicted.seconds > 0:
                return n_cells / predicted.seconds
        return FIRST_CELLS_PER_SECOND * self.machine.n_threads


def _n_descriptors(database: PackedDatabase) -> int:
    """Number of descriptors of an open database: each of its files is mapped and has one."""
    return len(database.catalogue.files)

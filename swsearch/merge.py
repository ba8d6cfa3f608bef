"""Merges runs: copies the results of the shards of one batch into a single new run. Also copies a run to another store.

A run is a stored search of many queries; a shard is the part of its queries that ``swsearch batch --shard i/n``
searched. Inputs are open stores of hits that have the runs; the output is a new run in the target store. The steps are
:func:`choose_runs`, :func:`plan_merge` (which checks and writes nothing; the plan names missing queries) and
:meth:`MergePlan.carry_out`. ``swsearch runs merge`` calls them; ``swsearch runs export`` calls :func:`copy_run`.

Each run stores a description of the queries of its batch (:mod:`swsearch.hits.shards`). Runs are shards of one batch if
these descriptions and the search parameters are equal. The merged run stores the description of the complete batch, so
that missing queries are known and ``swsearch batch --resume`` can search them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swsearch.errors import StoreError
from swsearch.hits.shards import AskedQueries, Failure, Shard
from swsearch.store.rows import FINISHED
from swsearch.store.runs import StoredRun
from swsearch.store.store import Store

MAX_NAMED: Final = 8
"""Largest number of missing shards that a message names."""
ADVICE: Final = "`swsearch runs merge --partial` merges what is there"


@dataclass(frozen=True)
class Source:
    """A run of a store."""

    store: Store
    run: StoredRun

    def __str__(self) -> str:
        return f"run {self.run.id} of {self.store.name}"

    @property
    def shard(self) -> Shard | None:
        """The shard of the run; None if it is not known."""
        return None if self.run.asked is None else self.run.asked.shard


def choose_runs(stores: Sequence[Store | Source], notify: Callable[[str], None]) -> list[Source]:
    """The runs that are shards of one batch, from one or several stores.

    The batch is that of the first run that a :class:`Source` names; without one, that of the newest shard in the first
    store, or of its newest run if it has no shard. A named run is always chosen. From each store, all shards of the
    batch are chosen or, if there are none, its newest shard or run. Shards of one batch have the same search, queries
    and number of shards. If exactly one of several runs of a shard is finished, the others are left out; ``notify`` is
    called with a message about each run that is left out.

    Raises
    ------
    StoreError
        A store has no runs.
    """
    named = [source for source in stores if isinstance(source, Source)]
    chosen = [*named]
    first = named[0].run if named else None
    for store in stores:
        if isinstance(store, Source):
            continue
        newest = _newest_shard(store)
        first = first or newest
        batch = [run for run in store.runs.all() if _same_batch(first, run)] or [newest]
        for run in batch:
            others = [other for other in batch if other.asked == run.asked and other.state == FINISHED]
            if run.state != FINISHED and len(others) == 1:
                shard = f"shard {run.asked.shard}, " if run.asked else ""
                instead = f"run {others[0].id}, which is finished, is taken instead"
                notify(f"run {run.id} of {store.name} ({shard}{run.state}) is left out; {instead}")
                continue
            chosen.append(Source(store, run))
    return chosen


def _newest_shard(store: Store) -> StoredRun:
    shards = [run for run in store.runs.all() if run.asked is not None and run.asked.shard.count > 1]
    return shards[-1] if shards else store.runs.newest()


def _same_batch(one: StoredRun, other: StoredRun) -> bool:
    """Whether two runs are shards of one batch; False for runs of complete batches."""
    if one.asked is None or other.asked is None or one.asked.shard.count == 1:
        return False
    if one.asked.shard.count != other.asked.shard.count or one.info.differences(other.info):
        return False
    return not _other_queries(one, other)


def _other_queries(one: StoredRun, other: StoredRun) -> bool:
    """Whether two runs are known to be shards of different queries."""
    digests = {run.asked.digest for run in (one, other) if run.asked is not None} - {None}
    return len(digests) == 2


@dataclass(frozen=True)
class MergePlan:
    """A checked plan of a merge.

    Attributes
    ----------
    sources : tuple of Source
    numbers : tuple of set of int
        Numbers of the queries to take from each source.
    failures : tuple of Failure
        Queries that could not be searched, ascending by number.
    missing : list of int
        Numbers of the queries that are in no source; complete only if ``asked`` is known.
    missing_shards : list of Shard
    asked : AskedQueries or None
        Description of all queries of the batch; None if no source has it.
    partial : bool
        Whether shards may be missing or unfinished; the merged run then gets a remark.
    """

    sources: tuple[Source, ...]
    numbers: tuple[set[int], ...]
    failures: tuple[Failure, ...]
    missing: list[int]
    missing_shards: list[Shard]
    asked: AskedQueries | None
    partial: bool

    @property
    def n_queries(self) -> int:
        """Number of queries of the merged run, without those that could not be searched."""
        return sum(map(len, self.numbers))

    def carry_out(self, target: Store, command: str) -> int:
        """Write one new run with the queries of all sources; return its id.

        ``command`` is the command line of the merge.

        The new run is finished if every query of the batch is in it or could not be searched, and interrupted
        otherwise. It is written in one transaction: if an error or a signal stops the merge, nothing is stored.

        Raises
        ------
        StoreError
            A store cannot be read or written.
        """
        with target.whole():
            merged = target.runs.start(replace(self.sources[0].run.info, command=command), self.asked)
            for source, of_source in zip(self.sources, self.numbers, strict=True):
                for result in source.store.results.queries(source.run.id):
                    if result.number in of_source:
                        target.results.add(merged, result)
            for failed in self.failures:
                target.results.add_failure(merged, failed)
            if self.partial:
                target.runs.note_remark(merged, _remark(self.sources, self.missing_shards))
            are_finished = all(source.run.state == FINISHED for source in self.sources)
            is_whole = are_finished if self.asked is None else not self.missing
            (target.runs.finish if is_whole else target.runs.interrupt)(merged)
        return merged


def plan_merge(sources: Sequence[Source], *, partial: bool = False) -> MergePlan:
    """Check a merge of ``sources`` and plan it; nothing is written.

    Parameters
    ----------
    sources : sequence of Source
    partial : bool
        Whether shards may be missing, unfinished, present twice or of different numbers of shards. A query that is
        present twice is copied once.

    Raises
    ------
    StoreError
        The runs are of different searches or of different queries; or, unless ``partial``, they are not all shards of
        one batch, each finished and present once.
    """
    if not sources:
        raise StoreError("there is nothing to merge; name the stores of the shards")
    _check_same(sources)
    known = [source.run.asked for source in sources if source.run.asked is not None]
    counted = next((asked for asked in known if asked.n_queries is not None), None)
    n_queries = None if counted is None else counted.n_queries
    if not partial:
        _check_shards(sources, n_queries)
    numbers, failures = _numbers(sources, partial)
    there = {number for of_source in numbers for number in of_source} | failures.keys()
    numbered = range(max(there, default=-1) if n_queries is None else n_queries)
    missing = [number for number in numbered if number not in there]
    if missing and n_queries is not None and not partial:
        problem = f"{len(missing):,} of {n_queries:,} queries are in none of the runs, number {missing[0]} for one"
        raise StoreError(f"{problem}; {ADVICE}")
    return MergePlan(
        sources=tuple(sources),
        numbers=tuple(numbers),
        failures=tuple(failures.values()),
        missing=missing,
        missing_shards=_missing_shards(sources) if missing else [],
        asked=None if counted is None else replace(counted, shard=Shard()),
        partial=partial,
    )


def copy_run(target: Store, source: Source) -> int:
    """Copy a run with all its data to another store, in one transaction; return the id of the copy.

    Raises
    ------
    StoreError
        A store cannot be read or written.
    """
    stored = source.run
    with target.whole():
        copied = target.runs.start(stored.info, stored.asked)
        for result in source.store.results.queries(stored.id):
            target.results.add(copied, result)
        for failed in source.store.results.failures(stored.id):
            target.results.add_failure(copied, failed)
        if stored.remark is not None:
            target.runs.note_remark(copied, stored.remark)
        (target.runs.finish if stored.state == FINISHED else target.runs.interrupt)(copied)
    return copied


def _check_same(sources: Sequence[Source]) -> None:
    """Refuse runs of different searches or of different queries."""
    first = sources[0]
    for source in sources[1:]:
        difference = first.run.info.differences(source.run.info)
        if difference:
            advice = "leave it out, or search its shard again with the same options"
            raise StoreError(f"{source} is of another search than {first}: {difference}; {advice}")
    named = [source for source in sources if source.run.asked is not None and source.run.asked.digest is not None]
    for source in named[1:]:
        if _other_queries(named[0].run, source.run):
            raise StoreError(f"{source} is a shard of other queries than {named[0]}; merge shards of the same files")


def _check_shards(sources: Sequence[Source], n_queries: int | None) -> None:
    """Refuse sources that are not all shards of one batch, each finished and present once."""
    for source in sources:
        if source.run.state != FINISHED:
            shard = "" if source.shard is None else f", shard {source.shard},"
            again = "" if source.shard is None else f" --shard {source.shard}"
            finish = f"finish it with `swsearch batch …{again} --store {source.store.name} --resume latest`"
            raise StoreError(f"{source}{shard} is {source.run.state}; {finish}, or {ADVICE}")
    there: dict[Shard, Source] = {}
    for source in sources:
        if source.shard is None:
            continue
        other = next(iter(there.values()), source)
        assert other.shard is not None
        if other.shard.count != source.shard.count:
            problem = f"{source} is shard {source.shard} and {other} is shard {other.shard}"
            raise StoreError(f"{problem}: these are not shards of one batch; {ADVICE}")
        if source.shard in there:
            problem = f"shard {source.shard} is there twice, as {there[source.shard]} and as {source}"
            is_same = str(source) == str(there[source.shard])
            named = "" if is_same else f", or name the run to take, as {source.store.name}#{source.run.id}"
            raise StoreError(f"{problem}; leave one out{named}")
        there[source.shard] = source
    missing = _missing_shards(sources)
    if missing:
        n_missing = 0 if n_queries is None else sum(len(shard.numbers(n_queries)) for shard in missing)
        queries = "" if n_queries is None else f", {n_missing:,} of {n_queries:,} queries"
        raise StoreError(f"{shards_named(missing)} missing{queries}; name the store that has it, or {ADVICE}")


def _missing_shards(sources: Sequence[Source]) -> list[Shard]:
    """The shards that are missing among the sources; empty if unknown."""
    shards = {source.shard for source in sources}
    counts = {shard.count for shard in shards if shard is not None}
    if None in shards or len(counts) != 1:
        return []
    count = counts.pop()
    indices = {shard.index for shard in shards if shard is not None}
    return [Shard(index, count) for index in range(1, count + 1) if index not in indices]


def shards_named(shards: Sequence[Shard]) -> str:
    """A list of shards followed by the verb in the matching number.

    >>> shards_named([Shard(3, 3)]), shards_named([Shard(1, 3), Shard(3, 3)])
    ('shard 3/3 is', 'shards 1/3, 3/3 are')
    """
    named = ", ".join(map(str, shards[:MAX_NAMED])) + (", …" if len(shards) > MAX_NAMED else "")
    return f"shard {named} is" if len(shards) == 1 else f"shards {named} are"


def _numbers(sources: Sequence[Source], partial: bool) -> tuple[list[set[int]], dict[int, Failure]]:
    """Numbers of the queries to take from each source, and the queries that failed in every source that has them."""
    taken: dict[int, tuple[str, Source]] = {}
    numbers: list[set[int]] = []
    failures: dict[int, Failure] = {}
    for source in sources:
        committed = source.store.results.committed(source.run.id)
        for number in sorted(committed.keys() & taken.keys()):
            digest, earlier = taken[number]
            if not partial:
                raise StoreError(f"query {number} is in {source} and in {earlier}; merge runs of different shards")
            if digest != committed[number]:
                raise StoreError(f"query {number} of {source} is another than that of {earlier}; they do not merge")
        numbers.append(committed.keys() - taken.keys())
        taken |= {number: (committed[number], source) for number in numbers[-1]}
        failures |= {failed.number: failed for failed in source.store.results.failures(source.run.id)}
    return numbers, {number: failed for number, failed in sorted(failures.items()) if number not in taken}


def _remark(sources: Sequence[Source], missing_shards: Sequence[Shard]) -> str:
    """The remark that a partial merge stores with its run."""
    shards = [source.shard for source in sources if source.shard is not None]
    merged = f"merged from {len(sources)} runs" + (f", shards {', '.join(map(str, shards))}" if shards else "")
    if not missing_shards:
        return merged
    return (
        f"{merged}, without {'shard' if len(missing_shards) == 1 else 'shards'} {', '.join(map(str, missing_shards))}"
    )

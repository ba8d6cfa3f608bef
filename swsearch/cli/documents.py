"""JSON of the commands that describe runs, databases, engines and speeds, in place of their text (``--format json``).

Each command prints one object, whose ``schema_version`` is :data:`SCHEMA_VERSION`; ``docs/reference/json.md`` lists
the keys. Unknown values are null, times are UTC in ISO 8601, and sizes are in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TextIO

from swsearch.errors import InputError

if TYPE_CHECKING:
    from datetime import datetime

    from swsearch.bench.workloads import Measurement
    from swsearch.database.reader import PackedDatabase
    from swsearch.engine.protocol import EngineInfo
    from swsearch.store.runs import StoredRun

SCHEMA_VERSION: Final = 1
"""Version of the keys. It is increased when a name or a meaning changes, but not when names are added."""


def write_document(document: dict[str, Any], stream: TextIO | None = None) -> None:
    """Write an object with its schema version to ``stream``, by default to stdout."""
    print(json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=1, allow_nan=False), file=stream)


def describe_stored_run(run: StoredRun) -> dict[str, Any]:
    """Everything that is stored of a run, apart from its queries, hits and failures, and the scores of its matrix."""
    from swsearch.report.jsons import describe_run

    seconds = None if run.finished is None else (run.finished - run.started).total_seconds()
    shard = None if run.asked is None else run.asked.shard
    search = describe_run(run.info)
    del search["schema_version"]
    search["database"] = {"path": run.info.database.path, **search["database"]}
    searched = run.info.database
    each = zip(searched.paths, searched.names, searched.digests, strict=False)
    search["databases"] = [{"path": path, "name": name, "digest": digest} for path, name, digest in each]
    return {
        "id": run.id,
        "state": run.state,
        "started": _time(run.started),
        "finished": _time(run.finished),
        "seconds": seconds,
        "n_queries": run.n_queries,
        "n_hits": run.n_hits,
        "n_failed": run.n_failed,
        "n_missing": run.n_missing,
        "share": None if shard is None else {"index": shard.index, "count": shard.count},
        "remark": run.remark,
        "worker": {"host": run.process.host, "process": run.process.process},
        "command": run.info.command,
        "engine": run.info.engine,
        "threads": run.info.threads,
        "parameters": run.info.parameters,
        **search,
    }


def _time(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="seconds")


def describe_database(name: str, database: PackedDatabase) -> dict[str, Any]:
    """What a database holds; ``name`` is the name by which it was asked for."""
    catalogue = database.catalogue
    n_repeats, repeated_residues = database.repeats()
    return {
        "database": name,
        **_totals(database, catalogue.n_bytes),
        "sources": list(catalogue.sources),
        "digest": catalogue.digest,
        "generation": catalogue.generation,
        "n_segments": len(catalogue.segments),
        "slice_residues": [segment.n_residues for segment in catalogue.segments[: catalogue.n_slices]],
        "n_repeated_subjects": n_repeats,
        "n_repeated_residues": repeated_residues,
        "n_removed_subjects": catalogue.n_removed,
        "n_removed_residues": sum(segment.n_removed_residues for segment in catalogue.segments),
        "program": catalogue.program,
        "created": catalogue.created,
    }


def _totals(database: PackedDatabase, n_bytes: int) -> dict[str, Any]:
    lengths = database.distinct_lengths()
    return {
        "alphabet": database.alphabet.name,
        "n_subjects": database.n_subjects,
        "n_residues": database.n_residues,
        "shortest": int(lengths[0]),
        "longest": int(lengths[-1]),
        "mean_length": database.n_residues / database.n_subjects,
        "n_bytes": n_bytes,
    }


def describe_databases(names: Sequence[str], databases: Sequence[PackedDatabase]) -> dict[str, Any]:
    """What several databases hold, and what a search of all together would search, or why there is none."""
    from swsearch.database.opening import open_database

    each = [describe_database(name, database) for name, database in zip(names, databases, strict=True)]
    together, reason = None, None
    try:
        joined = open_database(databases)
    except InputError as error:
        reason = error.on_command_line()
    else:
        together = {**_totals(joined, sum(one["n_bytes"] for one in each)), "digest": joined.digest}
    return {"databases": each, "together": together, "reason": reason}


def describe_engines(infos: Iterable[EngineInfo], gcups: Mapping[str, float]) -> dict[str, Any]:
    """The engines in the order in which ``auto`` tries them with their measured speeds, and the one that it takes."""
    engines = [
        {**asdict(info), "detail": info.detail or None, "reason": info.reason or None, "gcups": gcups.get(info.name)}
        for info in infos
    ]
    return {"auto": next(engine["name"] for engine in engines if engine["usable"]), "engines": engines}


def describe_measurement(found: Measurement) -> dict[str, Any]:
    """A measured rate."""
    return {
        "query_length": found.query_length,
        "instruction_set": found.instruction_set,
        "threads": found.threads,
        "scores": "reported" if found.floored else "all",
        "cells": found.cells,
        "gcups": found.gcups,
        "core_gcups": found.core_gcups,
    }

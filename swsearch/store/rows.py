"""The values of a store's rows: those of the records of a run, the words of states, and the process at work on a run.

Headers of sequence files may contain any byte. :func:`storable` makes readable text of them, :func:`restored` the
header of the text. This module needs no SQLAlchemy, so that a search can be stored without it
(:mod:`swsearch.store.connections`).
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Self

from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.hits.shards import AskedQueries, query_digest
from swsearch.sequences.record import identifier
from swsearch.words import without_secrets

SCHEMA: Final = "0.1.0"
"""The Alembic revision of the tables (:mod:`swsearch.store.tables`)."""

RUNNING: Final = "running"
"""A run or a search at work."""
FINISHED: Final = "finished"
INTERRUPTED: Final = "interrupted"

QUEUED: Final = "queued"
DONE: Final = "done"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
STATES: Final = (QUEUED, RUNNING, DONE, FAILED, CANCELLED)
"""The states of a search; a query of a search may also be :data:`LEASED`."""
UNFINISHED: Final = (QUEUED, RUNNING)
LEASED: Final = "leased"

RUN_FIELDS: Final = tuple(field.name for field in fields(RunInfo) if field.name not in ("parameters", "database"))
"""The fields of a run that have a column of their own name."""
HIT_FIELDS: Final = tuple(
    field.name for field in fields(Hit) if field.name not in ("alignment", "query_header", "source")
)
ALIGNMENT_FIELDS: Final = tuple(field.name for field in fields(Alignment))
"""The fields of a hit, and of its alignment, that have a column of their own name."""
_HIT_TEXTS: Final = ("subject_header", "subject_letters", "query_letters")
_HIT_PLAIN: Final = tuple(name for name in HIT_FIELDS + ALIGNMENT_FIELDS if name not in _HIT_TEXTS)
HIT_COLUMNS: Final = ("query_id", "subject_identifier", *_HIT_TEXTS, *_HIT_PLAIN)
"""The columns of :func:`hit_values`."""
_plain_values: Final = attrgetter(*(f"alignment.{name}" if name in ALIGNMENT_FIELDS else name for name in _HIT_PLAIN))

_UNSTORABLE = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(\\|u[0-9a-f]{4})")


def storable(given: str) -> str:
    r"""Text as it is stored: NUL and surrogates as ``\u`` and four digits, a backslash as ``\\``, the rest unchanged.

    >>> print(storable("caf\u00e9 \udcff"))
    café \udcff
    """
    if not _UNSTORABLE.search(given):
        return given
    return _UNSTORABLE.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", given)


def restored(stored: str) -> str:
    """The inverse of :func:`storable`."""
    if "\\" not in stored:
        return stored
    return _ESCAPE.sub(lambda found: "\\" if found[1] == "\\" else chr(int(found[1][1:], 16)), stored)


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


# --- the values of records ---


def run_values(info: RunInfo) -> dict[str, Any]:
    """The columns of a run that its :class:`~swsearch.hits.result.RunInfo` determines."""
    database = info.database
    values = {name: getattr(info, name) for name in RUN_FIELDS} | {"command": without_secrets(info.command)}
    return {
        **{name: storable(value) if isinstance(value, str) else value for name, value in values.items()},
        "parameters": json.dumps(info.parameters),
        "database_paths": json.dumps(database.paths),
        "database_digests": json.dumps(database.digests),
        "database_generation": database.generation,
        "database_alphabet": storable(database.alphabet),
        "database_n_subjects": database.n_subjects,
        "database_n_residues": database.n_residues,
    }


def asked_values(asked: AskedQueries | None) -> dict[str, Any]:
    """The columns that define which queries a run is to search."""
    if asked is None:
        return {}
    return {
        "shard_index": asked.shard.index,
        "shard_count": asked.shard.count,
        "asked_n_queries": asked.n_queries,
        "asked_digest": asked.digest,
    }


def claim_values() -> dict[str, Any]:
    """The columns that identify the process that works on a run, namely this process."""
    process = HostProcess.this()
    return {"state": RUNNING, "host": process.host, "process": process.process, "process_began": process.began}


def query_values(result: QueryResult) -> dict[str, Any]:
    """The columns of a query, without the id of its run."""
    return {
        "number": result.number,
        "digest": query_digest(result.header, result.letters),
        "header": storable(result.header),
        "letters": storable(result.letters),
        "n_hits": len(result.hits),
        "n_passed": result.n_passed,
        "cells": result.stats.cells,
        "score_seconds": result.stats.score_seconds,
        "total_seconds": result.stats.total_seconds,
        "n_rescored": result.stats.n_rescored,
        "committed_at": utc_now(),
        "n_rounds": result.n_rounds,
        "converged": int(result.converged),
        "pssm": None if result.pssm is None else result.pssm.as_text(),
        "identifier": storable(identifier(result.header)),
    }


def hit_values(query_id: int, hit: Hit) -> tuple[Any, ...]:
    """A hit's row, in the order of :data:`HIT_COLUMNS`."""
    header = storable(hit.subject_header)
    name = identifier(hit.subject_header)
    return (
        query_id,
        name if header is hit.subject_header else storable(name),
        header,
        storable(hit.alignment.subject_letters),
        storable(hit.alignment.query_letters),
        *_plain_values(hit),
    )


# --- the process at work on a run ---


_START_FIELD: Final = 19
"""Index, among the fields of ``/proc/PID/stat`` after the program's name, of the start in clock ticks since boot."""


@dataclass(frozen=True)
class HostProcess:
    """The process that works on a run.

    Its id is not sufficient to tell whether it runs: ids are reused, at the latest after a restart of the machine, and
    in containers many programs have the id 1. Therefore its start is stored, too. The processes of another machine
    cannot be observed; the user must decide whether they are running.

    Attributes
    ----------
    host : str
        Name of its machine.
    process : int
        Its process id there.
    began : str or None
        Its start: the boot id of the machine and the clock ticks since boot. None if unknown (not Linux).
    """

    host: str
    process: int
    began: str | None

    @classmethod
    def this(cls) -> Self:
        """The calling process."""
        return cls(host_name(), os.getpid(), _began_own(os.getpid()))

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"

    @property
    def is_here(self) -> bool:
        """Whether it is or was a process of this machine."""
        return self.host == host_name()

    @property
    def has_ended(self) -> bool:
        """Whether it was a process of this machine and has ended; False if unknown.

        A process that was killed remains as a zombie until its parent has asked for its exit code.
        """
        if not self.is_here:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        if _fields(self.process)[:1] in ([b"Z"], [b"X"]):
            return True
        began = _began(self.process)
        return None not in (self.began, began) and self.began != began


def host_name() -> str:
    """The name of this machine."""
    return os.uname().nodename


@lru_cache(maxsize=1)
def _began_own(process: int) -> str | None:
    """The start of this process; a worker asks for it with each run, and a forked process has another id."""
    return _began(process)


def _began(process: int) -> str | None:
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    fields = _fields(process)
    return f"{machine} {int(fields[_START_FIELD])}" if fields else None


def _fields(process: int) -> list[bytes]:
    """The fields of ``/proc/PID/stat`` after the program's name, the state first; empty if there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []

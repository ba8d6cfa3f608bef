"""Benchmarks of the score engines: the number of cells per second on this machine, for generated or read sequences.

A *workload* is a set of subjects with a suitable scoring scheme; :func:`measure` scores a query against it and returns
a :class:`Measurement`. Generated subjects have the composition and the lengths of natural ones, so that batches fill as
in a real search, and are the same on every machine.

One cell is one query residue against one subject residue; GCUPS are 10^9 cells per second. Wall time is the time that a
user waits, CPU time is the time that the cores work; on a machine with other load, only the CPU time measures the speed
of the code.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import ScoreEngine, ScoreRequest, score_requests
from swsearch.errors import InputError
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import find_statistics
from swsearch.scoring.scheme import ScoringScheme, default_scheme
from swsearch.scoring.ungapped import background
from swsearch.search.score_batches import requests_by_length
from swsearch.sequences.alphabet import DNA, PROTEIN, Alphabet, reverse_complement
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import Codes, LengthRange

QUERY_LENGTHS: Final = (40, 144, 375, 567, 1000, 2005, 5478)
"""Default query lengths of measurements: from a peptide to the longest of CUDASW++'s queries."""

# Mean and standard deviation of the logarithm of the lengths of Swiss-Prot proteins; the mean length is 360 residues.
_LENGTH_MEAN, _LENGTH_DEVIATION = 5.68, 0.64
_SHORTEST, _LONGEST = 16, 5000
_FLOOR_EVALUE: Final = 10.0


@dataclass(frozen=True, eq=False)
class Workload:
    """Subjects to search, and their scoring scheme."""

    name: str
    partition: Partition
    scheme: ScoringScheme


@dataclass(frozen=True)
class Measurement:
    """The measured times of one query against one workload.

    ``program`` is ``swsearch`` or the name of a peer, and ``instruction_set`` that of the CPU engine, or what the peer
    reports, or empty. ``cells`` includes both strands if both are searched. With ``floored``, only scores that a search
    with E-values up to 10 could report were requested.
    """

    workload: str
    program: str
    instruction_set: str
    threads: int
    query_length: int
    cells: int
    floored: bool
    wall_seconds: float
    cpu_seconds: float

    @property
    def gcups(self) -> float:
        """10^9 cells per second of wall time."""
        return self.cells / self.wall_seconds / 1e9

    @property
    def core_gcups(self) -> float:
        """10^9 cells per second of CPU time: the rate of one core."""
        return self.cells / self.cpu_seconds / 1e9


def cpu_seconds() -> float:
    """CPU time, in seconds, of the threads of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds that ``work`` takes."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    work()
    # A clock may not tick during very little work.
    return max(time.perf_counter() - wall, 1e-9), max(cpu_seconds() - cpu, 1e-9)


# --- Workloads ---


def generated_query(alphabet: Alphabet, length: int) -> Codes:
    """A random query of natural composition; identical in every call."""
    return _letters(np.random.default_rng(length), alphabet, length)


def generated_proteins(n_residues: int) -> Workload:
    """Random proteins of natural composition and lengths, about ``n_residues`` residues in all."""
    rng = np.random.default_rng(n_residues)
    lengths: list[int] = []
    total = 0
    while total < n_residues:
        drawn = np.exp(rng.normal(_LENGTH_MEAN, _LENGTH_DEVIATION, 1000)).clip(_SHORTEST, _LONGEST).astype(int)
        kept = drawn[: int(np.searchsorted(np.cumsum(drawn), n_residues - total)) + 1]
        lengths += kept.tolist()
        total += int(kept.sum())
    letters = _letters(rng, PROTEIN, total)
    subjects = np.split(letters, np.cumsum(lengths)[:-1])
    return Workload("protein", Partition.pack(subjects), default_scheme(PROTEIN))


def workload_of_file(path: str | os.PathLike[str]) -> Workload:
    """The sequences of a FASTA file as subjects, with the default scoring of their alphabet.

    Raises
    ------
    FastaFormatError
        The file cannot be read.
    InputError
        The file contains no sequence.
    """
    records = list(read_sequences(path))
    if not records:
        raise InputError(f"{os.fspath(path)} holds no sequence to measure with")
    scheme = default_scheme(records[0].alphabet)
    return Workload(os.path.basename(os.fspath(path)), Partition.pack([record.codes for record in records]), scheme)


def _letters(rng: np.random.Generator, alphabet: Alphabet, length: int) -> Codes:
    if alphabet is DNA:
        return rng.integers(0, 4, size=length, dtype=np.uint8)
    weights = np.rint(background(PROTEIN) * 1000).astype(int)
    letters: Codes = np.repeat(np.arange(20, dtype=np.uint8), weights)[rng.integers(0, weights.sum(), size=length)]
    return letters


# --- Measuring ---


def profiles_of(workload: Workload, query: Codes) -> list[QueryProfile]:
    """The profiles that a search scores for a query: one for protein, those of both strands for DNA."""
    strands = [query]
    if workload.scheme.alphabet is DNA:
        strands.append(reverse_complement(query))
    return [sequence_profile(codes, workload.scheme) for codes in strands]


def search_floor(workload: Workload, query_length: int, lengths: LengthRange | None = None) -> int:
    """Lowest score that a search of these subjects, or those of some lengths, for E-values up to 10 could report."""
    statistics = find_statistics(workload.scheme)
    if not isinstance(statistics, Statistics):
        return 1
    among = np.unique(workload.partition.lengths)
    if lengths is not None:
        among = among[(among >= lengths[0]) & (among <= lengths[1])]
    n_strands = len(profiles_of(workload, np.zeros(1, np.uint8)))
    return statistics.min_scores(_FLOOR_EVALUE, query_length, [among], workload.partition.n_residues, n_strands)[0]


def gcups_of(engine: ScoreEngine, workload: Workload, query: Codes, n_queries: int = 1) -> float:
    """10^9 cells per second of wall time of an open engine that computes all scores of ``n_queries`` such queries.

    The faster of two runs counts, because a GPU loads its kernels and the subjects in the first one.
    """
    requests = score_requests(profiles_of(workload, query) * n_queries)
    cells = sum(request.profile.length for request in requests) * workload.partition.n_residues
    return cells / min(timed(lambda: engine.score(requests, workload.partition))[0] for _ in range(2)) / 1e9


def measure(
    workload: Workload,
    query: Codes,
    *,
    threads: int | None = None,
    instruction_set: str | None = None,
    floored: bool = False,
) -> Measurement:
    """Score one query against a workload with the CPU engine.

    With ``floored``, only the scores that a search could report are requested, as a search does; otherwise, all scores.
    Errors are those of :class:`swsearch.engine.cpu.engine.CpuEngine`.
    """
    profiles = profiles_of(workload, query)

    def floors(lengths: LengthRange | None = None) -> list[int]:
        return [search_floor(workload, len(query), lengths)] * len(profiles)

    def requests() -> list[ScoreRequest]:
        return requests_by_length(profiles, workload.partition, floors) if floored else score_requests(profiles)

    with CpuEngine(threads, instruction_set) as engine:
        wall, cpu = timed(lambda: engine.score(requests(), workload.partition))
        return Measurement(
            workload.name,
            "swsearch",
            engine.instruction_set,
            engine.threads,
            len(query),
            len(query) * workload.partition.n_residues * len(profiles),
            floored,
            wall,
            cpu,
        )

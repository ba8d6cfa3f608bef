"""A plan for a large search, before anything is bought or built: memory, placement on the GPUs, time and cost.

The input is the size of a database and of a set of queries, and a machine; the output is a :class:`Plan`. The time is
the number of cells divided by a measured rate (:data:`GPUS`, :data:`GCUPS_PER_CORE`), reduced by measured factors where
several GPUs work, or where the database is streamed. ``docs/design/scale.md`` derives the formulas.

The plan covers the scores. Alignments of the reported hits, reports and the store are not included: on GPUs they are
computed while the next scores are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from swsearch.cluster.parts import MEMORY_SHARE
from swsearch.database.format import SUBJECT_ALIGNMENT
from swsearch.engine.cuda.search.engine import DATABASE_SHARE
from swsearch.engine.cuda.search.subjects import BYTES_PER_SUBJECT
from swsearch.errors import InputError


@dataclass(frozen=True)
class Gpu:
    """A kind of GPU.

    Attributes
    ----------
    name : str
    memory_bytes : float
        Free memory before a search.
    gcups : float
        Billions of cells a second, elapsed, of a batch of queries whose database stays on the GPU.
    source : str
        Where the rate comes from.
    """

    name: str
    memory_bytes: float
    gcups: float
    source: str


# The rates are those of 20 queries in one call, real proteins, with the bound, by elapsed time.
GPUS: Final = {
    "H200": Gpu("H200", 149.6e9, 10_103, "measured, benchmarks/results/bound-real-h200.json"),
    "H100": Gpu("H100", 80e9, 10_092, "measured, benchmarks/results/bound-real-h100.json"),
}
"""The GPUs whose rates are measured. The free memory of an H200 is measured; that of an H100 is the nominal memory."""
GCUPS_PER_CORE: Final = 35.9
"""Rate of a core of a Zen 4 with AVX-512, a whole batch with its report: ``batch_core_gcups`` in
``benchmarks/results/batch.json``."""
SEVERAL: Final = 0.95
"""Rate of a GPU beside others, relative to one alone, where each holds the database (20,567 of 2 × 10,819 GCUPS):
``benchmarks/results/cuda-devices-h200.json``."""
SHARED: Final = 0.89
"""The same where each GPU holds a share of the database (19,283 GCUPS)."""
STREAMED: Final = 0.75
"""Rate of a streamed database relative to a resident one (8,110 of 10,843 GCUPS):
``benchmarks/results/cuda-streamed-h200.json``. Its chunks had 45 MB;
those of a large database have gigabytes, on which kernels are faster."""
MEAN_LENGTH: Final = 350
"""Residues of a sequence where the number of sequences is not given."""


@dataclass(frozen=True)
class DatabaseSize:
    """What a plan needs to know of a database; all counts are at least 1.

    Attributes
    ----------
    n_residues, n_sequences : int
    padded_bytes : int
        Bytes of the residues, where each sequence takes a multiple of 16.
    source : str
        What the numbers are based on.
    """

    n_residues: int
    n_sequences: int
    padded_bytes: int
    source: str

    @classmethod
    def of_counts(cls, n_residues: int, n_sequences: int | None = None) -> DatabaseSize:
        """The size by its counts; a sequence is padded by 7.5 bytes, the mean for lengths that are equally likely.

        Raises
        ------
        InputError
            There are fewer residues than sequences.
        """
        source = "padding of 7.5 bytes a sequence, the mean over all lengths"
        if n_sequences is None:
            n_sequences = max(1, n_residues // MEAN_LENGTH)
            source += f"; {MEAN_LENGTH} residues a sequence, as --sequences is not given"
        if n_sequences > n_residues:
            raise InputError(
                f"--sequences {n_sequences:,} are more than the {n_residues:,} residues; a sequence has at least one"
            )
        return cls(n_residues, n_sequences, n_residues + n_sequences * (SUBJECT_ALIGNMENT - 1) // 2, source)

    @property
    def device_bytes(self) -> int:
        """Memory of residues, starts and lengths, in device memory or mapped from the files."""
        return self.padded_bytes + self.n_sequences * BYTES_PER_SUBJECT


@dataclass(frozen=True)
class Machine:
    """GPUs, or the cores of a CPU.

    Attributes
    ----------
    gpu : Gpu or None
        None if the CPU searches.
    count : int
        Number of GPUs, or of cores.
    """

    gpu: Gpu | None
    count: int

    @classmethod
    def of_gpus(cls, text: str, gcups: float | None = None, memory_bytes: float | None = None) -> Machine:
        """GPUs by name, as ``8xH200`` or ``H100``; ``gcups`` and ``memory_bytes`` replace what is known of them.

        Raises
        ------
        InputError
            The text has another form, or the rate or memory of these GPUs is neither known nor given.
        """
        matched = re.fullmatch(r"(?:([1-9]\d{0,5})[xX×])?([A-Za-z][\w.+-]*)", text)
        if matched is None:
            raise InputError(f"--gpus {text!r} is not a number and a name; write, for example, 8xH200")
        name = matched[2].upper()
        known = GPUS.get(name)
        if known is None:
            if gcups is None or memory_bytes is None:
                raise InputError(
                    f"--gpus {text}: no rate of {name} is measured, only those of {' and '.join(sorted(GPUS))}; "
                    "give its rate with --gcups and its gigabytes with --gpu-memory"
                )
            known = Gpu(name, memory_bytes, gcups, "")
        if gcups is not None:
            known = replace(known, gcups=gcups, source="given with --gcups")
        if memory_bytes is not None:
            known = replace(known, memory_bytes=memory_bytes)
        return cls(known, int(matched[1] or 1))

    @property
    def name(self) -> str:
        """As it is printed, for example ``8 × H200``."""
        return f"{self.count} × {self.gpu.name}" if self.gpu else f"{self.count} CPU core" + "s" * (self.count > 1)


@dataclass(frozen=True)
class Plan:
    """The plan of a search; bytes, seconds, and billions of cells a second.

    Attributes
    ----------
    machine : str
    n_cells : int
    device_bytes : int
        Memory of the database, on a device or mapped by a host.
    bytes_per_residue : float
    placement : str
        ``resident`` (each GPU holds the database), ``shared`` (each holds a share), ``streamed`` (the GPUs read it from
        the memory of the host, piece by piece), ``sliced`` (too large for a worker: each streams some slices), or
        ``host`` (the CPU reads it).
    n_slices : int
        For ``swsearch index --slices``; 1 if no slices are needed.
    n_pieces : int
        Pieces in which a GPU streams the database or its slice; 1 if it stays there. 0 for the CPU.
    gcups_each, gcups : float
        Rates of one GPU or core among the others, and of all.
    query_seconds_each, query_seconds : float
        Time for a query, by one GPU or core and by all.
    loading_disk_seconds, loading_network_seconds : float
        Time to read the database once.
    total_seconds : float
        Loading from disk, and all queries.
    cost : float or None
        Price of the GPUs for the total time; None if no price was given.
    assumptions : tuple of str
        What the numbers rest on, each with its source.
    """

    machine: str
    n_cells: int
    device_bytes: int
    bytes_per_residue: float
    placement: str
    n_slices: int
    n_pieces: int
    gcups_each: float
    gcups: float
    query_seconds_each: float
    query_seconds: float
    loading_disk_seconds: float
    loading_network_seconds: float
    total_seconds: float
    cost: float | None
    assumptions: tuple[str, ...]


def slices_needed(n_bytes: int, room_bytes: float, n_workers: int) -> int:
    """The smallest number of slices that fit the workers and divide evenly among them.

    It is a divisor or a multiple of the number of workers, so that all have equal work.
    """
    n_slices = max(1, -int(-n_bytes // room_bytes))
    while n_slices % n_workers and n_workers % n_slices:
        n_slices += 1
    return n_slices


def plan(
    database: DatabaseSize,
    machine: Machine,
    n_queries: int,
    query_length: int,
    *,
    price: float | None = None,
    disk_rate: float = 2e9,
    network_rate: float = 1.25e9,
) -> Plan:
    """The plan of a search of ``n_queries`` with ``query_length`` residues each.

    Parameters
    ----------
    database : DatabaseSize
    machine : Machine
    n_queries, query_length : int
        At least 1.
    price : float, optional
        Of one GPU for an hour, in any currency.
    disk_rate, network_rate : float
        Bytes a second, positive.
    """
    n_bytes, gpu, count = database.device_bytes, machine.gpu, machine.count
    assumptions = [f"database: {database.source}"]
    n_slices, n_pieces, placement, factor = 1, 0, "host", 1.0
    if gpu is None:
        rate = GCUPS_PER_CORE
        assumptions.append(
            f"{rate} GCUPS a core: measured, Zen 4 with AVX-512, benchmarks/results/batch.json; "
            "the cores add up: computed"
        )
    else:
        rate = gpu.gcups
        assumptions.append(f"{rate:,.0f} GCUPS a GPU: {gpu.source}")
        kept, room = gpu.memory_bytes * DATABASE_SHARE, gpu.memory_bytes * MEMORY_SHARE
        assumptions.append(
            f"{gpu.memory_bytes / 1e9:.1f} GB a GPU: databases stay within {DATABASE_SHARE:.0%} of it, slices of a "
            f"cluster's worker within {MEMORY_SHARE:.0%} (the engine's and the dispatcher's shares)"
        )
        n_slices = slices_needed(n_bytes, room, count)
        n_pieces = max(1, -int(-n_bytes // n_slices // kept))
        if n_bytes <= kept:
            placement = "resident"
        elif n_bytes <= kept * count:
            placement, n_pieces = "shared", 1
        else:
            placement = "streamed" if n_slices == 1 else "sliced"
            factor = STREAMED
            assumptions.append(f"× {STREAMED} for streaming: measured, benchmarks/results/cuda-streamed-h200.json")
        if count > 1:
            several = SHARED if placement == "shared" else SEVERAL
            factor *= several
            assumptions.append(
                f"× {several} for several GPUs: measured with two, benchmarks/results/cuda-devices-h200.json; "
                "more than two: computed"
            )
    assumptions.append(
        f"loading at {disk_rate / 1e9:g} GB/s from disk, {network_rate / 1e9:g} GB/s over the network: assumed "
        "(--disk-rate, --network-rate)"
    )
    assumptions.append("the host's memory holds the files; alignments, reports and the store are not included")
    each = rate * factor
    query_cells = query_length * database.n_residues
    loading = n_bytes / disk_rate
    seconds = query_cells / (each * count * 1e9)
    total = loading + n_queries * seconds
    return Plan(
        machine=machine.name,
        n_cells=n_queries * query_cells,
        device_bytes=n_bytes,
        bytes_per_residue=n_bytes / database.n_residues,
        placement=placement,
        n_slices=n_slices,
        n_pieces=n_pieces,
        gcups_each=each,
        gcups=each * count,
        query_seconds_each=seconds * count,
        query_seconds=seconds,
        loading_disk_seconds=loading,
        loading_network_seconds=n_bytes / network_rate,
        total_seconds=total,
        cost=None if price is None else price * count * total / 3600,
        assumptions=tuple(assumptions),
    )

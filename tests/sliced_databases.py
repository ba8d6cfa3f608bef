"""Databases of three slices, for tests of searches by slices and of clusters."""

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import dnaio
import numpy as np

from swsearch.database.builder import build_database
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
from swsearch.database.opening import open_database
from tests.support import DATA, random_dna, write_fasta


def sliced_databases(folder: Path) -> Path:
    """Databases of three slices, each with copies of the same sequences, whose hits are equal but for their order.

    The slices of ``proteins.db`` and ``bases.db`` are segments that were added; those of ``dealt_*.db`` are slices of
    one segment, some of whose subjects have been removed. ``reads.fasta`` are queries for bases, ``queries.fasta`` the
    first residues of seven proteins.
    """
    records = list(islice(records_of(DATA / "proteins.fasta.gz"), 450))
    segmented(folder, "proteins", records, [250, 100, 100])
    rng = np.random.default_rng(5)
    phage = next(records_of(DATA / "lambda_phage.fasta"))[1]
    bases = [(f"part{start}", phage[start : start + 700]) for start in range(0, 24_000, 600)]
    bases += [(f"random{number}", "".join("ACGT"[base] for base in random_dna(rng, 300))) for number in range(20)]
    segmented(folder, "bases", bases, [30, 20, 10])
    for name in ("proteins", "bases"):
        dealt = folder / f"dealt_{name}.db"
        shutil.copytree(folder / f"{name}.db", dealt)
        compact_database(dealt, slices=3)
        with open_database(dealt) as database:
            remove_from_database(dealt, [database.record(index).identifier for index in (5, 30, 31)])
    reads = ["".join(phage[start : start + 240]) for start in range(500, 22_000, 3_400)]
    write_fasta(folder / "reads.fasta", [(f"read{start}", read) for start, read in enumerate(reads)])
    queries = [(header, letters[:200]) for header, letters in records_of(DATA / "queries.fasta")]
    write_fasta(folder / "queries.fasta", queries)
    return folder


def records_of(path: Path) -> Iterator[tuple[str, str]]:
    """Headers and letters of a FASTA file."""
    with dnaio.open(path) as records:
        yield from ((one.name, one.sequence) for one in records)


def segmented(folder: Path, name: str, records: list[tuple[str, str]], sizes: list[int]) -> None:
    """A database of one segment per size; the first ten sequences are also in every other segment."""
    first = 0
    for number, size in enumerate(sizes):
        part = records[first : first + size]
        first += size
        if number:
            part = part + [(f"copy{number}_{header}", letters) for header, letters in records[:10]]
        file = write_fasta(folder / f"{name}{number}.fasta", part)
        if number:
            add_to_database(folder / f"{name}.db", [file])
        else:
            build_database(file, folder / f"{name}.db")
    remove_from_database(folder / f"{name}.db", [records[sizes[0] + 3][0].split()[0]])

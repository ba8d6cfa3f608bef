"""Files of arrays, mapped into memory; their sizes are checked against those that the catalogue states."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import TAXONOMY_DTYPES, Catalogue
from swsearch.errors import DatabaseError
from swsearch.words import counted


def mapped_file(path: Path, dtype: np.dtype[Any], expected: int, n_items: int | None) -> np.ndarray[Any, np.dtype[Any]]:
    """A file of ``expected`` bytes, mapped read-only, its size checked against the catalogue."""
    if n_items is not None and expected != n_items * dtype.itemsize:
        raise DatabaseError(
            f"{path}: the catalogue gives it {counted(expected, 'byte')} for {counted(n_items, 'subject')}"
        )
    try:
        found = path.stat()
        size = found.st_size
        if not stat.S_ISREG(found.st_mode):
            raise DatabaseError(f"{path} is no regular file; the database is damaged, index the FASTA again")
        if size != expected:
            advice = "the database is damaged, index the FASTA again"
            raise DatabaseError(f"{path} has {counted(size, 'byte')}, {expected:,} are expected; {advice}")
        if size == 0:
            return np.empty(0, dtype=dtype)
        return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror or error}; the database is damaged") from error


def mapped_taxonomy(folder: Path, catalogue: Catalogue) -> dict[str, NDArray[Any]] | None:
    """The arrays of the stored taxonomy by their names; None if there is none.

    Raises
    ------
    DatabaseError
        A file is missing, or has another size or kind.
    """
    if (entry := catalogue.taxonomy) is None:
        return None
    lengths = {"taxids": entry.n_taxa, "set_of": entry.n_rows}
    arrays = {}
    for name, file in entry.files.items():
        dtype = np.dtype(TAXONOMY_DTYPES[name])
        path = folder / entry.name / f"{name}.bin"
        arrays[name] = mapped_file(path, dtype, file.size, lengths.get(name, file.size // dtype.itemsize))
    return arrays

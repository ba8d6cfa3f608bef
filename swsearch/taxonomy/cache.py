"""The cache of taxdumps that were read: the arrays of each tree, under the checksum of the files it was read from.

A whole taxdump takes some seconds to read, and a hundredth of that from here. The cache is the folder
``swsearch/taxonomy`` under ``$XDG_CACHE_HOME`` or ``~/.cache``. It has the trees that were used last, and may be
deleted at any time. Where it cannot be written, nothing is cached.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import InputError
from swsearch.file_registry import registry
from swsearch.folders import user_cache
from swsearch.taxonomy.dump import ADVICE, dump_files, read_dump
from swsearch.taxonomy.tree import Taxonomy, packed_arrays, unpacked
from swsearch.taxonomy.tree_arrays import ARRAY_DTYPES
from swsearch.words import option

SMALLEST_BYTES: Final = 1 << 22
"""Taxdumps of fewer bytes are read about as fast as the cache, and are not cached."""
MOST_TREES: Final = 3
"""Number of trees that are kept; one of NCBI's whole taxonomy has 150 MB."""
_VERSION: Final = b"swsearch taxonomy 1\n"


def load_taxonomy(path: str | os.PathLike[str], option: str = option("taxonomy")) -> Taxonomy:
    """The tree of a taxdump (:func:`swsearch.taxonomy.dump.read_dump`), from the cache if it was read before.

    Raises
    ------
    InputError
        As :func:`read_dump` raises it.
    """
    files = dump_files(path)
    try:
        if not all(file.is_file() for file in files) or sum(file.stat().st_size for file in files) < SMALLEST_BYTES:
            return read_dump(path, option)
        folder = user_cache("taxonomy") / _checksum(files)
    except OSError as error:
        raise InputError(f"{option} {os.fspath(path)}: {error.strerror or error}; {ADVICE}") from error
    if (known := _read(folder)) is not None:
        return known
    tree = read_dump(path, option)
    with suppress(OSError):
        _write(folder, tree)
    return tree


def _checksum(files: list[Path]) -> str:
    digest = hashlib.sha256(_VERSION)
    for path in files:
        registry().read(path)
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _read(folder: Path) -> Taxonomy | None:
    """The tree in a folder; None if it has none that can be used."""
    registry().read_folder(folder, "the cache of taxonomies")
    try:
        arrays = {name: _mapped(folder / f"{name}.bin", dtype) for name, dtype in ARRAY_DTYPES.items()}
        tree = unpacked(arrays)
        os.utime(folder)
    except (OSError, ValueError):
        return None
    return tree


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def _write(folder: Path, tree: Taxonomy) -> None:
    """Write a tree; it appears by one rename. Trees that were not used for the longest time are removed."""
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}-{os.urandom(4).hex()}")
    unfinished.mkdir(parents=True)
    try:
        for name, array in packed_arrays(tree).items():
            with (unfinished / f"{name}.bin").open("xb") as file:
                file.write(array.data)
        shutil.rmtree(folder, ignore_errors=True)  # of a tree that could not be used
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    known = [path for path in folder.parent.iterdir() if not path.name.startswith(".")]
    for path in sorted(known, key=lambda one: one.stat().st_mtime, reverse=True)[MOST_TREES:]:
        shutil.rmtree(path, ignore_errors=True)

"""The assignment of taxonomy ids to sequences, from their headers or from a map of identifiers.

A **map** is a file of two columns, identifier and id, or one of NCBI's ``accession2taxid`` files with its header line.
A line may have several ids, separated by ``;``, and an identifier several lines: a sequence then has all of them. An
identifier denotes a sequence by the rules of :mod:`swsearch.sequences.headers`; in headers that NCBI has joined, as
in ``nr``, that of any of them. With a map, the ids in headers are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import InputError
from swsearch.sequences.headers import header_taxids, names_of
from swsearch.sequences.record import split_header
from swsearch.sequences.source import text_lines, whole_number
from swsearch.taxonomy.tree import Numbers
from swsearch.words import option

LARGEST_TAXID: Final = 2**32 - 1
_JOINED: Final = "\x01"
"""Separates the headers of equal sequences that NCBI has joined."""
_BLOCK_LINES: Final = 1 << 16
Digests = NDArray[np.uint64]
"""The 128-bit digests of names, shape (n_names, 2)."""


@dataclass(frozen=True, eq=False)
class TaxidSets:
    """The taxonomy ids of sequences. Sequences with the same ids share a set.

    Attributes
    ----------
    sets : tuple of tuples of int
        Different sets of ids, each ascending.
    set_of : uint32 array, shape (n_sequences,)
        The number of each sequence's set, counted from 1; 0 for a sequence without an id.
    """

    sets: tuple[tuple[int, ...], ...]
    set_of: Numbers

    @property
    def n_assigned(self) -> int:
        """Number of sequences that have an id."""
        return int(np.count_nonzero(self.set_of))

    def taxids(self, sequence: int) -> tuple[int, ...]:
        """The ids of a sequence."""
        number = int(self.set_of[sequence])
        return self.sets[number - 1] if number else ()


def stated_taxids(headers: Iterable[str]) -> TaxidSets:
    """The ids that headers state (:func:`swsearch.sequences.headers.header_taxids`).

    >>> found = stated_taxids(["a OX=9606", "b", "c OX=10090", "d OX=9606"])
    >>> found.sets, found.set_of.tolist()
    (((9606,), (10090,)), [1, 0, 2, 1])
    """
    return _interned(known_ids(header_taxids(header)) for header in headers)


def mapped_taxids(headers: Iterable[str], path: str) -> TaxidSets:
    """The ids that a map assigns to the sequences with these headers.

    The map is read once. Memory grows with the sequences, by some 30 bytes for each of their names, not with the map.

    Raises
    ------
    InputError
        The file is not a map (:func:`read_map`).
    """
    rows, digests, n_rows = _names_of_all(headers)
    order = np.argsort(digests[:, 0], kind="stable")
    rows, digests = rows[order], digests[order]
    first = np.zeros(n_rows, np.uint32)
    several: dict[int, set[int]] = {}
    for names, taxids in _map_blocks(path):
        wanted = _digests(names)
        places = np.searchsorted(digests[:, 0], wanted[:, 0])
        is_there = digests[np.minimum(places, len(digests) - 1), 0] == wanted[:, 0]
        for line in np.flatnonzero(is_there).tolist():
            place = int(places[line])
            while place < len(digests) and digests[place, 0] == wanted[line, 0]:
                if digests[place, 1] == wanted[line, 1]:
                    _add(int(rows[place]), taxids[line], first, several)
                place += 1
    of_rows = (several.get(row) or ((taxid,) if taxid else ()) for row, taxid in enumerate(first.tolist()))
    return _interned(tuple(sorted(ids)) for ids in of_rows)


def _add(row: int, taxids: tuple[int, ...], first: Numbers, several: dict[int, set[int]]) -> None:
    """Add ids to those of a row, which are its first id and, if there are more, a set of all."""
    for taxid in taxids:
        known = int(first[row])
        if not known:
            first[row] = taxid
        elif taxid != known:
            several.setdefault(row, {known}).add(taxid)


def read_map(path: str) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """The lines of a map: identifiers of one sequence, and its ids (those of :func:`known_ids`).

    Lines that begin with ``#`` are ignored. The file may be compressed; ``-`` is stdin.

    Raises
    ------
    InputError
        The file cannot be read, or a line has another form.
    """
    n_names = 1
    shown = f"{option('taxid_map')} {path}"
    for number, line in enumerate(text_lines(path, shown), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if number == 1 and "taxid" in fields[1:]:
            n_names = fields.index("taxid")  # preceded by NCBI's columns accession, accession.version or both
            continue
        try:
            yield fields[:n_names], known_ids(whole_number(text) for text in fields[n_names].split(";"))
        except (IndexError, ValueError) as error:
            problem = "a line is an identifier and a taxonomy id; NCBI's accession2taxid files are read as well"
            raise InputError(f"{shown}, line {number}: {problem}") from error


def known_ids(taxids: Iterable[int]) -> tuple[int, ...]:
    """The numbers among these that can be taxonomy ids; maps have 0 for an unknown organism."""
    return tuple(taxid for taxid in taxids if 0 < taxid <= LARGEST_TAXID)


def mapped_names(header: str) -> Iterator[str]:
    """The names by which a map may denote the sequence with this header."""
    for one in header.split(_JOINED):
        yield from names_of(split_header(one)[0])


def _names_of_all(headers: Iterable[str]) -> tuple[NDArray[np.uint32], Digests, int]:
    """The names of all sequences: number of the sequence, from 0, and digest; and how many sequences there are."""
    rows: list[NDArray[np.uint32]] = []
    digests: list[Digests] = []
    names: list[str] = []
    of: list[int] = []
    row = -1

    def flush() -> None:
        rows.append(np.array(of, np.uint32))
        digests.append(_digests(names))
        names.clear()
        of.clear()

    for row, header in enumerate(headers):
        own = dict.fromkeys(mapped_names(header))
        names += own
        of += [row] * len(own)
        if len(names) >= _BLOCK_LINES:
            flush()
    flush()
    return np.concatenate(rows), np.concatenate(digests), row + 1


def _map_blocks(path: str) -> Iterator[tuple[list[str], list[tuple[int, ...]]]]:
    """The identifiers of a map with their ids, some at a time."""
    names: list[str] = []
    taxids: list[tuple[int, ...]] = []
    for of_line, ids in read_map(path):
        names += of_line
        taxids += [ids] * len(of_line)
        if len(names) >= _BLOCK_LINES:
            yield names, taxids
            names, taxids = [], []
    yield names, taxids


def _digests(names: Iterable[str]) -> Digests:
    raw = b"".join(blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).digest() for name in names)
    return np.frombuffer(raw, "<u8").reshape(-1, 2)


def _interned(taxids: Iterable[tuple[int, ...]]) -> TaxidSets:
    numbers: dict[tuple[int, ...], int] = {(): 0}
    set_of = np.fromiter((numbers.setdefault(ids, len(numbers)) for ids in taxids), np.uint32)
    return TaxidSets(tuple(numbers)[1:], set_of)

"""The organisms of the subjects, as their headers name them (``OX=`` and ``OS=`` of UniProt)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from swsearch.sequences.organism import header_organism, header_taxid


@dataclass
class Organism:
    """An organism with its subjects.

    Attributes
    ----------
    name : str
    taxid : int or None
    n_subjects : int
    best_rank : int
        The rank of its best subject.
    """

    name: str
    taxid: int | None
    n_subjects: int
    best_rank: int


def organisms(headers: Iterable[str]) -> tuple[list[Organism], int]:
    """The organisms of subjects, those with most subjects first, and the number of subjects without an organism.

    Subjects with a taxonomy id are counted by it, others by the organism's name.

    >>> found, unknown = organisms(["a OS=Homo sapiens OX=9606", "b OS=Human OX=9606", "c OS=Mus musculus", "d"])
    >>> [(one.name, one.taxid, one.n_subjects) for one in found], unknown
    ([('Homo sapiens', 9606, 2), ('Mus musculus', None, 1)], 1)
    """
    found: dict[int | str, Organism] = {}
    unknown = 0
    for rank, header in enumerate(headers, 1):
        taxid, name = header_taxid(header), header_organism(header)
        key = name if taxid is None else taxid
        if key is None:
            unknown += 1
        elif key in found:
            found[key].n_subjects += 1
        else:
            found[key] = Organism(name or f"taxonomy id {taxid}", taxid, 1, rank)
    return sorted(found.values(), key=lambda one: (-one.n_subjects, one.best_rank)), unknown

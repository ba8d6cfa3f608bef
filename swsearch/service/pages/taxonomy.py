"""The organisms of the subjects of a query: a tree where the database has a taxonomy, otherwise a list from headers.

Headers name an organism by ``OX=`` and ``OS=`` of UniProt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from swsearch.database.stored_taxonomy import taxonomy_of_subjects
from swsearch.hits.result import TAXONOMY_DIGEST
from swsearch.sequences.headers import header_organism, header_taxid
from swsearch.service.service import Service
from swsearch.store.results import HitView
from swsearch.store.runs import StoredRun
from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects


@dataclass
class Organism:
    """An organism with its subjects, the best of which has the rank ``best_rank``."""

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


@contextmanager
def taxonomy_of_run(service: Service, run: StoredRun) -> Iterator[TaxonomyOfSubjects | None]:
    """The organisms of the subjects of a run, if its database had a taxonomy then and is still offered; else None."""
    has_taxonomy = TAXONOMY_DIGEST in run.info.parameters
    with service.open_database(run.info.database) if has_taxonomy else nullcontext() as database:
        yield taxonomy_of_subjects(database)


def with_taxa(view: HitView, service: Service, run: StoredRun, number: int) -> HitView:
    """The view of a query, with the subjects of a taxon and of all below it in place of its id, if there is a taxonomy.

    ``number`` is that of the query, from 0. Raises :class:`swsearch.errors.StoreError` if the run has no such query.
    """
    taxid = view.keep.taxid
    if taxid is None:
        return view
    with taxonomy_of_run(service, run) as taxonomy:
        if taxonomy is None:
            return view
        tree = taxonomy.tree
        taxon = tree.index(taxid)
        chosen = set()
        for index, header in service.store.results.subjects(run.id, number):
            found = taxonomy.of(index, header)
            if taxid in found.taxids or any(taxon in tree.lineage(one) for one in found.taxa):
                chosen.add(index)
    return replace(view, keep=replace(view.keep, taxid=None, subjects=frozenset(chosen)))

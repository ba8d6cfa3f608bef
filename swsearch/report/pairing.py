"""Paired rows of several alignments: the hits of the chains of a complex that come from one organism, side by side.

The organism of a subject is read from its header: the taxonomy id after ``OX=`` (UniProt) or ``TaxID=`` (UniRef), or
else the name after ``OS=``. A subject without any is in no pair. Each chain has one row of an organism, its best hit.
The alignments of all chains have the same rows in the same order, so that rows of equal number form a pair; where a
chain has no hit of an organism, its row is a gap alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TextIO

from swsearch.hits.cigar import GAP
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.a3m import SEPARATOR
from swsearch.report.anchored_rows import hit_row, query_row
from swsearch.sequences.organism import header_organism, header_taxid

_UNIREF_TAXID: Final = re.compile(r"(?:^|\s)TaxID=([0-9]{1,18})(?=\s|$)")
UNPAIRED: Final = "DUMMY"
"""Header of a row without a hit, as in the files of ColabFold's server."""


@dataclass(frozen=True)
class Chain:
    """A query, and its best hit of each organism.

    Attributes
    ----------
    query : QueryResult
        Without hits.
    best : dict of str to Hit
        By organism.
    """

    query: QueryResult
    best: dict[str, Hit]

    @classmethod
    def of(cls, query: QueryResult) -> Chain:
        """The chain of a query with its hits."""
        best: dict[str, Hit] = {}
        for hit in query.hits:
            found = organism_of(hit.subject_header)
            if found is not None:
                best.setdefault(found, hit)
        return cls(replace(query, hits=()), best)


def organism_of(header: str) -> str | None:
    """What subjects of one organism have in common; None if the header does not name it.

    >>> organism_of("UniRef90_A0A5A9P0L4 isomerase n=1 Tax=Triplophysa TaxID=1572043 RepID=A0A5A9P0L4_9TELE")
    '1572043'
    >>> organism_of("P69905 Hemoglobin OS=Homo sapiens GN=HBA1")
    'Homo sapiens'
    """
    taxid = header_taxid(header)
    if taxid is None:
        found = _UNIREF_TAXID.search(header)
        taxid = None if found is None else int(found[1])
    return header_organism(header) if taxid is None else str(taxid)


def paired_organisms(chains: Sequence[Chain], *, complete: bool) -> list[str]:
    """The organisms with a row, in the order of their rows.

    Those that have a hit in more chains come first, then those whose hits have the smaller sum of ranks, then by name.

    Parameters
    ----------
    chains : sequence of Chain
    complete : bool
        Whether an organism must have a hit in all chains; otherwise in at least two.
    """
    ranks: dict[str, list[int]] = {}
    for chain in chains:
        for organism, hit in chain.best.items():
            ranks.setdefault(organism, []).append(hit.rank)
    needed = len(chains) if complete else 2
    kept = [(-len(found), sum(found), organism) for organism, found in ranks.items() if len(found) >= needed]
    return [organism for _, _, organism in sorted(kept)]


def write_pairs(queries: Iterable[QueryResult], stream: TextIO, *, complete: bool) -> None:
    """Write one ``a3m`` block for each chain (:mod:`swsearch.report.a3m`), with the rows of the paired organisms."""
    chains = [Chain.of(query) for query in queries]
    organisms = paired_organisms(chains, complete=complete)
    for place, chain in enumerate(chains):
        if place:
            stream.write(SEPARATOR)
        stream.write(query_row(chain.query))
        unpaired = f">{UNPAIRED}\n{GAP * chain.query.length}\n"
        for organism in organisms:
            hit = chain.best.get(organism)
            stream.write(unpaired if hit is None else hit_row(chain.query, hit))

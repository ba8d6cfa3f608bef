"""Paired rows of several alignments: the hits of the chains of a complex that come from one organism, side by side.

The organism of a subject is read from its header: the taxonomy id after ``OX=`` (UniProt) or ``TaxID=`` (UniRef), or
else the name after ``OS=``. A subject without any is in no pair. Each chain has one row of an organism, its best hit.
The alignments of all chains have the same rows in the same order, so that rows of equal number form a pair; where a
chain has no hit of an organism, its row is a gap alone.

:func:`write_pairs` writes a block for each chain, as ColabFold's server sends them, and :func:`write_complex` one
alignment of all chains, as ``colabfold_batch`` takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, TextIO

from swsearch.hits.cigar import GAP
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.anchored import SEPARATOR, aligned_letters, query_letters, query_row, row_header
from swsearch.sequences.headers import header_organism, header_taxid

FIRST_CHAIN: Final = 101
"""Name of the first chain of a complex in ColabFold's files; the next ones are counted from it."""
UNPAIRED: Final = "DUMMY"
"""Header of a row without a hit, as in the files of ColabFold's server."""


_Chain = tuple[QueryResult, dict[str, Hit]]
"""A query without hits, and its best hit of each organism."""


def organism_of(header: str) -> str | None:
    """What subjects of one organism have in common; None if the header does not name it.

    >>> organism_of("UniRef90_A0A5A9P0L4 isomerase n=1 Tax=Triplophysa TaxID=1572043 RepID=A0A5A9P0L4_9TELE")
    '1572043'
    >>> organism_of("P69905 Hemoglobin OS=Homo sapiens GN=HBA1")
    'Homo sapiens'
    """
    taxid = header_taxid(header)
    return header_organism(header) if taxid is None else str(taxid)


def _chain(query: QueryResult) -> _Chain:
    best: dict[str, Hit] = {}
    for hit in query.hits:
        found = organism_of(hit.subject_header)
        if found is not None:
            best.setdefault(found, hit)
    return replace(query, hits=()), best


def _paired_organisms(chains: Sequence[_Chain], *, complete: bool) -> list[str]:
    """The organisms with a row, in the order of their rows.

    Those that have a hit in more chains come first, then those whose hits have the smaller sum of ranks, then by name.
    With ``complete``, an organism must have a hit in all chains; otherwise in at least two.
    """
    ranks: dict[str, list[int]] = {}
    for _, best in chains:
        for organism, hit in best.items():
            ranks.setdefault(organism, []).append(hit.rank)
    needed = len(chains) if complete else 2
    kept = [(-len(found), sum(found), organism) for organism, found in ranks.items() if len(found) >= needed]
    return [organism for _, _, organism in sorted(kept)]


def write_pairs(queries: Iterable[QueryResult], stream: TextIO, *, complete: bool) -> None:
    """Write one ``a3m`` block for each chain, with the rows of paired organisms (:mod:`swsearch.report.anchored`)."""
    chains = list(map(_chain, queries))
    organisms = _paired_organisms(chains, complete=complete)
    for place, (query, best) in enumerate(chains):
        if place:
            stream.write(SEPARATOR)
        stream.write(query_row(query))
        stream.writelines(_joined_row([(query, best.get(organism))]) for organism in organisms)


def write_complex(
    chains: Sequence[QueryResult], unpaired: Sequence[QueryResult], stream: TextIO, *, complete: bool
) -> None:
    """Write one alignment of all chains of a complex, in the form of ColabFold's files.

    The first line has the lengths of the different chains and, after a tab, their numbers of copies (``#120,85 1,2``).
    In the rows, the columns of the chains follow each other. First come the chains themselves, named 101, 102 …, then
    the rows of the paired organisms, whose headers are joined by tabs, then the rows of each chain, with gaps in the
    columns of the others. Copies of a chain are written once, and a complex of copies alone has no pairs.

    Parameters
    ----------
    chains : sequence of QueryResult
        In the order of the complex, with the hits that may be paired.
    unpaired : sequence of QueryResult
        The same chains with the hits that have a row of their own.
    complete : bool
        Whether an organism must have a hit in all chains; otherwise in at least two.
    """
    first_of: dict[str, int] = {}
    for place, chain in enumerate(chains):
        first_of.setdefault(query_letters(chain), place)
    letters = list(first_of)
    copies = [sum(query_letters(chain) == one for chain in chains) for one in letters]
    stream.write(f"#{','.join(str(len(one)) for one in letters)}\t{','.join(map(str, copies))}\n")
    if len(letters) > 1:
        names = (str(FIRST_CHAIN + place) for place in range(len(letters)))
        stream.write(">" + "\t".join(names) + "\n" + "".join(letters) + "\n")
        several = [_chain(chains[place]) for place in first_of.values()]
        for organism in _paired_organisms(several, complete=complete):
            stream.write(_joined_row([(query, best.get(organism)) for query, best in several]))
    for place, (one, first) in enumerate(first_of.items()):
        before = GAP * sum(map(len, letters[:place]))
        after = GAP * sum(map(len, letters[place + 1 :]))
        stream.write(f">{FIRST_CHAIN + place}\n{before}{one}{after}\n")
        query = unpaired[first]
        for hit in query.hits:
            stream.write(f">{row_header(query, hit)}\n{before}{aligned_letters(query, hit)}{after}\n")


def _joined_row(hits: Sequence[tuple[QueryResult, Hit | None]]) -> str:
    """A row of hits of several chains; a chain without a hit has a gap."""
    headers = [UNPAIRED if hit is None else row_header(query, hit) for query, hit in hits]
    letters = [GAP * query.length if hit is None else aligned_letters(query, hit) for query, hit in hits]
    return ">" + "\t".join(headers) + "\n" + "".join(letters) + "\n"

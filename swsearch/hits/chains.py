"""Chains: alignments of one query in collinear order on one strand of a subject, such as the exons of a gene.

Two alignments are linked if the second begins behind the first on the query and on the strand of the subject, with at
most :data:`MOST_GAP` query residues and an intron of a given length between them. They may overlap by
:data:`MOST_OVERLAP` residues, because alignments extend by chance beyond the ends of exons; what overlaps counts once.

:func:`best_chains` finds the chains of a subject in a search, with a dynamic program over its alignments.
:func:`chains_of` finds them again among hits, whose alignments have the E-value of their chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from swsearch.hits.hit import Alignment, Hit
from swsearch.sequences.genetic_code import CODON

MOST_GAP: Final = 100
"""Largest number of query residues between two linked alignments; an exon of this length may be missing."""
MOST_OVERLAP: Final = 20
"""Largest number of query residues, and of codons of the subject, that two linked alignments have in common."""


def windows(max_intron: int) -> tuple[int, int]:
    """Numbers of query positions and of subject bases at which the next alignment of a chain may begin.

    >>> windows(10_000)
    (121, 10061)
    """
    return MOST_GAP + MOST_OVERLAP + 1, max_intron + CODON * MOST_OVERLAP + 1


@dataclass(frozen=True)
class Piece:
    """An alignment as a part of a chain.

    Attributes
    ----------
    query_start, query_end : int
        0-based, half-open.
    subject_start, subject_end : int
        On the strand of the alignment: positions of a minus strand are negative.
    value : float
        Normalized score, in nats.
    """

    query_start: int
    query_end: int
    subject_start: int
    subject_end: int
    value: float = 0.0

    @classmethod
    def of(cls, alignment: Alignment, subject_frame: int, value: float = 0.0) -> Piece:
        """The piece of an alignment of a protein with a frame of a subject."""
        start, end = alignment.subject_start, alignment.subject_end
        if subject_frame < 0:
            start, end = -end, -start
        return cls(alignment.query_start, alignment.query_end, start, end, value)

    @property
    def place(self) -> tuple[int, int, int, int]:
        """The sort key along the strand."""
        return self.subject_start, self.subject_end, self.query_start, self.query_end

    def links(self, other: Piece, max_intron: int) -> bool:
        """Whether ``other`` may follow in a chain with introns of at most ``max_intron`` bases."""
        on_query = other.query_start - self.query_end
        on_subject = other.subject_start - self.subject_end
        return (
            -MOST_OVERLAP <= on_query <= MOST_GAP
            and -CODON * MOST_OVERLAP <= on_subject <= max_intron
            and other.query_start > self.query_start
            and other.query_end > self.query_end
            and other.subject_start > self.subject_start
            and other.subject_end > self.subject_end
        )

    def counted_twice(self, other: Piece) -> float:
        """The value of the query residues that ``other``, which follows, has in common with this piece.

        The one with the lower value per residue loses them.
        """
        common = self.query_end - other.query_start
        if common <= 0:
            return 0.0
        densities = (one.value / (one.query_end - one.query_start) for one in (self, other))
        return common * min(densities)


def best_chains(pieces: Sequence[Piece], max_intron: int, cost: float) -> list[tuple[list[int], float]]:
    """Chains of at least two pieces of one strand, without common pieces, the best first.

    The best chain has the largest sum of values less ``cost`` for each link and what is counted twice; among equal ones
    it ends first. Each further one is the best of the pieces that are left.

    Returns
    -------
    list of (list of int, float)
        The indices of the pieces of each chain, along the strand, and the sum of their values without costs.
    """
    order = sorted(range(len(pieces)), key=lambda index: pieces[index].place)
    chains: list[tuple[list[int], float]] = []
    for component in _components([pieces[index] for index in order], max_intron):
        left = [order[place] for place in component]
        while len(left) > 1:
            chain, value = _best_chain(pieces, left, max_intron, cost)
            if len(chain) == 1:
                break
            chains.append((chain, value))
            left = [index for index in left if index not in set(chain)]
    return sorted(chains, key=lambda chain: (-chain[1], chain[0]))


def _components(pieces: Sequence[Piece], max_intron: int) -> list[list[int]]:
    """Runs of pieces, in order, such that no piece links to one of another run."""
    runs: list[list[int]] = []
    reach = None
    for place, piece in enumerate(pieces):
        if reach is None or piece.subject_start > reach + max_intron:
            runs.append([])
        runs[-1].append(place)
        reach = piece.subject_end if reach is None else max(reach, piece.subject_end)
    return runs


def _best_chain(pieces: Sequence[Piece], left: list[int], max_intron: int, cost: float) -> tuple[list[int], float]:
    """The best chain of the pieces with the indices ``left``, which are in order along the strand, and its value."""
    scores: list[float] = []
    values: list[float] = []
    before: list[int] = []
    for place, index in enumerate(left):
        piece = pieces[index]
        score, value, last = piece.value, piece.value, -1
        for earlier in range(place - 1, -1, -1):
            if not pieces[left[earlier]].links(piece, max_intron):
                continue
            gained = piece.value - pieces[left[earlier]].counted_twice(piece)
            if scores[earlier] + gained - cost > score:
                score, value, last = scores[earlier] + gained - cost, values[earlier] + gained, earlier
        scores.append(score)
        values.append(value)
        before.append(last)
    end = max(range(len(left)), key=lambda place: (scores[place], -place))
    value, chain = values[end], []
    while end >= 0:
        chain.append(left[end])
        end = before[end]
    return chain[::-1], value


def _piece_of(hit: Hit) -> Piece:
    return Piece.of(hit.alignment, hit.subject_frame)


def chains_of(hits: Iterable[Hit], max_intron: int) -> list[list[Hit]]:
    """The chains of listed hits, each along its strand; a hit by itself is a chain of one.

    They are in the order of the first hit of each in ``hits``. The hits of a chain have its E-value.
    """

    def chain_key(hit: Hit) -> tuple[int, str, float]:
        return hit.rank, hit.subject_direction, -1.0 if hit.evalue is None else hit.evalue

    hits = list(hits)
    place_of = {id(hit): place for place, hit in enumerate(hits)}
    found: list[list[Hit]] = []
    for _, same in groupby(sorted(hits, key=chain_key), key=chain_key):
        open_chains: list[list[Hit]] = []
        for hit in sorted(same, key=lambda hit: _piece_of(hit).place):
            linked = [chain for chain in open_chains if _piece_of(chain[-1]).links(_piece_of(hit), max_intron)]
            if linked:
                linked[-1].append(hit)
            else:
                open_chains.append([hit])
        found += open_chains
    return sorted(found, key=lambda chain: min(place_of[id(hit)] for hit in chain))

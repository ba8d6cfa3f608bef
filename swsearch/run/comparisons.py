"""Steps of the comparisons of all sequences with all: clusters of one set, and reciprocal best hits of two sets.

*Clusters.* The pairs that pass the thresholds of the search are the edges of an undirected graph. :class:`PairGraph`
collects them while the search yields its results, and divides the graph in one of three ways:

``components``
    Connected components (single linkage): two sequences are in the same cluster if pairs lead from one to the other.
``cover``
    Greedy set cover: the sequence with the most partners that are in no cluster yet forms a cluster with them, and so
    on, as in MMseqs2's ``--cluster-mode 0`` (Hauser and others 2016, Bioinformatics 32:1323).
``length``
    Greedy by length: the longest sequence that is in no cluster yet forms a cluster with its partners that are in none,
    and so on, as in CD-HIT (Li and Godzik 2006, Bioinformatics 22:1658).

In ``cover`` and ``length``, every member is a partner of its representative; in ``components``, the representative is
the longest member. Among equals, the longer sequence comes first, then the earlier one in the database. Clusters do not
depend on the order in which pairs are found.

*Reciprocal best hits* are pairs of which each sequence is the best hit of the other. They are the usual estimate of
orthologues of two species (Moreno-Hagelsieb and Latimer 2008, Bioinformatics 24:319). The search in one direction gives
:class:`BestHits`, which chooses among the hits of the other direction.
"""

from __future__ import annotations

import heapq
from array import array
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.result import QueryResult
from swsearch.report.base import Step
from swsearch.typing import Lengths, SubjectIndex

Cluster = tuple[int, ...]
"""The ``subject_index`` of each member: first that of the representative, then the others in ascending order."""


class PairGraph(Step):
    """The graph of the pairs of a search of all against all.

    Parameters
    ----------
    subject_index, lengths : uint32 arrays, shape (n,)
        The searched sequences and their lengths, in the order in which they are the queries of the run.
    """

    def __init__(self, subject_index: SubjectIndex, lengths: Lengths) -> None:
        self._query_index = subject_index
        order = np.lexsort((subject_index, -lengths.astype(np.int64)))
        self._vertices = subject_index[order]  # by precedence: the longest first, then the earliest in the database
        self._vertex_of = np.zeros(int(subject_index.max(initial=0)) + 1, dtype=np.int64)
        self._vertex_of[self._vertices] = np.arange(len(order))
        self._queries = array("q")
        self._subjects = array("q")

    @property
    def n_pairs(self) -> int:
        """Number of pairs so far."""
        return len(self._queries)

    def write(self, result: QueryResult) -> None:
        """Add the pairs of a result; its ``number`` is the place of the query in the run."""
        found = [hit.subject_index for hit in result.hits]
        self._subjects.extend(found)
        self._queries.extend([int(self._query_index[result.number])] * len(found))

    def clusters(self, mode: str) -> list[Cluster]:
        """The clusters, the largest first; among clusters of equal size, that of the longer representative.

        Parameters
        ----------
        mode : str
            ``components``, ``cover`` or ``length``.

        >>> graph = PairGraph(np.array([2, 1, 0], np.uint32), np.array([9, 8, 7], np.uint32))
        >>> graph.clusters("cover")
        [(2,), (1,), (0,)]
        """
        n = len(self._vertices)
        edges = self._edges()
        if mode == "components":
            representatives = _components(edges, n)
        else:
            starts, partners = _adjacency(edges, n)
            divide = {"cover": _by_cover, "length": _by_length}[mode]
            representatives = divide(starts, partners, n)
        return self._clusters(representatives)

    def _edges(self) -> NDArray[np.int64]:
        """The pairs as vertices, shape (n_pairs, 2)."""
        ends = [np.array(side, dtype=np.int64) for side in (self._queries, self._subjects)]
        return np.stack([self._vertex_of[end] for end in ends], axis=1)

    def _clusters(self, representatives: NDArray[np.int64]) -> list[Cluster]:
        """The clusters from the representative of each vertex."""
        n = len(representatives)
        # The members of a cluster stand together, its representative first and the others as in the database.
        is_member = representatives != np.arange(n)
        order = np.lexsort((self._vertices, is_member, representatives))
        firsts = np.flatnonzero(np.diff(representatives[order], prepend=-1))
        sizes = np.diff(firsts, append=n)
        found = []
        for cluster in np.lexsort((firsts, -sizes)).tolist():
            members = order[firsts[cluster] : firsts[cluster] + sizes[cluster]]
            found.append(tuple(self._vertices[members].tolist()))
        return found


def _components(edges: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The smallest vertex of the connected component of each vertex, by union-find."""
    parents = list(range(n))

    def root(vertex: int) -> int:
        while parents[vertex] != vertex:
            parents[vertex] = parents[parents[vertex]]
            vertex = parents[vertex]
        return vertex

    for one, other in edges.tolist():
        first, second = root(one), root(other)
        parents[max(first, second)] = min(first, second)
    return np.array([root(vertex) for vertex in range(n)], dtype=np.int64)


def _adjacency(edges: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the partners of each vertex begin, shape (n + 1,), and the partners of all, shape (2 n_pairs,)."""
    ends = np.concatenate([edges, edges[:, ::-1]])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    starts = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=n))]).astype(np.int64)
    return starts, ends[order, 1]


def _by_cover(starts: NDArray[np.int64], partners: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    representatives = np.full(n, -1, dtype=np.int64)
    n_free = np.diff(starts)
    # A count only decreases, so an entry whose count is outdated is put back with the present one.
    heap = [(-count, vertex) for vertex, count in enumerate(n_free.tolist())]
    heapq.heapify(heap)
    while heap:
        count, vertex = heapq.heappop(heap)
        if representatives[vertex] >= 0:
            continue
        if -count != n_free[vertex]:
            heapq.heappush(heap, (-int(n_free[vertex]), vertex))
            continue
        own = partners[starts[vertex] : starts[vertex + 1]]
        taken = np.concatenate([[vertex], own[representatives[own] < 0]])
        representatives[taken] = vertex
        for member in taken.tolist():
            np.subtract.at(n_free, partners[starts[member] : starts[member + 1]], 1)
    return representatives


def _by_length(starts: NDArray[np.int64], partners: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    representatives = np.full(n, -1, dtype=np.int64)
    for vertex in range(n):
        if representatives[vertex] < 0:
            own = partners[starts[vertex] : starts[vertex + 1]]
            representatives[own[representatives[own] < 0]] = vertex
            representatives[vertex] = vertex
    return representatives


class BestHits(Step):
    """Notes the best hits of one set in the other, and chooses by them among the hits of the other direction.

    Attributes
    ----------
    best : dict of int to int
        For the ``number`` of each query that has hits, the ``subject_index`` of its best one.
    n_pairs : int
        Number of reciprocal pairs so far.
    """

    def __init__(self) -> None:
        self.best: dict[int, int] = {}
        self.n_pairs = 0

    def write(self, result: QueryResult) -> None:
        """Note the first hit of a query, which is its best."""
        if result.hits:
            self.best[result.number] = result.hits[0].subject_index

    def reciprocal(self, result: QueryResult) -> QueryResult:
        """A result of the other direction with its best hit if that is reciprocal, and otherwise with none."""
        chosen = tuple(hit for hit in result.hits if self.best.get(hit.subject_index) == result.number)
        self.n_pairs += len(chosen) > 0
        return replace(result, hits=chosen)

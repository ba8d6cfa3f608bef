"""Clusters from pairs: against networkx, and against the definitions carried out in the simplest way."""

from dataclasses import replace

import networkx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsearch.options import option_of
from swsearch.run.comparisons import PairGraph
from tests.store.conftest import make_hit, make_query


@st.composite
def graphs(draw):
    """Lengths of sequences, and pairs of them."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=12))
    indices = st.integers(0, len(lengths) - 1)
    pairs = draw(st.lists(st.tuples(indices, indices).filter(lambda pair: pair[0] < pair[1]), unique=True, max_size=30))
    return lengths, pairs


def found(lengths, pairs, mode):
    """The clusters, with the pairs as the results of a search of all against all."""
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index), reverse=True)
    graph = PairGraph(np.array(order, np.uint32), np.array([lengths[index] for index in order], np.uint32))
    for number, query in enumerate(order):
        others = [other for pair in pairs if query in pair for other in pair if other != query]
        behind = [other for other in others if order.index(other) > number]
        graph.write(replace(make_query(number), hits=tuple(make_hit(1, subject_index=other) for other in behind)))
    assert graph.n_pairs == len(pairs)
    return graph.clusters(mode)


def partners(pairs, index):
    return {other for pair in pairs if index in pair for other in pair} - {index}


def by_definition(lengths, pairs, mode):
    """The sets of the clusters with their representatives, by repeating the step that defines them."""
    precedence = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    free, clusters = set(precedence), {}
    while free:
        candidates = [index for index in precedence if index in free]
        if mode == "cover":  # the first one of those with the most free partners
            chosen = max(candidates, key=lambda index: len(partners(pairs, index) & free))
        else:
            chosen = candidates[0]
        clusters[chosen] = {chosen} | (partners(pairs, chosen) & free)
        free -= clusters[chosen]
    return clusters


@given(graphs(), st.sampled_from(["cover", "length"]))
def test_greedy_clusters_are_those_of_the_definition(graph, mode):
    clusters = found(*graph, mode)
    assert {members[0]: set(members) for members in clusters} == by_definition(*graph, mode)


@given(graphs())
def test_components_are_those_of_networkx(graph):
    lengths, pairs = graph
    known = networkx.Graph(pairs)
    known.add_nodes_from(range(len(lengths)))
    clusters = found(lengths, pairs, "components")
    assert sorted(map(sorted, clusters)) == sorted(map(sorted, networkx.connected_components(known)))
    for members in clusters:
        assert members[0] == min(members, key=lambda index: (-lengths[index], index))


@given(graphs(), st.sampled_from(option_of("mode", "cluster").choices))
def test_clusters_and_members_have_an_order(graph, mode):
    clusters = found(*graph, mode)
    keys = [(-len(members), -graph[0][members[0]], members[0]) for members in clusters]
    assert keys == sorted(keys)
    assert all(list(members[1:]) == sorted(members[1:]) for members in clusters)
    assert sorted(index for members in clusters for index in members) == list(range(len(graph[0])))

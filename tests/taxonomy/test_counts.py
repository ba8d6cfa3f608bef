"""Counts by taxon are those of walks in a dictionary of parents."""

import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.subject_taxa import clade_counts, without_repetitions
from tests.taxonomy.dumps import EXCERPT, path_to_root, trees, write_dump


@settings(max_examples=60)
@given(trees(), st.data())
def test_a_clade_counts_what_is_at_and_below_it(parents, data):
    """Source: the paths to the root of all assignments."""
    with tempfile.TemporaryDirectory() as folder:
        tree = read_dump(write_dump(Path(folder), parents))
    direct = data.draw(st.dictionaries(st.sampled_from(sorted(parents)), st.integers(0, 3), max_size=12))
    counts = clade_counts(tree, {tree.index(taxid): n for taxid, n in direct.items()})
    expected = {}
    for taxid, n in direct.items():
        for above in path_to_root(parents, taxid) if n else ():
            expected[above] = expected.get(above, 0) + n
    found = {tree.taxid(one.taxon): (one.depth, one.n_direct, one.n_clade) for one in counts}
    assert len(found) == len(counts)
    assert found == {
        taxid: (len(path_to_root(parents, taxid)) - 1, direct.get(taxid, 0), n) for taxid, n in expected.items()
    }
    above: list[int] = []
    for one in counts:
        del above[one.depth :]
        above.append(tree.taxid(one.taxon))
        assert above == path_to_root(parents, above[-1])[::-1]  # each follows those above it
    for before, after in pairwise(counts):
        if before.depth == after.depth:
            assert (-before.n_clade, before.taxon) < (-after.n_clade, after.taxon)
    kept = without_repetitions(counts)
    assert [one.n_clade for one in kept if one.depth == 0] == [one.n_clade for one in counts if one.depth == 0]
    assert [one.taxon for one in kept if one.n_direct] == [one.taxon for one in counts if one.n_direct]
    for before, after in pairwise(kept):
        assert after.depth <= before.depth + 1
        assert not (after.depth > before.depth > 0 and after.n_clade == before.n_clade)


def test_taxa_that_repeat_a_number_are_left_out():
    """By hand: two queries of human, one of chimpanzee, and one of E. coli."""
    tree = read_dump(EXCERPT)
    counts = clade_counts(tree, {tree.index(taxid): n for taxid, n in ((9606, 2), (9598, 1), (562, 1))})
    assert len(counts) == 2 + 31 + 2 + 7
    assert [(one.depth, tree.name(one.taxon), one.n_clade) for one in without_repetitions(counts)] == [
        (0, "root", 4),
        (1, "cellular organisms", 4),
        (2, "Homininae", 3),
        (3, "Homo sapiens", 2),
        (3, "Pan troglodytes", 1),
        (2, "Escherichia coli", 1),
    ]
    assert clade_counts(tree, {}) == []

"""The taxonomic tree: lineages, descendants and common ancestors are those of plain walks from child to parent."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.tree import joined_tree, packed_arrays, unpacked
from tests.taxonomy.dumps import EXCERPT, path_to_root, trees, with_changes, write_dump


@pytest.fixture(scope="module")
def ncbi(tmp_path_factory):
    """The excerpt of NCBI's taxonomy, with merged and deleted ids."""
    return read_dump(with_changes(tmp_path_factory.mktemp("taxdump")))


def taxon(tree, taxid):
    """Return the taxon with an id, which must be there."""
    found = tree.index(taxid)
    assert found is not None
    return found


def ids(tree, taxa):
    return [tree.taxid(one) for one in taxa]


@settings(max_examples=60)
@given(trees(), st.data())
def test_a_tree_is_that_of_its_file(parents, data):
    """Source: walks in a dictionary of parents."""
    with tempfile.TemporaryDirectory() as folder:
        tree = read_dump(write_dump(Path(folder), parents)).checked()
    assert len(tree) == len(parents)
    assert sorted(ids(tree, range(len(tree)))) == sorted(parents)
    paths = {taxid: path_to_root(parents, taxid) for taxid in parents}
    for taxid, path in paths.items():
        one = taxon(tree, taxid)
        assert ids(tree, tree.lineage(one)) == path[::-1]
        assert tree.name(one) == f"Taxon {taxid}"
        below = {found for first, stop in tree.descendants(one) for found in ids(tree, range(first, stop))}
        assert below == {other for other in parents if taxid in paths[other]}
    chosen = data.draw(st.lists(st.sampled_from(sorted(parents)), min_size=1, max_size=6))
    shared = [one for one in paths[chosen[0]] if all(one in paths[other] for other in chosen)]
    assert tree.taxid(tree.lca([taxon(tree, one) for one in chosen])) == shared[0]
    part = tree.subset([taxon(tree, one) for one in chosen]).checked()
    assert set(ids(part, range(len(part)))) == {one for other in chosen for one in paths[other]}
    for taxid in chosen:
        assert ids(part, part.lineage(taxon(part, taxid))) == paths[taxid][::-1]
        assert part.name(taxon(part, taxid)) == f"Taxon {taxid}"
    assert 0 not in parents
    assert tree.index(0) is None


@settings(max_examples=40)
@given(trees(), st.data())
def test_parts_of_a_tree_are_joined_to_the_part_of_all_their_taxa(parents, data):
    """Source: the arrays of `Taxonomy.subset` of the taxa of all parts."""
    with tempfile.TemporaryDirectory() as folder:
        tree = read_dump(write_dump(Path(folder), parents, {taxid: f"rank {taxid % 3}" for taxid in parents}))
    taxa = st.lists(st.integers(0, len(tree) - 1), min_size=1, max_size=5)
    parts = data.draw(st.lists(taxa, min_size=1, max_size=4))
    joined = joined_tree([tree.subset(part) for part in parts]).checked()
    whole = tree.subset(sorted({taxon for part in parts for taxon in part}))
    for name in ("taxids", "parents", "by_taxid"):
        assert np.array_equal(getattr(joined, name), getattr(whole, name))
    for one in range(len(whole)):
        assert (joined.name(one), joined.rank(one)) == (whole.name(one), whole.rank(one))


def test_joined_trees_keep_former_and_deleted_ids(ncbi):
    """Source: the excerpt with changes made up; parts with human, and without."""
    human, mouse = taxon(ncbi, 9606), taxon(ncbi, 10090)
    joined = joined_tree([ncbi.subset([mouse]), ncbi.subset([human]), ncbi])
    assert joined.taxid(taxon(joined, 4000010)) == 9606
    assert np.array_equal(joined.merged, ncbi.merged)
    assert joined.is_deleted(4000001)
    assert joined.common_name(taxon(joined, 9606)) == "human"
    assert joined.blast_name(taxon(joined, 10090)) == "rodents"


@given(trees())
@settings(max_examples=20)
def test_arrays_give_the_same_tree_back(parents):
    with tempfile.TemporaryDirectory() as folder:
        tree = read_dump(write_dump(Path(folder), parents, dict.fromkeys(parents, "clade")))
    again = unpacked(packed_arrays(tree))
    for one in range(len(tree)):
        assert (again.taxid(one), again.lineage(one), again.name(one)) == (
            tree.taxid(one), tree.lineage(one), tree.name(one)
        )  # fmt: skip
        assert again.rank(one) == "clade"


def test_names_ranks_and_groups_are_ncbis(ncbi):
    """Source: https://www.ncbi.nlm.nih.gov/taxonomy for human, the subgenus Mus, E. coli and a virus."""
    human = taxon(ncbi, 9606)
    assert (ncbi.name(human), ncbi.rank(human)) == ("Homo sapiens", "species")
    assert (ncbi.common_name(human), ncbi.blast_name(human), ncbi.domain(human)) == ("human", "primates", "Eukaryota")
    assert ncbi.lineage_names(human)[:3] == ["cellular organisms", "Eukaryota", "Opisthokonta"]
    assert ncbi.lineage_names(human)[-3:] == ["Homininae", "Homo", "Homo sapiens"]
    assert (ncbi.name(taxon(ncbi, 10088)), ncbi.rank(taxon(ncbi, 10088))) == ("Mus", "genus")
    assert (ncbi.name(taxon(ncbi, 862507)), ncbi.rank(taxon(ncbi, 862507))) == ("Mus", "subgenus")
    coli = taxon(ncbi, 562)
    assert (ncbi.common_name(coli), ncbi.blast_name(coli), ncbi.domain(coli)) == (
        "Escherichia coli", "enterobacteria", "Bacteria"
    )  # fmt: skip
    virus = taxon(ncbi, 10497)
    assert (ncbi.domain(virus), ncbi.blast_name(virus)) == ("Viruses", "viruses")
    assert ncbi.lineage_names(taxon(ncbi, 1)) == ["root"]


def test_common_ancestors_are_those_of_taxopy(ncbi):
    """Source: taxopy, for all pairs of species of the excerpt."""
    import taxopy

    files = {name: str(EXCERPT / f"{name}.dmp") for name in ("nodes", "names")}
    theirs = taxopy.TaxDb(nodes_dmp=files["nodes"], names_dmp=files["names"])
    species = [taxid for one in range(len(ncbi)) if ncbi.rank(one) == "species" for taxid in [ncbi.taxid(one)]]
    assert len(species) == 19
    for one in species:
        found = taxopy.Taxon(one, theirs)
        assert ids(ncbi, ncbi.lineage(taxon(ncbi, one)))[::-1] == found.taxid_lineage
        assert [ncbi.name(level) for level in ncbi.lineage(taxon(ncbi, one))][::-1] == found.name_lineage
        for other in species:
            expected = taxopy.find_lca([found, taxopy.Taxon(other, theirs)], theirs).taxid
            assert ncbi.taxid(ncbi.lca([taxon(ncbi, one), taxon(ncbi, other)])) == expected


def test_merged_ids_are_followed_and_deleted_ones_are_known(ncbi):
    """By hand: the lines of merged.dmp and delnodes.dmp."""
    assert ncbi.taxid(taxon(ncbi, 4000010)) == 9606
    assert ncbi.merged_into(4000011) == 9606
    assert ncbi.merged_into(9606) is None
    assert ncbi.is_deleted(4000000)
    assert not ncbi.is_deleted(4000002)
    assert ncbi.index(4000000) is None
    assert ncbi.index(2**40) is None
    part = ncbi.subset([taxon(ncbi, 9606)])
    assert part.taxid(taxon(part, 4000010)) == 9606
    assert part.merged.tolist() == [[4000010, 9606], [4000011, 9606]]
    assert ncbi.subset([taxon(ncbi, 562)]).merged.tolist() == []


def test_two_roots_have_no_common_ancestor(tmp_path):
    tree = read_dump(write_dump(tmp_path, {1: 1, 5: 5, 7: 5, 8: 1}))
    assert tree.lca([taxon(tree, 7), taxon(tree, 8)]) is None
    assert tree.lca([]) is None
    assert tree.taxid(tree.lca([taxon(tree, 7), taxon(tree, 5)])) == 5
    assert tree.lineage_names(taxon(tree, 7)) == ["Taxon 5", "Taxon 7"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("parents", lambda array: array + 1),
        ("by_taxid", lambda array: array[::-1]),
        ("ranks", lambda array: array + 500),
        ("name_ends", lambda array: array + 1),
        ("name_ends", lambda array: array[:-1]),
        ("taxids", lambda array: array[:-1]),
        ("rank_name_ends", lambda array: array[::-1]),
        ("merged", lambda array: array[:-1]),
        ("merged", lambda array: array[::-1]),
        ("deleted", lambda array: array[::-1]),
    ],
)
def test_arrays_that_lead_astray_are_refused(ncbi, name, change):
    """Each change would lead outside of an array, or in a circle."""
    arrays = packed_arrays(ncbi)
    arrays[name] = np.ascontiguousarray(change(arrays[name]))
    with pytest.raises((ValueError, IndexError)):
        unpacked(arrays)

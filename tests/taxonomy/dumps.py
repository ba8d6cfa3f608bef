"""Taxdumps for tests: the excerpt of NCBI's taxonomy in ``data/taxonomy``, and trees that Hypothesis draws."""

from collections.abc import Mapping
from pathlib import Path

from hypothesis import strategies as st

EXCERPT = Path(__file__).parents[2] / "data" / "taxonomy"
MERGED = "4000010\t|\t9606\t|\n4000011\t|\t9606\t|\n"
"""Former ids of Homo sapiens, made up for the tests."""
DELETED = "4000001\t|\n4000000\t|\n"
"""Deleted ids, made up."""


def with_changes(folder: Path) -> Path:
    """Write the excerpt with merged and deleted ids."""
    folder.mkdir(exist_ok=True)
    for name in ("nodes.dmp", "names.dmp"):
        (folder / name).write_bytes((EXCERPT / name).read_bytes())
    (folder / "merged.dmp").write_text(MERGED)
    (folder / "delnodes.dmp").write_text(DELETED)
    return folder


def write_dump(folder: Path, parents: Mapping[int, int], ranks: Mapping[int, str] | None = None) -> Path:
    """Write a tree, whose taxa are named by their ids."""
    folder.mkdir(exist_ok=True)
    known = ranks or {}
    nodes = (f"{taxid}\t|\t{parent}\t|\t{known.get(taxid, 'no rank')}\t|\n" for taxid, parent in parents.items())
    (folder / "nodes.dmp").write_text("".join(nodes))
    names = (f"{taxid}\t|\tTaxon {taxid}\t|\t\t|\tscientific name\t|\n" for taxid in parents)
    (folder / "names.dmp").write_text("".join(names))
    return folder


@st.composite
def trees(draw: st.DrawFn) -> dict[int, int]:
    """The parents of up to 40 taxa by their ids, in any order; 1 is the root."""
    ids = [1, *draw(st.lists(st.integers(2, 2**32 - 1), unique=True, max_size=39))]
    parents = {1: 1}
    for place, taxid in enumerate(ids[1:], 1):
        parents[taxid] = ids[draw(st.integers(0, place - 1))]
    order = draw(st.permutations(ids))
    return {taxid: parents[taxid] for taxid in order}


def path_to_root(parents: Mapping[int, int], taxid: int) -> list[int]:
    """The ids from a taxon up to the root, in plain Python."""
    path = [taxid]
    while parents[path[-1]] != path[-1]:
        path.append(parents[path[-1]])
    return path

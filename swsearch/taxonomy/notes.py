"""What a user is told about taxonomy ids that were merged, were deleted, or are unknown: one line for each kind."""

from __future__ import annotations

from swsearch.taxonomy.tree import Taxonomy
from swsearch.words import counted


class TaxidNotes:
    """The ids that were looked up in a tree and are not current there.

    Parameters
    ----------
    tree : Taxonomy
    """

    def __init__(self, tree: Taxonomy) -> None:
        self._tree = tree
        self._merged: dict[int, int] = {}
        self._deleted: set[int] = set()
        self._unknown: set[int] = set()

    def current(self, taxid: int) -> int:
        """The id into which this one was merged, or the id itself; it is noted if it is not current."""
        taxon = self._tree.index(taxid)
        if taxon is None:
            (self._deleted if self._tree.is_deleted(taxid) else self._unknown).add(taxid)
            return taxid
        found = self._tree.taxid(taxon)
        if found != taxid:
            self._merged[taxid] = found
        return found

    def messages(self) -> list[str]:
        """What to say about the ids so far; empty if all are current."""
        lines = []
        if self._merged:
            old = min(self._merged)
            verb = "was" if len(self._merged) == 1 else "were"
            lines.append(
                f"{counted(len(self._merged), 'taxonomy id')} {verb} merged into others, which are used: "
                f"{old} into {self._merged[old]}{_and_so_on(self._merged)}"
            )
        if self._deleted:
            verb = "was" if len(self._deleted) == 1 else "were"
            lines.append(
                f"warning: {counted(len(self._deleted), 'taxonomy id')} {verb} deleted from the taxonomy: "
                f"{min(self._deleted)}{_and_so_on(self._deleted)}"
            )
        if self._unknown:
            verb = "is" if len(self._unknown) == 1 else "are"
            lines.append(
                f"warning: {counted(len(self._unknown), 'taxonomy id')} {verb} not in the taxonomy: "
                f"{min(self._unknown)}{_and_so_on(self._unknown)}; a newer taxdump may have more"
            )
        return lines


def _and_so_on(several: set[int] | dict[int, int]) -> str:
    return " …" if len(several) > 1 else ""

"""The filter by taxonomy id: the organism of each subject, and the descendants of an id in NCBI's tree.

A subject's id is read from its header (``OX=``, as in UniProt) or from a map: a file of two columns, identifier and id,
or one of NCBI's ``accession2taxid`` files with its header line. If there is a map, the ids in headers are ignored. The
tree is ``nodes.dmp`` of NCBI's ``taxdump``; without it, an id has no descendants.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from swsearch.errors import InputError
from swsearch.filters.identifiers import names_of
from swsearch.sequences.lines import text_lines, whole_number
from swsearch.sequences.organism import header_taxid
from swsearch.sequences.record import split_header

_TAXID: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class TaxonFilter:
    """The subjects of some organisms.

    Attributes
    ----------
    taxids : frozenset of int
        The ids that pass, including descendants.
    members : frozenset of str or None
        Identifiers to which the map assigns one of these ids; None if ids are read from headers.
    """

    taxids: frozenset[int]
    members: frozenset[str] | None

    @staticmethod
    def read(taxid: str, taxid_map: str | None, taxonomy: str | None) -> TaxonFilter:
        """The filter for the values of the options with these names.

        Raises
        ------
        InputError
            ``taxid`` is not a list of ids, a file cannot be read or has another format, or the tree lacks an id.
        """
        taxids = parse_taxids(taxid)
        if taxonomy is not None:
            taxids = with_descendants(taxids, taxonomy)
        return TaxonFilter(taxids, None if taxid_map is None else mapped_members(taxids, taxid_map))

    def holds(self, header: str) -> bool:
        """Whether the subject with this header belongs to one of the organisms."""
        if self.members is None:
            return header_taxid(header) in self.taxids
        return any(name in self.members for name in names_of(split_header(header)[0]))


def parse_taxids(text: str) -> frozenset[int]:
    """Taxonomy ids separated by commas.

    >>> sorted(parse_taxids("9606,10090"))
    [9606, 10090]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(_TAXID.fullmatch(part) for part in parts):
        shown = repr(text if len(text) <= 60 else text[:57] + "...")
        raise InputError(f"--taxid {shown}: give NCBI taxonomy ids separated by commas, such as 9606,10090")
    return frozenset(map(int, parts))


def with_descendants(taxids: frozenset[int], path: str) -> frozenset[int]:
    """The ids and all their descendants in the tree of a ``nodes.dmp`` file.

    Raises
    ------
    InputError
        The file is not a ``nodes.dmp``, or an id is not in it.
    """
    children: dict[int, list[int]] = {}
    known = set()
    for number, line in enumerate(text_lines(path, f"--taxonomy {path}"), 1):
        fields = line.split("|", 2)
        try:
            node, parent = whole_number(fields[0].strip()), whole_number(fields[1].strip())
        except (IndexError, ValueError) as error:
            problem = "a node's line is `id | parent | …`; give nodes.dmp of NCBI's taxdump"
            raise InputError(f"--taxonomy {path}, line {number}: {problem}") from error
        known.add(node)
        if node != parent:  # the root is its own parent
            children.setdefault(parent, []).append(node)
    missing = sorted(taxids - known)
    if missing:
        raise InputError(f"--taxid {missing[0]} is not in {path}; take a newer taxonomy, or the id that replaced it")
    found: set[int] = set()
    waiting = list(taxids)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += children.get(node, ())
    return frozenset(found)


def mapped_members(taxids: frozenset[int], path: str) -> frozenset[str]:
    """The identifiers to which a map assigns one of the ids; only these are stored in memory.

    Raises
    ------
    InputError
        The file is not a map.
    """
    members = set()
    n_names = 1
    for number, line in enumerate(text_lines(path, f"--taxid-map {path}"), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if number == 1 and "taxid" in fields[1:]:
            n_names = fields.index("taxid")  # preceded by NCBI's columns accession, accession.version or both
            continue
        try:
            if whole_number(fields[n_names]) in taxids:
                members.update(fields[:n_names])
        except (IndexError, ValueError) as error:
            problem = "a line is an identifier and a taxonomy id; NCBI's accession2taxid files are read as well"
            raise InputError(f"--taxid-map {path}, line {number}: {problem}") from error
    return frozenset(members)

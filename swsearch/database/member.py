"""One of the databases of which an open one consists: where it comes from, what was wanted of it, and what is open."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from numpy.typing import NDArray

from swsearch.database.format import Catalogue
from swsearch.database.segment import Segment, parts_of

if TYPE_CHECKING:
    from swsearch.database.stored_taxonomy import MemberTaxonomy

PIPES: Final = ("<stdin>", "<pipe>")
"""Addresses of sequences that were read from a pipe."""


@dataclass(frozen=True)
class DatabaseSource:
    """Where a database comes from.

    ``name`` is what its user wrote, for messages. ``address`` is the absolute path of a folder, the URL of one in an
    object store, or the absolute path of a sequence file without symbolic links; ``<stdin>`` or ``<pipe>`` for a pipe.
    """

    name: str
    address: str

    @property
    def location(self) -> str:
        """The address without symbolic links, for the records of a search."""
        return os.path.realpath(self.address) if os.path.isabs(self.address) else self.address


@dataclass(frozen=True)
class DatabasePart:
    """What is wanted of a database; None stands for anything.

    ``digest`` is the one that the database must have. ``segments`` are those of a slice, by their numbers from 0; the
    files of the others need not be there. The subjects of a slice keep their ``subject_index``, and its catalogue, with
    ``n_subjects``, ``n_residues`` and ``digest``, is that of the whole database. The same content can be divided into
    segments in several ways, so the numbers have a meaning only together with the :attr:`Catalogue.layout`.
    """

    digest: str | None = None
    segments: tuple[int, ...] | None = None
    layout: str | None = None


@dataclass(frozen=True, eq=False)
class Member:
    """One of the databases of which a :class:`PackedDatabase` consists.

    ``folder`` is in the cache of this node if the database ``is_cached``: one of an object store, or a sequence file.
    ``segments`` are those that are open, with the ``subject_index`` that their subjects have in this database alone,
    and ``numbers`` their numbers among all segments of the catalogue, from 0. ``taxonomy_arrays`` are those of the
    stored taxonomy by their names, None if there is none.
    """

    source: DatabaseSource
    folder: Path
    catalogue: Catalogue
    segments: tuple[Segment, ...]
    numbers: tuple[int, ...]
    taxonomy_arrays: Mapping[str, NDArray[Any]] | None
    is_cached: bool = False

    def part(self, segments: Collection[int]) -> Member:
        """The same database with these of its open segments only."""
        chosen = tuple(segments)
        return replace(
            self,
            segments=tuple(self.segments[place] for place in chosen),
            numbers=tuple(self.numbers[place] for place in chosen),
        )

    def has_content(self, digest: str) -> bool:
        """Whether the subjects are those of a database with this digest, apart from compactions."""
        return digest in (self.catalogue.digest, *self.catalogue.former_digests)

    @property
    def opened_part(self) -> DatabasePart:
        """What is open, for another process."""
        if len(self.numbers) == len(self.catalogue.segments):
            return DatabasePart(self.catalogue.digest)
        return DatabasePart(self.catalogue.digest, self.numbers, self.catalogue.layout)

    @property
    def reopened_from(self) -> str:
        """What opens the same database in another process: its address, or the folder in the cache for a pipe.

        The folder is certain to be there only as long as the database is open.
        """
        return os.path.abspath(self.folder) if self.source.address in PIPES else self.source.address

    @property
    def taxonomy_digest(self) -> str | None:
        """SHA-256 of the stored organisms, in hexadecimal; None if they are not stored."""
        return None if self.catalogue.taxonomy is None else self.catalogue.taxonomy.digest

    def taxonomy(self) -> MemberTaxonomy | None:
        """The organisms of the subjects; None if they are not stored."""
        if self.taxonomy_arrays is None or self.catalogue.taxonomy is None:
            return None
        from swsearch.database.stored_taxonomy import MemberTaxonomy, first_rows

        rows = first_rows(self.catalogue)
        parts = [(part[0].numbering, rows[part[0].entry.name]) for part in parts_of(self.segments)]
        return MemberTaxonomy(self.folder / self.catalogue.taxonomy.name, self.taxonomy_arrays, parts)

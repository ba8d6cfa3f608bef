"""Several databases that are searched as one: their subjects follow each other, as in one FASTA of all their sequences.

:class:`JoinedDatabase` is a :class:`~swsearch.database.reader.PackedDatabase` whose segments are those of its
*members*, in order. Nothing is copied: the segments of a member have another ``subject_index``, behind the subjects of
all members before it. The search space, the order of equal hits and all numbers of subjects are therefore those of a
database that was indexed from the FASTA files of the members, and so is the result of a search.

The digest of joined databases is that of each member, joined by ``+``, and their location is the locations as words of
a command line; :class:`swsearch.hits.result.DatabaseInfo` takes both apart.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from swsearch.database.format import MAX_SUBJECTS, Catalogue
from swsearch.database.reader import PackedDatabase
from swsearch.database.segment import shifted
from swsearch.errors import InputError
from swsearch.hits.result import DIGEST_JOINT, DatabaseInfo

if TYPE_CHECKING:
    from swsearch.database.stored_taxonomy import DatabaseTaxonomy


Places: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""The path of a database, or those of several."""


class JoinedDatabase(PackedDatabase):
    r"""Several open databases as one; a context manager, which closes them.

    Parameters
    ----------
    members : sequence of PackedDatabase
        Open databases, at least one, in the order of their subjects; each a complete database, or a slice of it. The
        members of joined databases take the place of these.

    Raises
    ------
    InputError
        There is no member; two have the same content, or different alphabets; or all together have more than 2^32 - 1
        subjects.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from swsearch.database.builder import build_database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, letters in (("a", "MKVLL"), ("b", "WYR")):
    ...         _ = Path(folder, f"{name}.fa").write_text(f">{name}\n{letters}\n")
    ...         _ = build_database(f"{folder}/{name}.fa", f"{folder}/{name}.db")
    ...     with JoinedDatabase([PackedDatabase.open(f"{folder}/{name}.db") for name in "ab"]) as database:
    ...         print(database.n_subjects, database.n_residues, database.header(1))
    2 8 b
    """

    def __init__(self, members: Sequence[PackedDatabase]) -> None:
        self._given = tuple(members)
        self._members = tuple(one for member in members for one in member.members)
        _check_members(self._members)
        self._n_before = list(accumulate((member.n_subjects for member in self._members), initial=0))
        segments = [
            segment
            for member, n_before in zip(self._members, self._n_before, strict=False)
            for segment in shifted(member.segments, n_before)
        ]
        catalogue = joined_catalogue([member.catalogue for member in self._members])
        super().__init__(self._members[0].path, catalogue, tuple(segments))

    @property
    def members(self) -> tuple[PackedDatabase, ...]:
        """The databases, in the order of their subjects."""
        return self._members

    def close(self) -> None:
        """Release the maps, and close the members."""
        super().close()
        for member in self._given:
            member.close()

    def numbers_of_members(self, segments: Collection[int]) -> Iterator[tuple[PackedDatabase, list[int]]]:
        """The members, each with the numbers that it has for its own among these segments of :attr:`catalogue`."""
        first = 0
        for member in self._members:
            stop = first + len(member.catalogue.segments)
            yield member, [number - first for number in sorted(segments) if first <= number < stop]
            first = stop

    def part(self, segments: Collection[int]) -> JoinedDatabase:
        """The slice of open whole databases with these segments; it shares the maps."""
        return JoinedDatabase([member.part(own) for member, own in self.numbers_of_members(segments)])

    def __reduce__(self) -> tuple[Any, ...]:
        return JoinedDatabase, (self._members,)

    @property
    def name(self) -> str:
        """The databases as their user wrote them, for messages."""
        *others, last = (member.name for member in self._members)
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def address(self) -> str:
        """The addresses of the members as words of a command line."""
        return shlex.join(member.address for member in self._members)

    @property
    def location(self) -> str:
        """The locations of the members as words of a command line."""
        return shlex.join(member.location for member in self._members)

    @cached_property
    def taxonomy(self) -> DatabaseTaxonomy | None:
        """The organisms of the subjects; None if no member has stored them."""
        if all(member.taxonomy is None for member in self._members):
            return None
        from swsearch.database.stored_taxonomy import JoinedTaxonomy

        return JoinedTaxonomy(self._n_before, [member.taxonomy for member in self._members])

    @property
    def taxonomy_digest(self) -> str | None:
        """The digests of the stored organisms, joined; None if no member has stored them."""
        digests = [digest for member in self._members if (digest := member.taxonomy_digest) is not None]
        return DIGEST_JOINT.join(digests) or None


def joined_catalogue(catalogues: Sequence[Catalogue]) -> Catalogue:
    """The catalogue of joined databases: all their segments, whose names begin with the number of the database.

    Its generation is the sum of theirs, so that it also increases by one with each change.

    Raises
    ------
    InputError
        There are more than 2^32 - 1 subjects.
    """
    joined = Catalogue(
        alphabet=catalogues[0].alphabet,
        digest=DIGEST_JOINT.join(one.digest for one in catalogues),
        generation=sum(one.generation for one in catalogues),
        sources=tuple(source for one in catalogues for source in one.sources),
        program=catalogues[0].program,
        created=max(one.created for one in catalogues),
        segments=tuple(
            replace(segment, name=f"{number}/{segment.name}")
            for number, one in enumerate(catalogues, 1)
            for segment in one.segments
        ),
    )
    if joined.n_subjects > MAX_SUBJECTS:
        problem = f"the databases have {joined.n_subjects:,} subjects together"
        raise InputError(f"{problem}, of which one search takes {MAX_SUBJECTS:,}; search them one by one")
    return joined


def _check_members(members: Sequence[PackedDatabase]) -> None:
    if not members:
        raise InputError("no database is named; give the path of at least one")
    first = members[0]
    for place, member in enumerate(members):
        if member.alphabet is not first.alphabet:
            problem = f"{member.name} is {member.alphabet.name}, {first.name} is {first.alphabet.name}"
            raise InputError(f"{problem}; databases of one alphabet are searched together: leave one of them out")
        # A compaction changes the digest, but not the content.
        equal = (one for one in members[:place] if one.has_content(member.digest) or member.has_content(one.digest))
        if (other := next(equal, None)) is not None:
            same = "is named twice" if other.name == member.name else f"has the content of {other.name}"
            raise InputError(f"{member.name} {same}; its subjects would count twice: name each database once")


def joined(members: Sequence[PackedDatabase]) -> PackedDatabase:
    """Open databases as one: the only one, or :class:`JoinedDatabase`."""
    return members[0] if len(members) == 1 else JoinedDatabase(members)


def open_searched(searched: DatabaseInfo, places: Places | None = None) -> PackedDatabase:
    """Open the databases of a search, with the subjects and the indices that they had.

    Parameters
    ----------
    searched : DatabaseInfo
        The record of the search.
    places : path or sequence of paths, optional
        Where the databases are now, in the order of the search; by default, where they were.

    Raises
    ------
    DatabaseError
        A database is not there any more, has other content, or there is another number of them.
    """
    with ExitStack() as stack:
        database = joined([stack.enter_context(PackedDatabase.open(path)) for path in places_of(searched, places)])
        database.check_searched(searched.digest)
        stack.pop_all()
        return database


def places_of(searched: DatabaseInfo, places: Places | None) -> list[str]:
    """The paths of the databases of a search; the parameters are those of :func:`open_searched`."""
    if places is None:
        return list(searched.paths)
    return [os.fspath(path) for path in ([places] if isinstance(places, (str, os.PathLike)) else places)]

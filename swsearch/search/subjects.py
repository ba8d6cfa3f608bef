"""Filters on subjects: which of a database's subjects a search looks at, decided before anything is scored.

The others are not aligned and cannot be found. E-values stay those of the whole database: what a hit is worth does not
depend on what else was asked for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch.database.reader import PackedDatabase
from swsearch.errors import InputError
from swsearch.search.identifiers import IdentifierList
from swsearch.search.options import SearchOptions
from swsearch.search.taxonomy import TaxonFilter
from swsearch.sequences.record import split_header
from swsearch.typing import SubjectIndex


@dataclass(frozen=True, eq=False)
class SubjectSelection:
    """The subjects that the filters let through.

    Attributes
    ----------
    chosen : bool array, shape (n_subjects,)
        By ``subject_index``.
    notes : tuple of str
        What a person should hear of it, identifiers that named nothing above all.
    """

    chosen: NDArray[np.bool_]
    notes: tuple[str, ...]

    @property
    def n_subjects(self) -> int:
        """Subjects that are searched."""
        return int(np.count_nonzero(self.chosen))

    @property
    def subject_index(self) -> SubjectIndex:
        """Their places in the FASTA, growing; uint32."""
        return np.flatnonzero(self.chosen).astype(np.uint32)

    @property
    def digest(self) -> str:
        """SHA-256 that is the same for the same subjects of the same database, whatever chose them."""
        return hashlib.sha256(np.packbits(self.chosen).tobytes()).hexdigest()


def select_subjects(database: PackedDatabase, options: SearchOptions) -> SubjectSelection | None:
    """The subjects that the options let through; None where they ask for all.

    Raises
    ------
    InputError
        A file of identifiers or taxa cannot be read, or no subject is left.
    """
    if not options.filters_subjects:
        return None
    chosen = np.ones(database.n_subjects, dtype=np.bool_)
    if options.min_length is not None or options.max_length is not None:
        lengths = database.lengths(np.arange(database.n_subjects, dtype=np.uint32))
        longest = np.iinfo(np.uint32).max if options.max_length is None else options.max_length
        chosen &= (lengths >= (options.min_length or 1)) & (lengths <= longest)
    lists = {
        name: IdentifierList(f"--{name}", path)
        for name, path in (("include", options.include), ("exclude", options.exclude))
        if path is not None
    }
    tests = _header_tests(options, lists)
    if tests:
        for first, headers in database.header_blocks():
            for place, header in enumerate(headers, first):
                passed = [test(header) for test in tests]
                chosen[place] &= all(passed)
    if not chosen.any():
        advice = "loosen or correct them"
        if options.taxid is not None and options.taxid_map is None:
            advice = "taxonomy ids are those that headers state as OX=; --taxid-map gives others"
        raise InputError(f"no subject of {database.path} passes {_filters_given(options)}; {advice}")
    notes = tuple(note for wanted in lists.values() if (note := wanted.note()) is not None)
    return SubjectSelection(chosen, notes)


def _header_tests(options: SearchOptions, lists: dict[str, IdentifierList]) -> list[Callable[[str], bool]]:
    """What a header must pass. Every test sees every header, so that the notes on lists are complete."""
    tests: list[Callable[[str], bool]] = []
    if options.id_pattern is not None:
        pattern = re.compile(options.id_pattern)
        tests.append(lambda header: pattern.search(split_header(header)[0]) is not None)
    if "include" in lists:
        tests.append(lambda header: lists["include"].names(split_header(header)[0]))
    if "exclude" in lists:
        tests.append(lambda header: not lists["exclude"].names(split_header(header)[0]))
    if options.taxid is not None:
        tests.append(TaxonFilter.read(options.taxid, options.taxid_map, options.taxonomy).holds)
    return tests


def _filters_given(options: SearchOptions) -> str:
    given = {name: getattr(options, name) for name in SearchOptions.SUBJECT_FILTERS}
    return ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in given.items() if value is not None)

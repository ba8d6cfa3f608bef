"""Filters on subjects, applied before scoring: they select the subjects of the database that a search aligns.

A file of identifiers names subjects by the rules of :mod:`swsearch.sequences.headers`. E-values refer to the complete
database, so the filters do not change the E-value of a hit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.reader import PackedDatabase
from swsearch.errors import InputError
from swsearch.hits.limits import SubjectFilters
from swsearch.sequences.headers import names_of
from swsearch.sequences.record import split_header
from swsearch.sequences.source import text_lines
from swsearch.typing import SubjectIndex
from swsearch.words import as_options, counted, option


def identifier_lines(option: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file of identifiers, counted from 1, as words, of which the first is the identifier.

    Empty lines and lines that begin with ``#`` are left out. The file may be compressed; ``-`` is stdin.

    Raises
    ------
    InputError
        The file cannot be read, or is FASTA or FASTQ; the message begins with ``option``.
    """
    lines = text_lines(path, f"{option} {path}")
    first = list(islice(lines, 3))
    if [line[:1] for line in first[::2]] == ["@", "+"]:
        raise InputError(f"{option} {path}: this is FASTQ; give identifiers, one a line, and no sequences")
    for number, line in enumerate(chain(first, lines), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0].startswith(">"):
            problem = "a header of FASTA; give identifiers without '>', one a line, and no sequences"
            raise InputError(f"{option} {path}, line {number}: {problem}")
        yield number, words


class IdentifierList:
    """The identifiers of a file, by the rules of :func:`identifier_lines`.

    Parameters
    ----------
    option : str
        The option by which the file was specified, for messages.
    path : str

    Raises
    ------
    InputError
        The file cannot be read, is FASTA or FASTQ, or contains no identifier.
    """

    def __init__(self, option: str, path: str) -> None:
        self.option = option
        self.path = path
        self.wanted = frozenset(words[0] for _, words in identifier_lines(option, path))
        if not self.wanted:
            raise InputError(f"{option} {path}: the file names no identifier; give one a line")
        self._found: set[str] = set()

    def names(self, identifier: str) -> bool:
        """Whether an identifier of the list denotes the subject with this first word."""
        known = [name for name in names_of(identifier) if name in self.wanted]
        self._found.update(known)
        return bool(known)

    def note(self) -> str | None:
        """A message about the identifiers that have denoted no subject so far; None if there are none."""
        missing = sorted(self.wanted - self._found)
        if not missing:
            return None
        return (
            f"{as_options(self.option)} {self.path}: {len(missing):,} of {counted(len(self.wanted), 'identifier')} "
            f"{'is' if len(missing) == 1 else 'are'} not in the database, {missing[0]!r} for one"
        )


_OTHER_MEANING: Final = re.compile(r"\{,\d+\}|\[:\^?[a-z]+:\]")
"""What RE2 accepts and takes for something else than Python does: repetitions without a lower limit, POSIX classes."""


@dataclass(frozen=True, eq=False)
class SubjectSelection:
    """The subjects that pass the filters.

    Attributes
    ----------
    chosen : bool array, shape (n_subjects,)
        Whether each subject passes, indexed by ``subject_index``.
    notes : tuple of str
        Messages for the user, such as identifiers that denote no subject.
    """

    chosen: NDArray[np.bool_]
    notes: tuple[str, ...]

    @property
    def subject_index(self) -> SubjectIndex:
        """The ``subject_index`` of the subjects that pass, ascending; uint32."""
        return np.flatnonzero(self.chosen).astype(np.uint32)

    @property
    def parameters(self) -> dict[str, str | int]:
        """Number and SHA-256 of the subjects that pass, as they are stored with a run.

        The digest depends only on which subjects of the database pass, not on the filters that selected them.
        """
        digest = hashlib.sha256(np.packbits(self.chosen).tobytes()).hexdigest()
        return {"chosen_subjects": int(np.count_nonzero(self.chosen)), "chosen_digest": digest}

    def among(self, subject_index: SubjectIndex) -> SubjectSelection:
        """The selection without all subjects but these, as a slice of the database has it."""
        chosen = np.zeros_like(self.chosen)
        chosen[subject_index] = self.chosen[subject_index]
        return SubjectSelection(chosen, ())


def select_subjects(database: PackedDatabase, filters: SubjectFilters) -> SubjectSelection:
    """The subjects that pass ``filters``.

    Raises
    ------
    InputError
        A file of identifiers or taxa cannot be read, or no subject passes.
    """
    there = database.subject_index
    chosen = np.zeros(database.n_subjects, dtype=np.bool_)
    chosen[there] = True
    if filters.min_length is not None or filters.max_length is not None:
        lengths = database.lengths(there)
        longest = np.iinfo(np.uint32).max if filters.max_length is None else filters.max_length
        chosen[there] = (lengths >= (filters.min_length or 1)) & (lengths <= longest)
    lists = {
        name: IdentifierList(option(name), path)
        for name, path in (("include", filters.include), ("exclude", filters.exclude))
        if path is not None
    }
    organisms = None
    if filters.taxid is not None:
        from swsearch.taxonomy.taxon_filter import TaxonFilter  # its import takes a few milliseconds

        organisms = TaxonFilter.read(filters.taxid, filters.taxid_map, filters.taxonomy, database)
        chosen &= organisms.chosen(database)
    tests = _header_tests(filters, lists)
    if tests:
        for index, header in database.headers():
            passed = [test(header) for test in tests]
            chosen[index] &= all(passed)
    if not chosen.any():
        raise InputError(_nothing_passes(database, filters))
    of_lists = tuple(note for wanted in lists.values() if (note := wanted.note()) is not None)
    return SubjectSelection(chosen, (*(() if organisms is None else organisms.notes), *of_lists))


def refused_taxids(database: PackedDatabase, filters: SubjectFilters) -> str | None:
    """The message of :func:`select_subjects` if no subject has the ids of ``taxid``; None if one may have.

    Only the stored taxonomy is asked. To read all headers, as the search does where it has to, may take minutes.

    Raises
    ------
    InputError
        ``taxid`` is not a list of ids, or the taxonomic tree lacks one.
    """
    from swsearch.taxonomy.taxon_filter import TaxonFilter

    assert filters.taxid is not None
    organisms = TaxonFilter.read(filters.taxid, filters.taxid_map, filters.taxonomy, database)
    return None if organisms.may_pass(database) else _nothing_passes(database, filters)


def _nothing_passes(database: PackedDatabase, filters: SubjectFilters) -> str:
    advice = "loosen or correct them"
    if filters.taxid is not None and filters.taxid_map is None and database.taxonomy is None:
        advice = f"taxonomy ids are those that headers state as OX= or TaxID=; {option('taxid_map')} gives others"
    return f"no subject of {database.name} passes {filters}; {advice}"


def identifier_pattern(text: str) -> Callable[[str], bool]:
    r"""A function that says whether a regular expression matches somewhere in a string.

    It is searched by RE2 (https://github.com/google/re2), whose time is linear in the length of the string, because
    whoever sends a pattern to a service may also send the identifiers. RE2 does not backtrack, so it has no
    backreferences and no assertions about what comes before or after. The syntax is what Python's ``re`` and RE2 have
    in common; ``\d``, ``\s``, ``\w`` and ``\b`` mean ASCII. A byte of an identifier that is not UTF-8 counts as ``?``.

    Raises
    ------
    InputError
        The text is empty, no regular expression, or has a construct that RE2 does not support, which the message names.

    >>> matches = identifier_pattern("^sp|_HUMAN$")
    >>> matches("sp|P02232|LGB1_VICFA"), matches("LGB1_HUMAN"), matches("LGB1_VICFA")
    (True, True, False)
    """
    if not text:
        raise InputError(f"{option('id_pattern')} is empty, and so found in every identifier; leave it out")
    given = option("id_pattern", text)
    if other := _OTHER_MEANING.search(text):
        problem = f"{other[0]} is not supported; write {{0,n}} for up to n repetitions, and letters for their classes"
        raise InputError(f"{given}: {problem}")
    try:
        re.compile(text)
        text.encode()
    except (re.error, OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise InputError(f"{given} is not a regular expression: {error}") from error
    import re2  # only here: few searches have a pattern

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        pattern = re2.compile(text, options)
    except re2.error as error:
        named = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        problem, _, construct = named.partition(": ")
        reason = f"does not support {construct} ({problem})" if construct else f"refuses it: {problem}"
        raise InputError(f"{given}: RE2, which searches patterns, {reason}; write another one") from error

    def matches(identifier: str) -> bool:
        return pattern.search(identifier.encode("utf-8", "replace")) is not None  # bytes take half the time of a string

    return matches


def _header_tests(filters: SubjectFilters, lists: dict[str, IdentifierList]) -> list[Callable[[str], bool]]:
    """The tests of a header. Each test is applied to every header, so that the notes on lists are complete."""
    tests: list[Callable[[str], bool]] = []
    if filters.id_pattern is not None:
        matches = identifier_pattern(filters.id_pattern)
        tests.append(lambda header: matches(split_header(header)[0]))
    if "include" in lists:
        tests.append(lambda header: lists["include"].names(split_header(header)[0]))
    if "exclude" in lists:
        tests.append(lambda header: not lists["exclude"].names(split_header(header)[0]))
    return tests

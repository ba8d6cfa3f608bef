"""The queries of a run: sequences or profiles (position-specific scores) from files, records in memory, or subjects.

:class:`Requirements` has the alphabet that a search requires of its queries, which the database and ``--translate``
determine, and the messages that refuse other queries with advice.

:func:`read_queries` reads one file of sequences. :class:`QueryFiles` and :class:`QueriesInMemory` contain all queries
of a run as records, and the parameters that the run stores about them. :func:`query_records` accepts the queries of a
Python program: letters, records of this package, or objects of Biopython.
:class:`SubjectQueries` are those of a search of all against all: the subjects themselves, each compared with those
before it. :class:`DatabaseQueries` are those of a search of another database.
"""

from __future__ import annotations

import hashlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from swsearch.database.reader import PackedDatabase
from swsearch.errors import AlphabetMismatch, FastaFormatError, InputError, WrongType
from swsearch.hits.result import ALL_AGAINST_ALL
from swsearch.options import option_of
from swsearch.query.profile import PositionSpecificQuery, SubjectRecord
from swsearch.query.profile_files import detect_query_format, read_profiles
from swsearch.sequences.alphabet import (
    DNA,
    MIN_TELLING_RESIDUES,
    PROTEIN,
    PROTEIN_ADVICE,
    Alphabet,
    detect_alphabet,
    refuse_dna,
)
from swsearch.sequences.fasta import read_chunks, read_each, read_sequences
from swsearch.sequences.genetic_code import CODON
from swsearch.sequences.record import InvalidRecord, SequenceRecord
from swsearch.sequences.source import refuse_repeated_pipes, seekable, shown_name, text_stream
from swsearch.typing import Lengths, SubjectIndex
from swsearch.words import a_kind, counted, option, shortened

if TYPE_CHECKING:
    from Bio.Seq import MutableSeq, Seq
    from Bio.SeqRecord import SeqRecord

    from swsearch.search.planned_search import PlannedSearch
    from swsearch.search.search_subjects import SearchSubjects

    Query: TypeAlias = SequenceRecord | SeqRecord | Seq | MutableSeq | str | tuple[str, str]
else:
    Query = Any

MAX_QUERY_LENGTH: Final = 2**24
"""Length of the longest query, in residues. Scores are below 127 * 2**24, which fits in signed 32 bits."""
SAMPLE_RESIDUES: Final = 10_000
"""Residues of queries from which their alphabet is told."""
MOST_BASES_OF_PROTEIN: Final = 0.7
"""Largest share of the letters ACGTUN in what is clearly protein; proteins have about 0.3."""
_OPTION = {
    (PROTEIN.name, PROTEIN.name): f"to search with protein leave {option('translate')} out",
    (DNA.name, PROTEIN.name): f"to translate it say {option('translate', 'query')}",
    (PROTEIN.name, DNA.name): f"to translate the database say {option('translate', 'subject')}",
    (DNA.name, DNA.name): f"to search with DNA leave {option('translate')} out, or say {option('translate', 'both')}",
}
"""The advice for each pair of alphabets, of queries and database."""


@dataclass(frozen=True)
class Requirements:
    """The queries that a search of one database with one value of ``--translate`` accepts.

    Attributes
    ----------
    database : str
        Name of the database, for messages.
    holds : Alphabet
        The database's alphabet.
    translate : str or None
        The field of :class:`swsearch.search.options.SearchOptions`.
    """

    database: str
    holds: Alphabet
    translate: str | None

    @property
    def alphabet(self) -> Alphabet:
        """The required alphabet of the queries."""
        return self.holds if self.translate is None else PROTEIN if self.translate == "subject" else DNA

    def check_database(self) -> None:
        """Refuse a database whose alphabet does not fit ``--translate``.

        Raises
        ------
        AlphabetMismatch
            The database has the other alphabet.
        """
        needed = {"query": PROTEIN, "subject": DNA, "both": DNA}.get(self.translate or "")
        if needed is None or needed is self.holds:
            return
        if self.holds is PROTEIN:
            fits = f"with queries of protein leave it out, with queries of DNA say {option('translate', 'query')}"
        else:
            subject, both = option("translate", "subject"), option("translate", "both")
            fits = f"with queries of protein say {subject}, with DNA leave it out or say {both}"
        advice = f"{option('translate', self.translate)} does not fit it: {fits}"
        raise AlphabetMismatch(needed.name, self.holds.name, self.database, advice)

    def advice(self, queries: Alphabet) -> str:
        """The options with which queries of this alphabet can search the database."""
        return f"{_OPTION[queries.name, self.holds.name]} ({self.database} is {self.holds.name})"

    def refusal(self, what: str, found: Alphabet) -> AlphabetMismatch:
        """The error for the query or file ``what``, whose alphabet ``found`` is not the required one."""
        return AlphabetMismatch(self.alphabet.name, found.name, what, self.advice(found))

    def check_query(self, query: SequenceRecord) -> None:
        """Refuse a query of another alphabet, or one that is too short or too long.

        Raises
        ------
        AlphabetMismatch
            The alphabet of the query is not :attr:`alphabet`.
        InputError
            The query is empty, shorter than a codon although it is to be translated, or longer than
            :data:`MAX_QUERY_LENGTH`.
        """
        name = f"query {shortened(query.identifier)}" if query.identifier else "the query"
        if query.alphabet is not self.alphabet:
            raise self.refusal(name, query.alphabet)
        shortest = CODON if self.translate in ("query", "both") else 1
        if not shortest <= len(query) <= MAX_QUERY_LENGTH:
            raise InputError(
                f"{name} has {counted(len(query), 'residue')}; {shortest} to {MAX_QUERY_LENGTH} can be searched"
            )

    def of_this_search(self, problem: str) -> str:
        """The message ``problem`` about a query's letter, with its advice on protein adapted to this search."""
        return problem.replace(PROTEIN_ADVICE, self.advice(PROTEIN))

    def refuse_dna(self, path: str | os.PathLike[str], letters: str, *, profiles: bool = False) -> None:
        """Refuse letters of a file that look like DNA if protein is required.

        With ``profiles``, ``letters`` are the consensus letters of profiles, of which X marks positions without a known
        letter, and the message states that profiles are protein.

        Raises
        ------
        AlphabetMismatch
            There are 30 letters or more, and they look like DNA.
        """
        meant = self.advice(DNA)
        if profiles:
            meant = "profiles are of proteins alone, search with the sequences themselves"
            letters = letters.replace("X", "")
        refuse_dna(shown_name(path), letters, self.alphabet, advice=f"{meant}; ")


def query_records(queries: Any, search: PlannedSearch) -> list[SequenceRecord]:
    """The queries of an argument, which is one query or an iterable of queries, as records that the search accepts.

    Raises :class:`WrongType` for an unsupported type, :class:`InputError` for a letter outside the alphabet of the
    queries or a record of Biopython without letters, :class:`AlphabetMismatch` if protein is needed and the letters
    look like DNA, and the errors of ``search.check``. A record has an alphabet and is not tested for this.
    Messages state the location of a query in the argument, such as ``queries[3]``.
    """
    requirements = search.requirements
    if isinstance(queries, SequenceRecord) or _biopython(queries) is not None:
        records = [_record("queries", queries, requirements)]
    elif isinstance(queries, (bytes, bytearray)) or not hasattr(queries, "__iter__"):
        raise WrongType(f"queries is {a_kind(queries)}; give a path, or a list of records or letters")
    else:
        several = [queries] if _is_pair(queries) else queries
        records = [_record(f"queries[{number}]", query, requirements) for number, query in enumerate(several)]
    for record in records:
        search.check(record)
    return records


def _is_pair(query: Any) -> bool:
    """Whether this is a header with letters."""
    return isinstance(query, tuple) and len(query) == 2 and all(isinstance(part, str) for part in query)


def _record(place: str, query: Any, requirements: Requirements) -> SequenceRecord:
    if isinstance(query, SequenceRecord):
        return query
    header, letters = _header_and_letters(place, query)
    alphabet = requirements.alphabet
    is_testable = alphabet is PROTEIN and len(letters) >= MIN_TELLING_RESIDUES
    if is_testable and detect_alphabet(letters.encode("utf-8", "replace")) is DNA:
        as_protein = "if it is protein all the same, give swsearch.sequence(letters, 'protein')"
        raise AlphabetMismatch(PROTEIN.name, DNA.name, place, f"{requirements.advice(DNA)}; {as_protein}")
    try:
        codes = alphabet.encode(letters)
    except InputError as error:
        raise InputError(f"{place}, {requirements.of_this_search(error.marked)}") from error
    return SequenceRecord(header, codes, alphabet)


def _header_and_letters(place: str, query: Any) -> tuple[str, str]:
    if isinstance(query, str):
        return "", query
    if isinstance(query, os.PathLike):
        raise WrongType(f"{place} is {a_kind(query)}; a path is given alone, not in a list")
    found = query if _is_pair(query) else _biopython(query)
    if found is None:
        kinds = "a SequenceRecord, a SeqRecord, letters, or a header and letters"
        raise WrongType(f"{place} is {a_kind(query)}, not a query; give {kinds}")
    header, sequence = found
    try:
        return header, str(sequence)
    except ValueError as error:  # a sequence of known length and unknown letters
        raise InputError(f"{place}: {error}") from error


def _biopython(query: Any) -> tuple[str, Any] | None:
    """Header and sequence of an object of Biopython; None for other objects, for which Biopython is not imported."""
    modules = sys.modules.get("Bio.SeqRecord"), sys.modules.get("Bio.Seq")
    if modules[0] is not None and isinstance(query, modules[0].SeqRecord):
        name, words = (
            "" if text is None or text.startswith("<unknown ") else text for text in (query.id, query.description)
        )
        first, _, _ = words.partition(" ")
        header = words if first == name else f"{name} {words}".strip()
        return None if query.seq is None else (header, query.seq)
    if modules[1] is not None and isinstance(query, (modules[1].Seq, modules[1].MutableSeq)):
        return "", query
    return None


def read_queries(
    path: str | os.PathLike[str],
    requirements: Requirements,
    *,
    force_alphabet: bool = False,
    on_record: Callable[[SequenceRecord], None] | None = None,
) -> list[SequenceRecord]:
    """All sequences of a FASTA or FASTQ file (``-`` is stdin), which must be of the required alphabet.

    The letters of DNA are also letters of proteins. A file of 30 residues or more that looks like DNA is not accepted
    as protein unless ``force_alphabet`` is true. ``on_record`` is called with each record as soon as it is read; what
    it raises ends the reading. Raises :class:`FastaFormatError`, with record, line and column, and
    :class:`AlphabetMismatch`.
    """
    records = []
    try:
        for record in read_sequences(path, requirements.alphabet):
            if on_record is not None:
                on_record(record)
            records.append(record)
    except FastaFormatError as error:
        raise error.replaced(problem=requirements.of_this_search(error.problem)) from error
    if not force_alphabet:
        requirements.refuse_dna(path, "".join(record.letters for record in records))
    return records


def located_refusal(path: str | os.PathLike[str], refused: InvalidRecord, requirements: Requirements) -> InputError:
    """The error for the first invalid record of a file, with its line and column.

    The file is read a second time to find the line, so that files without errors are read only once.
    """
    try:
        for _ in read_chunks([path], requirements.alphabet):
            pass
    except FastaFormatError as error:
        return error.replaced(problem=requirements.of_this_search(error.problem))
    return InputError(refused.line)


def offered_translation(files: QueryFiles, holds: Alphabet, alphabet: Alphabet | None = None) -> str | None:
    """The side to translate so that queries of the other alphabet can search a database.

    Parameters
    ----------
    files : QueryFiles
    holds : Alphabet
        The alphabet of the database.
    alphabet : Alphabet, optional
        What the user says of the queries; otherwise, the first sequences of the first file tell it.

    Returns
    -------
    str or None
        ``query`` or ``subject``; None if the queries have the alphabet of the database, or if their letters do not tell
        clearly that they have the other one.
    """
    if files.hold_profiles or alphabet is PROTEIN:
        is_dna, is_protein = False, True
    else:
        letters = _sample(files)
        n_bases = len([letter for letter in letters.upper() if letter in "ACGTUN"])
        is_telling = len(letters) >= MIN_TELLING_RESIDUES
        # A single wrong letter does not make protein of DNA.
        is_protein = is_telling and n_bases < MOST_BASES_OF_PROTEIN * len(letters)
        if alphabet is DNA:  # what is clearly protein is refused instead of translated
            is_dna, is_protein = not is_protein, False
        else:
            is_dna = is_telling and detect_alphabet(letters.encode()) is DNA
    if holds is PROTEIN:
        return "query" if is_dna else None
    return "subject" if is_protein else None


def _sample(files: QueryFiles) -> str:
    """Letters at the beginning of the first file; none of a file that cannot be read, which its reader reports."""
    letters = ""
    with suppress(InputError):
        for path in files.paths[:1]:
            for record in read_each(path, PROTEIN):
                letters += "" if isinstance(record, InvalidRecord) else record.letters
                if len(letters) >= SAMPLE_RESIDUES:
                    break
    return letters


class Queries(ABC):
    """The queries of a run; they can be iterated over repeatedly."""

    @abstractmethod
    def records(self, search: PlannedSearch) -> Iterator[SequenceRecord | InvalidRecord]:
        """All queries in order."""

    def parameters(self, search: PlannedSearch) -> Mapping[str, str | bool]:
        """The parameters that a run stores about the queries, in addition to their letters."""
        return {}

    def by_file(
        self, search: PlannedSearch
    ) -> Iterator[tuple[str | os.PathLike[str], str, Iterator[SequenceRecord | InvalidRecord]]]:
        """Path, format and records of each file; queries that are in none are sequences of one without a path."""
        yield "", "fasta", self.records(search)


@dataclass(frozen=True)
class QueriesInMemory(Queries):
    """Queries in memory."""

    held: Sequence[SequenceRecord]

    def records(self, search: PlannedSearch) -> Iterator[SequenceRecord]:
        """All queries in order."""
        return iter(self.held)

    def parameters(self, search: PlannedSearch) -> dict[str, str]:
        """The digest of the scores of profiles, which their letters do not determine; empty for sequences."""
        profiles = [record for record in self.held if isinstance(record, PositionSpecificQuery)]
        return _stored_parameters(["records"], profiles) if profiles else {}


@dataclass(frozen=True)
class QueryFiles(Queries):
    """The query files of a run, with their detected formats.

    For a pipe or standard input, the path is that of a copy, because a batch reads its files more than once.
    """

    paths: tuple[str | os.PathLike[str], ...]
    formats: tuple[str, ...]

    @classmethod
    def of(cls, paths: Sequence[str | os.PathLike[str]], query_format: str, advice: str = "") -> Self:
        """The files at ``paths``, in a format of the option ``query_format``.

        ``advice`` is for a user whose file has another format than ``fasta``; by default, to leave the option out.

        Raises :class:`InputError` if the format is unknown, if some files contain profiles and others sequences, or if
        a pipe is listed twice.
        """
        refuse_repeated_pipes(paths)
        paths = [seekable(path) for path in paths]
        formats = tuple(_format_of(path, query_format, advice) for path in paths)
        files = cls(tuple(paths), formats)
        if files.hold_profiles and "fasta" in formats:
            for path in (path for path, form in zip(paths, formats, strict=True) if form == "fasta"):
                with text_stream(path, shown_name(path)):  # a file that cannot be read has another problem
                    pass
            profile = next(path for path, form in zip(paths, formats, strict=True) if form != "fasta")
            raise InputError(
                f"{shown_name(profile)} contains profiles, other files contain sequences; search them in two batches"
            )
        return files

    @classmethod
    def of_sequences(cls, paths: Sequence[str | os.PathLike[str]]) -> Self:
        """The same for files that must have sequences."""
        return cls.of(paths, "fasta", "alignments are made for sequences; `swsearch query` searches with profiles")

    @property
    def hold_profiles(self) -> bool:
        """Whether the queries are profiles."""
        return any(form != "fasta" for form in self.formats)

    def by_file(
        self, search: PlannedSearch
    ) -> Iterator[tuple[str | os.PathLike[str], str, Iterator[SequenceRecord | InvalidRecord]]]:
        """Path, format and records of each file; errors as for :meth:`records`."""
        for path, form in zip(self.paths, self.formats, strict=True):
            yield path, form, _records(path, form, search)

    def records(self, search: PlannedSearch) -> Iterator[SequenceRecord | InvalidRecord]:
        """All queries in order; a record that is not a sequence of the required alphabet becomes an invalid record.

        Raises :class:`InputError` if a file cannot be read, after the records before the error, and
        :class:`AlphabetMismatch` for profiles where queries must be DNA.
        """
        for _, _, records in self.by_file(search):
            yield from records

    def parameters(self, search: PlannedSearch) -> dict[str, str]:
        """The parameters that identify the queries: formats and a digest of all scores. Reads all profiles once."""
        if not self.hold_profiles:
            return {}
        read = zip(self.paths, self.formats, strict=True)
        profiles = (profile for path, form in read for profile in _profiles(path, form, search))
        return _stored_parameters(sorted(set(self.formats)), profiles)


def _profiles(path: str | os.PathLike[str], form: str, search: PlannedSearch) -> list[PositionSpecificQuery]:
    return read_profiles(path, form, search.scheme.matrix, contexts=search.preparer.contexts)


def _records(
    path: str | os.PathLike[str], form: str, search: PlannedSearch
) -> Iterator[SequenceRecord | InvalidRecord]:
    requirements = search.requirements
    if form != "fasta":
        if requirements.alphabet is not PROTEIN:
            advice = f"{requirements.advice(PROTEIN)}; profiles of DNA are not read"
            raise AlphabetMismatch(requirements.alphabet.name, PROTEIN.name, f"the profile {shown_name(path)}", advice)
        yield from _profiles(path, form, search)
        return
    for record in read_each(path, requirements.alphabet):
        if isinstance(record, InvalidRecord):
            yield replace(record, marked=requirements.of_this_search(record.marked))
        else:
            yield record


def _format_of(path: str | os.PathLike[str], query_format: str, advice: str) -> str:
    option_of("query_format").check(query_format)
    detected = detect_query_format(path) if query_format in ("auto", "fasta") else query_format
    if query_format == "fasta" and detected != "fasta":
        advice = advice or f"leave {option('query_format', 'fasta')} out"
        raise InputError(f"{shown_name(path)} is not FASTA but in format {detected}; {advice}")
    return detected


def _stored_parameters(formats: Sequence[str], profiles: Iterable[PositionSpecificQuery]) -> dict[str, str]:
    """The formats, and the SHA-256 of all scores and models."""
    digest = hashlib.sha256()
    for profile in profiles:
        digest.update(len(profile).to_bytes(8, "little") + profile.content)
    return {"query_format": ",".join(formats), "query_digest": digest.hexdigest()}


@dataclass(frozen=True, eq=False)
class SubjectQueries(Queries):
    """The searched subjects of a database as queries, the longest first.

    Queries of similar length are scored together, and every shard of the queries has about the same work.
    """

    subjects: SearchSubjects

    @classmethod
    def of(cls, search: PlannedSearch) -> Self:
        """The queries of a search of all against all.

        Raises :class:`InputError` for a translated, iterated or sensitive search, which does not treat query and
        subject alike.
        """
        options = search.options
        if options.translate is not None:
            raise InputError(
                f"{option('translate', options.translate)}: all against all compares sequences as they are"
            )
        for name, usual in (("iterations", 1), ("sensitive", False)):
            value = getattr(options, name)
            if value != usual:
                raise InputError(f"{option(name, value)}: all against all compares sequences as they are; leave it out")
        return cls(search.search_subjects)

    @property
    def order(self) -> tuple[SubjectIndex, Lengths]:
        """Index and length of each query in order, two uint32 arrays of shape (n_queries,)."""
        subject_index, lengths = self.subjects.order
        return subject_index[::-1], lengths[::-1]

    def records(self, search: PlannedSearch) -> Iterator[SubjectRecord]:
        """All queries in order."""
        database = self.subjects.database
        for index in self.order[0].tolist():
            yield SubjectRecord(database.header(index), database.codes(index), database.alphabet, index)

    def parameters(self, search: PlannedSearch) -> dict[str, str | bool]:
        """The parameter by which the run differs from a search with the same sequences."""
        return {ALL_AGAINST_ALL: True}


@dataclass(frozen=True, eq=False)
class DatabaseQueries(Queries):
    """All sequences of a database as queries, in FASTA order; the run is that of a file with the same sequences."""

    database: PackedDatabase

    def records(self, search: PlannedSearch) -> Iterator[SequenceRecord]:
        """All queries in order."""
        for index in range(self.database.n_subjects):
            yield SequenceRecord(self.database.header(index), self.database.codes(index), self.database.alphabet)

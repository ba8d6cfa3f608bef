"""A request as it was sent becomes a search, or is refused with the reason.

The checks are those of `swsearch query`, made before anything is stored: alphabets, letters, options, limits. Options
that name files are refused, because they would name files of the server. A fingerprint says which searches are
compatible, and which are equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from swsearch import __version__
from swsearch.errors import InputError, Refused
from swsearch.hits.shards import all_of
from swsearch.options import EVERY_SUBJECT, SEARCH_FILES, SEARCH_OPTIONS
from swsearch.query.profile_files import detect_query_format
from swsearch.scoring.matrix import matrix_name
from swsearch.search.frames import Preparer
from swsearch.search.options import SearchOptions
from swsearch.search.queries import Requirements, read_queries
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.sequences.record import SequenceRecord
from swsearch.sequences.source import TextInMemory
from swsearch.service.databases import OfferedDatabase
from swsearch.service.sent_text import bytes_of, check_wanted, check_words
from swsearch.service.settings import ServerLimits
from swsearch.store.search_records import NewQuery, NewSearch, Parameters, SearchedDatabase, content
from swsearch.words import counted, shortened

OPTIONS: Final = tuple(field.name for field in fields(SearchOptions) if field.name not in SEARCH_FILES)
"""The options that a request may have: those of `swsearch query` that determine the hits and name no file."""
_MAX_PATTERN: Final = 200
"""Longest regular expression, in characters."""
_QUERIES: Final = "the queries"


@dataclass(frozen=True)
class Submission:
    """A search as it was sent, with the fields of :class:`swsearch.service.api_models.SearchRequest`."""

    queries: str
    database: str
    options: Mapping[str, Any]
    """Options by the names of :data:`OPTIONS`; those that are left out have the defaults of `swsearch query`."""
    alphabet: str | None = None
    idempotency_key: str | None = None
    subjects: str | None = None


SearchMaker = Callable[[Submission, str], NewSearch]


def check_texts(submission: Submission) -> None:
    """Refuse a submission with a text that could not be stored or sent back, whichever field or option has it.

    The sequences are not checked here: their readers name the record and the line of a problem.

    Raises
    ------
    InputError
        A text has a control character, or half of a surrogate pair.
    """
    for field in fields(submission):
        value = getattr(submission, field.name)
        if isinstance(value, str) and field.name not in ("queries", "subjects"):
            check_words(value, field.name)
    for name, value in submission.options.items():
        check_words(name, "the name of an option")
        if isinstance(value, str):
            check_words(value, f"--{name.replace('_', '-')}")


def search_maker(given: Mapping[str, Any], database: OfferedDatabase, limits: ServerLimits) -> SearchMaker:
    """The function that makes a search of this database with these options, of a submission and its owner.

    It raises InputError if the queries cannot be used, and Refused if a limit is exceeded.

    Raises
    ------
    InputError
        The options cannot be used.
    Refused
        A limit is exceeded.
    """
    options = search_options(given, limits)
    alphabet = ALPHABETS[database.catalogue.alphabet]
    requirements = Requirements(database.name, alphabet, options.translate)
    requirements.check_database()
    preparer = Preparer(options, options.scheme(options.aligned_alphabet(alphabet)))
    # Six frames have a third of the residues each.
    subject_residues = database.catalogue.n_residues * (2 if options.subject_frames != (0,) else 1)
    searched, parameters = database.searched, options.as_parameters()
    compatible = fingerprint(searched, parameters)

    def search(submission: Submission, owner: str) -> NewSearch:
        queries = []
        for record in read_text(submission.queries, requirements, submission.alphabet, limits):
            requirements.check_query(record)
            cells = sum(preparer.frame_lengths(len(record))) * subject_residues * options.iterations
            queries.append(NewQuery(record.header, record.letters, cells))
        asked = all_of((query.header, query.letters) for query in queries).digest
        assert asked is not None
        return NewSearch(
            owner=owner,
            database=searched,
            options=parameters,
            fingerprint=compatible,
            content=content(compatible, asked),
            asked_digest=asked,
            queries=queries,
            idempotency_key=submission.idempotency_key,
        )

    return search


def search_options(given: Mapping[str, Any], limits: ServerLimits) -> SearchOptions:
    """The options of a request, checked.

    Raises
    ------
    InputError
        An option is unknown, names a file, or is out of its range.
    """
    for name, value in given.items():
        if name in SEARCH_FILES:
            raise InputError(f"option {name} names a file, and a server reads no files of its clients; leave it out")
        if name not in OPTIONS:
            raise InputError(f"there is no option {shortened(str(name))!r}; choose from {', '.join(OPTIONS)}")
        kind = SEARCH_OPTIONS[name].type
        is_word = (name == "evalue" and value == "inf") or value in SEARCH_OPTIONS[name].words
        if value is not None and (kind is str) != isinstance(value, str) and not is_word:
            what = {str: "a text", bool: "true or false"}.get(kind, "a number")
            raise InputError(f"option {name} is {what}, not {shortened(repr(value))}")
    values = {name: value for name, value in given.items() if value is not None}
    if values.get("evalue") == "inf":
        values["evalue"] = float("inf")
    if "matrix" in values:
        values["matrix"] = matrix_name(values["matrix"])
    if len(values.get("id_pattern", "")) > _MAX_PATTERN:
        raise InputError(f"option id_pattern has {len(values['id_pattern'])} characters; {_MAX_PATTERN} at most")
    values.setdefault("top", min(SearchOptions.top, limits.top))
    options = SearchOptions(**values)
    if options.top > limits.top:
        top = "all" if options.top == EVERY_SUBJECT else f"{options.top:,}"
        raise Refused("top_too_large", f"option top is {top}; this server lists up to {limits.top:,} subjects")
    return options


def options_of(parameters: Mapping[str, Any]) -> SearchOptions:
    """The options that a stored search was submitted with."""
    values = dict(parameters)
    values["evalue"] = float(values["evalue"])
    return SearchOptions(**values)


def read_text(
    text: str, requirements: Requirements, alphabet: str | None, limits: ServerLimits
) -> list[SequenceRecord]:
    """The queries of a FASTA or FASTQ text.

    Raises
    ------
    InputError
        The text cannot be read as queries of this search; the message names record, line and column.
    Refused
        There are more queries than a search may have, or one is too long; what comes after is not read.
    """
    if alphabet is not None and alphabet not in ALPHABETS:
        raise InputError(f"alphabet {shortened(alphabet)!r}: choose {' or '.join(ALPHABETS)}")
    if alphabet is not None and alphabet != requirements.alphabet.name:
        raise requirements.refusal(_QUERIES, ALPHABETS[alphabet])
    raw = bytes_of(text, _QUERIES)
    n_read = 0

    def on_record(record: SequenceRecord) -> None:
        nonlocal n_read
        check_wanted()
        n_read += 1
        if n_read > limits.search_queries:
            most = f"a search on this server has up to {limits.search_queries:,}; send several searches"
            raise Refused("too_many_queries", f"these are more than {limits.search_queries:,} queries; {most}")
        if len(record) > limits.query_residues:
            raise Refused(
                "query_too_long",
                f"query {shortened(record.identifier)} has {counted(len(record), 'residue')}; this server searches "
                f"queries of up to {limits.query_residues:,}",
            )

    text_of_queries = TextInMemory(_QUERIES, raw)
    try:
        is_fasta = detect_query_format(text_of_queries) == "fasta"
    except InputError:  # a profile that is no text
        is_fasta = False
    if not is_fasta:
        raise InputError("the queries are profiles, which a server does not search; send sequences")
    return read_queries(text_of_queries, requirements, force_alphabet=alphabet is not None, on_record=on_record)


# --- fingerprints ---


def fingerprint(database: SearchedDatabase, options: Parameters) -> str:
    """SHA-256 of a database, the options and the program; one engine call may score what shares it.

    The generation counts, because filters and reports use the stored taxonomy, which is not part of the content.
    """
    known = [database.digest, database.generation, sorted(options.items()), __version__]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()

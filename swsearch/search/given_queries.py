"""The queries that a Python program passes to a search: letters, records of this package, or Biopython's objects.

:func:`given_queries` converts them to :class:`GivenQuery`, whose :meth:`GivenQuery.record` checks the letters and gives
the record that is searched.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from swsearch.errors import AlphabetMismatch, InputError, WrongType
from swsearch.search.needs import QueryNeeds
from swsearch.sequences.alphabet import DNA, MIN_TELLING_RESIDUES, PROTEIN, detect_alphabet
from swsearch.sequences.record import SequenceRecord
from swsearch.words import a_kind

if TYPE_CHECKING:
    from Bio.Seq import MutableSeq, Seq
    from Bio.SeqRecord import SeqRecord

    Query: TypeAlias = SequenceRecord | SeqRecord | Seq | MutableSeq | str | tuple[str, str]
else:
    Query = Any


@dataclass(frozen=True)
class GivenQuery:
    """One query whose type is known and whose letters are not checked yet.

    Attributes
    ----------
    place : str
        The query's location in the argument, such as ``queries[3]``, for messages.
    header, letters : str
        Both are empty if ``known`` is not None.
    known : SequenceRecord or None
        The query, if it was passed as a record.
    """

    place: str
    header: str
    letters: str
    known: SequenceRecord | None = None

    def record(self, needs: QueryNeeds) -> SequenceRecord:
        """The record to search.

        Raises
        ------
        InputError
            A letter is not in the alphabet of the queries.
        AlphabetMismatch
            Protein is needed, and the letters look like DNA. A record has an alphabet and is not tested for this.
        """
        if self.known is not None:
            return self.known
        tells = needs.alphabet is PROTEIN and len(self.letters) >= MIN_TELLING_RESIDUES
        if tells and detect_alphabet(self.letters.encode("utf-8", "replace")) is DNA:
            as_protein = "if it is protein all the same, give swsearch.sequence(letters, 'protein')"
            raise AlphabetMismatch(PROTEIN.name, DNA.name, self.place, f"{needs.advice(DNA)}; {as_protein}")
        try:
            codes = needs.alphabet.encode(self.letters)
        except InputError as error:
            raise InputError(f"{self.place}, {needs.of_this_search(error.marked)}") from error
        return SequenceRecord(self.header, codes, needs.alphabet)


def given_queries(queries: Query | Iterable[Query]) -> Sequence[GivenQuery]:
    """The queries of an argument, which is one query or an iterable of queries.

    Raises
    ------
    WrongType
        A query is of an unsupported type.
    InputError
        A record of Biopython has no letters.
    """
    if isinstance(queries, SequenceRecord) or _biopython(queries) is not None:
        return [_given("queries", queries)]
    if isinstance(queries, (bytes, bytearray)) or not hasattr(queries, "__iter__"):
        raise WrongType(f"queries is {a_kind(queries)}; give a path, or a list of records or letters")
    return [_given(f"queries[{number}]", query) for number, query in enumerate(queries)]


def _given(place: str, query: Any) -> GivenQuery:
    if isinstance(query, SequenceRecord):
        return GivenQuery(place, "", "", query)
    if isinstance(query, str):
        return GivenQuery(place, "", query)
    if isinstance(query, os.PathLike):
        raise WrongType(f"{place} is {a_kind(query)}; a path is given alone, not in a list")
    if isinstance(query, tuple) and len(query) == 2 and all(isinstance(part, str) for part in query):
        return GivenQuery(place, query[0], query[1])
    found = _biopython(query)
    if found is None:
        kinds = "a SequenceRecord, a SeqRecord, letters, or a header and letters"
        raise WrongType(f"{place} is {a_kind(query)}, no query; give {kinds}")
    header, sequence = found
    try:
        return GivenQuery(place, header, str(sequence))
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

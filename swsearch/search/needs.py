"""The alphabet that a search requires of its queries, and the messages that refuse other queries with advice.

The database and ``--translate`` determine the alphabet.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from swsearch.errors import AlphabetMismatch, InputError
from swsearch.sequences.alphabet import DNA, PROTEIN, PROTEIN_ADVICE, Alphabet, refuse_dna
from swsearch.sequences.genetic_code import CODON
from swsearch.sequences.record import SequenceRecord
from swsearch.sequences.source import shown_name
from swsearch.words import counted, option, shortened

MAX_QUERY_LENGTH: Final = 2**24
"""Length of the longest query, in residues. Scores are below 127 * 2**24, which fits in signed 32 bits."""
_OPTION = {
    (PROTEIN.name, PROTEIN.name): f"to search with protein leave {option('translate')} out",
    (DNA.name, PROTEIN.name): f"to translate it say {option('translate', 'query')}",
    (PROTEIN.name, DNA.name): f"to translate the database say {option('translate', 'subject')}",
    (DNA.name, DNA.name): f"to search with DNA leave {option('translate')} out, or say {option('translate', 'both')}",
}
"""The advice for each pair of alphabets, of queries and database."""


@dataclass(frozen=True)
class QueryNeeds:
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

        With ``profiles``, ``letters`` are the consensus letters of profiles, and the message states that profiles are
        protein.

        Raises
        ------
        AlphabetMismatch
            There are 30 letters or more, and they look like DNA.
        """
        meant = "profiles are of proteins alone, search with the sequences themselves" if profiles else self.advice(DNA)
        refuse_dna(shown_name(path), letters, self.alphabet, advice=f"{meant}; ")

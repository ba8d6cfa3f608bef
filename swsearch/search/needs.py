"""What queries a search takes, and what to say of others: what they are, what the database is, what would work."""

from __future__ import annotations

import os
from dataclasses import dataclass

from swsearch.errors import AlphabetMismatch
from swsearch.sequences.alphabet import DNA, PROTEIN, PROTEIN_ADVICE, Alphabet, refuse_dna
from swsearch.sequences.source import shown_name

_OPTION = {
    (PROTEIN.name, PROTEIN.name): "to search with protein leave --translate out",
    (DNA.name, PROTEIN.name): "to translate it say --translate query",
    (PROTEIN.name, DNA.name): "to translate the database say --translate subject",
    (DNA.name, DNA.name): "to search with DNA leave --translate out, or say --translate both",
}
"""By the alphabets of queries and database."""


@dataclass(frozen=True)
class QueryNeeds:
    """The queries that a database with an option ``--translate`` takes.

    Attributes
    ----------
    database : str
        Its name, for messages.
    holds : Alphabet
        What it holds.
    translate : str or None
        As :class:`swsearch.search.options.SearchOptions` has it.
    """

    database: str
    holds: Alphabet
    translate: str | None

    @property
    def alphabet(self) -> Alphabet:
        """What queries must be."""
        return self.holds if self.translate is None else PROTEIN if self.translate == "subject" else DNA

    def check_database(self) -> None:
        """Refuse a database that is not what the option translates, or does not need it.

        Raises
        ------
        AlphabetMismatch
            It is the other alphabet.
        """
        needed = {"query": PROTEIN, "subject": DNA, "both": DNA}.get(self.translate or "")
        if needed is None or needed is self.holds:
            return
        if self.holds is PROTEIN:
            fits = "with queries of protein leave it out, with queries of DNA say --translate query"
        else:
            fits = "with queries of protein say --translate subject, with DNA leave it out or say --translate both"
        advice = f"--translate {self.translate} does not fit it: {fits}"
        raise AlphabetMismatch(needed.name, self.holds.name, self.database, advice)

    def advice(self, queries: Alphabet) -> str:
        """The option with which queries of that alphabet search the database."""
        return f"{_OPTION[queries.name, self.holds.name]} ({self.database} is {self.holds.name})"

    def refusal(self, what: str, found: Alphabet) -> AlphabetMismatch:
        """The error for ``what``, which is of another alphabet than is needed."""
        return AlphabetMismatch(self.alphabet.name, found.name, what, self.advice(found))

    def of_this_search(self, problem: str) -> str:
        """What is wrong with a letter of a query; where it may be a protein's, with the option that it needs here."""
        return problem.replace(PROTEIN_ADVICE, self.advice(PROTEIN))

    def refuse_dna(self, path: str | os.PathLike[str], letters: str, *, profiles: bool = False) -> None:
        """Refuse letters of a file that read like DNA where protein is needed.

        Raises
        ------
        AlphabetMismatch
            They do, and they are 30 or more.
        """
        meant = "profiles are of proteins alone, search with the sequences themselves" if profiles else self.advice(DNA)
        refuse_dna(shown_name(path), letters, self.alphabet, advice=f"{meant}; ")

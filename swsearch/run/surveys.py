"""A survey: the query files are read once, before anything is computed or stored.

:func:`survey` takes the query files and a searcher, and returns a :class:`Survey`: the number of cells for the progress
bar, the digest of the queries for the store, and a sample of them for the engine's forecast. Files that cannot be
searched raise their errors here, before any work could be lost. The functions for single queries count, check and
compare them wherever a run reads its files.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from swsearch.errors import InputError
from swsearch.hits.shards import AskedQueries, RecordCount, Shard
from swsearch.query.profile import PositionSpecificQuery
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.queries import Queries, located_refusal
from swsearch.sequences.fasta import SAMPLE_RESIDUES
from swsearch.sequences.record import InvalidRecord, SequenceRecord
from swsearch.words import counted

WHOLE: Final = Shard()
"""The shard that contains all queries."""
SAMPLE_QUERIES: Final = 256
"""Largest number of queries in the sample of a survey, for the engine's forecast."""


@dataclass(frozen=True)
class Survey:
    """The result of a survey.

    Attributes
    ----------
    cells : int
        Number of cells of the alignment matrices of the shard's queries with all subjects.
    asked : AskedQueries
        Description of the files' queries and the shard.
    sample : tuple of SequenceRecord
        The first queries of the shard, at most :data:`SAMPLE_QUERIES`.
    notes : tuple of str
        Messages for the user, about profiles whose scores are not on the scale of the search's matrix.
    """

    cells: int
    asked: AskedQueries
    sample: tuple[SequenceRecord, ...]
    notes: tuple[str, ...]


def survey(
    files: Queries,
    searcher: PlannedSearch,
    shard: Shard = WHOLE,
    *,
    force_alphabet: bool = False,
    skip_refused: bool = True,
) -> Survey:
    """Read the query files once, before anything is computed or stored.

    Parameters
    ----------
    files : Queries
    searcher : PlannedSearch
    shard : Shard
        The shard of the queries that is searched.
    force_alphabet : bool
        Whether a file that looks like DNA is accepted as protein.
    skip_refused : bool
        Whether a record that cannot be searched is skipped; otherwise it raises an error.

    Raises
    ------
    InputError
        A file cannot be read, contains profiles that this search does not accept, or contains no query; or a record
        cannot be searched and ``skip_refused`` is False.
    AlphabetMismatch
        Queries must be protein, and a file looks like DNA.
    """
    cells = 0
    count = RecordCount()
    first: list[SequenceRecord] = []
    notes: list[str] = []
    for path, form, records in files.by_file(searcher):
        letters: list[str] = []
        n_sampled = 0
        for record in records:
            if isinstance(record, InvalidRecord):
                if not skip_refused:
                    raise located_refusal(path, record, searcher.requirements)
            else:
                if isinstance(record, PositionSpecificQuery) or not skip_refused:
                    searcher.check(record)
                if isinstance(record, PositionSpecificQuery):
                    from swsearch.query.scale import scale_note

                    notes += filter(None, [scale_note(record, searcher.scheme.matrix)])
                if shard.holds(count.n_queries):
                    cells += searcher.cells(record)
                    if len(first) < SAMPLE_QUERIES:
                        first.append(record)
                if n_sampled < SAMPLE_RESIDUES:
                    letters.append(record.letters)
                    n_sampled += len(record)
            add_to_count(count, record)
        if not force_alphabet:
            searcher.requirements.refuse_dna(path, "".join(letters), profiles=form != "fasta")
    if len(notes) > 1:
        notes = [f"{notes[0]}; the same holds for {counted(len(notes) - 1, 'other profile')}"]
    return Survey(cells, count.asked(shard), tuple(first), tuple(notes))


# --- single queries ---


def add_to_count(count: RecordCount, record: SequenceRecord | InvalidRecord) -> None:
    """Count a query and add it to the digest; for an invalid record, only the identifier is added."""
    if isinstance(record, SequenceRecord):
        count.add(record.header, record.letters)
    else:
        count.add(record.identifier, "")


def count_queries(files: Queries, searcher: PlannedSearch) -> AskedQueries:
    """The description of the files' queries; reads all files."""
    count = RecordCount()
    for record in files.records(searcher):
        add_to_count(count, record)
    return count.asked(WHOLE)


def refusal(searcher: PlannedSearch, number: int, record: SequenceRecord) -> InvalidRecord | None:
    """A readable sequence as an invalid record with its reason; None if it can be searched."""
    try:
        searcher.check(record)
    except InputError as error:
        return InvalidRecord("queries", number + 1, record.identifier, error.marked)
    return None


def query_key(record: SequenceRecord, searcher: PlannedSearch) -> bytes:
    """A key that is equal for queries with equal hits; it depends on case only if case affects the scores."""
    letters = record.letters if searcher.preparer.is_case_sensitive else record.letters.upper()
    key = hashlib.blake2b(letters.encode(), digest_size=16)
    if isinstance(record, PositionSpecificQuery):
        key.update(record.content)
    return key.digest()

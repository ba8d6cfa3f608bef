"""The two rows of an alignment as reports show them.

In the records, an alignment is in the direction of the aligned query strand. BLAST prints the forward query and the
reversed subject instead. Therefore, for the minus strand, the CIGAR is reversed and the subject's letters are
reverse-complemented; the query's letters remain exactly as written. Translated residues are printed in the direction of
their frame.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from swsearch.hits.cigar import parse
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.scoring.matrix import SubstitutionMatrix, parse_matrix_text
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.sequences.fasta_text import reverse_complement


class ShownAlignment(NamedTuple):
    """The arguments of the functions of :mod:`swsearch.hits.cigar`, in the direction of the forward query."""

    query_letters: str
    subject_letters: str
    cigar: str


def shown(query: QueryResult, hit: Hit) -> ShownAlignment:
    """A hit's alignment in the direction of the forward query."""
    alignment = hit.alignment
    letters = alignment.query_letters or query.letters[alignment.query_start : alignment.query_end]
    if not hit.is_turned:
        return ShownAlignment(letters, alignment.subject_letters, alignment.cigar)
    backwards = "".join(f"{length}{operation}" for length, operation in reversed(parse(alignment.cigar)))
    return ShownAlignment(letters, reverse_complement(alignment.subject_letters), backwards)


def matrix_of(run: RunInfo) -> SubstitutionMatrix:
    """The matrix of a run, from its stored text."""
    return _parsed(run.matrix_scores, run.matrix, run.aligned_alphabet)


@lru_cache(maxsize=4)
def _parsed(text: str, name: str, alphabet: str) -> SubstitutionMatrix:
    return parse_matrix_text(text, name, ALPHABETS[alphabet])

"""The rows of an alignment that is anchored to the query, as text and as codes; ``a3m`` and its siblings write them.

A row has a letter or ``-`` for each column, that is, each position of the query, and lower-case letters for residues
between two columns (:mod:`swsearch.report.a3m`). The arrays of codes have the columns alone, and are what
:mod:`swsearch.msa` takes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np

from swsearch.hits.cigar import GAP, gapped
from swsearch.hits.hit import Hit
from swsearch.hits.pssm import N_AMINO_ACIDS
from swsearch.hits.result import QueryResult
from swsearch.msa.row_filter import RowFilter
from swsearch.report.rows import shown
from swsearch.report.text import one_line
from swsearch.sequences.alphabet import PAD_CODE, PROTEIN, Alphabet
from swsearch.sequences.record import identifier
from swsearch.typing import Codes

N_BASES: Final = 4
_GAPS: Final = re.compile(f"{GAP}+")
_INSERTED: Final = bytes(range(ord("a"), ord("z") + 1))


def query_row(query: QueryResult) -> str:
    """Header and letters of the query, two lines."""
    return f">{name_of(query.header)}\n{query_letters(query)}\n"


def query_letters(query: QueryResult) -> str:
    """The row of the query without its header."""
    return _residues(query.letters).upper()


def hit_row(query: QueryResult, hit: Hit) -> str:
    """Header and aligned letters of a hit, two lines."""
    return f">{row_header(query, hit)}\n{aligned_letters(query, hit)}\n"


def row_header(query: QueryResult, hit: Hit) -> str:
    """The ten columns of a row's header.

    The score is the bit score, rounded; without statistics, the raw score, and the E-value is ``NaN``. The identity is
    cut after three decimals. The positions of a reversed subject descend.
    """
    alignment = hit.alignment
    score = hit.score if hit.bits is None else int(hit.bits + 0.5)
    identity = 1000 * alignment.identities // alignment.columns
    evalue = "NaN" if hit.evalue is None else f"{hit.evalue:.3E}"
    columns = [
        name_of(hit.subject_header), score, f"{identity // 1000}.{identity % 1000:03}", evalue,
        alignment.query_start, alignment.query_end - 1, query.length, hit.sstart - 1, hit.send - 1, hit.subject_length,
    ]  # fmt: skip
    return "\t".join(map(str, columns))


def aligned_letters(query: QueryResult, hit: Hit) -> str:
    """The row of a hit without its header.

    Raises
    ------
    InputError
        The stored alignment does not cover its letters.
    """
    alignment = hit.alignment
    above, row = gapped(*shown(query, hit))
    row = _residues(row).upper()
    parts: list[str] = []
    end = 0
    for gap in _GAPS.finditer(above):
        parts += (row[end : gap.start()], row[gap.start() : gap.end()].lower())
        end = gap.end()
    row = "".join((*parts, row[end:]))
    return GAP * alignment.query_start + row + GAP * (query.length - alignment.query_end)


def name_of(header: str) -> str:
    """The identifier of a header, without control characters."""
    return one_line(identifier(header)).replace(" ", "_")


def _residues(letters: str) -> str:
    return letters.replace("*", "X")


# --- codes ---


def n_kinds(alphabet: Alphabet) -> int:
    """The number of letters that are residues, whose codes are the first: amino acids, or bases."""
    return N_AMINO_ACIDS if alphabet is PROTEIN else N_BASES


def alignment_codes(query: QueryResult, alphabet: Alphabet) -> Codes:
    """The alignment of a query and its hits as codes; uint8, shape (1 + n_hits, query length), 31 for a gap.

    Parameters
    ----------
    query : QueryResult
    alphabet : Alphabet
        That of the aligned letters.
    """
    table = bytearray(alphabet.encode_table.tobytes())
    table[ord(GAP)] = PAD_CODE
    texts = (query_letters(query), *(aligned_letters(query, hit) for hit in query.hits))
    columns = b"".join(text.encode("ascii").translate(bytes(table), _INSERTED) for text in texts)
    return np.frombuffer(columns, dtype=np.uint8).reshape(1 + len(query.hits), query.length)


def with_kept_rows(query: QueryResult, rows: RowFilter, alphabet: Alphabet) -> QueryResult:
    """The query with the hits whose rows pass the conditions, in their order."""
    if not rows or not query.hits:
        return query
    kept = rows.kept(alignment_codes(query, alphabet), n_kinds(alphabet))
    return replace(query, hits=tuple(query.hits[row - 1] for row in kept[1:].tolist()))

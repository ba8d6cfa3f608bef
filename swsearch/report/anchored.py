r"""``a3m``, ``sto`` and ``afasta``: the hits of a query as a multiple alignment that is anchored to the query.

**a3m**, as structure predictors read it. The first row of a block is the query. Each hit adds a row, in the order of
the list: upper-case letters and ``-`` are the columns of the query, lower-case letters are residues between two of
them. Only the aligned part of a subject is in its row, and the columns before and after it are ``-``; without its
lower-case letters, every row has the length of the query. Several alignments of one subject are several rows.

The header of a row is that of MMseqs2's ``result2msa --msa-format-mode 6``, which ColabFold's server uses: identifier,
bit score, identity (0 to 1), E-value, first and last position and length of the query, the same of the subject,
separated by tabs. Positions count from 0, and the last one is included. The blocks of several queries are separated by
a NUL byte, as in the files of that server.

**sto and afasta**, as alignment editors read them, have columns for inserted residues: between two columns of the
query, there are as many columns as the longest insertion of any row has residues. In Stockholm format (``sto``),
inserted residues are lower case and the other rows have ``.``; the line ``#=GC RF`` marks the columns of the query with
``x``. In aligned FASTA (``afasta``), letters are upper case and every gap is ``-``. A Stockholm file has an alignment
for each query, ended by ``//``. Its rows have names like ``P02232/5-140``, with the positions of the aligned part,
counted from 1; ``#=GS`` lines have their bit scores (``SC``), E-values (``EV``) and descriptions (``DE``). Aligned
FASTA has the row headers of ``a3m``, and a NUL byte between two queries.

A stop (``*``) is written as ``X``, because readers of these formats do not know it. A search whose query was translated
cannot be written: a row has residues, and its query has bases. The arrays of codes have the columns of the query alone,
and are what :mod:`swsearch.report.row_filter` takes.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from swsearch.hits.cigar import GAP, gapped
from swsearch.hits.formatting import one_line, shown
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.base import Report
from swsearch.report.row_filter import EVERY_ROW, RowFilter
from swsearch.sequences.alphabet import ALPHABETS, N_AMINO_ACIDS, N_BASES, PAD_CODE, PROTEIN, Alphabet
from swsearch.sequences.record import identifier, split_header
from swsearch.typing import Codes

# --- rows ---


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
    above, row = gapped(*shown(query.letters, hit))
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

    The alphabet is that of the aligned letters.
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


# --- a3m ---


SEPARATOR: Final = "\0"
"""What separates the blocks of two queries."""


class AnchoredReport(Report):
    """A report with the alignment of each query's hits, one after another, in the order of queries and ranks.

    Parameters
    ----------
    rows : RowFilter
        The conditions on the hits that have a row; those without keep their order.
    """

    def __init__(self, rows: RowFilter = EVERY_ROW) -> None:
        self._rows = rows

    def write(self, query: QueryResult) -> None:
        """Write the alignment of a query."""
        self.write_alignment(with_kept_rows(query, self._rows, ALPHABETS[self.run.aligned_alphabet]))

    @abstractmethod
    def write_alignment(self, query: QueryResult) -> None:
        """Write the alignment of a query with the hits that have a row."""


class A3mReport(AnchoredReport):
    """Blocks of ``a3m``, divided by :data:`SEPARATOR`."""

    def write_alignment(self, query: QueryResult) -> None:
        """Write one block."""
        self.write_between(SEPARATOR)
        self.stream.write(query_row(query))
        self.stream.writelines(hit_row(query, hit) for hit in query.hits)


# --- Stockholm and aligned FASTA ---


_INSERTION: Final = re.compile("[a-z]+")
_NO_RESIDUE: Final = "."
_NOT_IN_FRONT: Final = re.compile("^(?:#|//)")
"""What a name of a row must not begin with, because such lines are remarks and ends."""


class StockholmReport(AnchoredReport):
    """Alignments of ``sto``, each ended by its own line."""

    def write_alignment(self, query: QueryResult) -> None:
        """Write one alignment."""
        widths, stream = insertion_widths(query), self.stream
        query_name, *hit_names = row_names(query)
        stream.write(f"# STOCKHOLM 1.0\n#=GF ID {name_of(query.header)}\n")
        if query_description := one_line(split_header(query.header)[1]):
            stream.write(f"#=GF DE {query_description}\n")
        for name, hit in zip(hit_names, query.hits, strict=True):
            stream.writelines(f"#=GS {name} {line}\n" for line in _remarks(hit))
        width = max(map(len, [query_name, *hit_names, "#=GC RF"]))
        stream.write(f"{query_name:<{width}} {expanded(query_letters(query), widths, _NO_RESIDUE)}\n")
        for name, hit in zip(hit_names, query.hits, strict=True):
            stream.write(f"{name:<{width}} {expanded(aligned_letters(query, hit), widths, _NO_RESIDUE)}\n")
        reference = expanded("X" * query.length, widths, _NO_RESIDUE).lower()
        stream.write(f"{'#=GC RF':<{width}} {reference}\n//\n")


class AlignedFastaReport(AnchoredReport):
    """Blocks of ``afasta``, divided like those of ``a3m``."""

    def write_alignment(self, query: QueryResult) -> None:
        """Write one block."""
        widths, stream = insertion_widths(query), self.stream
        self.write_between(SEPARATOR)
        stream.write(f">{name_of(query.header)}\n{expanded(query_letters(query), widths, GAP)}\n")
        for hit in query.hits:
            row = expanded(aligned_letters(query, hit), widths, GAP)
            stream.write(f">{row_header(query, hit)}\n{row.upper()}\n")


def _remarks(hit: Hit) -> Iterable[str]:
    if hit.bits is not None:
        yield f"SC {hit.bits:.1f}"
    if hit.evalue is not None:
        yield f"EV {hit.evalue:.3E}"
    if description := one_line(split_header(hit.subject_header)[1]):
        yield f"DE {description}"


def row_names(query: QueryResult) -> list[str]:
    """The names of the rows, each of them once, that of the query first."""
    taken: dict[str, None] = {}
    hits = (f"{name_of(hit.subject_header)}/{hit.sstart}-{hit.send}" for hit in query.hits)
    for wanted in (name_of(query.header), *hits):
        first = name = _NOT_IN_FRONT.sub("_", wanted)
        number = 2
        while name in taken:
            name, number = f"{first}~{number}", number + 1
        taken[name] = None
    return list(taken)


def insertion_widths(query: QueryResult) -> dict[int, int]:
    """The number of columns before a column of the query, or after its last one, for those that have any."""
    widths: dict[int, int] = {}
    for hit in query.hits:
        for column, letters in insertions(aligned_letters(query, hit)):
            widths[column] = max(widths.get(column, 0), len(letters))
    return widths


def insertions(row: str) -> list[tuple[int, str]]:
    """The insertions of a row of ``a3m``: the number of columns before each, and its letters.

    >>> insertions("MKaaW-c")
    [(2, 'aa'), (4, 'c')]
    """
    found = []
    inserted = 0
    for match in _INSERTION.finditer(row):
        found.append((match.start() - inserted, match[0]))
        inserted += len(match[0])
    return found


def expanded(row: str, widths: Mapping[int, int], gap: str) -> str:
    """A row of ``a3m`` with all columns between those of the query; ``gap`` stands where it has no residue there.

    >>> expanded("MKaW-", {2: 2, 4: 1}, ".")
    'MKa.W-.'
    """
    inserted = dict(insertions(row))
    columns = _INSERTION.sub("", row)
    parts: list[str] = []
    start = 0
    for column, width in sorted(widths.items()):
        parts += (columns[start:column], inserted.get(column, "").ljust(width, gap))
        start = column
    return "".join((*parts, columns[start:]))

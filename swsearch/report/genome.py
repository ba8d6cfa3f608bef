"""``bed`` and ``gff3``: each alignment as a feature of its subject, for genome browsers and bedtools.

A chain of alignments (``--max-intron``) is one feature with a part for each exon (:mod:`swsearch.report.exons`).

``bed`` is BED of twelve columns; its coordinates are 0-based and half-open. The name is that of the query, the score
the bit score, rounded and at most 1,000, or 0 without statistics. The strand is that of the query on the subject: ``-``
if one of both was reversed. The exons of a chain are the blocks of its line.

``gff3`` is GFF3, version 1.26 of its specification. The type is the term of the Sequence Ontology for what matched:
``protein_match`` for a protein query, ``nucleotide_match`` for DNA, and ``translated_nucleotide_match`` for translated
DNA. The score is the E-value, as the specification recommends for similarity; without statistics it is unknown.
``Target`` has the aligned part of the query, and ``Gap`` the operations of the CIGAR in the direction of the query or,
if that was translated, of its frame; in a translated search they count residues, as the specification states for
proteins on DNA. The exons of a chain are lines of the type ``match_part``. The score of a chain is its E-value,
``score`` and ``bits`` are sums of its alignments. Bases of a split codon are a shift of the frame (``F``) in ``Gap``.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

from swsearch.hits.cigar import parse
from swsearch.hits.formatting import percent, shown
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report
from swsearch.report.exons import Exon, exons_of
from swsearch.sequences.record import identifier


class _GenomeReport(Report):
    """The common part of both formats: features in the order of queries and ranks."""

    def needs_subjects(self, run: RunInfo) -> bool:
        """Exons are found with the bases of the subjects."""
        return run.max_intron is not None

    def write(self, query: QueryResult) -> None:
        """Write the features of a query."""
        for chain in self.run.chains(query):
            self.stream.writelines(self.feature(query, chain, exons_of(self.context, query, chain)))

    @abstractmethod
    def feature(self, query: QueryResult, chain: list[Hit], exons: list[Exon]) -> Iterable[str]:
        """The lines of one alignment or chain."""


# --- bed ---


_LARGEST_SCORE: Final = 1000


class BedReport(_GenomeReport):
    """A line for each alignment."""

    def feature(self, query: QueryResult, chain: list[Hit], exons: list[Exon]) -> Iterable[str]:
        """The line of one alignment or chain."""
        hit = chain[0]
        blocks_of = _blocks([exon.hit for exon in exons])
        start, end = blocks_of[0][0], blocks_of[-1][1]
        score = 0 if hit.bits is None else max(0, min(_LARGEST_SCORE, round(sum(one.bits or 0.0 for one in chain))))
        sizes = "".join(f"{last - first}," for first, last in blocks_of)
        starts = "".join(f"{first - start}," for first, _ in blocks_of)
        subject, name = identifier(hit.subject_header), identifier(query.header)
        columns = (subject, start, end, name, score, hit.direction, start, end, 0, len(blocks_of), sizes, starts)
        yield "\t".join(map(str, columns)) + "\n"


def _blocks(parts: list[Hit]) -> list[tuple[int, int]]:
    """The aligned parts of the subject in ascending order; parts that overlap are cut, as the format requires."""
    blocks: list[tuple[int, int]] = []
    for start, end in sorted((hit.alignment.subject_start, hit.alignment.subject_end) for hit in parts):
        first = max(start, blocks[-1][1]) if blocks else start
        if first < end:
            blocks.append((first, end))
    return blocks


# --- gff3 ---


_SEQUENCE_NAME: Final = ".:^*$@!+_?-|"
"""Characters beside letters and digits that the specification permits in the name of a sequence."""
_ATTRIBUTE: Final = re.compile("[\0-\x20\x7f%;=&,]")
"""Characters of an attribute's value that must be escaped; a blank separates the parts of ``Target``."""


class Gff3Report(_GenomeReport):
    """The version of the format, then a line for each alignment.

    A line with the length of a subject precedes its first feature.
    """

    def begin(self, run: RunInfo) -> None:
        """Write the version."""
        super().begin(run)
        self._measured: set[int] = set()
        self.stream.write("##gff-version 3\n")

    def feature(self, query: QueryResult, chain: list[Hit], exons: list[Exon]) -> Iterable[str]:
        """The lines of one alignment or chain."""
        hit = chain[0]
        if hit.subject_index not in self._measured:
            self._measured.add(hit.subject_index)
            yield f"##sequence-region {_sequence_name(hit)} 1 {hit.subject_length}\n"
        yield from _gff3_lines(self.run, query, chain, exons)


def _sequence_name(hit: Hit) -> str:
    return quote(identifier(hit.subject_header), safe=_SEQUENCE_NAME, encoding="utf-8", errors="surrogateescape")


def _escaped(value: str) -> str:
    """The value of an attribute.

    >>> _escaped("a b;c=d")
    'a%20b%3Bc%3Dd'
    """
    return _ATTRIBUTE.sub(lambda found: f"%{ord(found[0]):02X}", value)


def _gff3_lines(run: RunInfo, query: QueryResult, chain: list[Hit], exons: list[Exon]) -> Iterator[str]:
    """The line of an alignment, or those of a chain and of its parts."""
    hit = chain[0]
    identifier_of = f"match{query.number + 1}.{hit.rank}.{hit.hsp}"
    matched = "protein_match" if run.query_alphabet == "protein" else "nucleotide_match"
    if hit.query_frame:
        matched = "translated_nucleotide_match"
    parts = exons if len(exons) > 1 else []
    yield _gff3_line(run, query, chain, matched, {"ID": identifier_of}, None if parts else exons[0])
    for number, exon in enumerate(parts, 1):
        attributes = {"ID": f"{identifier_of}.part{number}", "Parent": identifier_of}
        yield _gff3_line(run, query, [exon.hit], "match_part", attributes, exon)


def _gff3_line(
    run: RunInfo, query: QueryResult, chain: list[Hit], kind: str, attributes: dict[str, str], exon: Exon | None
) -> str:
    """A line about an ``exon``, or a chain as a whole; its first ``attributes`` are given."""
    first = chain[0]
    name = _escaped(identifier(query.header))
    start = min(hit.alignment.query_start for hit in chain)
    end = max(hit.alignment.query_end for hit in chain)
    attributes |= {"Name": name, "Target": f"{name} {start + 1} {end} {first.query_direction}"}
    if exon is not None:
        runs = [(exon.before, "F"), *_joined(shown(query.letters, exon.hit)[2]), (exon.after, "F")]
        attributes["Gap"] = " ".join(f"{operation}{length}" for length, operation in runs if length)
    identities = sum(hit.alignment.identities for hit in chain)
    n_columns = sum(hit.alignment.columns for hit in chain)
    attributes["score"] = str(sum(hit.score for hit in chain))
    attributes["identity"] = f"{percent(identities, n_columns):.2f}"
    if first.bits is not None:
        attributes["bits"] = f"{sum(hit.bits or 0.0 for hit in chain):.6g}"
    columns = [
        _sequence_name(first),
        run.program.partition(" ")[0],
        kind,
        str(min(hit.alignment.subject_start for hit in chain) + 1),
        str(max(hit.alignment.subject_end for hit in chain)),
        "." if first.evalue is None else f"{first.evalue:.6g}",
        first.subject_direction,
        ".",
        ";".join(f"{key}={value}" for key, value in attributes.items()),
    ]
    return "\t".join(columns) + "\n"


def _joined(cigar: str) -> list[tuple[int, str]]:
    """The runs of a CIGAR, where ``M`` stands for ``=`` and ``X``.

    >>> _joined("3=1X2I1=")
    [(4, 'M'), (2, 'I'), (1, 'M')]
    """
    runs: list[tuple[int, str]] = []
    for length, operation in parse(cigar):
        kind = "M" if operation in "=X" else operation
        before = runs.pop()[0] if runs and runs[-1][1] == kind else 0
        runs.append((before + length, kind))
    return runs

"""``xml``: the XML of NCBI BLAST, version 1 (``NCBI_BlastOutput.dtd``, the format of ``-outfmt 5``), with all elements.

A query is an ``Iteration``, a subject is a ``Hit`` with one ``Hsp`` per alignment. Coordinates are 1-based and
inclusive; a hit of the minus strand of a DNA query shows the query forward and the subject reversed. Coordinates in a
translated sequence ascend in all frames, because the frame has its own element. If the format requires a number that is
unknown here, the element is ``NaN``. Characters that XML cannot represent become U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, TextIO
from xml.sax.saxutils import escape

from swsearch.hits.cigar import gapped, row_midline
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.fields import FIELDS
from swsearch.report.rows import matrix_of, shown
from swsearch.report.text import one_line
from swsearch.sequences.genetic_code import CODON
from swsearch.sequences.record import identifier, split_header

UNKNOWN: Final = "NaN"
NO_HEADER: Final = "No definition line"
"""BLAST's text for a sequence without a header."""

_DOCTYPE: Final = '<!DOCTYPE BlastOutput PUBLIC "-//NCBI//NCBI BlastOutput/EN" "http://www.ncbi.nlm.nih.gov/dtd/NCBI_BlastOutput.dtd">'
_NOT_XML: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")
_TRANSLATING: Final = {"query": "blastx", "subject": "tblastn", "both": "tblastx"}
"""Names of the BLAST programs by the translated side."""
_Value = str | int | float | None


class BlastXmlReport:
    """The complete run as one ``BlastOutput``."""

    name = "xml"
    binary = False

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        begun = False
        for query in queries:
            if not begun:
                stream.writelines(_opening(run, query))
                begun = True
            stream.writelines(_iteration(run, query))
        if not begun:
            stream.writelines(_opening(run, None))
        stream.write("</BlastOutput_iterations>\n</BlastOutput>\n\n")


def _element(indent: int, name: str, value: _Value) -> str:
    """One line with one element; an unknown number is ``NaN``."""
    if isinstance(value, str):
        text = xml_text(value)
    elif value is None:
        text = UNKNOWN
    else:
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f"{' ' * indent}<{name}>{text}</{name}>\n"


def xml_text(text: str) -> str:
    """Text as the content of an element, in one line; characters that XML cannot represent become U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", one_line(text)), {'"': "&quot;"})


def program_name(run: RunInfo) -> str:
    """The BLAST program that makes this comparison."""
    return _TRANSLATING.get(run.translates or "", "blastn" if run.aligned_alphabet == "dna" else "blastp")


def _opening(run: RunInfo, first: QueryResult | None) -> Iterator[str]:
    """The elements before the queries; they name the first query."""
    dna = run.aligned_alphabet == "dna"
    yield f'<?xml version="1.0"?>\n{_DOCTYPE}\n<BlastOutput>\n'
    yield _element(2, "BlastOutput_program", program_name(run))
    yield _element(2, "BlastOutput_version", run.program)
    yield _element(2, "BlastOutput_reference", f"{run.program}: exhaustive Smith-Waterman search")
    yield _element(2, "BlastOutput_db", run.database.name)
    yield from _query_elements("BlastOutput", first)
    yield "  <BlastOutput_param>\n    <Parameters>\n"
    if not dna:
        yield _element(6, "Parameters_matrix", run.matrix)
    limit = run.parameters.get("evalue")
    yield _element(6, "Parameters_expect", float(limit) if limit is not None else None)
    if dna:
        matrix = matrix_of(run)
        yield _element(6, "Parameters_sc-match", matrix.score("A", "A"))
        yield _element(6, "Parameters_sc-mismatch", matrix.score("A", "C"))
    yield _element(6, "Parameters_gap-open", run.gap_open)
    yield _element(6, "Parameters_gap-extend", run.gap_extend)
    yield _element(6, "Parameters_filter", masking(run))
    yield "    </Parameters>\n  </BlastOutput_param>\n<BlastOutput_iterations>\n"


def masking(run: RunInfo) -> str:
    """Masking in BLAST's notation: ``F`` for none, ``L`` for low complexity, ``m`` for a soft mask."""
    if run.parameters.get("mask") in (None, "none"):
        return "F"
    return "L;m;" if run.parameters.get("mask_mode") == "soft" else "L;"


def _query_elements(of: str, query: QueryResult | None) -> Iterator[str]:
    yield _element(2, f"{of}_query-ID", f"Query_{query.number + 1}" if query else "")
    yield _element(2, f"{of}_query-def", (query.header or NO_HEADER) if query else "")
    yield _element(2, f"{of}_query-len", query.length if query else 0)


def _iteration(run: RunInfo, query: QueryResult) -> Iterator[str]:
    yield "<Iteration>\n"
    yield _element(2, "Iteration_iter-num", query.number + 1)
    yield from _query_elements("Iteration", query)
    yield "<Iteration_hits>\n"
    for place, (_, alignments) in enumerate(groupby(query.hits, key=lambda hit: hit.rank), 1):
        yield from _hit(run, query, place, tuple(alignments))
    yield "</Iteration_hits>\n  <Iteration_stat>\n    <Statistics>\n"
    yield _element(6, "Statistics_db-num", run.database.n_subjects)
    yield _element(6, "Statistics_db-len", run.database.n_residues)
    yield _element(6, "Statistics_hsp-len", 0)
    yield _element(6, "Statistics_eff-space", effective_space(run, query))
    yield _element(6, "Statistics_kappa", run.k)
    yield _element(6, "Statistics_lambda", run.lam)
    yield _element(6, "Statistics_entropy", None)
    yield "    </Statistics>\n  </Iteration_stat>\n"
    if not query.hits:
        yield _element(2, "Iteration_message", "No hits found")
    yield "</Iteration>\n"


def effective_space(run: RunInfo, query: QueryResult) -> int:
    """Residues of the query multiplied by those to which E-values refer."""
    n_residues = query.length // CODON if run.translates in ("query", "both") else query.length
    return n_residues * run.search_space


def _hit(run: RunInfo, query: QueryResult, place: int, alignments: tuple[Hit, ...]) -> Iterator[str]:
    hit = alignments[0]
    name = identifier(hit.subject_header)
    yield "<Hit>\n"
    yield _element(2, "Hit_num", place)
    yield _element(2, "Hit_id", name)
    yield _element(2, "Hit_def", split_header(hit.subject_header)[1] or NO_HEADER)
    yield _element(2, "Hit_accession", name)
    yield _element(2, "Hit_len", hit.subject_length)
    yield "  <Hit_hsps>\n"
    for alignment in alignments:
        yield from _hsp(run, query, alignment)
    yield "  </Hit_hsps>\n</Hit>\n"


def places(run: RunInfo, query: QueryResult, hit: Hit, of: str) -> tuple[_Value, _Value]:
    """First and last position on the query (``q``) or the subject (``s``) as the XML formats have them."""
    first, last = (FIELDS[name].value(run, query, hit) for name in (f"{of}start", f"{of}end"))
    return (first, last) if (hit.query_frame if of == "q" else hit.subject_frame) >= 0 else (last, first)


def _hsp(run: RunInfo, query: QueryResult, hit: Hit) -> Iterator[str]:
    alignment = hit.alignment
    query_row, subject_row = gapped(*shown(query, hit))
    framed = run.translates is not None or run.aligned_alphabet == "dna"
    query_from, query_to = places(run, query, hit, "q")
    subject_from, subject_to = places(run, query, hit, "s")
    yield "    <Hsp>\n"
    values: dict[str, _Value] = {
        "num": hit.hsp,
        "bit-score": hit.bits,
        "score": hit.score,
        "evalue": hit.evalue,
        "query-from": query_from,
        "query-to": query_to,
        "hit-from": subject_from,
        "hit-to": subject_to,
        "query-frame": FIELDS["qframe"].value(run, query, hit) if framed else 0,
        "hit-frame": FIELDS["sframe"].value(run, query, hit) if framed else 0,
        "identity": alignment.identities,
        "positive": alignment.positives,
        "gaps": alignment.gap_residues,
        "align-len": alignment.columns,
        "qseq": query_row,
        "hseq": subject_row,
    }
    yield from (_element(6, f"Hsp_{name}", value) for name, value in values.items())
    yield f"      <Hsp_midline>{row_midline(query_row, subject_row, matrix_of(run))}</Hsp_midline>\n"
    yield "    </Hsp>\n"

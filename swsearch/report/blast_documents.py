"""``xml``, ``xml2`` and ``json2``: the structured reports of NCBI BLAST, each as one document.

``xml`` is BLAST's XML of version 1 (``NCBI_BlastOutput.dtd``, the format of ``-outfmt 5``), with all elements: a query
is an ``Iteration``, a subject is a ``Hit`` with one ``Hsp`` per alignment.

``xml2`` is ``BlastXML2`` (``NCBI_BlastOutput2.xsd``, the format of ``-outfmt 16``), ``json2`` the same content as JSON
(``-outfmt 15``). Both have one ``BlastOutput2`` per query, and each of these repeats the program and its parameters.
:func:`xml2_of_query` and :func:`json2_of_query` are the document of a single query (``-outfmt 14`` and ``13``).

Coordinates are 1-based and inclusive; a hit of the minus strand of a DNA query shows the query forward and the subject
reversed. Coordinates in a translated sequence ascend in all frames, because the frame has its own element. A number
that a format requires and that is unknown, or infinite in JSON, is ``NaN`` in XML and null in JSON. Characters that XML
cannot represent become U+FFFD; JSON is ASCII with escapes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from xml.sax.saxutils import escape

from swsearch.hits.cigar import gapped, midline
from swsearch.hits.formatting import frames, matrix_of, one_line, shown
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.report.taxa import organisms, taxids
from swsearch.sequences.genetic_code import CODON
from swsearch.sequences.record import identifier, split_header

# --- xml ---


UNKNOWN: Final = "NaN"
NO_HEADER: Final = "No definition line"
"""BLAST's text for a sequence without a header."""

_DOCTYPE: Final = '<!DOCTYPE BlastOutput PUBLIC "-//NCBI//NCBI BlastOutput/EN" "http://www.ncbi.nlm.nih.gov/dtd/NCBI_BlastOutput.dtd">'
_NOT_XML: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")
_TRANSLATING: Final = {"query": "blastx", "subject": "tblastn", "both": "tblastx"}
"""Names of the BLAST programs by the translated side."""
_Value = str | int | float | None


class BlastXmlReport(Report):
    """The complete run as one ``BlastOutput``, whose elements before the queries name the first query."""

    def write(self, query: QueryResult) -> None:
        """Write an ``Iteration``."""
        self._open(query)
        self.stream.writelines(_iteration(self.run, query))

    def end(self) -> None:
        """Write the end of the document."""
        self._open(None)
        self.stream.write("</BlastOutput_iterations>\n</BlastOutput>\n\n")

    def _open(self, first: QueryResult | None) -> None:
        if not self._has_queries:
            self._has_queries = True
            self.stream.writelines(_opening(self.run, first))


def _element(indent: int, name: str, value: _Value) -> str:
    """One line with one element; an unknown number is ``NaN``."""
    if isinstance(value, str):
        text = xml_text(value)
    elif value is None:
        text = UNKNOWN
    else:
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f"{' ' * indent}<{name}>{text}</{name}>\n"


def _elements(of: str, values: Mapping[str, _Value]) -> Iterator[str]:
    """The elements of a compound value, by their names in JSON."""
    return (_element(6, f"{of}_{name.replace('_', '-')}", value) for name, value in values.items())


def xml_text(text: str) -> str:
    """Text as the content of an element, in one line; characters that XML cannot represent become U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", one_line(text)), {'"': "&quot;"})


def program_name(run: RunInfo) -> str:
    """The BLAST program that makes this comparison."""
    return _TRANSLATING.get(run.translates or "", "blastn" if run.aligned_alphabet == "dna" else "blastp")


def _opening(run: RunInfo, first: QueryResult | None) -> Iterator[str]:
    """The elements before the queries; they name the first query."""
    yield f'<?xml version="1.0"?>\n{_DOCTYPE}\n<BlastOutput>\n'
    yield _element(2, "BlastOutput_program", program_name(run))
    yield _element(2, "BlastOutput_version", run.program)
    yield _element(2, "BlastOutput_reference", f"{run.program}: exhaustive Smith-Waterman search")
    yield _element(2, "BlastOutput_db", run.database.name)
    yield from _query_elements("BlastOutput", first)
    yield "  <BlastOutput_param>\n    <Parameters>\n"
    yield from _elements("Parameters", _scoring(run))
    yield "    </Parameters>\n  </BlastOutput_param>\n<BlastOutput_iterations>\n"


def _scoring(run: RunInfo) -> dict[str, _Value]:
    """The parameters that all formats have, by their names in JSON."""
    dna = run.aligned_alphabet == "dna"
    limit = run.parameters.get("evalue")
    parameters: dict[str, _Value] = {} if dna else {"matrix": run.matrix}
    parameters["expect"] = None if limit is None else float(limit)
    if dna:
        matrix = matrix_of(run)
        parameters |= {"sc_match": matrix.score("A", "A"), "sc_mismatch": matrix.score("A", "C")}
    return parameters | {"gap_open": run.gap_open, "gap_extend": run.gap_extend, "filter": masking(run)}


def masking(run: RunInfo) -> str:
    """Masking in BLAST's notation: ``F`` for none, ``L`` for low complexity, ``m`` for a soft mask."""
    if run.parameters.get("mask") in (None, "none"):
        return "F"
    return "L;m;" if run.parameters.get("mask_mode") == "soft" else "L;"


def _statistics(run: RunInfo, query: QueryResult) -> dict[str, _Value]:
    """Sizes and statistics, by their names in JSON; the space is that of the residues to which E-values refer."""
    n_residues = query.length // CODON if run.translates in ("query", "both") else query.length
    return {
        "db_num": run.database.n_subjects,
        "db_len": run.database.n_residues,
        "hsp_len": 0,
        "eff_space": n_residues * run.search_space,
        "kappa": run.k,
        "lambda": run.lam,
        "entropy": None,
    }


def _query_elements(of: str, query: QueryResult | None) -> Iterator[str]:
    yield _element(2, f"{of}_query-ID", f"Query_{query.number + 1}" if query else "")
    yield _element(2, f"{of}_query-def", (query.header or NO_HEADER) if query else "")
    yield _element(2, f"{of}_query-len", query.length if query else 0)


def _iteration(run: RunInfo, query: QueryResult) -> Iterator[str]:
    yield "<Iteration>\n"
    yield _element(2, "Iteration_iter-num", query.number + 1)
    yield from _query_elements("Iteration", query)
    yield "<Iteration_hits>\n"
    for place, hsps in enumerate(query.by_subject, 1):
        yield from _hit(run, query, place, hsps)
    yield "</Iteration_hits>\n  <Iteration_stat>\n    <Statistics>\n"
    yield from _elements("Statistics", _statistics(run, query))
    yield "    </Statistics>\n  </Iteration_stat>\n"
    if not query.hits:
        yield _element(2, "Iteration_message", "No hits found")
    yield "</Iteration>\n"


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
        yield from _hsp_elements(run, query, alignment)
    yield "  </Hit_hsps>\n</Hit>\n"


def places(hit: Hit, of: str) -> tuple[int, int]:
    """First and last position on the query (``q``) or the subject (``s``) as the XML formats have them."""
    first, last = (hit.qstart, hit.qend) if of == "q" else (hit.sstart, hit.send)
    return (first, last) if (hit.query_frame if of == "q" else hit.subject_frame) >= 0 else (last, first)


_HSP: Final = (
    "num", "bit_score", "score", "evalue", "query_from", "query_to", "hit_from", "hit_to", "query_frame", "hit_frame",
    "identity", "positive", "gaps", "align_len", "qseq", "hseq", "midline",
)  # fmt: skip
"""The elements of an alignment, by their names in JSON."""


def _hsp_elements(run: RunInfo, query: QueryResult, hit: Hit) -> Iterator[str]:
    """An alignment, whose elements are the same for all searches."""
    framed = run.translates is not None or run.aligned_alphabet == "dna"
    query_frame, hit_frame = frames(hit) if framed else (0, 0)
    more = {"query_frame": query_frame, "hit_frame": hit_frame, "positive": hit.alignment.positives}
    values = _hsp(run, query, hit) | more
    yield "    <Hsp>\n"
    yield from _elements("Hsp", {name: values[name] for name in _HSP})
    yield "    </Hsp>\n"


# --- xml2 and json2 ---


_SCHEMA: Final = (
    '    xmlns="http://www.ncbi.nlm.nih.gov"\n'
    '    xmlns:xs="http://www.w3.org/2001/XMLSchema-instance"\n'
    '    xs:schemaLocation="http://www.ncbi.nlm.nih.gov '
    'http://www.ncbi.nlm.nih.gov/data_specs/schema_alt/NCBI_BlastOutput2.xsd"\n'
)
_TYPES: Final = {
    "report": "Report",
    "search_target": "Target",
    "params": "Parameters",
    "results": "Results",
    "search": "Search",
    "hits": "Hit",
    "description": "HitDescr",
    "hsps": "Hsp",
    "stat": "Statistics",
}
"""The XML element of the type that stands within the element of each compound value."""


class Xml2Report(Report):
    """The complete run as one ``BlastXML2``."""

    def begin(self, run: RunInfo) -> None:
        """Write the beginning of the document."""
        super().begin(run)
        self.stream.write(f'<?xml version="1.0"?>\n<BlastXML2\n{_SCHEMA}>\n')

    def write(self, query: QueryResult) -> None:
        """Write a ``BlastOutput2``."""
        self.stream.write("<BlastOutput2>\n")
        self.stream.writelines(_xml(2, "report", _report(self.context, query)))
        self.stream.write("</BlastOutput2>\n")

    def end(self) -> None:
        """Write the end of the document."""
        self.stream.write("</BlastXML2>\n")


def xml2_of_query(context: ReportContext, query: QueryResult) -> Iterator[str]:
    """One query as a document of its own, to which :func:`xml2_index` refers."""
    yield f'<?xml version="1.0"?>\n<BlastOutput2\n{_SCHEMA}>\n'
    yield from _xml(2, "report", _report(context, query))
    yield "</BlastOutput2>\n"


class Json2Report(Report):
    """The complete run as one JSON object."""

    def begin(self, run: RunInfo) -> None:
        """Write the beginning of the object."""
        super().begin(run)
        self.stream.write('{"BlastOutput2": [\n')

    def write(self, query: QueryResult) -> None:
        """Write a query."""
        self.write_between(",\n")
        self.stream.writelines(_json({"report": _report(self.context, query)}))

    def end(self) -> None:
        """Write the end of the object."""
        self.stream.write("\n]}\n")


def json2_of_query(context: ReportContext, query: QueryResult) -> Iterator[str]:
    """One query as a document of its own, to which :func:`json2_index` refers."""
    yield from _json({"BlastOutput2": {"report": _report(context, query)}})
    yield "\n"


def xml2_index(names: Iterable[str]) -> str:
    """The document that includes those of the queries, as files with these names beside it."""
    included = "".join(f'\t<xi:include href="{xml_text(name)}"/>\n' for name in names)
    schema = _SCHEMA.replace("    xmlns:xs", '    xmlns:xi="http://www.w3.org/2003/XInclude"\n    xmlns:xs')
    return f'<?xml version="1.0"?>\n<BlastXML2\n{schema}>\n{included}</BlastXML2>\n'


def json2_index(names: Iterable[str]) -> str:
    """The document that lists those of the queries, as files with these names beside it."""
    return json.dumps({"BlastJSON": [{"File": name} for name in names]}, indent=2) + "\n"


# --- the content, by the names of JSON; those of XML have - in place of _ ---


def _report(context: ReportContext, query: QueryResult) -> dict[str, Any]:
    """One query; ``hits`` is an iterator, because there may be many."""
    run = context.run
    search: dict[str, Any] = {
        "query_id": f"Query_{query.number + 1}",
        "query_title": one_line(query.header) or NO_HEADER,
        "query_len": query.length,
        "hits": _hits(context, query),
        "stat": _numbers(_statistics(run, query)),
    }
    if not query.hits:
        search["message"] = "No hits found"
    return {
        "program": program_name(run),
        "version": run.program,
        "reference": f"{run.program}: exhaustive Smith-Waterman search",
        "search_target": {"db": run.database.name},
        "params": _parameters(run),
        "results": {"search": search},
    }


def _parameters(run: RunInfo) -> dict[str, _Value]:
    parameters = _numbers(_scoring(run))
    if run.translates in ("query", "both"):
        parameters["query_gencode"] = run.genetic_code
    if run.translates in ("subject", "both"):
        parameters["db_gencode"] = run.genetic_code
    return parameters


def _hits(context: ReportContext, query: QueryResult) -> Iterator[dict[str, Any]]:
    for place, hsps in enumerate(query.by_subject, 1):
        header = hsps[0].subject_header
        name = one_line(identifier(header))
        described: dict[str, Any] = {
            "id": name,
            "accession": name,
            "title": one_line(split_header(header)[1]) or NO_HEADER,
        }
        if ids := taxids(context, hsps[0]):
            described["taxid"] = ids[0]
        if names := organisms(context, hsps[0]):
            described["sciname"] = one_line(names[0])
        yield {
            "num": place,
            "description": [described],
            "len": hsps[0].subject_length,
            "hsps": [_hsp(context.run, query, hit) for hit in hsps],
        }


def _hsp(run: RunInfo, query: QueryResult, hit: Hit) -> dict[str, Any]:
    alignment = hit.alignment
    query_row, subject_row = gapped(*shown(query.letters, hit))
    dna = run.aligned_alphabet == "dna"
    values: dict[str, Any] = {
        "num": hit.hsp,
        "bit_score": _number(hit.bits),
        "score": hit.score,
        "evalue": _number(hit.evalue),
        "identity": alignment.identities,
    }
    if not dna:
        values["positive"] = alignment.positives
    for side, letter, frame in (("query", "q", hit.query_frame), ("hit", "s", hit.subject_frame)):
        values[f"{side}_from"], values[f"{side}_to"] = places(hit, letter)
        if dna:
            values[f"{side}_strand"] = "Minus" if side == "hit" and hit.is_turned else "Plus"
        elif frame:
            values[f"{side}_frame"] = frame
    return values | {
        "align_len": alignment.columns,
        "gaps": alignment.gap_residues,
        "qseq": query_row,
        "hseq": subject_row,
        "midline": midline(query_row, subject_row, matrix_of(run)),
    }


def _number(value: _Value) -> _Value:
    """A real number with six significant digits, as BLAST prints it; None if it is unknown or infinite."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _numbers(values: Mapping[str, _Value]) -> dict[str, _Value]:
    return {name: _number(value) for name, value in values.items()}


# --- the two notations ---


def _xml(indent: int, name: str, value: Any) -> Iterator[str]:
    """The lines of an element."""
    tag, space = name.replace("_", "-"), " " * indent
    if value is None or isinstance(value, str | int | float):
        yield _element(indent, tag, value)
    else:
        kind = _TYPES[name]
        yield f"{space}<{tag}>\n"
        for member in (value,) if isinstance(value, dict) else value:
            yield f"{space}  <{kind}>\n"
            for part, content in member.items():
                yield from _xml(indent + 4, part, content)
            yield f"{space}  </{kind}>\n"
        yield f"{space}</{tag}>\n"


def _json(value: Any) -> Iterator[str]:
    """The parts of a JSON text; a list of many is written member by member, one a line."""
    if isinstance(value, dict):
        for place, (name, content) in enumerate(value.items()):
            yield f"{', ' if place else '{'}{json.dumps(name)}: "
            yield from _json(content)
        yield "}"
    elif isinstance(value, Iterator):
        yield "["
        for place, member in enumerate(value):
            yield ",\n" if place else "\n"
            yield json.dumps(member)
        yield "\n]"
    else:
        yield json.dumps(value)

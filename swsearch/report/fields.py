"""The columns of tabular reports, with BLAST's names, and additionally ``cigar``, ``rank`` and ``strand``.

A :class:`Field` computes a value from the records; a format converts the value to text. Coordinates are those of BLAST:
1-based, inclusive, on the forward query with ``qstart <= qend``; a hit of the query's minus strand has
``sstart >= send``. Coordinates in a translated sequence are in bases, and descend in a minus frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from swsearch.errors import InputError
from swsearch.hits.cigar import btop, gapped
from swsearch.hits.formatting import frames, percent, shown, whole_percent
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report import taxa
from swsearch.report.base import ReportContext
from swsearch.report.formats import Use
from swsearch.sequences.record import identifier
from swsearch.words import option

Value = str | int | float | None


@dataclass(frozen=True)
class Field:
    """One column.

    Attributes
    ----------
    name : str
        Name of the column in ``--fields``.
    title : str
        Name of the column in the ``# Fields:`` line of BLAST.
    value : callable
        Function of a context, a query and a hit that returns the value; None if the value is unknown.
    decimals : int or None
        Number of decimals of a printed real number; None for integers, text, E-values and bit scores.
    kind : type
        Type of a known value: ``str``, ``int`` or ``float``.
    needs_subjects : bool
        Whether the value is read from the database.
    use : Use
        What the value takes from a taxonomy.
    """

    name: str
    title: str
    value: Callable[[ReportContext, QueryResult, Hit], Value]
    decimals: int | None = None
    kind: type[str] | type[int] | type[float] = int
    needs_subjects: bool = False
    use: Use = Use.NONE


def _coverage(query: QueryResult, hit: Hit) -> int:
    return whole_percent(hit.alignment.query_end - hit.alignment.query_start, query.length)


def _subject_coverage(query: QueryResult, hit: Hit) -> int:
    """Percentage of the query that the alignments of the subject cover together."""
    covered = reached = 0
    alignments = [other.alignment for other in query.alignments(hit.rank)]
    for alignment in sorted(alignments, key=lambda alignment: alignment.query_start):
        covered += max(0, alignment.query_end - max(alignment.query_start, reached))
        reached = max(reached, alignment.query_end)
    return whole_percent(covered, query.length)


def _subject(context: ReportContext, hit: Hit) -> str:
    """The whole subject as written."""
    if context.subjects is None:
        raise InputError("full_sseq is in the database of the search, which was not opened")
    return context.subjects.letters(hit.subject_index)


def _of_taxa(
    name: str,
    title: str,
    value: Callable[[ReportContext, Hit], Value],
    kind: type[str] | type[int] = str,
    use: Use = Use.NEEDED,
) -> Field:
    """A column about the organisms of the subject; by default, of names that only a taxonomy has."""
    return Field(name, title, lambda context, _, hit: value(context, hit), kind=kind, use=use)


def _of_query(name: str, title: str, kind: type[str] | type[int] = str) -> Field:
    """A column of the query's taxon, which the report assigns."""
    value = taxa.LCA[name]
    return Field(name, title, lambda context, query, _: value(context, query), kind=kind, use=Use.NEEDED)


_IF_KNOWN: Final = Use.IF_KNOWN
_COMMON_NAMES: Final = taxa.names_of(lambda tree, taxon: tree.common_name(taxon))
_BLAST_NAMES: Final = taxa.names_of(lambda tree, taxon: tree.blast_name(taxon))
_DOMAINS: Final = taxa.names_of(lambda tree, taxon: tree.domain(taxon))
_LINEAGES: Final = taxa.names_of(taxa.lineage)

_ALL: Final = (
    Field("qseqid", "query id", lambda c, q, h: identifier(q.header), kind=str),
    Field("qacc", "query acc.", lambda c, q, h: identifier(q.header), kind=str),
    Field("qaccver", "query acc.ver", lambda c, q, h: identifier(q.header), kind=str),
    Field("qlen", "query length", lambda c, q, h: q.length),
    Field("sseqid", "subject id", lambda c, q, h: identifier(h.subject_header), kind=str),
    Field("sallseqid", "subject ids", lambda c, q, h: identifier(h.subject_header), kind=str),
    Field("sacc", "subject acc.", lambda c, q, h: identifier(h.subject_header), kind=str),
    Field("saccver", "subject acc.ver", lambda c, q, h: identifier(h.subject_header), kind=str),
    Field("sallacc", "subject accs.", lambda c, q, h: identifier(h.subject_header), kind=str),
    Field("slen", "subject length", lambda c, q, h: h.subject_length),
    Field("qstart", "q. start", lambda c, q, h: h.qstart),
    Field("qend", "q. end", lambda c, q, h: h.qend),
    Field("sstart", "s. start", lambda c, q, h: h.sstart),
    Field("send", "s. end", lambda c, q, h: h.send),
    Field("qseq", "query seq", lambda c, q, h: gapped(*shown(q.letters, h))[0], kind=str),
    Field("sseq", "subject seq", lambda c, q, h: gapped(*shown(q.letters, h))[1], kind=str),
    Field("full_qseq", "full query seq", lambda c, q, h: q.letters, kind=str),
    Field("full_sseq", "full subject seq", lambda c, q, h: _subject(c, h), kind=str, needs_subjects=True),
    Field("evalue", "evalue", lambda c, q, h: h.evalue, kind=float),
    Field("bitscore", "bit score", lambda c, q, h: h.bits, kind=float),
    Field("score", "score", lambda c, q, h: h.score),
    Field("length", "alignment length", lambda c, q, h: h.alignment.columns),
    Field("pident", "% identity", lambda c, q, h: percent(h.alignment.identities, h.alignment.columns), 3, kind=float),
    Field("nident", "identical", lambda c, q, h: h.alignment.identities),
    Field("mismatch", "mismatches", lambda c, q, h: h.alignment.mismatches),
    Field("positive", "positives", lambda c, q, h: h.alignment.positives),
    Field("gapopen", "gap opens", lambda c, q, h: h.alignment.gap_openings),
    Field("gaps", "gaps", lambda c, q, h: h.alignment.gap_residues),
    Field("ppos", "% positives", lambda c, q, h: percent(h.alignment.positives, h.alignment.columns), 2, kind=float),
    Field("frames", "query/sbjct frames", lambda c, q, h: "/".join(map(str, frames(h))), kind=str),
    Field("qframe", "query frame", lambda c, q, h: frames(h)[0]),
    Field("sframe", "sbjct frame", lambda c, q, h: frames(h)[1]),
    Field("btop", "BTOP", lambda c, q, h: btop(*shown(q.letters, h)), kind=str),
    Field("stitle", "subject title", lambda c, q, h: h.subject_header, kind=str),
    Field("salltitles", "subject titles", lambda c, q, h: h.subject_header, kind=str),
    _of_taxa("staxid", "subject tax id", taxa.first(taxa.taxids), int, _IF_KNOWN),
    _of_taxa("staxids", "subject tax ids", taxa.joined(taxa.taxids), use=_IF_KNOWN),
    _of_taxa("ssciname", "subject sci name", taxa.first(taxa.organisms), use=_IF_KNOWN),
    _of_taxa("sscinames", "subject sci names", taxa.joined(taxa.organisms), use=_IF_KNOWN),
    _of_taxa("scomname", "subject com names", taxa.first(_COMMON_NAMES)),
    _of_taxa("scomnames", "subject com names", taxa.joined(_COMMON_NAMES)),
    _of_taxa("sblastname", "subject blast name", taxa.first(_BLAST_NAMES)),
    _of_taxa("sblastnames", "subject blast names", taxa.joined(_BLAST_NAMES, alphabetical=True)),
    _of_taxa("sskingdom", "subject super kingdom", taxa.first(_DOMAINS)),
    _of_taxa("sskingdoms", "subject super kingdoms", taxa.joined(_DOMAINS, alphabetical=True)),
    _of_taxa("skingdoms", "subject kingdoms", taxa.joined(taxa.names_of(taxa.name_at("kingdom")))),
    _of_taxa("sphylums", "subject phylums", taxa.joined(taxa.names_of(taxa.name_at("phylum")))),
    _of_taxa("slineage", "subject lineage", taxa.first(_LINEAGES)),
    _of_taxa("slineages", "subject lineages", taxa.joined(_LINEAGES, taxa.LINEAGES_SEPARATOR)),
    _of_query("lca", "query lca tax id", int),
    _of_query("lcarank", "query lca rank"),
    _of_query("lcaname", "query lca sci name"),
    _of_query("lcalineage", "query lca lineage"),
    Field("sstrand", "subject strand", lambda c, q, h: h.strand if c.run.aligned_alphabet == "dna" else None, kind=str),
    Field("qcovs", "% query coverage per subject", lambda c, q, h: _subject_coverage(q, h)),
    Field("qcovhsp", "% query coverage per hsp", lambda c, q, h: _coverage(q, h)),
    Field("cigar", "CIGAR", lambda c, q, h: h.alignment.cigar, kind=str),
    Field("rank", "rank", lambda c, q, h: h.rank),
    Field("hsp", "hsp", lambda c, q, h: h.hsp),
    Field("n_hsps", "hsps of subject", lambda c, q, h: h.n_hsps),
    Field("strand", "query strand", lambda c, q, h: h.strand, kind=str),
    Field("forward_bits", "Forward bit score", lambda c, q, h: h.forward_bits, kind=float),
    Field("round", "round", lambda c, q, h: h.round),
)

FIELDS: Final = {field.name: field for field in _ALL}

STANDARD: Final = (
    "qaccver", "saccver", "pident", "length", "mismatch", "gapopen",
    "qstart", "qend", "sstart", "send", "evalue", "bitscore",
)  # fmt: skip
"""The twelve default columns of BLAST, its ``std``."""


def select_fields(names: Sequence[str]) -> tuple[Field, ...]:
    """The fields with these names; ``std`` denotes the twelve default columns of BLAST.

    Raises
    ------
    InputError
        A name is unknown, or ``names`` is empty.
    """
    expanded = [name for given in names for name in (STANDARD if given == "std" else (given,))]
    unknown = [name for name in expanded if name not in FIELDS]
    if unknown:
        raise InputError(f"there is no field {', '.join(unknown)}; choose from std, {', '.join(FIELDS)}")
    if not expanded:
        raise InputError(f"{option('fields')} names no field; choose from std, {', '.join(FIELDS)}")
    return tuple(FIELDS[name] for name in expanded)

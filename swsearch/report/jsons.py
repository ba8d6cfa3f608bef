"""``json`` and ``jsonl``: the report as JSON. Numbers are JSON numbers, and unknown values are null.

Coordinates are 0-based and half-open, as in the Python interface; those in a translated sequence refer to its forward
bases. Text is ASCII with JSON's escapes; a header byte that is not UTF-8 is a lone surrogate, as decoded by Python's
``surrogateescape``.
"""

from __future__ import annotations

import json
from typing import Any, Final

from swsearch.hits.formatting import percent
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.report.taxa import organisms, taxids
from swsearch.sequences.record import identifier

SCHEMA_VERSION: Final = 2
"""Version of the schema. It is increased when a name or a meaning changes, but not when names are added."""


_OF_ALIGNMENT: Final = (
    "query_start", "query_end", "subject_start", "subject_end", "cigar", "columns", "identities", "positives",
    "mismatches", "gap_openings", "gap_residues",
)  # fmt: skip


def describe_run(run: RunInfo) -> dict[str, Any]:
    """The description of the search: everything that determines the hits; of several databases, also each of them."""
    database = run.database
    each = [{"name": name, "digest": digest} for name, digest in zip(database.names, database.digests, strict=False)]
    return {
        "schema_version": SCHEMA_VERSION,
        "program": run.program,
        "matrix": run.matrix,
        "gap_open": run.gap_open,
        "gap_extend": run.gap_extend,
        "lambda": run.lam,
        "k": run.k,
        "statistics": run.statistics,
        "search_space": run.search_space,
        "translate": run.translates,
        "genetic_code": run.genetic_code,
        "database": {
            "name": database.name,
            "digest": database.digest,
            "generation": database.generation,
            "alphabet": database.alphabet,
            "n_subjects": database.n_subjects,
            "n_residues": database.n_residues,
        },
        **({"databases": each} if len(each) > 1 else {}),
    }


def describe_query(query: QueryResult) -> dict[str, Any]:
    """A query without its hits; with its rounds if the search was iterated, and its stored subjects if narrowed."""
    rounds = {"rounds": query.n_rounds, "converged": query.converged} if query.is_iterated else {}
    stored = {} if query.n_stored is None else {"n_stored": query.n_stored}
    return {
        "number": query.number,
        "id": identifier(query.header),
        "header": query.header,
        "length": query.length,
        "n_passed": query.n_passed,
        **stored,
        **rounds,
    }


def describe_hit(query: QueryResult, hit: Hit, context: ReportContext | None = None) -> dict[str, Any]:
    """A hit and its alignment, as one object.

    Of an iterated search, also the round of its subject, or null; of a sensitive one, its Forward score; if the
    alignments of its subject were counted, also their number; with a context that has a taxonomy, also the organisms.
    """
    alignment = hit.alignment
    rounds = {"round": hit.round or None} if query.is_iterated else {}
    forward = {} if hit.forward_bits is None else {"forward_bits": hit.forward_bits}
    counted_hsps = {} if hit.n_hsps is None else {"n_hsps": hit.n_hsps}
    return {
        "rank": hit.rank,
        "hsp": hit.hsp,
        **counted_hsps,
        "subject_id": identifier(hit.subject_header),
        "subject_header": hit.subject_header,
        "subject_index": hit.subject_index,
        "subject_length": hit.subject_length,
        "score": hit.score,
        "bits": hit.bits,
        **forward,
        "evalue": hit.evalue,
        "strand": hit.strand,
        "query_frame": hit.query_frame or None,
        "subject_frame": hit.subject_frame or None,
        **{name: getattr(alignment, name) for name in _OF_ALIGNMENT},
        "identity_percent": percent(alignment.identities, alignment.columns),
        "query_coverage_percent": percent(alignment.query_end - alignment.query_start, query.length),
        **rounds,
        **_organisms(context, hit),
    }


def _organisms(context: ReportContext | None, hit: Hit) -> dict[str, Any]:
    """Taxonomy ids and scientific names of the subject, if a taxonomy is known."""
    if context is None or context.taxonomy is None:
        return {}
    return {"taxids": list(taxids(context, hit)), "organisms": organisms(context, hit)}


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, allow_nan=False)


class JsonReport(Report):
    """One object: the run, its parameters, and ``queries``, each with its ``hits``; one line per hit."""

    def begin(self, run: RunInfo) -> None:
        """Write the run and its parameters."""
        super().begin(run)
        head = _text({**describe_run(run), "parameters": run.reported_parameters})
        self.stream.write(f'{head[:-1]}, "queries": [')

    def write(self, query: QueryResult) -> None:
        """Write a query with its hits."""
        stream = self.stream
        self.write_between(",")
        stream.write(f'\n{_text(describe_query(query))[:-1]}, "hits": [')
        for place, hit in enumerate(self.run.listed(query)):
            stream.write(",\n" if place else "\n")
            stream.write(_text(describe_hit(query, hit, self.context)))
        stream.write("]}")

    def end(self) -> None:
        """Write the end of the object."""
        self.stream.write("\n]}\n")


class JsonLinesReport(Report):
    """One object per line: first the run, then each query, followed by its hits with the query's number and id.

    ``type`` is the type of the object: ``run``, ``query`` or ``hit``. A longer list of hits adds lines and changes no
    other line; therefore the parameters of the run, which include the length of the list, are only in ``json``.
    """

    def begin(self, run: RunInfo) -> None:
        """Write the run."""
        super().begin(run)
        self.stream.write(_text({"type": "run", **describe_run(run)}) + "\n")

    def write(self, query: QueryResult) -> None:
        """Write a query, then its hits."""
        self.stream.write(_text({"type": "query", **describe_query(query)}) + "\n")
        names = {"type": "hit", "query_number": query.number, "query_id": identifier(query.header)}
        for hit in self.run.listed(query):
            self.stream.write(_text({**names, **describe_hit(query, hit, self.context)}) + "\n")

"""``html``: one self-contained page for reading, sorting and printing.

Each query has an overview graphic whose bars lead to the alignments, a table that can be sorted by any column, and its
alignments; each query is written as soon as its result is available. The page loads no other files; its content
security policy forbids it. If scripts are disabled, only sorting is unavailable. The style sheet begins with the
components that the pages of the search service have too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final, TextIO

from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.html_page import ROWS_SHOWN, all_rows_button, closing, no_script, opening, text
from swsearch.report.overview import key, overview
from swsearch.report.pairwise import blocks, value_lines
from swsearch.report.protocol import TaxonomyUse
from swsearch.report.summary import database_line, frames_line, hits_line, query_line, rounds_line, scoring_line
from swsearch.report.table import number_cells, number_titles
from swsearch.report.taxa import organisms
from swsearch.sequences.record import identifier, split_header

_BEST_IS_LARGEST: Final = ("score", "bits", "ident", "cover")


class HtmlReport:
    """The complete run as one page."""

    name = "html"
    binary = False

    def taxonomy_use(self) -> TaxonomyUse:
        """Ids and names of the organisms, if they are known (:class:`swsearch.report.protocol.TaxonomyReport`)."""
        return TaxonomyUse.IF_KNOWN

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        stream.writelines(_opening(run))
        for query in queries:
            stream.writelines(_section(run, query))
        stream.write(closing("script.js"))


def _opening(run: RunInfo) -> Iterator[str]:
    facts = {
        "Database": database_line(run),
        "Scoring": scoring_line(run),
        "Frames": frames_line(run),
        "Program": run.program,
    }
    yield from opening(f"Hits in {run.database.name}", "Smith-Waterman search", ("hits", "Skip to the hits"), facts)
    yield no_script("Sorting the tables needs JavaScript; all else works without.")
    yield "</header>\n"
    yield '<nav aria-label="Queries" hidden><details><summary></summary></details></nav>\n'
    yield '<p class="status unseen" role="status"></p>\n<main id="hits">\n'


def _section(run: RunInfo, query: QueryResult) -> Iterator[str]:
    name = f"q{query.number + 1}"
    yield f'<section aria-labelledby="{name}">\n<h2 id="{name}">{text(query_line(run, query))}</h2>\n'
    if (rounds := rounds_line(run, query)) is not None:
        yield f"<p>Rounds: {text(rounds)}</p>\n"
    yield f"<p>{text(hits_line(run, query))}</p>\n"
    if query.hits:
        yield '<div class="results">\n'
        yield from _figure(query, name)
        yield from _table(run, query, name)
        yield "<h3>Alignments</h3>\n"
        yield from _alignments(run, query, name)
        yield "</div>\n"
    yield "</section>\n"


def _figure(query: QueryResult, name: str) -> Iterator[str]:
    yield "<figure>\n"
    yield from overview(
        query.hits, query.length, f"{name}-overview", lambda hit: f"#{_anchor(name, hit)}", f"{name}-hits"
    )
    yield "<figcaption>"
    yield from key(query.hits, len(query.hits))
    yield "</figcaption>\n</figure>\n"


def _table(run: RunInfo, query: QueryResult, name: str) -> Iterator[str]:
    has_organisms = query.taxonomy is not None
    texts = ["#", "id", "description", *(["organism"] if has_organisms else [])]
    titles = [*texts, *number_titles(run)]
    short = len(query.hits) > ROWS_SHOWN
    yield f'<div class="scroll" id="{name}-hits" role="region" aria-labelledby="{name}-caption" tabindex="0">\n'
    yield f'<table id="{name}-table" class="short">\n' if short else "<table>\n"
    yield f'<caption id="{name}-caption">Hits of {text(identifier(query.header))}</caption>\n<thead>\n<tr>'
    for title in titles:
        first = "descending" if title in _BEST_IS_LARGEST else "ascending"
        sorted_now = ' aria-sort="ascending"' if title == "#" else ""
        label = ' aria-label="rank"' if title == "#" else ""
        button = f'<button type="button"{label}>{title}</button>'
        yield f'<th scope="col" data-first="{first}"{sorted_now}>{button}</th>'
    yield "</tr>\n</thead>\n<tbody>\n"
    for hit in query.hits:
        subject, description = split_header(hit.subject_header)
        link = f'<a href="#{_anchor(name, hit)}">{text(subject or "unnamed")}</a>'
        yield f'<tr><td class="number">{hit.rank}</td><th scope="row">{link}</th>'
        yield f'<td class="text">{text(description)}</td>'
        if has_organisms:
            yield f'<td class="text organism">{text("; ".join(organisms(query, hit)))}</td>'
        for title, cell in zip(titles[len(texts) :], number_cells(run, query, hit), strict=True):
            yield f"<td>{cell}</td>" if title == "strand" else f'<td class="number">{cell}</td>'
        yield "</tr>\n"
    yield "</tbody>\n</table>\n</div>\n"
    if short:
        yield all_rows_button(f"{name}-table", len(query.hits))


def _anchor(name: str, hit: Hit) -> str:
    """The anchor of an alignment in the page."""
    return f"{name}h{hit.rank}" if hit.hsp == 1 else f"{name}h{hit.rank}-{hit.hsp}"


def _alignments(run: RunInfo, query: QueryResult, name: str) -> Iterator[str]:
    for hit in query.hits:
        title = text(hit.subject_header or "unnamed")
        anchor = _anchor(name, hit)
        several = f", alignment {hit.hsp}" if hit.hsp > 1 else ""
        yield f'<article id="{anchor}" aria-labelledby="{anchor}t">\n'
        yield f'<h4 id="{anchor}t">{hit.rank}. {title}{several}</h4>\n<div>\n'
        worth = "<br>\n".join(map(text, [f"Length = {hit.subject_length}", *value_lines(run, hit)]))
        yield f"<p>{worth}</p>\n<pre>\n"
        yield escape("\n".join(blocks(run, query, hit)))
        yield f'</pre>\n<p class="back"><a href="#{name}">Back to the query</a></p>\n</div>\n</article>\n'

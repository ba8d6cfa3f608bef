"""``html``: one self-contained page for reading, sorting and printing.

Each query has an overview graphic whose bars lead to the alignments, a table that can be sorted by any column, the
organisms of its subjects as a graphic if a taxonomy is known, and its alignments; each query is written as soon as its
result is available. The page loads no other files; its content security policy forbids it. If scripts are disabled,
only sorting and the exploration of organisms are unavailable. The style sheet begins with the components that the pages
of the search service have too.

The overview shows the positions on the query at which its best hits align, as a list of links with bars of SVG. The
horizontal axis is the query; each hit is a row with its name and a bar from ``qstart`` to ``qend``, coloured by bit
score. The pages of the search service show the same graphic. Each row is a link to the hit's alignment, so bars can be
clicked and reached with the keyboard; its title states position and scores. Positions are percentages of the width, so
the graphic fits any screen while its text keeps its size. Colours are those of the classes in ``page/components.css``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html import escape
from importlib import resources
from itertools import groupby, takewhile
from typing import Final

from swsearch.hits.cigar import GAP, midline
from swsearch.hits.formatting import BLOCK, blast_evalue, blocks, matrix_of, one_line, shown_bits, value_lines
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.anchored import aligned_letters, expanded, insertion_widths, query_letters, row_names
from swsearch.report.base import Report, ReportContext
from swsearch.report.icicle import organism_tree
from swsearch.report.links import link_table, links_of
from swsearch.report.readable import number_columns
from swsearch.report.summary import (
    COMPOSITION_NOTE,
    HSP_NOTE,
    LIKELY_EVALUE,
    hits_line,
    loses_subjects,
    query_line,
    rounds_line,
    search_facts,
)
from swsearch.report.taxa import organisms
from swsearch.sequences.record import identifier, split_header
from swsearch.words import counted

# --- the page, which is one file and loads no other ---


_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
ROWS_SHOWN: Final = 500
"""Number of rows of a table that are initially shown; the style sheet contains the same number."""


@cache
def _page_file(name: str) -> str:
    return resources.files("swsearch.report").joinpath("page", name).read_text("utf-8")


def text(value: str) -> str:
    """Text escaped for any part of the page."""
    return escape(one_line(value))


def opening(
    title: str, heading: str, skip: tuple[str, str], facts: Mapping[str, str | None], remark: str, sections: str = ""
) -> Iterator[str]:
    """The page up to the beginning of its content.

    Parameters
    ----------
    title, heading : str
    skip : pair of str
        The id of the content, and the words of the link that leads the keyboard there.
    facts : mapping of str to str or None
        Facts by their names; those that are None are left out.
    remark : str
        For browsers without scripts, where all rows of a table are shown.
    sections : str
        What the sections are, which a script lists for navigation; empty if there are none.
    """
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
    style = _page_file("components.css") + _page_file("style.css")
    yield f"<title>{text(title)}</title>\n<style>\n{style}</style>\n</head>\n"
    yield f'<body>\n<a class="skip" href="#{skip[0]}">{skip[1]}</a>\n<header>\n'
    yield f'<h1>{heading}</h1>\n<dl class="facts">\n'
    yield from (f"<dt>{name}</dt><dd>{text(fact)}</dd>\n" for name, fact in facts.items() if fact)
    shown = "table.short tbody tr { display: table-row !important; } .all { display: none; }"
    yield f"</dl>\n<noscript><p>{remark}</p><style>{shown}</style></noscript>\n</header>\n"
    if sections:
        yield f'<nav aria-label="{sections}" hidden><details><summary></summary></details></nav>\n'
    yield f'<p class="status unseen" role="status"></p>\n<main id="{skip[0]}">\n'


def all_rows_button(table: str, n_rows: int) -> str:
    """The button below a long table that shows the other rows; ``table`` is its id."""
    return f'<button type="button" class="all" aria-controls="{table}">Show all {n_rows:,} rows</button>\n'


def closing(*scripts: str) -> str:
    """The end of the page, with these files of the folder ``page`` as scripts."""
    written = "".join(f"<script>\n{_page_file(name)}</script>\n" for name in scripts)
    return f"</main>\n{written}</body>\n</html>\n"


# --- the overview ---


MAX_BARS: Final = 50

_MAX_TICKS: Final = 10
_NO_BITS: Final = "bits-unknown"

CLASSES: Final = (
    (200.0, "bits-200", "200 bits or more"),
    (80.0, "bits-80", "80 to 200"),
    (50.0, "bits-50", "50 to 80"),
    (40.0, "bits-40", "40 to 50"),
    (float("-inf"), "bits-0", "less than 40"),
)
"""Lowest bit score, class in the style sheet, and description of each colour."""


def bits_class(bits: float | None) -> str:
    """The class in the style sheet for a bit score.

    >>> bits_class(85.2), bits_class(None)
    ('bits-80', 'bits-unknown')
    """
    return _NO_BITS if bits is None else next(name for least, name, _ in CLASSES if bits >= least)


def overview(hits: Sequence[Hit], length: int, name: str, address: Callable[[Hit], str], after: str) -> Iterator[str]:
    """The graphic, as successive parts of its text.

    Parameters
    ----------
    hits : sequence of Hit
        At least one; the first :data:`MAX_BARS` are drawn.
    length : int
        Length of the query.
    name : str
        Prefix of the ids of the graphic's elements, unique in the page.
    address : callable
        The address of a hit's alignment.
    after : str
        The id of the element that follows, to which the keyboard can skip the bars.
    """
    rows = (_row(hit, length, address(hit)) for hit in hits[:MAX_BARS])
    yield from graphic(rows, length, name, "Where on the query the hits align", after)


def graphic(rows: Iterable[str], length: int, name: str, title: str, after: str) -> Iterator[str]:
    """A graphic of bars along a sequence of ``length`` residues; ``rows`` are those of :func:`graphic_row`."""
    yield f'<div class="overview" role="group" aria-labelledby="{name}-title">\n'
    yield f'<p class="unseen" id="{name}-title">{title}</p>\n'
    yield f'<a class="skip" href="#{after}">Skip the overview</a>\n'
    yield '<svg class="axis" aria-hidden="true" focusable="false">'
    for place in ticks(length):
        x = _percent(place - 1, length)
        anchor = "end" if place > 0.96 * length and place > 1 else "middle" if place > 1 else "start"
        yield f'<line x1="{x}" y1="14" x2="{x}" y2="20"/><text x="{x}" y="11" text-anchor="{anchor}">{place}</text>'
    yield '<line x1="0%" y1="20" x2="100%" y2="20"/></svg>\n<ol>\n'
    yield from rows
    yield "</ol>\n</div>\n"


def key(hits: Sequence[Hit], n_hits: int) -> Iterator[str]:
    """The caption of the graphic: the meaning of the colours, and how many of ``n_hits`` hits are drawn."""
    if n_hits > MAX_BARS:
        yield f"The best {MAX_BARS} of the {n_hits:,} hits below. "
    if hits[0].bits is not None:
        yield from colour_key()


def colour_key() -> Iterator[str]:
    """The meaning of the colours."""
    yield "Bit score:"
    for _, colour, words in CLASSES:
        square = '<rect width="100%" height="100%"/>'
        yield f' <span class="key"><svg class="{colour}" aria-hidden="true">{square}</svg>{words}</span>'


def ticks(length: int) -> list[int]:
    """Positions of a query for axis labels: 1 and round numbers, at most eleven.

    >>> ticks(144)
    [1, 20, 40, 60, 80, 100, 120, 140]
    """
    step = next(
        unit * 10**power for power in range(20) for unit in (1, 2, 5) if length <= _MAX_TICKS * unit * 10**power
    )
    return [1, *range(step, length + 1, step)] if step > 1 else list(range(1, length + 1))


def bar(hit: Hit, length: int) -> str:
    """The bar of a hit over the whole width of an ``svg`` element; ``length`` is that of the query."""
    return bar_of(hit.alignment.query_start, hit.alignment.query_end, length)


def bar_of(first: int, last: int, length: int, more: str = "") -> str:
    """A bar over the residues first <= i < last, with further attributes of its element."""
    start, width = _percent(first, length), _percent(last - first, length)
    return f'<rect x="{start}" y="0" width="{width}" height="100%"{more}/>'


def direction(hit: Hit) -> str:
    """The translated frames, or the minus strand of DNA, as text that follows the name of a hit."""
    frames = [str(frame) for frame in (hit.query_frame, hit.subject_frame) if frame]
    if frames:
        return f" ({'/'.join(frames)})"
    return " (minus)" if hit.is_turned else ""


def _percent(place: int, length: int) -> str:
    return f"{100 * place / length:.3f}".rstrip("0").rstrip(".") + "%"


def _row(hit: Hit, length: int, address: str) -> str:
    alignment = hit.alignment
    name = one_line(identifier(hit.subject_header))
    worth = f"score {hit.score}"
    if hit.bits is not None:
        worth = f"{shown_bits(hit.bits)} bits, E-value {blast_evalue(hit.evalue)}"
    label = f"{hit.rank}. <bdi>{escape(name)}</bdi>{direction(hit)}"
    places = f"{alignment.query_start + 1}-{alignment.query_end}"
    tip = f"{hit.rank}. {name}{direction(hit)}: {places}, {worth}"
    return graphic_row(address, hit.rank, label, bits_class(hit.bits), bar(hit, length), f"{places}, {worth}", tip)


def graphic_row(address: str, rank: int, label: str, style: str, bars: str, words: str, tip: str) -> str:
    """A row of a graphic, which is a link: its label and its bars are HTML, ``words`` say what the bars show."""
    return (
        f'<li><a href="{escape(address)}" title="{escape(tip)}" data-rank="{rank}"><span class="name">{label}</span>'
        f'<svg class="bar {style}" aria-hidden="true" focusable="false">{bars}</svg>'
        f'<span class="unseen">{escape(words)}</span></a></li>\n'
    )


# --- alignments ---


UNLIKELY: Final = f"From here on, E-values are above {LIKELY_EVALUE:g}: these similarities may be due to chance."
"""The line in a table between hits that are likely to be related to the query and others."""
_SAME: Final = "same"
_SIMILAR: Final = "similar"
_NAME: Final = 32
"""Largest number of characters of a name beside a row of a multiple alignment."""


def alignment_rows(run: RunInfo, query: QueryResult, hit: Hit) -> str:
    """The rows of an alignment as HTML: identical and similar letters have the classes of :func:`alignment_key`.

    The row between them says the same, so nobody needs to see the colours.
    """
    return "\n".join(blocks(run, query.letters, hit, _marked))


def anchored_rows(run: RunInfo, query: QueryResult) -> Iterator[str]:
    """The multiple alignment of a query and its hits as parts of HTML, in blocks of :data:`BLOCK` columns.

    It has the columns of ``afasta``. Each letter of a hit has the class of :func:`alignment_key` that it has beside the
    letter of the query.
    """
    widths = insertion_widths(query)
    letters = [query_letters(query), *(aligned_letters(query, hit) for hit in query.hits)]
    rows = [expanded(row, widths, GAP).upper() for row in letters]
    names = [f"{name[: _NAME - 1]}…" if len(name) > _NAME else name for name in row_names(query)]
    width, matrix = max(map(len, names)), matrix_of(run)
    for start in range(0, len(rows[0]), BLOCK):
        above, *others = (row[start : start + BLOCK] for row in rows)
        yield f"{escape(names[0]):<{width}}  {above}\n"
        for name, row in zip(names[1:], others, strict=True):
            marks = midline(above, row, matrix)
            yield f"{escape(name.ljust(width))}  {_marked(row, marks)}\n"
        yield "\n"


def _marked(letters: str, marks: str) -> str:
    parts = []
    for name, columns in groupby(zip(letters, marks, strict=True), lambda column: _class_of(column[1])):
        part = escape("".join(letter for letter, _ in columns))
        parts.append(f'<span class="{name}">{part}</span>' if name else part)
    return "".join(parts)


def _class_of(mark: str) -> str:
    """The class of a column, by its mark in the row between the sequences."""
    return "" if mark == " " else _SIMILAR if mark == "+" else _SAME


def alignment_key(run: RunInfo) -> str:
    """The meaning of the colours, as HTML."""
    similar = f', <span class="{_SIMILAR}">similar</span> (the pair scores above 0)'
    words = "" if run.aligned_alphabet == "dna" else similar
    return (
        f'<p class="legend">Letters: <span class="{_SAME}">identical</span>{words}, different or against a gap.</p>\n'
    )


def link_list(hit: Hit) -> str:
    """Links from a hit to public databases, as HTML; empty if its identifier has none."""
    made = (
        f'<a href="{escape(address)}" rel="external noopener noreferrer">{escape(name)}</a>'
        for name, address in links_of(hit.subject_header)
    )
    return ", ".join(made)


def is_unlikely(hit: Hit) -> bool:
    """Whether the E-value of a hit is above that of likely ones."""
    return hit.evalue is not None and hit.evalue > LIKELY_EVALUE


def first_unlikely(hits: Sequence[Hit], *, by_alignment: bool) -> Hit | None:
    """The hit above which the line of :data:`UNLIKELY` stands in a list with the best first; None for no line.

    The list is in the order of the E-values of alignments, or with ``by_alignment`` false, of the best alignments of
    the subjects, so that further alignments of a likely subject may be unlikely.
    """
    last = list(takewhile(is_unlikely, reversed(hits)))
    return next((hit for hit in reversed(last) if by_alignment or hit.hsp == 1), None)


# --- the report ---


_BEST_IS_LARGEST: Final = ("score", "bits", "Forward", "ident", "cover")


class HtmlReport(Report):
    """The complete run as one page."""

    def __init__(self) -> None:
        link_table()  # refuses a file of links that cannot be used, before the search

    def begin(self, run: RunInfo) -> None:
        """Write the page up to the first query."""
        super().begin(run)
        self.stream.writelines(_opening(self.context))

    def write(self, query: QueryResult) -> None:
        """Write the section of a query."""
        self.stream.writelines(_section(self.context, query))

    def end(self) -> None:
        """Write the end of the page."""
        self.stream.write(closing("script.js", *([] if self.context.taxonomy is None else ["icicle.js"])))


def _opening(context: ReportContext) -> Iterator[str]:
    run = context.run
    facts = {**search_facts(run), "Program": run.program}
    title, skip = f"Hits in {run.database.name}", ("hits", "Skip to the hits")
    uses = "Sorting the tables needs" if context.taxonomy is None else "Sorting the tables and enlarging taxa need"
    remark = f"{uses} JavaScript; all else works without."
    return opening(title, "Smith-Waterman search", skip, facts, remark, "Queries")


def _section(context: ReportContext, query: QueryResult) -> Iterator[str]:
    run = context.run
    name = f"q{query.number + 1}"
    yield f'<section aria-labelledby="{name}">\n<h2 id="{name}">{text(query_line(run, query))}</h2>\n'
    if run.counts_alignments:
        yield f"<p>{HSP_NOTE}</p>\n"
    if (rounds := rounds_line(run, query)) is not None:
        yield f"<p>Rounds: {text(rounds)}</p>\n"
    yield f"<p>{text(hits_line(run, query))}</p>\n"
    if loses_subjects(run, query, query.n_subjects):
        yield "<details><summary>What the adjustment for composition means</summary>\n"
        yield f"<p>{COMPOSITION_NOTE}</p></details>\n"
    query = replace(query, hits=tuple(run.listed(query)))
    if query.hits:
        yield '<div class="results">\n'
        yield from _figure(query, name)
        yield from _table(context, query, name)
        yield from _organisms(context, query, name)
        yield f"<h3>Alignments</h3>\n{alignment_key(run)}"
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


def _table(context: ReportContext, query: QueryResult, name: str) -> Iterator[str]:
    run = context.run
    has_organisms = context.taxonomy is not None
    texts = ["#", "id", "description", *(["organism"] if has_organisms else [])]
    columns = number_columns(run)
    titles = [*texts, *columns]
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
    unlikely = first_unlikely(query.hits, by_alignment=run.orders_alignments)
    for place, hit in enumerate(query.hits, 1):
        if hit is unlikely:
            yield f'<tr class="limit"><td colspan="{len(titles)}">{UNLIKELY}</td></tr>\n'
        subject, description = split_header(hit.subject_header)
        link = f'<a href="#{_anchor(name, hit)}">{text(subject or "unnamed")}</a>'
        yield '<tr class="unlikely">' if is_unlikely(hit) else "<tr>"
        yield f'<td class="number">{place if run.orders_alignments else hit.rank}</td><th scope="row">{link}</th>'
        yield f'<td class="text">{text(description)}</td>'
        if has_organisms:
            yield f'<td class="text organism">{text("; ".join(organisms(context, hit)))}</td>'
        for title, cell in columns.items():
            kind = "" if title == "strand" else ' class="number"'
            yield f"<td{kind}>{cell(query, hit)}</td>"
        yield "</tr>\n"
    yield "</tbody>\n</table>\n</div>\n"
    if short:
        yield all_rows_button(f"{name}-table", len(query.hits))


def _organisms(context: ReportContext, query: QueryResult, name: str) -> Iterator[str]:
    """The graphic of the organisms of the subjects, and its numbers as a table, where a taxonomy is known."""
    if context.taxonomy is None:
        return
    best: dict[int, tuple[int, Hit]] = {}
    for place, hit in enumerate(query.hits, 1):
        best.setdefault(hit.rank, (place, hit))
    subjects = list(best.values())
    tree = organism_tree(
        context.taxonomy, [(hit.subject_index, hit.subject_header) for _, hit in subjects], f"{name}-taxa"
    )
    unknown = f"; {counted(tree.unknown, 'subject')} without one" if tree.unknown else ""
    words = f"{counted(tree.n_subjects, 'subject')} with a taxon{unknown}"
    yield "<h3>Organisms</h3>\n"
    if not tree.rows:
        yield f"<p>{words}.</p>\n"
        return
    yield f'<figure>\n{tree.figure}</figure>\n<details id="{name}-taxa-table"><summary>{words}: table</summary>\n'
    yield f'<div class="scroll" role="region" aria-labelledby="{name}-taxa-caption" tabindex="0">\n'
    yield f'<table>\n<caption id="{name}-taxa-caption">Taxa of the hits of {text(identifier(query.header))}</caption>\n'
    yield '<thead>\n<tr><th scope="col">taxon</th><th scope="col">rank</th><th scope="col" class="number">taxonomy id'
    yield '</th><th scope="col" class="number">subjects</th><th scope="col">best hit</th></tr>\n</thead>\n<tbody>\n'
    for one in tree.rows:
        place, hit = subjects[one.best_rank - 1]
        indent = f'<span class="level" aria-hidden="true">{"  " * one.level}</span>'
        link = f"{place if context.run.orders_alignments else hit.rank}. {text(identifier(hit.subject_header))}"
        yield f'<tr><th scope="row">{indent}{text(one.name)}</th><td>{text(one.rank)}</td>'
        yield f'<td class="number">{one.taxid}</td><td class="number">{one.n_subjects}</td>'
        yield f'<td><a href="#{_anchor(name, hit)}">{link}</a></td></tr>\n'
    yield "</tbody>\n</table>\n</div>\n</details>\n"


def _anchor(name: str, hit: Hit) -> str:
    """The anchor of an alignment in the page."""
    return f"{name}h{hit.rank}" if hit.hsp == 1 else f"{name}h{hit.rank}-{hit.hsp}"


def _alignments(run: RunInfo, query: QueryResult, name: str) -> Iterator[str]:
    for place, hit in enumerate(query.hits, 1):
        title = text(hit.subject_header or "unnamed")
        anchor = _anchor(name, hit)
        links = link_list(hit)
        several = f", alignment {hit.hsp}" if hit.hsp > 1 else ""
        yield f'<article id="{anchor}" aria-labelledby="{anchor}t">\n'
        yield f'<h4 id="{anchor}t">{place if run.orders_alignments else hit.rank}. {title}{several}</h4>\n<div>\n'
        worth = "<br>\n".join(map(text, [f"Length = {hit.subject_length}", *value_lines(run, hit)]))
        worth += f"<br>\n{links}" if links else ""
        label = f'tabindex="0" role="group" aria-labelledby="{anchor}t"'  # the keyboard scrolls what is too wide
        yield f"<p>{worth}</p>\n<pre {label}>\n{alignment_rows(run, query, hit)}</pre>\n"
        yield f'<p class="back"><a href="#{name}">Back to the query</a>'
        if place > 1:
            yield f' <a href="#{_anchor(name, query.hits[place - 2])}">Previous hit</a>'
        if place < len(query.hits):
            yield f' <a href="#{_anchor(name, query.hits[place])}">Next hit</a>'
        yield "</p>\n</div>\n</article>\n"

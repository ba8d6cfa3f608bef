"""The overview graphic of the ``html`` report: the positions on the query at which its best hits align, as SVG.

The horizontal axis is the query; each hit is a row with its name and a bar from ``qstart`` to ``qend``, coloured by bit
score. The table has the same information, so the graphic is presented to screen readers as one image with a
description.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.fields import identifier
from swsearch.report.numbers import blast_bits, blast_evalue
from swsearch.report.text import cut, one_line

MAX_BARS: Final = 50

_WIDTH: Final = 1000
_LEFT: Final = 190
_TOP: Final = 24
_ROW: Final = 15
_BAR: Final = 9
_NAME_LETTERS: Final = 26
_MAX_TICKS: Final = 10
_NO_BITS: Final = "#5b5b5b"

COLOURS: Final = (
    (200.0, "#3b0f70", "200 bits or more"),
    (80.0, "#8c2981", "80 to 200"),
    (50.0, "#c83e5f", "50 to 80"),
    (40.0, "#c2680a", "40 to 50"),
    (float("-inf"), "#6b7280", "less than 40"),
)
"""Lowest bit score, colour and description of each class; darker is better, and contrast with white is at least 3:1."""


def overview(query: QueryResult, name: str) -> Iterator[str]:
    """The graphic of a query with hits, as successive parts of its text.

    Parameters
    ----------
    query : QueryResult
    name : str
        Prefix of the ids of the graphic's elements, unique in the page.
    """
    hits = query.hits[:MAX_BARS]
    height = _TOP + _ROW * len(hits) + 4
    title, description = f"{name}-title", f"{name}-description"
    bars = "A bar for the best hit" if len(hits) == 1 else f"A bar for each of the best {len(hits)} hits"
    described = f"{bars}; the table below has the same places."
    names = f'role="img" aria-labelledby="{title}" aria-describedby="{description}"'
    yield f'<svg viewBox="0 0 {_WIDTH} {height}" {names}>\n'
    yield f'<title id="{title}">Where on the query the hits align</title>\n'
    yield f'<desc id="{description}">{described}</desc>\n'
    yield f'<line x1="{_LEFT}" y1="{_TOP - 4}" x2="{_WIDTH}" y2="{_TOP - 4}" stroke="#1b1b1b"/>\n'
    for place in ticks(query.length):
        x = _x(place - 1, query.length)
        anchor = "end" if x > _WIDTH - 30 else "start"
        yield f'<line x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{height}" stroke="#d4d4d4"/>'
        yield f'<text x="{x:.1f}" y="{_TOP - 11}" text-anchor="{anchor}">{place}</text>\n'
    for row, hit in enumerate(hits):
        yield _bar(query, hit, _TOP + _ROW * row)
    yield "</svg>\n"


def ticks(length: int) -> list[int]:
    """Positions of a query for axis labels: 1 and round numbers, at most eleven.

    >>> ticks(144)
    [1, 20, 40, 60, 80, 100, 120, 140]
    """
    step = next(
        unit * 10**power for power in range(20) for unit in (1, 2, 5) if length <= _MAX_TICKS * unit * 10**power
    )
    return [1, *range(step, length + 1, step)] if step > 1 else list(range(1, length + 1))


def _x(place: int, length: int) -> float:
    return _LEFT + (_WIDTH - _LEFT) * place / length


def _direction(hit: Hit) -> str:
    """The translated frames, or the minus strand of DNA, as text that follows the name of a hit."""
    frames = [str(frame) for frame in (hit.query_frame, hit.subject_frame) if frame]
    if frames:
        return f" ({'/'.join(frames)})"
    return " (minus)" if hit.is_turned else ""


def _bar(query: QueryResult, hit: Hit, top: int) -> str:
    alignment = hit.alignment
    start, end = _x(alignment.query_start, query.length), _x(alignment.query_end, query.length)
    name = one_line(identifier(hit.subject_header))
    strand = _direction(hit)
    worth = f"score {hit.score}"
    colour = _NO_BITS
    if hit.bits is not None:
        colour = next(colour for least, colour, _ in COLOURS if hit.bits >= least)
        worth = f"{blast_bits(hit.bits).strip()} bits, E-value {blast_evalue(hit.evalue)}"
    label = escape(cut(f"{hit.rank}. {name}", _NAME_LETTERS) + strand)
    tip = escape(f"{hit.rank}. {name}{strand}: {alignment.query_start + 1}-{alignment.query_end}, {worth}")
    return (
        f'<text x="0" y="{top + _BAR}">{label}</text>'
        f'<rect x="{start:.1f}" y="{top}" width="{max(1.0, end - start):.1f}" height="{_BAR}" fill="{colour}">'
        f"<title>{tip}</title></rect>\n"
    )

"""The overview graphic: the positions on the query at which its best hits align, as a list of links with bars of SVG.

The horizontal axis is the query; each hit is a row with its name and a bar from ``qstart`` to ``qend``, coloured by bit
score. The ``html`` report and the pages of the search service show the same graphic. Each row is a link to the hit's
alignment, so bars can be clicked and reached with the keyboard; its title states position and scores. Positions are
percentages of the width, so the graphic fits any screen while its text keeps its size. Colours are those of the classes
in ``page/components.css``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final

from swsearch.hits.hit import Hit
from swsearch.report.numbers import blast_bits, blast_evalue
from swsearch.report.text import one_line
from swsearch.sequences.record import identifier

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
    shown = hits[:MAX_BARS]
    yield f'<div class="overview" role="group" aria-labelledby="{name}-title">\n'
    yield f'<p class="unseen" id="{name}-title">Where on the query the hits align</p>\n'
    yield f'<a class="skip" href="#{after}">Skip the overview</a>\n'
    yield '<svg class="axis" aria-hidden="true" focusable="false">'
    for place in ticks(length):
        x = _percent(place - 1, length)
        anchor = "end" if place > 0.96 * length and place > 1 else "middle" if place > 1 else "start"
        yield f'<line x1="{x}" y1="14" x2="{x}" y2="20"/><text x="{x}" y="11" text-anchor="{anchor}">{place}</text>'
    yield '<line x1="0%" y1="20" x2="100%" y2="20"/></svg>\n<ol>\n'
    for hit in shown:
        yield _row(hit, length, address(hit))
    yield "</ol>\n</div>\n"


def key(hits: Sequence[Hit], n_hits: int) -> Iterator[str]:
    """The caption of the graphic: the meaning of the colours, and how many of ``n_hits`` hits are drawn."""
    if n_hits > MAX_BARS:
        yield f"The best {MAX_BARS} of the {n_hits:,} hits below. "
    if hits[0].bits is not None:
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
    alignment = hit.alignment
    start, width = _percent(alignment.query_start, length), alignment.query_end - alignment.query_start
    return f'<rect x="{start}" y="0" width="{_percent(width, length)}" height="100%"/>'


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
        worth = f"{blast_bits(hit.bits).strip()} bits, E-value {blast_evalue(hit.evalue)}"
    label = f"{hit.rank}. <bdi>{escape(name)}</bdi>{direction(hit)}"
    places = f"{alignment.query_start + 1}-{alignment.query_end}"
    tip = escape(f"{hit.rank}. {name}{direction(hit)}: {places}, {worth}")
    return (
        f'<li><a href="{escape(address)}" title="{tip}" data-rank="{hit.rank}"><span class="name">{label}</span>'
        f'<svg class="bar {bits_class(hit.bits)}" aria-hidden="true" focusable="false">{bar(hit, length)}</svg>'
        f'<span class="unseen">{places}, {escape(worth)}</span></a></li>\n'
    )

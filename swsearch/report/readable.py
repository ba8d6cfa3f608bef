"""``table`` and ``pairwise``: the hits of each query as text for readers.

``table`` is as wide as asked if identifiers and numbers fit. Identifiers are whole. A long one takes the room of the
description on its line, and longer ones make their line longer. If no identifier leaves room for descriptions, there
are none. Coordinates are 1-based and inclusive. In a hit of the minus strand of a DNA query, the positions of the
subject descend, as in BLAST; so do positions in a minus frame. Alignments are in the order of their E-values and
numbered; with ``--max-hsps``, those of one subject follow each other under its number.

``pairwise`` has every alignment in the blocks of :mod:`swsearch.hits.formatting`, as in BLAST's own report. The
alignments of one subject follow each other under its header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Final

from swsearch.hits.formatting import cut, frames, hit_text, one_line, shown_bits, shown_evalue, whole_percent
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report
from swsearch.report.summary import hits_line, query_line, rounds_line, search_facts
from swsearch.sequences.record import identifier, split_header


def _search_lines(run: RunInfo) -> Iterator[str]:
    """The description of the search."""
    return (f"{name + ':':<9} {fact}\n" for name, fact in search_facts(run).items())


# --- table ---


WIDTH: Final = 100
_TITLES: Final = ("id", "description")
_MIN_DESCRIPTION: Final = len(_TITLES[1])


class TableReport(Report):
    """A few lines per query and one line per hit."""

    def __init__(self, width: int = WIDTH) -> None:
        self._width = width

    def write(self, query: QueryResult) -> None:
        """Write the description of the search and the lines of a query."""
        run, stream = self.run, self.stream
        self.write_between("\n")
        stream.write(f"Query:    {query_line(run, query, self._width - 10)}\n")
        stream.writelines(_search_lines(run))
        if (rounds := rounds_line(run, query)) is not None:
            stream.write(f"Rounds:   {rounds}\n")
        stream.write(f"Hits:     {hits_line(run, query)}\n")
        if query.hits:
            stream.write("\n")
            stream.writelines(line + "\n" for line in _table(run, query, self._width))


def number_columns(run: RunInfo) -> dict[str, Callable[[QueryResult, Hit], str]]:
    """The columns of numbers: their titles, and the text of a hit without padding, empty if unknown.

    ``hsp`` is the alignment's place among all that its subject has, if these were counted; ``round`` is that in which a
    subject was included first.
    """
    columns: dict[str, Callable[[QueryResult, Hit], str]] = {
        "length": lambda _, hit: str(hit.subject_length),
        "score": lambda _, hit: str(hit.score),
        "bits": lambda _, hit: shown_bits(hit.bits),
        "Forward": lambda _, hit: shown_bits(hit.forward_bits),
        "E-value": lambda _, hit: shown_evalue(hit.evalue),
        "ident": lambda _, hit: f"{whole_percent(hit.alignment.identities, hit.alignment.columns)}%",
        "cover": lambda query, hit: (
            f"{whole_percent(hit.alignment.query_end - hit.alignment.query_start, query.length)}%"
        ),
        "query": lambda _, hit: f"{hit.qstart}-{hit.qend}",
        "subject": lambda _, hit: f"{hit.sstart}-{hit.send}",
        "hsp": lambda _, hit: "" if hit.n_hsps is None else f"{hit.hsp}/{hit.n_hsps}",
        "round": lambda _, hit: str(hit.round or ""),
        "frames": lambda _, hit: "/".join(map(str, frames(hit))),
        "strand": lambda _, hit: hit.strand,
    }
    is_there = {
        "Forward": run.is_sensitive,
        "hsp": run.counts_alignments,
        "round": run.iterations > 1,
        "frames": run.translates is not None,
        "strand": run.translates is None and run.aligned_alphabet == "dna",
    }
    return {title: cell for title, cell in columns.items() if is_there.get(title, True)}


def _table(run: RunInfo, query: QueryResult, width: int) -> list[str]:
    """The lines of the table; identifiers and descriptions share the width that the numbers do not use."""
    columns = number_columns(run)
    hits = run.listed(query)
    numbers = [list(columns), *([cell(query, hit) for cell in columns.values()] for hit in hits)]
    widths = [max(map(len, column)) for column in zip(*numbers, strict=True)]
    ranks = ["#", *(str(place if run.orders_alignments else hit.rank) for place, hit in enumerate(hits, 1))]
    names = [_TITLES[0], *(one_line(identifier(hit.subject_header)) for hit in hits)]
    described = [_TITLES[1], *(one_line(split_header(hit.subject_header)[1]) for hit in hits)]
    rank_width = max(map(len, ranks))
    texts = _texts(names, described, width - rank_width - sum(widths) - len(widths) - 1)
    lines = []
    for rank, text, cells in zip(ranks, texts, numbers, strict=True):
        padded = " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{rank:>{rank_width}} {text} {padded}".rstrip())
    return lines


def html_table(run: RunInfo, queries: Iterable[QueryResult], n_rows: int) -> str:
    """The first ``n_rows`` hits of some queries as an HTML table, with the columns of the text and the query's id."""
    columns = number_columns(run)
    titles = ["query id", "subject id", *columns]
    lines = [
        [identifier(query.header), identifier(hit.subject_header), *(cell(query, hit) for cell in columns.values())]
        for query in queries
        for hit in run.listed(query)
    ]
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>\n" for line in lines[:n_rows])
    head = "".join(f"<th>{title}</th>" for title in titles)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>"


def _texts(names: list[str], described: list[str], room: int) -> list[str]:
    """Each identifier with its description, padded to at most ``room`` characters if the identifier is not longer.

    >>> _texts(["id", "P1", "P1234567890"], ["description", "globin of a plant", "globin of an animal"], 20)
    ['id       description', 'P1       globin of …', 'P1234567890 globin …']
    """
    lengths = [len(name) for name in names]
    name_width = min(max(lengths), room - _MIN_DESCRIPTION - 1)
    if name_width < min(lengths[1:]):
        width = min(max(lengths), room) if min(lengths[1:]) <= room else max(lengths)
        return [f"{name:<{width}}" for name in names]
    width = min(room, name_width + 1 + max(map(len, described)))
    texts = []
    for name, description in zip(names, described, strict=True):
        left = width - max(name_width, len(name)) - 1
        texts.append(f"{name:<{name_width}} {cut(description, left)}" if left > 1 else name)
    return [f"{text:<{width}}" for text in texts]


# --- pairwise ---


class PairwiseReport(Report):
    """The alignments as text for readers."""

    def begin(self, run: RunInfo) -> None:
        """Write the description of the search."""
        super().begin(run)
        self.stream.writelines(_search_lines(run))

    def write(self, query: QueryResult) -> None:
        """Write the alignments of a query."""
        run, stream = self.run, self.stream
        stream.write(f"\n\nQuery= {query_line(run, query)}\n")
        if (rounds := rounds_line(run, query)) is not None:
            stream.write(f"Rounds: {rounds}\n")
        stream.write(f"Hits: {hits_line(run, query)}\n")
        for hit in query.hits:
            stream.write("\n\n" + hit_text(run, query.letters, hit, with_subject=hit.hsp == 1))

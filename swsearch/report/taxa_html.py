"""``taxa-html``: the number of queries by taxon as one self-contained page, with a graphic to explore and a table.

Each query is assigned to a taxon (:class:`swsearch.report.taxa.CommonAncestors`). The graphic leaves out taxa that only
repeat the number of one below them; the table has all. The page is written when the last query is known.

The graphic is an icicle of counted taxa, in which each taxon is a rectangle whose height is its share. Columns are
levels: a taxon stands to the right of the one above it, whose height it shares with its siblings. The page of organisms
of the search service shows the same graphic. Places are percentages of width and height, so the text keeps its size.
Without scripts it is a picture; ``page/icicle.js`` makes a tree of it, in which the mouse and the keyboard move and
zoom. Colours are those of the classes in ``page/components.css``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from swsearch.report.formatting import one_line
from swsearch.report.html import ROWS_SHOWN, all_rows_button, closing, no_script, opening, text
from swsearch.report.query_taxa import CountedTaxaReport
from swsearch.report.summary import database_line, frames_line, scoring_line
from swsearch.report.taxa import cut_lists
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.taxonomy.subject_taxa import TaxonCount
    from swsearch.taxonomy.tree import Taxonomy

# --- the icicle ---


MAX_TAXA: Final = 5_000
"""Largest number of taxa that are drawn: those with the largest counts."""
HEIGHT: Final = 576
"""Height of the graphic in pixels, as in the style sheet."""
_LEAST_HEIGHT: Final = 13
"""Height in pixels from which a rectangle has text; also in the script."""
_COLUMN: Final = 150
"""Least width of a column in pixels; columns of few levels are wider."""
_N_COLOURS: Final = 6
_MOST_OF_ALL: Final = 0.7
"""Largest share of a branch with a colour of its own."""


def icicle(
    tree: Taxonomy, counts: Sequence[TaxonCount], n_all: int, noun: tuple[str, str], name: str, after: str
) -> Iterator[str]:
    """The graphic, as successive parts of its text.

    Parameters
    ----------
    tree : Taxonomy
    counts : sequence of TaxonCount
        At least one, in the order of :func:`swsearch.taxonomy.subject_taxa.without_repetitions`.
    n_all : int
        The number of which shares are printed, with what has no taxon.
    noun : pair of str
        What is counted, one and several: ``query``, ``queries``.
    name : str
        Prefix of the ids of the graphic's elements, unique in the page.
    after : str
        The id of the element that follows, to which the keyboard can skip.
    """
    total = sum(one.n_clade for one in counts if one.depth == 0)
    least = sorted((one.n_clade for one in counts), reverse=True)[:MAX_TAXA][-1]
    drawn = [one for one in counts if one.n_clade >= least][:MAX_TAXA]
    n_levels = max(one.depth for one in drawn) + 1
    yield f'<div class="icicle">\n<p class="unseen" id="{name}-title">Taxa by their shares of the {noun[1]}</p>\n'
    yield f'<a class="skip" href="#{after}">Skip the graphic</a>\n'
    yield f'<div class="scroll" role="region" aria-labelledby="{name}-title" tabindex="0">'
    yield f'<svg class="taxa" width="{n_levels * _COLUMN}" role="img" aria-labelledby="{name}-title">\n'
    for one, start, colour in zip(drawn, _starts(drawn), _colours(drawn), strict=True):
        height = one.n_clade / total
        hidden = "" if height * HEIGHT >= _LEAST_HEIGHT else ' visibility="hidden"'
        yield (
            f'<svg class="taxon t{colour}" x="{_percent(one.depth, n_levels)}" y="{_percent(start, total)}" '
            f'width="{_percent(1, n_levels)}" height="{_percent(one.n_clade, total)}" '
            f'data-start="{start}" data-count="{one.n_clade}" data-level="{one.depth}">'
            f"<title>{escape(_words(tree, one, n_all, noun))}</title>"
            f'<rect width="100%" height="100%"/><text x="5" y="12"{hidden} aria-hidden="true">'
            f"{escape(shown_name(tree, one.taxon))} {share(one.n_clade, n_all)} %</text></svg>\n"
        )
    yield '</svg></div>\n<p class="shown" role="status"></p>\n</div>\n'


def caption(counts: Sequence[TaxonCount], noun: tuple[str, str]) -> str:
    """What the graphic shows, and how it is used."""
    some = f"The {MAX_TAXA:,} taxa with most {noun[1]}. " if len(counts) > MAX_TAXA else ""
    return (
        f"{some}Heights are numbers of {noun[1]}; taxa whose {noun[1]} are all below one other taxon are left out. "
        "With scripts, a click or Enter enlarges a taxon, arrow keys move, and Escape shows all."
    )


def shown_name(tree: Taxonomy, taxon: int) -> str:
    """The scientific name of a taxon, or its id if it has none."""
    return one_line(tree.name(taxon) or f"taxid {tree.taxid(taxon)}")


def share(n: int, total: int) -> str:
    """A share in percent with one decimal.

    >>> share(1, 3), share(0, 0)
    ('33.3', '0.0')
    """
    return f"{100 * n / total if total else 0:.1f}"


def _words(tree: Taxonomy, one: TaxonCount, n_all: int, noun: tuple[str, str]) -> str:
    rank = tree.rank(one.taxon)
    shown = "" if rank == "no rank" else f", {rank}"
    of_all = f"{counted(one.n_clade, *noun)}, {share(one.n_clade, n_all)} %"
    return f"{shown_name(tree, one.taxon)}{shown}: {of_all}; {one.n_direct:,} at the taxon itself"


def _starts(counts: Sequence[TaxonCount]) -> list[int]:
    """For each taxon, the number of assignments above it in its column: those of the siblings before, and so on."""
    starts = []
    free = [0]  # where the next taxon of each level begins
    for one in counts:
        del free[one.depth + 1 :]
        start = free[one.depth]
        starts.append(start)
        free[one.depth] = start + one.n_clade
        free.append(start)
    return starts


def _colours(counts: Sequence[TaxonCount]) -> Iterator[int]:
    """A colour for each taxon: from 1 for the branches of one level and all below them, 0 for other taxa."""
    level = _level_of_branches(counts)
    colour = 0
    for one in counts:
        if one.depth == level:
            colour = colour % _N_COLOURS + 1
        yield colour if one.depth >= level else 0


def _level_of_branches(counts: Sequence[TaxonCount]) -> int:
    """The first level without a taxon that has nearly all; the last level if there is none."""
    largest = [0] * (max(one.depth for one in counts) + 1)
    for one in counts:
        largest[one.depth] = max(largest[one.depth], one.n_clade)
    return next((level for level, n in enumerate(largest) if n <= _MOST_OF_ALL * largest[0]), len(largest) - 1)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.4f}".rstrip("0").rstrip(".") + "%"


# --- the report ---


_NOUN: Final = ("query", "queries")


class TaxaHtmlReport(CountedTaxaReport):
    """One page for all queries."""

    name = "taxa-html"

    def end(self) -> None:
        """Write the page."""
        from swsearch.taxonomy.subject_taxa import clade_counts, without_repetitions

        run, stream = self.run, self.stream
        percent = self.ancestors.percent
        within = f"lowest common ancestor of the hits with bit scores at most {percent:g} % below the best"
        facts = {
            "Database": database_line(run),
            "Scoring": scoring_line(run),
            "Frames": frames_line(run),
            "Taxon of a query": within,
            "Queries": f"{self.n_queries:,}, of which {self.n_unclassified:,} unclassified",
            "Cut lists": cut_lists(run, percent, self.n_cut),
            "Program": run.program,
        }
        stream.writelines(
            opening(f"Taxa in {run.database.name}", "Taxa of the queries", ("taxa", "Skip to the taxa"), facts)
        )
        stream.write(no_script("Exploring the graphic needs JavaScript; the table has all numbers."))
        stream.write('</header>\n<p class="status unseen" role="status"></p>\n<main id="taxa">\n')
        if self.tree is not None and self.direct:
            counts = clade_counts(self.tree, self.direct)
            shown = without_repetitions(counts)
            stream.write("<figure>\n")
            stream.writelines(icicle(self.tree, shown, self.n_queries, _NOUN, "icicle", "all-taxa"))
            stream.write(f"<figcaption>{caption(shown, _NOUN)}</figcaption>\n</figure>\n")
            stream.writelines(_table(self.tree, counts, self.n_queries))
        else:
            stream.write(f"<p>No query has a taxon: {counted(self.n_unclassified, *_NOUN)} unclassified.</p>\n")
        stream.write(closing("script.js", "icicle.js"))


def _table(tree: Taxonomy, counts: Sequence[TaxonCount], n_queries: int) -> Iterator[str]:
    is_long = len(counts) > ROWS_SHOWN
    yield '<div class="scroll" id="all-taxa" role="region" aria-labelledby="all-taxa-caption" tabindex="0">\n'
    yield '<table id="all-taxa-table" class="short">\n' if is_long else "<table>\n"
    yield f'<caption id="all-taxa-caption">{counted(len(counts), "taxon", "taxa")}</caption>\n<thead>\n<tr>'
    yield '<th scope="col">taxon</th><th scope="col">rank</th><th scope="col" class="number">taxonomy id</th>'
    yield '<th scope="col" class="number">queries</th><th scope="col" class="number">%</th>'
    yield '<th scope="col" class="number">at the taxon itself</th></tr>\n</thead>\n<tbody>\n'
    for one in counts:
        rank = tree.rank(one.taxon)
        indent = f'<span class="level" aria-hidden="true">{"  " * one.depth}</span>'
        yield f'<tr><th scope="row">{indent}{text(shown_name(tree, one.taxon))}</th>'
        yield f'<td>{text(rank) if rank != "no rank" else ""}</td><td class="number">{tree.taxid(one.taxon)}</td>'
        yield f'<td class="number">{one.n_clade}</td><td class="number">{share(one.n_clade, n_queries)}</td>'
        yield f'<td class="number">{one.n_direct}</td></tr>\n'
    yield "</tbody>\n</table>\n</div>\n"
    if is_long:
        yield all_rows_button("all-taxa-table", len(counts))

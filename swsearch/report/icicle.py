"""The graphic of counted taxa, an icicle, and the organisms of the subjects of a query.

In the graphic each taxon is a rectangle whose height is its share. Columns are levels: a taxon stands to the right of
the one above it, whose height it shares with its siblings. ``html`` and ``taxa-html`` and the pages of the search
service show it. Places are percentages of width and height, so the text keeps its size. Without scripts it is a
picture; ``icicle.js`` makes a tree of it, in which the mouse and the keyboard move and zoom. Colours are those of the
classes in ``components.css``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from swsearch.hits.formatting import one_line
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.taxonomy.subject_taxa import TaxonCount, TaxonomyOfSubjects
    from swsearch.taxonomy.tree import Taxonomy

# --- the icicle ---


MAX_TAXA: Final = 5_000
"""Largest number of taxa that are drawn: those with the largest counts."""
_MOST_HEIGHT: Final = 36
"""Largest height of the graphic in rem."""
_OF_A_TAXON: Final = 2
"""Height in rem for each taxon without others below it, if these are few."""
_LEAST_HEIGHT: Final = 13 / 16
"""Height in rem from which a rectangle has text; in the script in pixels."""
_COLUMN: Final = 150
"""Least width of a column in pixels; columns of few levels are wider."""
_N_COLOURS: Final = 6
_MOST_OF_ALL: Final = 0.7
"""Largest share of a branch with a colour of its own."""


def icicle(
    tree: Taxonomy, counts: Sequence[TaxonCount], n_all: int, noun: tuple[str, str], name: str, after: str
) -> Iterator[str]:
    """The graphic and its caption, as successive parts of the text of a figure.

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
    n_lowest = sum(below.depth <= one.depth for one, below in pairwise(drawn)) + 1
    all_height = min(_MOST_HEIGHT, _OF_A_TAXON * n_lowest)
    yield f'<div class="icicle">\n<p class="unseen" id="{name}-title">Taxa by their shares of the {noun[1]}</p>\n'
    yield f'<a class="skip" href="#{after}">Skip the graphic</a>\n'
    yield f'<div class="scroll" role="region" aria-labelledby="{name}-title" tabindex="0">'
    yield f'<svg class="taxa" width="{n_levels * _COLUMN}" height="{all_height}rem" role="img" '
    yield f'aria-labelledby="{name}-title">\n'
    for one, start, colour in zip(drawn, _starts(drawn), _colours(drawn), strict=True):
        height = one.n_clade / total
        hidden = "" if height * all_height >= _LEAST_HEIGHT else ' visibility="hidden"'
        yield (
            f'<svg class="taxon t{colour}" x="{_percent(one.depth, n_levels)}" y="{_percent(start, total)}" '
            f'width="{_percent(1, n_levels)}" height="{_percent(one.n_clade, total)}" '
            f'data-start="{start}" data-count="{one.n_clade}" data-level="{one.depth}">'
            f"<title>{escape(_words(tree, one, n_all, noun))}</title>"
            f'<rect width="100%" height="100%"/><text x="5" y="12"{hidden} aria-hidden="true">'
            f"{escape(shown_name(tree, one.taxon))} {share(one.n_clade, n_all)} %</text></svg>\n"
        )
    yield '</svg></div>\n<p class="shown" role="status"></p>\n</div>\n'
    yield f"<figcaption>{_caption(len(counts), noun[1])}</figcaption>"


def _caption(n_taxa: int, several: str) -> str:
    """What the graphic shows, and how it is used."""
    some = f"The {MAX_TAXA:,} taxa with most {several}. " if n_taxa > MAX_TAXA else ""
    return (
        f"{some}Heights are numbers of {several}; taxa whose {several} are all below one other taxon are left out. "
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


# --- the organisms of a query's subjects ---


_NOUN: Final = ("subject", "subjects")


@dataclass(frozen=True)
class TaxonRow:
    """A taxon with the subjects at and below it.

    ``rank`` is empty for a taxon without one. ``level`` is the number of taxa above it in the list, and ``best_rank``
    the rank of its best subject.
    """

    name: str
    rank: str
    level: int
    taxid: int
    n_subjects: int
    best_rank: int


@dataclass(frozen=True)
class OrganismTree:
    """The taxa of the subjects of a query.

    ``figure`` is the graphic with its caption, as the content of a figure, and empty if there is no taxon. ``rows`` are
    the taxa of the graphic, each followed by those below it. ``n_subjects`` have a taxon, and ``unknown`` have none.
    """

    figure: str
    rows: list[TaxonRow]
    n_subjects: int
    unknown: int


def organism_tree(taxonomy: TaxonomyOfSubjects, subjects: Sequence[tuple[int, str]], name: str) -> OrganismTree:
    """The taxa of subjects; a subject of several organisms is counted at their lowest common ancestor.

    The subjects are their indices and headers, by rank. ``name`` is the prefix of the ids of the graphic's elements,
    unique in the page; ``-table`` is appended for the element that follows, to which the keyboard can skip.
    """
    from swsearch.taxonomy.subject_taxa import clade_counts, without_repetitions

    tree = taxonomy.tree
    direct: Counter[int] = Counter()
    best: dict[int, int] = {}
    for rank, (index, header) in enumerate(subjects, 1):
        taxon = tree.lca(taxonomy.of(index, header).taxa)
        if taxon is not None:
            direct[taxon] += 1
            for above in tree.lineage(taxon):
                best.setdefault(above, rank)
    counts = without_repetitions(clade_counts(tree, direct))
    figure = "".join(icicle(tree, counts, len(subjects), _NOUN, name, f"{name}-table")) if counts else ""
    rows = [
        TaxonRow(
            shown_name(tree, one.taxon), "" if tree.rank(one.taxon) == "no rank" else tree.rank(one.taxon), one.depth,
            tree.taxid(one.taxon), one.n_clade, best[one.taxon],
        )
        for one in counts
    ]  # fmt: skip
    n_subjects = sum(direct.values())
    return OrganismTree(figure, rows, n_subjects, len(subjects) - n_subjects)

"""``taxa-html``: the number of queries by taxon as one self-contained page, with a graphic to explore and a table.

Each query is assigned to a taxon (:class:`swsearch.report.taxa.CommonAncestors`). The graphic
(:mod:`swsearch.report.icicle`) leaves out taxa that only repeat the number of one below them; the table has all.
The page is written when the last query is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from swsearch.report.html import ROWS_SHOWN, all_rows_button, closing, opening, text
from swsearch.report.icicle import icicle, share, shown_name
from swsearch.report.query_taxa import CountedTaxaReport
from swsearch.report.summary import search_facts
from swsearch.report.taxa import cut_lists
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.taxonomy.subject_taxa import TaxonCount
    from swsearch.taxonomy.tree import Taxonomy

# --- the report ---


_NOUN: Final = ("query", "queries")


class TaxaHtmlReport(CountedTaxaReport):
    """One page for all queries."""

    def end(self) -> None:
        """Write the page."""
        from swsearch.taxonomy.subject_taxa import clade_counts, without_repetitions

        run, stream = self.run, self.stream
        percent = self.ancestors.percent
        within = f"lowest common ancestor of the hits with bit scores at most {percent:g} % below the best"
        facts = {
            **search_facts(run),
            "Taxon of a query": within,
            "Queries": f"{self.n_queries:,}, of which {self.n_unclassified:,} unclassified",
            "Cut lists": cut_lists(run, percent, self.n_cut),
            "Program": run.program,
        }
        title, skip = f"Taxa in {run.database.name}", ("taxa", "Skip to the taxa")
        remark = "Exploring the graphic needs JavaScript; the table has all numbers."
        stream.writelines(opening(title, "Taxa of the queries", skip, facts, remark))
        if self.tree is not None and self.direct:
            counts = clade_counts(self.tree, self.direct)
            shown = without_repetitions(counts)
            stream.write("<figure>\n")
            stream.writelines(icicle(self.tree, shown, self.n_queries, _NOUN, "icicle", "all-taxa"))
            stream.write("\n</figure>\n")
            stream.writelines(_table(self.tree, counts, self.n_queries))
        else:
            stream.write(f"<p>No query has a taxon: {counted(self.n_unclassified, *_NOUN)} unclassified.</p>\n")
        stream.write(closing("script.js", "icicle.js"))


def _table(tree: Taxonomy, counts: Sequence[TaxonCount], n_queries: int) -> Iterator[str]:
    """The table of all taxa, of which more than :data:`ROWS_SHOWN` are shown on request."""
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

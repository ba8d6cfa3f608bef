"""A result as the templates show it: facts of the run, one page of the hits of a query, and their organisms.

Numbers become text here, in the formats of the reports, and addresses are put together here; templates only place them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from swsearch.database.stored_taxonomy import taxonomy_of_subjects
from swsearch.errors import InputError
from swsearch.hits.formatting import one_line, shown_bits, shown_evalue, value_lines, whole_percent
from swsearch.hits.hit import Hit
from swsearch.hits.result import TAXONOMY_DIGEST, QueryResult, RunInfo
from swsearch.report.html import (
    MAX_BARS,
    UNLIKELY,
    alignment_key,
    alignment_rows,
    bar,
    direction,
    first_unlikely,
    key,
    link_list,
    overview,
)
from swsearch.report.readable import number_columns
from swsearch.report.summary import COMPOSITION_NOTE, HSP_NOTE, hits_line, loses_subjects, rounds_line, search_facts
from swsearch.sequences.headers import header_organism, header_taxid
from swsearch.service.pages.templating import description_of, whole
from swsearch.service.service import Service
from swsearch.store.results import SORTS, HitFilter, HitView, ResultPage
from swsearch.store.runs import StoredRun
from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects
from swsearch.words import counted

ROWS: Final = 50
"""Number of hits on a page."""
MAX_ROWS: Final = 500
"""Largest number of hits on a page that an address can ask for."""
_SMALLEST_FIRST: Final = frozenset({"rank", "id", "evalue", "length", "query_start", "subject_start"})
_FILTERS: Final = ("text", "taxid", "rank", "max_evalue", "min_identity", "min_query_coverage")


@dataclass(frozen=True)
class Column:
    """A column of the table of hits; ``sort`` is one of :data:`SORTS`."""

    title: str
    sort: str
    meaning: str
    narrow: bool = False
    """Whether it is also shown on a narrow screen."""
    text: Callable[[Hit, int], str] | None = None
    """The text for a hit of a query of some length; None for the columns before the bar, which the template makes."""


def _percentage(part: int, whole: int) -> str:
    return f"{whole_percent(part, whole)}%"


_COVERED: Final = Column(
    "subj. cov.", "subject_coverage", "part of the subject between the alignment's ends, in percent",
    text=lambda hit, _: _percentage(hit.alignment.subject_end - hit.alignment.subject_start, hit.subject_length),
)  # fmt: skip
_PLACE: Final = Column(
    "on subject", "subject_start", "aligned part of the subject, descending if it is reversed",
    text=lambda hit, _: f"{hit.sstart:,}-{hit.send:,}",
)  # fmt: skip
"""In place of the coverage, which says little about genes of a genome."""
_FORWARD: Final = Column(
    "Forward", "forward_bits", "bits of the sum over all alignments", text=lambda hit, _: shown_bits(hit.forward_bits)
)
_COLUMNS: Final = (
    Column("#", "rank", "rank", narrow=True),
    Column("subject", "id", "identifier and description of the subject", narrow=True),
    Column("on query", "query_start", "aligned part of the query"),
    Column("bits", "bits", "bit score", narrow=True, text=lambda hit, _: shown_bits(hit.bits)),
    _FORWARD,
    Column(
        "E-value", "evalue", "number of such hits expected by chance", narrow=True,
        text=lambda hit, _: shown_evalue(hit.evalue),
    ),
    Column(
        "identity", "identity", "equal letters in the alignment, in percent",
        text=lambda hit, _: _percentage(hit.alignment.identities, hit.alignment.columns),
    ),
    Column(
        "query cov.", "query_coverage", "part of the query between the alignment's ends, in percent",
        text=lambda hit, length: _percentage(hit.alignment.query_end - hit.alignment.query_start, length),
    ),
    _COVERED,
    Column(
        "columns", "columns", "length of the alignment, gaps included", text=lambda hit, _: f"{hit.alignment.columns:,}"
    ),
    Column("length", "length", "length of the subject", text=lambda hit, _: f"{hit.subject_length:,}"),
)  # fmt: skip
_NOTES: Final[Mapping[str, Callable[[Hit], str]]] = {
    "hsp": lambda hit: "" if hit.n_hsps is None else f"{hit.hsp}/{hit.n_hsps}",
    "strand": lambda hit: hit.strand,
    "frames": lambda hit: direction(hit).strip(" ()"),
}
"""The columns that only some runs have, by their titles."""


def read_view(given: Mapping[str, str]) -> tuple[HitView, dict[str, str]]:
    """The view that an address asks for; an unknown order or page is the first one.

    Values of the filter that cannot be used are left out; there is a message for each, by its name.
    """
    sort = given.get("sort", "rank")
    rows = whole(given.get("rows", ""))
    limit = ROWS if rows is None else min(max(rows, 1), MAX_ROWS)
    keep, errors = _read_filter(given)
    view = HitView(
        sort=sort if sort in SORTS else "rank",
        descending=given.get("dir") == "desc",
        keep=keep,
        offset=(page_number(given) - 1) * limit,
        limit=limit,
    )
    return view, errors


def wanted_hits(given: Mapping[str, str]) -> HitView:
    """The view that an address asks for; raises InputError for a filter that cannot be used."""
    view, errors = read_view(given)
    if errors:
        raise InputError("; ".join(errors.values()))
    return view


def page_number(given: Mapping[str, str]) -> int:
    """The page of a list that an address names, from 1; the first if it names none."""
    return max(1, whole(given.get("page", "")) or 1)


def _read_filter(given: Mapping[str, str]) -> tuple[HitFilter, dict[str, str]]:
    errors: dict[str, str] = {}
    taxid = given.get("taxid", "").strip()
    organism = whole(taxid)
    if taxid and organism is None:
        errors["taxid"] = "Give one taxonomy id, a whole number."
    numbers: dict[str, Any] = {}
    for name in ("max_evalue", "min_identity", "min_query_coverage"):
        text = given.get(name, "").strip()
        try:
            numbers[name] = float(text) if text else None
        except ValueError:
            errors[name] = "Give a number, such as 10 or 1e-5."
    ranks = [whole(rank.strip()) for rank in given.get("rank", "").split(",") if rank.strip()]
    if None in ranks:
        errors["rank"] = "Give ranks of hits, whole numbers."
    numbers["ranks"] = frozenset(ranks) if ranks and None not in ranks else None
    return HitFilter(text=given.get("text", "").strip(), taxid=organism, **numbers), errors


def fact_lines(info: RunInfo, origin: str) -> list[tuple[str, str]]:
    """Names and texts of the facts of a run; ``origin`` is that of its database, empty if that is not offered now."""
    searched = search_facts(info)
    searched["Scoring"] = " ".join(searched["Scoring"].split())
    facts = {
        "Database": searched.pop("Database"),
        "Made": origin,
        **searched,
        "Program": info.program,
        "Checksum": f"generation {info.database.generation}, SHA-256 {info.database.digest[:16]}…",
    }
    return [(name, one_line(text)) for name, text in facts.items() if text]


@dataclass(frozen=True)
class HitsView:
    """One page of the hits of a query; ``base`` is the address of its first page, with the parameters ``given``."""

    run: StoredRun
    page: ResultPage
    view: HitView
    base: str
    given: Mapping[str, str]

    @property
    def query(self) -> QueryResult:
        """The query with the hits of the page."""
        return self.page.query

    @property
    def description(self) -> str:
        """The header of the query without its first word, and the query's length."""
        unit = "base" if self.run.info.query_alphabet == "dna" else "residue"
        size = f"({counted(self.query.length, unit)})"
        return f"{description_of(self.query.header)} {size}".lstrip()

    @property
    def extra_titles(self) -> list[str]:
        """Titles of the columns that only some runs have: ``hsp``, and ``strand`` or ``frames``."""
        return [title for title in number_columns(self.run.info) if title in _NOTES]

    @property
    def hsp_note(self) -> str:
        """What the column ``hsp`` means; empty without it."""
        return HSP_NOTE if self.run.info.counts_alignments else ""

    @property
    def columns(self) -> list[Column]:
        """The columns of the table; subjects of DNA, which may be long, have places in place of coverages."""
        has_places = self.run.info.database.alphabet == "dna"
        known = (one for one in _COLUMNS if one is not _FORWARD or self.run.info.is_sensitive)
        return [_PLACE if one is _COVERED and has_places else one for one in known]

    @property
    def headings(self) -> list[tuple[Column, str, str]]:
        """The columns, each with the address that sorts by it, and the direction in which the table is sorted by it.

        The direction is ``ascending``, ``descending``, or empty for a column by which the table is not sorted.
        """
        made = []
        for column in self.columns:
            sorted_now = self.view.sort == column.sort
            first_down = column.sort not in _SMALLEST_FIRST
            down = (not self.view.descending) if sorted_now else first_down
            now = ("descending" if self.view.descending else "ascending") if sorted_now else ""
            address = self.address(sort=column.sort, dir="desc" if down else "asc", page=None)
            made.append((column, address, now))
        return made

    @property
    def rows(self) -> list[tuple[Hit, str]]:
        """The hits of the page, each with the line above it; empty for none."""
        view, unlikely = self.view, None
        if view.sort in ("rank", "evalue") and not view.descending:
            by_alignment = view.sort == "evalue" or view.orders_alignments
            unlikely = first_unlikely(self.query.hits, by_alignment=by_alignment)
        return [(hit, UNLIKELY if hit is unlikely else "") for hit in self.query.hits]

    def bar(self, hit: Hit) -> Markup:
        """The bar of a hit."""
        return Markup(bar(hit, self.query.length))

    def cells(self, hit: Hit) -> list[tuple[str, bool]]:
        """The texts of the columns after the bar, each with whether a narrow screen shows it."""
        return [(one.text(hit, self.query.length), one.narrow) for one in self.columns if one.text is not None]

    def notes(self, hit: Hit) -> list[str]:
        """The texts of the columns that only some runs have."""
        return [_NOTES[title](hit) for title in self.extra_titles]

    @property
    def filters(self) -> dict[str, str]:
        """The parameters of the filter, as they were given."""
        return {name: self.given[name] for name in _FILTERS if self.given.get(name, "").strip()}

    def address(self, **changes: str | None) -> str:
        """The address of this view with other parameters; None leaves one out."""
        parameters = {**{name: self.given.get(name) for name in ("sort", "dir", "page", "rows", *_FILTERS)}, **changes}
        text = urlencode({name: value for name, value in parameters.items() if value})
        return f"{self.base}?{text}" if text else self.base

    @property
    def filter_query(self) -> str:
        """The filter's parameters as the end of an address, after ``?``; empty if there are none."""
        return urlencode(self.filters)

    @property
    def page_number(self) -> int:
        """Number of the page, from 1."""
        return self.view.offset // self.view.limit + 1

    @property
    def n_pages(self) -> int:
        """Number of pages, at least 1."""
        return max(1, -(-self.page.n_matching // self.view.limit))

    @property
    def page_links(self) -> list[tuple[str, str]]:
        """Pages to go to, by their names."""
        now, last = self.page_number, self.n_pages
        wanted = {"First": 1, "Previous": now - 1, "Next": now + 1, "Last": last}
        return [(name, self.address(page=str(n))) for name, n in wanted.items() if 1 <= n <= last and n != now]

    @property
    def range_line(self) -> str:
        """Which hits the page shows."""
        if not self.page.n_matching:
            return "No hit fits the filter." if self.view.keep else "There are no hits."
        first = self.view.offset + 1
        if not self.query.hits:
            return f"There are {self.n_pages:,} pages."
        last = self.view.offset + len(self.query.hits)
        of = f"{self.page.n_matching:,}"
        if self.view.keep:
            of += f" that fit the filter, of {self.page.n_hits:,}"
        return f"Hits {first:,} to {last:,} of {of}"

    @property
    def hits_line(self) -> str:
        """How many subjects passed, and how many of them are stored."""
        hits = hits_line(self.run.info, self.query, self.page.n_subjects, self.page.n_hits)
        rounds = rounds_line(self.run.info, self.query)
        return hits if rounds is None else f"{hits}. Rounds: {rounds}"

    @property
    def composition_note(self) -> str:
        """What the adjustment for composition means, if it left subjects out; otherwise empty."""
        return COMPOSITION_NOTE if loses_subjects(self.run.info, self.query, self.page.n_subjects) else ""


def overview_figure(query: QueryResult, n_hits: int, base: str) -> Markup:
    """The overview of the first hits with its key; empty without hits."""
    if not query.hits:
        return Markup()
    hits = query.hits[:MAX_BARS]
    graphic = "".join(overview(hits, query.length, "overview", lambda hit: f"{base}/hits/{hit.rank}", "hits"))
    return Markup(f"{graphic}<figcaption>{''.join(key(hits, n_hits))}</figcaption>")


def subject_values(run: RunInfo, query: QueryResult, n_subjects: int) -> dict[str, Any]:
    """What the page of a subject shows; ``query.hits`` are the alignments of one of ``n_subjects`` subjects.

    Its first ``hit``; the ``alignments``, each with lines of values and with rows as HTML; the ``key`` to the colours
    of letters; ``links`` to public databases, empty if its identifier has none; and ``neighbours``, words for the hits
    before and after it with their ranks.
    """
    first = query.hits[0]
    around = [("Previous hit", first.rank - 1), ("Next hit", first.rank + 1)]
    return {
        "hit": first,
        "alignments": [(value_lines(run, hit), Markup(alignment_rows(run, query, hit))) for hit in query.hits],
        "key": Markup(alignment_key(run)),
        "links": Markup(link_list(first)),
        "neighbours": [(words, rank) for words, rank in around if 1 <= rank <= n_subjects],
    }


# --- organisms of the hits ---


@dataclass
class Organism:
    """An organism with its subjects, the best of which has the rank ``best_rank``."""

    name: str
    taxid: int | None
    n_subjects: int
    best_rank: int


def organisms(headers: Iterable[str]) -> tuple[list[Organism], int]:
    """The organisms of subjects, those with most subjects first, and the number of subjects without an organism.

    Headers name an organism by ``OX=`` and ``OS=`` of UniProt. Subjects with a taxonomy id are counted by it, others by
    the organism's name.

    >>> found, unknown = organisms(["a OS=Homo sapiens OX=9606", "b OS=Human OX=9606", "c OS=Mus musculus", "d"])
    >>> [(one.name, one.taxid, one.n_subjects) for one in found], unknown
    ([('Homo sapiens', 9606, 2), ('Mus musculus', None, 1)], 1)
    """
    found: dict[int | str, Organism] = {}
    unknown = 0
    for rank, header in enumerate(headers, 1):
        taxid, name = header_taxid(header), header_organism(header)
        key = name if taxid is None else taxid
        if key is None:
            unknown += 1
        elif key in found:
            found[key].n_subjects += 1
        else:
            found[key] = Organism(name or f"taxonomy id {taxid}", taxid, 1, rank)
    return sorted(found.values(), key=lambda one: (-one.n_subjects, one.best_rank)), unknown


@contextmanager
def taxonomy_of_run(service: Service, run: StoredRun) -> Iterator[TaxonomyOfSubjects | None]:
    """The organisms of the subjects of a run, if its database had a taxonomy then and is still offered; else None."""
    has_taxonomy = TAXONOMY_DIGEST in run.info.parameters
    with service.open_database(run.info.database) if has_taxonomy else nullcontext() as database:
        yield taxonomy_of_subjects(database)


def with_taxa(view: HitView, service: Service, run: StoredRun, number: int) -> HitView:
    """The view of a query, with the subjects of a taxon and of all below it in place of its id, if there is a taxonomy.

    ``number`` is that of the query, from 0. Raises :class:`swsearch.errors.StoreError` if the run has no such query.
    """
    taxid = view.keep.taxid
    if taxid is None:
        return view
    with taxonomy_of_run(service, run) as taxonomy:
        if taxonomy is None:
            return view
        tree = taxonomy.tree
        taxon = tree.index(taxid)
        chosen = set()
        for index, header in service.store.results.subjects(run.id, number):
            found = taxonomy.of(index, header)
            if taxid in found.taxids or any(taxon in tree.lineage(one) for one in found.taxa):
                chosen.add(index)
    return replace(view, keep=replace(view.keep, taxid=None, subjects=frozenset(chosen)))

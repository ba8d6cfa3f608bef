"""HTML reports: the consistency of the page, and its behaviour in a real browser.

The expected values come from the records, from the ``pairwise`` report, from Python's sort, or from hand calculation.
"""

import base64
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import groupby

import pytest

from swsearch.errors import InputError
from swsearch.hits.formatting import blocks
from swsearch.report.html import MAX_BARS, ROWS_SHOWN, alignment_rows, first_unlikely, overview
from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects
from tests.patience import LIMIT_SECONDS
from tests.report.conftest import DNA_QUERIES, DNA_RUN, GAPPED, MINUS, PROTEIN_QUERIES, PROTEIN_RUN, SELF, make_run
from tests.service.pages.browsers import Opened, keep, violations, wide
from tests.taxonomy.dumps import EXCERPT

VOID = {"meta", "link", "br"}
EVIL = replace(
    SELF,
    rank=3,
    evalue=1e-9,
    subject_header="<img/src=x/onerror=alert(1)> </pre></article><script>document.title='evil'</script>\"'&amp;",
)


class Page(HTMLParser):
    """The elements of a page; each must be closed in the order of nesting."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        self.addresses += [values[name] for name in ("href", "src") if name in values]
        for name in ("aria-labelledby", "aria-describedby", "aria-controls"):
            self.references += values.get(name, "").split()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def page_of(written):
    def make(**arguments):
        return Page(written("html", **arguments))

    return make


def many(n_hits):
    """Return a query with hits whose orders by rank, by score and by identifier differ, with ties in each."""
    hits = tuple(
        replace(
            SELF, rank=rank, score=900 - rank // 3, subject_header=f"s{(rank * 7) % n_hits + 1} some protein",
            subject_index=rank, evalue=1e-90 * rank, bits=300.0 - rank // 3 if rank > 2 else None,
        )
        for rank in range(1, n_hits + 1)
    )  # fmt: skip
    return replace(PROTEIN_QUERIES[0], hits=hits, n_passed=n_hits)


@pytest.mark.parametrize(("run", "queries"), [(PROTEIN_RUN, PROTEIN_QUERIES), (DNA_RUN, DNA_QUERIES)])
def test_the_page_is_whole_and_refers_to_itself_alone(page_of, run, queries):
    """Elements are nested correctly, identifiers are unique, and all references point into the page."""
    page = page_of(run=run, queries=queries)
    assert len(page.ids) == len(set(page.ids))
    assert set(page.references) <= set(page.ids)
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= set(page.ids)
    assert [address for address in page.addresses if not address.startswith("#")] == ["data:,"]
    assert page.tags.count("article") == sum(len(query.hits) for query in queries)
    assert page.tags.count("figure") == sum(bool(query.hits) for query in queries)


def test_headers_are_text_whatever_they_hold(page_of):
    """A header that contains markup adds no element."""
    query = replace(PROTEIN_QUERIES[0], header="<b>&", hits=(*PROTEIN_QUERIES[0].hits, EVIL))
    page = page_of(queries=(query,))
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert "b" not in page.tags


def test_bars_lie_where_the_hits_do(written):
    """By hand: 144 of the query's 144 residues are 100 % of the width, residues 1-117 are 117 / 144 of it."""
    bars = re.findall(r'href="#(\w+)" title="([^"]*)".*?<rect x="([\d.]+%)" y="0" width="([\d.]+%)"', written("html"))
    assert bars == [
        ("q1h1", "1. s1: 1-144, 280 bits, E-value 3e-103", "0%", "100%"),
        ("q1h2", "2. s3: 1-117, 175 bits, E-value 1e-62", "0%", "81.25%"),
    ]


def test_a_bar_in_the_middle_begins_where_its_alignment_does(written):
    """By hand: residues 37-72 of 144 begin at 36 / 144 = 25 % and are 25 % wide."""
    middle = replace(SELF, alignment=replace(SELF.alignment, query_start=36, query_end=72))
    assert '<rect x="25%" y="0" width="25%"' in "".join(overview([middle], 144, "o", lambda hit: "#hit", "after"))


def test_only_the_best_hits_are_drawn_and_the_page_says_so(written):
    report = written("html", queries=(many(MAX_BARS + 7),))
    assert report.count('<rect x="') == MAX_BARS
    assert f"The best {MAX_BARS} of the {MAX_BARS + 7} hits below." in report
    assert report.count('<th scope="row">') == MAX_BARS + 7


def test_letters_are_marked_as_the_row_between_says(written):
    """Source: the row between the sequences, whose marks are BLAST's: a letter or a bar, ``+``, or nothing."""
    for run, query, hit in ((PROTEIN_RUN, PROTEIN_QUERIES[0], GAPPED), (DNA_RUN, DNA_QUERIES[0], MINUS)):
        rows = alignment_rows(run, query, hit)
        plain = "\n".join(blocks(run, query.letters, hit))
        assert unescape(re.sub("<[^>]*>", "", rows)) == plain
        classes = []
        for line in rows.split("\n"):
            found = re.findall(r'<span class="(\w+)">([^<]*)</span>', line)
            classes.append([(name, len(letters)) for name, letters in found])
        for place, block in enumerate(blocks(run, query.letters, hit)):
            query_row, between, *_ = block.split("\n")
            start, end = re.search(r"\S+(?=  \d+$)", query_row).span()
            marks = between[start:end].ljust(end - start)
            expected = [({" ": "", "+": "similar"}.get(mark, "same")) for mark in marks]
            runs = [(name, len(list(several))) for name, several in groupby(expected) if name]
            assert classes[4 * place] == classes[4 * place + 2] == runs, "both rows"
    assert "similar" in written("html"), "the key says what the colours mean"


def test_the_line_between_likely_and_other_hits_follows_the_order(written):
    """By hand: an E-value of 0.001 is above the line, one of 0.0011 below."""
    evalues = (1e-9, 0.001, 0.0011, 5.0)
    hits = tuple(replace(SELF, rank=rank, evalue=evalue) for rank, evalue in enumerate(evalues, 1))
    report = written("html", queries=(replace(PROTEIN_QUERIES[0], hits=hits),))
    row = r'<tr class="limit">|<tr(?: class="unlikely")?><td class="number">\d'
    assert re.findall(row, report) == [
        '<tr><td class="number">1', '<tr><td class="number">2', '<tr class="limit">',
        '<tr class="unlikely"><td class="number">3', '<tr class="unlikely"><td class="number">4',
    ]  # fmt: skip
    assert 'class="limit"' not in written("html"), "all hits are likely"


def test_a_second_alignment_of_a_likely_subject_is_no_place_for_the_line():
    likely, second, third = SELF, replace(SELF, hsp=2, evalue=1.0), replace(SELF, rank=3, evalue=1.0)
    assert first_unlikely([likely, second, likely], by_alignment=False) is None
    assert first_unlikely([likely, second, third], by_alignment=False) is third
    assert first_unlikely([likely, second, third], by_alignment=True) is second
    assert first_unlikely([], by_alignment=True) is first_unlikely([likely], by_alignment=False) is None


def test_hits_lead_to_the_next_and_to_public_databases(written):
    known = replace(GAPPED, subject_header="sp|P02232|LGB1_VICFA Leghemoglobin-1")
    report = written("html", queries=(replace(PROTEIN_QUERIES[0], hits=(SELF, known)),))
    first, second = report.split("<article ")[1:]
    assert 'href="#q1h2">Next hit' in first
    assert "Previous hit" not in first
    assert "https://" not in first, "a private name has no link"
    assert 'href="#q1h1">Previous hit' in second
    assert "Next hit" not in second
    assert '<a href="https://www.uniprot.org/uniprotkb/P02232" rel="external noopener noreferrer">UniProt</a>' in second


def test_a_file_of_links_that_cannot_be_used_is_refused_before_anything_is_written(written, monkeypatch):
    monkeypatch.setenv("SWSEARCH_LINKS", "/nowhere/links.tsv")
    with pytest.raises(InputError, match=r"/nowhere/links\.tsv"):
        written("html")


class Shown:
    """A report in a page of its own; ``call`` sends what Playwright has no function for to the browser."""

    def __init__(self, context, path):
        self.requests = []
        self.complaints = []
        self._page = context.new_page()
        self._page.on("request", lambda request: self.requests.append(request.url))
        self._page.on("console", lambda message: self.complaints.append(message.text))
        self._page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self._session = context.new_cdp_session(self._page)
        self._path = path
        self.load()

    def load(self):
        self._page.goto(self._path.as_uri())

    def call(self, method, **parameters):
        return self._session.send(method, parameters)

    def evaluate(self, expression):
        return self._page.evaluate(expression)

    def press(self, key):
        self._page.keyboard.press(key)

    def click(self, selector):
        self._page.locator(selector).click()


@pytest.fixture
def show(browser, written, tmp_path):
    """Open a report in the browser; at the end, there must be no network request and no error message."""
    context = browser.new_context()
    context.set_default_timeout(1000 * LIMIT_SECONDS)
    opened = []

    def show_one(run=PROTEIN_RUN, queries=PROTEIN_QUERIES):
        path = tmp_path / "hits.html"
        path.write_bytes(written("html", run, queries).encode("utf-8", "surrogateescape"))
        opened.append(Shown(context, path))
        return opened[-1]

    yield show_one
    context.close()
    for shown in opened:
        assert set(shown.requests) == {(tmp_path / "hits.html").as_uri()}
        assert shown.complaints == []


def column(browser, number):
    return browser.evaluate(f"Array.from(document.querySelector('tbody').rows, row => row.cells[{number}].textContent)")


def directions(browser):
    return browser.evaluate("Array.from(document.querySelectorAll('thead th'), cell => cell.getAttribute('aria-sort'))")


def test_a_browser_shows_the_alignments(show):
    """Source: the blocks of the ``pairwise`` report, which are BLAST's."""
    browser = show(DNA_RUN, DNA_QUERIES)
    shown = browser.evaluate("Array.from(document.querySelectorAll('pre'), element => element.textContent)")
    assert shown == ["\n".join(blocks(DNA_RUN, DNA_QUERIES[0].letters, hit)) for hit in DNA_QUERIES[0].hits]
    assert column(browser, 10) == ["5-70", "65-4"]
    assert column(browser, 11) == ["plus", "minus"]
    assert MINUS.rank == 2


def test_the_line_is_there_only_where_the_best_e_value_comes_first(show):
    evalues = (1e-9, 0.0005, 0.002, 5.0)
    hits = tuple(
        replace(SELF, rank=rank, evalue=evalue, score=score)
        for (rank, evalue), score in zip(enumerate(evalues, 1), (4, 3, 1, 2), strict=True)
    )
    browser = show(queries=(replace(PROTEIN_QUERIES[0], hits=hits),))
    place = "Array.from(document.querySelector('tbody').rows).findIndex(row => row.className === 'limit')"
    places = []
    for title in ("score", "E-value", "E-value", "#"):
        browser.click(f"th button:text-is('{title}')")
        places.append(browser.evaluate(place))
    assert places == [-1, 2, -1, 2]


def test_a_click_sorts_and_another_sorts_the_other_way(show):
    """Source: Python's stable sort of the same records; a hit without a bit score is last in both directions."""
    query = many(40)
    browser = show(queries=(query,))
    known = [hit for hit in query.hits if hit.bits is not None]
    unknown = [str(hit.rank) for hit in query.hits if hit.bits is None]
    assert column(browser, 0) == [str(rank) for rank in range(1, 41)]
    browser.click("thead th:nth-child(6) button")
    falling = sorted(known, key=lambda hit: -hit.bits)
    assert column(browser, 0) == [str(hit.rank) for hit in falling] + unknown
    assert directions(browser)[5] == "descending"
    assert directions(browser).count(None) == 10
    browser.click("thead th:nth-child(6) button")
    rising = sorted(falling, key=lambda hit: hit.bits)
    assert column(browser, 0) == [str(hit.rank) for hit in rising] + unknown
    assert directions(browser)[5] == "ascending"


def test_the_keyboard_reaches_and_sorts_a_column_and_says_so(show):
    """Source: names sorted with their numbers as numbers: s1, s2, … s40."""
    browser = show(queries=(many(40),))
    focus = "document.activeElement.textContent"
    for _ in range(4):
        browser.press("Tab")
        if browser.evaluate(focus) == "Skip the overview":
            break
    browser.press("Enter")
    for _ in range(4):
        browser.press("Tab")
        if browser.evaluate(focus) == "id":
            break
    browser.press("Enter")
    assert column(browser, 1) == [f"s{number}" for number in range(1, 41)]
    assert browser.evaluate("document.querySelector('[role=status]').textContent") == "Sorted by id, ascending."
    assert browser.evaluate("document.activeElement.textContent") == "id"


def accessible(browser):
    """Return role and name of everything that the browser reports to a screen reader, once the page is drawn."""
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    return {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]}


def test_a_screen_reader_finds_names_and_roles(show):
    """Source: the browser's accessibility tree."""
    browser = show()
    named = accessible(browser)
    assert ("group", "Where on the query the hits align") in named
    assert ("link", "1. s1 1-144, 280 bits, E-value 3e-103") in named
    assert ("table", "Hits of q1") in named
    assert ("columnheader", "E-value") in named
    assert ("columnheader", "rank") in named
    assert ("rowheader", "s3") in named
    assert ("heading", "q1 some query protein (144 residues)") in named
    assert ("article", "1. s1 leghemoglobin desc one") in named
    assert {role for role, _ in named} >= {"main", "banner", "navigation", "status", "region"}
    assert browser.evaluate("document.documentElement.lang") == "en"


def test_a_screen_reader_finds_the_titles_of_what_is_far_off_the_screen(show):
    """Source: the browser's accessibility tree of a page of 30 queries with 20 hits each."""
    named = accessible(
        show(queries=[replace(many(20), number=number, header=f"query_{number}") for number in range(30)])
    )
    assert {("heading", f"query_{number} (144 residues)") for number in range(30)} <= named
    assert {name for role, name in named if role == "heading"} >= {
        f"{rank}. s{rank * 7 % 20 + 1} some protein" for rank in range(1, 21)
    }


def test_a_bar_leads_to_its_alignment(show):
    browser = show()
    browser.click(".overview li:nth-child(2) a")
    assert browser.evaluate("location.hash") == "#q1h2"
    assert browser.evaluate("document.querySelector(':target h4').textContent") == "2. s3"


@pytest.mark.parametrize(("width", "n_lines"), [(1200, 3), (1600, 2)])
def test_a_wide_window_shows_the_whole_table_with_descriptions_of_few_lines(show, width, n_lines):
    """The description has 90 characters, as half of those in Swiss-Prot have or fewer."""
    words = "Probable tRNA uridine 5-carboxymethylaminomethyl modification enzyme OS=Some organism OX=1"
    hits = tuple(replace(hit, subject_header=f"sp|Q600K7|ENGB_MYCH2 {words}") for hit in many(20).hits)
    browser = show(queries=(replace(many(20), hits=hits),))
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    assert browser.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.scroll'))") == 0
    shown = (
        "(e => { const s = getComputedStyle(e), f = Number.parseFloat; return"
        " (e.clientHeight - 2 * f(s.paddingTop)) / f(s.lineHeight); })"
    )
    assert round(browser.evaluate(f"{shown}(document.querySelector('td.text'))")) <= n_lines


def test_thousands_of_hits_show_500_rows_until_asked_and_print_whole(show):
    """By hand: 3,000 hits; sorting by rank in reverse shows the last 500."""
    n_hits = 3000
    browser = show(queries=(many(n_hits),))
    laid_out = "Array.from(document.querySelector('tbody').rows).filter(row => row.offsetHeight > 0).length"
    assert browser.evaluate(laid_out) == ROWS_SHOWN == 500
    browser.click("thead th:nth-child(1) button")
    assert column(browser, 0)[:2] == ["3000", "2999"]
    assert browser.evaluate(laid_out) == ROWS_SHOWN
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate(laid_out) == n_hits
    assert browser.evaluate("document.querySelector('button.all').offsetHeight") == 0
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.click("button.all")
    assert browser.evaluate(laid_out) == n_hits


def test_it_prints(show):
    """The browser writes a PDF of more than one page and tags it for screen readers from the page's structure."""
    pdf = base64.b64decode(show(queries=(many(60),)).call("Page.printToPDF", generateTaggedPDF=True)["data"])
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 5


def test_without_scripts_everything_is_there(show):
    browser = show(queries=(many(ROWS_SHOWN + 1),))
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.load()
    laid_out = "Array.from(document.querySelector('tbody').rows).filter(row => row.offsetHeight > 0).length"
    assert browser.evaluate(laid_out) == ROWS_SHOWN + 1
    assert "needs JavaScript" in browser.evaluate("document.querySelector('header').innerText")


def test_a_header_of_markup_runs_nothing(show):
    browser = show(queries=(replace(PROTEIN_QUERIES[0], hits=(SELF, GAPPED, EVIL)),))
    assert browser.evaluate("document.title") == "Hits in d.fa"
    assert column(browser, 2)[2] == "</pre></article><script>document.title='evil'</script>\"'&amp;"


def test_several_queries_are_listed_when_asked(show):
    browser = show()
    browser.click("summary")
    listed = browser.evaluate(
        "new Promise(done => setTimeout(() => done(Array.from(document.querySelectorAll('nav a'), a => a.hash)), 50))"
    )
    assert listed == ["#q1", "#q2"]


# --- organisms, where a taxonomy is known ---

TAXIDS = [9606, 9606, 9598, 10090, 562, 562, 562, 10497, 314146, 0]
"""The organism of each subject by rank; 0 is none."""
TAXON = re.compile(r'<svg class="taxon t\d" x="([\d.]+)%" y="([\d.]+)%"[^>]* height="([\d.]+)%"[^>]*><title>([^<]*)')
TAXON_ROW = re.compile(
    r'<span class="level" aria-hidden="true"> *</span>([^<]*)</th><td>([^<]*)</td><td class="number">(\d+)</td>'
    r'<td class="number">(\d+)</td>\s*<td><a href="#(\w+)">([^<]*)</a>'
)


@pytest.fixture(scope="module")
def of_taxa():
    """Arguments of a report of two queries, the first of which has ten subjects and two alignments of the first one."""
    hits = [replace(SELF, rank=n, subject_index=taxid, subject_header=f"s{n}") for n, taxid in enumerate(TAXIDS, 1)]
    hits.insert(1, replace(hits[0], hsp=2))
    queries = (
        replace(PROTEIN_QUERIES[0], hits=tuple(hits), n_passed=10),
        replace(PROTEIN_QUERIES[0], number=1, header="second", hits=(hits[-1],), n_passed=1),
    )
    run = make_run("protein", parameters={**PROTEIN_RUN.parameters, "max_hsps": 2})
    taxonomy = TaxonomyOfSubjects(read_dump(EXCERPT), lambda taxid: (taxid,) if taxid else ())
    return {"run": run, "queries": queries, "taxonomy": taxonomy}


def test_organisms_of_subjects_are_drawn_and_listed_where_a_taxonomy_is_known(written, of_taxa):
    """By hand: 9 of 10 subjects have a taxon, 5 of Euarchontoglires and 3 of these of Homininae.

    The best of Homo sapiens is the first, whose two alignments are of one subject.
    """
    report = written("html", **of_taxa)
    cells = {words.split(":")[0]: tuple(map(float, numbers)) for *numbers, words in TAXON.findall(report)}
    share = 100 / 9
    expected = {
        "root": (0, 0, 100),
        "cellular organisms, cellular root": (20, 0, 8 * share),
        "Euarchontoglires, superorder": (40, 0, 5 * share),
        "Homininae, subfamily": (60, 0, 3 * share),
        "Homo sapiens, species": (80, 0, 2 * share),
        "Pan troglodytes, species": (80, 2 * share, share),
        "Mus musculus, species": (60, 3 * share, share),
        "Escherichia coli, species": (40, 5 * share, 3 * share),
        "African swine fever virus, species": (20, 8 * share, share),
    }
    assert cells.keys() == expected.keys()
    for name, numbers in cells.items():
        assert numbers == pytest.approx(expected[name], abs=0.001), name
    assert "Homininae, subfamily: 3 subjects, 30.0 %; 0 at the taxon itself" in report
    rows = {name: row for name, *row in TAXON_ROW.findall(report)}
    assert rows.keys() == {name.split(",")[0] for name in expected}
    assert rows["Homo sapiens"] == ["species", "9606", "2", "q1h1", "1. s1"]
    assert rows["Escherichia coli"] == ["species", "562", "3", "q1h5", "5. s5"]
    assert "9 subjects with a taxon; 1 subject without one: table" in report
    assert "<p>0 subjects with a taxon; 1 subject without one.</p>" in report.split("<section ")[2]
    page = Page(report)
    assert page.tags.count("script") == 2
    assert len(page.ids) == len(set(page.ids))
    assert set(page.references) <= set(page.ids)
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= set(page.ids)
    without = written("html", of_taxa["run"], of_taxa["queries"])
    assert "Organisms" not in without
    assert Page(without).tags.count("script") == 1


@pytest.fixture
def report_of_taxa(written, of_taxa, tmp_path):
    path = tmp_path / "hits.html"
    path.write_text(written("html", **of_taxa))
    return path.as_uri()


class TestOrganisms:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desktop", "phone"])
    def test_the_graphic_is_accessible_and_fits(self, browser, report_of_taxa, axe, scheme, size):
        viewport = {"width": size[0], "height": size[1]}
        with Opened(browser, report_of_taxa, color_scheme=scheme, viewport=viewport) as page:
            page.goto(report_of_taxa)
            page.locator("[id=q1-taxa-table] summary").click()
            page.locator(".taxon", has_text="Homininae").click()
            assert page.locator(".shown").first.inner_text().startswith("Homininae, subfamily: 3 subjects, 30.0 %")
            page.keyboard.press("Escape")
            assert page.locator(".taxon.gone").count() == 0
            page.mouse.move(0, 0)
            assert violations(page, axe) == []
            assert wide(page) <= 0
            keep(page, f"html-taxa-{scheme}-{size[0]}")

    def test_a_screen_reader_and_the_keyboard_find_it(self, browser, report_of_taxa):
        with Opened(browser, report_of_taxa) as page:
            page.goto(report_of_taxa)
            tree = page.get_by_role("tree", name="Taxa by their shares of the subjects")
            assert tree.get_by_role("treeitem").count() == 9
            page.locator(".icicle .skip").focus()
            page.keyboard.press("Enter")
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            assert page.get_by_role("table", name="Taxa of the hits of q1").is_visible()
            page.get_by_role("link", name="5. s5", exact=True).click()
            assert page.url.endswith("#q1h5")

    def test_without_scripts_it_is_a_picture_with_a_table(self, browser, report_of_taxa):
        with Opened(browser, report_of_taxa, java_script_enabled=False) as page:
            page.goto(report_of_taxa)
            assert page.locator(".taxa").get_attribute("role") == "img"
            assert "enlarging taxa need JavaScript" in page.locator("header").inner_text()
            page.locator("[id=q1-taxa-table] summary").click()
            assert page.locator("[id=q1-taxa-table] tbody tr:visible").count() == 9

    def test_it_is_printed(self, browser, report_of_taxa):
        paper = {"width": 718, "height": 1000}  # A4 with margins
        with Opened(browser, report_of_taxa, color_scheme="dark", viewport=paper) as page:
            page.goto(report_of_taxa)
            page.emulate_media(media="print")
            box = page.locator(".taxa").bounding_box()
            assert box["x"] + box["width"] <= paper["width"]
            assert page.locator(".taxon text:visible").count() == 9
            assert (
                page.evaluate("getComputedStyle(document.querySelector('.taxon.t0 rect')).fill") == "rgb(227, 230, 234)"
            )
            assert page.locator("[id=q1-taxa-table] tbody tr").first.bounding_box()["height"] > 0

"""The page of taxa: its numbers are those of the format ``kraken``, and a real browser explores its graphic."""

import re
from html import unescape

import pytest

from swsearch.report import icicle
from swsearch.report.html import ROWS_SHOWN
from swsearch.taxonomy.dump import read_dump
from tests.report.conftest import PROTEIN_RUN, make_run
from tests.report.test_html import Page
from tests.report.test_kraken import queries_of
from tests.service.pages.browsers import Opened, keep, violations, wide
from tests.taxonomy.dumps import EXCERPT, write_dump

TAXIDS = [9606, 9606, 9598, 10090, 562, 562, 562, 10497, 314146, None]
"""The organism of the best hit of each query."""
CELL = re.compile(
    r'<svg class="taxon t(\d)" x="([\d.]+)%" y="([\d.]+)%" width="([\d.]+)%" height="([\d.]+)%"[^>]*>'
    r"<title>([^<]*)</title>"
)
ROW = re.compile(
    r'<span class="level" aria-hidden="true">( *)</span>([^<]*)</th><td>([^<]*)</td><td class="number">(\d+)</td>'
    r'<td class="number">(\d+)</td><td class="number">([\d.]+)</td><td class="number">(\d+)</td></tr>'
)


@pytest.fixture(scope="module")
def tree():
    """The excerpt of NCBI's taxonomy."""
    return read_dump(EXCERPT)


def test_the_table_has_the_numbers_of_kraken(written, tree):
    """Source: the format ``kraken``, whose lines another test compares with those of Kraken."""
    queries = queries_of(tree, TAXIDS)
    lines = [line.split("\t") for line in written("kraken", **queries).splitlines()]
    rows = ROW.findall(written("taxa-html", **queries))
    assert [(indent + name, n_clade, n_direct, taxid) for indent, name, _, taxid, n_clade, _, n_direct in rows] == [
        (name, n_clade, n_direct, taxid) for _, n_clade, n_direct, _, taxid, name in lines[1:]
    ]
    for row, line in zip(rows, lines[1:], strict=True):
        assert abs(float(row[5]) - float(line[0])) <= 0.051
    assert [rank for _, name, rank, *_ in rows if name in ("root", "Homininae", "Homo")] == ["", "subfamily", "genus"]


def test_rectangles_are_shares(written, tree):
    """By hand: 9 queries with a taxon of 10, of which 5 are of Euarchontoglires, and 3 of these below Homininae."""
    page = written("taxa-html", **queries_of(tree, TAXIDS))
    assert "<dd>10, of which 1 unclassified</dd>" in page
    cells = {unescape(words).split(":")[0]: tuple(map(float, numbers)) for *numbers, words in CELL.findall(page)}
    percent = 100 / 9
    expected = {
        "root": (0, 0, 0, 100),
        "cellular organisms, cellular root": (0, 20, 0, 8 * percent),
        "Euarchontoglires, superorder": (1, 40, 0, 5 * percent),
        "Homininae, subfamily": (1, 60, 0, 3 * percent),
        "Homo sapiens, species": (1, 80, 0, 2 * percent),
        "Pan troglodytes, species": (1, 80, 2 * percent, percent),
        "Mus musculus, species": (1, 60, 3 * percent, percent),
        "Escherichia coli, species": (2, 40, 5 * percent, 3 * percent),
        "African swine fever virus, species": (0, 20, 8 * percent, percent),
    }
    assert cells.keys() == expected.keys()
    for name, (colour, x, y, width, height) in cells.items():
        assert width == 20
        assert (colour, x, y, height) == pytest.approx(expected[name], abs=0.001), name
    words = "Homininae, subfamily: 3 queries, 30.0 %; 0 at the taxon itself"
    assert f"<title>{words}</title>" in page
    assert ">Homininae 30.0 %</text>" in page


def test_the_page_is_whole_and_names_are_text(written, tmp_path):
    """Elements are nested correctly, references point into the page, and names add no element."""
    folder = write_dump(tmp_path, {1: 1, 2: 1, 3: 2, 4: 2})
    names = (folder / "names.dmp").read_text().replace("Taxon 3", "<script>alert(1)</script>&amp;")
    (folder / "names.dmp").write_text(names)
    page = Page(written("taxa-html", **queries_of(read_dump(folder), [3, 3, 4, None])))
    assert len(page.ids) == len(set(page.ids))
    assert set(page.references) <= set(page.ids)
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= set(page.ids)
    assert [address for address in page.addresses if not address.startswith("#")] == ["data:,"]
    assert page.tags.count("script") == 2


def test_without_taxa_the_page_says_so(written, tree):
    for queries in ({"queries": []}, queries_of(tree, [None, 0])):
        page = written("taxa-html", **queries)
        Page(page)
        assert "No query has a taxon" in page
        assert "<svg" not in page


def test_cut_lists_are_told(written, tree):
    run = make_run("protein", parameters={**PROTEIN_RUN.parameters, "top": 1})
    page = written("taxa-html", run, **queries_of(tree, [9606, 562]))
    assert "<dd>2 lists were cut at --top 1 where hits still counted" in page
    assert "were cut" not in written("taxa-html", **queries_of(tree, [9606, 562]))


def test_the_largest_taxa_are_drawn(written, tree, monkeypatch):
    monkeypatch.setattr(icicle, "MAX_TAXA", 4)
    page = written("taxa-html", **queries_of(tree, TAXIDS))
    drawn = [unescape(words).split(",")[0].split(":")[0] for *_, words in CELL.findall(page)]
    assert drawn == ["root", "cellular organisms", "Euarchontoglires", "Homininae"]
    assert "The 4 taxa with most queries." in page


# --- in a browser ---

SHOWN = "[...document.querySelectorAll('.taxon:not(.gone)')].map((one) => one.querySelector('title').textContent)"
FOCUS = "document.activeElement.querySelector('title')?.textContent.split(/[,:]/)[0]"
BOX = "(name) => { const one = [...document.querySelectorAll('.taxon')].find((each) => each.querySelector('title')"
BOX += ".textContent.startsWith(name)).getBoundingClientRect(); return [one.x, one.y, one.width, one.height]; }"


@pytest.fixture
def address(written, tree, tmp_path):
    """The address of the page of the ten queries."""
    path = tmp_path / "taxa.html"
    path.write_text(written("taxa-html", **queries_of(tree, TAXIDS)))
    return path.as_uri()


def names(page):
    """Return the names of the taxa that are drawn."""
    return [words.split(",")[0].split(":")[0] for words in page.evaluate(SHOWN)]


class TestBrowser:
    def test_the_keyboard_moves_and_zooms(self, browser, address):
        with Opened(browser, address) as page:
            page.goto(address)
            everything = names(page)
            page.locator(".icicle .skip").focus()
            page.keyboard.press("Tab")
            page.keyboard.press("Tab")
            assert page.evaluate(FOCUS) == "root"
            found = []
            for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowRight", "ArrowDown", "ArrowDown"):
                page.keyboard.press(key)
                found.append(page.evaluate(FOCUS))
            mammals, below = "Euarchontoglires", ["Homininae", "Mus musculus", "Mus musculus"]
            assert found == ["cellular organisms", mammals, "Escherichia coli", mammals, *below]
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("Enter")
            kept = [
                "root",
                "cellular organisms",
                mammals,
                "Homininae",
                "Homo sapiens",
                "Pan troglodytes",
                "Mus musculus",
            ]
            assert names(page) == kept
            assert page.locator(".shown").inner_text().startswith("Euarchontoglires, superorder: 5 queries")
            page.keyboard.press("Enter")  # again: the one above it
            assert names(page) == [*kept, "Escherichia coli"]
            page.keyboard.press("Escape")
            assert names(page) == everything
            assert page.locator(".shown").inner_text() == "All taxa"
            page.keyboard.press("Home")
            assert page.evaluate(FOCUS) == "root"
            page.keyboard.press("Shift+Tab")
            page.keyboard.press("Tab")
            assert page.evaluate(FOCUS) == "root"  # the graphic is one stop of the keyboard

    def test_a_click_enlarges_a_taxon_in_proportion(self, browser, address):
        """By hand: of five queries below Euarchontoglires, three are of Homininae."""
        with Opened(browser, address) as page:
            page.goto(address)
            _, _, width, height = page.evaluate(BOX, "root")
            assert page.evaluate(BOX, "Homininae")[3] == pytest.approx(height * 3 / 9, abs=0.5)
            page.locator(".taxon", has_text="Euarchontoglires").click()
            assert page.evaluate(BOX, "Euarchontoglires")[3] == pytest.approx(height, abs=0.5)
            assert page.evaluate(BOX, "Homininae")[2:] == pytest.approx([width, height * 3 / 5], abs=0.5)
            page.get_by_role("treeitem", name="root: 9").click()
            assert len(names(page)) == 9

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desktop", "phone"])
    def test_the_page_is_accessible(self, browser, address, axe, scheme, size):
        viewport = {"width": size[0], "height": size[1]}
        with Opened(browser, address, color_scheme=scheme, viewport=viewport) as page:
            page.goto(address)
            assert violations(page, axe) == []
            page.locator(".taxon", has_text="Homininae").click()
            assert violations(page, axe) == []
            assert wide(page) <= 0
            keep(page, f"taxa-{scheme}-{size[0]}")

    def test_names_are_readable_in_both_schemes(self, browser, address):
        """Source: the contrast of WCAG 2, at least 4.5 for text; axe-core does not know what lies below text of SVG."""
        for scheme in ("light", "dark"):
            with Opened(browser, address, color_scheme=scheme) as page:
                page.goto(address)
                text = page.evaluate("getComputedStyle(document.querySelector('.taxon text')).fill")
                for number in range(7):
                    fill = page.evaluate(
                        "(name) => { const one = document.querySelector('.taxon'); one.setAttribute('class', name);"
                        " return getComputedStyle(one.querySelector('rect')).fill; }",
                        f"taxon t{number}",
                    )
                    assert contrast(text, fill) >= 4.5, (scheme, number)

    def test_without_scripts_it_is_a_picture_with_a_table(self, browser, address):
        with Opened(browser, address, java_script_enabled=False) as page:
            page.goto(address)
            assert page.locator(".taxa").get_attribute("role") == "img"
            assert page.locator(".taxon[tabindex]").count() == 0
            assert page.locator(".taxon").count() == 9
            assert page.locator("tbody tr:visible").count() == 32 + 2 + 9 + 8 + 9  # to human, chimpanzee, mouse …

    def test_a_long_table_is_shown_on_request(self, browser, written, tmp_path):
        parents = {1: 1, **dict.fromkeys(range(2, ROWS_SHOWN + 103), 1)}
        queries = queries_of(read_dump(write_dump(tmp_path, parents)), range(2, ROWS_SHOWN + 103))
        path = tmp_path / "long.html"
        path.write_text(written("taxa-html", **queries))
        with Opened(browser, path.as_uri()) as page:
            page.goto(path.as_uri())
            assert page.locator("tbody tr:visible").count() == ROWS_SHOWN
            page.get_by_role("button", name="Show all 602 rows").click()
            assert page.locator("tbody tr:visible").count() == 602


def contrast(one, other):
    """Return WCAG's contrast of two colours, as ``rgb(1, 2, 3)``."""

    def luminance(colour):
        parts = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)

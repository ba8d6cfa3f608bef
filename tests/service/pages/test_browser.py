"""The pages in a real browser: Debian's Chromium, led by Playwright, and axe-core for accessibility.

One browser serves all tests.
"""

from dataclasses import replace

import pytest

from swsearch.service.pages.form import EXAMPLES
from tests.service.pages.browsers import Opened, keep, reach, violations, wide
from tests.service.pages.conftest import HOSTILE, LETTERS, serving, working

DESKTOP = {"width": 1100, "height": 800}
PHONE = {"width": 360, "height": 740}


@pytest.fixture
def page(browser, served):
    """A page of 1,100 pixels, in light colours."""
    with Opened(browser, served.url, viewport=DESKTOP) as shown:
        yield shown


def searched(page, example, database):
    """Click an example, choose a database, and wait for the result."""
    page.goto("/")
    page.get_by_role("link", name=example).click()
    assert page.get_by_role("textbox", name="Sequences").input_value() == next(
        e.fasta for e in EXAMPLES if e.label == example
    )
    if not page.get_by_label(database).is_checked():
        page.get_by_label(database).check()
    page.get_by_role("button", name="Search").click()
    page.wait_for_selector("#hits")


def test_a_protein_search_from_paste_to_shared_link(page, browser, served):
    page.goto("/")
    keep(page, "form")
    page.get_by_role("textbox", name="Sequences").fill(EXAMPLES[0].fasta)
    page.get_by_label("proteins.db").check()
    page.get_by_label("Hits to report").fill("60")
    page.get_by_role("button", name="Search").click()
    page.wait_for_selector("#hits tbody")
    keep(page, "result")
    # A bar leads to its row, whose alignment opens below it.
    page.locator(".overview li:nth-child(3) a").click()
    page.wait_for_selector("#alignment-3-1 pre")
    assert "Query  " in page.locator("#alignment-3-1 pre").inner_text()
    assert page.evaluate("document.activeElement.getAttribute('data-alignment')") == "alignment-3-1"
    keep(page, "alignment")
    # A column sorts on the server, keeps the focus, and is in the address.
    page.get_by_role("link", name="identity").click()
    page.wait_for_selector("th[aria-sort=descending] [data-sort=identity]")
    assert page.evaluate("document.activeElement.dataset.sort") == "identity"
    assert "sort=identity" in page.url
    shown = [int(text.rstrip("%")) for text in page.locator("#hits tbody td:nth-child(6)").all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    # The filter follows what is typed.
    page.get_by_label("Header contains").press_sequentially("EngB")
    page.locator("#hits-caption", has_text="fit the filter").wait_for()
    assert "sort=identity" in page.url
    assert all("EngB" in text for text in page.locator("#hits tbody tr:not(.alignment) th").all_inner_texts())
    # Summaries are loaded when they are opened.
    for name in ("Scores of the listed subjects", "Coverage of the query", "Organisms"):
        page.get_by_text(name, exact=True).click()
    page.wait_for_selector("#scores figure")
    page.wait_for_selector("#coverage figure")
    page.wait_for_selector("#organisms table")
    page.locator("#scores").scroll_into_view_if_needed()
    keep(page, "summaries")
    # The shared link shows the same result in another browser.
    page.get_by_role("button", name="Share").click()
    address = page.get_by_label("Everyone who knows this address").input_value()
    with Opened(browser, served.url) as other:
        other.goto(address)
        assert other.get_by_role("heading", level=1).inner_text().startswith("sp|Q600K7|ENGB_MYCH2")


def test_chosen_hits_are_aligned_to_the_query(page, served, axe):
    """They stay chosen in another order; the rows are those of the download, the query first."""
    address = served.search(EXAMPLES[0].fasta)
    page.goto(address)
    page.locator("input[name=rank][value='3']").check()
    page.get_by_role("link", name="identity").click()
    page.wait_for_selector("th[aria-sort=descending] [data-sort=identity]")
    page.locator("input[name=rank][value='1']").press("Space")
    assert page.locator("input[name=rank]:checked").count() == 2
    page.get_by_role("button", name="Multiple alignment").click()
    page.wait_for_selector("#rows")
    assert page.title().startswith("Alignment of sp|Q600K7|ENGB_MYCH2 with 2 hits")
    downloaded = page.get_by_role("link", name="aligned FASTA").get_attribute("href")
    assert "rank=1,3" in downloaded or "rank=3,1" in downloaded
    rows = [block.split("\n", 1)[1].strip() for block in served.request(downloaded).text.split(">")[1:]]
    lines = [line.split() for line in page.locator("#rows").inner_text().split("\n") if line]
    assert ["".join(row for _, row in lines[first::3]) for first in range(3)] == rows
    assert page.locator("#rows .same").count() > 0 < page.locator("#rows .similar").count()
    assert violations(page, axe) == []
    keep(page, "multiple-alignment")
    page.goto(address)
    page.get_by_role("button", name="Multiple alignment").click()
    page.locator("h1", has_text="alignments of hits").wait_for()
    assert page.locator("#rows").inner_text().split("\n\n")[0].count("\n") > 3
    refused = served.request(f"{address}/queries/1/alignment?rank=x")
    assert refused.status == 400
    assert "whole numbers" in refused.text


def test_titles_name_the_query_and_buttons_copy(browser, served):
    """The copied sequence is the download; a sequence that cannot be had is said to be missing."""
    address = served.search(EXAMPLES[0].fasta)
    allowed = ["clipboard-read", "clipboard-write"]
    with Opened(browser, served.url, viewport=DESKTOP, permissions=allowed, expected=["status of 500"]) as page:
        copied = lambda: page.evaluate("navigator.clipboard.readText()")  # noqa: E731
        page.goto(address)
        assert page.title().startswith("sp|Q600K7|ENGB_MYCH2 in proteins.db: ")
        page.get_by_role("button", name="Copy the address").click()
        page.locator("#announcer", has_text="Copied.").wait_for()
        assert copied() == f"{served.url}{address}"
        page.goto(f"{address}/queries/1/hits/2")
        assert page.title().endswith(" and sp|Q600K7|ENGB_MYCH2 – swsearch")
        page.get_by_role("button", name="Copy the sequence").click()
        page.locator("#announcer", has_text="Copied.").wait_for()
        fasta = copied()
        assert (
            fasta.replace("\r\n", "\n")
            == served.request(f"{address}/queries/1/sequences.fasta?rank=2&part=aligned").text
        )
        page.route("**/sequences.fasta*", lambda route: route.fulfill(status=500, body="no"))
        page.get_by_role("button", name="Copy the sequence").click()
        page.locator("#announcer", has_text="could not be copied").wait_for()
        page.goto(f"{address}/commands")
        page.get_by_role("button", name="Copy").first.click()
        page.locator("#announcer", has_text="Copied.").wait_for()
        assert copied().startswith("curl -s -o search.json ")
        for name in ("scores", "coverage", "organisms"):
            page.goto(f"{address}/queries/1/{name}")
            assert "sp|Q600K7|ENGB_MYCH2" in page.title()


def test_a_dna_search_and_a_search_again(page):
    searched(page, "a DNA read", "lambda.db")
    assert "plus" in page.locator("#hits tbody tr:first-child").inner_text()
    page.get_by_role("link", name="Search again with…").click()
    assert page.get_by_role("textbox", name="Sequences").input_value().startswith(">r1 a read")
    page.get_by_text("All options").click()
    page.get_by_label("Strand").select_option("minus")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**/results/*")
    page.locator("#progress").wait_for(state="detached")
    assert "plus" not in page.get_by_role("main").inner_text()


def test_counted_alignments_are_a_column_of_the_result(page):
    """The option is chosen in the form; what the counts are is checked in ``test_pages.py``."""
    page.goto("/")
    page.get_by_role("textbox", name="Sequences").fill(EXAMPLES[0].fasta)
    page.get_by_label("proteins.db").check()
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.get_by_label("Count alignments").select_option(label="yes")
    page.get_by_role("button", name="Search").click()
    page.wait_for_selector("#hits tbody")
    assert page.locator("#hits thead th").last.inner_text() == "hsp"
    assert page.locator("#hits tbody tr:first-child td").last.inner_text() == "1/1"


def test_pasted_sequences_choose_the_database_that_fits(page):
    """Until somebody chooses one: what was chosen by hand stays."""
    page.goto("/")
    box, boxes = page.get_by_role("textbox", name="Sequences"), ("proteins.db", "lambda.db", "hostile.db")

    def chosen():
        return [name for name in boxes if page.get_by_label(name).is_checked()]

    assert chosen() == []
    box.fill("MK")
    assert chosen() == [], "two letters may be anything"
    box.fill(EXAMPLES[1].fasta)
    assert chosen() == ["lambda.db"]
    box.fill(EXAMPLES[0].fasta)
    assert chosen() == ["proteins.db"]
    box.fill("@r1\nACGTACGT\n+\nIIIIIIII\n")
    assert chosen() == ["lambda.db"]
    page.get_by_label("hostile.db").check()
    assert chosen() == ["hostile.db"], "what was chosen for the sequences gives way"
    page.get_by_label("proteins.db").check()
    box.fill(EXAMPLES[1].fasta)
    assert chosen() == ["proteins.db", "hostile.db"]


def test_the_next_hit_opens_in_the_table_or_on_its_page(page):
    searched(page, "a protein", "proteins.db")
    page.locator("#hit-1 th a").click()
    page.locator("#alignment-1-1").get_by_role("link", name="Next hit").click()
    page.wait_for_selector("#alignment-2-1 pre")
    assert page.evaluate("document.activeElement.getAttribute('data-alignment')") == "alignment-2-1"
    assert "/hits/" not in page.url
    keep(page, "marked")
    page.goto(page.get_by_role("link", name="Previous hit").last.get_attribute("href"))
    page.get_by_role("link", name="Next hit").click()
    page.wait_for_url("**/hits/2")


def test_bad_input_is_said_beside_its_field(page):
    page.goto("/")
    page.get_by_role("textbox", name="Sequences").fill(">a\nMKV7L\n")
    page.get_by_label("proteins.db").check()
    page.get_by_label("Hits to report").fill("3")
    page.get_by_role("button", name="Search").click()
    page.wait_for_selector("#errors")
    assert page.evaluate("document.activeElement.id") == "errors"
    assert "line 2, column 4" in page.locator("#sequences-error").inner_text()
    assert page.get_by_label("Hits to report").input_value() == "3"
    keep(page, "bad-input")
    page.locator("#errors a").click()
    assert page.evaluate("document.activeElement.id") == "sequences"


def test_a_search_is_cancelled(browser, settings, tmp_path):
    """No worker takes the search, so that it waits until it is cancelled."""
    with serving(replace(settings, store=str(tmp_path / "idle.sqlite"))) as idle, Opened(browser, idle.url) as page:
        page.goto("/")
        page.get_by_role("link", name="several proteins").click()
        page.get_by_role("button", name="Search").click()
        page.wait_for_selector("#progress .queued")
        page.locator("#announcer", has_text="Waiting").wait_for(state="attached")
        keep(page, "progress")
        page.get_by_role("button", name="Cancel the search").click()
        page.wait_for_selector(".state.cancelled")
        assert page.get_by_role("button", name="Cancel the search").count() == 0


def test_many_hits_are_pages(page, served):
    """All 83 proteins are listed; ``test_pages.py`` has a list of 100,000 hits, whose pages are no larger."""
    page.goto(served.search(EXAMPLES[0].fasta, evalue="1000000"))
    assert page.locator("#hits tbody tr[id]").count() == 50
    page.get_by_role("link", name="Last").click()
    page.wait_for_selector("#hit-83")
    assert page.evaluate("document.activeElement.closest('#hits') !== null")
    page.go_back()
    page.wait_for_selector("#hit-1")


def test_the_keyboard_alone_searches_and_opens_an_alignment(page):
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    reach(page, "document.activeElement.dataset.example === 'protein'")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "sequences"
    page.keyboard.press("Control+Enter")  # does nothing in a text field
    reach(page, "document.activeElement.value === 'proteins.db'")
    if not page.evaluate("document.activeElement.checked"):
        page.keyboard.press("Space")
    reach(page, "document.activeElement.matches('button.primary')")
    page.keyboard.press("Enter")
    page.wait_for_selector("#hits tbody")
    reach(page, "document.activeElement.textContent === 'Skip the overview'", 30)
    page.keyboard.press("Enter")
    reach(page, "document.activeElement.matches('#hits tbody a')", 30)
    page.keyboard.press("Enter")
    page.wait_for_selector(".alignment:not([hidden]) pre")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"


@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESKTOP), ("dark", PHONE)], ids=["light", "dark-phone"])
def test_pages_are_accessible_in_both_colours_and_on_a_phone(browser, served, axe, scheme, viewport):
    address = served.search("".join(f">{header}\n{LETTERS}\n" for header in HOSTILE[:2]), "hostile.db")
    with Opened(browser, served.url, viewport=viewport, color_scheme=scheme) as page:
        paths = ["/", address, f"{address}/queries/1", "/history", "/databases", f"{address}/commands"]
        for path in paths:
            page.goto(path)
            if path == "/":
                page.get_by_text("All options").click()
            if path.endswith("/1"):
                page.locator("#hits tbody th a").first.click()
                page.wait_for_selector(".alignment:not([hidden]) pre")
                for summary in page.locator("details.lazy > summary").all():
                    summary.click()
                page.wait_for_selector("#organisms table")
                page.wait_for_selector("#coverage figure")
            assert violations(page, axe) == [], path
            assert wide(page) <= 0, path
        page.goto(f"{address}/queries/1")
        keep(page, f"hostile-{scheme}-{viewport['width']}")


def test_without_scripts_a_search_ends_in_its_hits(browser, served):
    with Opened(browser, served.url, java_script_enabled=False) as page:
        page.goto("/?example=protein")
        page.get_by_role("button", name="Search").click()
        page.wait_for_selector("#hits tbody")
        page.locator("#hits tbody th a").first.click()
        assert "Query  " in page.locator("pre").inner_text()


def test_where_events_do_not_arrive_the_progress_is_asked_for(browser, settings, tmp_path):
    """A proxy that holds the stream back: its request fails. The worker begins when the page has asked."""
    idle = replace(settings, store=str(tmp_path / "idle.sqlite"))
    asked = []
    with serving(idle) as server, Opened(browser, server.url, expected=["status of 503", "Event"]) as page:
        page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
        page.route("**/events", lambda route: route.fulfill(status=503, body=""))
        page.goto("/?example=several")
        page.get_by_label("Maximum E-value").fill("0.5")
        with page.expect_request("**/progress"):
            page.get_by_role("button", name="Search").click()
        assert asked.count("events") >= 3
        assert page.locator("#progress .queued").count() == 1
        with working(idle):
            page.locator("#progress").wait_for(state="detached")
            page.wait_for_selector("#queries-caption")
        assert asked.count("progress") >= 2, "the answer that the search has ended"
        page.unroute("**/events")

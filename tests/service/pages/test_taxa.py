"""Pages of a database with a taxonomy: the tree of the organisms, and the hits of a taxon.

Expected: the ids of ``data/taxids.tsv`` and the lineages of the excerpt, by walks in plain dictionaries.
"""

from dataclasses import replace
from itertools import groupby

import pytest

from swsearch.database.builder import build_database
from swsearch.service.databases import named_databases
from tests.report.conftest import OF_TAXA
from tests.report.test_taxa_html import BOX, names
from tests.service.pages.browsers import Opened, keep, reach, violations, wide
from tests.service.pages.conftest import serving, working
from tests.service.pages.html_page import HtmlPage
from tests.service.test_taxonomy import known_taxids
from tests.support import DATA, protein_records
from tests.taxonomy.dumps import EXCERPT, path_to_root

QUERY = "sp|A1YGK7"
"""A homeobox protein; animals and plants have hits of it, and so have organisms that are not in the map."""


@pytest.fixture(scope="module")
def served(settings, tmp_path_factory):
    """A service of the real proteins with their taxonomy."""
    folder = tmp_path_factory.mktemp("taxa")
    (folder / "proteins.fasta").write_text("".join(protein_records()))
    build_database(folder / "proteins.fasta", folder / "taxa.db", taxonomy=EXCERPT, taxid_map=DATA / "taxids.tsv")
    given = replace(settings, databases=named_databases([str(folder / "taxa.db")]), store=str(folder / "hits.sqlite"))
    with serving(given) as running, working(given):
        yield running


@pytest.fixture(scope="module")
def result(served):
    """The address of a search."""
    records = [f">{record}" for record in (DATA / "queries.fasta").read_text().split(">") if record]
    (query,) = (record for record in records if record.startswith(f">{QUERY}"))
    return served.search(query, "taxa.db", top="300", evalue="1000000")


@pytest.fixture(scope="module")
def found(served, result):
    """The taxonomy ids of the subjects of the search, by rank; None for a subject without one."""
    known = known_taxids()
    lines = served.request(f"{result}/report/tsv").text.splitlines()[1:]
    subjects = [next(group) for _, group in groupby(line.split("\t")[1] for line in lines)]
    return [(subject, known.get(subject.split("|")[1])) for subject in subjects]


@pytest.fixture(scope="module")
def parents():
    lines = (line.split("\t|\t") for line in (EXCERPT / "nodes.dmp").read_text().splitlines())
    return {int(taxid): int(parent) for taxid, parent, *_ in lines}


def below(found, parents, taxid):
    """Return the ranks of the subjects of a taxon and of those below it."""
    return [rank for rank, (_, own) in enumerate(found, 1) if own and taxid in path_to_root(parents, own)]


def test_organisms_are_a_tree(served, result, found, parents):
    page = HtmlPage(served.request(f"{result}/queries/1/organisms").text)
    head, *rows = page.rows
    assert head == ["taxon", "rank", "taxonomy id", "subjects", "best rank"]
    shown = {int(row[2]): (int(row[3]), int(row[-1])) for row in rows}
    expected = {taxid: below(found, parents, taxid) for taxid in shown}
    assert shown == {taxid: (len(ranks), ranks[0]) for taxid, ranks in expected.items()}
    assert {1, 33213, 9606, 7711} - set(shown) == {7711}  # all its subjects are those of one taxon below it
    assert {own for _, own in found if own} <= set(shown)
    unknown = sum(own is None for _, own in found)
    text = served.request(f"{result}/queries/1/organisms").text
    assert f"{len(found) - unknown} subjects with a taxon; {unknown} subjects without one" in text
    assert text.count('<svg class="taxon') == len(rows)


def test_hits_of_a_taxon_are_those_of_all_below_it(served, result, found, parents):
    for taxid in (33213, 9606, 7711):
        expected = [found[rank - 1][0] for rank in below(found, parents, taxid)]
        assert len(expected) > 0
        lines = served.request(f"{result}/report/blast6?query=1&taxid={taxid}").text.splitlines()
        assert list(dict.fromkeys(line.split("\t")[1] for line in lines)) == expected
        page = served.request(f"{result}/queries/1?taxid={taxid}&rows=300").text
        assert page.count('id="hit-') == len(lines)
    sequences = served.request(f"{result}/queries/1/sequences.fasta?part=whole&taxid=9606").text
    assert sequences.count(">") == len(below(found, parents, 9606))
    assert "No hit fits the filter" in served.request(f"{result}/queries/1?taxid=562").text or below(
        found, parents, 562
    )
    assert "No hit fits the filter" in served.request(f"{result}/queries/1?taxid=999999").text


def test_reports_about_taxa_are_offered_where_they_can_be_made(served, result):
    page = HtmlPage(served.request(result).text)
    for name in OF_TAXA:
        (link,) = (link for link in page.links if link.split("?")[0].endswith(f"/report/{name}"))
        answer = served.request(link)
        assert answer.status == 200
        assert answer.headers["content-disposition"].startswith("attachment; filename=")


class TestBrowser:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_the_tree_opens_below_the_hits_and_leads_to_those_of_a_taxon(self, browser, served, result, axe, scheme):
        with Opened(browser, served.url, color_scheme=scheme, viewport={"width": 1100, "height": 800}) as page:
            page.goto(result)
            page.locator("#organisms > summary").click()
            page.wait_for_selector("#organisms .taxa[role=tree]")
            everything = names(page)
            reach(page, "document.activeElement.classList.contains('taxon')", most=80)
            height = page.evaluate(BOX, "root")[3]
            page.keyboard.press("ArrowRight")
            page.keyboard.press("Enter")
            page.keyboard.press("ArrowRight")
            page.keyboard.press("Enter")
            assert len(names(page)) < len(everything)
            name = page.evaluate("document.activeElement.querySelector('title').textContent.split(/[,:]/)[0]")
            assert page.evaluate(BOX, name)[3] == pytest.approx(height, abs=0.5)
            assert violations(page, axe) == []
            assert wide(page) <= 0
            keep(page, f"organisms-{scheme}")
            page.locator("#organisms tbody a", has_text="Homo sapiens").click()
            page.wait_for_selector("#hits tbody")
            assert page.locator("#taxid").input_value() == "9606"
            assert "HUMAN" in page.locator("#hits tbody tr").first.inner_text()

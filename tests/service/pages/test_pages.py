"""The pages of a running service over HTTP: from the form to results, downloads and errors.

Expected values come from the store, from reports of the same run, or from hand calculation.
"""

import asyncio
import gzip
import io
import re
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from Bio.Seq import Seq

import swsearch
from swsearch.database.opening import open_database
from swsearch.errors import DatabaseError, EngineError
from swsearch.hits.formatting import shown_bits
from swsearch.report.base import ReportContext
from swsearch.report.formats import FORMATS, new_report
from swsearch.scoring.matrix import matrix_text, named_matrix
from swsearch.sequences.fasta_text import reverse_complement_letters
from swsearch.service.domain_finder import DomainFinder
from swsearch.service.pages.form import EXAMPLES
from swsearch.store.store import Store
from tests.patience import wait_until
from tests.report.conftest import OF_TAXA
from tests.service.pages.conftest import HOSTILE, LETTERS, serving, working
from tests.service.pages.html_page import HtmlPage, crawled
from tests.store.conftest import RUN, make_hit, make_query
from tests.support import DATA

PROTEIN, READ, SEVERAL = (example.fasta for example in EXAMPLES)


@contextmanager
def stored_run(served, info, queries):
    """The id of a run of the command line, which only this test has in the store."""
    with Store(served.settings.store) as store:
        run_id = store.runs.start(info)
        for query in queries:
            store.results.add(run_id, query)
        store.runs.finish(run_id)
        yield run_id
        store.runs.delete(run_id)


@pytest.fixture(scope="module")
def protein(served):
    return served.search(PROTEIN, top="60")


@pytest.fixture(scope="module")
def read(served):
    """A search with the reverse complement of a read of the forward strand."""
    header, _, letters = READ.partition("\n")
    return served.search(f"{header}\n{reverse_complement_letters(letters.replace(chr(10), ''))}\n", "lambda.db")


@pytest.fixture(scope="module")
def several(served):
    return served.search(SEVERAL)


@pytest.fixture(scope="module")
def hostile(served):
    """A search whose query, whose subjects and whose organisms have hostile headers."""
    return served.search("".join(f">{header}\n{LETTERS}\n" for header in HOSTILE[:2]), "hostile.db")


def stored(served, address):
    """The queries of a result in the store."""
    with Store(served.settings.store) as store:
        run_id = served.app.state.service.store.searches.get(address.split("/")[2], "local").run_id
        return store.runs.get(run_id), list(store.results.queries(run_id))


def test_a_protein_search_shows_the_hits_of_the_store(served, protein):
    page = HtmlPage(served.request(protein).text)
    _, (query,) = stored(served, protein)
    rows = [row for row in page.rows if row and row[0].isdigit()]
    assert [int(row[0]) for row in rows] == list(range(1, min(50, len(query.hits)) + 1))
    for row, hit in zip(rows, query.hits, strict=False):
        assert row[1].split() == hit.subject_header.split()
        assert row[8:10] == [f"{hit.alignment.columns:,}", f"{hit.subject_length:,}"]
    with open_database(served.settings.databases["proteins.db"]) as database:
        found = (
            f"up to {query.n_passed} of {database.n_subjects} subjects have an E-value of at most 10;"
            " the best 60 are shown"
        )
    assert found in page.text
    assert "sp|Q600K7|ENGB_MYCH2" in page.text


def test_a_dna_search_shows_its_strand(served, read):
    _, (query,) = stored(served, read)
    page = HtmlPage(served.request(read).text)
    assert page.rows[0][-1] == "strand"
    assert page.rows[1][-1] == query.hits[0].strand == "minus"


def test_a_sensitive_search_shows_forward_scores(served):
    address = served.search(PROTEIN, sensitive="True", top="9")
    titles, *rows = HtmlPage(served.request(address).text).rows
    _, (query,) = stored(served, address)
    shown = [row[titles.index("Forward")] for row in rows if row[0].isdigit()]
    assert [] != shown == [shown_bits(hit.forward_bits) for hit in query.hits]


def test_a_search_that_counts_alignments_shows_how_many_each_subject_has(served):
    """The counts are those of the store, which searches that list all alignments check (`tests/cli`)."""
    address = served.search(EXAMPLES[0].fasta, count_hsps="True", evalue="1000")
    page = HtmlPage(served.request(address).text)
    _, (query,) = stored(served, address)
    assert page.rows[0][-1] == "hsp"
    rows = [row for row in page.rows if row and row[0].isdigit()]
    assert [row[-1] for row in rows] == [f"1/{hit.n_hsps}" for hit in query.hits[: len(rows)]]
    assert max(hit.n_hsps for hit in query.hits) > 1
    assert "Column hsp: 1/3 is the first of 3 alignments of the subject" in page.text
    assert "Column hsp" not in HtmlPage(served.request(served.search(EXAMPLES[0].fasta)).text).text


def test_a_result_is_the_same_for_htmx_and_for_a_browser_without_scripts(served, protein):
    """The part that htmx gets is in the page that a browser gets."""
    number = f"{protein}/queries/1"
    for path in (f"{number}?sort=identity&dir=desc", f"{number}?text=ENGB&page=1", f"{number}/hits/3"):
        part, page = served.htmx(path), served.request(path)
        assert part.status == page.status == 200
        assert not part.text.lstrip().startswith("<!DOCTYPE")
        HtmlPage(part.text)
        assert part.text.strip() in page.text


@pytest.mark.parametrize(("sort", "column"), [("identity", 5), ("columns", 8), ("length", 9)])
def test_the_table_is_sorted_by_the_server_and_says_so(served, protein, sort, column):
    for direction, sign in (("asc", 1), ("desc", -1)):
        text = served.request(f"{protein}/queries/1?sort={sort}&dir={direction}").text
        values = [
            int(row[column].rstrip("%").replace(",", "")) for row in HtmlPage(text).rows if row and row[0].isdigit()
        ]
        assert values == sorted(values, key=lambda value: sign * value)
        assert text.count('aria-sort="') == 1
        assert f'aria-sort="{direction}ending"' in text


def test_a_filter_that_is_no_number_is_said_beside_the_table(served, protein):
    answer = served.request(f"{protein}/queries/1?min_identity=high")
    assert answer.status == 422
    page = HtmlPage(answer.text)
    assert "Give a number, such as 10 or 1e-5." in page.text
    assert page.values["min_identity"] == "high"


def test_alignments_are_those_of_the_pairwise_report(served, several):
    run, queries = stored(served, several)
    text = io.StringIO()
    new_report("pairwise").write_all(ReportContext(run.info), queries[1:2], text)
    page = HtmlPage(served.request(f"{several}/queries/2/hits/1").text)
    first = re.search(r"Query  1 .*?(?=\n\n\n>)", text.getvalue(), re.S)[0]
    assert first.strip() in page.text


def test_a_line_stands_between_likely_and_other_hits(served, protein):
    """Source: the E-values of the store; the line is only where the best hits come first."""
    _, (query,) = stored(served, protein)
    likely = [hit.rank for hit in query.hits if hit.evalue <= 0.001]
    assert 0 < len(likely) < len(query.hits)
    number = f"{protein}/queries/1"
    for path in (number, f"{number}?sort=evalue&dir=asc", f"{number}?rows=10&page={len(likely) // 10 + 1}"):
        rows = [
            row for row in HtmlPage(served.request(path).text).rows if row and (row[0].isdigit() or "chance" in row[0])
        ]
        places = [place for place, row in enumerate(rows) if "chance" in row[0]]
        assert len(places) == 1, path
        assert rows[places[0] + 1][0] == str(len(likely) + 1)
        assert rows[places[0]][0].startswith("From here on, E-values are above 0.001")
    for path in (f"{number}?sort=evalue&dir=desc", f"{number}?sort=length", f"{number}?max_evalue=1e-9"):
        assert "due to chance" not in served.request(path).text, path


def test_a_subject_leads_to_the_next_and_to_public_databases(served, protein, hostile):
    """By hand: the subjects are proteins of UniProt; the hostile ones have names of nobody."""
    _, (query,) = stored(served, protein)
    first, last = f"{protein}/queries/1/hits/1", f"{protein}/queries/1/hits/{query.n_subjects}"
    page = HtmlPage(served.request(first).text)
    accession = query.hits[0].subject_header.split("|")[1]
    assert page.external == [
        f"https://www.uniprot.org/uniprotkb/{accession}", f"https://alphafold.ebi.ac.uk/entry/{accession}"
    ]  # fmt: skip
    assert [link for link in page.links if "/hits/" in link] == [f"{protein}/queries/1/hits/2"]
    before = [link for link in HtmlPage(served.request(last).text).links if "/hits/" in link]
    assert before == [f"{protein}/queries/1/hits/{query.n_subjects - 1}"]
    for rank in range(1, 6):
        assert HtmlPage(served.request(f"{hostile}/queries/1/hits/{rank}").text).external == []


def test_letters_of_an_alignment_are_marked(served, protein):
    text = served.request(f"{protein}/queries/1/hits/2").text
    assert 'class="legend"' in text
    assert re.search(r'<span class="same">[A-Z]+</span>', text)
    assert re.search(r'<span class="similar">[A-Z]+</span>', text)


def test_a_result_says_what_its_database_is_before_checksums(served, protein):
    with open_database(served.settings.databases["proteins.db"]) as database:
        made = database.catalogue.created[:10]
        digest = database.digest
    text = HtmlPage(served.request(protein).text).text
    assert f"{made}, from proteins.fasta" in text
    assert text.index("from proteins.fasta") < text.index(digest[:16])
    header, row = (HtmlPage(served.request("/databases").text).rows[place] for place in (0, 1))
    assert header.index("made") < header.index("from") < header.index("SHA-256")
    assert (row[header.index("made")], row[header.index("from")]) == (made, "proteins.fasta")
    assert f"{made}, from proteins.fasta" in HtmlPage(served.request("/").text).text


def test_subjects_that_the_composition_leaves_out_are_explained(served):
    """Source: the sentence of the report for readers, which has the same numbers."""
    info = replace(RUN, parameters={**RUN.parameters, "composition": "adjust", "top": 25, "evalue": 10.0})
    query = replace(make_query(0, 1), n_passed=3)
    with stored_run(served, info, [query]) as run_id:
        page = served.request(f"/results/run-{run_id}").text
    text = HtmlPage(page).text
    assert "by score; 1 remains after the adjustment for composition" in text
    assert "What the adjustment for composition means" in text
    assert "rich in the same amino acids" in text


def test_bars_of_the_overview_lead_to_hits(served, protein):
    _, (query,) = stored(served, protein)
    page = served.request(protein).text
    bars = re.findall(r'<li><a href="([^"]*)" title="[^"]*" data-rank="(\d+)">.*?<rect x="([\d.]+)%"', page)
    assert [int(rank) for _, rank, _ in bars] == list(range(1, len(bars) + 1))
    assert [float(x) for _, _, x in bars] == pytest.approx(
        [100 * hit.alignment.query_start / query.length for hit in query.hits[: len(bars)]], abs=0.001
    )
    assert {address for address, _, _ in bars} == {f"{protein}/queries/1/hits/{rank}" for _, rank, _ in bars}


def test_several_queries_are_listed_with_their_best_hits(served, several):
    _, queries = stored(served, several)
    page = HtmlPage(served.request(several).text)
    assert [row[4] for row in page.rows[1:]] == [
        query.hits[0].subject_header.split()[0] if query.hits else "none" for query in queries
    ]
    assert f"{several}/queries/3" in page.links


def test_several_databases_make_several_searches(served):
    answer = served.post("/searches", {"sequences": PROTEIN, "databases": ["proteins.db", "hostile.db"], "top": "2"})
    assert (answer.status, answer.headers["location"]) == (303, "/history")
    page = HtmlPage(served.request("/history").text)
    assert [row[3] for row in page.rows[1:3]] == ["hostile.db", "proteins.db"]
    for address in [link for link in page.links if link.startswith("/results/")][:2]:
        served.ended(address)


def test_an_uploaded_file_may_be_compressed(served):
    archive = "q.fasta.gz", gzip.compress(PROTEIN.encode())
    answer = served.send_form("/searches", [("databases", "proteins.db"), ("file", archive)])
    assert answer.status == 303
    served.ended(answer.headers["location"])
    assert "ENGB_MYCH2" in served.request(answer.headers["location"]).text


@pytest.mark.parametrize(
    ("fields", "place", "problem"),
    [
        ({"sequences": " "}, "sequences", "Paste at least one sequence"),
        ({"sequences": ">a\nMKV1L\n"}, "sequences", "line 2, column 4"),
        ({"sequences": READ}, "sequences", "to translate it say “Translate” query"),
        ({"sequences": PROTEIN, "databases": []}, "databases", "Choose at least one database."),
        ({"sequences": PROTEIN, "databases": "/etc/passwd"}, "databases", "There is no database"),
        ({"sequences": PROTEIN, "top": "x"}, "top", "Give a whole number."),
        ({"sequences": PROTEIN, "top": "100001"}, "top", "lists up to 100,000 subjects"),
        ({"sequences": PROTEIN, "translate": "subject"}, "translate", "does not fit"),
        ({"sequences": PROTEIN, "match": "2", "mismatch": "-3"}, None, "“Match”"),
        ({"sequences": PROTEIN, "id_pattern": "("}, "id_pattern", "unterminated subpattern"),
        ({"sequences": PROTEIN, "alphabet": "dna"}, "alphabet", "protein"),
    ],
)
def test_a_problem_is_said_beside_its_field_and_the_form_keeps_its_contents(idle, fields, place, problem):
    sent = {"databases": "proteins.db", "min_identity": "12", **fields}
    answer = idle.post("/searches", sent)
    assert answer.status == 422
    page = HtmlPage(answer.text)
    assert problem in page.text
    if place is not None:
        assert f"#{place}" in page.links
        assert f'id="{place}-error"' in answer.text
        assert re.search(rf'id="{place}"[^>]*aria-invalid=true', answer.text)
    assert page.values["min_identity"] == "12"
    if fields["sequences"].strip():
        assert fields["sequences"] in page.text
    if fields.get("databases") is None:
        assert re.search(r'value="proteins.db"[^>]* checked', answer.text)


def test_subjects_may_be_pasted_in_place_of_a_database(served):
    records = [f">mine{number}\n{LETTERS[number:]}\n" for number in range(3)]
    address = served.search(f">query\n{LETTERS}\n", [], subjects="".join(records))
    page = HtmlPage(served.request(address).text)
    assert [row[1].split()[0] for row in page.rows if row[0].isdigit()] == ["mine0", "mine1", "mine2"]
    again = HtmlPage(served.request(f"/?again={address.rpartition('/')[2]}").text)
    assert "".join("".join(records).split()) in "".join(again.text.split())
    refused = served.post("/searches", {"sequences": LETTERS, "subjects": ">a\nMK1\n"})
    assert refused.status == 422
    assert "the subjects, record 1 (a), line 2, column 3" in HtmlPage(refused.text).text


def test_a_server_that_takes_no_subjects_offers_no_place_for_them(settings, tmp_path):
    with serving(replace(settings, store=str(tmp_path / "hits.sqlite"), subject_sets=None)) as running:
        assert "Your own subjects" not in HtmlPage(running.request("/").text).text
        refused = running.post("/searches", {"sequences": LETTERS, "subjects": f">a\n{LETTERS}\n"})
        assert "this server takes no subjects" in HtmlPage(refused.text).text


def test_an_example_fills_the_form(idle):
    for example in EXAMPLES:
        text = idle.request(f"/?example={example.name}").text
        assert example.fasta in HtmlPage(text).text
        chosen = re.search(r'value="([^"]*)" data-alphabet="([^"]*)" checked', text)
        assert chosen[2] == example.alphabet


def test_a_search_can_be_made_again_with_other_options(served, several):
    text = served.request(f"/?again={several.split('/')[2]}").text
    page = HtmlPage(text)
    for line in SEVERAL.splitlines():
        if line.startswith(">"):
            assert line in page.text
    assert page.values["top"] == "100"
    found = served.search(PROTEIN, top="9", iterations="2", evalue="1e-5")
    again = HtmlPage(served.request(f"/?again={found.split('/')[2]}").text).values
    assert [again[name] for name in ("top", "evalue", "inclusion_evalue")] == ["9", "1e-05", "0.01"]
    assert "inclusion" not in HtmlPage(served.request(f"{found}/commands").text).text


def test_headers_are_text_whatever_they_hold(served, hostile):
    """Every page of the result is parsed strictly; the texts of the headers are in it, and no element is."""
    reference = hostile.split("/")[2]
    paths = [hostile, f"/?again={reference}", "/history", f"{hostile}/commands"]
    for number in (1, 2):
        base = f"{hostile}/queries/{number}"
        parts = ("scores", "coverage", "organisms", "domains", "hits/1", "hits/2", "hits/5")
        paths += [base, *(f"{base}/{part}" for part in parts)]
        paths += [f"{base}?text=%3Cscript%3E", f"{base}?text=%22%27%3E%3Cb%3E&taxid=%3Cb%3E&max_evalue=%22"]
    for path in paths:
        answer = served.request(path)
        assert answer.status in (200, 422), path
        HtmlPage(answer.text)
        assert "49" not in re.findall(r"RTL \u05d0\u05d1\u05d2 (\S+)", answer.text)
    text = HtmlPage(served.request(f"{hostile}/queries/1").text).text
    for header in HOSTILE:
        for word in header.replace("\x7f", " ").split():
            assert word in text
    assert "bytes\ufffd\ufffd" in text
    organisms = HtmlPage(served.request(f"{hostile}/queries/1/organisms").text)
    assert organisms.rows[1][0] == '<b>Evil</b> & "sons"'


def test_hostile_headers_are_files_as_they_are(served, hostile):
    """Source: the subjects' own FASTA: downloads escape nothing, and are sent as attachments of their type."""
    answer = served.request(f"{hostile}/queries/1/sequences.fasta?part=whole")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "sandbox"
    assert b">bytes\xff\xfe not UTF-8\n" in answer.content
    assert f">{HOSTILE[0]}\n".encode() in answer.content


def test_every_link_leads_somewhere_and_no_answer_has_a_path_of_the_server(served, protein, read, several):
    folder = str(served.settings.databases["proteins.db"].parent)
    seen = crawled(served, ["/", protein, read, several, f"{protein}/queries/1/hits/2"])
    assert len(seen) > 60
    assert {path: answer.status for path, answer in seen.items() if answer.status not in (200, 303)} == {}
    for path, answer in seen.items():
        assert folder.encode() not in answer.content, path
        assert str(served.settings.store).encode() not in answer.content, path
    assert any(path.endswith("/report/parquet?query=1") for path in seen)
    assert any(path.startswith("/static/LICENSES") or path.endswith("openapi.json") for path in seen)


def test_errors_are_pages_with_the_status_and_the_words_of_the_api(served, monkeypatch):
    """A database that cannot be read is named by no page, since its message has a path of the server."""

    def fail(*_):
        raise DatabaseError("/srv/secret/proteins.db cannot be read")

    monkeypatch.setattr(served.app.state.service.store.runs, "get", fail)
    answer = served.request("/results/run-1")
    assert answer.status == 503
    assert "the database cannot be read at the moment" in HtmlPage(answer.text).text
    assert "/srv/secret" not in answer.text


def test_pages_forbid_what_they_do_not_have(served, protein):
    answer = served.request(protein)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "private, no-cache"
    script = next(link for link in HtmlPage(answer.text).links if "htmx-2" in link)
    assert "immutable" in served.request(script).headers["cache-control"]
    assert served.request("/static/../app.py").status == 404
    assert served.request("/static/style.css").text.startswith("/* Components of the html report")


def test_an_icon_is_where_browsers_look_for_it(served, protein):
    """A page names its own; for any other answer, browsers ask for ``/favicon.ico``."""
    icon = re.search(r'<link rel="icon" href="([^"]+)">', served.request(protein).text)[1]
    for path in (icon, "/favicon.ico"):
        answer = served.request(path)
        assert answer.headers["content-type"] == "image/svg+xml"
        assert answer.text.startswith("<svg ")


@pytest.mark.parametrize("name", sorted({*FORMATS} - OF_TAXA))
def test_downloads_are_the_reports_of_the_run(served, several, name):
    run, queries = stored(served, several)
    for path, chosen in ((f"{several}/report/{name}", queries), (f"{several}/report/{name}?query=2", queries[1:2])):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="\n")
        with open_database(served.settings.databases["proteins.db"]) as database:
            new_report(name).write_all(ReportContext(run.info, database), chosen, stream)
        stream.flush()
        answer = served.request(path)
        assert answer.content == stream.buffer.getvalue()
        assert answer.headers["content-disposition"].startswith("attachment; filename=")


def test_a_download_has_the_hits_of_the_filter(served, several):
    _, queries = stored(served, several)
    lines = served.request(f"{several}/report/blast6?query=2&min_identity=40").text.splitlines()
    assert len(lines) == sum(hit.pident >= 40 for hit in queries[1].hits) not in (0, len(queries[1].hits))


def test_sequences_are_parts_of_the_subjects(served, several):
    """Source: the database's own records, cut by hand at the stored coordinates."""
    _, queries = stored(served, several)
    hit = queries[1].hits[2]
    start, end = hit.alignment.subject_start, hit.alignment.subject_end
    with open_database(served.settings.databases["proteins.db"]) as database:
        letters = database.record(hit.subject_index).letters
    base = f"{several}/queries/2/sequences.fasta?rank={hit.rank}"
    flank = 7
    first, last = max(0, start - flank), min(len(letters), end + flank)
    expected = {
        "part=whole": (hit.subject_id, letters),
        "part=aligned": (f"{hit.subject_id}:{start + 1}-{end}", letters[start:end]),
        f"part=flanks&flank={flank}": (f"{hit.subject_id}:{first + 1}-{last}", letters[first:last]),
    }
    for given, (name, sequence) in expected.items():
        header, _, body = served.request(f"{base}&{given}").text.partition("\n")
        assert header.split()[0] == f">{name}"
        assert body.replace("\n", "") == sequence
    everything = served.request(f"{several}/queries/2/sequences.fasta?part=whole").text
    assert everything.count(">") == len({hit.rank for hit in queries[1].hits})


def test_sequences_of_a_database_that_has_changed_are_refused_but_for_aligned_parts(served):
    """The run was stored with a digest that no database has."""
    with stored_run(served, RUN, [make_query(0)]) as run_id:
        base = f"/results/run-{run_id}/queries/1/sequences.fasta"
        answer = served.request(f"{base}?part=whole")
        assert answer.status == 400
        assert "download aligned parts" in answer.text
        assert served.request(f"{base}?part=aligned").text.startswith(">sp|P00001|NAME_ORGANISM:2-57 query=")


def test_progress_is_sent_as_events_until_the_end(served):
    answer = served.post("/searches", {"sequences": SEVERAL, "databases": "proteins.db", "max_hsps": "2"})
    events = served.ended(answer.headers["location"])
    assert events.rstrip().endswith("data: ended")
    last = [line for line in events.splitlines() if "data-announce" in line][-1]
    assert 'data-announce="Finished"' in last


def test_a_waiting_search_has_a_place_and_can_be_cancelled(idle):
    """Two searches without a worker: the second waits for the first."""
    first, second = (
        idle.post("/searches", {"sequences": SEVERAL, "databases": "proteins.db", "max_hsps": hsps}).headers["location"]
        for hsps in ("4", "5")
    )
    wait_until(lambda: "before this one" in idle.request(second).text, "estimates that are a quarter of a second old")
    page = idle.request(second).text
    assert "1 search before this one" in HtmlPage(page).text
    assert f'sse-connect="{second}/events"' in page
    assert '<noscript><meta http-equiv="refresh"' in page
    assert "next in the queue" in HtmlPage(idle.htmx(f"{first}/progress").text).text
    for address in (first, second):
        answer = idle.post(f"{address}/cancel", {})
        assert (answer.status, answer.headers["location"]) == (303, address)
        assert "Cancelled" in HtmlPage(idle.request(address).text).text
    assert idle.request(f"{first}/queries/1").status == 404


def test_a_search_that_cannot_be_made_says_why(served):
    answer = served.post("/searches", {"sequences": PROTEIN, "databases": "proteins.db", "taxid": "human"})
    assert (answer.status, "Give NCBI taxonomy ids" in answer.text) == (422, True)
    address = served.search(PROTEIN, taxid="999999999")  # an id, and no subject has it
    text = HtmlPage(served.request(address).text).text
    assert "Failed" in text
    assert "“Organisms”" in text or "--taxid" in text


def test_a_form_of_another_site_is_refused(idle):
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert idle.post("/searches", {"sequences": PROTEIN, "databases": "proteins.db"}, **headers).status == 403


@pytest.mark.parametrize(
    "path",
    ["/results/none", "/results/run-99999", "/results/run-x", "/results/none/events", "/results/none/report/json",
     "{}/queries/0", "{}/queries/2", "{}/queries/99999999999999999999999", "{}/queries/x", "{}/queries/1/hits/9999",
     "{}/report/exe", "{}/report/blast6?query=7", "{}/queries/1/alignment?rank=100000", "{}/queries/9/alignment",
     "{}/queries/9/scores", "{}/queries/9/hits/1"],
)  # fmt: skip
def test_what_is_not_there_is_a_page_that_says_so(served, protein, path):
    answer = served.request(path.format(protein))
    assert answer.status == 404
    assert "There is no such result" in HtmlPage(answer.text).text


def test_a_share_is_a_link_to_the_same_result(served, protein):
    page = HtmlPage(served.post(f"{protein}/share", {}).text)
    address = (
        page.values.get("address")
        or re.search(r'value="([^"]*/results/[^"]*)"', served.post(f"{protein}/share", {}).text)[1]
    )
    assert urlsplit(address).path == protein


def test_a_run_of_the_command_line_is_shown(served):
    """The records are those that a command stores; its path of the database is on no page."""
    database = replace(RUN.database, paths=("/secret/folder/proteins.db",))
    command = "swsearch query q.fa /secret/folder/proteins.db"
    info = replace(RUN, database=database, command=command, matrix_scores=matrix_text(named_matrix("BLOSUM62")))
    with stored_run(served, info, [make_query(number, 2) for number in range(3)]) as run_id:
        assert f"/results/run-{run_id}" in HtmlPage(served.request("/history").text).links
        page = HtmlPage(served.request(f"/results/run-{run_id}").text)
        assert [row[1].split()[0] for row in page.rows[1:]] == ["query_0", "query_1", "query_2"]
        for path in ("", "/queries/2", "/commands", "/queries/2/hits/1"):
            answer = served.request(f"/results/run-{run_id}{path}")
            assert answer.status == 200
            assert b"/secret" not in answer.content
        assert served.request(f"/results/run-{run_id}/events").status == 404  # nothing tells the changes of such a run


def test_a_run_that_read_files_of_options_is_not_searched_again(served):
    """A server reads no such files, so the search of its page would be another one."""
    info = replace(RUN, command="swsearch query /secret/p.db", parameters=RUN.parameters | {"contexts": "/secret/x"})
    with stored_run(served, info, [make_query(0, 2)]) as run_id:
        assert served.request(f"/results/run-{run_id}/request.json").status == 404
        answer = served.request(f"/results/run-{run_id}/commands")
        assert answer.status == 200
        assert b"/secret" not in answer.content
        assert "query_0" not in HtmlPage(served.request(f"/?again=run-{run_id}").text).text


def test_databases_have_counts_and_digests(idle):
    page = HtmlPage(idle.request("/databases").text)
    assert [row[0] for row in page.rows[1:]] == list(idle.settings.databases)
    for row, path in zip(page.rows[1:], idle.settings.databases.values(), strict=True):
        with open_database(path) as database:
            assert row[2:4] == [f"{database.n_subjects:,}", f"{database.n_residues:,}"]
            assert row[7] == database.digest


def test_a_result_of_100_000_hits_is_shown_in_pages(served):
    """The hits are copies of one, made in SQL; a page has 50 of them and is no larger than that of 50 hits."""
    import sqlite3

    first = replace(make_query(0), hits=(make_hit(1),), n_passed=100_000)
    with stored_run(served, RUN, [first]) as run_id:
        with sqlite3.connect(served.settings.store) as connection:
            query_id, columns = connection.execute(
                "SELECT id, (SELECT group_concat(name) FROM pragma_table_info('hits')) FROM queries WHERE run_id = ?",
                [run_id],
            ).fetchone()
            chosen = (
                columns.replace("rank", "n").replace("score", "1000 - n % 900").replace("subject_header", "'s' || n", 1)
            )
            connection.execute(
                "WITH RECURSIVE ranks(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM ranks WHERE n < 100000) "
                f"INSERT INTO hits ({columns}) SELECT {chosen} FROM hits, ranks WHERE query_id = ? AND rank = 1",
                [query_id],
            )  # fmt: skip
            connection.execute("UPDATE queries SET n_hits = 100000 WHERE id = ?", [query_id])
        connection.close()
        base = f"/results/run-{run_id}/queries/1"
        answer = served.request(base)
        page = HtmlPage(answer.text)
        assert "Hits 1 to 50 of 100,000" in page.text
        assert "The best 50 of the 100,000 hits below." in page.text
        assert len(answer.content) < 120_000
        last = HtmlPage(served.htmx(f"{base}?page=2000").text)
        assert last.rows[-2][0] == "100000"
        best = HtmlPage(served.htmx(f"{base}?sort=score&dir=asc").text)
        assert best.rows[1][0] == "899"
        assert (
            "Hits 1 to 1 of 1 that fit the filter, of 100,000" in HtmlPage(served.htmx(f"{base}?text=s77777").text).text
        )
        assert "100,000 alignments" in HtmlPage(served.htmx(f"{base}/coverage").text).text


def test_without_a_worker_nothing_is_lost(idle):
    """A search that was submitted before its worker came is found, and its result is there after it went."""
    answer = idle.post("/searches", {"sequences": PROTEIN, "databases": "proteins.db", "top": "3", "max_hsps": "9"})
    with working(idle.settings):
        idle.ended(answer.headers["location"])
    assert "Hits 1 to" in HtmlPage(idle.request(answer.headers["location"]).text).text


def test_a_protein_has_its_domains(served, protein, read, tmp_path):
    """Expected: `swsearch.find_domains`; browsers keep the answer, and what fails says no more than that."""
    _, (query,) = stored(served, protein)
    (tmp_path / "query.fasta").write_text(f">{query.header}\n{query.letters}\n")
    ((found,),) = (one.families for one in swsearch.find_domains(tmp_path / "query.fasta", served.settings.families))
    address = f"{protein}/queries/1/domains"
    answer = served.request(address)
    assert answer.headers["cache-control"] == "private, max-age=86400"
    (row,) = (row for row in HtmlPage(answer.text).rows if row[0] == found.family.name)
    first, last = found.domains[0].domain.of_protein
    assert (row[2], row[5]) == (f"{first + 1}-{last}", f"{found.domains[0].domain.bits:.0f}")
    assert address in HtmlPage(served.request(f"{protein}/queries/1").text).links
    assert served.request(f"{read}/queries/1/domains").status == 404
    other = served.search(">other\nMKWVTFISLLFLFSSAYSRGVFRRDAHKSEVAHRFKDLGE\n")
    assert "has no domain" in served.request(f"{other}/queries/1/domains").text
    finder = DomainFinder([str(tmp_path / "gone.hmm")])
    with pytest.raises(EngineError, match=r"gone\.hmm: No such file"):
        asyncio.run(finder.of(query.letters))


def test_places_in_a_genome_are_listed_by_their_evalues(served):
    """Source: the report of the same run as blast6, which has the same order and places."""
    genome = (DATA / "lambda_phage.fasta").read_text().split("\n", 1)[1].replace("\n", "")
    gene = genome[37226:37940]
    protein = str(Seq(gene).reverse_complement().translate(table=11)).rstrip("*")
    options = {"translate": "subject", "genetic_code": "11"}
    address = served.search(f">repressor\n{protein}\n", "lambda.db", **options)
    page = HtmlPage(served.request(f"{address}/queries/1").text)
    rows = [line.split("\t") for line in served.request(f"{address}/report/blast6").text.splitlines()]
    assert len(rows) > 1
    assert "on subject" in page.text
    assert "subj. cov." not in page.text
    shown = [page.text.index(f"{int(row[8]):,}-{int(row[9]):,}") for row in rows]
    assert shown == sorted(shown)
    assert all(f"1.{number}" in page.text for number in range(1, len(rows) + 1))

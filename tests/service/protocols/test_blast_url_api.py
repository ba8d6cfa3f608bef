"""The BLAST URL API request by request.

Sources: NCBI's description of the API, and how the clients read its answers.
"""

import base64
import gzip
import io
import json
import re
import socket
import urllib.request
import zipfile
from contextlib import suppress
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import pytest
from Bio import Blast
from Bio.Blast import NCBIWWW
from urllib3 import encode_multipart_formdata

from tests.patience import wait_until
from tests.service.protocols.expected import protein
from tests.service.servers import RunningServer, local_report

CGI = "/blast/Blast.cgi"
LONG = ">long\n" + "MKVLAAGIVGLCAKAYLEWT" * 5000 + "\n"
"""A query of 6.5e10 cells, which is not done while a test looks at it."""


def get(server, _headers=None, **fields):
    """Status and text of a GET; unless it is told how long to wait, it asks again while the search waits."""
    headers = _headers or {}
    while True:
        answer = server.request(f"{CGI}?{urlencode(fields)}", **headers)
        is_page = answer.text.startswith("<!DOCTYPE html>")
        if "Prefer" in headers or not is_page or "Status=WAITING\n" not in answer.text:
            return answer.status, answer.text


def put(server, _headers=None, **fields):
    """The RID of a submission by POST."""
    asked = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "few.db", "QUERY": protein(), **fields}
    headers = {"Content_Type": "application/x-www-form-urlencoded", **(_headers or {})}
    answer = server.request(CGI, urlencode(asked), **headers)
    assert answer.status == 200
    found = re.search(r"^    RID = ([A-Z2-7]{26})$", answer.text, re.MULTILINE)
    assert found, answer.text
    assert re.search(r"^    RTOE = \d+$", answer.text, re.MULTILINE)
    return found[1]


def info(text):
    """The values of the block, read as Biotite reads them."""
    block = text.partition("QBlastInfoBegin\n")[2].partition("QBlastInfoEnd")[0]
    return {name.strip(): value.strip() for name, value in (line.split("=") for line in block.splitlines())}


@pytest.fixture(scope="module")
def rid(server):
    """A finished search."""
    made = put(server)
    assert info(get(server, CMD="Get", RID=made, FORMAT_OBJECT="SearchInfo")[1])["Status"] == "READY"
    return made


def test_a_report_has_the_bytes_of_a_query(server, databases, rid, tmp_path):
    def local(name):
        return local_report(databases / "few.db", tmp_path, "--format", name, queries=protein()).decode()

    for form, name in (("XML", "xml"), ("XML2_S", "xml2"), ("JSON2_S", "json2")):
        assert get(server, CMD="Get", RID=rid, FORMAT_TYPE=form) == (200, local(name))
    for form, name in (("Text", "pairwise"), ("Tabular", "blast7")):
        _, text = get(server, CMD="Get", RID=rid, FORMAT_TYPE=form)
        assert text == f"<p><!--\nQBlastInfoBegin\n\tStatus=READY\nQBlastInfoEnd\n--><p>\n<PRE>\n{local(name)}</PRE>\n"
    assert get(server, CMD="Get", RID=rid, FORMAT_TYPE="Text", ALIGNMENT_VIEW="Tabular")[1] == text


def test_a_rid_is_read_in_any_case_and_a_browser_gets_the_page(server, rid):
    assert get(server, cmd="get", rid=rid.lower(), format_type="xml")[1].startswith("<?xml ")
    page = server.request(server.request(f"{CGI}?CMD=Get&RID={rid}").headers["location"])
    assert page.status == 200
    assert 'class="brand"' in page.text


def test_a_finished_search_is_kept_when_its_rid_is_deleted(server, rid):
    """Biotite deletes every RID at its end; the history and the shared link of its user stay."""
    status, page = get(server, CMD="Delete", RID=rid)
    assert (status, "is kept until it expires" in page) == (200, True)
    assert get(server, CMD="Get", RID=rid, FORMAT_TYPE="XML")[0] == 200


def test_alignments_limits_the_subjects(server, rid):
    whole, first = (
        ElementTree.fromstring(get(server, CMD="Get", RID=rid, FORMAT_TYPE="XML", **more)[1])
        for more in ({}, {"ALIGNMENTS": "1"})
    )
    assert len(list(whole.iter("Hit"))) > 1
    assert [hit.findtext("Hit_id") for hit in first.iter("Hit")] == [next(whole.iter("Hit")).findtext("Hit_id")]


def test_several_queries_are_several_files(server):
    made = put(server, QUERY=f"{protein()}>nothing\nGG\n", EXPECT="5")
    assert info(get(server, CMD="Get", RID=made, FORMAT_OBJECT="SearchInfo")[1])["ThereAreHits"] == "yes"
    status, headers, archive = server.request(f"{CGI}?CMD=Get&RID={made}&FORMAT_TYPE=JSON2")
    assert (status, headers["content-type"]) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(archive)) as found:
        names = [f"{made}_1.json", f"{made}_2.json"]
        assert [document["File"] for document in json.loads(found.read(f"{made}.json"))["BlastJSON"]] == names
        searches = [json.loads(found.read(name))["BlastOutput2"]["report"]["results"]["search"] for name in names]
    assert [(search["query_title"].split()[0], bool(search["hits"])) for search in searches] == [
        (protein().split()[0][1:], True), ("nothing", False),
    ]  # fmt: skip
    empty = put(server, QUERY=">nothing\nGG\n", EXPECT="5")
    assert info(get(server, CMD="Get", RID=empty, FORMAT_OBJECT="SearchInfo")[1]) == {
        "Status": "READY", "ThereAreHits": "no",
    }  # fmt: skip


def test_no_report_has_the_text_by_which_clients_know_a_state(server):
    """`NCBIWWW.qblast` would wait for ever for a query with this header."""
    header = "q Status=WAITING &<tag>"
    NCBIWWW.qblast.previous = 0
    query = protein().partition("\n")[2]
    asked = {"database": "few.db", "sequence": f">{header}\n{query}", "url_base": f"{server.url}{CGI}"}
    text = NCBIWWW.qblast("blastp", **asked).getvalue()
    assert ElementTree.fromstring(text).findtext("BlastOutput_query-def") == header
    made = put(server, QUERY=f">{header}\n{query}", HITLIST_SIZE="50")
    for form in ("XML", "XML2_S", "JSON2_S"):
        assert "Status=" not in get(server, CMD="Get", RID=made, FORMAT_TYPE=form)[1]
    found = json.loads(get(server, CMD="Get", RID=made, FORMAT_TYPE="JSON2_S")[1])["BlastOutput2"][0]
    assert found["report"]["results"]["search"]["query_title"] == header
    tree = ElementTree.fromstring(get(server, CMD="Get", RID=made, FORMAT_TYPE="XML2_S")[1])
    assert tree.findtext(".//{http://www.ncbi.nlm.nih.gov}query-title") == header
    text = get(server, CMD="Get", RID=made, FORMAT_TYPE="Text")[1]
    assert text.index("Status=READY\n") == text.index("Status=")


def test_a_search_waits_and_is_deleted(server):
    made = put(server, QUERY=LONG, DATABASE="proteins.db", EXPECT="1e9")
    for fields in ({"FORMAT_TYPE": "XML"}, {"FORMAT_OBJECT": "SearchInfo"}):
        status, page = get(server, {"Prefer": "wait=0"}, CMD="Get", RID=made, **fields)
        assert (status, info(page)) == (200, {"Status": "WAITING"})
        assert page.startswith("<!DOCTYPE html")
        assert "\n    Status=WAITING\n" in page
    status, page = get(server, CMD="Delete", RID=made)
    assert (status, f"Search {made} is cancelled." in page) == (200, True)
    status, page = get(server, CMD="Get", RID=made, FORMAT_OBJECT="SearchInfo")
    assert (status, info(page)) == (200, {"Status": "UNKNOWN"})
    assert get(server, CMD="Get", RID=made, FORMAT_TYPE="XML")[0] == 404


def test_a_held_request_is_answered_at_the_end_of_the_search(server):
    """The search is done long before the time for which the request could be held."""
    made = put(server, QUERY=protein(), EXPECT="2.5")
    status, text = get(server, CMD="Get", RID=made, FORMAT_TYPE="XML")
    assert (status, text[:6]) == (200, "<?xml ")


def test_a_failed_search_says_why_and_nobody_asks_again(server):
    made = put(server, ENTREZ_QUERY="txid999999999[ORGN]")
    status, page = get(server, CMD="Get", RID=made, FORMAT_TYPE="XML")
    assert (status, info(page)) == (409, {"Status": "FAILED"})
    assert "no subject of few.db passes" in page
    assert info(get(server, CMD="Get", RID=made, FORMAT_OBJECT="SearchInfo")[1]) == {"Status": "FAILED"}
    Blast.qblast.previous = 0
    refused = {"database": "few.db", "sequence": protein(), "entrez_query": "txid999999999[ORGN]"}
    with pytest.raises(HTTPError, match="409") as raised:
        Blast.qblast("blastp", **refused, url_base=f"{server.url}{CGI}")
    raised.value.close()


def test_unknown_rids(server):
    for unknown in ("", "nonsense", "A" * 26, "é" * 26):
        status, page = get(server, CMD="Get", RID=unknown, FORMAT_OBJECT="SearchInfo")
        assert (status, info(page)) == (200, {"Status": "UNKNOWN"})
        assert get(server, CMD="Get", RID=unknown, FORMAT_TYPE="XML")[0] == 404
        assert get(server, CMD="Delete", RID=unknown)[0] == 404


def test_refusals_of_requests(server, rid):
    for status, message, fields in (
        (400, "CMD is missing; choose Put, Get or Delete", {}),
        (400, "CMD=web is not available", {"CMD": "Web"}),
        (400, "FORMAT_TYPE=HTML is not for programs", {"CMD": "Get", "RID": rid, "FORMAT_TYPE": "HTML"}),
        (400, "FORMAT_TYPE=ASN.1 is not available", {"CMD": "Get", "RID": rid, "FORMAT_TYPE": "ASN.1"}),
        (
            400,
            "ALIGNMENTS=some: a whole number",
            {"CMD": "Get", "RID": rid, "FORMAT_TYPE": "XML", "ALIGNMENTS": "some"},
        ),
        (400, "ALIGNMENTS=0: at least 1", {"CMD": "Get", "RID": rid, "FORMAT_TYPE": "XML", "ALIGNMENTS": "0"}),
        (400, "FORMAT_OBJECT=pssm is not available", {"CMD": "Get", "RID": rid, "FORMAT_OBJECT": "PSSM"}),
        (200, "there is no parameter COLOUR", {"CMD": "Put", "COLOUR": "red"}),
        (200, "there is no parameter &lt;b&gt;", {"CMD": "Put", "<b>": "red"}),
    ):
        found, page = get(server, **fields)
        assert (found, info(page)) == (status, {"RID": "", "RTOE": ""})
        assert f'<p class="error">Message ID#24 Error: {message}' in page
        assert str(server.folder) not in page
    assert get(server, CMD="Put", QUERY="M" * 200_000)[0] == 414
    status, _, content = server.request(CGI, b"{}", Content_Type="application/json")
    assert (status, b"send a form" in content) == (400, True)


def test_a_get_that_changes_something_is_of_this_site(server):
    fields = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "few.db", "QUERY": "MKV"}
    for headers in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}, {"Referer": "http://evil.org/"}):
        for asked in (fields, {"CMD": "Delete", "RID": "A" * 26}):
            page = get(server, headers, **asked)[1]
            assert "sent by the page of another site" in page
            assert "RID = A" not in page
    assert info(get(server, {"Referer": f"{server.url}/"}, **fields)[1])["RID"]
    assert info(get(server, {"Sec_Fetch_Site": "none"}, **fields)[1])["RID"]


def test_files_are_uploaded(server, rid):
    """A form of several parts, as ``curl -F QUERY=@query.fasta.gz`` sends it; the same search has the same report."""
    put_file = [("CMD", "Put"), ("PROGRAM", "blastp"), ("DATABASE", "few.db")]
    put_file.append(("QUERY", ("q.gz", gzip.compress(protein().encode()))))
    answer = server.send_form(CGI, put_file)
    made = info(answer.text)["RID"]
    one, other = (get(server, CMD="Get", RID=name, FORMAT_TYPE="XML") for name in (made, rid))
    assert (answer.status, one) == (200, other)
    body, kind = encode_multipart_formdata(put_file)
    plain = kind.partition(";")[0]
    for sent, of_kind, message in ((body[:-30], kind, "QUERY is missing"), (body, plain, "cannot be read")):
        assert message in server.request(CGI, sent, Content_Type=of_kind).text


def _ask_and_go(server, line, headers):
    """Send a request that is held, and close the connection."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        sent = "".join(f"{name}: {value}\r\n" for name, value in {"Host": address.netloc, **headers}.items())
        connection.sendall(f"{line}\r\n{sent}\r\n".encode())
        connection.settimeout(0.3)
        with suppress(TimeoutError):  # the server has the request, and holds it
            connection.recv(1)


def test_owners_have_their_own_searches_and_a_rid_survives_the_server(tmp_path, databases, monkeypatch):
    """One server without a worker accepts a search and is killed; the next one answers it, to its owner."""
    monkeypatch.setattr(urllib.request, "_opener", None)  # Biopython installs one with the token
    protocol = ["--protocol", "blast"]
    idle = RunningServer(tmp_path, [databases / "few.db"], *protocol, "--no-worker", owners=["ann", "bob"])
    tokens = list(idle.tokens.values())
    ann, bob = ({"Authorization": f"Basic {base64.b64encode(f'x:{token}'.encode()).decode()}"} for token in tokens)
    assert idle.request(f"{CGI}?CMD=Get&RID=A").headers["www-authenticate"].startswith("Basic")
    made = put(idle, ann)
    assert info(get(idle, {**ann, "Prefer": "wait=0"}, CMD="Get", RID=made, FORMAT_TYPE="XML")[1]) == {
        "Status": "WAITING"
    }
    idle.kill()
    with RunningServer(tmp_path, [databases / "few.db"], *protocol, "--limit", "downloads=1") as running:
        assert get(running, ann, CMD="Get", RID=made, FORMAT_TYPE="XML")[0] == 200
        status, page = get(running, bob, CMD="Get", RID=made, FORMAT_OBJECT="SearchInfo")
        assert (status, info(page)) == (200, {"Status": "UNKNOWN"})
        assert get(running, bob, CMD="Delete", RID=made)[0] == 404
        for module in (Blast, NCBIWWW):
            module.qblast.previous = 0
            asked = {"url_base": f"{running.url}{CGI}", "password": tokens[0]}
            stream = module.qblast("blastp", "few.db", protein(), **asked)
            assert b"<Hit_id>" in (stream.getvalue().encode() if module is NCBIWWW else stream.read())
            stream.close()
        slow = put(running, ann, QUERY=LONG)
        named = {**ann, "X-Request-ID": "gone"}
        _ask_and_go(running, f"GET {CGI}?CMD=Get&RID={slow}&FORMAT_TYPE=XML HTTP/1.1", named)
        wait_until(lambda: "gone" in [line["request_id"] for line in running.events("request")], "the client is gone")
        assert get(running, ann, CMD="Get", RID=made, FORMAT_TYPE="XML")[0] == 200  # the only download is not taken
        assert all(token not in json.dumps(line) for token in tokens for line in list(running.log))

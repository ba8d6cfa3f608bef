"""The API of a running server. Expected values: `swsearch query` against the same database."""

import base64
import gzip
import json
import re
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from swsearch.cli.app import main
from swsearch.report.formats import FORMATS
from swsearch.service.client import Client, ServerError
from swsearch.store.store import Store
from tests.patience import wait_until
from tests.report.conftest import OF_TAXA
from tests.service.servers import RunningServer, local_report, worker_pids
from tests.support import DATA

OPTIONS = {"top": 5, "evalue": 0.001}
ARGUMENTS = ["--top", "5", "--evalue", "0.001"]


@pytest.fixture(scope="module")
def finished(server, queries):
    """A finished search of seven queries."""
    client = server.client()
    submitted = client.submit(queries, "proteins.db", OPTIONS)
    return client.wait(submitted["id"])


@pytest.mark.parametrize("name", sorted({*FORMATS} - OF_TAXA))
def test_a_report_has_the_bytes_of_a_query(server, databases, finished, name, tmp_path):
    local = local_report(databases / "proteins.db", tmp_path, "--format", name, *ARGUMENTS)
    assert server.client().report(finished["id"], name) == local


def test_a_search_is_a_run_of_the_store(server, finished):
    assert finished["state"] == "done"
    assert finished["queries"] == {"total": 7, "done": 7, "failed": 0}
    assert finished["cells_done"] == finished["cells"] > 0
    with Store(server.store) as store:
        run = store.runs.get(finished["run"])
        assert (run.state, run.n_queries, run.n_missing) == ("finished", 7, 0)
        assert sum(result.stats.cells for result in store.results.queries(run.id)) == finished["cells"]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"translate": "subject", "max_hsps": 3, "genetic_code": 11}, ["--translate", "subject", "--max-hsps", "3"]),
        ({"evalue": "inf", "top": 2, "matrix": "BLOSUM45", "gap_open": 14, "gap_extend": 2}, ["--evalue", "inf"]),
    ],
)
def test_options_are_those_of_a_query(server, databases, queries, options, arguments, tmp_path):
    database = "lambda.db" if "translate" in options else "few.db"
    given = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    client = server.client()
    done = client.wait(client.submit(queries, database, options)["id"])
    local = local_report(databases / database, tmp_path, *given)
    assert client.report(done["id"], "table") == local
    assert arguments[0] in given


def test_fields_choose_columns(server, finished):
    found = server.client().report(finished["id"], "tsv", ["qseqid", "sseqid", "cigar"])
    assert found.startswith(b"qseqid\tsseqid\tcigar\n")


def test_hits_come_in_pages_sorted_and_filtered_by_the_server(server, finished):
    """Source: the same hits in the report, sorted here."""
    client = server.client()
    report = json.loads(client.report(finished["id"], "json"))
    for query in report["queries"]:
        key, number = finished["id"], query["number"]
        everything = client.hits(key, number)
        assert [hit["rank"] for hit in everything["hits"]] == [hit["rank"] for hit in query["hits"]]
        assert everything["hits"][0].items() >= query["hits"][0].items()
        by_identity = sorted(query["hits"], key=lambda hit: (-hit["identity_percent"], hit["rank"]))
        pages = [
            client.hits(key, number, offset=offset, limit=2, sort="identity", order="desc") for offset in (0, 2, 4)
        ]
        found = [hit["rank"] for page in pages for hit in page["hits"]]
        assert found == [hit["rank"] for hit in by_identity]
        assert {page["total"] for page in pages} == {len(query["hits"])}
        kept = [hit["rank"] for hit in query["hits"] if hit["identity_percent"] >= 40]
        some = client.hits(key, number, min_identity=40)
        assert ([hit["rank"] for hit in some["hits"]], some["total"]) == (kept, len(kept))
        word = query["hits"][0]["subject_id"].split("|")[-1].lower()
        assert query["hits"][0]["rank"] in [hit["rank"] for hit in client.hits(key, number, text=word)["hits"]]
        assert client.hits(key, number, text="no such % subject")["total"] == 0


def test_an_answer_has_the_first_hits_if_it_is_asked_for_them(server, finished):
    client = server.client()
    first = client.hits(finished["id"], 0, limit=3)
    assert len(first["hits"]) == 3
    found = client.wait(finished["id"], hits=3)
    assert found == {**finished, "hits": first}
    assert "hits" not in client.wait(finished["id"])
    letters = first["query"]["letters"]
    done = client.submit(f">one\n{letters}\n", "proteins.db", OPTIONS, wait=50, hits=3)
    assert (done["state"], done["hits"]) == ("done", client.hits(done["id"], 0, limit=3))
    assert [hit["cigar"] for hit in done["hits"]["hits"]] == [hit["cigar"] for hit in first["hits"]]
    key = client.submit(">one\n" + "MKVLAAGIVGLLLAQWERTY" * 4000 + "\n", "proteins.db", {"top": 3})["id"]
    assert server.request(f"/api/v1/searches/{key}?hits=3").json()["hits"] is None
    client.cancel(key)
    assert server.request(f"/api/v1/searches/{key}?hits=3").json()["hits"] is None
    assert server.error(f"/api/v1/searches/{key}?hits=1001")[0] == 422


def test_queries_are_listed(server, finished):
    page = server.client().queries(finished["id"], offset=2, limit=3)
    assert [query["number"] for query in page["queries"]] == [2, 3, 4]
    assert page["failed"] == []
    assert all(query["n_hits"] > 0 and query["id"] for query in page["queries"])


def test_events_end_with_the_search(server, queries):
    client = server.client()
    submitted = client.submit(queries, "proteins.db", {"top": 3})
    status, headers, content = server.request(f"/api/v1/searches/{submitted['id']}/events")
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/event-stream")
    states = [json.loads(line[6:]) for line in content.decode().splitlines() if line.startswith("data: ")]
    assert states[-1]["state"] == "done"
    assert states[-1]["queries"]["done"] == 7
    assert [state["queries"]["done"] for state in states] == sorted(state["queries"]["done"] for state in states)
    assert server.error("/api/v1/searches/nothing/events")[:2] == (404, "not_found")


def test_an_identical_search_is_answered_at_once(server, queries, finished):
    again = server.client().submit(queries, "proteins.db", OPTIONS)
    assert again["state"] == "done"
    assert again["run"] == finished["run"]
    assert again["id"] != finished["id"]


def test_the_same_idempotency_key_is_the_same_search(server, queries):
    body = {"queries": queries, "database": "few.db"}
    first, second = (server.request("/api/v1/searches", body, Idempotency_Key="once") for _ in range(2))
    assert (first.status, second.status) == (201, 200)
    assert first.json()["id"] == second.json()["id"]
    assert first.headers["location"] == f"/api/v1/searches/{first.json()['id']}"
    other = {**body, "options": {"top": 7}}
    assert server.error("/api/v1/searches", other, Idempotency_Key="once")[:2] == (409, "idempotency_conflict")
    assert server.error("/api/v1/searches", body, Idempotency_Key="a b")[:2] == (400, "bad_input")


def test_a_search_can_be_cancelled(server, queries):
    """Thousands of queries, of which the first batch is at work."""
    client = server.client()
    records = [f">q{number}\n{queries.split('>')[1].partition(chr(10))[2]}" for number in range(3000)]
    submitted = client.submit("".join(records), "proteins.db", {"top": 1})
    cancelled = client.cancel(submitted["id"])
    assert (cancelled["state"], cancelled["expires"] > cancelled["finished"]) == ("cancelled", True)
    assert client.cancel(submitted["id"])["state"] == "cancelled"
    with Store(server.store) as store:
        assert cancelled["run"] is None or store.runs.get(cancelled["run"]).state == "interrupted"
    small = client.wait(client.submit(">one\nMKVLAAGIVGLCAKAYLE\n", "few.db")["id"])
    assert small["state"] == "done"


def test_a_cancelled_query_stops_the_engine(server):
    """The query has 6.5e10 cells; the engine is stopped within it, and the worker goes on with the next."""
    client = server.client()
    client.wait(client.submit(">before\nMKVLAAGIV\n", "few.db")["id"])  # the batches of other tests have ended
    n_before = len(server.events("batch abandoned"))
    submitted = client.submit(">long\n" + "MKVLAAGIVGLCAKAYLEWT" * 5000, "proteins.db", {"evalue": "inf"})
    wait_until(lambda: client.search(submitted["id"])["state"] != "queued", "the engine has the query")
    assert client.cancel(submitted["id"])["state"] == "cancelled"
    assert client.wait(client.submit(">small\nMKVLAAGIVGL\n", "few.db")["id"])["state"] == "done"
    assert len(server.events("batch abandoned")) == n_before + 1
    with Store(server.store) as store:
        run = store.runs.get(client.search(submitted["id"])["run"])
        assert (run.state, run.n_queries) == ("interrupted", 0)


def test_the_pages_example_runs(server, tmp_path, monkeypatch, capfd):
    """Source: docs/service/use.md."""
    page = (DATA.parent / "docs" / "service" / "use.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(DATA)
    exec(compile(code.replace("http://127.0.0.1:8765", server.url), "service.md", "exec"), {})
    assert len(capfd.readouterr().out.split("\n")) == 70 + 2  # the report ends its last line, and print another


def test_what_is_not_there_yet_is_said(databases, queries, tmp_path):
    """No worker takes the searches. The second one comes before the forecasts of the first are old."""
    with RunningServer(tmp_path, [databases / "few.db"], "--no-worker") as idle, ThreadPoolExecutor() as threads:
        client = idle.client()
        first, second = (client.submit(queries, "few.db", {"top": top}) for top in (2, 3))
        assert [client.search(submitted["id"])["position"] for submitted in (first, second)] == [1, 2]
        assert (first["position"], second["position"]) == (1, 2)
        assert idle.error(f"/api/v1/searches/{first['id']}/report")[0] == 409
        client.cancel(first["id"])
        # A request that is held is answered when the server stops.
        held = threads.submit(idle.request, "/api/v1/searches?wait=50", {"queries": queries, "database": "few.db"})
        wait_until(lambda: held.done() or len(client.searches()) == 3, "the submission is being answered")
        assert idle.stop() == 0
        assert (held.result().status, held.result().json()["state"]) == (201, "queued")


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        ({"queries": ">a\nMK1V\n"}, 400, "bad_input", "the queries, record 1 (a), line 2, column 3: '1' is not in"),
        ({"queries": ""}, 400, "bad_input", "no sequences"),
        ({"queries": ">a\n" + "ACGT" * 20}, 400, "bad_input", "to translate it say --translate query"),
        ({"queries": ">a\ud800b\nMKTAYIA\n"}, 400, "bad_input", "\\ud800 at character 3 is not a character"),
        ({"queries": "0\udc80profile"}, 400, "bad_input", "the queries are profiles"),  # binary ASN.1
        ({"queries": "BZh91AY&SY"}, 400, "bad_input", "the queries are an archive"),
        ({"queries": ">a\nMKV\n" * 10_001}, 413, "too_many_queries", "up to 10,000"),
        ({"queries": ">a\n" + "MKV" * 40_000}, 413, "query_too_long", "up to 100,000"),
        ({"database": "none.db"}, 404, "unknown_database", "choose few.db, proteins.db, lambda.db"),
        ({"database": "../few.db"}, 404, "unknown_database", "there is no database"),
        ({"options": {"topp": 1}}, 400, "bad_input", "there is no option 'topp'"),
        ({"options": {"include": "/etc/passwd"}}, 400, "bad_input", "option include names a file"),
        ({"options": {"contexts": "x.lib", "sensitive": True}}, 400, "bad_input", "option contexts names a file"),
        ({"options": {"matrix": "/etc/passwd"}}, 400, "bad_input", "there is no matrix '/etc/passwd'"),
        ({"options": {"top": "5"}}, 400, "bad_input", "option top is a number"),
        ({"options": {"matrix": 5}}, 400, "bad_input", "option matrix is a text"),
        ({"options": {"top": 10**6}}, 400, "top_too_large", "up to 100,000 subjects"),
        ({"options": {"evalue": -1}}, 400, "bad_input", "--evalue -1"),
        ({"options": {"mask": "dust"}}, 400, "bad_input", "dust"),
        ({"options": {"translate": "subject"}}, 400, "bad_input", "few.db is protein"),
        ({"alphabet": "dna"}, 400, "bad_input", "few.db is protein"),
        ({"queries": 5}, 422, "invalid_request", "body.queries"),
        ({"more": 5}, 422, "invalid_request", "body.more"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(server, body, status, code, message):
    found = server.error("/api/v1/searches", {"queries": ">a\nMKVLAAG\n", "database": "few.db", **body})
    assert found[:2] == (status, code)
    assert message in found[2]
    assert "\n" not in found[2]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("report?evlaue=0.1", "query.evlaue: no such parameter here; there are: format, fields, aligned"),
        ("report?format=tsv&lca-top=5", "query.lca-top: no such parameter here; did you mean lca_top?"),
        ("queries/0/hits?evalue=1", "query.evalue: no such parameter here; did you mean max_evalue?"),
        ("events?wait=1", "query.wait: no such parameter here; there are: none"),
    ],
)
def test_a_parameter_that_an_address_does_not_have_is_refused(server, finished, place, message):
    """Source: issue 38; such a parameter was ignored, and the report had all hits."""
    status, code, said = server.error(f"/api/v1/searches/{finished['id']}/{place}")
    assert (status, code) == (422, "invalid_request")
    assert said.startswith(message)


def test_a_query_that_a_search_does_not_have_is_not_found(server, finished):
    status, code, said = server.error(f"/api/v1/searches/{finished['id']}/queries/99/hits")
    assert (status, code, said) == (404, "not_found", "this search has no query 99; they are numbered from 0")


def test_a_form_is_answered_with_what_the_address_takes(server):
    form = b'--x\r\nContent-Disposition: form-data; name="queries"\r\n\r\nMKV\r\n--x--\r\n'
    status, code, said = server.error("/api/v1/searches", form, Content_Type="multipart/form-data; boundary=x")
    assert (status, code) == (422, "invalid_request")
    assert said.startswith("body: this takes a JSON object with Content-Type: application/json; Content-Type was multi")
    *_, said = server.error("/api/v1/searches", b"[]", Content_Type="application/json")
    assert said == "body: this takes a JSON object"


def test_a_search_that_only_a_worker_can_refuse_fails_with_the_reason(server):
    client = server.client()
    done = client.wait(client.submit(">a\nMKVLAAG\n", "few.db", {"id_pattern": "no such subject"})["id"])
    assert done["state"] == "failed"
    assert "no subject" in done["reason"].lower()
    assert str(server.folder) not in done["reason"]
    assert server.error(f"/api/v1/searches/{done['id']}/report")[:2] == (409, "no_results")


def test_requests_of_other_sites_are_refused(server):
    body = {"queries": ">a\nMKV\n", "database": "few.db"}
    assert server.error("/api/v1/searches", body, Origin="http://evil.org")[:2] == (403, "cross_site")
    assert server.error("/api/v1/searches", body, Sec_Fetch_Site="cross-site")[:2] == (403, "cross_site")
    assert server.error("/api/v1/databases", Host="evil.org")[:2] == (403, "wrong_host")
    status, headers, _ = server.request("/api/v1/searches", body, Origin=server.url)
    assert status == 201
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in headers["content-security-policy"]


def test_bodies_are_limited_as_sent_and_decompressed(server):
    body = {"queries": ">a\nMKVLAAG\n", "database": "few.db"}
    packed = gzip.compress(b"{") + gzip.compress(json.dumps(body)[1:].encode())  # of two members
    assert server.request("/api/v1/searches", packed, Content_Encoding="gzip").status == 201
    assert server.error("/api/v1/searches", packed[:-9], Content_Encoding="gzip")[:2] == (400, "bad_encoding")
    assert server.error("/api/v1/searches", b"no gzip", Content_Encoding="gzip")[:2] == (400, "bad_encoding")
    assert server.error("/api/v1/searches", packed, Content_Encoding="br")[:2] == (415, "bad_encoding")
    assert server.request("/api/v1/searches", packed + bytes(1 << 20), Content_Encoding="gzip").status == 201  # padding
    bomb = gzip.compress(b" " * (65 << 20))
    assert server.error("/api/v1/searches", bomb, Content_Encoding="gzip")[:2] == (413, "too_large")
    assert server.error("/api/v1/nothing")[:2] == (404, "not_found")
    assert server.error("/api/v1/usage", method="DELETE")[:2] == (405, "method_not_allowed")
    assert server.request("/api/v1/searches", method="PUT").headers["allow"] == "GET, POST"


def test_health_metrics_and_log(server, finished):
    assert server.request("/healthz").status == 200
    assert server.request("/readyz").status == 200
    metrics = server.request("/metrics").text
    assert 'swsearch_searches{state="done"}' in metrics
    assert "swsearch_store_up 1.0" in metrics
    assert 'route="/api/v1/searches/{key}"' in metrics
    _, headers, _ = server.request(f"/api/v1/searches/{finished['id']}?wait=0", X_Request_ID="my-request.1")
    assert headers["x-request-id"] == "my-request.1"
    logged = {"status": 200, "owner": "local", "request_id": "my-request.1"}
    wait_until(lambda: any(line.items() >= logged.items() for line in server.events("request")), "the line of it")
    assert all("MKV" not in json.dumps(line) for line in list(server.log))


def test_the_api_describes_itself(server):
    answer = server.request("/api/v1/openapi.json")
    described = answer.json()
    assert answer.status == 200
    assert set(described["paths"]) >= {"/api/v1/searches", "/api/v1/searches/{key}/report", "/api/v1/databases"}
    assert all(path.startswith("/api/v1/") for path in described["paths"])


def test_many_people_search_at_once(server, queries):
    """Eight clients with different options; each gets what it asked for."""
    results = {}

    def search(top):
        client = server.client()
        done = client.wait(client.submit(queries, "few.db", {"top": top, "evalue": 1e6})["id"])
        results[top] = [len(query["hits"]) for query in json.loads(client.report(done["id"]))["queries"]]

    threads = [threading.Thread(target=search, args=(top,)) for top in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {top: [top] * 7 for top in range(1, 9)}
    usage = server.client().usage()
    assert usage[0]["searches"] >= 8
    assert len(server.client().searches(limit=8)) == 8


def test_a_new_generation_is_noticed_without_a_restart(server, databases, tmp_path, queries):
    client = server.client()
    (tmp_path / "more.fasta").write_text(">added\nMKVLAAGIVGLLLAQWERTYMKVLAAGIVGLLLAQWERTY\n")
    before = next(found for found in client.databases() if found["name"] == "lambda.db")
    (tmp_path / "dna.fasta").write_text(">added\n" + "ACGTTGCAAGCTTACG" * 10 + "\n")
    assert main(["db", "add", str(databases / "lambda.db"), str(tmp_path / "dna.fasta"), "--quiet"]) == 0
    after = next(found for found in client.databases() if found["name"] == "lambda.db")
    assert (after["generation"], after["n_subjects"]) == (before["generation"] + 1, before["n_subjects"] + 1)
    done = client.wait(client.submit(">q\n" + "ACGTTGCAAGCTTACG" * 10 + "\n", "lambda.db", {"top": 1})["id"])
    assert done["database"]["generation"] == after["generation"]
    (query,) = json.loads(client.report(done["id"]))["queries"]
    assert query["hits"][0]["subject_id"] == "added"


def test_a_query_on_a_server_prints_what_a_query_prints(server, databases, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    of_rows = ["--msa-coverage", "50", "--msa-query-identity", "20", "--msa-max-identity", "60", "--msa-diff", "2"]
    reports = [["blast7"], ["fasta", "--flank", "7"], ["fasta", "--aligned"], ["a3m"], ["a3m", *of_rows]]
    printed = []
    for where, database in (["--server", server.url], "proteins.db"), ([], str(databases / "proteins.db")):
        arguments = ["query", str(DATA / "queries.fasta"), database, "--top", "9", "--quiet", *where]
        for report in reports:
            capfd.readouterr()
            assert main([*arguments, "--format", *report]) == 0
            printed.append(capfd.readouterr().out)
    assert printed[: len(reports)] == printed[len(reports) :]
    assert printed[3].count(">") > printed[4].count(">") > 7
    refused = {
        ("--threads", "2"): "--threads has no meaning with --server",
        ("--store", "own.sqlite"): "--store has no meaning with --server",
        ("--flank", "2"): "format table has no parts of subjects to choose",
        ("--translate", "both"): "both does not fit it",
        ("--alphabet", "dna"): "proteins.db is protein",
        ("--server", "atuo"): "--server atuo is not an address of a server",
    }
    for more, message in refused.items():
        assert main(["query", str(DATA / "queries.fasta"), "proteins.db", "--server", server.url, *more]) == 1
        assert message in capfd.readouterr().err
    assert main(["query", str(DATA / "queries.fasta"), str(databases / "few.db"), "any", "--server", server.url]) == 2
    assert "a server searches one database at a time; give one" in capfd.readouterr().err
    (tmp_path / "bad.fasta").write_text(">a\nMK1\n")
    assert main(["query", "bad.fasta", "proteins.db", "--server", server.url]) == 1
    assert "bad.fasta, record 1 (a), line 2, column 3" in capfd.readouterr().err
    assert main(["query", "bad.fasta", "none.db", "--server", server.url]) == 1
    assert "has no database 'none.db'; choose few.db" in capfd.readouterr().err


def test_a_query_on_a_server_tells_which_lists_end_at_top(server, databases, capfd):
    """Expected value: what the search on this machine says; a server has a limit in place of ``--top all``."""
    told = []
    for top in "2", "1500":
        for where, database in (["--server", server.url], "proteins.db"), ([], str(databases / "proteins.db")):
            assert main(["query", str(DATA / "queries.fasta"), database, "--top", top, *where]) == 0
            told.append([line for line in capfd.readouterr().err.splitlines() if "at --top" in line])
    assert len(told[0]) == 1
    assert told[0] == [line.replace("--top all", "a larger --top") for line in told[1]]
    assert told[2] == told[3] == []


def test_a_server_with_shorter_lists_searches_without_a_length(databases, tmp_path):
    """Expected value: the length of its lists, which is below the default of 100; the search tells it."""
    with RunningServer(tmp_path, [databases / "few.db"], "--limit", "top=2") as limited:
        assert limited.client().submit(">q\nMKV\n", "few.db")["options"]["top"] == 2


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(ServerError, match=r"http://127\.0\.0\.1:1 does not answer: Connection refused"):
        Client("http://127.0.0.1:1", patience=0).databases()
    told: list[str] = []
    with pytest.raises(ServerError, match="Connection refused"):
        Client("http://127.0.0.1:1", patience=0.6, notify=told.append).databases()
    assert told == ["http://127.0.0.1:1 does not answer: Connection refused; waiting for up to 1 s"]
    with pytest.raises(ValueError, match="is not an address of a server"):
        Client("localhost:8765")


def test_an_address_that_is_not_that_of_a_service_is_named(server, databases, capfd):
    """Below the address of a service, whose answer has the form of its API's, and another server, with a page."""
    answer = f"swsearch: error: {server.url}%s and is not the address of a swsearch service; give the address that"
    arguments = ["query", str(DATA / "queries.fasta"), "proteins.db", "--server"]
    assert main([*arguments, f"{server.url}/nosuch"]) == 1
    assert capfd.readouterr().err == f"{answer % '/nosuch answers 404 Not Found'} `swsearch serve` printed\n"

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>")

    with HTTPServer(("127.0.0.1", 0), Page) as other:
        threading.Thread(target=other.handle_request).start()
        with pytest.raises(ServerError, match="answers 200 OK and is not the address of a swsearch service"):
            Client(f"http://127.0.0.1:{other.server_port}", patience=0).databases()
    with pytest.raises(ServerError, match=r"^there is no such search"):
        Client(server.url).search("none")


def test_tokens_separate_owners(tmp_path, databases, queries, capfd, monkeypatch):
    """A server of its own, with two owners; one token is revoked while it runs."""
    monkeypatch.chdir(tmp_path)
    refused = main(["serve", str(databases / "few.db"), "--host", "0.0.0.0", "--store", "hits.sqlite"])
    assert refused == 1
    assert not (tmp_path / "hits.sqlite").exists()
    assert "needs tokens; `swsearch tokens add NAME --store hits.sqlite` makes one" in capfd.readouterr().err
    tokens = {}
    assert main(["tokens", "add", "local", "--store", "hits.sqlite"]) == 1
    problem = "the owner 'local' is that of searches without a token; choose another name"
    assert capfd.readouterr() == ("", f"swsearch: error: {problem}\n")
    for owner in ("ann", "bob"):
        assert main(["tokens", "add", owner, "--store", "hits.sqlite"]) == 0
        tokens[owner] = capfd.readouterr().out.strip()
    with RunningServer(tmp_path, [databases / "few.db"], "--host", "0.0.0.0") as running:
        running.url, running.tokens = running.url.replace("0.0.0.0", "127.0.0.1"), tokens
        ann, bob = running.client("ann"), running.client("bob")
        submitted = ann.submit(queries, "few.db")
        assert ann.wait(submitted["id"])["state"] == "done"
        with pytest.raises(ServerError, match="there is no such search"):
            bob.search(submitted["id"])
        assert (len(ann.searches()), bob.searches()) == (1, [])
        status, code, message = running.error("/api/v1/databases")
        assert (status, code) == (401, "unauthorized")
        assert "a token is needed" in message
        assert running.request("/api/v1/databases").headers["www-authenticate"].startswith("Basic")
        assert running.error("/metrics")[0] == 401
        assert running.request("/healthz").status == 200
        basic = base64.b64encode(f"anyone:{tokens['ann']}".encode()).decode()
        assert running.request("/api/v1/databases", Authorization=f"Basic {basic}").status == 200
        assert running.request("/api/v1/databases", X_API_Key=tokens["ann"]).status == 200
        with sqlite3.connect(running.store) as store:
            assert all(token not in str(store.execute("SELECT * FROM tokens").fetchall()) for token in tokens.values())
        store.close()
        assert main(["tokens", "list", "--store", "hits.sqlite"]) == 0
        listed = [line for line in capfd.readouterr().out.splitlines() if line.endswith("bob")]
        assert main(["tokens", "revoke", listed[0].split()[0], "--store", "hits.sqlite"]) == 0
        # The server remembers a token for seconds.
        wait_until(lambda: running.request("/api/v1/databases", owner="bob").status == 401, "the token is forgotten")
        assert all(token not in json.dumps(line) for token in tokens.values() for line in list(running.log))


def test_a_taken_port_is_one_line(server, databases, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    port = server.url.rpartition(":")[2]
    assert main(["serve", str(databases / "few.db"), "--port", port]) == 1
    assert f"port {port} of 127.0.0.1 is taken; choose another one with --port" in capfd.readouterr().err
    assert main(["serve", str(databases / "few.db"), "--limit", "queries=0"]) == 1
    assert "--limit queries=0: give NAME=N" in capfd.readouterr().err
    assert len(worker_pids(server)) == 1

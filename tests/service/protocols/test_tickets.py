"""Tickets over HTTP: submissions, statuses, archives, JSON and errors. Expected values: `swsearch query`'s reports."""

import csv
import gzip
import io
import json
import socket
import tarfile
import threading
from dataclasses import replace

import pytest
import requests

from swsearch.errors import InputError
from swsearch.report.row_filter import RowFilter
from swsearch.service.protocols import check_protocols, ticket_jobs, tickets
from swsearch.service.protocols.ticket_jobs import Ticket, status_of
from swsearch.service.settings import ServerLimits
from tests.patience import LIMIT_SECONDS
from tests.service.pages.conftest import serving, working
from tests.service.protocols.ticket_service import (
    ENGB,
    OBG,
    completed,
    fasta,
    get,
    post,
    report_of_query,
    ticket_service,
)

A3M = (
    "--evalue", "0.1", "--top", "10000", "--iterations", "3", "--format", "a3m",
    "--msa-max-identity", "95", "--msa-diff", "3000", "--msa-filter-above", "1000",
)  # fmt: skip
ENVIRONMENTAL = "bfd.mgnify30.metaeuk30.smag30.a3m"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with ticket_service(tmp_path_factory.mktemp("tickets")) as running:
        yield running


@pytest.fixture(scope="module")
def url(service):
    return service.plain.url


@pytest.fixture
def idle(service, tmp_path):
    """A server without a worker, which holds no request."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tickets, "HOLD_SECONDS", 0.0)
        with serving(replace(service.settings, store=str(tmp_path / "idle.sqlite"))) as running:
            yield running


def files_of(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}


def archive_of(url: str, path: str, **fields: object) -> dict[str, bytes]:
    """Submit, wait, and download."""
    return files_of(get(url, f"result/download/{completed(url, post(url, path, **fields).json())}").content)


# --- alignments ---


def test_an_archive_has_the_bytes_of_the_reports(service, url, tmp_path):
    """One file for each of the first two protein databases; `lambda.db`, which is DNA, is passed over."""
    queries = [ENGB, OBG]
    found = archive_of(url, "ticket/msa", q=fasta(*queries), mode="env")
    assert set(found) == {"uniref.a3m", ENVIRONMENTAL, "pdb70.m8"}
    assert found["pdb70.m8"] == b""
    assert found["uniref.a3m"] == report_of_query(service.settings, tmp_path, "first.db", queries, *A3M)
    assert found[ENVIRONMENTAL] == report_of_query(service.settings, tmp_path, "second.db", queries, *A3M)
    assert found["uniref.a3m"].count(b"\0>102\n") == 1


def test_modes_and_named_databases(service, url, tmp_path):
    """Without a second database, the file of the environment has the queries alone."""
    found = archive_of(url, "ticket/msa", q=fasta(ENGB, OBG), mode="env-notemplates", database="second.db")
    assert found[ENVIRONMENTAL].decode() == f">101\n{ENGB}\n\0>102\n{OBG}\n"
    assert found["uniref.a3m"] == report_of_query(service.settings, tmp_path, "second.db", [ENGB, OBG], *A3M)
    assert set(found) == {"uniref.a3m", ENVIRONMENTAL}
    found = archive_of(url, "ticket/msa", q=fasta(ENGB), mode="nofilter", database="second.db")
    options = ("--evalue", "0.1", "--top", "10000", "--iterations", "3", "--format", "a3m")
    assert found["uniref.a3m"] == report_of_query(service.settings, tmp_path, "second.db", [ENGB], *options)
    assert set(found) == {"uniref.a3m", "pdb70.m8"}


def test_rows_are_reduced_unless_the_mode_says_nofilter(service, url, tmp_path, monkeypatch):
    """Alignments of the test have too few rows to be reduced by the server's own conditions, so these are stricter."""
    monkeypatch.setattr(ticket_jobs, "DIVERSE_ROWS", RowFilter(max_identity=60, diff=20))
    options = [*A3M[:6], "--format", "a3m"]
    kept = report_of_query(
        service.settings, tmp_path, "second.db", [OBG], *options, "--msa-max-identity", "60", "--msa-diff", "20"
    )
    whole = report_of_query(service.settings, tmp_path, "second.db", [OBG], *options)
    assert 20 <= kept.count(b"\n>") < whole.count(b"\n>") - 5
    sent = {"q": fasta(OBG), "database": "second.db"}
    assert archive_of(url, "ticket/msa", mode="all", **sent)["uniref.a3m"] == kept
    assert archive_of(url, "ticket/msa", mode="nofilter", **sent)["uniref.a3m"] == whole
    environment = archive_of(url, "ticket/msa", mode="env-nofilter-notemplates", **sent)
    assert set(environment) == {"uniref.a3m", ENVIRONMENTAL}
    assert environment["uniref.a3m"] == whole


def test_the_same_submission_is_the_same_ticket(service, url):
    sent = {"q": fasta(OBG), "mode": "all"}
    first, second = (post(url, "ticket/msa", **sent, database="second.db").json() for _ in range(2))
    other = post(url, "ticket/msa", **sent, database="first.db").json()
    assert first["id"] == second["id"] != other["id"]
    (found,) = service.plain.app.state.service.store.searches.under("local", Ticket.of(first["id"]).keys)
    assert found is not None
    assert found.database.name == "second.db"


def test_archives_are_deterministic_and_slow_ones_begin_at_once(service, url, monkeypatch):
    """An archive that takes longer begins with parts without content, which readers of gzip skip."""
    ticket = completed(url, post(url, "ticket/msa", q=fasta(ENGB), mode="env").json())
    usual = get(url, f"result/download/{ticket}").content
    assert get(url, f"result/download/{ticket}").content == usual
    monkeypatch.setattr(tickets, "KEEP_ALIVE_SECONDS", 0)
    monkeypatch.setattr(ticket_jobs, "KEEP_ALIVE_SECONDS", 0)
    slow = get(url, f"result/download/{ticket}").content
    assert slow.startswith(gzip.compress(b"", mtime=0))
    assert slow.endswith(usual)
    assert files_of(slow) == files_of(usual)


def test_a_download_waits_for_its_turn(service, url):
    """A refusal would be taken for the archive."""
    ticket = completed(url, post(url, "ticket/msa", q=fasta(ENGB), mode="env").json())
    slots = service.plain.app.state.service.download_slots
    for _ in range(service.settings.limits.downloads):
        assert slots.acquire(timeout=60)
    timer = threading.Timer(0.3, slots.release, [service.settings.limits.downloads])
    timer.start()
    assert "uniref.a3m" in files_of(get(url, f"result/download/{ticket}").content)
    timer.join()


# --- MMseqs2-App ---


def test_the_json_of_a_search_has_the_hits_of_a_query(service, url, tmp_path):
    """As in MMseqs2-App's example script, under the path of its server."""
    api = f"{url}/api"
    sent = post(api, "ticket", q=fasta(ENGB, OBG), mode="all", database=["first.db", "second.db"]).json()
    ticket = completed(api, sent)
    assert get(api, f"ticket/type/{ticket}").json() == {"type": "search"}
    answer = get(api, f"result/{ticket}/1").json()
    assert answer["queries"] == [{"header": "102", "sequence": OBG}]
    fields = (
        "qseqid sseqid pident length mismatch gapopen qstart qend sstart send bitscore qlen slen qseq sseq ssciname"
    )
    options = ("--evalue", "0.001", "--top", "300", "--format", "tsv", "--fields", fields)
    for result, name in zip(answer["results"], ("first.db", "second.db"), strict=True):
        report = report_of_query(service.settings, tmp_path, name, [ENGB, OBG], *options).decode()
        wanted = [hit for hit in csv.DictReader(io.StringIO(report), delimiter="\t") if hit["qseqid"] == "102"]
        assert result["db"] == name
        ((*found,),) = result["alignments"]
        assert len(found) == len(wanted) > 10
        for hit, line in zip(found, wanted, strict=True):
            shown = [
                hit["query"], hit["target"], f"{hit['seqId']:.3f}", hit["alnLength"], hit["missmatches"],
                hit["gapsopened"], hit["qStartPos"], hit["qEndPos"], hit["dbStartPos"], hit["dbEndPos"],
                hit["qLen"], hit["dbLen"], hit["qAln"], hit["dbAln"], hit.get("taxName", ""),
            ]  # fmt: skip
            bits = float(line.pop("bitscore"))
            assert list(map(str, shown)) == list(line.values())
            assert abs(hit["score"] - bits) <= 0.56
            assert 0 <= hit["eval"] <= 0.001
    (only,) = get(api, f"result/{ticket}/0?database=second.db").json()["results"]
    assert only["db"] == "second.db"
    assert get(api, f"result/{ticket}/query").text == fasta(ENGB, OBG)
    names = [{"id": 0, "name": "101", "set": 0}, {"id": 1, "name": "102", "set": 0}]
    assert get(api, f"result/queries/{ticket}/1/0").json() == {"lookup": names[:1], "hasNext": True}
    assert get(api, f"result/queries/{ticket}/1/1").json() == {"lookup": names[1:], "hasNext": False}
    assert get(api, f"result/{ticket}/2").status_code == 400
    assert get(api, f"result/{ticket}/0?database=lambda.db").status_code == 400


def test_the_tables_of_a_search_and_dna(service, url, tmp_path):
    """The archive has MMseqs2's sixteen columns. A query may be a file, and compressed."""
    base = service.settings.databases["lambda.db"].with_suffix(".fasta").read_text()
    read = "".join(base.splitlines()[5:9])
    upload = {"q": ("reads.fasta.gz", gzip.compress(fasta(read).encode()))}
    sent = requests.post(
        f"{url}/ticket", files=upload, data={"mode": "all", "database[]": ["lambda.db"]}, timeout=LIMIT_SECONDS
    )
    found = files_of(get(url, f"result/download/{completed(url, sent.json())}").content)
    fields = "qseqid sseqid pident length mismatch gapopen qstart qend sstart send evalue bitscore qlen slen qseq sseq"
    options = ("--evalue", "0.001", "--top", "300", "--format", "blast6", "--fields", fields)
    assert found == {"alis_lambda.db.m8": report_of_query(service.settings, tmp_path, "lambda.db", [read], *options)}


def test_databases_are_listed_and_the_page_stays(url):
    for path in ("api/databases", "api/databases/all", "databases/all"):
        listed = get(url, path).json()["databases"]
        assert [(one["path"], one["status"], one["order"]) for one in listed] == [
            ("lambda.db", "COMPLETE", 0), ("first.db", "COMPLETE", 1), ("second.db", "COMPLETE", 2),
        ]  # fmt: skip
    assert get(url, "databases").headers["content-type"].startswith("text/html")


def test_several_tickets_have_their_statuses(url):
    ticket = completed(url, post(url, "ticket/msa", q=fasta(ENGB), mode="all").json())
    other = ticket[:2] + "x" * 36
    assert post(url, "tickets", **{"tickets[]": [ticket, other]}).json() == [
        {"id": ticket, "status": "COMPLETE"}, {"id": other, "status": "UNKNOWN"},
    ]  # fmt: skip
    assert post(url, "tickets").json() == []


# --- statuses ---


def test_tickets_survive_a_restart(service, idle, tmp_path):
    """A server without a worker accepts the ticket; another one with the same store completes it."""
    sent = post(idle.url, "ticket/msa", q=fasta(ENGB), mode="env").json()
    assert sent["status"] == "PENDING"
    assert get(idle.url, f"ticket/{sent['id']}").json() == sent
    refused = get(idle.url, f"result/download/{sent['id']}")
    assert (refused.status_code, refused.json()["status"]) == (409, "ERROR")
    settings = idle.settings
    with serving(settings) as again, working(settings):
        found = files_of(get(again.url, f"result/download/{completed(again.url, sent)}").content)
    assert found["uniref.a3m"] == report_of_query(service.settings, tmp_path, "first.db", [ENGB], *A3M)


def test_a_ticket_that_failed_can_be_submitted_again(idle):
    sent = post(idle.url, "ticket/msa", q=fasta(ENGB), mode="env").json()
    (search, _) = idle.app.state.service.history("local")
    idle.app.state.service.cancel(search.search.key, "local")
    assert get(idle.url, f"ticket/{sent['id']}").json()["status"] == "ERROR"
    assert post(idle.url, "ticket/msa", q=fasta(ENGB), mode="env").json() == sent
    assert len(idle.app.state.service.history("local")) == 3


def test_statuses_of_several_searches(idle):
    """By hand: an error is final, a missing search unknown, and one that is done beside one that waits is running."""
    post(idle.url, "ticket/msa", q=fasta(ENGB), mode="all")
    (queued,) = (status.search for status in idle.app.state.service.history("local"))
    done, failed, running = (replace(queued, state=state) for state in ("done", "failed", "running"))
    partly = replace(done, n_failed=1)
    assert status_of([queued, queued]) == "PENDING"
    assert status_of([queued, running]) == status_of([done, queued]) == "RUNNING"
    assert status_of([done, done]) == "COMPLETE"
    assert status_of([failed, queued]) == status_of([done, partly]) == status_of([None, failed]) == "ERROR"
    assert status_of([done, None]) == status_of([None]) == "UNKNOWN"


def test_a_full_queue_is_a_rate_limit(service, idle, tmp_path):
    settings = replace(idle.settings, store=str(tmp_path / "small.sqlite"), limits=ServerLimits(queued_cells=10**6))
    with serving(settings) as small:
        refused = post(small.url, "ticket/msa", q=fasta(ENGB), mode="all")
    assert (refused.status_code, refused.json()["status"]) == (429, "RATELIMIT")
    assert refused.json()["error"]["code"] == "queue_full"
    assert int(refused.headers["content-length"]) == len(refused.content)


# --- errors and owners ---


@pytest.mark.parametrize(
    ("path", "fields", "words"),
    [
        ("ticket/msa", {"q": fasta("MK1W")}, "column 3"),
        ("ticket/msa", {"q": ""}, "no "),
        ("ticket/msa", {"q": fasta(ENGB), "mode": "env-taxonomy"}, "mode 'taxonomy' of /ticket/msa is not offered"),
        ("ticket/msa", {"q": fasta(ENGB), "database": "lambda.db"}, "lambda.db is dna; an alignment needs proteins"),
        ("ticket/msa", {"q": fasta(ENGB), "database": "none.db"}, "there is no database 'none.db'"),
        ("ticket/pair", {"q": fasta(ENGB), "mode": "pairgreedy-paircomplete"}, "choose one"),
        ("ticket/pair", {"q": fasta(ENGB), "mode": "pairfilterprox"}, "mode 'pairfilterprox' of /ticket/pair"),
        ("ticket", {"q": fasta(ENGB)}, "fields database[]"),
        ("ticket", {"q": fasta(ENGB), "database": "first.db", "mode": "summary"}, "mode 'summary' of /ticket is not"),
        ("ticket", {"q": fasta(ENGB), "database": "first.db", "taxfilter": "9606"}, "taxfilter is not offered"),
        ("ticket", {"q": fasta(ENGB), "database": "lambda.db"}, "lambda.db"),
        ("tickets", {"tickets[]": ["x"]}, "'x' is not the id of a ticket"),
        ("tickets", {"tickets[]": ["x"] * 101}, "101 tickets are asked for; 100 at most"),
    ],
)
def test_refusals_have_a_status_and_a_reason(service, url, path, fields, words):
    refused = post(url, path, **fields)
    assert refused.status_code in (400, 404)
    assert refused.json()["status"] == "ERROR"
    assert words in refused.json()["error"]["message"]
    assert str(service.settings.databases["first.db"].parent) not in refused.text


@pytest.mark.parametrize("path", ["ticket/x", "ticket/type/x", "result/download/x", "result/x/0", "template/1abc_A"])
def test_addresses_of_nothing_are_errors(url, path):
    refused = get(url, path)
    assert refused.status_code in (400, 409)
    assert refused.json()["status"] == "ERROR"


def test_an_error_of_the_server_has_a_status(url, monkeypatch):
    ticket = completed(url, post(url, "ticket/msa", q=fasta(ENGB), mode="all").json())

    def fails(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(tickets, "write_archive", fails)
    refused = get(url, f"result/download/{ticket}")
    assert (refused.status_code, refused.json()["status"]) == (500, "ERROR")
    assert "no space" not in refused.text
    monkeypatch.setattr(tickets, "KEEP_ALIVE_SECONDS", 0)  # the answer has begun: it must not end as if it were whole
    with pytest.raises(requests.RequestException):
        get(url, f"result/download/{ticket}")


def test_a_request_behind_one_of_this_protocol_has_the_usual_errors(url):
    host, port = url.split("/")[2].split(":")
    lines = f"HTTP/1.1\r\nHost: {host}:{port}\r\n"
    with socket.create_connection((host, int(port)), timeout=LIMIT_SECONDS) as connection:
        connection.sendall(f"GET /ticket/x {lines}\r\nGET /api/v1/x {lines}Connection: close\r\n\r\n".encode())
        first, second = connection.makefile("rb").read().split(b"HTTP/1.1 404")
    assert (b'"status"' in first, b'"status"' in second) == (True, False)


def test_owners_see_their_own_tickets(service):
    """Each way to send a token; the id of another owner's ticket is that of nothing."""
    url = service.guarded.url
    sent = {"q": fasta(ENGB), "mode": "all"}
    for access in ({}, {"Authorization": "Bearer no-token"}):
        refused = get(url, "ticket/m1" + 36 * "x", **access)
        assert (refused.status_code, refused.json()["status"]) == (401, "ERROR")
        assert refused.json()["error"]["code"] == "unauthorized"
    with_password = url.replace("http://", f"http://ann:{service.guarded.tokens['ann']}@")
    mine = completed(with_password, post(with_password, "ticket/msa", **sent).json())
    bearer = {"Authorization": f"Bearer {service.guarded.tokens['ann']}"}
    other = {"X-API-Key": service.guarded.tokens["ben"]}
    assert get(url, f"ticket/{mine}", **bearer).json()["status"] == "COMPLETE"
    assert get(url, f"ticket/{mine}", **other).json()["status"] == "UNKNOWN"
    assert get(url, f"result/download/{mine}", **other).status_code == 409
    assert "uniref.a3m" in files_of(get(url, f"result/download/{mine}", **bearer).content)
    of_ben = url.replace("http://", f"http://ben:{service.guarded.tokens['ben']}@")
    assert post(of_ben, "ticket/msa", **sent).json()["id"] != mine


def test_the_protocol_is_behind_its_switch(service):
    assert check_protocols(["tickets", "tickets"]) == ("tickets",)
    with pytest.raises(InputError, match=r"there is no such protocol; choose from .*tickets"):
        check_protocols(["ticket"])
    with serving(replace(service.settings, protocols=())) as plain:
        refused = post(plain.url, "ticket/msa", q=fasta(ENGB))
        assert (refused.status_code, set(refused.json())) == (404, {"error"})
        assert json.loads(get(plain.url, "api/v1/openapi.json").text)["paths"]

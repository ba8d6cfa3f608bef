"""Who may do what on a server with tokens: links, cookies, single sign-on, limits. Source: docs/threat-model.md.

One server serves all tests. Its proxy is 127.0.0.2, so that requests from there are the proxy's and the others are not.
"""

import gzip
import http.client
import json
import re
import sqlite3
from urllib.parse import urlencode, urlsplit

import pytest

from swsearch.cli.app import main
from swsearch.service.client import ServerError
from swsearch.service.guard import MOST_BUCKETS, Buckets
from tests.patience import wait_until
from tests.service.servers import RunningServer

PROXY = "127.0.0.2"
PER_MINUTE = 400
FORM = {"Content_Type": "application/x-www-form-urlencoded"}
READS = [
    "", "?wait=1", "/events", "/queries", "/queries/0/hits", "/report?format=blast6",
]  # fmt: skip
PAGES = [
    "", "/queries/1", "/queries/1/hits/1", "/queries/1/scores", "/queries/1/coverage", "/queries/1/organisms",
    "/queries/1/sequences.fasta", "/report/xml", "/queries.fasta", "/request.json", "/commands",
]  # fmt: skip


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, databases):
    limits = ["--limit", f"requests_per_minute={PER_MINUTE}", "--limit", "failures_per_minute=5"]
    limits += ["--limit", "request_bytes=1000000"]
    sso = ["--trusted-proxy", PROXY, "--sso-header", "X-Forwarded-User"]
    folder = tmp_path_factory.mktemp("guarded")
    with RunningServer(folder, [databases / "few.db"], *limits, *sso, owners=["ann", "bob"]) as running:
        yield running


@pytest.fixture(scope="module")
def search(guarded, queries):
    """The id of a finished search of ann."""
    client = guarded.client("ann")
    return client.wait(client.submit(queries, "few.db", {"top": 3})["id"])["id"]


@pytest.fixture
def link(guarded, search):
    made = guarded.request(f"/api/v1/searches/{search}/links", method="POST", owner="ann")
    assert made.status == 201
    return made.json()


def test_a_link_shows_its_search_to_everybody(guarded, search, link):
    api = f"/api/v1/searches/{link['key']}"
    assert link["page"] == f"/results/{link['key']}"
    for path in READS:
        answer = guarded.request(api + path)
        assert answer.status == 200, path
        assert search not in answer.text, "the id of the search itself"
        assert guarded.request(f"/api/v1/searches/{search}{path}").status == 401
    for path in PAGES:
        answer = guarded.request(link["page"] + path, Accept="text/html")
        assert answer.status == 200, path
        assert search not in answer.text
        assert "/cancel" not in answer.text
    own = guarded.request(f"/api/v1/searches/{search}/report?format=blast6", owner="ann").text
    assert guarded.request(f"{api}/report?format=blast6").text == own != ""
    found = guarded.request(api).json()
    assert (found["id"], found["state"]) == (link["key"], "done")
    # Somebody else with a token sees it too, and can search again with its queries.
    assert guarded.request(api, owner="bob").status == 200
    assert ">" in guarded.request(f"/?again={link['key']}", owner="bob").text


def test_a_link_shows_nothing_else_and_changes_nothing(guarded, search, link):
    key = link["key"]
    for method, path in [
        ("POST", f"/api/v1/searches/{key}/cancel"),
        ("POST", f"/api/v1/searches/{key}/links"),
        ("DELETE", f"/api/v1/searches/{key}/links"),
        ("DELETE", f"/api/v1/searches/{key}/links/{link['id']}"),
        ("POST", f"/results/{key}/cancel"),
        ("POST", f"/results/{key}/share"),
    ]:
        assert guarded.request(path, method=method).status == 401, path
        assert guarded.request(path, method=method, owner="bob").status == 404, path
    assert guarded.request(f"/api/v1/searches/{key}/links", owner="bob").status == 404
    assert guarded.request(f"/api/v1/searches/{key}/links").status == 404
    for path in (
        "/api/v1/searches",
        "/api/v1/usage",
        "/api/v1/databases",
        f"/api/v1/searches?before={key}",
        "/metrics",
    ):
        assert guarded.request(path).status == 401, path
    for path in (f"/results/{key}/../{search}", f"/results/{key}x", f"/results/share-{'x' * 43}/../../history"):
        assert guarded.request(path).status in (401, 404), path


def test_the_client_makes_and_withdraws_links(guarded, search):
    ann = guarded.client("ann")
    made = [ann.add_link(search) for _ in range(2)]
    reader = guarded.client()
    assert reader.report(made[0]["key"], "tsv") == ann.report(search, "tsv")
    assert reader.hits(made[0]["key"], 0)["total"] == ann.hits(search, 0)["total"] > 0
    ann.delete_links(search, made[0]["id"])
    assert [link["id"] for link in ann.links(search)][-1] == made[1]["id"]
    with pytest.raises(ServerError, match="there is no such search"):
        reader.search(made[0]["key"])
    ann.delete_links(search)
    assert ann.links(search) == []


def test_links_are_listed_and_withdrawn_by_the_owner_alone(guarded, search, link):
    path = f"/api/v1/searches/{search}/links"
    assert guarded.request(path, owner="bob").status == 404
    assert guarded.request(path, method="POST", owner="bob").status == 404
    listed = guarded.request(path, owner="ann").json()
    assert {"id": link["id"], "created": link["created"]} in listed
    other = guarded.request(path, method="POST", owner="ann").json()
    assert guarded.request(f"{path}/{link['id']}", method="DELETE", owner="ann").status == 204
    assert guarded.error(f"{path}/{link['id']}", method="DELETE", owner="ann")[1] == "unknown_link"
    assert guarded.request(link["page"]).status == 404
    assert guarded.request(other["page"]).status == 200
    assert guarded.request(path, method="DELETE", owner="ann").status == 204
    assert guarded.request(other["page"]).status == 404
    assert guarded.request(f"/api/v1/searches/{other['key']}/events").status == 404
    assert guarded.request(path, owner="ann").json() == []


def test_a_link_ends_with_its_search(guarded, queries):
    client = guarded.client("ann")
    key = client.wait(client.submit(queries, "few.db", {"top": 1})["id"])["id"]
    page = guarded.request(f"/api/v1/searches/{key}/links", method="POST", owner="ann").json()["page"]
    assert guarded.request(page).status == 200
    connection = sqlite3.connect(guarded.store)
    with connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM searches WHERE key = ?", [key])
    connection.close()
    assert guarded.request(page).status == 404


def test_secrets_are_neither_stored_nor_logged(guarded, search, link):
    guarded.request(link["page"])
    sign_in(guarded, guarded.tokens["ann"])
    guarded.request(f"/{guarded.tokens['bob']}", owner="bob", X_Request_ID="last-request")
    wait_until(lambda: any(line.get("request_id") == "last-request" for line in list(guarded.log)), "the last line")
    lines = json.dumps(guarded.log)
    assert '"/results/share-..."' in lines
    assert '"/sws_..."' in lines
    secrets = [link["key"], *guarded.tokens.values()]
    assert [secret for secret in secrets if secret in lines] == []
    connection = sqlite3.connect(guarded.store)
    dump = "\n".join(connection.iterdump())
    connection.close()
    assert [secret for secret in secrets if secret in dump] == []


def test_ids_are_random(guarded, search, link):
    """128 bits for a search, 256 for a link, in base64."""
    client = guarded.client("ann")
    others = {client.submit(">a\nMKVLAAG\n", "few.db", {"top": 3})["id"] for _ in range(3)}
    assert len(others) == 3
    assert all(re.fullmatch(r"[\w-]{22}", key) for key in {search, *others})
    assert re.fullmatch(r"share-[\w-]{43}", link["key"])


def test_every_answer_has_the_headers_that_protect_pages(guarded, link):
    for path, more in [(link["page"], {}), ("/sign-in", {}), ("/history", {}), ("/api/v1/usage", {"owner": "ann"})]:
        headers = guarded.request(path, **more).headers
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_an_uploaded_archive_may_not_hold_more_than_a_request(guarded):
    """A form with a file of 2 kB that would be 2 MB."""
    archive = "q.fasta.gz", gzip.compress(b">a\n" + b"A" * 2_000_000)
    answer = guarded.send_form("/searches", [("databases", "few.db"), ("file", archive)], owner="ann")
    assert (answer.status, "has more than 1,000,000 bytes of text" in answer.text) == (422, True)


def test_nobody_sends_much_without_an_owner(guarded):
    answer = sign_in(guarded, "x" * 20_000)
    assert (answer.status, "more than 10,000 bytes" in answer.text) == (413, True)
    assert guarded.request("/api/v1/searches", method="POST", body=b" " * 900_000).status == 401


def sign_in(guarded, token, source="127.0.0.1", wanted="/history?page=1", **headers):
    body = urlencode({"token": token, "next": wanted})
    return guarded.request("/sign-in", body, source=source, **{"Origin": guarded.url, **FORM, **headers})


def test_a_person_signs_in_once_and_out_again(guarded):
    status, headers, _ = guarded.request("/history?page=1", Accept="text/html,*/*")
    assert (status, headers["location"]) == (303, "/sign-in?next=/history%3Fpage%3D1")
    assert "www-authenticate" not in headers
    status, headers, _ = sign_in(guarded, guarded.tokens["ann"])
    assert (status, headers["location"]) == (303, "/history?page=1")
    cookie = headers["set-cookie"]
    assert re.fullmatch(r"swsearch=sws_\S+; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict", cookie)
    kept = cookie.partition(";")[0]
    page = guarded.request("/history", Accept="text/html", Cookie=kept)
    assert page.status == 200
    assert "ann" in page.text
    assert "Sign out" in page.text
    assert guarded.request("/sign-in?next=/databases", Cookie=kept).headers["location"] == "/databases"
    status, headers, _ = guarded.request("/sign-out", method="POST", Cookie=kept, Origin=guarded.url)
    assert (status, headers["location"]) == (303, "/sign-in")
    assert headers["set-cookie"].startswith("swsearch=; Path=/; Max-Age=0")
    assert guarded.request("/history", Accept="text/html", Cookie="swsearch=sws_other").status == 303


def test_a_cookie_behind_tls_is_for_tls_alone(guarded):
    """The proxy says that its client uses https; from anybody else that means nothing."""
    said = {"X_Forwarded_Proto": "https", "Origin": guarded.url.replace("http:", "https:")}
    cookie = sign_in(guarded, guarded.tokens["ann"], PROXY, **said).headers["set-cookie"]
    assert re.fullmatch(r"__Host-swsearch=sws_\S+; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict; Secure", cookie)
    kept = cookie.partition(";")[0]
    assert guarded.request("/history", source=PROXY, Cookie=kept, **said).status == 200
    assert guarded.request("/history", Cookie=kept, **said).status == 401
    assert "Secure" not in sign_in(guarded, guarded.tokens["ann"], **said).headers["set-cookie"]


def test_programs_meet_the_basic_challenge_and_browsers_do_not(guarded):
    for accept in ("*/*", "application/json"):
        status, headers, _ = guarded.request("/api/v1/databases", Accept=accept)
        assert (status, headers["www-authenticate"]) == (401, 'Basic realm="swsearch"')
    status, headers, _ = guarded.request("/results/x/events", Accept="text/event-stream", Sec_Fetch_Mode="cors")
    assert (status, "www-authenticate" in headers) == (401, False)
    headers = guarded.request("/results/x/queries/1", Accept="*/*", HX_Request="true").headers
    assert (headers["hx-redirect"], "www-authenticate" in headers) == ("/sign-in", False)


def test_a_cookie_works_for_pages_of_this_server_alone(guarded):
    kept = sign_in(guarded, guarded.tokens["ann"]).headers["set-cookie"].partition(";")[0]
    body = json.dumps({"queries": ">a\nMKVLAAG\n", "database": "few.db"})
    sent = {"body": body, "Content_Type": "application/json", "Cookie": kept}
    assert guarded.request("/api/v1/searches", method="POST", Origin=guarded.url, **sent).status == 201
    assert guarded.error("/api/v1/searches", method="POST", **sent)[1] == "cross_site"
    assert guarded.error("/api/v1/searches", method="POST", Origin="http://evil.org", **sent)[1] == "cross_site"
    assert guarded.error("/api/v1/searches", method="POST", Origin="null", **sent)[1] == "cross_site"
    # Nobody is signed in or out by another site.
    token = urlencode({"token": guarded.tokens["bob"]})
    assert guarded.error("/sign-in", method="POST", body=token, Origin="http://evil.org", **FORM)[1] == "cross_site"
    assert guarded.error("/sign-in", method="POST", body=token, **FORM)[1] == "cross_site"
    assert guarded.error("/sign-out", method="POST", Origin="http://evil.org", Cookie=kept)[1] == "cross_site"


@pytest.mark.parametrize(
    "wanted", ["//evil.org", "/\\evil.org", "https://evil.org", "javascript:alert(1)", "/\t/evil.org"]
)
def test_signing_in_leads_to_this_server(guarded, wanted):
    assert sign_in(guarded, guarded.tokens["ann"], wanted=wanted).headers["location"] == "/"


def test_a_proxy_names_the_owner(guarded, search):
    path = "/api/v1/searches"
    named = {"X_Forwarded_User": "ann"}
    assert any(found["id"] == search for found in guarded.request(path, source=PROXY, **named).json())
    assert guarded.request(path, source=PROXY, X_Forwarded_User="zoë".encode().decode("latin-1")).json() == []
    # Nobody else may say so, whatever else they say.
    assert guarded.error(path, **named)[1] == "untrusted_proxy"
    assert guarded.error(path, owner="ann", **named)[1] == "untrusted_proxy"
    assert guarded.error(path, X_Forwarded_For=PROXY, **named)[1] == "untrusted_proxy"
    assert guarded.error("/sign-in", **named)[1] == "untrusted_proxy"
    for name in ("local", "x" * 101, "a\x7fb", "\xe9"):
        assert guarded.error(path, source=PROXY, X_Forwarded_User=name)[1] == "bad_owner"
    for name in ("", " "):
        assert guarded.error(path, source=PROXY, X_Forwarded_User=name)[1] == "unauthorized"
        assert guarded.error(path, X_Forwarded_User=name)[1] == "untrusted_proxy"
    # Without the header, programs use tokens through the proxy too; with it, what else the proxy sends does not matter.
    assert guarded.request(path, source=PROXY, owner="bob").status == 200
    assert guarded.request(path, source=PROXY).status == 401
    assert guarded.request(path, source=PROXY, Authorization="Basic YW5uOg==", **named).status == 200


def test_two_names_are_none(guarded):
    connection = http.client.HTTPConnection(urlsplit(guarded.url).netloc, timeout=300, source_address=(PROXY, 0))
    connection.putrequest("GET", "/api/v1/searches")
    for name in ("bob", "ann"):
        connection.putheader("X-Forwarded-User", name)
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


def test_an_owner_has_so_many_requests_a_minute(guarded):
    """The bucket fills while it is emptied; others are not concerned."""
    connection = http.client.HTTPConnection(urlsplit(guarded.url).netloc, timeout=300, source_address=(PROXY, 0))
    statuses = []
    for _ in range(20 * PER_MINUTE):
        connection.request("GET", "/api/v1/databases/none", headers={"X-Forwarded-User": "eve"})
        answer = connection.getresponse()
        text = answer.read()
        statuses.append(answer.status)
        if answer.status == 429:
            break
    connection.close()
    assert len(statuses) > PER_MINUTE
    assert set(statuses) == {404, 429}
    assert json.loads(text)["error"]["code"] == "too_many_requests"
    assert answer.getheader("retry-after") == "1"
    assert guarded.request("/api/v1/databases", source=PROXY, X_Forwarded_User="mallory").status == 200


def test_guessing_ends_soon(guarded):
    """From one address; those who had valid tokens there go on."""
    guesser = "127.0.0.9"
    assert guarded.request("/api/v1/databases", source=guesser, owner="ann").status == 200
    answers = [guarded.request("/api/v1/databases", source=guesser, X_API_Key=f"sws_{n}") for n in range(12)]
    statuses = [status for status, _, _ in answers]
    assert statuses[:5] == [401] * 5
    assert set(statuses[5:]) <= {401, 429}
    assert statuses.count(429) >= 5
    refused = next(headers for status, headers, _ in answers if status == 429)
    assert 1 <= int(refused["retry-after"]) <= 12
    page = sign_in(guarded, "sws_guess", guesser)
    assert (page.status, "too many tokens" in page.text.lower()) == (429, True)
    assert guarded.request("/api/v1/databases", source=guesser, owner="ann").status == 200
    assert guarded.request("/api/v1/databases", X_API_Key="sws_0").status == 401
    # The proxy tells the address of its client.
    clients = [guarded.request("/history", source=PROXY, X_API_Key="sws_0", X_Forwarded_For=guesser) for _ in range(2)]
    assert {status for status, _, _ in clients} == {429}


def test_failures_at_once_count_whole():
    now = [0.0]
    buckets = Buckets(60, lambda: now[0])
    for _ in range(100):
        buckets.charge("guesser")
    assert buckets.seconds("guesser") == pytest.approx(41.0)
    for _ in range(1000):
        buckets.charge("guesser")
    assert buckets.seconds("guesser") == pytest.approx(61.0)
    now[0] = 121.0
    assert buckets.seconds("guesser") == 0.0


def test_a_bucket_fills_evenly():
    now = [0.0]
    buckets = Buckets(60, lambda: now[0])
    assert [buckets.take("ann") for _ in range(60)] == [0.0] * 60
    assert buckets.take("ann") == pytest.approx(1.0)
    assert buckets.seconds("ann") == pytest.approx(1.0)
    assert (buckets.take("bob"), buckets.seconds("bob")) == (0.0, 0.0)
    now[0] = 0.75
    assert buckets.take("ann") == pytest.approx(0.25)
    now[0] = 2.0
    assert [buckets.take("ann"), buckets.take("ann")] == [0.0, 0.0]
    assert buckets.take("ann") > 0
    now[0] = 1000.0
    assert [buckets.take("ann") for _ in range(61)].count(0.0) == 60


def test_buckets_of_many_addresses_are_forgotten():
    """Those in use longest; what an attacker used last is kept, and their number does not grow."""
    now = [0.0]
    buckets = Buckets(1, lambda: now[0])
    for number in range(40_000):
        now[0] += 1e-6
        assert buckets.take(str(number)) == 0.0
    assert all(buckets.take(str(number)) > 0 for number in range(39_000, 40_000))
    forgotten = sum(buckets.seconds(str(number)) == 0.0 for number in range(20_000))
    assert 10_000 < forgotten <= 20_000
    now[0] = 100.0  # all are full again, so a fresh one takes the place of any
    for number in range(40_000, 50_000):
        assert buckets.take(str(number)) == 0.0
    assert buckets.take("49999") > 0
    assert len(buckets._levels) == MOST_BUCKETS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sso-header", "X-User"], "--sso-header X-User needs --trusted-proxy"),
        (["--sso-header", "Cookie", "--trusted-proxy", "::1"], "--sso-header Cookie: give the name of a header"),
        (["--sso-header", "a b", "--trusted-proxy", "::1"], "--sso-header a b: give the name of a header"),
        (["--trusted-proxy", "proxy.example"], "--trusted-proxy proxy.example: "),
        (["--trusted-proxy", "0.0.0.0/0"], "trusts every client; give the address of the proxy"),
    ],
)
def test_settings_that_protect_nothing_are_refused(databases, tmp_path, monkeypatch, capfd, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", str(databases / "few.db"), "--store", "hits.sqlite", *arguments]) == 1
    printed = capfd.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1

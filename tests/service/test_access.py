"""Who may do what on a server with tokens: links, cookies, single sign-on, limits. Source: docs/threat-model.md.

One server serves all tests. Its proxy is 127.0.0.2, so that requests from there are the proxy's and the others are not.
"""

import gzip
import http.client
import json
import re
import sqlite3
import time
from urllib.parse import urlencode, urlsplit

import pytest

from swsearch.cli.app import main
from swsearch.service.client import ServerError
from swsearch.service.guard import MOST_BUCKETS, Buckets
from swsearch.store.store import Store
from tests.service.servers import RunningServer

PROXY = "127.0.0.2"
PER_MINUTE = 400
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
READS = [
    "", "?wait=1", "/events", "/queries", "/queries/0/hits", "/report?format=blast6",
]  # fmt: skip
PAGES = [
    "", "/queries/1", "/queries/1/hits/1", "/queries/1/scores", "/queries/1/coverage", "/queries/1/organisms",
    "/queries/1/sequences.fasta", "/report/xml", "/queries.fasta", "/request.json", "/commands",
]  # fmt: skip


class Guarded(RunningServer):
    """A server with tokens."""

    tokens: dict[str, str]

    def ask(self, path, method="GET", source="127.0.0.1", body=None, owner=None, **headers):
        """One request from an address; returns status, headers and text."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if owner is not None:
            names["Authorization"] = f"Bearer {self.tokens[owner]}"
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=300, source_address=(source, 0))
        try:
            connection.request(method, path, body, names)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode()
        finally:
            connection.close()

    def code(self, path, method="GET", **more):
        return json.loads(self.ask(path, method, **more)[2])["error"]["code"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, databases):
    folder = tmp_path_factory.mktemp("guarded")
    with Store(str(folder / "hits.sqlite"), create=True) as store:
        tokens = {owner: store.accounts.add_token(owner)[1] for owner in ("ann", "bob")}
    limits = ["--limit", f"requests_per_minute={PER_MINUTE}", "--limit", "failures_per_minute=5"]
    limits += ["--limit", "request_bytes=1000000"]
    sso = ["--trusted-proxy", PROXY, "--sso-header", "X-Forwarded-User"]
    running = Guarded(folder, [databases / "few.db"], *limits, *sso)
    running.tokens = tokens
    yield running
    assert running.stop() == 0
    assert running.events("text") == [], "something else than JSON was logged"


@pytest.fixture(scope="module")
def search(guarded, queries):
    """The id of a finished search of ann."""
    client = guarded.client(guarded.tokens["ann"])
    return client.wait(client.submit(queries, "few.db", {"top": 3})["id"])["id"]


@pytest.fixture
def link(guarded, search):
    status, _, text = guarded.ask(f"/api/v1/searches/{search}/links", "POST", owner="ann")
    assert status == 201
    return json.loads(text)


def test_a_link_shows_its_search_to_everybody(guarded, search, link):
    api = f"/api/v1/searches/{link['key']}"
    assert link["page"] == f"/results/{link['key']}"
    for path in READS:
        status, _, text = guarded.ask(api + path)
        assert status == 200, path
        assert search not in text, "the id of the search itself"
        assert guarded.ask(f"/api/v1/searches/{search}{path}")[0] == 401
    for path in PAGES:
        status, _, text = guarded.ask(link["page"] + path, Accept="text/html")
        assert status == 200, path
        assert search not in text
        assert "/cancel" not in text
    own = guarded.ask(f"/api/v1/searches/{search}/report?format=blast6", owner="ann")[2]
    assert guarded.ask(f"{api}/report?format=blast6")[2] == own != ""
    found = json.loads(guarded.ask(api)[2])
    assert (found["id"], found["state"]) == (link["key"], "done")
    # Somebody else with a token sees it too, and can search again with its queries.
    assert guarded.ask(api, owner="bob")[0] == 200
    assert ">" in guarded.ask(f"/?again={link['key']}", owner="bob")[2]


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
        assert guarded.ask(path, method)[0] == 401, path
        assert guarded.ask(path, method, owner="bob")[0] == 404, path
    assert guarded.ask(f"/api/v1/searches/{key}/links", owner="bob")[0] == 404
    assert guarded.ask(f"/api/v1/searches/{key}/links")[0] == 404
    for path in (
        "/api/v1/searches",
        "/api/v1/usage",
        "/api/v1/databases",
        f"/api/v1/searches?before={key}",
        "/metrics",
    ):
        assert guarded.ask(path)[0] == 401, path
    for path in (f"/results/{key}/../{search}", f"/results/{key}x", f"/results/share-{'x' * 43}/../../history"):
        assert guarded.ask(path)[0] in (401, 404), path


def test_the_client_makes_and_withdraws_links(guarded, search):
    ann = guarded.client(guarded.tokens["ann"])
    made = [ann.add_link(search) for _ in range(2)]
    reader = guarded.client("")
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
    assert guarded.ask(path, owner="bob")[0] == 404
    assert guarded.ask(path, "POST", owner="bob")[0] == 404
    listed = json.loads(guarded.ask(path, owner="ann")[2])
    assert {"id": link["id"], "created": link["created"]} in listed
    other = json.loads(guarded.ask(path, "POST", owner="ann")[2])
    assert guarded.ask(f"{path}/{link['id']}", "DELETE", owner="ann")[0] == 204
    assert guarded.code(f"{path}/{link['id']}", "DELETE", owner="ann") == "unknown_link"
    assert guarded.ask(link["page"])[0] == 404
    assert guarded.ask(other["page"])[0] == 200
    assert guarded.ask(path, "DELETE", owner="ann")[0] == 204
    assert guarded.ask(other["page"])[0] == 404
    assert guarded.ask(f"/api/v1/searches/{other['key']}/events")[0] == 404
    assert json.loads(guarded.ask(path, owner="ann")[2]) == []


def test_a_link_ends_with_its_search(guarded, queries):
    client = guarded.client(guarded.tokens["ann"])
    key = client.wait(client.submit(queries, "few.db", {"top": 1})["id"])["id"]
    page = json.loads(guarded.ask(f"/api/v1/searches/{key}/links", "POST", owner="ann")[2])["page"]
    assert guarded.ask(page)[0] == 200
    connection = sqlite3.connect(guarded.store)
    with connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM searches WHERE key = ?", [key])
    connection.close()
    assert guarded.ask(page)[0] == 404


def test_secrets_are_neither_stored_nor_logged(guarded, search, link):
    guarded.ask(link["page"])
    guarded.ask("/sign-in", "POST", body=urlencode({"token": guarded.tokens["ann"]}), Origin=guarded.url, **FORM)
    guarded.ask(f"/{guarded.tokens['bob']}", owner="bob", X_Request_ID="last-request")
    while not any(line.get("request_id") == "last-request" for line in list(guarded.log)):
        time.sleep(0.01)
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
    client = guarded.client(guarded.tokens["ann"])
    others = {client.submit(">a\nMKVLAAG\n", "few.db", {"top": 3})["id"] for _ in range(3)}
    assert len(others) == 3
    assert all(re.fullmatch(r"[\w-]{22}", key) for key in {search, *others})
    assert re.fullmatch(r"share-[\w-]{43}", link["key"])


def test_every_answer_has_the_headers_that_protect_pages(guarded, link):
    for path, more in [(link["page"], {}), ("/sign-in", {}), ("/history", {}), ("/api/v1/usage", {"owner": "ann"})]:
        headers = guarded.ask(path, **more)[1]
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_an_uploaded_archive_may_not_hold_more_than_a_request(guarded):
    """A form with a file of 2 kB that would be 2 MB."""
    begin = '--limit\r\nContent-Disposition: form-data; name="databases"\r\n\r\nfew.db\r\n--limit\r\n'
    begin += 'Content-Disposition: form-data; name="file"; filename="q.fasta.gz"\r\n\r\n'
    body = begin.encode() + gzip.compress(b">a\n" + b"A" * 2_000_000) + b"\r\n--limit--\r\n"
    sent = {"body": body, "Content_Type": "multipart/form-data; boundary=limit"}
    status, _, text = guarded.ask("/searches", "POST", owner="ann", **sent)
    assert (status, "has more than 1,000,000 bytes of text" in text) == (422, True)


def test_nobody_sends_much_without_an_owner(guarded):
    body = urlencode({"token": "x" * 20_000})
    status, _, text = guarded.ask("/sign-in", "POST", body=body, Origin=guarded.url, **FORM)
    assert (status, "more than 10,000 bytes" in text) == (413, True)
    assert guarded.ask("/api/v1/searches", "POST", body=b" " * 900_000)[0] == 401


def sign_in(guarded, token, source="127.0.0.1", wanted="/history?page=1", **headers):
    body = urlencode({"token": token, "next": wanted})
    return guarded.ask("/sign-in", "POST", source, body, **{"Origin": guarded.url, **FORM, **headers})


def test_a_person_signs_in_once_and_out_again(guarded):
    status, headers, _ = guarded.ask("/history?page=1", Accept="text/html,*/*")
    assert (status, headers["location"]) == (303, "/sign-in?next=/history%3Fpage%3D1")
    assert "www-authenticate" not in headers
    status, headers, _ = sign_in(guarded, guarded.tokens["ann"])
    assert (status, headers["location"]) == (303, "/history?page=1")
    cookie = headers["set-cookie"]
    assert re.fullmatch(r"swsearch=sws_\S+; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict", cookie)
    kept = cookie.partition(";")[0]
    status, _, text = guarded.ask("/history", Accept="text/html", Cookie=kept)
    assert status == 200
    assert "ann" in text
    assert "Sign out" in text
    assert guarded.ask("/sign-in?next=/databases", Cookie=kept)[1]["location"] == "/databases"
    status, headers, _ = guarded.ask("/sign-out", "POST", Cookie=kept, Origin=guarded.url)
    assert (status, headers["location"]) == (303, "/sign-in")
    assert headers["set-cookie"].startswith("swsearch=; Path=/; Max-Age=0")
    assert guarded.ask("/history", Accept="text/html", Cookie="swsearch=sws_other")[0] == 303


def test_a_cookie_behind_tls_is_for_tls_alone(guarded):
    """The proxy says that its client uses https; from anybody else that means nothing."""
    said = {"X_Forwarded_Proto": "https", "Origin": guarded.url.replace("http:", "https:")}
    cookie = sign_in(guarded, guarded.tokens["ann"], PROXY, **said)[1]["set-cookie"]
    assert re.fullmatch(r"__Host-swsearch=sws_\S+; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict; Secure", cookie)
    kept = cookie.partition(";")[0]
    assert guarded.ask("/history", source=PROXY, Cookie=kept, **said)[0] == 200
    assert guarded.ask("/history", Cookie=kept, **said)[0] == 401
    assert "Secure" not in sign_in(guarded, guarded.tokens["ann"], **said)[1]["set-cookie"]


def test_programs_meet_the_basic_challenge_and_browsers_do_not(guarded):
    for accept in ("*/*", "application/json"):
        status, headers, _ = guarded.ask("/api/v1/databases", Accept=accept)
        assert (status, headers["www-authenticate"]) == (401, 'Basic realm="swsearch"')
    status, headers, _ = guarded.ask("/results/x/events", Accept="text/event-stream", Sec_Fetch_Mode="cors")
    assert (status, "www-authenticate" in headers) == (401, False)
    headers = guarded.ask("/results/x/queries/1", Accept="*/*", HX_Request="true")[1]
    assert (headers["hx-redirect"], "www-authenticate" in headers) == ("/sign-in", False)


def test_a_cookie_works_for_pages_of_this_server_alone(guarded):
    kept = sign_in(guarded, guarded.tokens["ann"])[1]["set-cookie"].partition(";")[0]
    body = json.dumps({"queries": ">a\nMKVLAAG\n", "database": "few.db"})
    sent = {"body": body, "Content_Type": "application/json", "Cookie": kept}
    assert guarded.ask("/api/v1/searches", "POST", Origin=guarded.url, **sent)[0] == 201
    assert guarded.code("/api/v1/searches", "POST", **sent) == "cross_site"
    assert guarded.code("/api/v1/searches", "POST", Origin="http://evil.org", **sent) == "cross_site"
    assert guarded.code("/api/v1/searches", "POST", Origin="null", **sent) == "cross_site"
    # Nobody is signed in or out by another site.
    token = urlencode({"token": guarded.tokens["bob"]})
    assert guarded.code("/sign-in", "POST", body=token, Origin="http://evil.org", **FORM) == "cross_site"
    assert guarded.code("/sign-in", "POST", body=token, **FORM) == "cross_site"
    assert guarded.code("/sign-out", "POST", Origin="http://evil.org", Cookie=kept) == "cross_site"


@pytest.mark.parametrize(
    "wanted", ["//evil.org", "/\\evil.org", "https://evil.org", "javascript:alert(1)", "/\t/evil.org"]
)
def test_signing_in_leads_to_this_server(guarded, wanted):
    assert sign_in(guarded, guarded.tokens["ann"], wanted=wanted)[1]["location"] == "/"


def test_a_proxy_names_the_owner(guarded, search):
    path = "/api/v1/searches"
    named = {"X_Forwarded_User": "ann"}
    assert any(found["id"] == search for found in json.loads(guarded.ask(path, source=PROXY, **named)[2]))
    assert json.loads(guarded.ask(path, source=PROXY, X_Forwarded_User="zoë".encode().decode("latin-1"))[2]) == []
    # Nobody else may say so, whatever else they say.
    assert guarded.code(path, **named) == "untrusted_proxy"
    assert guarded.code(path, owner="ann", **named) == "untrusted_proxy"
    assert guarded.code(path, X_Forwarded_For=PROXY, **named) == "untrusted_proxy"
    assert guarded.code("/sign-in", **named) == "untrusted_proxy"
    for name in ("local", "x" * 101, "a\x7fb", "\xe9"):
        assert guarded.code(path, source=PROXY, X_Forwarded_User=name) == "bad_owner"
    for name in ("", " "):
        assert guarded.code(path, source=PROXY, X_Forwarded_User=name) == "unauthorized"
        assert guarded.code(path, X_Forwarded_User=name) == "untrusted_proxy"
    # Without the header, programs use tokens through the proxy too; with it, what else the proxy sends does not matter.
    assert guarded.ask(path, source=PROXY, owner="bob")[0] == 200
    assert guarded.ask(path, source=PROXY)[0] == 401
    assert guarded.ask(path, source=PROXY, Authorization="Basic YW5uOg==", **named)[0] == 200


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
    assert guarded.ask("/api/v1/databases", source=PROXY, X_Forwarded_User="mallory")[0] == 200


def test_guessing_ends_soon(guarded):
    """From one address; those who had valid tokens there go on."""
    guesser = "127.0.0.9"
    assert guarded.ask("/api/v1/databases", source=guesser, owner="ann")[0] == 200
    answers = [guarded.ask("/api/v1/databases", source=guesser, X_API_Key=f"sws_{n}") for n in range(12)]
    statuses = [status for status, _, _ in answers]
    assert statuses[:5] == [401] * 5
    assert set(statuses[5:]) <= {401, 429}
    assert statuses.count(429) >= 5
    refused = next(headers for status, headers, _ in answers if status == 429)
    assert 1 <= int(refused["retry-after"]) <= 12
    status, _, text = sign_in(guarded, "sws_guess", guesser)
    assert (status, "too many tokens" in text.lower()) == (429, True)
    assert guarded.ask("/api/v1/databases", source=guesser, owner="ann")[0] == 200
    assert guarded.ask("/api/v1/databases", X_API_Key="sws_0")[0] == 401
    # The proxy tells the address of its client.
    clients = [guarded.ask("/history", source=PROXY, X_API_Key="sws_0", X_Forwarded_For=guesser) for _ in range(2)]
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

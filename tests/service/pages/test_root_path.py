"""A server below a path of a host: pages, redirections, cookies, the API and clients, with both kinds of proxies."""

from dataclasses import replace

import pytest

from swsearch.errors import InputError
from swsearch.service.asgi import create_app
from swsearch.service.protocols import PROTOCOLS
from swsearch.service.proxies import OWN_PATHS, check_root_path
from tests.service.pages.browsers import Opened
from tests.service.pages.conftest import LETTERS, serving, working
from tests.service.pages.html_page import crawled
from tests.service.servers import tokens_of

ROOT = "/tools/swsearch"
ANN = "ann@example.org"


@pytest.fixture(scope="module")
def below(settings):
    """A server with a token of Ann, by its address below ``ROOT`` and by that without it; and a worker."""
    tokens = tokens_of(settings.store, [ANN])
    guarded = replace(settings, tokens_required=True, root_path=ROOT)
    with serving(guarded) as running, working(guarded):
        known = replace(running, tokens=tokens)
        yield replace(known, url=known.url + ROOT), known


@pytest.fixture(scope="module")
def result(below):
    """The result of a search that a client makes at the root path; a path of the application."""
    site, _ = below
    client = site.client(ANN)
    key = client.submit(f">mine\n{LETTERS}\n", "hostile.db")["id"]
    assert client.wait(key)["state"] == "done"
    return f"/results/{key}"


def test_every_address_of_every_page_is_below_the_root_path(below, result):
    site, _ = below
    seen = crawled(
        site, ["/", "/history", *(result + part for part in ("", "/share", "/progress", "/queries/1/hits/2"))], ANN
    )
    assert len(seen) > 25
    assert {path: answer.status for path, answer in seen.items() if answer.status not in (200, 303)} == {}
    moved = [answer.headers["location"] for answer in seen.values() if answer.status == 303]
    assert moved
    assert all(address.startswith(f"{ROOT}/") for address in moved)


def test_a_proxy_may_remove_the_root_path(below, result):
    site, running = below
    for path in ("/", result, "/api/v1/databases", f"{result}/report/blast6"):
        kept, removed = (one.request(path, owner=ANN) for one in (site, running))
        assert (kept.status, kept.content) == (removed.status, removed.content)
    assert running.request(ROOT, owner=ANN).content == site.request("/", owner=ANN).content


def test_links_that_the_api_makes_are_below_the_root_path(below, result):
    site, _ = below
    links = result.replace("/results/", "/api/v1/searches/") + "/links"
    assert f'"page":"{ROOT}/results/' in site.post(links, {}, owner=ANN).text


def test_the_cookie_is_for_the_root_path(below):
    site, running = below
    sent = site.post("/sign-in", {"token": site.tokens[ANN], "next": "/history"}, Origin=running.url)
    assert (sent.status, sent.headers["location"]) == (303, f"{ROOT}/history")
    assert f"; Path={ROOT}; " in sent.headers["set-cookie"]


def test_the_description_of_the_api_names_the_root_path(below):
    site, _ = below
    assert site.request("/api/v1/openapi.json", owner=ANN).text.count(f'"servers":[{{"url":"{ROOT}"}}]') == 1


def test_from_signing_in_to_a_shared_link_in_a_browser(browser, below):
    """``Opened`` checks that no request leaves the root path."""
    site, _ = below
    with Opened(browser, f"{site.url}/", expected=["status of 403"]) as page:
        page.goto("history")
        assert page.url.endswith(f"{ROOT}/sign-in?next=/history")
        page.get_by_label("Token", exact=True).fill(site.tokens[ANN])
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="History").wait_for()
        page.get_by_role("link", name="Search", exact=True).click()
        page.get_by_role("textbox", name="Sequences").fill(f">mine\n{LETTERS}\n")
        page.get_by_label("hostile.db").check()
        page.get_by_role("button", name="Search").click()
        page.wait_for_selector("#hits tbody")
        page.locator("a[data-sort=bits]").click()
        page.wait_for_url("**sort=bits**")
        page.wait_for_selector("th.c-bits[aria-sort]")
        page.locator("#hits tbody th a").first.click()
        page.wait_for_selector(".alignment:not([hidden]) pre")
        page.get_by_role("button", name="Share").click()
        address = page.get_by_label("Everyone who knows this address").input_value()
        assert address.startswith(f"{site.url}/results/share-")
    with Opened(browser, f"{site.url}/") as other:
        other.goto(address)
        other.wait_for_selector("#hits tbody")


@pytest.mark.parametrize("path", ["swsearch", "//evil.org", "/a b", "/a/../b", "/ünï", "/a?b", "//", '/"><b>'])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InputError, match="give a path"):
        check_root_path(path)


def paths(router):
    """The paths of a router, with those of the routers in it."""
    for route in router.routes:
        inner = getattr(route, "original_router", None)
        yield from [route.path] if inner is None else paths(inner)


def test_no_root_path_begins_like_a_path_of_the_server(settings, tmp_path):
    app = create_app(replace(settings, store=str(tmp_path / "hits.sqlite"), protocols=tuple(PROTOCOLS)))
    try:
        assert {path.split("/")[1] for path in paths(app.router)} - {""} == OWN_PATHS
    finally:
        app.state.service.close()
    for name in OWN_PATHS:
        with pytest.raises(InputError, match="pages below"):
            check_root_path(f"/{name}/swsearch")

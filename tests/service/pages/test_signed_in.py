"""Signing in, sharing and withdrawing in a real browser, on a server with tokens."""

from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.service.pages.browsers import Opened, keep, reach, violations, wide
from tests.service.pages.conftest import LETTERS, serving, working
from tests.service.servers import tokens_of

PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def token(settings):
    """Ann's token."""
    return tokens_of(settings.store, ["ann@example.org"])["ann@example.org"]


@pytest.fixture(scope="module")
def guarded(settings, token):
    """A server with tokens, and a worker."""
    guarded = replace(settings, tokens_required=True)
    with serving(guarded) as running, working(guarded):
        yield running


def sign_in(page, token):
    page.get_by_label("Token", exact=True).fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_from_signing_in_to_a_withdrawn_link(browser, guarded, token, axe):
    with Opened(browser, guarded.url, expected=["status of 403"]) as page:
        page.goto("/history")
        assert page.url.endswith("/sign-in?next=/history")
        keep(page, "sign-in")
        assert violations(page, axe) == []
        sign_in(page, "sws_wrong")
        page.wait_for_selector("#errors")
        assert page.evaluate("document.activeElement.id") == "errors"
        assert violations(page, axe) == []
        keep(page, "sign-in-refused")
        sign_in(page, token)
        page.get_by_role("heading", name="History").wait_for()
        assert "ann@example.org" in page.get_by_role("banner").inner_text()
        assert page.evaluate("document.cookie") == ""
        # A search, and a link to it, which another browser without a token opens.
        page.goto("/")
        page.get_by_role("textbox", name="Sequences").fill(f">mine\n{LETTERS}\n")
        page.get_by_label("hostile.db").check()
        page.get_by_role("button", name="Search").click()
        page.wait_for_selector("#hits tbody")
        page.get_by_role("button", name="Share").click()
        address = page.get_by_label("Everyone who knows this address").input_value()
        keep(page, "shared")
        assert violations(page, axe) == []
        with Opened(browser, guarded.url, viewport=PHONE, color_scheme="dark") as other:
            other.goto(address)
            other.wait_for_selector("#hits tbody")
            other.locator("#hits tbody th a").first.click()
            other.wait_for_selector(".alignment:not([hidden]) pre")
            assert other.get_by_role("button", name="Share").count() == 0
            assert violations(other, axe) == []
            assert wide(other) <= 0
            keep(other, "linked-phone")
            other.get_by_role("link", name="Search again with…").click()
            other.wait_for_selector("#token")
        page.get_by_role("button", name="Withdraw").click()
        page.get_by_text("There is no link to this result now.").wait_for()
        assert page.evaluate("document.activeElement.closest('#shared') !== null")
        assert violations(page, axe) == []
        with Opened(browser, guarded.url, expected=["status of 404"]) as other:
            other.goto(address)
            other.get_by_role("heading", name="There is no such result").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_selector("#token")
        page.goto("/history")
        page.wait_for_selector("#token")


def test_a_link_from_another_site_needs_no_second_signing_in(browser, guarded, token):
    """The browser does not send the cookie with a click on another site's page."""
    elsewhere = guarded.url.replace("localhost", "127.0.0.1")
    with Opened(browser, "http://") as page:
        page.goto(f"{guarded.url}/history")
        sign_in(page, token)
        page.get_by_role("heading", name="History").wait_for()
        for wanted in ("/databases", "/history?page=1"):
            page.goto(f"{elsewhere}/healthz")
            page.evaluate("address => { location.href = address; }", guarded.url + wanted)
            page.get_by_role("heading", name=wanted[1:10].partition("?")[0].capitalize()).wait_for()
            assert page.url == guarded.url + wanted


def test_the_keyboard_alone_signs_in_and_out(browser, guarded, token):
    with Opened(browser, guarded.url, viewport=PHONE) as page:
        page.goto("/databases")
        reach(page, "document.activeElement.id === 'token'")
        page.keyboard.type(token)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Databases").wait_for()
        assert wide(page) <= 0
        keep(page, "databases-phone")
        reach(page, "document.activeElement.textContent === 'Sign out'")
        page.keyboard.press("Enter")
        page.wait_for_selector("#token")


def test_signing_in_needs_no_scripts(browser, guarded, token):
    with Opened(browser, guarded.url, java_script_enabled=False) as page:
        page.goto("/databases")
        assert urlsplit(page.url).path == "/sign-in"
        sign_in(page, token)
        page.get_by_role("heading", name="Databases").wait_for()
        assert page.url == f"{guarded.url}/databases"
        assert page.context.cookies()[0]["httpOnly"]

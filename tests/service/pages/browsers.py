"""A real browser for tests: Debian's Chromium, led by Playwright, and axe-core for accessibility.

Every page must load nothing from another address and leave no message on its console. If ``SWSEARCH_SCREENSHOTS`` names
a folder, screenshots are kept there.
"""

import os
from pathlib import Path

from tests.patience import LIMIT_SECONDS

LIMIT = 1000 * LIMIT_SECONDS


class Opened:
    """A page whose requests and messages are checked at its end; ``expected`` are texts that messages may have."""

    def __init__(self, browser, url, expected=("status of 422",), **options):
        self._context = browser.new_context(base_url=url, reduced_motion="reduce", **options)
        self._context.set_default_timeout(LIMIT)
        self._expected = expected
        self.foreign = []
        self.messages = []
        page = self._context.new_page()
        page.on(
            "request", lambda request: self.foreign.append(request.url) if not request.url.startswith(url) else None
        )
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page = page

    def __enter__(self):
        return self.page

    def __exit__(self, kind, *_):
        self._context.close()
        if kind is None:
            assert self.foreign == []
            unexpected = [text for text in self.messages if not any(known in text for known in self._expected)]
            assert unexpected == [], unexpected


def keep(page, name):
    """Keep a screenshot if a folder for them is named."""
    folder = os.environ.get("SWSEARCH_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def violations(page, axe):
    """What axe-core finds wrong in the page."""
    page.evaluate(axe)  # the page's policy forbids script elements, not the debugger
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found]


def wide(page):
    """Number of pixels by which the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def reach(page, condition, most=25):
    """Press Tab until a condition on the focus holds."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(condition):
            return
    raise AssertionError(f"{condition} is not reached by {most} presses of Tab")

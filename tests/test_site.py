"""The documentation site: it builds without a warning, is complete, and can be read in a browser without the network.

Expected values: the pages of the repository, ``--help`` of each command, and ``swsearch.__all__``.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import swsearch
from swsearch.cli.app import commands, main
from tests.compiled import compiled, unpack
from tests.service.pages.browsers import Opened, keep, violations, wide

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "docs" / "site"
PHONE = {"width": 390, "height": 800}
DESKTOP = {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def tools():
    """A function that loads a module of ``docs/site``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))

        def load(name):
            if name not in loaded:
                spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
                loaded[name] = importlib.util.module_from_spec(spec)
                patch.setitem(sys.modules, name, loaded[name])
                spec.loader.exec_module(loaded[name])
            return loaded[name]

        loaded = {}
        yield load


def inputs(tools):
    """What the site is made of, for the cache: names with versions or the SHA-256 of contents.

    These are the pages of the repository, the files to which they link, the generated pages, the modules from which
    Sphinx reads docstrings, the folder of the site's tools, and every installed distribution.
    """
    sources = tools("sources")
    generated = tools("commands").command_pages() | tools("python_api").python_pages()
    generated |= tools("performance").performance_pages()
    places = sources.repository_pages()
    files = {path for folder in ("docs", "swsearch") for path in (ROOT / folder).rglob("*") if path.suffix != ".pyc"}
    for name in places:
        _, linked = sources.rewritten(name, (ROOT / name).read_text(), places)
        files |= {ROOT / name, *(ROOT / other for other in linked)}
    contents = {name: text.encode() for name, text in generated.items()}
    contents |= {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in files if path.is_file()}
    versions = {(one.name.lower(), one.version) for one in importlib.metadata.distributions()}
    return [
        sys.version,
        *(" ".join(version) for version in sorted(versions)),
        *(f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in sorted(contents.items())),
    ]


def pack_site(path):
    """Build the site; write an archive of it and of what was printed. A build that fails or warns is not kept."""
    with tempfile.TemporaryDirectory(prefix="swsearch-site-") as folder:
        command = [sys.executable, str(TOOLS / "build.py"), "--out", folder]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        assert outcome.returncode == 0, outcome.stderr
        assert outcome.stderr == ""
        printed = Path(folder, "printed")
        printed.write_text(outcome.stdout.replace(folder, "OUT"))
        with tarfile.open(path, "w:gz", compresslevel=1) as archive:
            archive.add(printed, "printed")
            archive.add(Path(folder, "html"), "html")


@pytest.fixture(scope="module")
def built(tools, tmp_path_factory):
    """The folder of the built site, and what was printed; built once for the same inputs (:mod:`tests.compiled`)."""
    folder = tmp_path_factory.mktemp("site")
    unpack(compiled("site.tar.gz", inputs(tools), pack_site), folder)
    return folder / "html", (folder / "printed").read_text()


def test_the_site_builds_without_a_warning_or_a_broken_link(built):
    """A build with a warning or a broken link ends the fixture with what was printed."""
    folder, printed = built
    assert printed == "docs: OUT/html/index.html\n"
    assert (folder / "index.html").is_file()


def test_every_page_names_an_icon_of_the_site(built):
    """Otherwise, browsers ask for ``/favicon.ico``, which a site below a path does not have."""
    folder, _ = built
    for path in folder.rglob("*.html"):
        icon = re.search(r'<link rel="(?:shortcut )?icon" href="([^"]+)"', path.read_text("utf-8"))
        assert icon is not None, path
        assert (path.parent / icon[1]).read_text("utf-8").startswith("<svg "), path


def test_every_page_of_the_repository_is_on_the_site(built):
    folder, _ = built
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    built_pages = {path.relative_to(folder) for path in folder.rglob("*.html")}
    assert pages <= built_pages
    assert Path("project/changelog.html") in built_pages


def test_every_option_of_every_command_has_an_anchor(built, capfd):
    """Source: the options that ``--help`` prints."""
    folder, _ = built
    n_options = 0
    for key, command in commands().commands.items():
        anchors = set(re.findall(r'id="cmdoption-(.*?)"', (folder / "commands" / f"swsearch-{key}.html").read_text()))
        for words in [[key, inner] for inner in getattr(command, "commands", {})] or [[key]]:
            capfd.readouterr()
            assert main([*words, "--help"]) == 0
            listed = re.split(r"^\S.*:$", capfd.readouterr().out, maxsplit=1, flags=re.MULTILINE)[1]
            printed = set(re.findall(r"^  (?:-\w, )?--([a-z][a-z-]*)", listed, re.MULTILINE)) - {"help"}
            expected = {"-".join(["swsearch", *words, option]) for option in printed}
            assert expected <= anchors
            n_options += len(expected)
    assert n_options > 200


def test_every_public_name_and_every_class_that_a_function_returns_has_a_page(built):
    folder, _ = built
    names = set(swsearch.__all__)
    for name in swsearch.__all__:
        found = getattr(swsearch, name)
        if not isinstance(found, type):
            returned = re.sub(r"\w+\[(\w+)\]", r"\1", found.__annotations__["return"])
            home = getattr(found.__globals__.get(returned), "__module__", "swsearch")
            names |= {returned} if home.startswith("swsearch") else set()
    names -= {"None"}
    assert {"SearchResults", "PairAlignment", "Searcher"} <= names
    pages = {path.stem for path in (folder / "python").glob("*.html")}
    assert names <= pages, names - pages
    assert "Largest E-value reported" in (folder / "python" / "SearchOptions.html").read_text()


@pytest.mark.parametrize(
    ("page", "marked"),
    [
        ("index", []),
        ("install", ["Installing swsearch"]),
        ("commands/index", ["Commands"]),
        ("commands/swsearch-query", ["Commands", "swsearch query"]),
    ],
)
def test_the_navigation_marks_the_page_and_what_is_above_it(built, page, marked):
    """By hand; a list below an entry is shown if its box is checked."""
    folder, _ = built
    text = (folder / f"{page}.html").read_text()
    assert re.findall(r'<li class="toctree-l\d current[^>]*><a [^>]*>([^<]*)</a>', text) == marked
    here = re.findall(r' current-page"><a class="current reference internal" href="#">([^<]*)</a>', text)
    assert here == marked[-1:]
    boxes = re.findall(r'<input aria-label="Toggle navigation of (\w+)" ([^>]*)>', text)
    assert {"Commands", "Python"} <= {name for name, _ in boxes}
    assert {name for name, attributes in boxes if "checked" in attributes} == {"Commands"} & set(marked)


def test_a_page_in_no_section_is_an_error_that_names_it(tools):
    sources = tools("sources")
    sections = [sources.Section("One", ("a", "b/*")), sources.Section("Two", ("c",))]
    titles = {"a": "A", "b/two": "Second", "b/one": "Third", "c": "C"}
    assert sources.listed(sections, titles) == {"One": ["a", "b/two", "b/one"], "Two": ["c"]}
    with pytest.raises(sources.SiteError, match=r"no section of docs/site/navigation.toml lists d; name"):
        sources.listed(sections, titles | {"d": "D"})
    del titles["c"]
    with pytest.raises(sources.SiteError, match=r"names c, and there is no such page"):
        sources.listed(sections, titles)


def test_links_are_rewritten_to_the_places_of_the_site(tools):
    sources = tools("sources")
    places = {"docs/design/a.md": "design/a", "docs/b.md": "b", "cuda/README.md": "project/kernels"}
    text = (
        "[1](../b.md#x) [2](../../cuda/README.md) [3](../../LICENSE) [4](https://a.org/b.md) [5](#y) ![6](service.svg)"
    )
    assert sources.rewritten("docs/design/a.md", text, places) == (
        "[1](../b.md#x) [2](../project/kernels.md) [3](../files/LICENSE) [4](https://a.org/b.md) [5](#y) "
        "![6](service.svg)",
        {"LICENSE", "docs/design/service.svg"},
    )


class TestPerformance:
    """Figures of the page on performance. Source: results, written by hand."""

    TEXT = "| a | b |\n| --- | --- |\n| 1 | {{one / rows / [name=x; n=2] / rate | ,.1f}} |\n\nCommit {{one / commit}}\n"

    @pytest.fixture
    def page(self, tools, tmp_path):
        """A function that makes the page of a text, and the error."""
        error = tools("sources").SiteError
        performance = tools("performance")
        rows = [{"name": "x", "n": 1, "rate": 7}, {"name": "x", "n": 2, "rate": 1234.56}]
        (tmp_path / "one.json").write_text(json.dumps({"commit": "abc", "rows": rows}))
        return (lambda text: performance.performance_pages(text, tmp_path)["performance/index.md"]), error

    def test_figures_are_those_of_the_results(self, page):
        made, _ = page
        assert made(self.TEXT) == "| a | b |\n| --- | --- |\n| 1 | 1,234.6 |\n\nCommit abc\n"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{{two / rate}}", "names two.json, and there is no such result"),
            ("{{one / rate}}", "one.json has no rate"),
            ("{{one / rows / [name=x] / rate}}", "2 entries of one.json fit"),
            ("| a | b |\n| --- | --- |\n| c | 5 |\n", "has a figure written by hand"),
            ("It takes 3.5 s.", "'3.5 s' has a figure written by hand"),
        ],
    )
    def test_a_figure_that_is_in_no_result_is_an_error(self, page, text, message):
        made, error = page
        with pytest.raises(error, match=re.escape(message)):
            made(text)


def test_faults_of_built_pages_are_found(tools, tmp_path):
    """Source: the faults, written by hand."""
    check = tools("check")
    (tmp_path / "one.html").write_text(
        '<p id="here"><a href="two.html#there">1</a><a href="two.html#gone">2</a><a href="three.html">3</a>'
        '<a href="#here">4</a><a href="https://example.org/x">5</a><a href="https://nowhere/x">6</a>'
        '<script src="https://cdn.example.org/x.js"></script><img src="data:image/png;base64,AA=="></p>'
    )
    (tmp_path / "two.html").write_text('<link rel="stylesheet" href="two.css"><p id="there">')
    (tmp_path / "two.css").write_text('@import "https://fonts.example.org/f.css"; p {background: url(gone.png)}')
    assert list(check.faults(tmp_path)) == [
        "one.html: the link two.html#gone names an anchor that the page does not have",
        "one.html: the link three.html leads to no page or file",
        "one.html: the link https://nowhere/x has no host that could exist",
        "one.html: https://cdn.example.org/x.js is loaded from another address",
        "two.css: https://fonts.example.org/f.css is loaded from another address",
        "two.css: gone.png is loaded and does not exist",
    ]


@pytest.fixture
def address(built):
    """The address of the site on a server of this machine."""
    handler = partial(QuietHandler, directory=built[0])
    with ThreadingHTTPServer(("localhost", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *_):
        pass


class TestInABrowser:
    """The built site; a request to another address or a message on the console fails a test."""

    PAGES = (
        "index.html", "commands/swsearch-query.html", "python/SearchOptions.html", "reference/formats.html",
        "concepts/statistics.html", "comparison.html", "tutorial.html", "performance/index.html",
    )  # fmt: skip

    @pytest.mark.parametrize(("size", "scheme"), [(PHONE, "dark"), (DESKTOP, "light")], ids=["phone", "desktop"])
    def test_pages_fit_the_window_and_are_accessible(self, browser, address, axe, size, scheme):
        with Opened(browser, address, viewport=size, color_scheme=scheme) as page:
            for name in self.PAGES:
                page.goto(name)
                keep(page, f"site-{name.replace('/', '-')}-{size['width']}-{scheme}")
                assert wide(page) == 0, name
                assert violations(page, axe) == [], name

    def test_the_search_finds_an_option_in_pages_from_the_disk(self, browser, built):
        folder, _ = built
        with Opened(browser, folder.as_uri(), viewport=DESKTOP) as page:
            page.goto(f"{folder.as_uri()}/index.html")
            page.get_by_placeholder("Search").fill("dbsize")
            page.keyboard.press("Enter")
            found = page.locator("#search-results a", has_text="swsearch query").first
            found.wait_for()
            assert "query" in found.get_attribute("href")

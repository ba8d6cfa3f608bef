"""A whole service for the tests of pages: real databases, a store, the application with its pages, and a worker."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI

from swsearch.database.builder import build_database
from swsearch.engine.registry import Machine
from swsearch.service.asgi import create_app
from swsearch.service.databases import Databases, named_databases
from swsearch.service.searcher_cache import SearcherCache
from swsearch.service.settings import Settings
from swsearch.service.worker import SearchWorker
from swsearch.store.store import Store
from tests.patience import wait_until
from tests.service.servers import Answer, Site
from tests.support import DATA, protein_records

HOSTILE = (
    "<script>alert(1)</script>",
    '"\'><img/src=x/onerror=alert(2)> </textarea></title></style> OS=<b>Evil</b> & "sons" OX=666 GN=x',
    "\u05d0\u05d1\u05d2|\u202eRTL \u05d0\u05d1\u05d2 {{ 7*7 }} {% raw %} &lt;already&gt; &amp;",
    "ctrl\x7f|x a\ttab javascript:alert(3) ?a=1&b=2#c %3Cscript%3E",
)
"""Headers that a careless page would take for markup, for a template, or for a part of an address."""
LETTERS = (
    "MGAFTEKQEALVNSSYEAFKANVPQYSVVFYTSILEKAPAAKDLFSFLANGVDPTNPKLTGHAEKLFALVRDSAGQLKASGTVVADAALGSVHAQKAVTDPQFVVVKE"
    "ALLKTIKAAVGDKWSDELSRAWEVAYDELAAAIKKA"
)


@dataclass
class Served(Site):
    """A running service.

    Attributes
    ----------
    url : str
    app : FastAPI
    settings : Settings
    tokens : dict of str to str
        By owner.
    """

    url: str
    app: FastAPI
    settings: Settings
    tokens: dict[str, str] = field(default_factory=dict)

    def htmx(self, path: str) -> Answer:
        """Get a part of a page, as htmx does."""
        return self.request(path, HX_Request="true")

    def post(self, path: str, fields: Mapping[str, str | list[str]], **headers: str) -> Answer:
        """Send a form without a file; a field may have several values."""
        pairs = ((name, [value] if isinstance(value, str) else value) for name, value in fields.items())
        return self.send_form(path, [(name, text) for name, values in pairs for text in values], **headers)

    def search(self, fasta: str, database: str = "proteins.db", **fields: str) -> str:
        """Submit a form, wait until the search has ended, and return the address of its result."""
        answer = self.post("/searches", {"sequences": fasta, "databases": database, **fields})
        assert answer.status == 303, answer.text
        address = answer.headers["location"]
        self.ended(address)
        return address

    def ended(self, address: str) -> str:
        """Wait until a search has ended; return its events."""
        return self.request(f"{address}/events").text


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Some real proteins, the phage lambda, and subjects with hostile headers."""
    folder = tmp_path_factory.mktemp("databases")
    chosen = [record for record in protein_records() if "GTP" in record.split("\n", 1)[0]][:120]
    (folder / "proteins.fasta").write_text("".join(chosen))
    hostile = "".join(f">{header}\n{LETTERS[number * 3 :]}\n" for number, header in enumerate(HOSTILE))
    (folder / "hostile.fasta").write_bytes(hostile.encode() + b">bytes\xff\xfe not UTF-8\n" + LETTERS.encode() + b"\n")
    (folder / "lambda.fasta").write_bytes((DATA / "lambda_phage.fasta").read_bytes())
    for name in ("proteins", "lambda", "hostile"):
        build_database(folder / f"{name}.fasta", folder / f"{name}.db")
    return named_databases([str(folder / f"{name}.db") for name in ("proteins", "lambda", "hostile")])


@contextmanager
def working(settings: Settings) -> Iterator[None]:
    """Run a worker in a thread."""
    with (
        Store(settings.store, create=True) as store,
        SearcherCache(Databases(settings.databases, sets=settings.subject_sets), Machine("cpu", 1)) as searchers,
    ):
        worker = SearchWorker(store.queue, searchers)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            yield
        finally:
            worker.stop()
            thread.join()


@pytest.fixture(scope="module")
def settings(databases: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with a fresh store."""
    folder = tmp_path_factory.mktemp("store")
    families = (str(DATA / "families.hmm.gz"),)
    store = str(folder / "hits.sqlite")
    return Settings(databases=databases, store=store, subject_sets=folder / "subjects", families=families)


@contextmanager
def serving(settings: Settings) -> Iterator[Served]:
    """Run the application in a thread, on a free port."""
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive(), "the start of the server")
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Served(f"http://localhost:{port}", app, settings)
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def served(settings: Settings) -> Iterator[Served]:
    """A service with a worker."""
    with serving(settings) as running, working(settings):
        yield running


@pytest.fixture
def idle(settings: Settings, tmp_path: Path) -> Iterator[Served]:
    """A service without a worker and without searches."""
    with serving(replace(settings, store=str(tmp_path / "idle.sqlite"))) as running:
        yield running

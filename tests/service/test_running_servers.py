"""`swsearch query --server auto`: a running server searches where its report is that of this machine.

Expected values: the same search without a server.
"""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import pytest

from swsearch.cli.app import main
from swsearch.service.client import running_servers
from tests.patience import wait_until
from tests.processes import start
from tests.service.servers import RunningServer
from tests.support import DATA
from tests.taxonomy.dumps import EXCERPT

QUERIES = DATA / "queries.fasta"
OF_OTHER_VERSION = "import sys, swsearch; swsearch.__version__ = '0.0.9'; from swsearch.cli.app import main; sys.exit("
"""The beginning of a program that is a server of another version."""


@dataclass(frozen=True)
class Search:
    """What a search has printed, where it is stored, and its further messages."""

    code: int
    report: str
    where: str
    told: str


@pytest.fixture
def search(tmp_path, monkeypatch, capfd):
    """Runs a query, with a cache and a store of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SWSEARCH_STORE", str(tmp_path / "own.sqlite"))

    def call(database: Path, *arguments: object, queries: Path = QUERIES) -> Search:
        capfd.readouterr()
        code = main(["query", str(queries), str(database), *map(str, arguments)])
        out, err = capfd.readouterr()
        where = [line.split(" in ")[-1].split(" at ")[-1] for line in err.splitlines() if "stored as" in line]
        return Search(code, out, "".join(where), err)

    return call


@pytest.fixture
def here(tmp_path):
    return str(tmp_path / "own.sqlite")


def copied(database: Path, folder: Path) -> Path:
    """A copy of a database under the same name."""
    folder.mkdir(exist_ok=True)
    return Path(shutil.copytree(database, folder / database.name))


def test_a_query_finds_a_running_server_with_its_database(databases, search, here, tmp_path, monkeypatch):
    """The search is made here if no server has the same content, or if an option concerns this machine."""
    own = copied(databases / "few.db", tmp_path / "own")
    options = ["--top", 2, "--format", "blast6", "--server", "auto"]
    alone = search(own, *options)
    assert (alone.code, alone.where) == (0, here)
    first, server = (RunningServer(tmp_path, [databases / name]) for name in ("proteins.db", "few.db"))

    def is_found(*more: object) -> str:
        found = search(own, *options, *more)
        assert (found.code, found.report) == (0, alone.report)
        return found.where

    assert is_found() == server.url
    assert is_found("--threads", 1) == here
    monkeypatch.setenv("SWSEARCH_CONFIG", str(tmp_path / "config.toml"))
    for line, found_at in ((f"exclude = '{DATA / 'taxids.tsv'}'", here), ("threads = 1", server.url)):
        (tmp_path / "config.toml").write_text(f"[query]\n{line}\n")
        assert search(own, *options).where == found_at
    removed = (databases / "few.fasta").read_text().split(None, 1)[0][1:]
    assert main(["db", "remove", str(own), removed, "--quiet"]) == 0
    assert search(own, *options).where == here
    server.kill()
    assert running_servers() == [first.url]
    assert (first.stop(), running_servers()) == (0, [])


def test_the_databases_of_a_server_tell_all_that_reports_depend_on(databases, search, here, tmp_path):
    """Names, generations and taxonomies differ where the digests are equal."""
    own = copied(databases / "proteins.db", tmp_path / "own")
    served = copied(own, tmp_path / "served")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "proteins.db").symlink_to(served.rename(served.with_name("release.db")))
    served = tmp_path / "link" / "proteins.db"
    report = ["--top", 2, "--format", "jsonl", "--server", "auto"]
    taxonomy = [str(EXCERPT), "--taxid-map", str(DATA / "taxids.tsv"), "--quiet"]
    with RunningServer(tmp_path, [served]) as server:
        (offered,) = server.client().databases()
        assert (offered["name"], offered["name_in_reports"]) == ("proteins.db", "release.db")
        assert offered["taxonomy_digest"] is None
        found = search(own, *report)
        assert (found.code, found.where) == (0, here)
        assert '"name": "proteins.db"' in found.report
        own = own.rename(own.with_name("release.db"))
        assert search(own, *report).where == server.url

        assert main(["db", "taxonomy", str(own), *taxonomy]) == 0
        of_taxa = [
            ("--taxid", "561,485", "--evalue", "1000", "--format", "blast6"),
            ("--taxid", "1224", "--top", "2"),
            ("--format", "lca"),
            ("--format", "jsonl", "--top", "2"),
        ]
        alone = {options: search(own, *options) for options in of_taxa}
        for options in of_taxa:
            found = search(own, *options, "--server", "auto")
            assert (found.code, found.where, found.report) == (0, here, alone[options].report)
            assert found.report != search(served, *options).report

        assert main(["db", "taxonomy", str(served), *taxonomy]) == 0
        for options in of_taxa:
            found = search(own, *options, "--server", "auto")
            assert (found.code, found.where, found.report) == (0, server.url, alone[options].report)
        assert main(["db", "taxonomy", str(served), *taxonomy]) == 0  # the same taxonomy, of another generation
        assert search(own, *report).where == here


LIMITS = "top=5 search_queries=3 query_residues=100 request_bytes=1500 stored_hits=12 queued_cells=1000000"


def test_what_a_server_refuses_is_searched_here(databases, search, here, tmp_path):
    """By its address, the same server refuses it, also a list of the default length."""
    database, letters = databases / "few.db", "MKVLAAGIVGLLLAQWERTY"
    beyond = {
        "option top is 100; this server lists up to 5 subjects": (f">a\n{letters}\n", []),
        "option top is 6; this server lists up to 5 subjects": (f">a\n{letters}\n", ["--top", 6]),
        "option top is all; this server lists up to 5 subjects": (f">a\n{letters}\n", ["--top", "all"]),
        "these are more than 3 queries": (f">a\n{letters}\n" * 4, ["--top", 2]),
        "query a has 120 residues": (f">a\n{letters * 6}\n", ["--top", 2]),
        "1,500 bytes": (f">a {'-' * 1500}\n{letters}\n", ["--top", 2]),
        "together more than the 12 that an owner may have": (f">a\n{letters}\n", ["--top", 5, "--max-hsps", 3]),
        "more than the 1,000,000 that an owner may have": (f">a\n{letters * 4}\n", ["--top", 2]),
    }
    with RunningServer(tmp_path, [database], *(f"--limit={limit}" for limit in LIMITS.split())) as server:
        for number, (refusal, (queries, options)) in enumerate(beyond.items()):
            (tmp_path / f"{number}.fasta").write_text(queries)
            asked = [*options, "--format", "blast6", "--evalue", 1e6]
            alone = search(database, *asked, queries=tmp_path / f"{number}.fasta")
            found = search(database, *asked, "--server", "auto", queries=tmp_path / f"{number}.fasta")
            assert (found.code, found.where, found.report) == (0, here, alone.report)
            assert found.report
            assert refusal in found.told
            refused = search(Path("few.db"), *asked, "--server", server.url, queries=tmp_path / f"{number}.fasta")
            assert (refused.code, refused.where, refused.report) == (1, "", "")
            assert refusal in refused.told
        (tmp_path / "within.fasta").write_text(f">a\n{letters}\n")
        within = search(database, "--top", 2, "--server", "auto", queries=tmp_path / "within.fasta")
        assert within.where == server.url


def test_a_search_of_a_database_that_changes_meanwhile_is_made_here(databases, search, here, tmp_path):
    """The server begins it anew, in the database of the new generation. One that its owner cancels is not made."""
    own, served = (copied(databases / "few.db", tmp_path / folder) for folder in ("own", "served"))
    options = ["--format", "jsonl", "--top", "2", "--server", "auto"]
    query = ["-m", "swsearch", "query", str(QUERIES), str(own), *options]
    alone = search(own, *options)
    with RunningServer(tmp_path, [served], "--no-worker") as server:
        client = server.client()
        with start(query, stdout=PIPE, stderr=PIPE) as cancelled:
            wait_until(client.searches, "the query is submitted")
            client.cancel(client.searches()[0]["id"])
            out, err = cancelled.communicate()
        assert (cancelled.returncode, out) == (1, "")
        assert err.splitlines()[-1] == f"swsearch: error: {server.url}: the search is cancelled"

        worker = ["-m", "swsearch", "worker", str(served), "--store", server.store, "--engine", "cpu"]
        with start(query, stdout=PIPE, stderr=PIPE) as outdated:
            wait_until(lambda: len(client.searches()) == 2, "the query is submitted")
            assert main(["db", "taxonomy", str(served), str(EXCERPT), "--quiet"]) == 0
            with start(worker):
                out, err = outdated.communicate()
        assert {one["state"] for one in client.searches()} == {"cancelled", "done"}
    assert (outdated.returncode, out) == (0, alone.report)
    assert f"{server.url}: the database has changed" in err
    assert err.endswith(f"stored as run 2 in {here}\n")


def test_a_server_of_another_version_is_not_found(databases, search, here, tmp_path):
    """Its program may find other hits, and reports name it."""
    program = (sys.executable, "-c", f"{OF_OTHER_VERSION}main(sys.argv[1:]))")
    with RunningServer(tmp_path, [databases / "few.db"], program=program) as server:
        assert [found["name"] for found in server.client().databases()] == ["few.db"]
        found = search(databases / "few.db", "--server", "auto", "--format", "jsonl", "--top", 2)
        assert (found.code, found.where) == (0, here)


def test_wrong_searches_have_the_message_of_this_machine(databases, search, tmp_path):
    one = ">a\nMKVLAAGIVGLLLAQWERTY\n"
    wrong = [
        (">a\nMK1\n", ""),
        ("", ""),
        ("no sequence\n", ""),
        (one, "--alphabet dna"),
        (one, "--translate both"),
        (one, "--taxid cats"),
        (one, "--taxid 7711"),  # no subject is of this organism, which a worker of the server finds out
        (one, "--gap-open -3"),
        (one, "--format none --fields score"),
    ]
    with RunningServer(tmp_path, [databases / "few.db"]):
        for text, options in wrong:
            (tmp_path / "wrong.fasta").write_text(text)
            asked = (databases / "few.db", *options.split())
            alone = search(*asked, queries=tmp_path / "wrong.fasta")
            found = search(*asked, "--server", "auto", queries=tmp_path / "wrong.fasta")
            assert found.code == alone.code > 0, alone
            assert found.report == alone.report == ""
            assert found.told.splitlines()[-1] == alone.told.splitlines()[-1]

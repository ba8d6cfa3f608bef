"""What a command does not import. Each module here takes longer than a short search, or is of no use to the command."""

import subprocess
import sys

import pytest

from tests.cli.conftest import DATA
from tests.tiers import mostly_thorough

QUERIES = str(DATA / "queries.fasta")

OF_OTHER_COMMANDS = {"swsearch.cli.msa", "swsearch.cli.comparison", "swsearch.cli.serve", "swsearch.cli.db"}
OF_ARCHIVES = {"xopen", "dnaio", "isal", "zlib_ng", "backports.zstd"}
OF_OTHER_STORES = {"sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "alembic", "psycopg"}
OF_SEARCHES = {
    "swsearch.search.searcher",
    "swsearch.search.options",
    "swsearch.engine.cpu.engine",
    "swsearch.query.profile_files",
}
OF_OTHER_QUERIES = {"swsearch.query.asn1", "swsearch.query.hmm", "swsearch.query.estimation", "swsearch.search.rounds"}
SELDOM_USED = {"numpy.ma", "numpy.testing", "rich", "Bio", "swsearch.engine.cuda.runtime.pycuda_device", "pycuda"}
STORE = {"sqlalchemy", "sqlite3", "swsearch.store.driver"}


def imported(among: set[str], *arguments: str, folder) -> list[str]:
    """Return the modules of a set that a command has imported at its end, in an interpreter of its own."""
    code = (
        "import sys\nfrom swsearch.cli.app import main\nassert main(sys.argv[1:]) == 0\n"
        f"print('imported:', *sorted(set(sys.modules) & {among!r}), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr.splitlines()[-1].removeprefix("imported:").split()


@pytest.mark.parametrize("option", mostly_thorough(["--version", "--help"], "--version"))
def test_the_program_itself_imports_no_command(tmp_path, option):
    commands = {f"swsearch.cli.{name}" for name in ("query", "db", "runs", "report", "command_run")}
    assert imported({"numpy", "json", *commands, *OF_OTHER_COMMANDS, *STORE}, option, folder=tmp_path) == []


def test_the_help_of_a_command_imports_nothing_that_takes_long(tmp_path):
    heavy = {"numpy", "Bio", "sqlalchemy", "alembic", "dnaio", "xopen", "rich.progress", "swsearch._native", "pycuda"}
    assert imported(heavy, "query", "--help", folder=tmp_path) == []


def test_gpus_start_before_what_takes_long_is_imported(few_proteins_db):
    """The driver starts in a thread, so it has more time before the program waits for it."""
    code = (
        "import sys\nfrom swsearch.engine.registry import Machine\nfrom swsearch.cli.app import main\n"
        "Machine.warm_up_gpus = lambda *_: print('numpy' in sys.modules, file=sys.stderr)\nmain(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, "query", QUERIES, str(few_proteins_db), "--store", "none", "--quiet"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == "False\n"


def test_a_search_without_a_store_imports_no_store(tmp_path, few_proteins_db):
    unused = {*STORE, *OF_OTHER_COMMANDS, *OF_OTHER_QUERIES, *OF_ARCHIVES, *SELDOM_USED}
    unused |= {"importlib.metadata", "importlib.resources"}
    assert imported(unused, "query", QUERIES, few_proteins_db, "--store", "none", folder=tmp_path) == []


def test_a_search_writes_its_store_without_sqlalchemy(tmp_path, few_proteins_db):
    unused = {"sqlalchemy", *OF_OTHER_STORES, *OF_OTHER_COMMANDS, *OF_OTHER_QUERIES, *OF_ARCHIVES, *SELDOM_USED}
    for state in ("new", "not new"):
        found = imported(unused, "query", QUERIES, few_proteins_db, "--store", "hits.sqlite", folder=tmp_path)
        assert found == [], state


@pytest.mark.thorough
def test_a_store_imports_only_what_a_command_asks_of_it(tmp_path, few_proteins_db):
    """SQLAlchemy is for URLs, PostgreSQL and upgrades."""
    unused = {"sqlalchemy", *OF_OTHER_STORES, *OF_OTHER_COMMANDS, *OF_OTHER_QUERIES, *OF_ARCHIVES, *SELDOM_USED}
    search = "query", QUERIES, few_proteins_db, "--store", "hits.sqlite", "--resume", "latest"
    assert imported(unused, *search, folder=tmp_path) == []
    of_services = {"swsearch.store.queue", "swsearch.store.searches", "swsearch.store.accounts"}
    assert imported(of_services, "runs", "list", "--store", "hits.sqlite", folder=tmp_path) == []


@pytest.mark.parametrize(
    "command", mostly_thorough([["runs", "list"], ["runs", "show", "latest"], ["report", "latest"]], ["runs", "list"])
)
def test_stored_runs_are_shown_without_what_a_search_needs(swsearch, tmp_path, few_proteins_db, command):
    assert swsearch("query", QUERIES, few_proteins_db, "--store", "hits.sqlite", "--quiet").code == 0
    unused = {"sqlalchemy", *OF_OTHER_STORES, *OF_OTHER_COMMANDS, *OF_ARCHIVES, *OF_SEARCHES, *SELDOM_USED}
    assert imported(unused, *command, "--store", "hits.sqlite", folder=tmp_path) == []


def test_an_index_of_plain_text_imports_no_reader_of_archives(tmp_path):
    unused = {*STORE, *OF_OTHER_COMMANDS, *OF_ARCHIVES, *OF_SEARCHES, *SELDOM_USED, "importlib.metadata"}
    assert imported(unused, "index", QUERIES, "-o", "q.db", folder=tmp_path) == []

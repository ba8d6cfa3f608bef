"""Stores to test: SQLite files, and a separate PostgreSQL server where Debian's package is installed."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from swsearch import folders
from swsearch.errors import Refused
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.store import schema
from tests.postgres_server import PostgresServer

DIALECTS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.peer("postgresql"))]
"""Parameters of a fixture that has a store of each kind."""


def bound_by_modes() -> list[str]:
    """Return the prefix of a command that makes file modes effective: root without its right to override them."""
    if os.geteuid() != 0:
        return []
    rights = "-dac_override,-dac_read_search"
    return ["setpriv", f"--inh-caps={rights}", f"--bounding-set={rights}"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A database server of its own."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("PostgreSQL's server refuses to run as root, and setpriv is not there to run it as nobody")
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="swsearch-pg-", dir="/tmp")), "fsync=off")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def shared_postgres_database(postgres: PostgresServer) -> str:
    """A PostgreSQL database for all tests, because each new one costs its server a quarter of a second."""
    return postgres.url("store")


@pytest.fixture
def postgres_url(shared_postgres_database: str) -> Iterator[str]:
    """An empty PostgreSQL database; what a test leaves in it, and who is still connected, is removed after the test."""
    import psycopg

    yield shared_postgres_database
    with psycopg.connect(shared_postgres_database, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        admin.execute("DROP SCHEMA public CASCADE")
        admin.execute("CREATE SCHEMA public")


@pytest.fixture(params=DIALECTS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A path or URL at which a store can be created, for each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "hits.sqlite")
    url: str = request.getfixturevalue("postgres_url")
    return url


_LATER_REVISION = "9.9.9_a"
_LATER = '''
"""A column for a note on a run."""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{head}"


def upgrade() -> None:
    op.add_column("runs", sa.Column("note", sa.Text))
'''


@pytest.fixture
def later_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[str]]:
    """A context in which a revision follows the real ones, so that stores of this program are old; yields its name.

    The argument is appended to its ``upgrade``.
    """

    @contextmanager
    def call(further: str = "") -> Iterator[str]:
        folder = shutil.copytree(folders.resource_folder("migrations"), tmp_path / "migrations")
        script = _LATER.format(revision=_LATER_REVISION, head=schema.SCHEMA) + further
        (folder / "versions" / f"{_LATER_REVISION}_note.py").write_text(script)
        with monkeypatch.context() as later:
            later.setattr(schema, "resource_folder", lambda name: folder)
            later.setattr(schema, "SCHEMA", _LATER_REVISION)
            yield _LATER_REVISION

    return call


DATABASE = DatabaseInfo(("proteins.db",), ("0af3",), 2, "protein", 516_371, 187_000_000)
RUN = RunInfo(
    command="swsearch query q.fa proteins.db",
    parameters={"top": 25, "evalue": 10.0, "ties": "cut", "matrix": None, "quiet": True},
    matrix="BLOSUM62",
    matrix_scores="   A\nA  4\n",
    gap_open=11,
    gap_extend=1,
    lam=0.267,
    k=0.041,
    statistics="NCBI's table",
    search_space=187_000_000,
    database=DATABASE,
    program="swsearch 0.1.0",
    engine="cpu",
    threads=2,
)


def make_hit(rank: int, **changes: object) -> Hit:
    alignment = Alignment(3, 60, 1, 57, "20=1I30=6X", 50, 52, 57, 1, 1, "ACDEFGHIKL" * 5 + "ACDEFG")
    values: dict[str, object] = {
        "rank": rank,
        "subject_index": rank * 7,
        "subject_header": f"sp|P{rank:05}|NAME_ORGANISM Some protein OS=Some organism OX=9606",
        "subject_length": 300,
        "score": 1000 - rank,
        "bits": 389.795 - 0.385 * rank,
        "evalue": 1.1e-200 * 10.0**rank if rank < 200 else 0.5,
        "strand": "plus",
        "alignment": alignment,
    }
    return Hit(**{**values, **changes})  # type: ignore[arg-type]


def make_query(number: int, n_hits: int = 3) -> QueryResult:
    return QueryResult(
        number=number,
        header=f"query_{number} of a test",
        letters="MKVLAAGIVGLCAKAYLEnnnXU*" * 3,
        hits=tuple(make_hit(rank) for rank in range(1, n_hits + 1)),
        n_passed=n_hits + 40,
        stats=SearchStats(cells=13_464_000_000, score_seconds=0.1, total_seconds=0.3, n_rescored=1),
    )


def submit(searches, new, limits=None, keep=None):
    """Submit one search; returns it, and whether it is new."""
    (found,) = searches.submit([new], limits, keep)
    if isinstance(found, Refused):
        raise found
    return found

"""A server that the tests of this folder share, and its databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from swsearch.service.protocols import PROTOCOLS
from tests.service.servers import RunningServer
from tests.support import DATA


@pytest.fixture(scope="session")
def databases(real_databases: Path) -> Path:
    """A folder with few.db (60 real proteins), proteins.db (all 1,500) and lambda.db (a genome)."""
    return real_databases


@pytest.fixture(scope="session")
def queries() -> str:
    """Seven real proteins."""
    return (DATA / "queries.fasta").read_text()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, databases: Path) -> Iterator[RunningServer]:
    """A server without tokens, which speaks all protocols."""
    names = ["few.db", "proteins.db", "lambda.db"]
    protocols = [f"--protocol={name}" for name in PROTOCOLS]
    paths = [databases / name for name in names]
    with RunningServer(tmp_path_factory.mktemp("server"), paths, *protocols) as running:
        yield running

"""A server that the tests of this folder share, and its databases."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from swsearch.cli.app import main
from swsearch.service.protocols import PROTOCOLS
from tests.service.servers import RunningServer

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with few.db (60 real proteins), proteins.db (all 1,500) and lambda.db (a genome)."""
    folder = tmp_path_factory.mktemp("databases")
    with gzip.open(DATA / "proteins.fasta.gz", "rt") as file:
        records = file.read().split(">")[1:61]
    (folder / "few.fasta").write_text("".join(f">{record}" for record in records))
    assert main(["index", str(folder / "few.fasta"), "-o", str(folder / "few.db"), "--quiet"]) == 0
    assert main(["index", str(DATA / "proteins.fasta.gz"), "-o", str(folder / "proteins.db"), "--quiet"]) == 0
    assert main(["index", str(DATA / "lambda_phage.fasta"), "-o", str(folder / "lambda.db"), "--quiet"]) == 0
    return folder


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
    running = RunningServer(tmp_path_factory.mktemp("server"), paths, *protocols)
    yield running
    assert running.stop() == 0
    assert running.events("text") == [], "something else than JSON was logged"

"""Settings that hold for every test, however the tests were started."""

import gc
import itertools
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# NumPy's library of linear algebra otherwise starts threads in every process, which spin while they wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The programs of BLAST+ otherwise report each of their runs to NCBI.
os.environ["BLAST_USAGE_REPORT"] = "false"
# Runs are never kept in the store of the user who tests. A file cannot be a folder, so nothing can be kept outside a
# test, which gets a place of its own.
os.environ["XDG_DATA_HOME"] = os.devnull
os.environ.pop("SWSEARCH_STORE", None)
# Nor do the defaults of this user count.
os.environ["SWSEARCH_CONFIG"] = ""

import pytest
from hypothesis import HealthCheck, settings

from tests.patience import LIMIT_SECONDS
from tests.peers import PEERS, chromium, need, peers_of

# A shell that starts the tests in the background makes them, and every process they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No example fails because the machine is busy, neither in the test nor while it is generated.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


_PLACES = itertools.count()


@pytest.fixture(autouse=True)
def user_store(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store in which a test's commands keep runs by default; neither it nor its folder exists at first."""
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_PLACES))
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    return home / "swsearch" / "hits.sqlite"


@pytest.fixture(scope="session")
def real_databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with few.db and some.db (60 and 300 real proteins), proteins.db (all 1,500) and lambda.db (a genome)."""
    from swsearch.cli.app import main
    from tests.support import DATA, protein_records

    folder = tmp_path_factory.mktemp("databases")
    for name, n_records in (("few", 60), ("some", 300)):
        (folder / f"{name}.fasta").write_text("".join(protein_records()[:n_records]))
    sources = {"few": "few.fasta", "some": "some.fasta"}
    sources |= {"proteins": DATA / "proteins.fasta.gz", "lambda": DATA / "lambda_phage.fasta"}
    for name, source in sources.items():
        assert main(["index", str(folder / source), "-o", str(folder / f"{name}.db"), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, led by Playwright (:mod:`tests.service.pages.browsers`)."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
            timeout=1000 * LIMIT_SECONDS,
        )  # fmt: skip
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core."""
    spec = find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "axe.min.js").read_text()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the seed of a random order, and the extent of a campaign."""
    parser.addoption("--order-seed", type=int, help="run the tests in a random order, which this number determines")
    parser.addoption("--campaign", type=float, help="minutes of a campaign (tests/campaign/conftest.py)")
    parser.addoption("--campaign-seed", type=int, default=1, help="what its trials are drawn with")


@pytest.hookimpl(tryfirst=True)  # before the tests of the other tier are deselected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need programs of others as thorough, and change the order if that is asked for."""
    for item in items:
        if any(PEERS[name].thorough for name in peers_of(item)):
            item.add_marker("thorough")
    seed = config.getoption("--order-seed")
    if seed is not None:
        items[:] = shuffled(items, random.Random(seed))


def shuffled(items: list[pytest.Item], source: random.Random) -> list[pytest.Item]:
    """Return the tests in random order; those of a module remain together, because they share fixtures."""
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    order = list(modules.values())
    source.shuffle(order)
    for tests in order:
        source.shuffle(tests)
    return list(itertools.chain.from_iterable(order))


@pytest.hookimpl(tryfirst=True)  # before fixtures start anything
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose peers are missing, or fail it (:mod:`tests.peers`); skip one of a GPU where there is none."""
    need(*peers_of(item))
    if item.get_closest_marker("gpu") and missing_gpu():
        pytest.skip(missing_gpu())


@cache
def missing_gpu() -> str:
    """Return why no GPU of this machine can be used, or nothing."""
    from swsearch.engine.cuda.runtime.pycuda_device import cuda_info

    return cuda_info().reason


def pytest_collection_finish() -> None:
    """Leave what was collected to the end; the collector of garbage need not look at it again and again."""
    gc.collect()
    gc.freeze()
    # Most objects of a test are freed with their last reference, so the collector finds little among some hundreds.
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB, if this process may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs rights that this process does not have")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)

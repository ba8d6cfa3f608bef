"""One cluster for the tests that leave it as it is, and one for each test that ends a part of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.clusters import Cluster
from tests.sliced_databases import sliced_databases


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """No test leaves the environment of this process changed; Dask would, for the workers of ``local:N``."""
    before = dict(os.environ)
    yield
    after = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    before.pop("PYTEST_CURRENT_TEST", None)
    assert after == before


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sliced_databases(tmp_path_factory.mktemp("databases"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster without workers."""
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.close()

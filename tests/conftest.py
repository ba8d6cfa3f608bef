"""Settings that hold for every test, however the tests were started."""

import gc
import os
import signal
from collections.abc import Iterator

# NumPy's library of linear algebra otherwise starts threads in every process, which spin while they wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from tests.forking.processes import ForkServer, ForkServers, running_servers

# A shell that starts the tests in the background makes them, and every process they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No example fails because the machine is busy, neither in the test nor while it is generated.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session")
def fork_servers() -> Iterator[ForkServers]:
    """Fork servers by environment (:mod:`tests.forking`)."""
    with running_servers() as servers:
        yield servers


@pytest.fixture
def fork_server(fork_servers: ForkServers) -> ForkServer:
    """The fork server for the environment of the tests."""
    return fork_servers()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first, so that no worker begins one when the others have finished."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    # What was collected stays until the end; the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    # Most objects of a test are freed with their last reference, so the collector finds little among some hundreds.
    gc.set_threshold(20_000, 10, 10)

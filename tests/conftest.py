"""What every test may rely on, however the tests were started."""

import signal

import pytest
from hypothesis import HealthCheck, settings

# A shell that starts the tests in the background has them ignore Ctrl-C, and so every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No example fails because the machine is busy, neither in the test nor while it is made up.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first, so that no worker begins one when the others have nothing left to do."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)

"""The emulated GPU for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.cuda.emulation.emulated_device import SANITIZE, EmulatedDevice


@pytest.fixture
def emulated() -> Callable[..., EmulatedDevice]:
    """Return a function that makes emulated devices: ``emulated(architecture=86)``.

    Unless a seed is given, their operations run in the same random order each time.
    """

    def make(**options: Any) -> EmulatedDevice:
        return EmulatedDevice(sanitize=SANITIZE in os.environ, **{"shuffle": 1, **options})

    return make

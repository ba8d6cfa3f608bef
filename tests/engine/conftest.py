"""The emulated GPU for the tests of this folder."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from swsearch.engine.cuda.search.tiles import package_kernels
from tests.engine.cuda.emulation.emulated_device import SANITIZE, EmulatedDevice, MakeDevice


@pytest.fixture
def emulated() -> Iterator[MakeDevice]:
    """Return a function that makes emulated devices: ``emulated(architecture=86)``.

    Unless a seed is given, their operations run in the same random order each time. All that they launch must be in the
    package, but for what serves for comparison; with ``any_tile``, a test may launch other tiles.
    """
    made: list[EmulatedDevice] = []

    def make(*, any_tile: bool = False, **options: Any) -> EmulatedDevice:
        device = EmulatedDevice(sanitize=SANITIZE in os.environ, **{"shuffle": 1, **options})
        made.extend([] if any_tile else [device])
        return device

    yield make
    for device in made:
        launched = {spec for spec in device.launched if spec.folder != "history"}
        assert launched <= set(package_kernels(device.facts.architecture))

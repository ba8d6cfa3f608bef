"""What the tests of the CUDA part share: the emulated device, and databases of generated sequences in memory."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

from emulated_device import SANITIZE, EmulatedDevice


@pytest.fixture(scope="session")
def kernel_compiler() -> None:
    """What compiles the emulated kernels must be here."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed, so the kernels cannot be emulated")


@pytest.fixture
def emulated(kernel_compiler: None) -> Callable[..., EmulatedDevice]:
    """Makes emulated devices: ``emulated(architecture=86)``."""

    def make(**options: Any) -> EmulatedDevice:
        return EmulatedDevice(sanitize=SANITIZE in os.environ, **options)

    return make

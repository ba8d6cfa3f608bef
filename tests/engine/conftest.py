"""The emulated GPU for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cuda" / "emulation"))

from emulated_device import SANITIZE, EmulatedDevice


@pytest.fixture(scope="session")
def kernel_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the emulated kernels are compiled to, once a session."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed, so the kernels cannot be emulated")
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def emulated(kernel_folder: Path) -> Callable[..., EmulatedDevice]:
    """Makes emulated devices: ``emulated(architecture=86)``."""

    def make(**options: Any) -> EmulatedDevice:
        return EmulatedDevice(kernel_folder, sanitize=SANITIZE in os.environ, **options)

    return make

"""The kernels of the tests of this folder: those of each search, and generic ones."""

from __future__ import annotations

import pytest

from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.kernel_choice import KernelPolicy


@pytest.fixture(params=[KernelPolicy.COMPILED, KernelPolicy.GENERIC], ids=["own kernels", "generic kernels"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> KernelPolicy:
    """Run a test twice: its engines take kernels of their own, then generic ones, unless they are told which."""
    policy: KernelPolicy = request.param
    assert CudaEngine.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(CudaEngine.__init__.__kwdefaults__, "kernels", policy)
    return policy

"""Builders of every engine that the protocol tests run on; an engine that cannot run is skipped with its reason."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.runtime.pycuda_device import cuda_info
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.protocol import ScoreEngine, ScoreRequest
from swsearch.engine.reference import ReferenceEngine
from swsearch.hits.score_block import ScoreBlock
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice

MOST_EMULATED_CELLS = 400_000
"""Cells that the emulation of a GPU scores in about a second."""


@dataclass(frozen=True)
class EngineCase:
    """An engine by name, and how to open it; ``missing`` says why it cannot be opened here."""

    name: str
    build: Callable[[], ScoreEngine]
    missing: str = ""
    peer: str = ""
    gpu: bool = False

    def param(self) -> object:
        # What is missing is an instruction set of this machine; it is the reason that pytest reports.
        marks: list[pytest.MarkDecorator] = [pytest.mark.skipif(bool(self.missing), reason=self.missing)]
        if self.peer:
            marks.append(pytest.mark.peer(self.peer))
        if self.gpu:
            marks.append(pytest.mark.gpu)
        return pytest.param(self, id=self.name, marks=marks)


def _cpu(instruction_set: str, threads: int) -> Callable[[], ScoreEngine]:
    return lambda: CpuEngine(threads=threads, instruction_set=instruction_set)


class EmulatedEngine(CudaEngine):
    """The CUDA engine on an emulated device; a test with too many cells for it is skipped."""

    def score(self, requests: Sequence[ScoreRequest], partition: Partition, *rest: Any) -> list[ScoreBlock]:
        cells = partition.n_residues * sum(request.profile.length for request in requests)
        if cells > MOST_EMULATED_CELLS:
            pytest.skip(f"{cells:,} cells take the emulation too long")
        return super().score(requests, partition, *rest)


def _emulated() -> ScoreEngine:
    return EmulatedEngine(EmulatedDevice())


def _cuda() -> ScoreEngine:
    info = cuda_info()
    if not info.usable:
        pytest.skip(info.reason)
    return CudaEngine()


ENGINES = [
    EngineCase("reference", ReferenceEngine),
    *(
        EngineCase(
            f"cpu-{name}-{threads}",
            _cpu(name, threads),
            missing="" if usable else f"this processor has no {name}",
        )
        for name, usable in _native.instruction_sets()
        for threads in ((1, 2) if name == "scalar" else (1,))
    ),
    EngineCase("cuda-emulated", _emulated, peer="g++"),
    EngineCase("cuda", _cuda, gpu=True),
]

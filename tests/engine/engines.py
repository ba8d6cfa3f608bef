"""Every engine the protocol tests run on, each by a builder; one that cannot run here is skipped with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from swsearch import _native
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import ScoreEngine
from swsearch.engine.reference import ReferenceEngine


@dataclass(frozen=True)
class EngineCase:
    """An engine by name, and how to open it; ``missing`` says why it cannot be opened here."""

    name: str
    build: Callable[[], ScoreEngine]
    missing: str = ""
    gpu: bool = False

    def param(self) -> object:
        marks = [pytest.mark.gpu] if self.gpu else []
        if self.missing:
            marks.append(pytest.mark.skip(reason=self.missing))
        return pytest.param(self, id=self.name, marks=marks)


def _cpu(instruction_set: str, threads: int) -> Callable[[], ScoreEngine]:
    return lambda: CpuEngine(threads=threads, instruction_set=instruction_set)


ENGINES = [
    EngineCase("reference", ReferenceEngine),
    *(
        EngineCase(
            f"cpu-{name}-{threads}",
            _cpu(name, threads),
            missing="" if usable else f"this processor has no {name}",
        )
        for name, usable in _native.instruction_sets()
        for threads in (1, 2)
    ),
]

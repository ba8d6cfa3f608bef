"""Which engines there are, which can be used here, and opening one by name."""

from __future__ import annotations

from typing import Final

from swsearch.engine.protocol import EngineInfo, ScoreEngine
from swsearch.errors import EngineUnavailable, InputError

ENGINES: Final = ("auto", "cuda", "cpu", "reference")


def engine_info(name: str) -> EngineInfo:
    """What one engine is and whether it can be used here; ``name`` is not ``auto``."""
    if name == "cuda":
        return EngineInfo("cuda", built=False, usable=False, detail="", reason="this version has no CUDA engine")
    if name == "cpu":
        from swsearch.engine.cpu.engine import cpu_info

        return cpu_info()
    from swsearch.engine.reference import reference_info

    return reference_info()


def engine_infos() -> list[EngineInfo]:
    """All engines, in the order in which ``auto`` tries them."""
    return [engine_info(name) for name in ENGINES if name != "auto"]


def choose_engine(name: str) -> tuple[str, str]:
    """The engine that ``name`` means here, and a sentence that says why.

    Raises
    ------
    InputError
        There is no engine of that name.
    EngineUnavailable
        The engine was named and cannot be used here.
    """
    if name not in ENGINES:
        raise InputError(f"--engine {name!r}: choose {', '.join(ENGINES)}")
    if name != "auto":
        info = engine_info(name)
        if not info.usable:
            raise EngineUnavailable(name, info.reason)
        return name, f"{name} engine ({info.detail}), as asked"
    passed_over: list[str] = []
    for info in engine_infos():
        if info.usable:
            why = f"; not {', '.join(passed_over)}" if passed_over else ""
            return info.name, f"{info.name} engine ({info.detail}){why}"
        passed_over.append(f"{info.name}: {info.reason}")
    raise EngineUnavailable("auto", "; ".join(passed_over))


def open_engine(name: str, threads: int | None = None) -> ScoreEngine:
    """An open engine; ``name`` is one that :func:`choose_engine` gave.

    Parameters
    ----------
    name : str
    threads : int, optional
        CPU threads, at least 1; the cores this process may use where it is not given.
    """
    if threads is not None and threads < 1:
        raise InputError(f"--threads {threads}: at least 1 thread is needed")
    if name == "cpu":
        from swsearch.engine.cpu.engine import CpuEngine

        return CpuEngine(threads)
    from swsearch.engine.reference import ReferenceEngine

    return ReferenceEngine()

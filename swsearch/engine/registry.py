"""Which engines there are, which can be used here, and opening one by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Final

from swsearch.cores import check_threads
from swsearch.engine.cuda.presence import GpuProbe, look_for_gpus
from swsearch.engine.protocol import EngineInfo, ScoreEngine
from swsearch.errors import EngineUnavailable, InputError

ENGINES: Final = ("auto", "cuda", "cpu", "reference")
KERNELS: Final = ("strip", "simt", "striped", "partitioned")
"""Kernels of the CUDA engine; the first is the default, the others are CUDASW++ 2.0's."""
MIN_GPU_SUBJECTS: Final = 1000
"""Fewer subjects leave most of a GPU idle: it works on thousands at a time, and a genome is one subject."""


def engine_info(name: str, *, gpus: GpuProbe | None = None) -> EngineInfo:
    """What one engine is and whether it can be used here; ``name`` is not ``auto``, ``gpus`` what is known of GPUs."""
    if name == "cuda":
        from swsearch.engine.cuda.info import cuda_info

        return cuda_info(gpus=gpus)
    if name == "cpu":
        from swsearch.engine.cpu.engine import cpu_info

        return cpu_info()
    from swsearch.engine.reference import reference_info

    return reference_info()


def engine_infos(*, gpus: GpuProbe | None = None) -> list[EngineInfo]:
    """All engines, in the order in which ``auto`` tries them."""
    return [engine_info(name, gpus=gpus) for name in ENGINES if name != "auto"]


def open_engine(
    name: str,
    threads: int | None = None,
    devices: Sequence[int] | None = None,
    n_subjects: int | None = None,
    kernel: str = KERNELS[0],
    *,
    gpus: GpuProbe | None = None,
) -> tuple[ScoreEngine, str]:
    """The engine that ``name`` means here, open, and a sentence that says which and why.

    Where ``auto`` passes over a GPU that is there, or that PyCUDA was installed for, the sentence says why; a machine
    without one is no reason to speak of GPUs.

    Parameters
    ----------
    name : str
        One of :data:`ENGINES`; ``auto`` takes the first that can be used and suits the database.
    threads : int, optional
        CPU threads, at least 1; the cores this process may use where it is not given.
    devices : sequence of int, optional
        GPUs by their CUDA numbers, each once; the CUDA engine uses all of them. The first where it is not given; the
        other engines have none.
    n_subjects : int, optional
        Subjects of the database; ``auto`` leaves one of few to the CPU.
    kernel : str
        One of :data:`KERNELS`; another than the default asks for the CUDA engine on one device.
    gpus : GpuProbe, optional
        What is known of GPUs before one is opened; this machine's where it is not given.

    Raises
    ------
    InputError
        There is no engine or kernel of that name, kernel or devices are not its own, or ``threads`` is out of range.
    EngineUnavailable
        The engine was named and cannot be used here.
    """
    if name not in ENGINES:
        raise InputError(f"--engine {name!r}: choose {', '.join(ENGINES)}")
    if threads is not None:
        check_threads(threads)
    named = devices is not None
    devices = (0,) if devices is None else devices
    shown = ",".join(map(str, devices))
    if not devices or len(set(devices)) < len(devices) or min(devices) < 0:
        raise InputError(f"--devices {shown!r}: name at least one device by its CUDA number, and each once")
    if named and name in ("cpu", "reference"):
        raise InputError(f"--devices {shown}: the {name} engine uses no GPU; leave it out, or give --engine cuda")
    gpus = gpus or look_for_gpus()
    if kernel != KERNELS[0]:
        return _open_kernel(kernel, name, devices, gpus)
    if name != "auto":
        engine, detail = open_named(name, threads, devices, gpus)
        return engine, f"{name} engine ({detail}), as asked"
    passed_over: list[str] = []
    for candidate in (engine for engine in ENGINES if engine != "auto"):
        if candidate == "cuda":
            if n_subjects is not None and n_subjects < MIN_GPU_SUBJECTS:
                if gpus.plugged_in and gpus.pycuda:  # the driver need not start for this
                    passed_over.append(f"cuda: too few subjects ({n_subjects:,}) to fill a GPU")
                continue
            if not gpus.expected and not named:
                continue
        try:
            engine, detail = open_named(candidate, threads, devices, gpus)
        except EngineUnavailable as error:
            passed_over.append(f"{candidate}: {error.reason}")
            continue
        why = f"; not {', '.join(passed_over)}" if passed_over else ""
        return engine, f"{candidate} engine ({detail}){why}"
    raise EngineUnavailable("auto", "; ".join(passed_over))


def warm_up_gpus(name: str, devices: Sequence[int], n_subjects: int) -> bool:
    """Let the GPUs that :func:`open_engine` is going to use for these arguments start meanwhile; whether it is any."""
    wanted = name == "cuda" or (name == "auto" and n_subjects >= MIN_GPU_SUBJECTS)
    if not wanted or importlib.util.find_spec("pycuda") is None:
        return False
    from swsearch.engine.cuda.warm_up import warm_up

    warm_up(devices)
    return True


def _open_kernel(kernel: str, name: str, devices: Sequence[int], gpus: GpuProbe) -> tuple[ScoreEngine, str]:
    """The CUDA engine with another kernel than the default one."""
    if kernel not in KERNELS:
        raise InputError(f"--kernel {kernel!r}: choose {', '.join(KERNELS)}")
    if name not in ("auto", "cuda"):
        raise InputError(f"--kernel {kernel} is a kernel of the cuda engine; leave it out, or give --engine cuda")
    if len(devices) > 1:
        raise InputError(f"--kernel {kernel} works on one GPU; give a single number to --devices")
    _require_gpu(gpus)
    from swsearch.engine.cuda.cudasw2 import Cudasw2Engine
    from swsearch.engine.cuda.device import PyCudaDevice

    engine = Cudasw2Engine(kernel, PyCudaDevice(devices[0]))
    return engine, f"cuda engine ({engine.description}), as asked"


def _require_gpu(gpus: GpuProbe) -> None:
    """Say what is missing before modules are loaded and threads started that need a GPU."""
    if gpus.missing:
        raise EngineUnavailable("cuda", gpus.missing)


def open_named(name: str, threads: int | None, devices: Sequence[int], gpus: GpuProbe) -> tuple[ScoreEngine, str]:
    """One engine, open, and what it runs on. A GPU is opened once: opening is most of a short search's time."""
    if name == "cuda":
        _require_gpu(gpus)
        from swsearch.engine.cuda.devices import CudaDevices

        cuda = CudaDevices(devices)
        return cuda, cuda.description
    info = engine_info(name)
    if not info.usable:
        raise EngineUnavailable(name, info.reason)
    if name == "cpu":
        from swsearch.engine.cpu.engine import CpuEngine

        return CpuEngine(threads), info.detail
    from swsearch.engine.reference import ReferenceEngine

    return ReferenceEngine(), info.detail

"""Reports whether the CUDA engine can be used on this machine and, if not, the reason and the remedy; never raises."""

from __future__ import annotations

import importlib.util

from swsearch.engine.cuda.runtime.kernels import COLLECT_KERNEL
from swsearch.engine.cuda.runtime.presence import INSTALL, GpuProbe, look_for_gpus
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.runtime.shipped_kernels import package_folder, refusals
from swsearch.engine.protocol import EngineInfo
from swsearch.errors import EngineError, EngineUnavailable, SwSearchError
from swsearch.folders import resource_folder


def _unusable(reason: str, *, built: bool = True) -> EngineInfo:
    return EngineInfo("cuda", built=built, usable=False, detail="", reason=reason)


def cuda_info(*, gpus: GpuProbe | None = None) -> EngineInfo:
    """Compile and load a kernel, and report device, compute capability, free memory, driver and compiler.

    If items are missing, the first of them is named, in the order in which a user would install them: sources, GPU,
    driver, PyCUDA, compiler, texture objects. ``gpus`` is the probe of this machine, by default a new one.
    """
    try:
        resource_folder("cuda")
    except SwSearchError as error:
        return _unusable(str(error), built=False)
    missing = (gpus or look_for_gpus()).missing
    if missing:
        return _unusable(missing)
    try:
        device = PyCudaDevice()
    except EngineUnavailable as error:
        return _unusable(error.reason)
    except EngineError as error:
        return _unusable(str(error))
    try:
        if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
            return _unusable(f"cuda-bindings is not installed; {INSTALL}")
        facts, compiler = device.facts, device.compilers.current
        try:
            device.resident_blocks(COLLECT_KERNEL, 0)
        except EngineError as error:
            return _unusable(f"a kernel cannot be compiled and loaded: {error}")
        detail = (
            f"{facts.name}, compute capability {facts.architecture // 10}.{facts.architecture % 10}, "
            f"{device.free_bytes() / 1e9:.1f} of {facts.memory_bytes / 1e9:.1f} GB free, driver {facts.driver}, "
            + (f"{compiler.name} {compiler.version}" if compiler else "no compiler")
        )
        refused = refusals(device.archives)
        if package_folder() is None:
            refused = ["this package was built without nvcc, so first searches wait for a compiler"]
        detail = "; ".join([detail, *device.compilers.passed_over, *refused])
        return EngineInfo("cuda", built=True, usable=True, detail=detail)
    finally:
        device.close()

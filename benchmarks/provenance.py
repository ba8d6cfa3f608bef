"""Where a result was measured: the commit of the program, the processor, and the GPU with its driver."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from swsearch.threads import usable_cores
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.engine.cuda.runtime.compiler import Compiler
    from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice

_ROOT = Path(__file__).parents[1]


def commit() -> str:
    """The commit of the checkout, from git or from a file COMMIT beside the sources; empty if there is neither.

    It ends with ``-dirty`` if the sources were changed since.
    """
    if (_ROOT / "COMMIT").is_file():
        return (_ROOT / "COMMIT").read_text(encoding="ascii").strip()
    command = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def processor() -> str:
    """Name, family and model of the processor, as far as the system reports them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(reversed([[word.strip() for word in line.split(":", 1)] for line in lines if ":" in line]))
    if "model name" not in fields:  # ARM
        return platform.processor() or platform.machine()
    return f"{fields['model name']} (family {fields.get('cpu family')}, model {fields.get('model')})"


def device_of(engine: str) -> dict[str, str]:
    """The device on which an engine of this host computes, and its driver if it is a GPU."""
    host = f"{processor()}, {counted(usable_cores(), 'core')}"
    if engine != "cuda":
        return {"device": host}
    from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice

    device = PyCudaDevice(0)
    try:
        return {"device": device.facts.name, "driver": device.facts.driver, "host": host}
    finally:
        device.close()


def compiler_of(device: PyCudaDevice) -> Compiler:
    """The compiler of the kernels that a device does not find compiled; there must be one."""
    compiler = device.kernel_cache.compiler
    assert compiler is not None
    return compiler

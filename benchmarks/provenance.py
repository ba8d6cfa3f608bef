"""What a result names and how it is written: command and commit of the program, the processor, the GPU's driver."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def header(benchmark: str) -> dict[str, Any]:
    """The first entries of a result: the name of the benchmark, its command line and the commit."""
    return {"benchmark": benchmark, "command": " ".join(sys.argv), "commit": commit()}


def write_result(result: Mapping[str, Any], path: Path | None) -> None:
    """Write a result as JSON, if a file was given for it."""
    if path is not None:
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


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

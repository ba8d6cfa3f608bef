"""The NVIDIA GPUs of this machine without PyCUDA: whether there is one, what prevents its use, and how it is started.

A machine without a GPU has no fault, so no message asks its user to install anything. If there is a GPU, or if PyCUDA
is installed, the message names what is missing.

The driver's start and the creation of a context take as long as the start of the program, so both are done at once.
PyCUDA holds the global interpreter lock while it creates a context, so it would block the other threads; calls of the
driver's library through ctypes do not. They create the primary context, which PyCUDA then uses and which exists until
the process ends.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

LIBRARY: Final = "libcuda.so.1"
INSTALL: Final = "pip install 'swsearch[cuda]' mends that"
_NVIDIA: Final = "0x10de"
_DISPLAY_CLASSES: Final = "0x03"
"""Prefix of the PCI classes of graphics cards, 3D controllers included."""
_NO_DEVICE: Final = 100
_NOT_THE_DRIVER: Final = 34
"""Results of cuInit: the driver lists no device; the library is the one of the CUDA toolkit for linking programs."""
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class DriverFacts:
    """The driver's answer: the number of visible GPUs, and the driver's fault, which is empty if the driver works."""

    n_devices: int
    fault: str = ""


@dataclass(frozen=True)
class GpuProbe:
    """Facts about GPUs that are known before one is opened.

    ``plugged_in``: the system lists an NVIDIA GPU, with or without its driver. ``visible`` is the value of
    ``CUDA_VISIBLE_DEVICES``. ``ask_driver`` starts the driver, so it is called only when the answer is needed.
    """

    plugged_in: bool
    pycuda: bool
    visible: str | None
    ask_driver: Callable[[], DriverFacts]

    @cached_property
    def driver(self) -> DriverFacts:
        """The driver's answer."""
        return self.ask_driver()

    @property
    def expected(self) -> bool:
        """Whether the user may expect a GPU to be used: there is one, or PyCUDA is installed."""
        return self.plugged_in or self.pycuda or self.driver.n_devices > 0

    @property
    def missing(self) -> str:
        """The reason why no GPU can be opened, with the remedy; empty if no reason is known."""
        if self.driver.n_devices:
            return "" if self.pycuda else f"PyCUDA is not installed; {INSTALL}"
        if not self.expected:
            return "there is no NVIDIA GPU"
        if self.driver.fault:
            which = "there is an NVIDIA GPU, but its driver" if self.plugged_in else "the NVIDIA driver"
            return f"{which} is missing or broken ({self.driver.fault}); install it"
        if self.visible is not None:
            return f"{VISIBLE}={self.visible!r} hides every GPU from this program; unset it"
        if self.plugged_in:
            return "the NVIDIA driver does not show the GPU that is plugged in; `nvidia-smi` may say why"
        return "there is no NVIDIA GPU"


def look_for_gpus() -> GpuProbe:
    """The probe of this machine."""
    pycuda = importlib.util.find_spec("pycuda") is not None
    return GpuProbe(plugged_in(Path("/")), pycuda, os.environ.get(VISIBLE), lambda: ask_driver(LIBRARY))


def plugged_in(root: Path) -> bool:
    """Whether the system files under ``root``, those of the driver or of the PCI bus, list an NVIDIA GPU."""
    if any(root.glob("proc/driver/nvidia/gpus/*")) or any(root.glob("dev/nvidia[0-9]*")):
        return True
    for device in root.glob("sys/bus/pci/devices/*"):
        try:
            vendor, kind = ((device / name).read_text("ascii").strip() for name in ("vendor", "class"))
        except (OSError, ValueError):
            continue
        if vendor == _NVIDIA and kind.startswith(_DISPLAY_CLASSES):
            return True
    return False


def ask_driver(library: str) -> DriverFacts:
    """Query the driver in the shared library of this name. This starts the driver, as an engine would."""
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return DriverFacts(0, f"{library} cannot be loaded")
    count = ctypes.c_int()
    status = driver.cuInit(0)
    if status == 0:
        status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status == 0:
        return DriverFacts(count.value)
    if status == _NO_DEVICE:
        return DriverFacts(0)
    if status == _NOT_THE_DRIVER:
        return DriverFacts(0, f"{library} is the CUDA toolkit's library for linking, not the driver")
    words = ctypes.c_char_p()
    driver.cuGetErrorString(status, ctypes.byref(words))
    return DriverFacts(0, f"error {status} of {library}, {(words.value or b'unknown').decode('ascii', 'replace')}")


def warm_up(ordinals: Sequence[int]) -> threading.Thread:
    """Begin to create the contexts of the GPUs with these CUDA numbers.

    Failures are silent here: opening the device reports them.
    """
    thread = threading.Thread(target=_create_contexts, args=(tuple(ordinals),), name="warm-up-gpu")
    thread.start()
    return thread


def set_driver_defaults() -> None:
    """Choose what the user has not chosen in the driver's environment variables; call this before its start.

    By default, the driver loads a kernel at its first launch, and waits until the device is idle. And all streams share
    eight queues, in which a kernel waits for the earlier ones, also of other streams; so each has its own instead.
    """
    os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")


def _create_contexts(ordinals: Sequence[int]) -> None:
    set_driver_defaults()
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError:
        return
    if driver.cuInit(0) != 0:
        return
    for ordinal in ordinals:
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuDeviceGet(ctypes.byref(device), ordinal) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)

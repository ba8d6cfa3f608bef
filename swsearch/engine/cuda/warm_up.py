"""Starting the driver and GPUs beside the program's own start, which takes as long.

PyCUDA keeps Python's lock while it makes a context, so it cannot do this in a thread; the driver's library can, called
through ctypes. What it makes is the primary context, which PyCUDA then finds ready. It stays until the process ends.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Final

LIBRARY: Final = "libcuda.so.1"


def warm_up(ordinals: Sequence[int]) -> threading.Thread:
    """Begin to make the contexts of GPUs by their CUDA numbers; where that fails, opening the device says why."""
    thread = threading.Thread(target=_make_contexts, args=(tuple(ordinals),), name="warm-up-gpu")
    thread.start()
    return thread


def _make_contexts(ordinals: Sequence[int]) -> None:
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

"""Starts the driver and creates GPU contexts in a thread while the program starts, because both take equally long.

PyCUDA holds the global interpreter lock while it creates a context, so it would block the other threads; calls of the
driver's library through ctypes do not. They create the primary context, which PyCUDA then uses and which exists until
the process ends.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from typing import Final

LIBRARY: Final = "libcuda.so.1"


def warm_up(ordinals: Sequence[int]) -> threading.Thread:
    """Begin to create the contexts of the GPUs with these CUDA numbers.

    Failures are silent here: opening the device reports them.
    """
    thread = threading.Thread(target=_create_contexts, args=(tuple(ordinals),), name="warm-up-gpu")
    thread.start()
    return thread


def load_kernels_eagerly() -> None:
    """Have the driver load a kernel with its module, unless the user has chosen otherwise; call this before its start.

    By default it loads a kernel at its first launch, and waits until the device is idle.
    """
    os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")


def _create_contexts(ordinals: Sequence[int]) -> None:
    load_kernels_eagerly()
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

"""Device buffers by name, reused from launch to launch."""

from __future__ import annotations

from typing import Final

from swsearch.engine.cuda.runtime.device import Buffer, Device, OutOfDeviceMemory

ROUNDED_BYTES: Final = 1 << 22
"""Up to this size, buffers have sizes that are powers of two, so they seldom grow."""


class Scratch:
    """Buffers by name, each of at least ``smallest`` bytes and as large as the largest request for it.

    A buffer that is too small is replaced, and freed only when the device is idle, because launches in flight may use
    it.
    """

    def __init__(self, device: Device, smallest: int = 1) -> None:
        self._device = device
        self._smallest = smallest
        self._buffers: dict[str, Buffer] = {}
        self._replaced: list[Buffer] = []

    def buffer(self, name: str, n_bytes: int) -> Buffer:
        """The buffer of this name, with at least ``n_bytes`` bytes; its earlier contents may be lost."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.n_bytes < n_bytes:
            if buffer is not None:
                self._replaced.append(self._buffers.pop(name))
            buffer = self._buffers[name] = self._allocate(max(n_bytes, self._smallest))
        return buffer

    def _allocate(self, n_bytes: int) -> Buffer:
        rounded = n_bytes if n_bytes > ROUNDED_BYTES else 1 << max(n_bytes - 1, 0).bit_length()
        try:
            return self._device.allocate(rounded)
        except OutOfDeviceMemory:
            self._device.synchronize()
            self.free_replaced()
            return self._device.allocate(n_bytes)

    def free_replaced(self) -> None:
        """Free the buffers that were replaced; the device must be idle."""
        while self._replaced:
            self._replaced.pop().free()

    def free(self) -> None:
        """Free all memory; the device must be idle."""
        self.free_replaced()
        for buffer in self._buffers.values():
            buffer.free()
        self._buffers.clear()

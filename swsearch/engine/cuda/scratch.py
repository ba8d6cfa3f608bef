"""Device buffers by name, reused from launch to launch."""

from __future__ import annotations

from swsearch.engine.cuda.device import Buffer, Device


class Scratch:
    """Buffers by name, each as large as the largest request for it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._buffers: dict[str, Buffer] = {}

    def buffer(self, name: str, n_bytes: int) -> Buffer:
        """The buffer of this name, with at least ``n_bytes`` bytes; its earlier contents may be lost.

        Raises
        ------
        OutOfDeviceMemory
        """
        buffer = self._buffers.get(name)
        if buffer is None or buffer.n_bytes < n_bytes:
            if buffer is not None:
                self._device.synchronize()
                buffer.free()
                del self._buffers[name]
            buffer = self._device.allocate(n_bytes)
            self._buffers[name] = buffer
        return buffer

    def __getitem__(self, name: str) -> Buffer:
        """The buffer of the last request for this name."""
        return self._buffers[name]

    def free(self) -> None:
        """Free all memory."""
        for buffer in self._buffers.values():
            buffer.free()
        self._buffers.clear()

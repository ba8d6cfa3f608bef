"""The interface that the engine requires of a GPU: memory, streams, texture objects and launches.

:class:`swsearch.engine.cuda.runtime.pycuda_device.PyCudaDevice` implements it, and so does the emulated device of the
tests. Operations are ordered within a stream but not between streams. A device belongs to the thread that opened it.

:class:`Scratch` has device buffers by name, reused from launch to launch; :class:`Timing` has the time that kernels
take, by events on the device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.errors import EngineError


class OutOfDeviceMemory(EngineError):
    """An allocation does not fit the device's free memory; the engine continues with smaller pieces."""


class DeviceLost(EngineError):
    """The device failed; this process can use neither it nor its memory any longer."""


class Stream(IntEnum):
    """The streams of a device."""

    COMPUTE = 0
    SIDE = 1
    """Long subjects, which are scored concurrently with the others."""
    COPY = 2
    """Uploads of a streamed database."""
    OTHER_SIDE = 3
    """Long subjects of the second of two queries."""
    ENDS = 4
    """The search for the ends of alignments, which does not wait for the batches in flight."""
    FINISH = 5
    """The second scoring of a batch and the download of its results, which overlap with the next batch."""


@dataclass(frozen=True)
class DeviceFacts:
    """Properties of a device.

    ``architecture`` is 90 for compute capability 9.0, ``shared_bytes`` the largest dynamic shared memory of a block,
    ``memory_bytes`` the total memory, used or free, ``clock_hz`` the highest clock of the multiprocessors, and
    ``pci_bus_id`` the address as ``nvidia-smi`` prints it.
    """

    name: str
    driver: str
    architecture: int
    multiprocessors: int
    shared_bytes: int
    memory_bytes: int
    clock_hz: float
    pci_bus_id: str


class Buffer(Protocol):
    """Device memory that lives until :meth:`free`."""

    address: int
    n_bytes: int

    def texture(self) -> int:
        """The handle of a texture object of 16-byte units over the buffer, which lives as long as the memory."""
        ...

    def free(self) -> None:
        """Free the memory; a second call has no effect."""
        ...


class Event(Protocol):
    """A point in a stream's work."""

    def wait(self) -> None:
        """Wait until the event has occurred."""
        ...

    def seconds_since(self, earlier: Event) -> float:
        """Time between two events that have occurred."""
        ...


class Device(Protocol):
    """The operations of a GPU that the engine uses."""

    facts: DeviceFacts

    def free_bytes(self) -> int:
        """Free device memory in bytes."""
        ...

    def allocate(self, n_bytes: int) -> Buffer:
        """Memory, aligned to 256 bytes. Raises :class:`OutOfDeviceMemory`."""
        ...

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        """Page-locked host memory, from which uploads run at full speed while kernels run."""
        ...

    def unpin(self, array: NDArray[np.uint8]) -> None:
        """Declare that pinned memory is no longer used; it is freed with its last array."""
        ...

    def upload(self, buffer: Buffer, values: NDArray[Any], stream: Stream, offset: int = 0) -> None:
        """Copy to the device. The copy may end after the call; until then pinned memory must not be changed."""
        ...

    def download(self, values: NDArray[Any], buffer: Buffer, stream: Stream, offset: int = 0) -> None:
        """Copy from the device, after all earlier work of the stream, and wait for the copy."""
        ...

    def begin_download(self, values: NDArray[Any], buffer: Buffer, stream: Stream) -> None:
        """Copy to pinned memory, after all earlier work of the stream; a later event tells when the copy has ended."""
        ...

    def event(self, stream: Stream, *, sleeping: bool = False) -> Event:
        """An event that occurs when all earlier work of the stream has ended.

        A thread that waits for a ``sleeping`` event takes no processor time, but tens of microseconds more than in a
        loop.
        """
        ...

    def clear(self, buffer: Buffer, n_bytes: int, stream: Stream) -> None:
        """Set the first ``n_bytes`` bytes, a multiple of 4, to zero."""
        ...

    def prepare(self, spec: KernelSpec) -> None:
        """Load a kernel, which is compiled first if the package does not contain it.

        The driver loads a kernel only when the device is idle, so a kernel that is loaded between two launches makes
        the device wait for the host.
        """
        ...

    def launch(self, spec: KernelSpec, grid: int, shared_bytes: int, parameters: np.void, stream: Stream) -> None:
        """Start a kernel with its parameters (``parameters.py``); it is loaded at its first launch."""
        ...

    def resident_blocks(self, spec: KernelSpec, shared_bytes: int) -> int:
        """Number of blocks of a kernel that are resident on one multiprocessor at a time, at least 1."""
        ...

    def follow(self, stream: Stream, leader: Stream) -> None:
        """Make later work of ``stream`` wait for the earlier work of ``leader``."""
        ...

    def synchronize(self) -> None:
        """Wait for all streams."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


def allocated(device: Device, stack: contextlib.ExitStack, n_bytes: int) -> Buffer:
    """Memory that is freed when ``stack`` closes. Raises :class:`OutOfDeviceMemory`."""
    buffer = device.allocate(n_bytes)
    stack.callback(buffer.free)
    return buffer


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


@dataclass
class Timing:
    """The work of an engine's kernels since the engine was created or the timing was reset.

    ``cells`` are query residues times subject residues, each pair counted once; ``seconds`` are kernel time by events
    on the device. ``last`` is the end of the last work.
    """

    cells: int = 0
    seconds: float = 0.0
    last: Event | None = None

    def add(self, began: Event, ended: Event) -> None:
        """Add the time of work that ended after all earlier work; what overlapped with earlier work counts once."""
        seconds = ended.seconds_since(began)
        if self.last is not None:
            seconds = min(seconds, ended.seconds_since(self.last))
        self.seconds += seconds
        self.last = ended

    def reset(self) -> None:
        """Set the sums to zero."""
        self.cells, self.seconds = 0, 0.0


@contextlib.contextmanager
def timed(device: Device, timing: Timing) -> Iterator[None]:
    """Add the time of what a with-block starts on the stream for computation, and wait for its end."""
    began = device.event(Stream.COMPUTE)
    yield
    ended = device.event(Stream.COMPUTE)
    ended.wait()
    timing.seconds += ended.seconds_since(began)

"""A GPU accessed through PyCUDA: the device of all searches on real hardware.

:class:`PyCudaDevice` implements :class:`swsearch.engine.cuda.runtime.device.Device`. It takes compiled kernels from
the cache, translates PyCUDA's errors, and allows the devices of a thread to be closed in any order.
:func:`cuda_info` tells whether there is such a device on this machine and, if not, the reason and the remedy.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import struct
import threading
from collections import defaultdict
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.runtime.compiled_kernels import KernelCache, package_archives, package_folder, refusals
from swsearch.engine.cuda.runtime.device import Buffer, DeviceFacts, DeviceLost, Event, OutOfDeviceMemory, Stream
from swsearch.engine.cuda.runtime.kernels import COLLECT_KERNEL, UNIT_BYTES, WARP, KernelSpec, compute_capability
from swsearch.engine.cuda.runtime.presence import INSTALL, LIBRARY, look_for_gpus, set_driver_defaults
from swsearch.engine.protocol import EngineInfo
from swsearch.errors import EngineError, EngineUnavailable, SwSearchError
from swsearch.folders import resource_folder

OLDEST_ARCHITECTURE: Final = 75
REGISTER_UNIT: Final = 256
RESERVED_SHARED_BYTES: Final = 1024
MAX_BLOCKS: Final = 16
"""Blocks that a multiprocessor of any supported architecture runs at a time (some run more)."""
_RESOURCE: Final = struct.Struct("i4xQiIQ104xI4x")
"""``CUDA_RESOURCE_DESC`` of linear memory: its kind, the address, the format and number of channels, bytes, flags."""
_READING: Final = struct.Struct("16xI84x")
"""``CUDA_TEXTURE_DESC``, of which linear memory needs the flags alone."""
_LINEAR, _UINT32, _READ_AS_INTEGER = 2, 3, 1


@dataclass(frozen=True)
class MultiprocessorLimits:
    """Resources that the blocks on one multiprocessor share: threads, registers, bytes of shared memory."""

    threads: int
    registers: int
    shared_bytes: int


def fitting_blocks(limits: MultiprocessorLimits, threads: int, registers: int, shared_bytes: int) -> int:
    """Number of blocks that run on a multiprocessor at a time, at least 1.

    A warp allocates registers in units of 256, and the driver reserves 1,024 bytes of shared memory per block in
    addition to the dynamic ones.
    """
    warp_registers = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
    by_registers = limits.registers // warp_registers // (threads // WARP) if warp_registers else MAX_BLOCKS
    by_shared = limits.shared_bytes // (shared_bytes + RESERVED_SHARED_BYTES)
    return max(1, min(MAX_BLOCKS, limits.threads // threads, by_registers, by_shared))


class _PyCudaBuffer:
    def __init__(self, device: PyCudaDevice, allocation: Any, n_bytes: int) -> None:
        self._device = device
        self._allocation = allocation
        self.address = int(allocation)
        self.n_bytes = n_bytes
        self._texture: int | None = None

    def texture(self) -> int:
        """See :class:`Buffer`.

        PyCUDA lacks texture objects. The driver's library is called directly, because the import of cuda-bindings takes
        a tenth of a short command.
        """
        if self._texture is None:
            handle = ctypes.c_uint64()
            resource = _RESOURCE.pack(_LINEAR, self.address, _UINT32, 4, self.n_bytes, 0)
            reading = _READING.pack(_READ_AS_INTEGER)
            status = ctypes.CDLL(LIBRARY).cuTexObjectCreate(ctypes.byref(handle), resource, reading, None)
            if status != 0:
                raise EngineError(f"the driver cannot make a texture object (error {status})")
            self._texture = handle.value
        return self._texture

    def free(self) -> None:
        if self._texture is not None:
            texture, self._texture = self._texture, None
            ctypes.CDLL(LIBRARY).cuTexObjectDestroy(ctypes.c_uint64(texture))
        if self._allocation is not None:
            allocation, self._allocation = self._allocation, None
            self._device.give_back(allocation)


class _PyCudaEvent:
    def __init__(self, device: PyCudaDevice, event: Any) -> None:
        self._device = device
        self.event = event

    def __del__(self) -> None:
        self._device.retain_if_lost(self.event)

    def wait(self) -> None:
        with self._device.errors("finishing its work"):
            self.event.synchronize()

    def seconds_since(self, earlier: Event) -> float:
        assert isinstance(earlier, _PyCudaEvent)
        with self._device.errors("timing its work"):
            return float(self.event.time_since(earlier.event)) / 1000.0


class _TranslatedErrors:
    """The context of an operation of a device, which translates PyCUDA's errors into those of this package.

    After a failure every operation raises the same failure. A call of one query has tens of operations, and a context
    manager made of a generator would take five times as long.
    """

    __slots__ = ("_device", "_doing")

    def __init__(self, device: PyCudaDevice, doing: str) -> None:
        self._device = device
        self._doing = doing

    def __enter__(self) -> None:
        if self._device.failure is not None:
            raise self._device.failure

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        facts, driver = self._device.facts, self._device.driver
        if isinstance(error, driver.MemoryError):
            raise OutOfDeviceMemory(f"{facts.name} is out of memory while {self._doing}") from error
        if isinstance(error, driver.Error):
            where = f"{facts.name} at PCI {facts.pci_bus_id}"
            advice = "what was finished is kept; search again, with other --devices if it fails again"
            self._device.failure = DeviceLost(f"{where} failed while {self._doing} ({error}); {advice}")
            raise self._device.failure from error


_opened = threading.local()


def _opened_here() -> list[PyCudaDevice]:
    """The open devices of this thread, in the order of its stack of contexts."""
    if not hasattr(_opened, "devices"):
        _opened.devices = []
    devices: list[PyCudaDevice] = _opened.devices
    return devices


class PyCudaDevice:
    """A GPU accessed through PyCUDA.

    ``ordinal`` is the number of the device among those that the driver lists. A thread's contexts form a stack, and
    operations refer to the device that the thread opened last. Devices may be closed in any order. Raises
    :class:`EngineUnavailable`, with the remedy, without a driver, such a device or kernels for it, and for one that is
    too old.
    """

    def __init__(self, ordinal: int = 0) -> None:
        try:
            from pycuda import driver
        except ImportError as error:
            # Without the driver's library PyCUDA cannot be imported either.
            broken = f"PyCUDA cannot be imported ({error}); {INSTALL}"
            raise EngineUnavailable("cuda", look_for_gpus().missing or broken) from error
        self.driver = driver
        set_driver_defaults()
        try:
            driver.init()
            count = driver.Device.count()
        except driver.Error as error:
            unanswered = f"the NVIDIA driver does not answer ({error}); install or repair it"
            raise EngineUnavailable("cuda", look_for_gpus().missing or unanswered) from error
        if not 0 <= ordinal < count:
            raise EngineUnavailable("cuda", f"there is no device {ordinal}, the driver shows {count}; choose another")
        device = driver.Device(ordinal)
        major, minor = device.compute_capability()
        attribute = driver.device_attribute
        version = driver.get_driver_version()
        self.facts = DeviceFacts(
            name=device.name(),
            driver=f"CUDA {version // 1000}.{version % 1000 // 10}",
            architecture=major * 10 + minor,
            multiprocessors=device.get_attribute(attribute.MULTIPROCESSOR_COUNT),
            shared_bytes=device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            memory_bytes=device.total_memory(),
            clock_hz=device.get_attribute(attribute.CLOCK_RATE) * 1e3,
            pci_bus_id=device.pci_bus_id(),
        )
        if self.facts.architecture < OLDEST_ARCHITECTURE:
            raise EngineUnavailable(
                "cuda", f"{self.facts.name} has {compute_capability(self.facts.architecture)}; 7.5 or newer is needed"
            )
        self.kernel_cache = KernelCache(self.facts.architecture, package_archives(self.facts.architecture))
        try:
            self.kernel_cache.take(COLLECT_KERNEL)
        except EngineError as error:
            raise EngineUnavailable("cuda", str(error)) from error
        self._context = device.retain_primary_context()
        self._context.push()
        self._streams: dict[Stream, Any] = defaultdict(driver.Stream)  # few users of a device need all
        _opened_here().append(self)
        self.failure: DeviceLost | None = None
        self._abandoned: list[Any] = []
        self._kernels: dict[KernelSpec, Any] = {}
        self._modules: list[Any] = []
        self._prepared: set[KernelSpec] = set()
        self._limits = MultiprocessorLimits(
            threads=device.get_attribute(attribute.MAX_THREADS_PER_MULTIPROCESSOR),
            registers=device.get_attribute(attribute.MAX_REGISTERS_PER_MULTIPROCESSOR),
            shared_bytes=device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        )
        self._open = True
        atexit.register(self.close)  # a context that is still current at the end would abort the process

    def errors(self, doing: str) -> _TranslatedErrors:
        """The context of an operation; ``doing`` says what it does."""
        return _TranslatedErrors(self, doing)

    def give_back(self, allocation: Any) -> None:
        """Free memory; on a lost device only retain the object."""
        if not self.retain_if_lost(allocation):
            with self.errors("freeing memory"):
                allocation.free()

    def retain_if_lost(self, held: Any) -> bool:
        """Retain an object of a lost device until it is closed: PyCUDA would warn for each that it cannot free."""
        if self.failure is not None:
            self._abandoned.append(held)
        return self.failure is not None

    def free_bytes(self) -> int:
        """See :class:`Device`."""
        with self.errors("asking for free memory"):
            return int(self.driver.mem_get_info()[0])

    def allocate(self, n_bytes: int) -> Buffer:
        """See :class:`Device`."""
        with self.errors(f"allocating {n_bytes:,} bytes"):
            return _PyCudaBuffer(self, self.driver.mem_alloc(max(n_bytes, UNIT_BYTES)), max(n_bytes, UNIT_BYTES))

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        """See :class:`Device`."""
        with self.errors(f"pinning {n_bytes:,} bytes of host memory"):
            array: NDArray[np.uint8] = self.driver.pagelocked_empty(n_bytes, np.uint8)
            return array

    def unpin(self, array: NDArray[np.uint8]) -> None:
        """See :class:`Device`."""
        self.retain_if_lost(array)

    def upload(self, buffer: Buffer, values: NDArray[Any], stream: Stream, offset: int = 0) -> None:
        """See :class:`Device`."""
        if values.nbytes:
            with self.errors("uploading"):
                self.driver.memcpy_htod_async(buffer.address + offset, values, self._streams[stream])

    def download(self, values: NDArray[Any], buffer: Buffer, stream: Stream, offset: int = 0) -> None:
        """See :class:`Device`."""
        with self.errors("finishing kernels and downloading"):
            # A copy to memory that is not pinned would wait with the driver's lock, and then each launch for it.
            self._streams[stream].synchronize()
            if values.nbytes:
                self.driver.memcpy_dtoh_async(values, buffer.address + offset, self._streams[stream])
            self._streams[stream].synchronize()

    def begin_download(self, values: NDArray[Any], buffer: Buffer, stream: Stream) -> None:
        """See :class:`Device`."""
        if values.nbytes:
            with self.errors("downloading"):
                self.driver.memcpy_dtoh_async(values, buffer.address, self._streams[stream])

    def event(self, stream: Stream, *, sleeping: bool = False) -> Event:
        """See :class:`Device`."""
        with self.errors("recording an event"):
            flags = self.driver.event_flags
            event = self.driver.Event(flags.BLOCKING_SYNC if sleeping else flags.DEFAULT)
            event.record(self._streams[stream])
            return _PyCudaEvent(self, event)

    def clear(self, buffer: Buffer, n_bytes: int, stream: Stream) -> None:
        """See :class:`Device`."""
        with self.errors("clearing memory"):
            self.driver.memset_d32_async(buffer.address, 0, n_bytes // 4, self._streams[stream])

    def _function(self, spec: KernelSpec) -> Any:
        function = self._kernels.get(spec)
        if function is None:
            module = self._module(spec)
            with self.errors(f"loading kernel {spec.entry}"):
                function = module.get_function(spec.entry)
                max_shared = self.facts.shared_bytes
                function.set_attribute(self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, max_shared)
            self._modules.append(module)
            self._kernels[spec] = function
        return function

    def _module(self, spec: KernelSpec) -> Any:
        """Load a kernel's code. Code of the package that the driver refuses, as an old driver may, is compiled here."""
        while True:
            code, archive = self.kernel_cache.take(spec)
            with self.errors(f"loading kernel {spec.entry}"):
                try:
                    return self.driver.module_from_buffer(code)
                except self.driver.MemoryError:
                    raise
                except self.driver.Error as error:
                    if archive is None:
                        raise
                    archive.refuse(f"the driver, {self.facts.driver}, does not load them ({error})")

    def prepare(self, spec: KernelSpec) -> None:
        """See :class:`Device`."""
        self._function(spec)

    def launch(self, spec: KernelSpec, grid: int, shared_bytes: int, parameters: np.void, stream: Stream) -> None:
        """See :class:`Device`."""
        function = self._function(spec)
        with self.errors(f"starting kernel {spec.entry}"):
            # A prepared call takes a fifth of the time of an unprepared one, and the device is idle during a call.
            if spec not in self._prepared:
                function.prepare([parameters.dtype])
                self._prepared.add(spec)
            function.prepared_async_call(
                (grid, 1), (spec.threads, 1, 1), self._streams[stream], parameters.tobytes(), shared_size=shared_bytes
            )

    def resident_blocks(self, spec: KernelSpec, shared_bytes: int) -> int:
        """See :class:`Device`."""
        registers = int(self._function(spec).num_regs)
        return fitting_blocks(self._limits, spec.threads, registers, shared_bytes)

    def follow(self, stream: Stream, leader: Stream) -> None:
        """See :class:`Device`."""
        with self.errors("ordering streams"):
            event = self.driver.Event(self.driver.event_flags.DISABLE_TIMING)
            event.record(self._streams[leader])
            self._streams[stream].wait_for_event(event)

    def synchronize(self) -> None:
        """See :class:`Device`."""
        with self.errors("finishing its work"):
            self._context.synchronize()

    def close(self) -> None:
        """See :class:`Device`."""
        if self._open:
            self._open = False
            atexit.unregister(self.close)
            if self.failure is None:
                self._release()
                self._leave_thread()
                self._context.detach()
            else:
                with contextlib.suppress(self.driver.Error):  # the failure was already reported
                    self._context.detach()
                self._release()

    def _leave_thread(self) -> None:
        """Remove the context from the thread's stack, from below those of devices that were opened later."""
        opened = _opened_here()
        if self not in opened:
            return  # the thread that opened the device has ended
        later = opened[opened.index(self) + 1 :]
        for device in reversed([self, *later]):
            device._context.pop()
        opened.remove(self)
        for device in later:
            device._context.push()

    def _release(self) -> None:
        """Destroy the objects of the context, silently where the context is lost."""
        self._kernels.clear()
        self._prepared.clear()
        self._modules.clear()
        self._streams.clear()
        self._abandoned.clear()


# --- whether there is such a device ---


def _unusable(reason: str, *, built: bool = True) -> EngineInfo:
    return EngineInfo("cuda", built=built, usable=False, detail="", reason=reason)


def cuda_info() -> EngineInfo:
    """Compile and load a kernel, and report device, compute capability, free memory, driver and compiler.

    If items are missing, the first of them is named, in the order in which a user would install them: sources, GPU,
    driver, PyCUDA, compiler.
    """
    try:
        resource_folder("cuda")
    except SwSearchError as error:
        return _unusable(str(error), built=False)
    missing = look_for_gpus().missing
    if missing:
        return _unusable(missing)
    try:
        device = PyCudaDevice()
    except EngineError as error:
        return _unusable(error.reason if isinstance(error, EngineUnavailable) else str(error))
    try:
        facts, compiler = device.facts, device.kernel_cache.compiler
        try:
            device.resident_blocks(COLLECT_KERNEL, 0)
        except EngineError as error:
            return _unusable(f"a kernel cannot be compiled and loaded: {error}")
        detail = (
            f"{facts.name}, {compute_capability(facts.architecture)}, "
            f"{device.free_bytes() / 1e9:.1f} of {facts.memory_bytes / 1e9:.1f} GB free, driver {facts.driver}, "
            + (f"{compiler.name} {compiler.version}" if compiler else "no compiler")
        )
        refused = refusals(device.kernel_cache.archives)
        if package_folder() is None:
            refused = ["this package was built without nvcc, so first searches wait for a compiler"]
        return EngineInfo("cuda", built=True, usable=True, detail="; ".join([detail, *refused]))
    finally:
        device.close()

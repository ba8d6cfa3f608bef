"""A device on the host: memory is NumPy arrays, and kernels run under the emulation of ``cuda_emulation.h``.

It replaces a GPU behind the engine's own interface, so that the engine, its launches and the kernels' sources can be
tested completely without a GPU. Kernels are compiled by g++ at their first launch and cached (``tests/compiled.py``).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.compiler import HALF_MAXIMA
from swsearch.engine.cuda.device import Argument, Buffer, Device, DeviceFacts, OutOfDeviceMemory, Stream, Texture
from swsearch.engine.cuda.kernels import KernelSpec
from swsearch.errors import EngineError
from swsearch.resources import resource_folder
from tests.compiled import compiled, compiler_version, digest_of

HERE = Path(__file__).parent
SANITIZE = "SWSEARCH_EMULATION_SANITIZE"
"""Set by the test that runs other tests under the sanitizers, in a process with the sanitizers' library preloaded."""


class HostBuffer:
    def __init__(self, device: EmulatedDevice, n_bytes: int) -> None:
        self._device = device
        # Fill new memory with a value that is a large score in every type, to detect reads of unwritten memory.
        self.array = np.full(n_bytes, 0x5A, dtype=np.uint8)
        self.address = int(self.array.__array_interface__["data"][0])
        assert self.address % 16 == 0
        self.n_bytes = n_bytes
        self._open = True

    def free(self) -> None:
        if self._open:
            self._open = False
            self._device.used_bytes -= self.n_bytes
            self.array = np.empty(0, np.uint8)


class HostTexture:
    def __init__(self, handle: int) -> None:
        self.handle = handle

    def close(self) -> None:
        self.handle = 0


class EmulatedDevice:
    """See :class:`swsearch.engine.cuda.device.Device`.

    Parameters
    ----------
    architecture : int
        Chooses tiles and arithmetic, as on a GPU.
    memory_bytes : int
        Allocations beyond it fail as they do on a GPU.
    sanitize : bool
        Compile with the address and undefined-behaviour sanitizers; the process must have their library preloaded.
    reversed_order : bool
        Run threads from the last to the first.
    multiprocessors : int
    """

    def __init__(
        self,
        *,
        architecture: int = 90,
        memory_bytes: int = 1 << 30,
        sanitize: bool = False,
        reversed_order: bool = False,
        multiprocessors: int = 2,
        shared_bytes: int = 227 * 1024,
    ) -> None:
        self.facts = DeviceFacts(
            name="emulated device",
            driver="none",
            architecture=architecture,
            multiprocessors=multiprocessors,
            shared_bytes=shared_bytes,
            memory_bytes=memory_bytes,
            clock_hz=1e4,
            pci_bus_id="0000:00:00.0",
        )
        self.used_bytes = 0
        self.peak_bytes = 0
        self.launches: list[tuple[str, int]] = []
        self.prepared: list[KernelSpec] = []
        self.launched: list[KernelSpec] = []
        self._sanitize = sanitize
        self._reversed = reversed_order
        self._kernels: dict[KernelSpec, Any] = {}

    def free_bytes(self) -> int:
        return self.facts.memory_bytes - self.used_bytes

    def allocate(self, n_bytes: int) -> Buffer:
        if n_bytes > self.free_bytes():
            raise OutOfDeviceMemory(f"emulated device is out of memory while allocating {n_bytes:,} bytes")
        self.used_bytes += n_bytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return HostBuffer(self, n_bytes)

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        return np.empty(n_bytes, dtype=np.uint8)

    def unpin(self, array: NDArray[np.uint8]) -> None:
        array[:] = 0xA5  # to detect any later read of it

    def upload(self, buffer: Buffer, values: NDArray[Any], stream: Stream, offset: int = 0) -> None:
        assert offset + values.nbytes <= buffer.n_bytes
        ctypes.memmove(buffer.address + offset, values.ctypes.data, values.nbytes)

    def download(self, values: NDArray[Any], buffer: Buffer, stream: Stream, offset: int = 0) -> None:
        assert offset + values.nbytes <= buffer.n_bytes
        ctypes.memmove(values.ctypes.data, buffer.address + offset, values.nbytes)

    def clear(self, buffer: Buffer, n_bytes: int, stream: Stream) -> None:
        assert n_bytes <= buffer.n_bytes
        assert n_bytes % 4 == 0
        ctypes.memset(buffer.address, 0, n_bytes)

    def texture(self, buffer: Buffer) -> Texture:
        return HostTexture(buffer.address)

    def prepare(self, specs: Sequence[KernelSpec]) -> None:
        self.prepared += specs

    def launch(
        self, spec: KernelSpec, grid: int, shared_bytes: int, arguments: Sequence[Argument], stream: Stream
    ) -> None:
        if shared_bytes > self.facts.shared_bytes:
            raise EngineError(f"{spec.entry} asks for {shared_bytes} bytes of shared memory")
        held = [np.array([argument]) for argument in arguments]
        pointers = (ctypes.c_void_p * len(held))(*(array.ctypes.data for array in held))
        self.launches.append((spec.entry, grid))
        self.launched.append(spec)
        status = self._kernel(spec)(
            pointers, ctypes.c_uint(grid), ctypes.c_uint(spec.threads), ctypes.c_ulong(shared_bytes),
            ctypes.c_int(self._reversed),
        )  # fmt: skip
        if status != 0:
            raise EngineError(f"{spec.entry} hangs: threads wait at different barriers")

    def _kernel(self, spec: KernelSpec) -> Any:
        if spec not in self._kernels:
            self._kernels[spec] = ctypes.CDLL(str(self.compile(spec))).emulate
        return self._kernels[spec]

    def compile(self, spec: KernelSpec) -> Path:
        """Return the path of the kernel's shared library."""
        root = resource_folder("cuda")
        optimized = "-O1" if self._sanitize else "-O2"  # with the sanitizers, -O2 gains less than its compilation costs
        options = ["-std=c++17", optimized, "-g1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fPIC"]
        if self._sanitize:
            options += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        # The machine is one library for all kernels, because linking the C++ library takes a third of a kernel's time.
        machine = self._built("machine.so", options, ["-O2", "-shared", str(HERE / "machine.cpp")])
        if self.facts.architecture in HALF_MAXIMA:
            options.append("-DSWS_HALF_MAXIMA")
        options += [*spec.defines, f'-DSWS_ENTRY_FILE="entry/{spec.entry}.cu"', f"-DSWS_ENTRY={spec.function}"]
        folders = [f"-I{root}", f"-I{root / 'include'}", f"-I{HERE}"]
        return self._built(
            f"{spec.entry}.so", options, ["-shared", "-nostdlib", *folders, str(HERE / "entry.cpp"), str(machine)]
        )

    def _built(self, name: str, options: list[str], inputs: list[str]) -> Path:
        """Compile with g++, once for all processes; the digest of the sources is part of the cache key."""

        def build(output: Path) -> None:
            command = ["g++", *options, *inputs, "-o", str(output)]
            environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode != 0:
                raise EngineError(done.stderr)

        parts = [name, *options, compiler_version("g++"), digest_of(resource_folder("cuda"), HERE)]
        return compiled(name, parts, build)

    def resident_blocks(self, spec: KernelSpec, shared_bytes: int) -> int:
        return 1

    def follow(self, stream: Stream, leader: Stream) -> None:
        """Do nothing: every call of this device has ended when it returns."""

    def synchronize(self) -> None:
        """Do nothing: every call of this device has ended when it returns."""

    @contextlib.contextmanager
    def timed(self, stream: Stream, meanwhile: Callable[[], None] | None = None) -> Iterator[list[float]]:
        seconds: list[float] = []
        start = time.perf_counter()
        yield seconds
        if meanwhile is not None:
            meanwhile()
        seconds.append(time.perf_counter() - start)

    def close(self) -> None:
        self._kernels.clear()


class OneAtATime(EmulatedDevice):
    """An emulated device for several threads: the fibers belong to the process, so only one kernel runs at a time."""

    _emulation = threading.Lock()

    def launch(self, *arguments: Any) -> None:
        with self._emulation:
            super().launch(*arguments)


def opener(make: type[EmulatedDevice] = OneAtATime, **options: Any) -> Callable[[int], Device]:
    """Return a function that opens emulated devices, whose kernels run one at a time."""

    def open_device(ordinal: int) -> Device:
        with OneAtATime._emulation:
            return make(**options)

    return open_device

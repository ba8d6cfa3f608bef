"""A device on the host: memory is NumPy arrays, and kernels run under the emulation of ``cuda_emulation.h``.

It replaces a GPU behind the engine's own interface, so that the engine, its launches and the kernels' sources can be
tested completely without a GPU. Kernels are compiled by g++ at their first launch and cached (``tests/compiled.py``).
"""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.runtime.compiler import maxima_options
from swsearch.engine.cuda.runtime.device import Buffer, Device, DeviceFacts, Event, OutOfDeviceMemory, Stream
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.errors import EngineError
from swsearch.folders import resource_folder
from tests.compiled import compiled, compiler_version, digest_of

HERE = Path(__file__).parent
SANITIZE = "SWSEARCH_EMULATION_SANITIZE"
"""Set by the test that runs other tests under the sanitizers, in a process with the sanitizers' library preloaded."""


@cache
def _texts(*names: str) -> tuple[str, ...]:
    return tuple((HERE / name).read_text() for name in names)


@cache
def _load_for_all(library: Path) -> None:
    """Load a library whose functions the libraries that are loaded later can call."""
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


class HostBuffer:
    def __init__(self, device: EmulatedDevice, n_bytes: int) -> None:
        self._device = device
        # Fill new memory with a value that is a large score in every type, to detect reads of unwritten memory.
        self.array = np.full(n_bytes, 0x5A, dtype=np.uint8)
        self.address = int(self.array.__array_interface__["data"][0])
        assert self.address % 16 == 0
        self.n_bytes = n_bytes
        self._open = True

    def texture(self) -> int:
        assert self._open
        return self.address

    def free(self) -> None:
        if self._open:
            self._device.synchronize()  # as a GPU's driver does
            self._open = False
            self._device.used_bytes -= self.n_bytes
            self.array = np.empty(0, np.uint8)


class Operation:
    """A kernel or a copy of a stream, with the operations that must end before it begins."""

    def __init__(self, run: Callable[[], None], after: Sequence[Operation | None]) -> None:
        self.run = run
        self.after = [operation for operation in after if operation is not None and not operation.ended]
        self.ended = False

    @property
    def ready(self) -> bool:
        return all(operation.ended for operation in self.after)


class HostEvent:
    def __init__(self, device: EmulatedDevice, last: Operation | None) -> None:
        self._device = device
        self._last = last

    def wait(self) -> None:
        self._device.wait_for(self._last)

    def seconds_since(self, earlier: Event) -> float:
        assert self._last is None or self._last.ended
        return 1e-6


class EmulatedDevice:
    """See :class:`swsearch.engine.cuda.runtime.device.Device`.

    An operation ends before its call returns, or, with ``shuffle``, at any later time that the order of its stream and
    the calls of ``follow`` permit: when the host waits, pending operations run in random order.

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
    shuffle : int, optional
        Seed of the random order of pending operations.
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
        shuffle: int | None = None,
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
        self._random = None if shuffle is None else random.Random(shuffle)
        self._pending: list[Operation] = []
        self._last: dict[Stream, Operation] = {}
        self._pinned: list[NDArray[np.uint8]] = []

    # --- The order of operations ---

    def _enqueue(self, stream: Stream, run: Callable[[], None], after: Operation | None = None) -> None:
        if self._random is None:
            run()
            return
        operation = Operation(run, [self._last.get(stream), after])
        self._pending.append(operation)
        self._last[stream] = operation

    def wait_for(self, last: Operation | None) -> None:
        """Run pending operations in random order until the given one has ended."""
        while last is not None and not last.ended:
            assert self._random is not None
            operation = self._random.choice([each for each in self._pending if each.ready])
            self._pending.remove(operation)
            operation.run()
            operation.ended = True

    def synchronize(self) -> None:
        for last in self._last.values():
            self.wait_for(last)
        assert not self._pending

    def follow(self, stream: Stream, leader: Stream) -> None:
        self._enqueue(stream, lambda: None, self._last.get(leader))

    def event(self, stream: Stream, *, sleeping: bool = False) -> Event:
        return HostEvent(self, self._last.get(stream))

    # --- Memory ---

    def free_bytes(self) -> int:
        return self.facts.memory_bytes - self.used_bytes

    def allocate(self, n_bytes: int) -> Buffer:
        if n_bytes > self.free_bytes():
            raise OutOfDeviceMemory(f"emulated device is out of memory while allocating {n_bytes:,} bytes")
        self.used_bytes += n_bytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return HostBuffer(self, n_bytes)

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        self._pinned.append(np.full(n_bytes, 0xA5, dtype=np.uint8))
        return self._pinned[-1]

    def unpin(self, array: NDArray[np.uint8]) -> None:
        assert not self._pending
        self._pinned = [block for block in self._pinned if block is not array]
        array[:] = 0xA5  # to detect any later read of it

    def _is_pinned(self, values: NDArray[Any]) -> bool:
        return any(np.shares_memory(values, block) for block in self._pinned)

    def upload(self, buffer: Buffer, values: NDArray[Any], stream: Stream, offset: int = 0) -> None:
        assert offset + values.nbytes <= buffer.n_bytes
        # The driver copies other memory than pinned memory before its call returns.
        source = values if self._random is None or self._is_pinned(values) else values.copy()
        self._enqueue(
            stream, lambda: ctypes.memmove(buffer.address + offset, source.ctypes.data, source.nbytes) and None
        )

    def begin_download(self, values: NDArray[Any], buffer: Buffer, stream: Stream) -> None:
        assert values.nbytes <= buffer.n_bytes
        assert values.nbytes == 0 or self._is_pinned(values)
        self._enqueue(stream, lambda: ctypes.memmove(values.ctypes.data, buffer.address, values.nbytes) and None)

    def download(self, values: NDArray[Any], buffer: Buffer, stream: Stream, offset: int = 0) -> None:
        assert offset + values.nbytes <= buffer.n_bytes
        self.wait_for(self._last.get(stream))
        ctypes.memmove(values.ctypes.data, buffer.address + offset, values.nbytes)

    def clear(self, buffer: Buffer, n_bytes: int, stream: Stream) -> None:
        assert n_bytes <= buffer.n_bytes
        assert n_bytes % 4 == 0
        self._enqueue(stream, lambda: ctypes.memset(buffer.address, 0, n_bytes) and None)

    def prepare(self, spec: KernelSpec) -> None:
        """Do nothing else: a kernel is compiled and loaded at its first launch."""
        self.prepared.append(spec)

    def launch(self, spec: KernelSpec, grid: int, shared_bytes: int, parameters: np.void, stream: Stream) -> None:
        assert grid >= 1
        if shared_bytes > self.facts.shared_bytes:
            raise EngineError(f"{spec.entry} asks for {shared_bytes} bytes of shared memory")
        packed = parameters.tobytes()
        self.launches.append((spec.entry, grid))
        self.launched.append(spec)
        kernel = self._kernel(spec)

        def run() -> None:
            status = kernel(
                packed, ctypes.c_ulong(len(packed)), ctypes.c_uint(grid), ctypes.c_uint(spec.threads),
                ctypes.c_ulong(shared_bytes), ctypes.c_int(self._reversed),
            )  # fmt: skip
            assert status != 2, f"the parameters of {spec.entry} have other sizes than those of its structure"
            if status != 0:
                raise EngineError(f"{spec.entry} hangs: threads wait at different barriers")

        self._enqueue(stream, run)

    def _kernel(self, spec: KernelSpec) -> Any:
        if spec not in self._kernels:
            _load_for_all(self._machine())
            self._kernels[spec] = ctypes.CDLL(str(self.compile(spec))).emulate
        return self._kernels[spec]

    def compile(self, spec: KernelSpec) -> Path:
        """Return the path of the kernel's shared library."""
        root = resource_folder("cuda")
        options = [*self._options(), *maxima_options(self.facts.architecture)]
        options += [*spec.defines, f'-DSWS_ENTRY_FILE="{spec.source}"', f"-DSWS_ENTRY={spec.entry}"]
        sources = [digest_of(root), *_texts("cuda_emulation.h", "entry.cpp")]
        inputs = ["-nostdlib", f"-I{root}", f"-I{HERE}", str(HERE / "entry.cpp")]
        return self._built(f"{spec.entry}.so", options, inputs, sources)

    def compile_host_source(self, name: str) -> Path:
        """Return the path of the shared library of a source of this folder, whose functions the host calls."""
        _load_for_all(self._machine())
        inputs = ["-nostdlib", f"-I{HERE}", str(HERE / name)]
        return self._built(f"{name}.so", self._options(), inputs, list(_texts("cuda_emulation.h", name)))

    def _machine(self) -> Path:
        """Return the path of the machine's shared library, whose functions all kernels call.

        With the C++ library linked to each kernel, a compilation would take half as long again.
        """
        return self._built("machine.so", [*self._options(), "-O2"], [str(HERE / "machine.cpp")], [digest_of(HERE)])

    def _options(self) -> list[str]:
        optimized = "-O1" if self._sanitize else "-O2"  # with the sanitizers, -O2 gains less than its compilation costs
        options = ["-std=c++17", optimized, "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fPIC"]
        options.append("-ffp-contract=off")
        if not self._sanitize:
            return options
        return [*options, "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]  # lines for the reports

    def _built(self, name: str, options: list[str], inputs: list[str], sources: list[str]) -> Path:
        """Compile with g++, once for all processes; the contents of the sources are part of the cache key."""

        def build(output: Path) -> None:
            command = ["g++", *options, "-shared", *inputs, "-o", str(output)]
            environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode != 0:
                raise EngineError(done.stderr)

        return compiled(name, [name, *options, compiler_version("g++"), *sources], build)

    def resident_blocks(self, spec: KernelSpec, shared_bytes: int) -> int:
        return 1

    def close(self) -> None:
        self.synchronize()
        self._kernels.clear()


class OneAtATime(EmulatedDevice):
    """An emulated device for several threads: the fibers belong to the process, so only one kernel runs at a time."""

    _emulation = threading.Lock()

    def launch(self, *arguments: Any) -> None:
        with self._emulation:
            super().launch(*arguments)


MakeDevice = Callable[..., EmulatedDevice]


def opener(make: type[EmulatedDevice] = OneAtATime, **options: Any) -> Callable[[int], Device]:
    """Return a function that opens emulated devices, whose kernels run one at a time."""

    def open_device(ordinal: int) -> Device:
        with OneAtATime._emulation:
            return make(**options)

    return open_device

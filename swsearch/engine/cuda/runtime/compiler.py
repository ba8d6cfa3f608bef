"""The compilers of kernels: each nvcc that is installed, then NVRTC.

The input is a :class:`swsearch.engine.cuda.runtime.kernels.KernelSpec` and an architecture; the output is a cubin.
:class:`Compilers` has the compilers of this machine in the order of preference. One that cannot be used, because it is
too old for the architecture or finds no host compiler, is passed over for the next.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.errors import EngineError, KernelCompileError
from swsearch.folders import resource_folder

HALF_MAXIMA: Final = (*range(80, 90), *range(110, 120))
"""Architectures without 16-bit integer maxima in hardware but with fp16 ones (``arithmetic.cuh``)."""
OLDEST_HALF_MAXIMA: Final = 80
COMPILE_SECONDS: Final = 300

FLAG_VARIABLES: Final = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN")
"""Environment variables that nvcc reads as further options."""


def maxima_options(architecture: int) -> list[str]:
    """The options that choose how the fast type computes maxima (``arithmetic.cuh``); 90 is compute capability 9.0."""
    if architecture < OLDEST_HALF_MAXIMA:
        return ["-DSWS_SATURATED_MAXIMA"]
    return ["-DSWS_HALF_MAXIMA"] if architecture in HALF_MAXIMA else []


def compile_options(spec: KernelSpec, architecture: int, folder: Path, *, virtual: bool = False) -> list[str]:
    """Options that both nvcc and NVRTC accept; ``architecture`` is 90 for compute capability 9.0.

    With ``virtual``, the output is PTX for this architecture and later ones.
    """
    return [
        f"-arch={'compute' if virtual else 'sm'}_{architecture}",
        "-std=c++17",
        f"-I{folder}",
        *maxima_options(architecture),
        *spec.defines,
    ]


class Compiler(Protocol):
    """Turns an entry into machine code; ``flags`` are options from outside this program that may change the code."""

    name: str
    version: str
    flags: str

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        """The cubin and the assembler's report.

        Raises :class:`KernelCompileError`, whose ``log`` is the compiler's output, if the compiler rejects the kernel.
        """
        ...

    def abandon(self) -> None:
        """End all running compilations with their files, and refuse later ones."""
        ...


def source_digest() -> str:
    """SHA-256 of every file under ``cuda/`` that a kernel may include, names and contents, in hexadecimal."""
    digest = hashlib.sha256()
    root = resource_folder("cuda")
    for path in sorted([*root.rglob("*.cuh"), *root.rglob("*.cu")]):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def kernel_key(
    sources: str, spec: KernelSpec, architecture: int, compiler: Compiler | None = None, *, virtual: bool = False
) -> str:
    """SHA-256 of everything that determines the code, in hexadecimal; without a compiler, of all but the compiler.

    ``sources`` is :func:`source_digest`; with ``virtual``, the code is PTX. Specifications that differ only in their
    threads per block share their code and their key.
    """
    parts = [sources, spec.entry, str(architecture)]
    if compiler is not None:
        parts += [compiler.name, compiler.version, compiler.flags]
    parts += compile_options(spec, architecture, Path("."), virtual=virtual)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Nvcc:
    """The toolkit's compiler."""

    name = "nvcc"

    def __init__(self, path: str) -> None:
        self.path = path
        found = re.search(r"V(\d+\.\d+\.\d+)", self._shown("--version"))
        if found is None:
            raise EngineError(f"{path} --version printed no version; repair the installation of the CUDA toolkit")
        self.version = found.group(1)
        self.flags = " ".join(f"{name}={os.environ[name]}" for name in FLAG_VARIABLES if name in os.environ)
        self._changed = threading.Condition()
        self._running: list[subprocess.Popen[str]] = []
        self._n_busy = 0
        self._abandoned = False

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        """See :class:`Compiler`."""
        return self._output(spec, "-cubin", compile_options(spec, architecture, resource_folder("cuda")))

    def compile_ptx(self, spec: KernelSpec, architecture: int) -> bytes:
        """The PTX of a kernel for an architecture and later ones; raises as :meth:`compile`."""
        return self._output(spec, "-ptx", compile_options(spec, architecture, resource_folder("cuda"), virtual=True))[0]

    def architectures(self) -> list[int]:
        """The architectures for which this version compiles."""
        shown = self._shown("--list-gpu-arch")
        return [int(number) for number in re.findall(r"^compute_(\d+)$", shown, re.MULTILINE)]

    def _shown(self, option: str) -> str:
        """What nvcc prints with an option."""
        command = [self.path, option]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = f"{' '.join(command)} fails ({error})"
            raise EngineError(f"{problem}; repair the installation of the CUDA toolkit") from error

    def _output(self, spec: KernelSpec, kind: str, options: Sequence[str]) -> tuple[bytes, str]:
        """The file that nvcc writes, and what it prints."""
        with self._busy(), tempfile.TemporaryDirectory(prefix="swsearch-nvcc-") as scratch:
            output = Path(scratch) / "kernel"
            source = resource_folder("cuda") / spec.source
            command = [self.path, kind, "-Xptxas", "-v", "-o", str(output), *options, str(source)]
            with self._started(command, scratch) as process:
                try:
                    log = "".join(process.communicate(timeout=COMPILE_SECONDS))
                except subprocess.TimeoutExpired as error:
                    raise KernelCompileError(spec.entry, f"{self.path} took more than {COMPILE_SECONDS} s") from error
            if process.returncode != 0:
                raise KernelCompileError(spec.entry, log)
            return output.read_bytes(), log

    @contextlib.contextmanager
    def _busy(self) -> Iterator[None]:
        """Count a compilation, from before its first file to after its last."""
        with self._changed:
            self._n_busy += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_busy -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def _started(self, command: Sequence[str], scratch: str) -> Iterator[subprocess.Popen[str]]:
        """A process of nvcc, which is killed if it has not ended with the block.

        Its own processes form a group with it, and its own temporary files lie in ``scratch``.
        """
        with self._changed:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                env={**os.environ, "TMPDIR": scratch},
            )  # fmt: skip
            self._running.append(process)
            if self._abandoned:
                _kill(process)
        try:
            with process:
                try:
                    yield process
                finally:
                    _kill(process)
        finally:
            with self._changed:
                self._running.remove(process)

    def abandon(self) -> None:
        """See :class:`Compiler`."""
        with self._changed:
            self._abandoned = True
            for process in self._running:
                _kill(process)
            self._changed.wait_for(lambda: self._n_busy == 0)


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process that has not ended, and those that it has started in its group."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


class Nvrtc:
    """The run-time compiler, through cuda-bindings."""

    name = "nvrtc"
    flags = ""

    def __init__(self) -> None:
        from cuda.bindings import nvrtc

        self._nvrtc = nvrtc
        status, major, minor = nvrtc.nvrtcVersion()
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise EngineError(f"NVRTC does not answer ({status}); install nvidia-cuda-nvrtc")
        self.version = f"{major}.{minor}"

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        """See :class:`Compiler`."""
        nvrtc = self._nvrtc
        folder = resource_folder("cuda")
        source = (folder / spec.source).read_bytes()
        status, program = nvrtc.nvrtcCreateProgram(source, spec.entry.encode(), 0, [], [])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise EngineError(f"NVRTC cannot begin a program ({status})")
        try:
            options = [option.encode() for option in compile_options(spec, architecture, folder)]
            options.append(b"--ptxas-options=-v")
            (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
            log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
            nvrtc.nvrtcGetProgramLog(program, log)
            text = log.rstrip(b"\0 ").decode("utf-8", "replace")
            if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
                raise KernelCompileError(spec.entry, text or str(status))
            code = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
            nvrtc.nvrtcGetCUBIN(program, code)
            return code, text
        finally:
            nvrtc.nvrtcDestroyProgram(program)

    def abandon(self) -> None:
        """Do nothing: the library cannot be interrupted, but writes no files and takes a tenth of a second a kernel."""


def find_nvcc() -> list[str]:
    """The paths of every nvcc: on ``PATH``, under ``CUDA_HOME`` and ``CUDA_PATH``, and in ``/usr/local/cuda``."""
    folders = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    candidates = [shutil.which("nvcc"), *(os.path.join(folder, "bin", "nvcc") for folder in folders)]
    candidates.append("/usr/local/cuda/bin/nvcc")
    found: dict[str, str] = {}
    for path in candidates:
        if path and os.access(path, os.X_OK):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


class Compilers:
    """The compilers of this machine, the preferred one first; may be shared by threads.

    A compiler is opened when it is its turn, which takes the time of a process or of the loading of a library. An
    opener raises EngineError, or ImportError, RuntimeError or OSError if the compiler is not installed. ``passed_over``
    has one line for each compiler that is installed but could not be used.
    """

    def __init__(self, openers: Sequence[Callable[[], Compiler]]) -> None:
        self._waiting = list(openers)
        self._lock = threading.Lock()
        self._abandoned = False
        self.passed_over: list[str] = []
        self._current: Compiler | None = None

    @classmethod
    def installed(cls) -> Compilers:
        """Every nvcc that is installed, then NVRTC."""
        return cls([*(partial(Nvcc, path) for path in find_nvcc()), Nvrtc])

    @property
    def current(self) -> Compiler | None:
        """The compiler to use; None if there is none."""
        with self._lock:
            if self._current is None:
                self._current = self._next()
            return self._current

    def _next(self) -> Compiler | None:
        while self._waiting:
            opener = self._waiting.pop(0)
            try:
                return opener()
            except EngineError as error:
                self.passed_over.append(str(error))
            except (ImportError, RuntimeError, OSError):  # cuda-bindings or the library it opens is missing
                continue
        return None

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[Compiler, bytes]:
        """The cubin by the first compiler that does not fail, which is used from then on; and this compiler.

        If all fail, the :class:`KernelCompileError` of the first is raised.
        """
        first: KernelCompileError | None = None
        compiler = self.current
        while compiler is not None:
            try:
                return compiler, compiler.compile(spec, architecture)[0]
            except KernelCompileError as error:
                if self._abandoned:
                    raise
                first = first or error
                compiler = self._after(compiler, error)
        assert first is not None
        raise first

    def abandon(self) -> None:
        """End all running compilations, and refuse later ones; nothing of them is stored or left."""
        with self._lock:
            self._abandoned, running = True, self._current
        if running is not None:
            running.abandon()

    def _after(self, failed: Compiler, error: KernelCompileError) -> Compiler | None:
        """The compiler to use after this one has failed; None if it was the last."""
        with self._lock:
            if self._current is failed and (following := self._next()) is not None:
                reason = f"{failed.name} {failed.version} is passed over for {following.name}: {error.reason}"
                self.passed_over.append(reason)
                logging.getLogger("swsearch").warning("swsearch: %s", reason)
                self._current = following
            return None if self._current is failed else self._current

"""The compilers of kernels: each nvcc that is installed, then NVRTC.

The input is a :class:`swsearch.engine.cuda.runtime.kernels.KernelSpec` and an architecture; the output is a cubin.
:class:`Compilers` has the compilers of this machine in the order of preference. One that cannot be used, because it is
too old for the architecture or finds no host compiler, is passed over for the next.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.errors import EngineError, KernelCompileError
from swsearch.resources import resource_folder

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


def compile_options(spec: KernelSpec, architecture: int, folder: Path) -> list[str]:
    """Options that both nvcc and NVRTC accept; ``architecture`` is 90 for compute capability 9.0."""
    return [
        f"-arch=sm_{architecture}",
        "-std=c++17",
        f"-I{folder}",
        *maxima_options(architecture),
        *spec.defines,
    ]


class Compiler(Protocol):
    """Turns an entry into machine code.

    Attributes
    ----------
    name, version : str
    flags : str
        Options from outside this program that may change the code.
    """

    name: str
    version: str
    flags: str

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        """The cubin and the assembler's report.

        Raises
        ------
        KernelCompileError
            The compiler rejects the kernel; ``log`` is the compiler's output.
        """
        ...


class Nvcc:
    """The toolkit's compiler."""

    name = "nvcc"

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            shown = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineError(f"{path} --version fails ({error}); mend the CUDA toolkit's installation") from error
        found = re.search(r"V(\d+\.\d+\.\d+)", shown)
        if found is None:
            raise EngineError(f"{path} --version printed no version; mend the CUDA toolkit's installation")
        self.version = found.group(1)
        self.flags = " ".join(f"{name}={os.environ[name]}" for name in FLAG_VARIABLES if name in os.environ)

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        """See :class:`Compiler`."""
        folder = resource_folder("cuda")
        with tempfile.TemporaryDirectory(prefix="swsearch-nvcc-") as scratch:
            output = Path(scratch) / "kernel.cubin"
            command = [self.path, "-cubin", "-Xptxas", "-v", "-o", str(output)]
            command += [*compile_options(spec, architecture, folder), str(folder / spec.source)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
            except subprocess.TimeoutExpired as error:
                raise KernelCompileError(spec.entry, f"{self.path} took more than {COMPILE_SECONDS} s") from error
            log = done.stdout + done.stderr
            if done.returncode != 0:
                raise KernelCompileError(spec.entry, log)
            return output.read_bytes(), log


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


def _opened(compiler: Compiler) -> Compiler:
    return compiler


class Compilers:
    """The compilers of this machine, the preferred one first; may be shared by threads.

    A compiler is opened when it is its turn, which takes the time of a process or of the loading of a library.

    Parameters
    ----------
    openers : sequence of callables
        Each opens a compiler, or raises EngineError, or ImportError, RuntimeError or OSError if it is not installed.

    Attributes
    ----------
    passed_over : list of str
        What failed, and why: one line per compiler that was installed but could not be used.
    """

    def __init__(self, openers: Sequence[Callable[[], Compiler]]) -> None:
        self._waiting = list(openers)
        self._lock = threading.Lock()
        self.passed_over: list[str] = []
        self.current = self._next()
        """The compiler to use; None if there is none."""

    @classmethod
    def of(cls, *compilers: Compiler) -> Compilers:
        """These compilers, the preferred one first."""
        return cls([partial(_opened, compiler) for compiler in compilers])

    @classmethod
    def installed(cls) -> Compilers:
        """Every nvcc that is installed, then NVRTC."""
        return cls([*(partial(Nvcc, path) for path in find_nvcc()), Nvrtc])

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

        Raises
        ------
        KernelCompileError
            All compilers fail; the error is that of the first.
        """
        first: KernelCompileError | None = None
        compiler = self.current
        while compiler is not None:
            try:
                return compiler, compiler.compile(spec, architecture)[0]
            except KernelCompileError as error:
                first = first or error
                compiler = self._after(compiler, error)
        assert first is not None
        raise first

    def _after(self, failed: Compiler, error: KernelCompileError) -> Compiler | None:
        """The compiler to use after this one has failed; None if it was the last."""
        with self._lock:
            if self.current is failed and (following := self._next()) is not None:
                reason = f"{failed.name} {failed.version} is passed over for {following.name}: {error.reason}"
                self.passed_over.append(reason)
                logging.getLogger("swsearch").warning("swsearch: %s", reason)
                self.current = following
            return None if self.current is failed else self.current

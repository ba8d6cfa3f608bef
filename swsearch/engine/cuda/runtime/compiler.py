"""What determines the code of a kernel, and the compiler that generates it where the package does not contain it.

The input is a :class:`swsearch.engine.cuda.runtime.kernels.KernelSpec` and an architecture; the output is a cubin. The
kernels of the package are compiled with nvcc while it is built (``scripts/build_kernels.py``), from the same options.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from swsearch.engine.cuda.runtime.kernels import KernelSpec, compute_capability
from swsearch.errors import EngineError, KernelCompileError
from swsearch.folders import resource_folder

HALF_MAXIMA: Final = (*range(80, 90), *range(110, 120))
"""Architectures without 16-bit integer maxima in hardware but with fp16 ones (``arithmetic.cuh``)."""
OLDEST_HALF_MAXIMA: Final = 80


def maxima_options(architecture: int) -> list[str]:
    """The options that choose how the fast type computes maxima (``arithmetic.cuh``); 90 is compute capability 9.0."""
    if architecture < OLDEST_HALF_MAXIMA:
        return ["-DSWS_SATURATED_MAXIMA"]
    return ["-DSWS_HALF_MAXIMA"] if architecture in HALF_MAXIMA else []


def compile_options(spec: KernelSpec, architecture: int, folder: Path) -> list[str]:
    """Options that both nvcc and NVRTC accept; ``architecture`` is 90 for compute capability 9.0."""
    return [f"-arch=sm_{architecture}", "-std=c++17", f"-I{folder}", *maxima_options(architecture), *spec.defines]


@cache
def source_digest() -> str:
    """SHA-256 of every file under ``cuda/`` that a kernel may include, names and contents, in hexadecimal."""
    digest = hashlib.sha256()
    root = resource_folder("cuda")
    for path in sorted([*root.rglob("*.cuh"), *root.rglob("*.cu")]):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def kernel_key(spec: KernelSpec, architecture: int, compiler: str = "") -> str:
    """SHA-256 of everything that determines the code, in hexadecimal; without a compiler, of all but the compiler.

    Specifications that differ only in their threads per block share their code and their key.
    """
    parts = [source_digest(), spec.entry, str(architecture), compiler, *compile_options(spec, architecture, Path("."))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Compiler(Protocol):
    """Generates the machine code of a kernel."""

    name: str
    version: str

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        """The cubin and the assembler's report.

        Raises :class:`KernelCompileError`, whose ``log`` is the compiler's output, if the compiler rejects the kernel.
        """
        ...


class Nvrtc:
    """The run-time compiler, through cuda-bindings; a kernel takes 0.1 to 0.2 s.

    Raises ImportError, RuntimeError or OSError if cuda-bindings or the library that it loads is not installed.
    """

    name = "nvrtc"

    def __init__(self) -> None:
        from cuda.bindings import nvrtc

        self._nvrtc = nvrtc
        status, major, minor = nvrtc.nvrtcVersion()
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise OSError(f"NVRTC does not answer ({status})")
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
            if status == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
                reason = f"NVRTC {self.version} is older than {compute_capability(architecture)}"
                raise KernelCompileError(spec.entry, f"{reason}; install a newer nvidia-cuda-nvrtc\n{text}")
            if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
                raise KernelCompileError(spec.entry, text or str(status))
            code = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
            nvrtc.nvrtcGetCUBIN(program, code)
            return code, text
        finally:
            nvrtc.nvrtcDestroyProgram(program)


def installed_nvrtc() -> Nvrtc | None:
    """The run-time compiler, or None if it is not installed."""
    try:
        return Nvrtc()
    except (ImportError, RuntimeError, OSError):
        return None

"""Compiles kernels at run time, with nvcc or else NVRTC, and caches the compiled kernels on disk.

The input is a :class:`swsearch.engine.cuda.runtime.kernels.KernelSpec` and an architecture; the output is a cubin.

The key of a cached kernel is the SHA-256 of everything that determines its code: every file under ``cuda/``, the entry
and its constants, the architecture, and the compiler's name and version. Files are written under a temporary name and
renamed, so several processes may share the cache; the threads of one process do not compile a kernel twice. The cache
is the folder ``$SWSEARCH_KERNEL_CACHE`` if that variable is set, otherwise ``swsearch/kernels`` under
``$XDG_CACHE_HOME`` or ``~/.cache``; it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Final, Protocol

from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.errors import EngineError, KernelCompileError
from swsearch.resources import resource_folder, user_cache

HALF_MAXIMA: Final = range(80, 90)
"""Architectures without 16-bit integer maxima in hardware but with fp16 ones (``arithmetic.cuh``)."""
COMPILE_SECONDS: Final = 300

_COMPILING: Final[dict[Path, threading.Lock]] = {}
"""One lock per cached file that this process has compiled, because several devices may need the same kernel."""


def compile_options(spec: KernelSpec, architecture: int, folder: Path) -> list[str]:
    """Options that both nvcc and NVRTC accept; ``architecture`` is 90 for compute capability 9.0."""
    half = ["-DSWS_HALF_MAXIMA"] if architecture in HALF_MAXIMA else []
    return [
        f"-arch=sm_{architecture}",
        "-std=c++17",
        f"-I{folder}",
        *half,
        *spec.defines,
    ]


class Compiler(Protocol):
    """Turns an entry into machine code."""

    name: str
    version: str

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
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
        found = re.search(r"V(\d+\.\d+\.\d+)", shown)
        if found is None:
            raise EngineError(f"{path} --version printed no version; mend the CUDA toolkit's installation")
        self.version = found.group(1)

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


def find_nvcc() -> str | None:
    """The path of nvcc: on ``PATH``, under ``CUDA_HOME`` or ``CUDA_PATH``, or in ``/usr/local/cuda``."""
    folders = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    candidates = [shutil.which("nvcc"), *(os.path.join(folder, "bin", "nvcc") for folder in folders)]
    candidates.append("/usr/local/cuda/bin/nvcc")
    return next((path for path in candidates if path and os.access(path, os.X_OK)), None)


def find_compiler() -> Compiler | None:
    """The compiler to use: nvcc if it is installed, else NVRTC, else None."""
    path = find_nvcc()
    if path is not None:
        return Nvcc(path)
    try:
        return Nvrtc()
    except (ImportError, RuntimeError, OSError):  # cuda-bindings or the library it opens is missing
        return None


def cache_folder() -> Path:
    """The folder of the cache of compiled kernels (see above)."""
    chosen = os.environ.get("SWSEARCH_KERNEL_CACHE")
    if chosen:
        return Path(os.path.expanduser(chosen))
    return user_cache("kernels")


class KernelCache:
    """Compiled kernels on disk, each compiled when it is first requested.

    A folder that cannot be written is no error: each process then compiles its kernels again.
    """

    def __init__(self, compiler: Compiler, folder: Path | None = None) -> None:
        self.compiler = compiler
        self.folder = cache_folder() if folder is None else folder
        self._sources: str | None = None

    def _source_digest(self) -> str:
        if self._sources is None:
            digest = hashlib.sha256()
            root = resource_folder("cuda")
            for path in sorted([*root.rglob("*.cuh"), *root.rglob("*.cu")]):
                digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
                digest.update(path.read_bytes())
            self._sources = digest.hexdigest()
        return self._sources

    def key(self, spec: KernelSpec, architecture: int) -> str:
        """SHA-256 of everything that determines the code, in hexadecimal."""
        parts = [self._source_digest(), spec.entry, str(architecture), self.compiler.name, self.compiler.version]
        parts += compile_options(spec, architecture, Path("."))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def path(self, spec: KernelSpec, architecture: int) -> Path:
        """The file of a kernel, whether or not it exists yet."""
        return self.folder / f"{spec.entry}-sm{architecture}-{self.key(spec, architecture)[:32]}.cubin"

    def load(self, spec: KernelSpec, architecture: int) -> bytes:
        """The cubin, from disk or from the compiler. Several threads may call this concurrently.

        Raises
        ------
        KernelCompileError
            The compiler rejects the kernel.
        """
        path = self.path(spec, architecture)
        with contextlib.suppress(OSError):
            return path.read_bytes()
        with _COMPILING.setdefault(path, threading.Lock()):
            with contextlib.suppress(OSError):  # the previous holder of the lock has compiled it
                return path.read_bytes()
            code, _ = self.compiler.compile(spec, architecture)
            with contextlib.suppress(OSError):
                self.folder.mkdir(parents=True, exist_ok=True)
                handle, name = tempfile.mkstemp(dir=self.folder, prefix=path.name)
                with os.fdopen(handle, "wb") as file:
                    file.write(code)
                os.replace(name, path)
            return code

"""Compiles the kernels that the package contains, with nvcc; no GPU is needed.

    python scripts/build_kernels.py [--out cubins] [--nvcc NVCC] [--jobs N] [--architectures all|machine|80 90]

Writes an archive per architecture (``swsearch/engine/cuda/runtime/compiled_kernels.py``). The build of a wheel runs
this script if there is an nvcc; a checkout finds the archives in its folder ``cubins``, the default. Architectures that
this nvcc does not know are left out, with a line that says so. With ``--if-possible`` a compiler that fails is no
error: the package is then built without kernels, and a line says so. The script needs no package but the standard
library.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from swsearch.engine.cuda.runtime.compiled_kernels import write_archive  # noqa: E402
from swsearch.engine.cuda.runtime.compiler import compile_options  # noqa: E402
from swsearch.engine.cuda.runtime.kernels import KernelSpec  # noqa: E402
from swsearch.engine.cuda.search.tiles import package_kernels  # noqa: E402
from swsearch.errors import EngineError, KernelCompileError  # noqa: E402
from swsearch.folders import resource_folder  # noqa: E402

ARCHITECTURES = (75, 80, 86, 90, 100, 120)
"""Architectures with machine code of their own; 8.9 runs that of 8.6, 10.3 that of 10.0, and 12.1 that of 12.0."""


def find_nvcc() -> str | None:
    """The path of the first nvcc on ``PATH``, under ``CUDA_HOME`` or ``CUDA_PATH``, or in ``/usr/local/cuda``."""
    folders = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    return shutil.which("nvcc") or shutil.which("nvcc", path=os.pathsep.join(f"{each}/bin" for each in folders if each))


class Nvcc:
    """The compiler of the CUDA toolkit at ``path``; raises :class:`EngineError` if it does not work."""

    name = "nvcc"

    def __init__(self, path: str) -> None:
        self.path = path
        found = re.search(r"V(\d+\.\d+\.\d+)", self._run("--version").stdout)
        if found is None:
            raise EngineError(f"{path} --version printed no version; repair the installation of the CUDA toolkit")
        self.version = found.group(1)

    def architectures(self) -> list[int]:
        """The architectures for which this version compiles."""
        shown = self._run("--list-gpu-arch").stdout
        return [int(number) for number in re.findall(r"^compute_(\d+)$", shown, re.MULTILINE)]

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        """See :class:`swsearch.engine.cuda.runtime.compiler.Compiler`."""
        folder = resource_folder("cuda")
        with tempfile.TemporaryDirectory(prefix="swsearch-nvcc-") as scratch:
            output = Path(scratch) / "kernel.cubin"
            options = compile_options(spec, architecture, folder)
            done = self._run("-cubin", "-Xptxas", "-v", "-o", str(output), *options, str(folder / spec.source))
            if done.returncode != 0:
                raise KernelCompileError(spec.entry, done.stdout + done.stderr)
            return output.read_bytes(), done.stdout + done.stderr

    def _run(self, *options: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run([self.path, *options], capture_output=True, text=True, check=False)
        except OSError as error:
            problem = f"{self.path} {options[0]} fails ({error})"
            raise EngineError(f"{problem}; repair the installation of the CUDA toolkit") from error


def build(nvcc: Nvcc, architecture: int, folder: Path, pool: ThreadPoolExecutor) -> Path:
    """Compile the machine code for one architecture."""
    specs = package_kernels(architecture)
    codes = pool.map(lambda spec: nvcc.compile(spec, architecture)[0], specs)
    kernels = list(zip(specs, codes, strict=True))
    path = write_archive(folder, architecture, kernels, f"{nvcc.name} {nvcc.version}")
    print(f"{path.name}: {len(specs)} kernels, {path.stat().st_size:,} bytes", flush=True)
    return path


def of_this_machine() -> list[int]:
    """The architectures of the GPUs of this machine; raises :class:`EngineError` if it has none."""
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        return sorted({int(float(line) * 10 + 0.5) for line in shown.splitlines()})
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EngineError("there is no GPU here") from error


def chosen_architectures(chosen: list[str]) -> list[int]:
    """The architectures that the option names."""
    if chosen == ["all"]:
        return list(ARCHITECTURES)
    if chosen == ["machine"]:
        return of_this_machine()
    try:
        return [int(each) for each in chosen]
    except ValueError as error:
        raise EngineError(f"--architectures {' '.join(chosen)}: choose all, machine, or numbers such as 90") from error


def build_all(path: str, folder: Path, chosen: list[str], n_jobs: int) -> None:
    """Compile for the chosen architectures that nvcc knows, into a folder that has either all archives or none."""
    nvcc = Nvcc(path)
    known = nvcc.architectures()
    wanted = chosen_architectures(chosen)
    left_out = [architecture for architecture in wanted if architecture not in known]
    if len(left_out) == len(wanted):
        raise EngineError(f"{path} {nvcc.version} knows none of the architectures {list(wanted)}; install a newer one")
    if left_out:
        print(f"{path} {nvcc.version} does not know these architectures, which are left out: {left_out}")
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    began = time.perf_counter()
    try:
        with ThreadPoolExecutor(n_jobs) as pool:
            written = [build(nvcc, each, unfinished, pool) for each in wanted if each in known]
        n_bytes = sum(path.stat().st_size for path in written)
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    print(f"{folder}: {n_bytes:,} bytes in {time.perf_counter() - began:.0f} s")


def main() -> int:
    """Build the archives; the exit status is 1 if there are none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "cubins", help="the folder, whose archives are replaced")
    parser.add_argument("--nvcc", help="the compiler, by default the first that is found")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--architectures", nargs="+", default=["all"],
        help="all, by default; machine for those of this machine's GPUs; or numbers, such as 90 for 9.0",
    )  # fmt: skip
    parser.add_argument("--if-possible", action="store_true")
    options = parser.parse_args()
    nvcc = options.nvcc or find_nvcc()
    try:
        if nvcc is None:
            raise EngineError("there is no nvcc; install the CUDA toolkit, or name one with --nvcc")
        build_all(nvcc, options.out, options.architectures, options.jobs)
    except EngineError as error:
        print(f"no kernels are built: {error}", file=sys.stderr)
        return 0 if options.if_possible else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The compilers: what determines a kernel's code, and errors of the real ones.

The expected values are written by hand.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.build_kernels import Nvcc, find_nvcc
from swsearch.engine.cuda.runtime import compiler as compiler_module
from swsearch.engine.cuda.runtime.compiler import (
    Compiler,
    Nvrtc,
    compile_options,
    installed_nvrtc,
    kernel_key,
    maxima_options,
    source_digest,
)
from swsearch.engine.cuda.runtime.kernels import (
    COLLECT_KERNEL,
    Arithmetic,
    BoundaryMode,
    KernelSpec,
    Pairing,
    Tile,
    intra_task_kernel,
)
from swsearch.engine.cuda.search.tiles import shape_kernel, tiles
from swsearch.errors import EngineError, KernelCompileError


def a_list_kernel(words: int) -> KernelSpec:
    return intra_task_kernel(Arithmetic.SHORT, Tile(Pairing.TWO_BLOCKS, 32, words), None, edges=BoundaryMode.NONE)


def test_the_key_has_all_that_changes_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {kernel_key(a_list_kernel(4), 90, compiler) for compiler in ("", "nvrtc 13.0", "nvrtc 13.1")}
    keys |= {kernel_key(a_list_kernel(8), 90), kernel_key(a_list_kernel(4), 86), kernel_key(COLLECT_KERNEL, 90)}
    monkeypatch.setattr(compiler_module, "source_digest", lambda: "others")
    keys.add(kernel_key(a_list_kernel(4), 90))
    assert len(keys) == 7


def test_a_changed_source_has_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cuh").write_text("1")
    monkeypatch.setattr(compiler_module, "resource_folder", lambda name: tmp_path)
    before = source_digest.__wrapped__()
    (tmp_path / "a.cuh").write_text("2")
    assert source_digest.__wrapped__() != before


def test_half_precision_maxima_are_for_architectures_without_integer_maxima() -> None:
    """Source: docs/design/cuda-engine.md, instructions for two cells."""

    def half(architecture: int) -> bool:
        return "-DSWS_HALF_MAXIMA" in compile_options(COLLECT_KERNEL, architecture, Path("cuda"))

    with_half = [arch for arch in (75, 80, 86, 89, 90, 100, 103, 110, 120, 121) if half(arch)]
    assert with_half == [80, 86, 89, 110]
    assert maxima_options(75) == ["-DSWS_SATURATED_MAXIMA"]


def installed_nvcc() -> Nvcc:
    path = find_nvcc()
    assert path is not None
    return Nvcc(path)


@pytest.mark.parametrize(
    "open_compiler",
    [
        pytest.param(installed_nvcc, marks=pytest.mark.peer("nvcc")),
        pytest.param(Nvrtc, marks=pytest.mark.peer("NVRTC")),
    ],
)
def test_a_compiler_generates_machine_code_or_says_why_not(open_compiler: Callable[[], Compiler]) -> None:
    """The kernels are some of those of a search."""
    compiler = open_compiler()
    pair = shape_kernel(tiles(90, Pairing.TWO_QUERIES)[0], None, BoundaryMode.OWN)
    for spec in (COLLECT_KERNEL, a_list_kernel(4), pair):
        code, report = compiler.compile(spec, 90)
        assert code[:4] == b"\x7fELF"
        assert "registers" in report
    with pytest.raises(KernelCompileError, match="kernel intra_task does not compile") as caught:
        compiler.compile(a_list_kernel(0), 90)
    assert "a tile has words" in caught.value.log


@pytest.mark.peer("NVRTC")
def test_a_compiler_that_is_older_than_the_device_is_to_be_replaced() -> None:
    with pytest.raises(KernelCompileError, match=r"capability 99\.0; install a newer nvidia-cuda-nvrtc") as caught:
        Nvrtc().compile(COLLECT_KERNEL, 990)
    assert "-arch" in caught.value.log


def played_nvcc(path: Path, says: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return str(path)


def test_an_nvcc_without_a_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="printed no version"):
        Nvcc(played_nvcc(tmp_path / "nvcc", "nonsense"))


def test_an_nvcc_on_path_comes_before_that_of_a_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path, of_toolkit = (played_nvcc(tmp_path / name / "bin" / "nvcc", "") for name in ("a", "b"))
    monkeypatch.setenv("PATH", str(tmp_path / "a" / "bin"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "b"))
    assert find_nvcc() == on_path
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_nvcc() == of_toolkit


def test_without_cuda_bindings_there_is_no_run_time_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert installed_nvrtc() is None

"""The kernel compiler's cache, with a simulated compiler, and errors of the real compiler where it is installed.

The expected values are written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swsearch.engine.cuda.runtime import compiler as compiler_module
from swsearch.engine.cuda.runtime.compiler import (
    KernelCache,
    Nvcc,
    cache_folder,
    compile_options,
    find_compiler,
    find_nvcc,
)
from swsearch.engine.cuda.runtime.kernels import (
    COLLECT_KERNEL,
    Arithmetic,
    KernelSpec,
    Pairing,
    Tile,
    intra_task_kernel,
)
from swsearch.errors import EngineError, KernelCompileError
from swsearch.scoring.gap import GapPenalty


class PlayedCompiler:
    name = "played"

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.compiled: list[tuple[str, int]] = []

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        self.compiled.append((spec.entry, architecture))
        return f"{spec.entry} {architecture} {len(self.compiled)}".encode(), ""


def a_list_kernel(words: int) -> KernelSpec:
    tile = Tile(Pairing.ROW_BLOCKS, 32, words, 28)
    return intra_task_kernel(Arithmetic.SHORT, tile, GapPenalty(11, 1), strips=1, texture=True, warps=2)


def test_a_kernel_is_compiled_once_and_again_for_what_changes_it(tmp_path: Path) -> None:
    played = PlayedCompiler()
    cache = KernelCache(played, tmp_path)
    first = cache.load(a_list_kernel(4), 90)
    assert KernelCache(played, tmp_path).load(a_list_kernel(4), 90) == first
    assert len(played.compiled) == 1
    cache.load(a_list_kernel(8), 90)
    cache.load(a_list_kernel(4), 86)
    assert len(played.compiled) == 3
    assert cache.key(a_list_kernel(4), 90) != KernelCache(PlayedCompiler("2"), tmp_path).key(a_list_kernel(4), 90)


def test_a_changed_source_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cuh").write_text("1")
    monkeypatch.setattr(compiler_module, "resource_folder", lambda name: tmp_path)
    before = KernelCache(PlayedCompiler(), tmp_path).key(COLLECT_KERNEL, 90)
    (tmp_path / "a.cuh").write_text("2")
    assert KernelCache(PlayedCompiler(), tmp_path).key(COLLECT_KERNEL, 90) != before


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    played = PlayedCompiler()
    cache = KernelCache(played, blocked / "folder")
    assert cache.load(COLLECT_KERNEL, 90)
    assert cache.load(COLLECT_KERNEL, 90)
    assert len(played.compiled) == 2


def test_the_cache_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWSEARCH_KERNEL_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("SWSEARCH_KERNEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/swsearch/kernels")


def test_half_precision_maxima_are_for_ampere_and_ada() -> None:
    def half(architecture: int) -> bool:
        return "-DSWS_HALF_MAXIMA" in compile_options(COLLECT_KERNEL, architecture, Path("cuda"))

    assert [half(architecture) for architecture in (75, 80, 86, 89, 90, 120)] == [False, True, True, True, False, False]


def test_a_rejected_kernel_keeps_the_compilers_words() -> None:
    path = find_nvcc()
    if path is None:
        pytest.skip("nvcc is not installed")
    with pytest.raises(KernelCompileError, match="kernel intra_task does not compile") as caught:
        Nvcc(path).compile(a_list_kernel(0), 90)
    assert "a tile has words" in caught.value.log


def test_an_nvcc_without_a_version_is_named(tmp_path: Path) -> None:
    fake = tmp_path / "nvcc"
    fake.write_text("#!/bin/sh\necho nonsense\n")
    fake.chmod(0o755)
    with pytest.raises(EngineError, match="printed no version"):
        Nvcc(str(fake))


def test_without_any_compiler_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_module, "find_nvcc", lambda: None)
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert find_compiler() is None

"""The compilers: what determines a kernel's code, which compiler is used, and errors of the real one.

The expected values are written by hand.
"""

import sys
import threading
from pathlib import Path

import pytest

from swsearch.engine.cuda.runtime import compiler as compiler_module
from swsearch.engine.cuda.runtime.compiler import (
    FLAG_VARIABLES,
    Compiler,
    Compilers,
    Nvcc,
    compile_options,
    find_nvcc,
    kernel_key,
    maxima_options,
    source_digest,
)
from swsearch.engine.cuda.runtime.kernel_cache import KernelCache
from swsearch.engine.cuda.runtime.kernels import (
    COLLECT_KERNEL,
    Arithmetic,
    BoundaryMode,
    KernelSpec,
    Pairing,
    Tile,
    intra_task_kernel,
)
from swsearch.errors import EngineError, KernelCompileError
from tests.engine.cuda.runtime.test_kernel_cache import PlayedCompiler, compilers_of


def a_list_kernel(words: int) -> KernelSpec:
    return intra_task_kernel(Arithmetic.SHORT, Tile(Pairing.TWO_BLOCKS, 32, words), None, edges=BoundaryMode.NONE)


def test_the_key_has_all_that_changes_the_code() -> None:
    compilers = [PlayedCompiler(), PlayedCompiler(version="2"), PlayedCompiler(flags="-G"), PlayedCompiler(name="x")]
    keys = {kernel_key("sources", a_list_kernel(4), 90, compiler) for compiler in (*compilers, None)}
    assert len(keys) == 5
    assert kernel_key("others", a_list_kernel(4), 90) not in keys


def test_a_changed_source_has_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cuh").write_text("1")
    monkeypatch.setattr(compiler_module, "resource_folder", lambda name: tmp_path)
    before = source_digest()
    (tmp_path / "a.cuh").write_text("2")
    assert source_digest() != before


def test_half_precision_maxima_are_for_architectures_without_integer_maxima() -> None:
    """Source: docs/design/cuda-engine.md, instructions for two cells."""

    def half(architecture: int) -> bool:
        return "-DSWS_HALF_MAXIMA" in compile_options(COLLECT_KERNEL, architecture, Path("cuda"))

    with_half = [arch for arch in (75, 80, 86, 89, 90, 100, 103, 110, 120, 121) if half(arch)]
    assert with_half == [80, 86, 89, 110]
    assert maxima_options(75) == ["-DSWS_SATURATED_MAXIMA"]


@pytest.mark.peer("nvcc")
def test_a_rejected_kernel_keeps_the_compilers_words() -> None:
    path = find_nvcc()[0]
    with pytest.raises(KernelCompileError, match="kernel intra_task does not compile") as caught:
        Nvcc(path).compile(a_list_kernel(0), 90)
    assert "a tile has words" in caught.value.log


def played_nvcc(path: Path, says: str) -> str:
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return str(path)


def test_an_nvcc_without_a_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="printed no version"):
        Nvcc(played_nvcc(tmp_path / "nvcc", "nonsense"))


def test_without_any_compiler_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_module, "find_nvcc", list)
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert Compilers.installed().current is None


# --- Compilers that fail ---


def test_a_compiler_that_fails_is_passed_over_with_its_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As an nvcc without a host compiler does. The kernel is stored under the key of the compiler that made it."""
    broken = PlayedCompiler(name="nvcc", refuses="\nnvcc fatal: no host compiler\nmore")
    working = PlayedCompiler(name="nvrtc")
    compilers = compilers_of(broken, working)
    cache = KernelCache(compilers, 90, [], tmp_path)
    code = cache.take(a_list_kernel(4))
    cache.take(a_list_kernel(8))
    assert len(broken.compiled) == 1  # not asked again
    assert len(working.compiled) == 2
    assert compilers.current is working
    assert compilers.passed_over == ["nvcc 1 is passed over for nvrtc: nvcc fatal: no host compiler"]
    assert caplog.messages == [f"swsearch: {compilers.passed_over[0]}"]
    assert KernelCache(compilers_of(working), 90, [], tmp_path).take(a_list_kernel(4)) == code
    assert len(working.compiled) == 2  # it was found on disk


def test_a_kernel_that_all_compilers_reject_has_the_words_of_the_first(tmp_path: Path) -> None:
    compilers = compilers_of(PlayedCompiler(refuses="too many words"), PlayedCompiler(refuses="no"))
    with pytest.raises(KernelCompileError, match="too many words"):
        KernelCache(compilers, 90, [], tmp_path).take(COLLECT_KERNEL)
    assert not list(tmp_path.iterdir())


def test_a_compiler_that_cannot_be_opened_is_passed_over() -> None:
    def outdated() -> Compiler:
        raise EngineError("nvcc is broken")

    def absent() -> Compiler:
        raise ImportError

    working = PlayedCompiler()
    compilers = Compilers([outdated, absent, lambda: working])
    assert compilers.current is working
    assert compilers.passed_over == ["nvcc is broken"]


def test_threads_whose_compiler_fails_at_once_all_use_the_next(tmp_path: Path) -> None:
    meeting = threading.Barrier(3)

    class Broken(PlayedCompiler):
        def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
            meeting.wait(60)
            raise KernelCompileError(spec.entry, "broken")

    compilers = compilers_of(Broken(), PlayedCompiler(name="second"), PlayedCompiler(name="third"))
    builds = KernelCache(compilers, 90, [], tmp_path, n_threads=3)
    specs = [a_list_kernel(words) for words in (2, 4, 8)]
    builds.begin(specs)
    codes = [builds.take(spec) for spec in specs]
    builds.close()
    assert [code.split()[0] for code in codes] == [b"intra_task"] * 3
    assert compilers.current is not None
    assert compilers.current.name == "second"


def test_every_nvcc_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One on PATH, another under CUDA_HOME; CUDA_PATH is a link to the first."""
    for name in ("a", "b"):
        (tmp_path / name / "bin").mkdir(parents=True)
        played_nvcc(tmp_path / name / "bin" / "nvcc", "")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    monkeypatch.setenv("PATH", str(tmp_path / "a" / "bin"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "b"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "link"))
    here = [path for path in find_nvcc() if path.startswith(str(tmp_path))]
    assert here == [str(tmp_path / name / "bin" / "nvcc") for name in ("a", "b")]


def test_options_that_nvcc_takes_from_the_environment_change_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = played_nvcc(tmp_path / "nvcc", "V13.0.88")
    for name in FLAG_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    plain = Nvcc(path)
    assert (plain.version, plain.flags) == ("13.0.88", "")
    keys = {kernel_key("", COLLECT_KERNEL, 90, plain)}
    for name in FLAG_VARIABLES:
        monkeypatch.setenv(name, "-lineinfo")
        keys.add(kernel_key("", COLLECT_KERNEL, 90, Nvcc(path)))
    assert len(keys) == 1 + len(FLAG_VARIABLES)

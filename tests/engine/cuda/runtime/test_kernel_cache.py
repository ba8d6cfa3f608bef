"""The cache of kernels, with a simulated compiler that records what it compiles.

The expected results are written by hand.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from swsearch.engine.cuda.history.wavefront import WAVEFRONT_KERNEL
from swsearch.engine.cuda.runtime.compiled_kernels import Archive, KernelCache, cache_folder
from swsearch.engine.cuda.runtime.kernels import COLLECT_KERNEL, COUNT_KERNEL, KernelSpec
from swsearch.errors import EngineError, KernelCompileError
from tests.processes import paused


class PlayedCompiler:
    """Return the kernel's name as its code."""

    name = "played"

    def __init__(self, version: str = "1", refuses: str = "") -> None:
        self.version, self._refuses = version, refuses
        self.compiled: list[str] = []

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        self.compiled.append(spec.entry)
        if self._refuses:
            raise KernelCompileError(spec.entry, self._refuses)
        return code_of(spec), ""


def cache_of(
    folder: Path, compiler: PlayedCompiler | None, architecture: int = 90, archives: Sequence[Archive] = ()
) -> KernelCache:
    return KernelCache(architecture, archives, folder, lambda: compiler)


def code_of(spec: KernelSpec) -> bytes:
    return spec.entry.encode()


def test_a_kernel_is_compiled_once_and_again_for_what_changes_it(tmp_path: Path) -> None:
    played = PlayedCompiler()

    def take(spec: KernelSpec, architecture: int) -> bytes:
        return cache_of(tmp_path, played, architecture).take(spec)[0]

    assert take(COUNT_KERNEL, 90) == take(COUNT_KERNEL, 90) == code_of(COUNT_KERNEL)
    assert played.compiled == ["count_scores"]
    take(WAVEFRONT_KERNEL, 90)
    take(COUNT_KERNEL, 86)
    assert played.compiled == ["count_scores", "wavefront", "count_scores"]
    newer = PlayedCompiler("2")
    cache_of(tmp_path, newer).take(COUNT_KERNEL)
    assert newer.compiled == ["count_scores"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    played = PlayedCompiler()
    cache = cache_of(blocked / "folder", played)
    assert cache.take(COLLECT_KERNEL) == cache.take(COLLECT_KERNEL) == (code_of(COLLECT_KERNEL), None)
    assert len(played.compiled) == 2


def test_the_cache_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWSEARCH_KERNEL_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("SWSEARCH_KERNEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/swsearch/kernels")


def test_a_rejected_kernel_has_the_words_of_the_compiler_and_is_not_stored(tmp_path: Path) -> None:
    cache = cache_of(tmp_path, PlayedCompiler(refuses="line 7: no such word"))
    for _ in range(2):
        with pytest.raises(KernelCompileError, match="kernel count_scores does not compile: line 7: no such word"):
            cache.take(COUNT_KERNEL)
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_the_remedy_is_named(tmp_path: Path) -> None:
    wanted = r"no kernels for compute capability 12\.1; pip install 'swsearch\[cuda\]' nvidia-cuda-nvrtc mends that"
    with pytest.raises(EngineError, match=wanted):
        cache_of(tmp_path, None, 121).take(WAVEFRONT_KERNEL)


PROCESS = """
from pathlib import Path
from swsearch.engine.cuda.runtime.compiled_kernels import KernelCache
from swsearch.engine.cuda.runtime.kernels import COLLECT_KERNEL, COUNT_KERNEL

class Large:
    name, version = "large", "1"
    def compile(self, spec, architecture):
        return spec.entry.encode() * 200_000, ""

folder = Path(sys.argv[1])
pause()
for _ in range(100):
    cache = KernelCache(90, [], folder, Large)
    for spec in (COLLECT_KERNEL, COUNT_KERNEL):
        assert cache.take(spec) == (spec.entry.encode() * 200_000, None)
    for file in folder.glob("*.cubin"):  # so that the next round writes again, while others read
        file.unlink(missing_ok=True)
"""


def test_processes_that_compile_the_same_kernels_never_read_half_a_file(tmp_path: Path) -> None:
    """Three processes write, read and delete the same files; each read must return the complete kernel."""
    children = [paused(PROCESS, tmp_path) for _ in range(3)]
    outcomes = [child.communicate("\n") for child in children]
    assert [(child.returncode, errors) for child, (_, errors) in zip(children, outcomes, strict=True)] == [(0, "")] * 3

"""The cache of kernels and their concurrent compilation, with a simulated compiler that records when it runs.

The expected order and results are written by hand.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from swsearch.engine.cuda.history.wavefront import WAVEFRONT_KERNEL
from swsearch.engine.cuda.runtime.compiler import Compiler, Compilers
from swsearch.engine.cuda.runtime.kernel_cache import KernelCache, cache_folder
from swsearch.engine.cuda.runtime.kernels import COLLECT_KERNEL, COUNT_KERNEL, KernelSpec
from swsearch.errors import KernelCompileError
from tests.patience import LIMIT_SECONDS
from tests.processes import paused

SPECS = (COLLECT_KERNEL, COUNT_KERNEL, WAVEFRONT_KERNEL)


class PlayedCompiler:
    """Return the kernel's name as its code; ``before`` is called first."""

    def __init__(
        self, before: Callable[[KernelSpec], object] | None = None, name: str = "played", version: str = "1",
        flags: str = "", refuses: str | None = None,
    ) -> None:  # fmt: skip
        self.name, self.version, self.flags = name, version, flags
        self._before, self._refuses = before, refuses
        self.compiled: list[str] = []

    def compile(self, spec: KernelSpec, architecture: int) -> tuple[bytes, str]:
        self.compiled.append(spec.entry)
        if self._before is not None:
            self._before(spec)
        if self._refuses is not None:
            raise KernelCompileError(spec.entry, self._refuses)
        return code_of(spec), ""

    def abandon(self) -> None:
        """Nothing runs that could be ended."""


def compilers_of(*compilers: Compiler) -> Compilers:
    """Return these compilers, the preferred one first."""
    return Compilers([partial(lambda compiler: compiler, compiler) for compiler in compilers])


def code_of(spec: KernelSpec) -> bytes:
    return spec.entry.encode()


def test_a_kernel_is_compiled_once_and_again_for_what_changes_it(tmp_path: Path) -> None:
    played = PlayedCompiler()

    def take(spec: KernelSpec, architecture: int) -> bytes:
        return KernelCache(compilers_of(played), architecture, [], tmp_path).take(spec)

    assert take(COUNT_KERNEL, 90) == take(COUNT_KERNEL, 90) == code_of(COUNT_KERNEL)
    assert played.compiled == ["count_scores"]
    take(WAVEFRONT_KERNEL, 90)
    take(COUNT_KERNEL, 86)
    assert played.compiled == ["count_scores", "wavefront", "count_scores"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    played = PlayedCompiler()
    cache = KernelCache(compilers_of(played), 90, [], blocked / "folder")
    assert cache.take(COLLECT_KERNEL) == cache.take(COLLECT_KERNEL) == code_of(COLLECT_KERNEL)
    assert len(played.compiled) == 2


def test_the_cache_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWSEARCH_KERNEL_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("SWSEARCH_KERNEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/swsearch/kernels")


def test_kernels_are_compiled_at_the_same_time(tmp_path: Path) -> None:
    """Each compilation waits until all three have begun; a sequential implementation would wait forever."""
    meeting = threading.Barrier(3)
    compiler = PlayedCompiler(lambda spec: meeting.wait(LIMIT_SECONDS))
    builds = KernelCache(compilers_of(compiler), 90, [], tmp_path, n_threads=3)
    builds.begin(SPECS)
    assert [builds.take(spec) for spec in SPECS] == [code_of(spec) for spec in SPECS]
    assert sorted(compiler.compiled) == sorted(spec.entry for spec in SPECS)
    builds.close()


def test_no_more_than_the_cores_and_in_the_order_given(tmp_path: Path) -> None:
    """With one core no two compilations overlap, and the order of compilation is the order given."""
    at_work = threading.Lock()
    crowded: list[str] = []

    def look(spec: KernelSpec) -> None:
        if not at_work.acquire(blocking=False):
            crowded.append(spec.entry)
            return
        time.sleep(0.01)
        at_work.release()

    compiler = PlayedCompiler(look)
    builds = KernelCache(compilers_of(compiler), 90, [], tmp_path, n_threads=1)
    builds.begin([*SPECS, SPECS[0]])
    assert [builds.take(spec) for spec in reversed(SPECS)] == [code_of(spec) for spec in reversed(SPECS)]
    assert compiler.compiled == [spec.entry for spec in SPECS]
    assert crowded == []
    builds.close()


def test_kernels_that_are_there_are_not_compiled_and_others_need_not_be_begun(tmp_path: Path) -> None:
    compiler = PlayedCompiler()
    KernelCache(compilers_of(compiler), 90, [], tmp_path).take(COLLECT_KERNEL)
    builds = KernelCache(compilers_of(compiler), 90, [], tmp_path)
    builds.begin([COLLECT_KERNEL])
    assert builds.take(COLLECT_KERNEL) == code_of(COLLECT_KERNEL)
    assert compiler.compiled == [COLLECT_KERNEL.entry]
    assert builds.take(COUNT_KERNEL) == code_of(COUNT_KERNEL)
    assert compiler.compiled == [COLLECT_KERNEL.entry, COUNT_KERNEL.entry]
    builds.close()


def test_a_rejected_kernel_is_told_to_who_takes_it_and_to_nobody_else(tmp_path: Path) -> None:
    def reject(spec: KernelSpec) -> None:
        if spec is COUNT_KERNEL:
            raise KernelCompileError(spec.entry, "line 7: no such word")

    builds = KernelCache(compilers_of(PlayedCompiler(reject)), 90, [], tmp_path)
    builds.begin(SPECS)
    assert builds.take(COLLECT_KERNEL) == code_of(COLLECT_KERNEL)
    for _ in range(2):
        with pytest.raises(KernelCompileError, match="kernel count_scores does not compile: line 7: no such word"):
            builds.take(COUNT_KERNEL)
    assert builds.take(WAVEFRONT_KERNEL) == code_of(WAVEFRONT_KERNEL)
    builds.close()


def test_what_waits_for_a_core_is_given_up_at_the_end(tmp_path: Path) -> None:
    """The first compilation ends after the device is closed; the others never begin."""
    began, may_end = threading.Event(), threading.Event()
    workers: list[threading.Thread] = []

    def hold(spec: KernelSpec) -> None:
        workers.append(threading.current_thread())
        began.set()
        assert may_end.wait(LIMIT_SECONDS)

    compiler = PlayedCompiler(hold)
    builds = KernelCache(compilers_of(compiler), 90, [], tmp_path, n_threads=1)
    builds.begin(SPECS)
    assert began.wait(LIMIT_SECONDS)
    builds.close()
    may_end.set()
    workers[0].join()
    assert compiler.compiled == [SPECS[0].entry]


def test_devices_that_need_the_same_kernel_compile_it_once(tmp_path: Path) -> None:
    compiler = PlayedCompiler()
    devices = [KernelCache(compilers_of(compiler), 90, [], tmp_path) for _ in range(4)]
    together = threading.Barrier(len(devices))

    def one_device(builds: KernelCache) -> list[bytes]:
        together.wait(LIMIT_SECONDS)
        builds.begin(SPECS)
        return [builds.take(spec) for spec in SPECS]

    with ThreadPoolExecutor(len(devices)) as threads:
        found = list(threads.map(one_device, devices))
    assert found == [[code_of(spec) for spec in SPECS]] * len(devices)
    assert sorted(compiler.compiled) == sorted(spec.entry for spec in SPECS)
    for builds in devices:
        builds.close()


PROCESS = """
from pathlib import Path
from swsearch.engine.cuda.runtime.compiler import Compilers
from swsearch.engine.cuda.runtime.kernel_cache import KernelCache
from swsearch.engine.cuda.runtime.kernels import COLLECT_KERNEL, COUNT_KERNEL

class Large:
    name, version, flags = "large", "1", ""
    def compile(self, spec, architecture):
        return spec.entry.encode() * 200_000, ""
    def abandon(self):
        pass

folder = Path(sys.argv[1])
pause()
for _ in range(100):
    builds = KernelCache(Compilers([Large]), 90, [], folder)
    builds.begin([COLLECT_KERNEL, COUNT_KERNEL])
    for spec in (COLLECT_KERNEL, COUNT_KERNEL):
        assert builds.take(spec) == spec.entry.encode() * 200_000
    builds.close()
    for file in folder.glob("*.cubin"):  # so that the next round writes again, while others read
        file.unlink(missing_ok=True)
"""


def test_processes_that_compile_the_same_kernels_never_read_half_a_file(tmp_path: Path) -> None:
    """Three processes write, read and delete the same files; each read must return the complete kernel."""
    children = [paused(PROCESS, tmp_path) for _ in range(3)]
    outcomes = [child.communicate("\n") for child in children]
    assert [(child.returncode, errors) for child, (_, errors) in zip(children, outcomes, strict=True)] == [(0, "")] * 3


@pytest.mark.thorough
@pytest.mark.peer("a compiler of CUDA")
def test_the_compiler_makes_side_by_side_what_it_makes_alone(tmp_path: Path) -> None:
    """Source: the same compiler, with one kernel after another."""
    compiler = Compilers.installed().current
    assert compiler is not None
    builds = KernelCache(compilers_of(compiler), 90, [], tmp_path, n_threads=3)
    builds.begin(SPECS)
    for spec in SPECS:
        code = builds.take(spec)
        assert code[:4] == b"\x7fELF"
        assert code == compiler.compile(spec, 90)[0]
    builds.close()

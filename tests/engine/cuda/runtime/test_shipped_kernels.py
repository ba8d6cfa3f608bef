"""The archives of compiled kernels: what is found, what is refused and why, and what happens without a compiler.

The code of most archives is text, because no GPU loads it here; one archive is compiled with the real nvcc.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from swsearch.engine.cuda.history.wavefront import WAVEFRONT_KERNEL
from swsearch.engine.cuda.runtime import compiler as compiler_module
from swsearch.engine.cuda.runtime.compiler import Compilers, Nvcc, find_nvcc
from swsearch.engine.cuda.runtime.kernel_cache import KernelCache
from swsearch.engine.cuda.runtime.kernels import (
    COLLECT_KERNEL,
    COUNT_KERNEL,
    Arithmetic,
    BoundaryMode,
    KernelSpec,
    Pairing,
    Tile,
    intra_task_kernel,
)
from swsearch.engine.cuda.runtime.shipped_kernels import (
    MANIFEST,
    Archive,
    archive_name,
    package_archives,
    refusals,
    write_archive,
)
from swsearch.engine.cuda.search.tiles import package_kernels
from swsearch.errors import EngineError, KernelCompileError
from swsearch.folders import resource_folder
from tests.compiled import ROOT, compiled, digest_of, unpack
from tests.engine.cuda.runtime.test_kernel_cache import PlayedCompiler, code_of, compilers_of
from tests.patience import LIMIT_SECONDS, wait_until

LISTED = intra_task_kernel(Arithmetic.FAST, Tile(Pairing.TWO_BLOCKS, 32, 4), None, edges=BoundaryMode.OWN)
KERNELS = (LISTED, COLLECT_KERNEL)


def archive(folder: Path, architecture: int, *, virtual: bool = False, code: bytes = b"") -> Path:
    """Write an archive whose code names its file, or is ``code``."""
    made_for = f"{'compute' if virtual else 'sm'}{architecture}".encode()
    kernels = [(spec, code or made_for + b" " + spec.entry.encode()) for spec in KERNELS]
    return write_archive(folder, architecture, kernels, virtual=virtual, compiler="played 1")


def builds_of(folder: Path, cache: Path, architecture: int, *compilers: PlayedCompiler) -> KernelCache:
    return KernelCache(compilers_of(*compilers), architecture, package_archives(architecture, folder), cache, 1)


def read(archives: Sequence[Archive], spec: KernelSpec, *, virtual: bool = True) -> bytes | None:
    """Return the code of a kernel from the first archive that has it undamaged."""
    suitable = (each for each in archives if each.has(spec) and (virtual or not each.virtual))
    return next((code for each in suitable if (code := each.read(spec)) is not None), None)


def refuse(builds: KernelCache, spec: KernelSpec) -> None:
    """Refuse the archive of a kernel as a device does."""
    refused = builds.archive_of(spec)
    assert refused is not None
    refused.refuse("the driver does not load them")


@pytest.mark.parametrize(
    ("architecture", "with_compiler", "without"),
    [
        (75, "sm75", "sm75"),
        (80, "sm80", "sm80"),
        (86, "sm86", "sm86"),
        (87, "sm86", "sm86"),
        (89, "sm86", "sm86"),
        (90, "sm90", "sm90"),
        (100, None, "compute80"),
        (110, None, "compute80"),
        (120, "sm120", "sm120"),
        (121, "sm120", "sm120"),
    ],
)
def test_a_device_takes_machine_code_of_its_major_number_or_ptx(
    tmp_path: Path, architecture: int, with_compiler: str | None, without: str
) -> None:
    """PTX, which the driver compiles, is of use only where there is no compiler."""
    for made_for in (75, 80, 86, 90, 120):
        archive(tmp_path, made_for)
    archive(tmp_path, 80, virtual=True)
    shipped = package_archives(architecture, tmp_path)
    found = read(shipped, LISTED, virtual=False)
    assert (found and found.split()[0].decode()) == with_compiler
    found = read(shipped, LISTED)
    assert found is not None
    assert found.split()[0].decode() == without
    assert found.endswith(b"\0") == without.startswith("compute")
    assert read(shipped, COUNT_KERNEL) is None
    assert refusals(shipped) == []


def test_shipped_kernels_are_ready_at_once_and_never_compiled(tmp_path: Path) -> None:
    """No compiler is even looked for, because that delays a search."""
    archive(tmp_path, 90)
    opened: list[PlayedCompiler] = []
    compilers = Compilers([lambda: opened.append(PlayedCompiler()) or opened[0]])
    builds = KernelCache(compilers, 90, package_archives(90, tmp_path), tmp_path / "cache", 1)
    builds.begin(KERNELS)
    assert all(builds.is_ready(spec) for spec in KERNELS)
    assert builds.take(LISTED) == b"sm90 intra_task"
    assert opened == []
    assert not builds.is_ready(COUNT_KERNEL)
    builds.begin([*KERNELS, COUNT_KERNEL])
    assert builds.take(COUNT_KERNEL) == code_of(COUNT_KERNEL)
    assert builds.is_ready(COUNT_KERNEL)
    builds.close()
    assert opened[0].compiled == ["count_scores"]


def test_without_a_compiler_only_shipped_kernels_are_ready(tmp_path: Path) -> None:
    archive(tmp_path, 90)
    builds = builds_of(tmp_path, tmp_path / "cache", 90)
    builds.begin([LISTED, WAVEFRONT_KERNEL])
    assert builds.is_ready(LISTED)
    assert builds.take(LISTED) == b"sm90 intra_task"
    assert not builds.is_ready(WAVEFRONT_KERNEL)
    with pytest.raises(EngineError, match=r"there is no compiler for kernel wavefront; install the CUDA toolkit"):
        builds.take(WAVEFRONT_KERNEL)
    builds.close()


def test_ptx_is_ready_only_without_a_compiler(tmp_path: Path) -> None:
    archive(tmp_path, 80, virtual=True)
    compiler = PlayedCompiler()
    assert not builds_of(tmp_path, tmp_path / "cache", 110, compiler).is_ready(LISTED)
    assert builds_of(tmp_path, tmp_path / "cache", 110).is_ready(LISTED)


def test_a_package_without_archives_has_no_kernels(tmp_path: Path) -> None:
    assert not any(each.has(LISTED) for each in package_archives(90, tmp_path))
    assert read(package_archives(90, tmp_path / "absent"), LISTED) is None


def test_a_compiler_that_fails_is_told_where_its_kernel_is_taken(tmp_path: Path) -> None:
    def reject(spec: KernelSpec) -> None:
        raise KernelCompileError(spec.entry, "no host compiler")

    archive(tmp_path, 90)
    builds = builds_of(tmp_path, tmp_path / "cache", 90, PlayedCompiler(reject))
    builds.begin([COUNT_KERNEL])
    with pytest.raises(KernelCompileError, match="kernel count_scores does not compile: no host compiler"):
        builds.take(COUNT_KERNEL)
    assert not builds.is_ready(COUNT_KERNEL)
    assert builds.take(LISTED) == b"sm90 intra_task"
    builds.close()


# --- Archives that are refused ---


def test_an_archive_of_other_sources_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive is written, then a source is changed by one character."""
    sources = tmp_path / "cuda"
    shutil.copytree(ROOT / "cuda", sources)
    monkeypatch.setattr(compiler_module, "resource_folder", lambda name: sources)
    path = archive(tmp_path, 90)
    assert package_archives(90, tmp_path)[0].has(LISTED)
    with (sources / "search" / "strip.cuh").open("a") as file:
        file.write("\n")
    shipped = package_archives(90, tmp_path)
    assert not any(each.has(LISTED) for each in shipped)
    assert read(shipped, LISTED) is None
    assert refusals(shipped) == [
        f"the kernels in {path} are refused: it was made from other sources; run scripts/build_kernels.py again"
    ]
    builds = builds_of(tmp_path, tmp_path / "cache", 90)
    assert not builds.is_ready(LISTED)
    with pytest.raises(EngineError, match=r"no compiler for kernel intra_task; .* made from other sources"):
        builds.take(LISTED)


def test_a_damaged_archive_is_refused_wherever_the_damage_is(tmp_path: Path) -> None:
    """Every 61st byte in turn is changed; the code is either the right one or refused, and nothing else is raised."""
    code = b"code of a kernel " * 40
    path = archive(tmp_path, 90, code=code)
    whole = path.read_bytes()
    n_refused = 0
    for place in range(0, len(whole), 61):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        shipped = package_archives(90, tmp_path)
        for spec in KERNELS:
            assert read(shipped, spec) in (code, None)
        n_refused += bool(refusals(shipped))
        assert all(
            f"{path} are refused: it is damaged" in line or "other sources" in line for line in refusals(shipped)
        )
    assert n_refused > 0
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        shipped = package_archives(90, tmp_path)
        assert read(shipped, LISTED) is None
        assert len(refusals(shipped)) == 1
        assert "is damaged" in refusals(shipped)[0]
        assert "install swsearch again" in refusals(shipped)[0]


@pytest.mark.parametrize("manifest", ["[]", "{}", "3", "no JSON"])
def test_an_archive_with_another_manifest_is_refused(tmp_path: Path, manifest: str) -> None:
    with zipfile.ZipFile(tmp_path / archive_name(90, virtual=False), "w") as made:
        made.writestr(MANIFEST, manifest)
    shipped = package_archives(90, tmp_path)
    assert read(shipped, LISTED) is None
    (refusal,) = refusals(shipped)
    assert "is damaged" in refusal


def test_damage_in_a_kernel_is_found_when_it_is_read_and_the_kernel_compiled(tmp_path: Path) -> None:
    path = archive(tmp_path, 90, code=b"0123456789" * 1000)
    with zipfile.ZipFile(path) as opened:
        entry = opened.infolist()[1]
        place = entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    builds = builds_of(tmp_path, tmp_path / "cache", 90, PlayedCompiler())
    assert builds.is_ready(LISTED)  # its contents have not been read
    assert builds.take(LISTED) == code_of(LISTED)
    assert builds.take(COLLECT_KERNEL) == code_of(COLLECT_KERNEL)  # nothing of a damaged archive is used
    builds.close()


def test_a_driver_that_refuses_machine_code_gets_another_archive_or_the_compiler(tmp_path: Path) -> None:
    archive(tmp_path, 86)
    archive(tmp_path, 80)
    builds = builds_of(tmp_path, tmp_path / "cache", 89, PlayedCompiler())
    assert builds.take(LISTED) == b"sm86 intra_task"
    refuse(builds, LISTED)
    assert builds.take(LISTED) == b"sm80 intra_task"
    refuse(builds, LISTED)
    assert not builds.is_ready(LISTED)
    assert builds.take(LISTED) == code_of(LISTED)
    builds.close()


def test_an_archive_that_cannot_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    path = archive(tmp_path, 90)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_archive(tmp_path, 90, [(LISTED, None)], virtual=False, compiler="")  # type: ignore[list-item]
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# --- The script ---


def built_by_the_script(nvcc: Nvcc, out: Path) -> str:
    """Fill a folder as the script does with the real nvcc, for one architecture; return what the script prints.

    The archive and the text are cached (``tests/compiled.py``) under all that determines them: the sources of the
    kernels, the script, the modules that choose the kernels, and nvcc.
    """
    script = ROOT / "scripts" / "build_kernels.py"
    modules = [path for name in ("engine", "scoring") for path in (ROOT / "swsearch" / name).rglob("*.py")]
    texts = [path.read_text() for path in [script, *sorted(modules)]]

    def write(path: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="swsearch-cubins-") as folder:
            made = Path(folder) / "cubins"
            command = [sys.executable, "-I", str(script), "--out", str(made), "--architectures", "75", "--jobs", "2"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            with tarfile.open(path, "w") as kept:
                kept.add(made, "cubins")
                (Path(folder) / "printed").write_text(done.stdout)
                kept.add(Path(folder) / "printed", "printed")

    parts = [digest_of(resource_folder("cuda")), nvcc.name, nvcc.version, *texts]
    unpack(compiled("cubins-sm75.tar", parts, write), out)
    return (out / "printed").read_text()


@pytest.mark.thorough
@pytest.mark.peer("nvcc")
def test_the_script_builds_archives_that_are_found(tmp_path: Path) -> None:
    """With the real nvcc, for one architecture: every kernel is there, and is machine code."""
    nvcc = Nvcc(find_nvcc()[0])
    assert f"sm75.zip: {len(package_kernels(75))} kernels" in built_by_the_script(nvcc, tmp_path)
    out = tmp_path / "cubins"
    shipped = package_archives(75, out)
    codes = [read(shipped, spec, virtual=False) for spec in package_kernels(75)]
    assert all(code is not None and code[:4] == b"\x7fELF" for code in codes)
    assert sum(path.stat().st_size for path in out.iterdir()) < 3_000_000
    with zipfile.ZipFile(out / "sm75.zip") as opened:
        manifest = json.loads(opened.read(MANIFEST))
    assert manifest["compiler"] == f"nvcc {nvcc.version}"


def test_the_script_says_that_it_builds_nothing(tmp_path: Path) -> None:
    """Without an nvcc, or with one that fails, and without a package beside the standard library (``-S``), as where a
    wheel is built; the old archives are kept. The build of a wheel goes on."""
    script = str(ROOT / "scripts" / "build_kernels.py")
    failing = tmp_path / "nvcc"
    failing.write_text(
        "#!/bin/sh\n"
        'case "$*" in --version) echo V13.0.1;; --list*) echo compute_90;; *) echo no host compiler >&2; exit 1; esac\n'
    )
    failing.chmod(0o755)
    kept = archive(tmp_path, 90)
    for nvcc, reason in ((tmp_path / "absent", "absent --version fails"), (failing, "no host compiler")):
        command = [sys.executable, "-I", "-S", script, "--nvcc", str(nvcc), "--out", str(tmp_path / "out")]
        command += ["--architectures", "90"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "no kernels are built: " in done.stderr
        assert reason in done.stderr
        assert "Traceback" not in done.stderr
        assert subprocess.run([*command, "--if-possible"], capture_output=True, check=False).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([kept.name, "nvcc"])


# --- The end of a process while its compilers run ---

SLOW_NVCC = """#!/bin/sh
case "$*" in --version) echo V13.0.1; exit;; esac
sleep 1000 &
echo $$ $! "$TMPDIR" > {told}
touch "$TMPDIR/half-a-kernel"
wait
"""

PROCESS = """
import os, sys, time
from pathlib import Path
from swsearch.engine.cuda.runtime.compiler import Compilers, Nvcc
from swsearch.engine.cuda.runtime.kernel_cache import KernelCache
from swsearch.engine.cuda.runtime.kernels import COLLECT_KERNEL, COUNT_KERNEL

nvcc, told, cache = sys.argv[1:]
builds = KernelCache(Compilers([lambda: Nvcc(nvcc)]), 90, [], Path(cache), 1)
builds.begin([COLLECT_KERNEL, COUNT_KERNEL])
while not (Path(told).exists() and Path(told).read_text().endswith("\\n")):
    time.sleep(0.01)
builds.close()
os._exit(0)  # as the command ends
"""


def is_running(pid: int) -> bool:
    """Return whether a process exists that has not ended; its parent may not have asked for its status yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_process_that_ends_leaves_no_compiler_and_no_file(tmp_path: Path) -> None:
    """The compiler would take a quarter of an hour, and has a process of its own."""
    nvcc, told, cache, scratch = (tmp_path / name for name in ("nvcc", "told", "cache", "scratch"))
    nvcc.write_text(SLOW_NVCC.format(told=told))
    nvcc.chmod(0o755)
    scratch.mkdir()
    command = [sys.executable, "-c", PROCESS, str(nvcc), str(told), str(cache)]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, folder = told.read_text().split()
    assert Path(folder).parent == scratch
    wait_until(lambda: not is_running(int(first)) and not is_running(int(second)), "the end of the compiler")
    assert list(scratch.iterdir()) == []
    assert not cache.exists()

"""The archives of compiled kernels: what is found, what is refused and why, and what happens without a compiler.

The code of most archives is text, because no GPU loads it here; one archive is compiled with the real nvcc.
"""

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.build_kernels import Nvcc, find_nvcc
from swsearch.engine.cuda.runtime import compiled_kernels
from swsearch.engine.cuda.runtime import compiler as compiler_module
from swsearch.engine.cuda.runtime.compiled_kernels import (
    MANIFEST,
    Archive,
    KernelCache,
    package_archives,
    refusals,
    write_archive,
)
from swsearch.engine.cuda.runtime.compiler import source_digest
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
from swsearch.engine.cuda.search.tiles import package_kernels
from swsearch.errors import EngineError
from swsearch.folders import resource_folder
from tests.compiled import ROOT, compiled, digest_of, unpack
from tests.engine.cuda.runtime.test_kernel_cache import PlayedCompiler, cache_of, code_of

LISTED = intra_task_kernel(Arithmetic.FAST, Tile(Pairing.TWO_BLOCKS, 32, 4), None, edges=BoundaryMode.OWN)
KERNELS = (LISTED, COLLECT_KERNEL)


def archive(folder: Path, architecture: int, *, code: bytes = b"") -> Path:
    """Write an archive whose code names its file, or is ``code``."""
    kernels = [(spec, code or f"sm{architecture} {spec.entry}".encode()) for spec in KERNELS]
    return write_archive(folder, architecture, kernels, "played 1")


def cache_of_package(folder: Path, architecture: int, compiler: PlayedCompiler | None = None) -> KernelCache:
    """Return the cache of a device whose package has the archives of ``folder``."""
    return cache_of(folder / "cache", compiler, architecture, package_archives(architecture, folder))


def read(archives: Sequence[Archive], spec: KernelSpec) -> bytes | None:
    """Return the code of a kernel from the first archive that has it undamaged."""
    return next((code for each in archives if (code := each.read(spec)) is not None), None)


def refuse(cache: KernelCache, spec: KernelSpec) -> None:
    """Refuse the archive of a kernel as a device does."""
    _, refused = cache.take(spec)
    assert refused is not None
    refused.refuse("the driver does not load them")


@pytest.mark.parametrize(
    ("architecture", "made_for"),
    [(75, 75), (80, 80), (86, 86), (87, 86), (89, 86), (90, 90), (100, None), (110, None), (120, 120), (121, 120)],
)
def test_a_device_takes_machine_code_of_its_major_number(
    tmp_path: Path, architecture: int, made_for: int | None
) -> None:
    for each in (75, 80, 86, 90, 120):
        archive(tmp_path, each)
    shipped = package_archives(architecture, tmp_path)
    assert read(shipped, LISTED) == (None if made_for is None else f"sm{made_for} intra_task".encode())
    assert read(shipped, COUNT_KERNEL) is None
    assert refusals(shipped) == []


def test_shipped_kernels_are_never_compiled(tmp_path: Path) -> None:
    """No compiler is even looked for, because that delays a search."""
    archive(tmp_path, 90)
    opened: list[PlayedCompiler] = []
    cache = KernelCache(
        90, package_archives(90, tmp_path), tmp_path / "cache", lambda: opened.append(PlayedCompiler()) or opened[0]
    )
    assert cache.take(LISTED)[0] == b"sm90 intra_task"
    assert opened == []
    assert cache.take(COUNT_KERNEL) == cache.take(COUNT_KERNEL) == (code_of(COUNT_KERNEL), None)
    assert [each.compiled for each in opened] == [["count_scores"]]


def test_a_package_without_archives_has_no_kernels(tmp_path: Path) -> None:
    assert package_archives(90, tmp_path) == []
    assert package_archives(90, tmp_path / "absent") == []


# --- Archives that are refused ---


def test_an_archive_of_other_sources_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive is written, then a source is changed by one character."""
    sources = tmp_path / "cuda"
    shutil.copytree(ROOT / "cuda", sources)
    monkeypatch.setattr(compiler_module, "resource_folder", lambda name: sources)
    for module in (compiler_module, compiled_kernels):
        monkeypatch.setattr(module, "source_digest", source_digest.__wrapped__)
    path = archive(tmp_path, 90)
    assert read(package_archives(90, tmp_path), LISTED) is not None
    with (sources / "search" / "strip.cuh").open("a") as file:
        file.write("\n")
    shipped = package_archives(90, tmp_path)
    assert read(shipped, LISTED) is None
    assert refusals(shipped) == [
        f"the kernels in {path} are refused: it was made from other sources; run scripts/build_kernels.py again"
    ]
    with pytest.raises(EngineError, match=r"no kernel intra_task for .* 9\.0; .* made from other sources"):
        cache_of_package(tmp_path, 90).take(LISTED)


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
    with zipfile.ZipFile(tmp_path / "sm90.zip", "w") as made:
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
    cache = cache_of_package(tmp_path, 90, PlayedCompiler())
    assert cache.take(LISTED) == (code_of(LISTED), None)
    assert cache.take(COLLECT_KERNEL) == (code_of(COLLECT_KERNEL), None)  # nothing of a damaged archive is used


def test_a_driver_that_refuses_machine_code_gets_another_archive_or_the_compiler(tmp_path: Path) -> None:
    archive(tmp_path, 86)
    archive(tmp_path, 80)
    cache = cache_of_package(tmp_path, 89, PlayedCompiler())
    assert cache.take(LISTED)[0] == b"sm86 intra_task"
    refuse(cache, LISTED)
    assert cache.take(LISTED)[0] == b"sm80 intra_task"
    refuse(cache, LISTED)
    assert cache.take(LISTED) == (code_of(LISTED), None)


def test_an_archive_that_cannot_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    path = archive(tmp_path, 90)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_archive(tmp_path, 90, [(LISTED, None)], "")  # type: ignore[list-item]
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
    path = find_nvcc()
    assert path is not None
    nvcc = Nvcc(path)
    assert f"sm75.zip: {len(package_kernels(75))} kernels" in built_by_the_script(nvcc, tmp_path)
    out = tmp_path / "cubins"
    shipped = package_archives(75, out)
    codes = [read(shipped, spec) for spec in package_kernels(75)]
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

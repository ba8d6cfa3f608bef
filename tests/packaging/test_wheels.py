"""Wheels, built from the sdist alone, installed where there is no compiler: the tests of `make check-packages`."""

import json
import os
import re
import shutil
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path

import pytest

from tests.packaging.tools import MINORS, ROOT, build_sdist, interpreter, needed_interpreter, run, tool, with_ccache

pytestmark = pytest.mark.packages

INSTRUCTION_SETS = {
    "x86_64": ["avx512vbmi", "avx512bw", "avx2", "sse41", "scalar"],
    "aarch64": ["neon", "scalar"],
}
"""Those of ``add_kernels`` in CMakeLists.txt, best first."""
MACHINE = os.uname().machine
UTILITIES = ("awk", "cat", "cmp", "cut", "dirname", "gzip", "mktemp", "rm", "sh", "sha256sum")
"""What `packaging/try_install.sh` needs; a folder with these alone has no compiler, no CMake and no git."""
LARGEST_BYTES = 10_000_000


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build_sdist(tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel_of(sdist, tmp_path_factory):
    """Build the wheel for a Python: that of 3.11 without kernels for GPUs, others with those of one architecture."""

    @cache
    def build(minor):
        folder = tmp_path_factory.mktemp(f"wheel{minor}")
        kernels = "OFF" if minor == 11 or shutil.which("nvcc") is None else "75"
        options = ["--config-settings", f"cmake.define.SWSEARCH_CUDA_KERNELS={kernels}"]
        pip = [needed_interpreter(minor), "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, *options]
        run(*pip, sdist, cwd=folder, env=with_ccache())
        (path,) = folder.glob("*.whl")
        return path

    return build


@pytest.fixture(scope="module")
def repaired(wheel_of, tmp_path_factory):
    """The wheel for a Python, labelled with the oldest manylinux that it fits."""

    @cache
    def repair(minor):
        path = wheel_of(11 if minor == 11 else 12)
        folder = tmp_path_factory.mktemp(f"repaired{minor}")
        auditwheel = tool("wheels", "auditwheel")
        variables = {**os.environ, "PATH": f"{Path(auditwheel).parent}:{os.environ['PATH']}"}
        run(auditwheel, "repair", "--wheel-dir", folder, path, env=variables)
        (made,) = folder.iterdir()
        return made

    return repair


@pytest.mark.parametrize(("minor", "tags"), [(11, "cp311-cp311"), (12, "cp312-abi3")])
def test_there_is_a_wheel_for_python_311_and_one_for_all_later_versions(wheel_of, minor, tags):
    """Source: the oldest stable ABI that nanobind can use is that of Python 3.12."""
    assert f"-{tags}-linux_{MACHINE}.whl" in wheel_of(minor).name
    (module,) = [name for name in zipfile.ZipFile(wheel_of(minor)).namelist() if name.endswith(".so")]
    assert module == (
        "swsearch/_native.abi3.so" if minor == 12 else f"swsearch/_native.cpython-311-{MACHINE}-linux-gnu.so"
    )


@pytest.mark.parametrize("minor", [11, 12])
def test_a_wheel_has_the_program_its_kernels_and_its_migrations(wheel_of, sdist, minor):
    """Expected: the files of the sdist below ``swsearch``, ``cuda`` and ``migrations``."""
    with tarfile.open(sdist) as archive:
        sources = [member.name.partition("/")[2] for member in archive if member.isfile()]
    expected = {name for name in sources if name.startswith("swsearch/")}
    expected |= {f"swsearch/_{name}" for name in sources if name.startswith(("cuda/", "migrations/"))}
    names = {name for name in zipfile.ZipFile(wheel_of(minor)).namelist() if ".dist-info/" not in name}
    built = {name for name in names if name.startswith(("swsearch/_native.", "swsearch/_cubins/"))}
    assert names - built | {"swsearch/_native.pyi"} == expected
    with_kernels = minor != 11 and shutil.which("nvcc") is not None
    assert any("_cubins" in name for name in built) == with_kernels
    assert wheel_of(minor).stat().st_size < LARGEST_BYTES


@pytest.mark.parametrize("minor", [11, 12])
def test_a_wheel_needs_no_library_of_this_machine_but_those_of_manylinux(repaired, minor):
    """auditwheel would copy any other library into a folder ``swsearch.libs`` of the wheel."""
    path = repaired(minor)
    assert re.search(rf"-manylinux_2_\d+_{MACHINE}(\.|$)", path.name), path.name
    assert not any(".libs/" in name for name in zipfile.ZipFile(path).namelist())


@pytest.fixture(scope="module")
def installed(repaired, tmp_path_factory):
    """A fresh environment of a Python with the wheel, and variables in which nothing else is on ``PATH``."""

    @cache
    def install(minor):
        folder = tmp_path_factory.mktemp(f"installed{minor}")
        run(needed_interpreter(minor), "-m", "venv", folder / "venv")
        python = folder / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", repaired(minor))
        (folder / "bin").mkdir()
        for name in UTILITIES:
            (folder / "bin" / name).symlink_to(str(shutil.which(name)))
        variables = {"HOME": str(folder), "PATH": f"{python.parent}:{folder / 'bin'}", "TMPDIR": str(folder)}
        return python, variables

    return install


def trial(variables):
    """Run the trial of the installation that is on ``PATH``; returns what it prints."""
    printed = run("sh", "packaging/try_install.sh", "data", cwd=ROOT, env=variables)
    assert printed.endswith("swsearch works here\n")
    return printed


def digests(printed):
    """The digests of the two reports of a trial."""
    found = re.findall(r"^([0-9a-f]{64}) ", printed, re.M)
    assert len(found) == 2
    return found


@pytest.fixture(scope="module")
def checkout_reports():
    """The digests of the reports of the checkout."""
    return digests(trial({**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}))


@pytest.mark.parametrize("minor", MINORS)
def test_an_installed_wheel_works_without_a_compiler(installed, checkout_reports, minor):
    """Expected: the instruction sets of CMakeLists.txt, and reports with the bytes of those of the checkout."""
    python, variables = installed(minor)
    code = (
        "import json, swsearch, swsearch._native as native\nfrom swsearch.folders import resource_folder\n"
        "folders = [str(resource_folder(name)) for name in ('cuda', 'migrations')]\n"
        "print(json.dumps([[name for name, _ in native.instruction_sets()], swsearch.__file__, folders]))"
    )
    sets, file, folders = json.loads(run(python, "-I", "-c", code, env=variables))
    package = Path(file).parent
    assert package.is_relative_to(python.parents[1])
    assert sets == INSTRUCTION_SETS[MACHINE]
    assert folders == [str(package / "_cuda"), str(package / "_migrations")]
    assert digests(trial(variables)) == checkout_reports


def test_a_wheel_works_on_a_processor_without_avx(installed, checkout_reports, tmp_path):
    """An emulated Nehalem of 2008: no instruction of a newer set may be executed before the processor is known."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or MACHINE != "x86_64":
        pytest.skip("needs qemu-x86_64 (Debian: qemu-user)")
    python, variables = installed(max(minor for minor in MINORS if interpreter(minor)))
    program = tmp_path / "swsearch"
    program.write_text(f'#!/bin/sh\nexec {emulator} -cpu Nehalem {python} -m swsearch "$@"\n')
    program.chmod(0o755)
    printed = trial({**variables, "PATH": f"{tmp_path}:{variables['PATH']}"})
    assert re.search(r"^cpu +usable +sse41 \(also scalar\)", printed, re.M)
    assert digests(printed) == checkout_reports


def test_a_wheel_for_arm64_works(sdist, checkout_reports, tmp_path):
    """Cross-compiled and emulated; the reports are those of this machine, whose floating-point unit is another one."""
    missing = [name for name in ("aarch64-linux-gnu-g++", "qemu-aarch64", "apt-get") if shutil.which(name) is None]
    if missing or MACHINE != "x86_64":
        pytest.skip("needs x86-64 and Debian's g++-aarch64-linux-gnu and qemu-user")
    script = ROOT / "packaging" / "try_arm64.sh"
    printed = run("sh", script, sdist, ROOT / "data", tmp_path, needed_interpreter(11), env=with_ccache())
    assert re.search(r"^cpu +usable +neon \(also scalar\)", printed, re.M)
    assert digests(printed) == checkout_reports


def test_the_build_of_a_release_is_configured():
    """Expected: wheels for Linux on both processors, with GNU's C library, for regular builds of CPython."""
    variables = {**os.environ, "CIBW_ARCHS": "x86_64 aarch64"}
    printed = run(
        tool("wheels", "cibuildwheel"), "--platform", "linux", "--print-build-identifiers", ROOT, env=variables
    )
    assert printed.split() == [f"cp3{minor}-manylinux_{machine}" for machine in INSTRUCTION_SETS for minor in MINORS]


def test_the_index_of_packages_accepts_the_metadata(sdist, wheel_of):
    printed = run(tool("wheels", "twine"), "check", "--strict", sdist, wheel_of(12))
    assert printed.count("PASSED") == 2


def test_the_citation_is_valid():
    """Source: the schema of the Citation File Format 1.2.0, in cffconvert."""
    printed = run(tool("citation", "cffconvert"), "--validate", cwd=ROOT)
    assert "valid according to schema version 1.2.0" in printed


def test_the_compiler_for_the_wheels_of_a_release_compiles_all_kernels_of_an_architecture(tmp_path):
    """Source: the summary of the script, for the folder that cibuildwheel's containers have."""
    run("sh", ROOT / "packaging" / "install_nvcc.sh", tmp_path / "cuda", sys.executable)
    script = ROOT / "scripts" / "build_kernels.py"
    nvcc = tmp_path / "cuda" / "nvidia" / "cu13" / "bin" / "nvcc"
    options = ["--out", tmp_path / "cubins", "--nvcc", nvcc, "--jobs", "1", "--architectures", "75"]
    assert re.match(r"sm75\.zip: \d{3} kernels", run(sys.executable, script, *options))

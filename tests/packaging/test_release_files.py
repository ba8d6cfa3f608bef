"""The files of a release agree: versions, citation, licences, hooks, and the contents of the sdist."""

import hashlib
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from email.parser import Parser

import pytest
import yaml

import swsearch as package
from tests.packaging import tools
from tests.packaging.tools import ROOT, build_sdist, run

SCRIPT = ROOT / "scripts" / "set_version.py"
PROJECT = tools.PROJECT["project"]
RELEASE = runpy.run_path(str(SCRIPT))
PLACES = sorted(RELEASE["PLACES"])


# --- version ---


@pytest.mark.parametrize("path", PLACES)
def test_every_file_states_the_version_of_the_project(path):
    """Expected: ``version`` of ``pyproject.toml``."""
    assert RELEASE["stated_version"](path) == PROJECT["version"]
    assert package.__version__ == PROJECT["version"]


@pytest.fixture
def copies(tmp_path):
    """A folder with copies of all files that a release changes."""
    for path in (*PLACES, "CHANGELOG.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def set_version(folder, *arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments, "--root", folder], capture_output=True, text=True, check=False
    )


def test_a_release_changes_the_version_and_nothing_else(copies):
    """Expected: each file differs in the one line of its version; citation and changelog get the date."""
    for version, date in (("7.8.9rc1", "2031-01-02"), ("7.8.9", "2031-01-03")):
        done = set_version(copies, version, "--date", date)
        assert (done.returncode, done.stderr) == (0, "")
    for path in PLACES:
        old, new = ((folder / path).read_text().splitlines() for folder in (ROOT, copies))
        changed = [line for line in new if line not in old]
        dated = [f"date-released: {date}"] if path == "CITATION.cff" else []
        assert [line for line in changed if "7.8.9" not in line] == dated, path
        assert len(changed) == 1 + len(dated)
        assert len(new) == len(old) + len(dated)
    changes = (copies / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (.*)", changes, re.M)[:3] == [
        "[Unreleased]", "[7.8.9] - 2031-01-03", "[7.8.9rc1] - 2031-01-02",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "damage", "message"),
    [
        ("1.2", None, "'1.2' is not a version such as 1.2.0 or 1.2.0rc1"),
        ("1.2.0", ("CITATION.cff", "version: ", "Version: "), "CITATION.cff: 0 lines state a version, not 1"),
        ("1.2.0", ("CHANGELOG.md", "## [Unreleased]", "## Next"), "CHANGELOG.md: there is no single heading"),
    ],
)
def test_a_refused_release_changes_no_file(copies, version, damage, message):
    if damage:
        path, good, bad = damage
        (copies / path).write_text((copies / path).read_text().replace(good, bad))
    before = {path: path.read_bytes() for path in copies.rglob("*") if path.is_file()}
    done = set_version(copies, version)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert before == {path: path.read_bytes() for path in copies.rglob("*") if path.is_file()}


# --- installation ---


def test_no_page_installs_from_pypi_before_a_release():
    """Expected: a version with a date in the changelog, or commands that install what is in the checkout."""
    if re.search(r"^## \[\d", (ROOT / "CHANGELOG.md").read_text(), re.M):
        return
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    commands = re.compile(r"^    .*pip install (?:--\S+ )*'?swsearch.*", re.M)
    assert [(page.name, line) for page in pages for line in commands.findall(page.read_text())] == []


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake, which pip fetches for a build")
def test_a_build_without_a_compiler_says_what_is_needed(tmp_path):
    """The folder of programs has cmake and a generator alone."""
    for name in ("cmake", "ninja", "make"):
        if (path := shutil.which(name)) is not None:
            (tmp_path / name).symlink_to(path)
    build = ("cmake", "-S", ROOT, "-B", tmp_path / "build")
    done = subprocess.run(build, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "C++17 compiler, and there is none: install one" in " ".join(done.stderr.split())


# --- citation, hooks, extras ---


def test_the_page_on_installation_names_every_optional_part():
    """Expected: the extras of ``pyproject.toml``, without those for developers."""
    page = (ROOT / "docs" / "install.md").read_text()
    (table,) = re.findall(r"^\| name \| for \|\n(?:\|.*\n)+", page, re.M)
    named = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert named == sorted(set(PROJECT["optional-dependencies"]) - {"bench", "docs", "fuzz", "test"})


def test_the_citation_names_licence_and_references_with_a_doi():
    """Expected: ``pyproject.toml``, and DOIs that ``docs`` cite; `make check-packages` validates the whole file."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["license"] == PROJECT["license"].split()[0]
    assert set(citation["keywords"]) == set(PROJECT["keywords"])
    assert all(re.fullmatch(r"10\.\d{4}/\S+", reference["doi"]) for reference in citation["references"])


def test_hooks_are_the_checks_of_make_lint():
    """Expected: the lines of the target ``lint`` of the Makefile."""
    (recipe,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    checks = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == checks
    assert all(hook["language"] == "system" for hook in repository["hooks"])


def test_the_hooks_are_valid():
    """Expected: the validator of pre-commit finds nothing to say."""
    assert run(sys.executable, "-m", "pre_commit", "validate-config", ROOT / ".pre-commit-config.yaml") == ""


# --- sdist ---

INCLUDED = ("cuda", "data", "docs", "examples", "migrations", "simd", "swsearch")
ALONE = {
    "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml",
    "packaging/build_pycuda.sh", "packaging/install_nvcc.sh", "packaging/try_arm64.sh", "packaging/try_install.sh",
    "scripts/build_kernels.py",
}  # fmt: skip


def test_the_sdist_contains_what_builds_and_explains_the_program(tmp_path):
    """Expected: git's list of the files in the chosen folders; metadata as in ``pyproject.toml``."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout of git")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *INCLUDED]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    top = f"swsearch-{PROJECT['version']}"
    path = build_sdist(tmp_path)
    assert path.name == f"{top}.tar.gz"
    with tarfile.open(path) as archive:
        names = {member.name.removeprefix(f"{top}/") for member in archive if member.isfile()}
        information = Parser().parsestr(archive.extractfile(f"{top}/PKG-INFO").read().decode())
    assert names == {name for name in listed if (ROOT / name).exists()} | ALONE | {"PKG-INFO"}
    assert information["Version"] == PROJECT["version"]
    assert information["License-Expression"] == PROJECT["license"]
    assert information.get_all("License-File") == PROJECT["license-files"]
    assert set(information.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    (tmp_path / "again").mkdir()
    again = build_sdist(tmp_path / "again")
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(path.read_bytes()).digest()

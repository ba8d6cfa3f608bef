"""Recipes for other systems of packages: images, Bioconda, Galaxy, nf-core.

What needs a large program, a build or a daemon has the mark `packages` (`make check-packages`).
"""

import ast
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import jinja2
import pytest
import yaml

from swsearch.cli.app import commands
from swsearch.report.formats import COLUMNS, FORMATS, TAXA
from tests.compiled import unpack
from tests.packaging.tools import PROJECT, ROOT, build_sdist, needed_interpreter, run, tool, with_ccache

DATA = ROOT / "data"
VERSION = PROJECT["project"]["version"]
HOME = "https://docs.example.org/swsearch"
GALAXY = ROOT / "packaging" / "galaxy"
MODULES = ROOT / "packaging" / "nf-core" / "swsearch"
ON_PATH = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def required(names):
    """Names of packages without versions and extras."""
    return {re.match(r"[\w.-]+", name)[0] for name in names}


def unknown_options(command):
    """The long options in the text of a command that ``swsearch query`` does not have."""
    known = {name for option in commands().commands["query"].params for name in option.opts}
    return set(re.findall(r"(?<![\w-])--[a-z-]+", command)) - known


# --- images ---


def test_images_are_built_from_the_files_of_the_sdist():
    """Expected: the list of scikit-build-core in ``pyproject.toml``."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    included = [f"/{line[1:]}" for line in lines if line.startswith("!")]
    assert included == [name.rstrip("/") for name in PROJECT["tool"]["scikit-build"]["sdist"]["include"]]
    left_out = [line.removeprefix("**/") for line in lines if line.startswith("**/")]
    assert left_out == PROJECT["tool"]["scikit-build"]["sdist"]["exclude"]


def test_images_install_extras_of_the_project():
    text = (ROOT / "Dockerfile").read_text()
    extras = [set(found.split(",")) for found in re.findall(r"\[([a-z,]+)\]'", text)]
    users = set(PROJECT["project"]["optional-dependencies"]) - {"bench", "cluster", "docs", "fuzz", "plot", "test"}
    assert extras == [users - {"cuda"}, {"cuda"}, users - {"cuda"}, users]
    (minor,) = set(re.findall(r"python:3\.(\d+)-", text))
    assert f"Programming Language :: Python :: 3.{minor}" in PROJECT["project"]["classifiers"]


@pytest.mark.packages
def test_pycuda_is_built_without_a_driver(tmp_path):
    """As in the image `cuda`: with the packages of CUDA from PyPI, linked with the library that the driver brings."""
    python = needed_interpreter(12)
    run("sh", ROOT / "packaging" / "install_nvcc.sh", tmp_path / "cuda", python)
    run("sh", ROOT / "packaging" / "build_pycuda.sh", tmp_path / "cuda", tmp_path / "wheels", python)
    (wheel,) = (tmp_path / "wheels").glob("pycuda-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.startswith("pycuda/_driver"))
        archive.extract(name, tmp_path)
    needed = run("readelf", "--dynamic", tmp_path / name)
    assert "[libcuda.so.1]" in needed
    assert "libcurand" not in needed


@pytest.mark.packages
@pytest.mark.parametrize("target", ["cpu", "cuda", "service"])
def test_an_image_is_built_and_works(target):
    """Where there is a daemon: the program runs as an ordinary user, and tries itself."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs Docker and its daemon")
    tag = f"swsearch-test:{target}"
    run(docker, "build", "--target", target, "--tag", tag, ROOT)
    options = ["--rm", "--volume", f"{ROOT}:/source:ro", "--entrypoint", "sh", tag]
    assert run(docker, "run", *options, "-c", "id -u").strip() == "10001"
    printed = run(docker, "run", *options, "/source/packaging/try_install.sh", "/source/data")
    assert printed.endswith("swsearch works here\n")


# --- Bioconda ---


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """The sdist, and the folder of the recipe that is written from it."""
    folder = tmp_path_factory.mktemp("recipe")
    sdist = build_sdist(folder)
    run(sys.executable, ROOT / "scripts" / "write_recipe.py", sdist, f"{HOME}/", folder / "recipe")
    return sdist, folder / "recipe"


def rendered(path):
    """A recipe as conda-build reads it, for Python 3.12 on Linux."""
    functions = {
        "compiler": lambda name: f"compiler-{name}",
        "stdlib": lambda name: f"stdlib-{name}",
        "pin_subpackage": lambda name, max_pin: f"{name} {max_pin}",
    }
    text = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(path.read_text()).render(functions)
    variables = {"win": False, "osx": False, "linux": True, "py": 312}
    lines = [re.fullmatch(r"(.*?)(?:  # \[(.*)\])?", line) for line in text.splitlines()]
    return yaml.safe_load("\n".join(line[1] for line in lines if line[2] is None or eval(line[2], variables)))


def test_the_recipe_for_bioconda_names_the_sdist_and_its_dependencies(recipe):
    """Expected: ``pyproject.toml``; the compression of xopen is a package of its own."""
    sdist, folder = recipe
    meta = rendered(folder / "meta.yaml")
    assert meta["package"] == {"name": "swsearch", "version": VERSION}
    assert meta["source"]["url"] == f"{HOME}/releases/{sdist.name}"
    assert meta["about"]["home"] == HOME
    assert meta["source"]["sha256"] == hashlib.sha256(sdist.read_bytes()).hexdigest()
    assert "skip" not in meta["build"]
    assert required(meta["requirements"]["run"]) - {"python", "backports.zstd"} == required(
        PROJECT["project"]["dependencies"]
    )
    versions = {name.split("[")[0] + name.partition("]")[2] for name in PROJECT["project"]["dependencies"]}
    assert versions <= {name.replace(" ", "") for name in meta["requirements"]["run"]}
    assert required(PROJECT["build-system"]["requires"]) <= required(meta["requirements"]["host"])
    assert meta["about"]["license"] == PROJECT["project"]["license"]
    assert meta["about"]["license_file"] == PROJECT["project"]["license-files"]


@pytest.mark.parametrize(
    ("name", "home", "message"),
    [
        ("other-1.0.tar.gz", HOME, "is not named as an sdist of swsearch is"),
        ("swsearch-1.0.0.tar.gz", "docs.example.org", "is not the address of a home page"),
    ],
)
def test_a_recipe_needs_an_sdist_and_a_home_page(tmp_path, name, home, message):
    (tmp_path / name).write_bytes(b"")
    command = [sys.executable, ROOT / "scripts" / "write_recipe.py", tmp_path / name, home, tmp_path / "recipe"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "recipe").exists()


def test_no_file_names_a_package_index():
    """The addresses of packages are those of the project's own pages."""
    hosts = re.compile(r"\b(?:pypi|test\.pypi|anaconda|npmjs)\.(?:org|com)\b")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no checkout of the repository")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and path != Path(__file__):
            assert not hosts.search(path.read_bytes().decode("utf-8", "replace")), name


@pytest.mark.packages
def test_the_recipe_for_bioconda_builds_and_its_tests_pass(recipe, tmp_path):
    """As conda-build does it: in the sources, with what is installed, and then the tests in a folder of their own."""
    sdist, folder = recipe
    run(needed_interpreter(11), "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    meta = rendered(folder / "meta.yaml")
    of_python = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"], "cmake", "ninja"]
    run(python, "-m", "pip", "install", "--quiet", *of_python)
    unpack(sdist, tmp_path)
    sources = tmp_path / sdist.name.removesuffix(".tar.gz")
    variables = {**with_ccache(), "PYTHON": str(python), "PATH": f"{python.parent}:{os.environ['PATH']}"}
    run("bash", folder / "build.sh", cwd=sources, env=variables)
    work = tmp_path / "test"
    for name in meta["test"]["source_files"]:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).symlink_to(sources / name)
    run(python, "-c", "".join(f"import {name}\n" for name in meta["test"]["imports"]), cwd=work)
    printed = {command: run("bash", "-c", command, cwd=work, env=variables) for command in meta["test"]["commands"]}
    assert printed["swsearch --version"] == f"swsearch {VERSION}\n"


# --- Galaxy ---


def test_the_data_of_galaxys_tests_are_parts_of_the_projects_data():
    """``data/README.md`` names the origin of the sequences."""
    whole = {
        "queries.fasta": (DATA / "queries.fasta").read_text(),
        "subjects.fasta": gzip.decompress((DATA / "proteins.fasta.gz").read_bytes()).decode(),
    }
    for name, text in whole.items():
        records = (GALAXY / "test-data" / name).read_text().split(">")
        assert len(records) > 2
        assert set(records) <= set(text.split(">"))
    genome = (GALAXY / "test-data" / "genome.fasta").read_text()
    assert (DATA / "lambda_phage.fasta").read_text().startswith(genome)
    with zipfile.ZipFile(GALAXY / "test-data" / "taxdump.zip") as dump:
        assert sorted(dump.namelist()) == ["names.dmp", "nodes.dmp"]
        for name in dump.namelist():
            assert dump.read(name) == (DATA / "taxonomy" / name).read_bytes()


def test_the_wrapper_for_galaxy_offers_every_format_with_its_inputs():
    """Expected: the program's lists. `parquet` needs pyarrow, which the package of Bioconda does not install."""
    offered = [name for name in FORMATS if name != "parquet"]
    with_columns = {*COLUMNS} - {"parquet"}
    tool = ET.parse(GALAXY / "swsearch.xml").getroot()
    output = tool.find("inputs/conditional[@name='output']")
    assert sorted(option.get("value") for option in output.findall("param/option")) == sorted(offered)
    cases = {case.get("value"): [one.get("macro") for one in case] for case in output.findall("when")}
    assert sorted(cases) == sorted(offered)
    assert {name for name, macros in cases.items() if "columns" in macros} == with_columns
    assert {name for name, macros in cases.items() if "taxa" in macros} == with_columns | {*TAXA}
    command = tool.findtext("command")
    lists = [set(ast.literal_eval(found)) for found in re.findall(r"output\.format in (\(.*?\))", command)]
    assert lists == [with_columns, with_columns | {*TAXA}]
    assert unknown_options(command) == set()
    of_another_type = {change.get("value") for change in tool.iter("when") if change.get("input") == "output.format"}
    assert set(offered) - of_another_type == {"blast6", "blast7", "tsv", "lca", "kraken", "multiqc"}


@pytest.mark.packages
def test_the_wrapper_for_galaxy_has_no_faults_and_its_tests_pass(tmp_path):
    """Source: the rules of Galaxy for wrappers, and Galaxy's comparison of outputs."""
    script = GALAXY / "run_tests.py"
    printed = run(tool("galaxy", "python"), script, GALAXY / "swsearch.xml", tmp_path, env=ON_PATH)
    assert printed.endswith("7 tests passed\n")


# --- nf-core ---

PROCESS = re.compile(
    r"process (\w+) \{\n.*?^    input:\n(.*?)^    output:\n(.*?)^    when:\n.*?"
    r"^    script:\n.*?\"\"\"\n(.*?)^    \"\"\"\n.*?^    stub:\n.*?\"\"\"\n(.*?)^    \"\"\"\n\}\n$",
    re.DOTALL | re.MULTILINE,
)


def declared(text):
    """Names of the inputs in a process of Nextflow: those of ``val`` and ``path``, in order, one list per channel."""
    return [re.findall(r"\b(?:val|path)[( ](\w+)", line) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", ["index", "query"])
def test_a_module_of_nf_core_describes_its_channels(name):
    """Expected: the inputs and outputs of ``main.nf``."""
    process, inputs, outputs, _, _ = PROCESS.fullmatch((MODULES / name / "main.nf").read_text()).groups()
    meta = yaml.safe_load((MODULES / name / "meta.yml").read_text())
    assert process == f"SWSEARCH_{name.upper()}"
    assert meta["name"] == f"swsearch_{name}"
    described = [channel if isinstance(channel, list) else [channel] for channel in meta["input"]]
    assert [[next(iter(element)) for element in channel] for channel in described] == declared(inputs)
    emitted = re.findall(r"emit: (\w+)", outputs)
    assert list(meta["output"]) == emitted
    lines = [line for line in outputs.splitlines() if line.strip()]
    for channel, line in zip(meta["output"].values(), lines, strict=True):
        for element in channel[0]:
            assert next(iter(element)) in line
    assert meta["topics"]["versions"] == meta["output"]["versions_swsearch"]


def test_the_module_of_nf_core_offers_every_format():
    """Expected: the program's list; two formats have another suffix in ``main.nf``."""
    meta = yaml.safe_load((MODULES / "query" / "meta.yml").read_text())
    assert meta["input"][-1]["format"]["enum"] == list(FORMATS)
    text = (MODULES / "query" / "main.nf").read_text()
    assert unknown_options(text.replace("swsearch --version", "")) == set()
    (named,) = set(re.findall(r"suffix = (\[.*?\])\[format\]", text))
    renamed = dict(re.findall(r"'(\S+)': '(\S+)'", named))
    suffixes = {renamed.get(name, f".{name}") for name in FORMATS}
    (element,) = (element for element in meta["output"]["hits"][0] if "meta" not in element)
    (described,) = element.values()
    assert described["pattern"] == f"*{{{','.join(re.findall(r'[^{},*]+', described['pattern']))}}}"
    assert set(re.findall(r"[^{},*]+", described["pattern"])) == suffixes


def test_the_modules_of_nf_core_give_the_hits_of_the_program(tmp_path):
    """The scripts run by bash, as Nextflow runs them, with its values; expected: the command by itself."""
    shutil.copy(GALAXY / "test-data" / "subjects.fasta", tmp_path)
    shutil.copy(GALAXY / "test-data" / "queries.fasta", tmp_path)
    values = {
        "args": "", "dbs": "proteins.db", "fasta": "subjects.fasta", "format": "blast6", "organisms": "",
        "prefix": "proteins", "queries": "queries.fasta", "suffix": ".blast6", "task.cpus": "1",
    }  # fmt: skip
    for name, made in (("index", "proteins.db"), ("query", "proteins.blast6")):
        _, _, outputs, script, stub = PROCESS.fullmatch((MODULES / name / "main.nf").read_text()).groups()
        for text in (stub, script):
            filled = re.sub(r"\$\{([\w.]+)\}", lambda used: values[used[1]], text).replace("\\\\", "\\")
            run("bash", "-ue", "-c", filled, cwd=tmp_path, env=ON_PATH)
            assert (tmp_path / made).exists()
            if text is stub:
                (tmp_path / made).rmdir() if name == "index" else (tmp_path / made).unlink()
        (command,) = re.findall(r'eval\("(.*?)"\)', outputs)
        assert run("bash", "-c", command, env=ON_PATH).strip() == VERSION
    assert (tmp_path / "proteins.blast6").read_text() == (GALAXY / "test-data" / "hits.tabular").read_text()


# --- MultiQC ---


@pytest.mark.packages
def test_multiqc_plots_a_bar_for_each_sample(tmp_path):
    """Expected: the lines of the two files, which MultiQC names by their samples and saves as it read them."""
    for sample, evalue in (("first", "1e-60"), ("second", "10")):
        command = ["query", DATA / "queries.fasta", DATA / "proteins.fasta.gz", "--evalue", evalue, "--store", "none"]
        out = ["--quiet", "--format", "multiqc", "--out", tmp_path / f"{sample}_mqc.tsv"]
        run(sys.executable, "-m", "swsearch", *command, *out)
    run(tool("multiqc", "multiqc"), "--quiet", "--no-ansi", "--outdir", tmp_path / "report", tmp_path)
    (table,) = (tmp_path / "report" / "multiqc_data").glob("*swsearch*best_hits*.txt")
    head, *rows = [line.split("\t") for line in table.read_text().splitlines()]
    plotted = {row[0]: {name: float(count) for name, count in zip(head[1:], row[1:], strict=True)} for row in rows}
    written = {}
    for sample in ("first", "second"):
        lines = (tmp_path / f"{sample}_mqc.tsv").read_text().splitlines()
        written[sample] = {name: float(count) for name, count in (line.split("\t") for line in lines if line[0] != "#")}
    assert plotted == written
    assert written["first"]["no hit"] > written["second"]["no hit"] == 0


@pytest.mark.packages
def test_multiqc_reads_the_report_of_taxa(tmp_path):
    """Expected: the numbers of the lines whose ranks MultiQC plots."""
    taxonomy = ["--taxonomy", DATA / "taxonomy", "--taxid-map", DATA / "taxids.tsv", "--store", "none", "--quiet"]
    command = ["query", DATA / "queries.fasta", DATA / "proteins.fasta.gz", "--format", "kraken", *taxonomy]
    run(sys.executable, "-m", "swsearch", *command, "--lca-top", "60", "--out", tmp_path / "first.kreport")
    run(tool("multiqc", "multiqc"), "--quiet", "--no-ansi", "--outdir", tmp_path / "report", tmp_path)
    (table,) = (tmp_path / "report" / "multiqc_data").glob("kraken-top-n-plot_Species.txt")
    head, row = (line.split("\t") for line in table.read_text().splitlines())
    lines = [line.split("\t") for line in (tmp_path / "first.kreport").read_text().splitlines()]
    written = {name.strip(): int(n_clade) for _, n_clade, _, code, _, name in lines if code == "S"}
    written["Unclassified"] = next(int(n_clade) for _, n_clade, _, code, *_ in lines if code == "U")
    read = {name: float(number) for name, number in zip(head[1:], row[1:], strict=True)}
    assert {name: read[name] for name in written} == written
    assert len(written) == 3
    assert sum(read.values()) == 7

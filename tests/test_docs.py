"""The documentation: its commands run, its examples work, and its links have targets. Expected values: the pages."""

import gzip
import json
import re
import shlex
import shutil
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from swsearch.cli.app import main
from swsearch.search import simulation
from tests.support import protein_records

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
NAMED = ("A5IMB8", "B2V7P2")
"""Proteins that pages ask for."""
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("data/*.md"), *ROOT.glob("cuda/*.md")])


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty folder with the repository's data/ in it."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWSEARCH_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="session")
def few_data(tmp_path_factory):
    """The files of data/, with a fifth of its proteins; and the database ``proteins.db`` of these beside it."""
    folder = tmp_path_factory.mktemp("few")
    (folder / "data").mkdir()
    for path in (ROOT / "data").iterdir():
        if path.name != "proteins.fasta.gz":
            (folder / "data" / path.name).symlink_to(path)
    chosen = [
        record
        for number, record in enumerate(protein_records())
        if number % 5 == 0 or any(name in record for name in NAMED)
    ]
    proteins = folder / "data" / "proteins.fasta.gz"
    proteins.write_bytes(gzip.compress("".join(chosen).encode(), 1))
    assert main(["index", str(proteins), "-o", str(folder / "proteins.db"), "--quiet"]) == 0
    return folder


@pytest.fixture
def indexed_workplace(workplace, real_databases):
    """The same folder with the README's database."""
    shutil.copytree(real_databases / "proteins.db", workplace / "proteins.db")
    return workplace


@pytest.fixture
def small_workplace(workplace, few_data):
    """The same folder with fewer proteins and their database, for pages that show none of their numbers."""
    (workplace / "data").unlink()
    (workplace / "data").symlink_to(few_data / "data")
    shutil.copytree(few_data / "proteins.db", workplace / "proteins.db")
    return workplace


def run_commands(page: str, capfd) -> int:
    """Run the commands of a page; output that follows a command on the page must equal the command's output."""
    shown = re.findall(r"^    \$ (swsearch .*)\n((?:    (?!\$).*\n|\n(?=    (?!\$)))*)", page, re.MULTILINE)
    for command, output in shown:
        capfd.readouterr()
        assert main(shlex.split(command)[1:]) == 0, command
        printed = capfd.readouterr().out
        for line in output.splitlines():
            if line.strip() and line.strip() != "…":
                assert line[4:].rstrip() in [row.rstrip() for row in printed.splitlines()], (command, line)
    return len(shown)


@pytest.mark.parametrize(("page", "n_commands"), [("README.md", 6), ("docs/index.md", 4), ("docs/sources.md", 6)])
def test_commands_run_and_print_what_is_shown(workplace, capfd, page, n_commands):
    """Source: the page."""
    assert run_commands((ROOT / page).read_text(), capfd) >= n_commands


GUIDES = [ROOT / "docs" / "tutorial.md", *sorted(ROOT.glob("docs/how-to/*.md"))]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_every_command_of_a_guide_runs_and_prints_what_is_shown(workplace, capfd, page):
    """Source: the page. A file that it shows with ``cat`` is written first."""
    text = page.read_text()
    files = re.findall(r"^    \$ cat (\S+)\n((?:    (?!\$).+\n)+)", text, re.MULTILINE)
    for name, content in files:
        (workplace / name).write_text(textwrap.dedent(content))
    n_shown = len(re.findall(r"^ *\$ ", text, re.MULTILINE))
    assert run_commands(text, capfd) == n_shown - len(files) >= 2
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        if all(find_spec(name) for name in re.findall(r"^import (\w+)", code, re.MULTILINE)):
            exec(compile(code, page.name, "exec"), {})


def test_the_page_on_names_shows_what_is_printed(indexed_workplace, capfd):
    """Source: the page."""
    page = (ROOT / "docs" / "reference" / "names.md").read_text()
    assert run_commands(page, capfd) == 6
    for command in (
        "query proteins.db data/queries.fasta",
        "query data/queries.fasta proteins.db --fast",
        "makeblastdb -in proteins.fasta -dbtype prot -out proteins.db",
    ):
        capfd.readouterr()
        assert main(command.split()) == 2
        assert f"\n    {capfd.readouterr().err}" in page


REFERENCE_PAGES = [
    "alignments", "all-against-all", "batch", "databases", "filters", "iterations", "pairs", "profiles",
    "scoring", "sequences", "store", "taxonomy",
]  # fmt: skip


WITH_NUMBERS = ("iterations", "profiles")
"""Pages that show how many of all proteins are found."""


@pytest.mark.parametrize("name", REFERENCE_PAGES)
def test_the_reference_pages_commands_and_python_run(request, capfd, name):
    """Source: the page; its database is the README's, or a part of it, of related proteins where all meet all."""
    place = request.getfixturevalue("indexed_workplace" if name in WITH_NUMBERS else "small_workplace")
    page = (ROOT / "docs" / "reference" / f"{name}.md").read_text()
    if name == "all-against-all":
        records = [record for record in protein_records() if "GTP" in record.partition("\n")[0]]
        (place / "related.fasta").write_text("".join(records[:30]))
        assert main(["index", "related.fasta", "-o", "proteins.db", "--quiet", "--force"]) == 0
    assert run_commands(page, capfd) >= 1
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, name, "exec"), {})
    assert capfd.readouterr().out


def test_the_commands_of_the_page_on_json_run(small_workplace, capfd):
    """Source: the page; tests/cli/test_documents.py compares the keys."""
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    assert main(["query", "data/queries.fasta", "proteins.db", "--top", "3", "--quiet"]) == 0
    assert run_commands(page, capfd) == 6


def test_the_page_on_configuration_has_a_file_that_is_accepted(workplace, capfd, monkeypatch):
    """Source: the page; tests/cli/test_configuration.py tests the values."""
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (workplace / "config.toml").write_text(text)
    monkeypatch.setenv("SWSEARCH_CONFIG", "config.toml")
    assert run_commands(page, capfd) == 1


def test_the_page_on_clusters_runs(small_workplace, capfd):
    """Source: the page; the report of the run is that of one without a cluster."""
    page = (ROOT / "docs" / "cluster.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "cluster", "exec"), {"__name__": "__main__"})
    assert capfd.readouterr().out == "7 queries done\n"
    assert run_commands(page, capfd) == 1
    assert main(["report", "latest", "--store", "hits.sqlite", "--format", "blast6"]) == 0
    reported = capfd.readouterr().out
    assert main(["query", "data/queries.fasta", "proteins.db", "--store", "none", "--format", "blast6"]) == 0
    assert capfd.readouterr().out == reported


def test_the_page_on_scale_shows_what_the_simulation_found():
    """Source: the page, and the result of ``benchmarks/simulate_cluster.py``."""
    page = (ROOT / "docs" / "design" / "scale.md").read_text()
    result = json.loads((ROOT / "benchmarks" / "results" / "scale-simulation.json").read_text())
    curves = [
        {one["gpus"]: f"{one['efficiency']:.3f}" for one in result["searches"][name]["curve"]}
        for name in ("UniRef90", "BFD")
    ]
    shown = re.findall(r"^\| ([\d,]+) \| (\d\.\d+) \| ?(\d\.\d+)? \|$", page, re.MULTILINE)
    rows = [(int(gpus.replace(",", "")), first, second) for gpus, first, second in shown]
    assert rows == [(gpus, found, curves[1].get(gpus, "")) for gpus, found in curves[0].items()]
    assert f"{result['compared']['simulated']:.3f}" in page
    assert f"{result['compared']['measured_searching']:.3f}" in page


def test_the_profile_finds_more_than_its_first_sequence(indexed_workplace, capfd):
    """Source: the numbers in the page on profiles."""
    record = (ROOT / "data" / "queries.fasta").read_text().split(">")[2]
    (indexed_workplace / "obg.fasta").write_text(f">{record}")
    assert main(["query", "obg.fasta", "proteins.db", "--evalue", "0.001", "--store", "none"]) == 0
    assert "Hits:     45 of 1,500 subjects have an E-value of at most 0.001" in capfd.readouterr().out


def test_the_page_on_alignments_shows_what_is_printed(indexed_workplace, capfd):
    """Source: the line about a query, and the numbers after it."""
    page = (ROOT / "docs" / "reference" / "alignments.md").read_text()
    record = (ROOT / "data" / "queries.fasta").read_text().split(">")[2]
    (indexed_workplace / "obg.fasta").write_text(f">{record}")
    capfd.readouterr()
    assert main(["msa", "obg.fasta", "proteins.db", "--out", "alignments/"]) == 0
    (shown,) = re.findall(r"^    (swsearch: .*)$", page, re.MULTILINE)
    assert shown in capfd.readouterr().err.splitlines()
    assert main(["msa", "obg.fasta", "proteins.db", "--out", "alignments/", "--iterations", "1"]) == 0
    rows, neff = re.search(r"`--iterations 1`, the same query has (\d+) rows and Neff ([\d.]+\d)", page).groups()
    assert re.search(rf": {rows} rows .* Neff {neff}, ", capfd.readouterr().err)
    assert [path.name for path in (indexed_workplace / "alignments").iterdir()] == ["sp_B4RQP4_OBG_NEIG2.a3m"]


def test_the_commands_of_translated_search_run(small_workplace, capfd):
    """Source: docs/design/translation.md. With all proteins, the genome's 97,000 residues take most of the time."""
    shutil.rmtree("proteins.db")
    page = (ROOT / "docs" / "design" / "translation.md").read_text()
    commands = re.findall(r"^    \$ (swsearch .*)$", page, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, (command, capfd.readouterr().err)
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    capfd.readouterr()
    exec(compile(code, "translation.md", "exec"), {})
    assert len(capfd.readouterr().out.splitlines()) >= 7  # at least one alignment of each query


def test_the_readmes_python_example_runs(workplace, capfd):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert len(capfd.readouterr().out.splitlines()) == 21  # 7 queries, 3 hits each


@pytest.mark.peer("segmasker")
def test_the_commands_and_examples_on_low_complexity_run(small_workplace, monkeypatch, capfd):
    """Source: the page; the effect of each option is tested with its module."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_workplace / "cache"))
    monkeypatch.setattr(simulation, "N_SEQUENCES", 96)  # a seventh of the pairs: no output on the page depends on them
    page = (ROOT / "docs" / "reference" / "low-complexity.md").read_text()
    commands = re.findall(r"^    \$ swsearch (.*)", page, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        assert main(shlex.split(command)) == 0, command
    assert (small_workplace / "scores.png").stat().st_size > 1000
    capfd.readouterr()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "low-complexity.md", "exec"), {})
    assert len(capfd.readouterr().out.splitlines()) == 7


def test_links_lead_somewhere():
    targets = [(page, found) for page in PAGES for found in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())]
    own = [page.parent / target for page, target in targets if not target.startswith("http")]
    assert [path for path in own if not path.exists()] == []
    assert len(own) > 100


def test_the_makefile_has_the_verbs_that_the_readme_names():
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make ([a-z-]+)", README + (ROOT / "CONTRIBUTING.md").read_text()))
    assert named <= verbs
    assert {"demo", "test", "test-gpu", "lint", "bench"} <= verbs

"""What the documentation says is done: its commands run, its examples work, its links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from swsearch.cli.app import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("data/*.md"), *ROOT.glob("cuda/*.md")])


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty folder with the repository's data/ in it."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", ["README.md", "docs/sources.md"])
def test_commands_run_and_print_what_is_shown(workplace, capfd, page):
    """Source: the page; where output follows a command there, it is that command's, to the letter."""
    text = (ROOT / page).read_text()
    shown = re.findall(r"^    \$ (swsearch .*)\n((?:    (?!\$).*\n|\n(?=    (?!\$)))*)", text, re.MULTILINE)
    assert len(shown) >= 6
    for command, output in shown:
        capfd.readouterr()
        assert main(shlex.split(command)[1:]) == 0, command
        printed = capfd.readouterr().out
        for line in output.splitlines():
            if line.strip() and line.strip() != "…":
                assert line[4:].rstrip() in [row.rstrip() for row in printed.splitlines()], (command, line)


def test_the_readmes_python_example_runs(workplace, capfd):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert len(capfd.readouterr().out.splitlines()) == 21  # 7 queries, 3 hits each


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_makefile_has_the_verbs_that_the_readme_names():
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make ([a-z-]+)", README + (ROOT / "CONTRIBUTING.md").read_text()))
    assert named <= verbs
    assert {"demo", "test", "test-gpu", "lint", "bench"} <= verbs

"""Every command has help, and start-up is fast. The expected texts and modules are listed by hand."""

import os
import subprocess
import sys

import pytest

from swsearch.cli.app import commands
from swsearch.cli.command import all_commands

COMMANDS = [name.split() for name in all_commands()]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_alone_and_among_all(swsearch, command):
    """Source: the help of the complete command line, which is built if an option stands before the command."""
    printed = swsearch(*command, "--help").printed
    assert f"Example: swsearch {' '.join(command)}" in printed
    assert swsearch("--debug", *command, "--help").out == printed


def test_short_names_are_the_same_in_all_commands():
    """By hand: these six, each wherever the option is; -h everywhere."""
    short = {"--out": "-o", "--format": "-f", "--evalue": "-e", "--top": "-k", "--threads": "-p", "--quiet": "-q"}
    root = commands()
    groups = [root, *(command for command in root.commands.values() if hasattr(command, "commands"))]
    n_found = 0
    for command in (command for group in groups for command in [group, *group.commands.values()]):
        for option in command.params:
            letters = [name for name in option.opts if name.startswith("-") and len(name) == 2]
            longs = [name for name in option.opts if name.startswith("--")]
            assert letters == [short[name] for name in longs if name in short], (command.name, option.opts)
            n_found += len(letters)
    assert n_found > 40


def test_the_help_of_a_search_is_in_groups_and_names_the_choices(swsearch, monkeypatch):
    """By hand: the groups in the order of their use, and no line that is wider than the terminal."""
    groups = ["Arguments", "Queries and databases", "Scoring", "Which hits", "Filters, before the list is cut at --top"]
    groups += ["Iterated searches with profiles", "Output", "Sequences", "Rows of a3m, sto and afasta", "Machine"]
    groups += ["Run", "Options"]
    for width, most in ((80, 210), (120, 150), (300, 150)):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = swsearch("query", "--help").out.splitlines()
        assert [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")] == groups
        assert max(map(len, lines)) <= min(width, 120)
        assert len(lines) <= most
        assert any(line.split()[:2] == ["--ties", "[cut|all]"] for line in lines)
        assert any(line.split()[:3] == ["-k,", "--top", "N"] for line in lines)
        assert "A chromosome is one subject; each alignment has a line." in " ".join(" ".join(lines).split())
    assert lines[lines.index("Options:") + 1 :] == ["  -h, --help  Show this message and exit."]


def test_a_format_of_reports_loads_no_other():
    """The library of the XML format alone takes as long to import as all other formats."""
    code = (
        "import sys\nfrom swsearch.report.formats import new_report\nnew_report('table')\n"
        "others = ('report.html', 'report.blast_documents', 'xml.sax')\n"
        "print(sorted(name for name in sys.modules if name.endswith(others)))"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"


@pytest.mark.parametrize(("given", "expected"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_openblas_gets_one_thread_unless_the_user_chose(given, expected):
    code = (
        "import os, sys, swsearch.cli.app as app\nfrom swsearch.cli.start import run\n"
        "assert 'numpy' not in sys.modules\n"
        "app.run = lambda: print(os.environ['OPENBLAS_NUM_THREADS'])\nrun()\n"
    )
    variables = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | given
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=variables)
    assert outcome.stdout.strip() == expected


def test_engines_says_what_can_be_used_and_why_not(swsearch):
    listed = swsearch("engines").out.splitlines()
    assert [line.split()[0] for line in listed] == ["cuda", "cpu", "reference", "auto"]
    assert "usable" in listed[2]

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


def test_help_fits_the_terminal(swsearch, monkeypatch):
    """No line is longer than 120 columns, however wide the terminal is. The transcripts have the texts."""
    for width, most in ((80, 210), (120, 150), (300, 150)):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = swsearch("query", "--help").out.splitlines()
        assert max(map(len, lines)) <= min(width, 120)
        assert len(lines) <= most


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

"""Every command has help, and start-up is fast. The expected texts and modules are listed by hand."""

import subprocess
import sys

import pytest

import swsearch as package

COMMANDS = [
    ["index"], ["query"], ["batch"], ["align"], ["report"], ["engines"], ["bench"], ["bench", "kernels"],
    ["db", "info"], ["db", "verify"], ["db", "export"], ["db", "add"], ["db", "remove"], ["db", "compact"],
    ["runs", "list"], ["runs", "show"], ["runs", "merge"], ["runs", "export"], ["runs", "delete"], ["runs", "upgrade"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(swsearch, command):
    outcome = swsearch(*command, "--help")
    assert outcome.code == 0
    assert f"Example: swsearch {' '.join(command)}" in outcome.out


def test_help_names_every_command(swsearch):
    listed = swsearch("--help").out
    assert all(command[0] in listed for command in COMMANDS)
    assert "no lost hit" in listed


def test_the_version_is_the_packages(swsearch):
    assert swsearch("--version").out == f"swsearch {package.__version__}\n"


def test_import_and_help_load_no_heavy_library():
    """Heavy libraries are imported where they are used; this includes NumPy, whose import takes a tenth of a second."""
    heavy = {"numpy", "Bio", "sqlalchemy", "alembic", "dnaio", "xopen", "rich.progress", "swsearch._native", "pycuda"}
    code = (
        "import sys, swsearch\nfrom swsearch.cli.app import main\nmain(['query', '--help'])\n"
        f"print(sorted(set(sys.modules) & {heavy!r}), file=sys.stderr)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stderr.strip() == "[]"


def test_public_names_are_those_that_are_listed():
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = package.no_such_thing


def test_engines_says_what_can_be_used_and_why_not(swsearch):
    listed = swsearch("engines").out.splitlines()
    assert [line.split()[0] for line in listed] == ["cuda", "cpu", "reference", "auto"]
    assert "usable" in listed[2]

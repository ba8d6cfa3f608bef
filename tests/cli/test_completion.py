"""``swsearch completion``: what a shell offers behind a command line. The shell is a real bash, with its own functions.

Expected values: by hand, and the lists that the commands themselves print.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DATA

BASH = r"""
eval "$(swsearch completion bash)"
offered() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    "$(complete -p swsearch | sed 's/.*-F \([^ ]*\).*/\1/')" swsearch
    echo "${COMPREPLY[*]}"
}
"""


@pytest.fixture
def offered(tmp_path):
    """The words that bash offers for each of some unfinished command lines, given as lists of words."""

    def of(*lines):
        calls = "\n".join("offered " + " ".join(f"'{word}'" for word in ["swsearch", *line]) for line in lines)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        outcome = subprocess.run(
            ["bash", "--norc", "-c", BASH + calls],
            capture_output=True, text=True, check=True, cwd=tmp_path, env={**os.environ, "PATH": path},
        )  # fmt: skip
        assert outcome.stderr == ""
        return [line.split() for line in outcome.stdout.splitlines()]

    return of


def test_bash_completes_commands_options_and_values(offered):
    found = offered(
        ["que"],
        ["runs", "ex"],
        ["query", "--min-s"],
        ["query", "q.fa", "--ties", ""],
        ["query", "-f", "blast"],
        ["report", "latest", "--fields", "qseqid,sta"],
        ["align", "--mode", "se"],
        ["query", "--matrix", "BLOSUM6"],
        ["query", "quer"],
    )
    assert found == [
        ["query"],
        ["export"],
        ["--min-score", "--min-subject-coverage"],
        ["cut", "all"],
        ["blast6", "blast7"],
        ["qseqid,staxid", "qseqid,staxids"],
        ["semiglobal"],
        ["BLOSUM62"],
        [],  # bash itself completes files
    ]


@pytest.mark.thorough
def test_bash_completes_the_runs_of_the_store(swsearch, offered, few_proteins_db):
    """A missing store has no numbers, and no message disturbs the line that is typed."""
    assert swsearch("query", DATA / "queries.fasta", few_proteins_db, "--store", "mine.sqlite", "-q").code == 0
    found = offered(
        ["runs", "show", ""], ["report", "--store", "mine.sqlite", ""], ["report", "--store", "none.sqlite", ""]
    )
    assert found == [["latest"], ["latest", "1"], ["latest"]]


@pytest.mark.parametrize(("shell", "sign"), [("zsh", "compdef _swsearch_completion swsearch"), ("fish", "complete --")])
def test_other_shells_have_scripts_in_their_own_language(swsearch, shell, sign):
    """Source: the manuals of zsh (compsys) and fish (complete)."""
    script = swsearch("completion", shell).out
    assert sign in script
    assert "_SWSEARCH_COMPLETE=complete_" + shell in script


def test_another_shell_is_refused(swsearch):
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in swsearch("completion", "tcsh").error

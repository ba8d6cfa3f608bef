"""The program does what it did when its transcripts (:mod:`tests.golden.transcripts`) were accepted."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import api_description
from tests.golden.transcripts import names


@pytest.mark.parametrize("name", names())
def test_commands_do_what_their_transcript_says(name: str) -> None:
    """Source: the transcript, whose changes are listed in the changelog. ``python -m tests.golden`` accepts others."""
    command = [sys.executable, "-m", "tests.golden", "--check", name]
    outcome = subprocess.run(command, cwd=Path(__file__).parents[2], check=False, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_the_api_is_what_its_accepted_description_says() -> None:
    """Source: ``openapi.json``, the contract with its clients; ``python -m tests.golden openapi`` accepts others."""
    assert api_description.api_description() == api_description.PATH.read_text(encoding="utf-8")

"""Commands print and write what they did when their transcripts were accepted (:mod:`tests.golden.transcripts`)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.transcripts import names


@pytest.mark.parametrize("name", names())
def test_commands_do_what_their_transcript_says(name: str) -> None:
    """Source: the transcript, whose changes are listed in the changelog. ``python -m tests.golden`` accepts others."""
    command = [sys.executable, "-m", "tests.golden", "--check", name]
    outcome = subprocess.run(command, cwd=Path(__file__).parents[2], check=False, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr

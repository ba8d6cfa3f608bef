"""Lets the tests of this folder import the whole matrix that judges them, and run the command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swsearch.cli.app import main

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def run(capfd, monkeypatch, tmp_path):
    """Runs ``swsearch align`` in an empty folder; returns exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capfd.readouterr()
        code = main(["align", *map(str, arguments)])
        return (code, *capfd.readouterr())

    return call

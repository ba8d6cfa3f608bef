"""The command for pairs, for the tests of this folder."""

import pytest

from swsearch.cli.app import main


@pytest.fixture
def run(capfd, monkeypatch, tmp_path):
    """Run ``swsearch align`` in an empty folder; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capfd.readouterr()
        code = main(["align", *map(str, arguments)])
        return (code, *capfd.readouterr())

    return call

"""``--save-pssm`` and ``--in-pssm``: where profiles are written to and read from, and what is refused.

Expected values: the same command with files; by hand.
"""

import pytest

import swsearch as package
from tests.cli.conftest import DATA

QUERY = DATA.joinpath("queries.fasta").read_text().split(">")[1]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved_profiles") / "proteins.db"
    package.build_database(DATA / "proteins.fasta.gz", path)
    return path


@pytest.fixture
def iterated(swsearch, tmp_path, database):
    """A command without its last options."""
    (tmp_path / "q.fasta").write_text(f">{QUERY}")

    def call(*options):
        return swsearch("query", "q.fasta", database, "--iterations", 2, "-q", *options)

    return call


def test_profiles_are_written_to_stdout(swsearch, iterated, tmp_path):
    """The file of the same search; a report is then written to a file or not at all."""
    assert iterated("--store", "hits.sqlite", "--save-pssm", "q.asn", "--out", "q.txt").code == 0
    expected = (tmp_path / "q.asn").read_text()
    assert expected.startswith("PssmWithParameters ::= {")
    files = sorted(tmp_path.iterdir())
    assert iterated("--store", "none", "--save-pssm", "-", "--format", "none").out == expected
    assert iterated("--store", "none", "--save-pssm", "-", "--out", "q.txt").out == expected
    stored = swsearch("report", "latest", "--store", "hits.sqlite", "--save-pssm", "-", "--out", "q.txt")
    assert stored.out == expected
    assert sorted(tmp_path.iterdir()) == files
    for outcome in (
        iterated("--store", "none", "--save-pssm", "-"),
        iterated("--store", "none", "--save-pssm", "-", "--out", "-"),
        swsearch("report", "latest", "--store", "hits.sqlite", "--save-pssm", "-"),
    ):
        assert "--save-pssm -: the report is written to stdout, too" in outcome.refusal


def test_what_is_no_profile_is_refused(swsearch, iterated, database, tmp_path):
    (tmp_path / "empty").touch()
    for name, words in (
        ("q.fasta", "--in-pssm q.fasta is not a checkpoint, PSSM, model or Stockholm file"),
        ("empty", "--in-pssm empty is not a checkpoint"),
        ("missing.asn", "missing.asn: No such file or directory"),
    ):
        outcome = swsearch("query", database, "--in-pssm", name, "--store", "none", "-q")
        assert words in outcome.refusal

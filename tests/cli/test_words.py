"""A count of one is printed in the singular in every message: a regular expression looks for plurals after a 1."""

import re
import shutil

import pytest

from swsearch.cli.app import main

LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW"
NOUNS = (
    "sequences residues bases subjects queries hits records threads shards segments identifiers letters columns scores "
    "bytes"
)
PLURALS = re.compile(
    rf"(?<![\d.,-])1 (protein |dna |chosen |aligned )?({NOUNS.replace(' ', '|')})\b"
    r"|\b1 (of [\d,]+ \w+ )?(have|are|were|occur)\b|\ball 1\b|best 1\b"
)

COMMANDS = [
    "index one.fa -o new.db",
    "index twice.fa -o new.db",
    "query one.fa one.db --threads 1",
    "query one.fa one.db --format pairwise",
    "query one.fa one.db --format html",
    "query one.fa one.db --evalue 1e-200",
    "query one.fa one.db --min-identity 100",
    "query one.fa three.db --top 1",
    "query one.fa three.db --evalue 1e-9",
    "query one.fa one.db --include list.txt",
    "query one.fa three.db --include list.txt --top 1 --min-identity 1",
    "query one.sto one.db",
    "query one.fa one.db --plot scores.png",
    "batch one.fa one.db --store batch.sqlite",
    "allpairs one.db",
    "allpairs three.db --evalue 1e9 --format table",
    "runs show latest --threads 1",
    "runs list",
    "runs merge {user_store} --store merged.sqlite",
    "runs prune --keep 1",
    "runs prune --older-than 0h",
    "report latest",
    "cluster one.db",
    "cluster three.db --evalue 1e9 --min-identity 99",
    "rbh one.db three.db",
    "msa one.fa one.db",
    "db info one.db",
    "db fetch three.db one none",
    "db fetch one.db one --range 1000-",
    "query one.fa one.db --unaligned un.fa",
    "db add one.db one.fa",
    "db remove three.db a",
    "db remove one.db one",
    "align one.fa one.fa",
    "align one.fa --pairs",
    "align --text a a --mode edit",
    "align --text a a --mode lcs --format pairwise",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files that the commands name, and a store with a run."""
    folder = tmp_path_factory.mktemp("words")
    (folder / "one.fa").write_text(f">one\n{LETTERS}\n")
    (folder / "twice.fa").write_text(f">one\n{LETTERS}\n>one\n{LETTERS}\n")
    (folder / "three.fa").write_text(f">a\nM\n>b\n{LETTERS}\n>c\n{LETTERS[::-1]}\n>one\n{LETTERS}\n")
    (folder / "one.sto").write_text(f"# STOCKHOLM 1.0\na {LETTERS}\n//\n")
    (folder / "list.txt").write_text("one\nnone\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("one", "three"):
            assert main(["index", f"{name}.fa", "-o", f"{name}.db"]) == 0
        store = ["--store", "stored.sqlite"]
        assert main(["query", "one.fa", "one.db", "--threads", "1", "--out", "/dev/null", *store]) == 0
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_one_is_not_told_in_the_plural(swsearch, tmp_path, made, user_store, command):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    user_store.parent.mkdir(parents=True)
    (tmp_path / "stored.sqlite").rename(user_store)
    command = command.replace("{user_store}", str(user_store))
    outcome = swsearch(*command.removesuffix(" --threads 1").split() if "runs" in command else command.split())
    printed = outcome.out + outcome.err
    assert printed
    assert "Traceback" not in printed
    assert not PLURALS.search(printed), printed
